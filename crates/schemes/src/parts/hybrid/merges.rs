//! Merges of a hybrid (Kim et al. 2002; FAST, section 3): aligned log blocks by switch, partial or full merge, others by
//! rebuilding every logical block that has a valid page there.

use std::ops::Range;

use super::log_table::LogBlock;
use super::{Hybrid, Log, LogPage, Loss, Merged, Watch, programmable};
use crate::parts::scan::move_tag;
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Role};

impl<W: Watch> Hybrid<W> {
    /// Merges a log block that is aligned to `lbn` and owned by it: dead, switch, partial, or full if pages
    /// are missing below its highest position or have newer content that must stay.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn merge_aligned<F: Flash>(
        &mut self,
        flash: &mut F,
        log: Log,
        lbn: Lbn,
    ) -> Result<Merged, F::Error> {
        debug_assert!(self.is_aligned(log, lbn) && self.owner(log) == Some(lbn));
        if self.valid(log) == 0 {
            return self.merge_dead(flash, log);
        }
        self.prove_block(flash, lbn)?;
        let block = self.log_block(log);
        // The erased positions of a sealed block cannot be programmed, nor be those of a data block; nor may a
        // data block have a page that cannot be read.
        let LogBlock {
            sealed, host_pages, ..
        } = self.logs[log];
        let usable =
            sealed <= flash.ledger().programmed_pages(block).min(host_pages) || sealed == 0;
        let missing = usable.then(|| self.missing_pages(flash, block, lbn));
        let Some(missing) = missing.flatten() else {
            self.merges.count_full(1);
            self.rebuild(flash, lbn)?;
            return Ok(Merged::Full);
        };
        if missing > 0 {
            let pages = self.pages_per_block();
            for offset in 0..pages {
                let lpn = DieLpn(lbn.0 * pages + offset);
                let to = self.space.geometry.ppn(block, offset);
                if self.newest(lpn).is_some() && !flash.ledger().is_programmed(to) {
                    self.copy(flash, lpn, to, Role::Data, 0)?;
                    self.logs.note_page(
                        LogPage {
                            log,
                            position: offset,
                        },
                        lpn,
                        (lbn, offset),
                    );
                    self.move_newest(lpn, to, Loss::Moved);
                }
            }
        }
        let die = self.die_of_logical(lbn);
        let old = std::mem::replace(&mut self.data[lbn.index()], block);
        self.map_event(flash, die, Some(lbn), Some(log))?;
        self.release(log);
        let erased = u64::from(old.is_some());
        if old.is_some() {
            self.erase_data(flash, old)?;
        }
        if missing == 0 {
            self.merges.switch += 1;
            self.merges.erases_switch += erased;
            return Ok(Merged::Switch);
        }
        self.merges.partial += 1;
        self.merges.copies_partial += u64::from(missing);
        self.merges.erases_partial += erased;
        Ok(Merged::Partial)
    }

    /// How many live pages of `lbn` have to be copied into `block` to make it the data block; `None` if
    /// that cannot be.
    fn missing_pages<F: Flash>(&self, flash: &F, block: Pbn, lbn: Lbn) -> Option<u32> {
        let geometry = &self.space.geometry;
        let pages = geometry.pages_per_block;
        let mut missing = 0;
        for offset in 0..pages {
            let at = self.newest[(lbn.0 * pages + offset) as usize];
            if at.is_none() || geometry.block_of(at) == block {
                continue;
            }
            if flash.ledger().is_programmed(geometry.ppn(block, offset)) {
                // An older version stands here. The newer one may stay in a log block, not in a data
                // block that is about to be erased.
                if geometry.block_of(at) == self.data[lbn.index()] {
                    return None;
                }
            } else if programmable(flash, block, offset) {
                missing += 1;
            } else {
                return None;
            }
        }
        Some(missing)
    }

    /// Erases a log block without a valid page.
    ///
    /// # Errors
    /// Those of the flash.
    fn merge_dead<F: Flash>(&mut self, flash: &mut F, log: Log) -> Result<Merged, F::Error> {
        self.erase_log(flash, log)?;
        self.merges.dead += 1;
        self.merges.erases_dead += 1;
        Ok(Merged::Dead)
    }

    /// Full merge of a victim: every logical block with a valid page in it is rebuilt (dead if there is
    /// none), then the victim is erased.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn merge_full<F: Flash>(&mut self, flash: &mut F, victim: Log) -> Result<Merged, F::Error> {
        if self.valid(victim) == 0 {
            return self.merge_dead(flash, victim);
        }
        self.collect_associated(flash, victim, false);
        self.rebuild_associated(flash, victim)
    }

    /// The same, but also for logical blocks whose pages in the victim are all obsolete (the FAST of 2007).
    ///
    /// # Errors
    /// Those of the flash.
    pub fn merge_full_with_obsolete<F: Flash>(
        &mut self,
        flash: &mut F,
        victim: Log,
    ) -> Result<Merged, F::Error> {
        self.collect_associated(flash, victim, true);
        if self.associated.is_empty() {
            return self.merge_dead(flash, victim);
        }
        self.rebuild_associated(flash, victim)
    }

    /// The distinct logical blocks of the victim's pages, in the order of their first page.
    fn collect_associated<F: Flash>(&mut self, flash: &F, victim: Log, obsolete_too: bool) {
        self.merge_no = self.merge_no.wrapping_add(1);
        self.associated.clear();
        let pages = self.pages_per_block();
        for position in 0..self.written(flash, victim) {
            let lpn = self.log_page(victim, position);
            if lpn.is_none() || !(obsolete_too || self.is_valid_at(victim, position)) {
                continue;
            }
            let (lbn, _) = self.split(lpn);
            if self.seen[lbn.index()] == self.merge_no {
                continue;
            }
            self.seen[lbn.index()] = self.merge_no;
            let live = |offset| self.newest[(lbn.0 * pages + offset) as usize].is_some();
            if !obsolete_too || (0..pages).any(live) {
                self.associated.push(lbn);
            }
        }
    }

    fn rebuild_associated<F: Flash>(
        &mut self,
        flash: &mut F,
        victim: Log,
    ) -> Result<Merged, F::Error> {
        let associated = std::mem::take(&mut self.associated);
        self.merges.count_full(associated.len());
        for &lbn in &associated {
            self.rebuild(flash, lbn)?;
        }
        self.associated = associated;
        if self.exists(victim) {
            self.erase_log(flash, victim)?;
            self.merges.erases_full += 1;
        }
        Ok(Merged::Full)
    }

    /// Rebuilds one logical block: its live pages from everywhere into a fresh data block; the old data
    /// block and a log block that `lbn` owns alone are erased. The caller counts the merge.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn rebuild<F: Flash>(&mut self, flash: &mut F, lbn: Lbn) -> Result<(), F::Error> {
        self.prove_block(flash, lbn)?;
        let die = self.die_of_logical(lbn);
        let pages = self.pages_per_block();
        let fresh = self.pools[die as usize].take();
        let newest = |offset: u32| self.newest[(lbn.0 * pages + offset) as usize];
        let last = (0..pages).rev().find(|&offset| newest(offset).is_some());
        let mut offset = 0;
        self.foreign.clear();
        while offset < pages {
            offset += self.rebuild_run(flash, lbn, fresh, offset..pages, last)?;
        }
        let old = std::mem::replace(&mut self.data[lbn.index()], fresh);
        self.map_event(flash, die, Some(lbn), None)?;
        // Unfinished, the rebuild is void, and a log block on another die has what it had from there.
        for &source in &self.foreign {
            flash.keeps(source, die);
        }
        if old.is_some() {
            self.erase_data(flash, old)?;
            self.merges.erases_full += 1;
        }
        if let Some(log) = self.owned(lbn) {
            self.erase_log(flash, log)?;
            self.merges.erases_full += 1;
        }
        Ok(())
    }

    /// Copies the first of some pages of a logical block, and those behind it that can go with it in one run: live ones
    /// from the die of the fresh block. Returns how many pages are done, live or not.
    #[inline]
    fn rebuild_run<F: Flash>(
        &mut self,
        flash: &mut F,
        lbn: Lbn,
        fresh: Pbn,
        pages: Range<u32>,
        last: Option<u32>,
    ) -> Result<u32, F::Error> {
        let geometry = &self.space.geometry;
        let base = lbn.0 * geometry.pages_per_block;
        let first = DieLpn(base + pages.start);
        let places = &self.newest[first.index()..(base + pages.end) as usize];
        if places[0].is_none() {
            return Ok(1);
        }
        let (to, die) = (geometry.ppn(fresh, pages.start), geometry.die_of(fresh));
        let is_here =
            |at: Ppn| self.space.dies == 1 || geometry.die_of(geometry.block_of(at)) == die;
        let here = places.iter().take_while(|&&at| at.is_some() && is_here(at));
        let (here, emptied) = (here.count(), self.data[lbn.index()]);
        let oob_of = |i: usize| Oob {
            lpn: self.space.device_lpn(DieLpn(first.0 + i as u32)),
            role: Role::Data,
            tag: move_tag(last == Some(pages.start + i as u32), emptied),
        };
        let token = F::Token::default();
        if here == 0 {
            self.foreign.push(places[0]);
            flash.copy(places[0], to, oob_of(0), Cause::Gc, token)?;
        } else {
            flash.copy_run(&places[..here], to, oob_of, Cause::Gc, token)?;
        }
        let done = here.max(1) as u32;
        for i in 0..done {
            self.leave(DieLpn(first.0 + i), lbn, Ppn(to.0 + i));
        }
        self.merges.copies_full += u64::from(done);
        Ok(done)
    }

    fn erase_data<F: Flash>(&mut self, flash: &mut F, block: Pbn) -> Result<(), F::Error> {
        self.merges.wasted_data_pages +=
            u64::from(self.pages_per_block() - flash.ledger().programmed_pages(block));
        self.erase(flash, block)
    }

    /// Erases a log block and takes it out of all tables. It must hold no valid page.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn erase_log<F: Flash>(&mut self, flash: &mut F, log: Log) -> Result<(), F::Error> {
        debug_assert_eq!(self.valid(log), 0, "erase of a log block with valid pages");
        let block = self.log_block(log);
        // The slot's entry is empty from now on: the map page says so before the erase does.
        self.logs[log].pbn = Pbn::NONE;
        self.map_event(flash, self.die_of_block(block), None, Some(log))?;
        self.logs[log].pbn = block;
        self.merges.wasted_log_pages +=
            u64::from(self.pages_per_block() - flash.ledger().programmed_pages(block));
        self.release(log);
        self.erase(flash, block)
    }

    fn erase<F: Flash>(&mut self, flash: &mut F, block: Pbn) -> Result<(), F::Error> {
        flash.erase(block, Cause::Gc, F::Token::default())?;
        let die = self.die_of_block(block);
        self.pools[die as usize].give(block);
        Ok(())
    }

    /// `log` stops being a log block.
    fn release(&mut self, log: Log) {
        let released = self.logs.remove(log);
        self.merges.log_reclaimed += 1;
        self.merges.log_pages_used += u64::from(released.host_pages);
        self.lists.remove(log.0);
        self.watch.released(log);
    }
}
