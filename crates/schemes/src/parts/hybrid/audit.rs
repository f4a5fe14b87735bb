//! Checks of a hybrid's tables.

use super::{Hybrid, Watch};
use crate::parts::pool::Pool;
use floatgate_core::address::{DieLpn, Pbn};
use floatgate_core::flash::Flash;

impl<W: Watch> Hybrid<W> {
    /// Checks the tables against the flash and each other; returns the live pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let geometry = &self.space.geometry;
        let mut live = 0;
        let mut valid = vec![0_u32; self.logs.all().len()];
        for (i, &at) in self
            .newest
            .iter()
            .enumerate()
            .filter(|(_, at)| at.is_some())
        {
            let (lbn, offset) = self.split(DieLpn(i as u32));
            let (block, position) = geometry.split(at);
            live += 1;
            if !flash.ledger().is_programmed(at) {
                return Err(format!("live page {i} lies at the erased page {}", at.0));
            }
            match self.log_at(at) {
                Some(log) if self.log_page(log, position) == DieLpn(i as u32) => {
                    valid[log.index()] += 1
                }
                Some(log) => {
                    return Err(format!(
                        "log {} does not know page {i} at {position}",
                        log.0
                    ));
                }
                None if block == self.data(lbn) && position == offset => {}
                None => {
                    return Err(format!(
                        "live page {i} lies in block {}, page {position}",
                        block.0
                    ));
                }
            }
        }
        for (i, log) in self.logs.all().iter().enumerate() {
            if log.pbn.is_some() && log.valid != valid[i] {
                return Err(format!(
                    "log {i} counts {} valid pages of {}",
                    log.valid, valid[i]
                ));
            }
        }
        let data = self.data.iter().filter(|b| b.is_some()).count() as u32;
        let free: u32 = self.pools.iter().map(Pool::len).sum();
        let usable = self.space.dies * self.plan.usable_blocks(geometry);
        let (logs, budget) = (self.logs_in_use(), self.log_budget());
        if data + free + logs + self.lent != usable {
            return Err(format!(
                "{data} data + {logs} log + {free} free + {} lent blocks are not {usable}",
                self.lent
            ));
        }
        if logs > budget {
            return Err(format!("{logs} log blocks, budget {budget}"));
        }
        let blank = |b: Pbn| flash.ledger().write_pointer(b) == 0;
        if !self.pools.iter().flat_map(Pool::iter).all(blank) {
            return Err("a block in the free list is not erased".into());
        }
        Ok(live)
    }
}
