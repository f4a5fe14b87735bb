//! Merges of BLog: one logical block at a time, and the log block that this frees.

use super::log_table::Row;
use super::sub_table::Index;
use super::{Blog, Layout};
use crate::parts::scan::move_tag;
use floatgate_core::address::{DieLpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Role};

impl Blog {
    /// Brings all live pages of `b` into its data block; no log block is erased. Returns the row whose log
    /// block became the data block, if one did.
    pub(super) fn reduced_order_merge<F: Flash>(
        &mut self,
        flash: &mut F,
        b: u32,
    ) -> Result<Option<u32>, F::Error> {
        self.rebuilds_of_write += 1;
        if self.layout == Layout::Mlc {
            self.read_sub_tables(flash, b)?;
        }
        let alone = self.row_with_everything(b);
        match alone {
            Some(row) => self.swap(flash, b, row)?,
            None => self.gather(flash, b)?,
        }
        self.fetched.merged(b);
        Ok(alone)
    }

    /// The row whose log block serves `b` alone and holds all its live pages (in `slc` at their own offsets
    /// and nothing else), if there is one.
    fn row_with_everything(&self, b: u32) -> Option<u32> {
        let pages = self.pages();
        let mine = &self.place[(b * pages) as usize..((b + 1) * pages) as usize];
        let mut live = mine.iter().filter(|at| at.is_some());
        let block = self.space.geometry.block_of(*live.next()?);
        let first = self.space.geometry.first_page(block).0;
        if !live.all(|at| (first..first + pages).contains(&at.0)) {
            return None;
        }
        let row = self.logs.row_at(b, block)?;
        let fits = self.layout == Layout::Mlc || self.is_aligned(row, b);
        (self.logs.association(row) == 1 && fits).then_some(row)
    }

    fn is_aligned(&self, row: u32, b: u32) -> bool {
        let own = b * self.pages()..;
        self.logs
            .programmed(row)
            .iter()
            .zip(own)
            .all(|(lpn, own)| lpn.0 == own)
    }

    /// The log block of `row` becomes the data block of `b`, the old data block the log block of `row`.
    fn swap<F: Flash>(&mut self, flash: &mut F, b: u32, row: u32) -> Result<(), F::Error> {
        let Row {
            block,
            offset,
            is_sealed,
            ..
        } = self.logs.row(row);
        self.is_closed[b as usize] = is_sealed;
        if self.layout == Layout::Mlc {
            self.inherited[b as usize] = offset;
            self.find_sub_tables(b, row);
        }
        let old = std::mem::replace(&mut self.data[b as usize], block);
        self.logs.leave(b);
        self.erase_data(flash, old)?;
        self.merges.log_reclaimed += 1;
        self.merges.log_pages_used += u64::from(offset);
        self.logs.empty(row, old);
        self.merges.switch += 1;
        self.merges.erases_switch += u64::from(!self.in_space_gc);
        Ok(())
    }

    /// The directory of `b` when all its live pages lie in the log block of `row`: the highest page there of
    /// each group that has a live page.
    fn find_sub_tables(&mut self, b: u32, row: u32) {
        let first = self.directory_at(b, 0);
        self.directory[first..first + self.groups as usize].fill(Ppn::NONE);
        let first = self.space.geometry.first_page(self.logs.row(row).block).0;
        for (lpn, at) in self.logs.programmed(row).iter().zip(first..) {
            let (of, p) = self.split(*lpn);
            if of == b {
                let group = self.directory_at(b, self.by_entries.div(p));
                self.directory[group] = Ppn(at);
            }
        }
        for group in 0..self.groups {
            let is_live = |p| self.place[(b * self.pages() + p) as usize].is_some();
            if !self.group_pages(group).any(is_live) {
                let at = self.directory_at(b, group);
                self.directory[at] = Ppn::NONE;
            }
        }
    }

    /// Copies the live pages of `b` into a fresh data block, or leaves it without one if there are none.
    fn gather<F: Flash>(&mut self, flash: &mut F, b: u32) -> Result<(), F::Error> {
        let old = self.data[b as usize];
        let copies = self.pack(flash, b, old)?;
        self.logs.leave(b);
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
        b: u32,
        emptied: Pbn,
    ) -> Result<u32, F::Error> {
        let is_live = |p: &u32| self.place[(b * self.pages() + p) as usize].is_some();
        let end = (0..self.pages()).rev().find(is_live);
        let mut fresh = Pbn::NONE;
        let mut copies = 0;
        for group in 0..self.groups {
            self.copied.fill(self.format.unwritten());
            let mut last = Ppn::NONE;
            for p in self.group_pages(group) {
                let lpn = DieLpn(b * self.pages() + p);
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
            let at = self.directory_at(b, group);
            self.directory[at] = if self.layout == Layout::Mlc {
                last
            } else {
                Ppn::NONE
            };
        }
        self.data[b as usize] = fresh;
        self.is_closed[b as usize] = false;
        self.inherited[b as usize] = 0;
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

    /// Frees the log block that serves fewest logical blocks.
    pub(super) fn space_gc<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let row = self.logs.victim();
        let association = self.logs.association(row);
        if association > 0 {
            self.merges.count_full(association as usize);
        }
        self.in_space_gc = true;
        let mut swapped = false;
        while let Some(b) = self.logs.first_served(row) {
            swapped = self.reduced_order_merge(flash, b)? == Some(row);
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
