//! Checks of a hybrid's tables.

use super::{Hybrid, Watch};
use crate::parts::map_area::MapArea;
use crate::parts::pool::Pool;
use floatgate_core::address::{DieLpn, Pbn};
use floatgate_core::flash::Flash;

impl<W: Watch> Hybrid<W> {
    /// Checks the tables against the flash and each other; returns the live pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F, log_budget: u32) -> Result<u64, String> {
        let geometry = &self.space.geometry;
        let pages = geometry.pages_per_block;
        let mut live = 0;
        let mut valid = vec![0_u32; self.logs.len()];
        for (i, &at) in self
            .newest
            .iter()
            .enumerate()
            .filter(|(_, at)| at.is_some())
        {
            let (l, o) = self.split(DieLpn(i as u32));
            let (block, position) = geometry.split(at);
            live += 1;
            if !flash.ledger().is_programmed(at) {
                return Err(format!("live page {i} lies at the erased page {}", at.0));
            }
            match self.log_at(at).some() {
                Some(log) if self.log_page(log, position) == DieLpn(i as u32) => {
                    valid[log.index()] += 1
                }
                Some(log) => {
                    return Err(format!(
                        "log {} does not know page {i} at {position}",
                        log.0
                    ));
                }
                None if block == self.data(l) && position == o => {}
                None => {
                    return Err(format!(
                        "live page {i} lies in block {}, page {position}",
                        block.0
                    ));
                }
            }
        }
        for (i, log) in self.logs.iter().enumerate() {
            if log.pbn.is_some() && log.valid != valid[i] {
                return Err(format!(
                    "log {i} counts {} valid pages of {}",
                    log.valid, valid[i]
                ));
            }
        }
        let data = self.data.iter().filter(|b| b.is_some()).count() as u32;
        let free: u32 = self.pools.iter().map(Pool::len).sum();
        let usable = self.pools.len() as u32 * geometry.blocks_per_die
            - self.maps.len() as u32 * self.map_blocks_per_die();
        if data + free + self.logs_in_use + self.lent != usable {
            return Err(format!(
                "{data} data + {} log + {free} free + {} lent blocks are not {usable}",
                self.logs_in_use, self.lent
            ));
        }
        if self.logs_in_use > log_budget {
            return Err(format!(
                "{} log blocks, budget {log_budget}",
                self.logs_in_use
            ));
        }
        let blank = |b: Pbn| flash.ledger().write_pointer(b) == 0;
        if !self.pools.iter().flat_map(Pool::iter).all(blank) {
            return Err("a block in the free list is not erased".into());
        }
        debug_assert!(pages > 0);
        Ok(live)
    }

    fn map_blocks_per_die(&self) -> u32 {
        self.maps.first().map_or(0, MapArea::blocks)
    }
}
