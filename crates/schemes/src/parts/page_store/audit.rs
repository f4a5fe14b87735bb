//! Checks of a page-mapped device's tables.

use super::{PageStore, Placement};
use floatgate_core::address::{Lpn, Ppn};
use floatgate_core::flash::Flash;

impl PageStore {
    /// Checks the tables; returns the live pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.audit_with_map(flash, std::iter::empty())
    }

    /// The same beside mapping pages at those places.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit_with_map<F: Flash>(
        &self,
        flash: &F,
        map_pages: impl Iterator<Item = Ppn>,
    ) -> Result<u64, String> {
        let mut valid = vec![0; self.geometry.blocks() as usize];
        let mut live = 0;
        for (lpn, &at) in self.map.iter().enumerate().filter(|(_, at)| at.is_some()) {
            if !flash.ledger().is_programmed(at) || self.page_at[at.index()] != Lpn(lpn as u32) {
                return Err(format!("live page {lpn} is not at {}", at.0));
            }
            valid[self.geometry.block_of(at).index()] += 1;
            live += 1;
        }
        let mut valid_with_map = valid.clone();
        map_pages.for_each(|at| valid_with_map[self.geometry.block_of(at).index()] += 1);
        let pages = self.geometry.pages_per_block;
        let unprogrammed = |block| pages - flash.ledger().write_pointer(block);
        self.victims.audit(&valid_with_map, unprogrammed)?;
        for (i, die) in self.dies.iter().enumerate() {
            let first = self.geometry.pbn(i as u32, 0).index();
            let sum: u32 = valid[first..first + self.geometry.blocks_per_die as usize]
                .iter()
                .sum();
            if sum != die.valid && self.options.placement != Placement::Static {
                return Err(format!("die {i} counts {} valid pages of {sum}", die.valid));
            }
            if !die
                .pool
                .iter()
                .all(|b| flash.ledger().write_pointer(b) == 0)
            {
                return Err(format!("an erased block of die {i} is not erased"));
            }
        }
        Ok(live)
    }
}
