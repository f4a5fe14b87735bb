//! Checks of the superblocks' tables against the flash and each other.

use super::Superblocks;
use floatgate_core::address::{DieLpn, Pbn};
use floatgate_core::flash::Flash;

impl Superblocks {
    fn audit_superblock<F: Flash>(
        &self,
        flash: &F,
        s: u32,
        extra_blocks: u32,
    ) -> Result<(), String> {
        let one = &self.supers[s as usize];
        let data_blocks = self.data_blocks(s) as usize;
        let (mut logs, mut dead) = (0, 0);
        for (place, block) in self.blocks_of(s).enumerate() {
            let entry = &self.blocks[self.index(block)];
            logs += u32::from(entry.log);
            dead += u32::from(entry.valid == 0);
            if entry.log != (place >= data_blocks) {
                return Err(format!(
                    "block {} at place {place} has the wrong role",
                    block.0
                ));
            }
            if entry.in_set || entry.programmed != flash.ledger().programmed_pages(block) {
                return Err(format!("the entry of block {} is wrong", block.0));
            }
        }
        if (logs, dead) != (one.logs, one.dead) || one.easy != (logs > 0 && dead > 0) {
            return Err(format!(
                "superblock {s} counts {one:?} of {logs} U-blocks, {dead} dead"
            ));
        }
        if logs > extra_blocks {
            return Err(format!("superblock {s} has {logs} U-blocks"));
        }
        if (logs > 0) != self.recent.list_of(s).is_some() {
            return Err(format!("superblock {s} is wrongly in or out of turn"));
        }
        let open = one.open;
        let in_list = |b: Pbn| self.lists.list_of(self.index(b) as u32) == Some(s as usize);
        if open.is_some()
            && (!in_list(open) || flash.ledger().write_pointer(open) == self.pages_per_block())
        {
            return Err(format!(
                "the open block {} of superblock {s} is none",
                open.0
            ));
        }
        Ok(())
    }

    /// Checks the tables against the flash and each other; returns the live pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(
        &self,
        flash: &F,
        log_budget: u32,
        extra_blocks: u32,
    ) -> Result<u64, String> {
        let mut valid = vec![0; self.blocks.len()];
        let mut live = 0;
        for (lpn, &at) in self.newest.iter().enumerate() {
            if at.is_none() {
                continue;
            }
            let s = self.superblock_of(DieLpn(lpn as u32)) as usize;
            let block = self.index_at(at);
            if !flash.ledger().is_programmed(at) || self.lists.list_of(block as u32) != Some(s) {
                return Err(format!("live page {lpn} is not at {}", at.0));
            }
            valid[block] += 1;
            live += 1;
        }
        for (b, (block, valid)) in self.blocks.iter().zip(valid).enumerate() {
            if block.valid != valid {
                return Err(format!(
                    "block {b} counts {} valid pages of {valid}",
                    block.valid
                ));
            }
        }
        let superblocks = 0..self.supers.len() as u32;
        superblocks
            .clone()
            .try_for_each(|s| self.audit_superblock(flash, s, extra_blocks))?;
        let logs: u32 = self.supers.iter().map(|s| s.logs).sum();
        let easy = self.supers.iter().filter(|s| s.easy).count() as u32;
        if (logs, easy) != (self.logs_in_use, self.easy) || logs > log_budget {
            return Err(format!("{logs} U-blocks, budget {log_budget}"));
        }
        let listed: u32 = superblocks.map(|s| self.lists.len(s as usize)).sum();
        let free = self.pool.len();
        if listed + free != self.blocks.len() as u32 || free < self.size.get() {
            return Err(format!("{listed} blocks in use and {free} free"));
        }
        if !self
            .pool
            .iter()
            .all(|b| flash.ledger().write_pointer(b) == 0)
        {
            return Err("a block in the free list is not erased".into());
        }
        Ok(live)
    }
}
