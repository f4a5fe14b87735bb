//! Static wear levelling: cold content moves to worn blocks.

use floatgate_core::Pbn;
use floatgate_core::wear::should_move;

use super::{Pick, Spares};
use crate::nand::{Nand, NandError};

impl<N: Nand> Spares<N> {
    /// Hot/cold swaps of a die, until no block with content lags behind by more than the gap.
    pub(super) fn level(&mut self, die: u32) -> Result<(), NandError> {
        while let Some(cold) = self.lagging(die) {
            let (old, pages) = self.move_block(cold, Pick::Oldest, None, &[])?;
            self.stats.wear_swaps += 1;
            self.stats.wear_moved_pages += u64::from(pages);
            self.reclaim(old)?;
        }
        Ok(())
    }

    /// The virtual block whose content should move, if any.
    fn lagging(&self, die: u32) -> Option<Pbn> {
        let nand = &self.nand;
        let first = self.geometry.pbn(die, 0).0;
        let used = (first..first + self.geometry.blocks_per_die).map(Pbn);
        let cold = used
            .filter(|block| self.generation[block.index()] != 0)
            // Among equals the one that has rested longest: it is the coldest.
            .min_by_key(|block| {
                let erases = nand.erase_count(self.place[block.index()]);
                (erases, self.generation[block.index()])
            })?;
        let least = nand.erase_count(self.place[cold.index()]);
        let free = &self.dies[die as usize].free;
        let oldest = free.iter().map(|&at| nand.erase_count(at)).max()?;
        let rested = self.next_generation - self.generation[cold.index()];
        let (gap, blocks) = (self.options.wear_gap, nand.geometry().blocks());
        should_move(least, oldest, gap, rested, blocks).then_some(cold)
    }
}
