//! Mapping pages among the data, for schemes that keep their map on flash.

use super::{Append, PageStore};
use floatgate_core::address::{Lpn, Pbn, Ppn};

/// Blocks with mapping pages among the data blocks, for schemes that keep their map on flash.
impl PageStore {
    /// Takes an erased block for mapping pages.
    pub(crate) fn open_map(&mut self, die: u32) -> Append {
        let append = self.open(die);
        self.victims
            .set_second(self.geometry.block_of(Ppn(append.next)));
        append
    }

    /// A mapping page was programmed at `to`, the last place of its block if `full`.
    pub fn map_programmed(&mut self, page: Lpn, to: Ppn, full: bool) {
        self.clock += 1;
        if full {
            self.victims.filled(self.geometry.block_of(to), self.clock);
        }
        self.page_at[to.index()] = page;
    }

    /// The copy of a mapping page at that place is out of date.
    pub fn map_dropped(&mut self, old: Ppn) {
        self.victims.lost(self.geometry.block_of(old), self.clock);
    }

    /// The map block of a die with the fewest valid pages, for which its last erased blocks are kept.
    ///
    /// # Panics
    /// If none has an invalid page: the reserve forbids it.
    pub fn map_victim(&self, die: u32) -> Pbn {
        self.victims
            .choose_second(die)
            .expect("the reserve leaves a map block with an invalid page")
    }

    /// Whether a block holds mapping pages.
    pub fn is_map(&self, block: Pbn) -> bool {
        self.has_map_blocks && self.victims.is_second(block)
    }

    /// Blocks of a die that hold mapping pages.
    pub fn map_blocks(&self, die: u32) -> u32 {
        self.victims.second_blocks(die)
    }

    /// Valid pages of a block that is full.
    pub fn valid(&self, block: Pbn) -> u32 {
        self.victims.valid(block)
    }

    /// The page, logical or mapping, that was programmed at a place.
    pub fn page_at(&self, at: Ppn) -> Lpn {
        self.page_at[at.index()]
    }

    /// A collected block has been erased.
    pub fn reclaimed(&mut self, block: Pbn) {
        self.victims.erased(block);
        let die = self.geometry.die_of(block);
        self.dies[die as usize].pool.give(block);
    }
}
