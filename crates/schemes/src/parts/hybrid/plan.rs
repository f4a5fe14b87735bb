//! The sizes a hybrid is made with.

use crate::parts::map_area::{MapBlockOptions, MapShape};
use floatgate_core::Refusal;
use floatgate_core::geometry::{Geometry, Space};

/// Blocks a merge needs beyond the budget.
const MERGE_RESERVE: u32 = 1;

/// Sizes a hybrid is made with, all for one die.
#[derive(Clone, Debug)]
pub struct HybridPlan {
    /// Log blocks that the budget allows.
    pub log_blocks: u32,
    /// Places in the log table, at least `log_blocks`.
    pub log_slots: u32,
    /// Ordered lists of log blocks the scheme keeps.
    pub lists: usize,
    /// The map area.
    pub map: MapBlockOptions,
}

impl HybridPlan {
    /// A place in the log table for each log block of the budget.
    pub fn new(log_blocks: u32, lists: usize, map: &MapBlockOptions) -> Self {
        Self {
            log_blocks,
            log_slots: log_blocks,
            lists,
            map: map.clone(),
        }
    }

    /// Whether the block map is kept in flash.
    pub(super) fn has_map(&self) -> bool {
        self.map.map_blocks > 0
    }

    /// Blocks of a die that are not map blocks.
    pub(super) fn usable_blocks(&self, geometry: &Geometry) -> u32 {
        geometry.blocks_per_die - self.map.map_blocks
    }

    /// The sizes of a die's map area.
    pub(super) fn map_shape(&self, geometry: &Geometry) -> MapShape {
        MapShape {
            blocks: self.map.map_blocks,
            entries_per_page: self.map.map_entries_per_page,
            entries: geometry.logical_blocks_per_die() + self.log_slots,
        }
    }

    /// Checks that everything fits the blocks of a die, and the map its blocks.
    ///
    /// # Errors
    /// A refusal that shows the sum, or names the option at fault.
    pub fn check(&self, space: &Space) -> Result<(), Refusal> {
        let geometry = &space.geometry;
        space.need_blocks(&[
            ("data blocks", geometry.logical_blocks_per_die()),
            ("log blocks", self.log_blocks),
            ("merge reserve", MERGE_RESERVE),
            ("map blocks", self.map.map_blocks),
        ])?;
        if self.has_map() {
            self.map_shape(geometry).check(geometry.pages_per_block)?;
        }
        Ok(())
    }
}
