//! Merges of BLog: one logical block at a time, and the log block that this frees.

use super::log_table::Row;
use super::sub_table::Index;
use super::{Blog, Layout};
use crate::parts::scan::move_tag;
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Role};

impl Blog {
    /// Brings all live pages of `lbn` into its data block; no log block is erased. Returns the row whose log
    /// block became the data block, if one did.
    pub(super) fn reduced_order_merge<F: Flash>(
        &mut self,
        flash: &mut F,
        lbn: Lbn,
    ) -> Result<Option<u32>, F::Error> {
        self.rebuilds_of_write += 1;
        if self.layout == Layout::Mlc {
            self.read_sub_tables(flash, lbn)?;
        }
        let alone = self.row_with_everything(lbn);
        match alone {
            Some(row) => self.swap(flash, lbn, row)?,
            None => self.gather(flash, lbn)?,
        }
        self.fetched.merged(lbn);
        Ok(alone)
    }

    /// The row whose log block serves `lbn` alone and holds all its live pages (in `slc` at their own offsets
    /// and nothing else), if there is one.
    fn row_with_everything(&self, lbn: Lbn) -> Option<u32> {
        let pages = self.pages();
        let mine = &self.place[(lbn.0 * pages) as usize..((lbn.0 + 1) * pages) as usize];
        let mut live = mine.iter().filter(|at| at.is_some());
        let block = self.space.geometry.block_of(*live.next()?);
        let first = self.space.geometry.first_page(block).0;
        if !live.all(|at| (first..first + pages).contains(&at.0)) {
            return None;
        }
        let row = self.logs.row_at(lbn, block)?;
        let fits = self.layout == Layout::Mlc || self.is_aligned(row, lbn);
        let is_alone = match self.by_validity {
            true => self
                .others(lbn, row)
                .all(|other| !self.counts_in(other, row)),
            false => self.logs.association(row) == 1,
        };
        (is_alone && fits).then_some(row)
    }

    fn is_aligned(&self, row: u32, lbn: Lbn) -> bool {
        let own = lbn.0 * self.pages()..;
        self.logs
            .programmed(row)
            .iter()
            .zip(own)
            .all(|(lpn, own)| lpn.0 == own)
    }

    /// The log block of `row` becomes the data block of `lbn`, the old data block the log block of `row`.
    fn swap<F: Flash>(&mut self, flash: &mut F, lbn: Lbn, row: u32) -> Result<(), F::Error> {
        let Row {
            block,
            offset,
            is_sealed,
            ..
        } = self.logs.row(row);
        self.is_closed[lbn.index()] = is_sealed;
        if self.layout == Layout::Mlc {
            self.inherited[lbn.index()] = offset;
            self.find_sub_tables(lbn, row);
        }
        while let Some(other) = self.other(lbn, row) {
            self.take_off(other, row);
        }
        let old = std::mem::replace(&mut self.data[lbn.index()], block);
        self.logs.leave(lbn);
        self.erase_data(flash, old)?;
        self.merges.log_reclaimed += 1;
        self.merges.log_pages_used += u64::from(offset);
        self.logs.empty(row, old);
        self.merges.switch += 1;
        self.merges.erases_switch += u64::from(!self.in_space_gc);
        Ok(())
    }

    /// The directory of `lbn` when all its live pages lie in the log block of `row`: the highest page there of
    /// each group that has a live page.
    fn find_sub_tables(&mut self, lbn: Lbn, row: u32) {
        let first = self.directory_at(lbn, 0);
        self.directory[first..first + self.groups as usize].fill(Ppn::NONE);
        let first = self.space.geometry.first_page(self.logs.row(row).block).0;
        for (lpn, at) in self.logs.programmed(row).iter().zip(first..) {
            let (of, p) = self.split(*lpn);
            if of == lbn {
                let group = self.directory_at(lbn, self.by_entries.div(p));
                self.directory[group] = Ppn(at);
            }
        }
        for group in 0..self.groups {
            if !self.has_live(lbn, group) {
                let at = self.directory_at(lbn, group);
                self.directory[at] = Ppn::NONE;
            }
        }
    }

    /// Copies the live pages of `lbn` into a fresh data block, or leaves it without one if there are none.
    fn gather<F: Flash>(&mut self, flash: &mut F, lbn: Lbn) -> Result<(), F::Error> {
        let old = self.data[lbn.index()];
        let copies = self.pack(flash, lbn, old)?;
        self.logs.leave(lbn);
        self.erase_data(flash, old)?;
        self.pool.give(old);
        self.counts.reduced += 1;
        if self.in_space_gc {
            self.counts.reduced_in_space_gc += 1;
            self.merges.copies_full += u64::from(copies);
        }
        Ok(())
    }

    /// The copies of a merge, which leave nothing that counts in the block `emptied`. Returns their number.
    pub(super) fn pack<F: Flash>(
        &mut self,
        flash: &mut F,
        lbn: Lbn,
        emptied: Pbn,
    ) -> Result<u32, F::Error> {
        let is_live = |p: &u32| self.place[(lbn.0 * self.pages() + p) as usize].is_some();
        let end = (0..self.pages()).rev().find(is_live);
        let mut fresh = Pbn::NONE;
        let mut copies = 0;
        for group in 0..self.groups {
            self.copied.fill(self.format.unwritten());
            let mut last = Ppn::NONE;
            for p in self.group_pages(group) {
                let lpn = DieLpn(lbn.0 * self.pages() + p);
                if self.place[lpn.index()].is_none() {
                    continue;
                }
                if fresh.is_none() {
                    fresh = self.pool.take();
                }
                let packed = self.layout == Layout::Mlc;
                let to = self
                    .space
                    .geometry
                    .ppn(fresh, if packed { copies } else { p });
                self.copy(flash, lpn, to, move_tag(end == Some(p), emptied))?;
                (last, copies) = (to, copies + 1);
            }
            let at = self.directory_at(lbn, group);
            self.directory[at] = if self.layout == Layout::Mlc {
                last
            } else {
                Ppn::NONE
            };
        }
        self.data[lbn.index()] = fresh;
        self.is_closed[lbn.index()] = false;
        self.inherited[lbn.index()] = 0;
        Ok(copies)
    }

    /// Copies a page to its place in a fresh data block. Its sub-table has what was copied so far: that of
    /// the group's last page is whole.
    #[inline]
    fn copy<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        to: Ppn,
        tag: u32,
    ) -> Result<(), F::Error> {
        let from = self.place[lpn.index()];
        let oob = Oob::new(self.space.device_lpn(lpn), Role::Data).tagged(tag);
        let spare = oob.with_bytes(|bytes| {
            if self.layout == Layout::Mlc {
                let (_, p) = self.split(lpn);
                let (_, i) = self.by_entries.div_rem(p);
                let (_, offset) = self.space.geometry.split(to);
                self.copied[i as usize] = Index::in_data(offset);
                self.format.pack(&self.copied, bytes);
            }
        });
        flash.copy(from, to, spare, Cause::Gc, F::Token::default())?;
        self.place[lpn.index()] = to;
        Ok(())
    }

    fn erase_data<F: Flash>(&mut self, flash: &mut F, block: Pbn) -> Result<(), F::Error> {
        self.merges.wasted_data_pages +=
            u64::from(self.pages() - flash.ledger().programmed_pages(block));
        self.merges.erases_full += u64::from(self.in_space_gc);
        flash.erase(block, Cause::Gc, F::Token::default())?;
        Ok(())
    }

    /// Frees the log block that serves fewest logical blocks, or has live pages of fewest.
    pub(super) fn space_gc<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let row = self.logs.victim();
        let association = match self.by_validity {
            true => (self.logs.served(row))
                .filter(|&lbn| self.counts_in(lbn, row))
                .count() as u32,
            false => self.logs.association(row),
        };
        if association > 0 {
            self.merges.count_full(association as usize);
        }
        self.in_space_gc = true;
        let mut swapped = false;
        while let Some(lbn) = self.logs.first_served(row) {
            if self.by_validity && !self.counts_in(lbn, row) {
                self.take_off(lbn, row);
                continue;
            }
            swapped = self.reduced_order_merge(flash, lbn)? == Some(row);
        }
        self.in_space_gc = false;
        if swapped {
            return Ok(());
        }
        let Row { block, offset, .. } = self.logs.row(row);
        flash.erase(block, Cause::Gc, F::Token::default())?;
        self.merges.wasted_log_pages += u64::from(self.pages() - offset);
        self.merges.log_reclaimed += 1;
        self.merges.log_pages_used += u64::from(offset);
        if association > 0 {
            self.merges.erases_full += 1;
        } else {
            self.merges.dead += 1;
            self.merges.erases_dead += 1;
        }
        self.logs.empty(row, block);
        Ok(())
    }
}
