//! What a hybrid writes into its map area: the data block of every logical block, then the block of every place in the
//! log table.

use super::log_table::LogBlock;
use super::{Hybrid, Log, Watch};
use floatgate_core::address::{Lbn, Pbn};
use floatgate_core::flash::Flash;

/// Bit of a log slot's map entry: the log block is a sequential one. No block has so high a number, because a page has
/// one of 32 bits and the bit is set only where a block has two pages.
pub(super) const SEQUENTIAL_BIT: u32 = 1 << 31;

impl<W: Watch> Hybrid<W> {
    /// Writes the map pages of the entries that just changed: a logical block's, a log slot's, or both.
    pub(super) fn map_event<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        lbn: Option<Lbn>,
        log: Option<Log>,
    ) -> Result<(), F::Error> {
        if self.maps.is_empty() {
            return Ok(());
        }
        let per_die = self.space.geometry.logical_blocks_per_die();
        let slots = self.plan.log_slots;
        let data = lbn.map(|lbn| lbn.0 - die * per_die);
        let slot = log.map(|log| per_die + log.0 - die * slots);
        let (first, second) = match (data, slot) {
            (Some(a), b) => (a, b),
            (None, Some(b)) => (b, None),
            (None, None) => return Ok(()),
        };
        let switched = if lbn.is_some() { log } else { None };
        let mut maps = std::mem::take(&mut self.maps);
        let written = maps[die as usize].update(flash, first, second, |entry| {
            self.map_entry(die, entry, switched)
        });
        self.maps = maps;
        written
    }

    /// The content of an entry of a die's map. `switched`: the log block that is becoming a data block.
    pub(super) fn map_entry(&self, die: u32, entry: u32, switched: Option<Log>) -> u32 {
        let per_die = self.space.geometry.logical_blocks_per_die();
        if entry < per_die {
            return self.data[(die * per_die + entry) as usize].0;
        }
        let at = Log(die * self.plan.log_slots + entry - per_die);
        // A log block that just became a data block leaves its slot in this same event.
        if entry >= per_die + self.plan.log_slots || switched == Some(at) {
            return Pbn::NONE.0;
        }
        let LogBlock {
            pbn, is_sequential, ..
        } = self.logs[at];
        if W::MERGES_ALONE_WRITE_DATA && is_sequential && self.pages_per_block() > 1 {
            return pbn.0 | SEQUENTIAL_BIT;
        }
        pbn.0
    }
}
