//! Checks of the tables against the flash and each other.

use super::LeaFtl;
use floatgate_core::address::{DieLpn, Pbn, Ppn};
use floatgate_core::flash::Flash;

impl LeaFtl {
    /// Checks the tables; returns the live pages, those in the write buffer too.
    pub(super) fn check_tables<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let logical = self.space.logical_pages();
        let blocks = self.space.geometry.blocks_per_die;
        self.places.audit(logical)?;
        self.levels.audit(self.options.group_pages, blocks)?;
        let valid = self.check_pages(flash)?;
        if self.places.valid_pages() != self.mapped.count() || !self.mapped.is_counted() {
            return Err(format!(
                "{} valid pages, {} are mapped",
                self.places.valid_pages(),
                self.mapped.count()
            ));
        }
        let unprogrammed =
            |block| self.pages() - flash.ledger().write_pointer(self.block_on_flash(block));
        self.victims.audit(&valid, unprogrammed)?;
        let is_erased =
            |b: Pbn| b.0 < blocks && flash.ledger().write_pointer(self.block_on_flash(b)) == 0;
        if !self.pool.iter().all(is_erased) {
            return Err("an erased block is not erased".into());
        }
        self.check_buffer()
    }

    /// Checks where every page lies; returns the valid pages by block.
    fn check_pages<F: Flash>(&self, flash: &F) -> Result<Vec<u32>, String> {
        let open_blocks = [self.host, self.gc].map(|point| point.last_page());
        let open_blocks = open_blocks.map(|last| last.map(|at| self.split(at).0));
        let mut valid = vec![0; self.space.geometry.blocks_per_die as usize];
        let mut entries = 0;
        for lpn in (0..self.space.logical_pages()).map(DieLpn) {
            let open = self.open[lpn.index()];
            entries += u32::from(open.is_some());
            if !self.mapped.has(lpn.0) {
                if open.is_some() {
                    return Err(format!("page {} is open and not mapped", lpn.0));
                }
                continue;
            }
            let at = match open.is_some() {
                true => open,
                false => self.find(lpn).map_or(Ppn::NONE, |found| found.at),
            };
            let block = self.split(at).0;
            let is_there = block.index() < valid.len()
                && flash.ledger().is_programmed(self.on_flash(at))
                && self.places.holds(at, lpn);
            if !is_there || open.is_some() && !open_blocks.contains(&Some(block)) {
                return Err(format!("live page {} is not at {}", lpn.0, at.0));
            }
            valid[block.index()] += 1;
        }
        match entries == self.open_entries {
            true => Ok(valid),
            false => Err(format!(
                "the open table has {entries} entries and counts {}",
                self.open_entries
            )),
        }
    }

    fn check_buffer(&self) -> Result<u64, String> {
        let is_full = self.buffer.len() > self.options.buffer_pages.saturating_sub(1) as usize;
        let is_page = |lpn: &DieLpn| lpn.0 < self.space.logical_pages();
        if is_full && !self.buffer.is_empty()
            || !self.buffer.iter().all(is_page)
            || !self.buffer.is_sorted_by(|a, b| a < b)
        {
            return Err("the write buffer is not in order".into());
        }
        let only_there = self.buffer.iter().filter(|lpn| !self.mapped.has(lpn.0));
        Ok(u64::from(self.mapped.count()) + only_there.count() as u64)
    }
}
