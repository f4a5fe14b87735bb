//! `association = valid`: which logical blocks still have something in a log block, and how one leaves it alone.

use super::Blog;
use floatgate_core::address::{DieLpn, Lbn, Ppn};

impl Blog {
    /// The logical blocks of a row but one.
    pub(super) fn others(&self, lbn: Lbn, row: u32) -> impl Iterator<Item = Lbn> + '_ {
        self.logs.served(row).filter(move |&other| other != lbn)
    }

    pub(super) fn other(&self, lbn: Lbn, row: u32) -> Option<Lbn> {
        self.others(lbn, row).next()
    }

    /// Whether a logical block has a live page in a row, or one there that was trimmed: it may carry the sub-table of its
    /// group, and after a power cut it is back, where a swap must not have made the row another's data block.
    pub(super) fn counts_in(&self, lbn: Lbn, row: u32) -> bool {
        let pages = lbn.0 * self.pages()..(lbn.0 + 1) * self.pages();
        let mut mine = (self.logs.programmed(row).iter()).filter(|lpn| pages.contains(&lpn.0));
        self.logs.live(lbn, row) > 0 || mine.any(|lpn| self.place[lpn.index()].is_none())
    }

    /// Whether a page of a group is live.
    pub(super) fn has_live(&self, lbn: Lbn, group: u32) -> bool {
        let is_live = |p| self.place[(lbn.0 * self.pages() + p) as usize].is_some();
        self.group_pages(group).any(is_live)
    }

    /// A row of a logical block in which nothing of it counts: the first of the DLT row.
    pub(super) fn deserted(&self, lbn: Lbn) -> Option<u32> {
        let slots = self.logs.slots(lbn);
        let deserted =
            slots.filter(|&(row, _)| self.logs.is_full(row) && !self.counts_in(lbn, row));
        deserted.min_by_key(|&(_, slot)| slot).map(|(row, _)| row)
    }

    /// A logical block leaves a row in which nothing of it counts, without a merge.
    pub(super) fn take_off(&mut self, lbn: Lbn, row: u32) {
        self.logs.take_off(lbn, row);
    }

    /// A page is about to lie at `to`, or nowhere.
    #[inline]
    pub(super) fn count_move(&mut self, lpn: DieLpn, to: Ppn) {
        let (lbn, _) = self.split(lpn);
        let from = self.place[lpn.index()];
        if from.is_some() {
            let block = self.space.geometry.block_of(from);
            self.logs.page_went(lbn, block);
        }
        if to.is_some() {
            let block = self.space.geometry.block_of(to);
            if let Some(row) = self.logs.row_at(lbn, block) {
                self.logs.page_came(lbn, row);
            }
        }
    }
}
