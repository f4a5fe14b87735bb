//! Checks of BLog's tables against the flash.

use super::{Blog, Layout};
use floatgate_core::address::{DieLpn, Lbn, Pbn};
use floatgate_core::flash::Flash;

impl Blog {
    /// Every block is a data block, a log block or free, once.
    pub(super) fn audit_blocks<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let geometry = &self.space.geometry;
        let first = geometry.pbn(self.space.first_die, 0).0;
        let mut uses = vec![0; geometry.blocks_per_die as usize];
        let data = self.data.iter().copied().filter(|block| block.is_some());
        let logs = (0..self.logs.len()).map(|row| self.logs.row(row).block);
        for block in data.chain(logs).chain(self.pool.iter()) {
            uses[(block.0 - first) as usize] += 1;
        }
        if let Some(block) = uses.iter().position(|&uses| uses != 1) {
            return Err(format!("block {block} has {} uses", uses[block]));
        }
        if self.pool.is_empty()
            || self
                .pool
                .iter()
                .any(|block| flash.ledger().write_pointer(block) > 0)
        {
            return Err("no block is free, or a free block is not erased".into());
        }
        Ok(())
    }

    /// Live pages of `lbn` and its sub-tables lie in its data block or its log blocks.
    pub(super) fn audit_pages<F: Flash>(&self, flash: &F, lbn: Lbn) -> Result<u64, String> {
        let geometry = &self.space.geometry;
        let data = self.data[lbn.index()];
        if data.is_none() && self.logs.held(lbn) > 0 {
            return Err(format!(
                "logical block {} has log blocks and no data block",
                lbn.0
            ));
        }
        let row_of = |block: Pbn| self.logs.row_at(lbn, block);
        let mut live = 0;
        for p in 0..self.pages() {
            let lpn = DieLpn(lbn.0 * self.pages() + p);
            let at = self.place[lpn.index()];
            if at.is_none() {
                continue;
            }
            live += 1;
            let (block, offset) = geometry.split(at);
            let fits = match row_of(block) {
                Some(row) => self.logs.programmed(row).get(offset as usize) == Some(&lpn),
                None => block == data && (self.layout == Layout::Mlc || offset == p),
            };
            if !fits || !flash.ledger().is_programmed(at) {
                return Err(format!("live page {p} of {} cannot lie at {}", lbn.0, at.0));
            }
            let table = self.directory[self.directory_at(lbn, self.by_entries.div(p))];
            if self.layout == Layout::Mlc && table.is_none() {
                return Err(format!("live page {p} of {} has no sub-table", lbn.0));
            }
        }
        if self.by_validity {
            self.audit_live(lbn)?;
        }
        for group in 0..self.groups {
            let at = self.directory[self.directory_at(lbn, group)];
            if at.is_none() {
                continue;
            }
            let (block, _) = geometry.split(at);
            let known = block == data || row_of(block).is_some();
            if !known || !flash.ledger().is_programmed(at) {
                return Err(format!(
                    "sub-table {group} of {} cannot lie at {}",
                    lbn.0, at.0
                ));
            }
        }
        Ok(live)
    }

    /// What is counted live in each row of `lbn` is what lies there.
    fn audit_live(&self, lbn: Lbn) -> Result<(), String> {
        for row in self.logs.rows_of(lbn) {
            let block = self.logs.row(row).block;
            let lies_there = |lpn: &u32| {
                let at = self.place[*lpn as usize];
                at.is_some() && self.space.geometry.block_of(at) == block
            };
            let pages = lbn.0 * self.pages()..(lbn.0 + 1) * self.pages();
            let (live, counted) = (
                pages.filter(lies_there).count(),
                self.logs.live(lbn, row) as usize,
            );
            if live != counted {
                return Err(format!(
                    "row {row}: {counted} pages of {} are counted live, {live} are there",
                    lbn.0
                ));
            }
        }
        Ok(())
    }
}
