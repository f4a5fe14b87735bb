//! What bringing a hybrid back takes, as far as all hybrids have it in common.
//!
//! Erases and programs are those of the map areas. Blocks in which nothing counts any more are erased too; how many there
//! are depends on what was written last, and does not grow with the device.

use crate::ftl::RecoveryCost;
use crate::geometry::Geometry;

/// The map areas of a device, as costs see them.
#[derive(Clone, Copy, Debug)]
pub struct MapCost {
    dies: u64,
    pages_per_block: u64,
    /// Blocks of a die that are not map blocks.
    other_blocks: u64,
    /// Map blocks of a die.
    blocks: u64,
    /// Map pages of a die.
    pages: u64,
}

impl MapCost {
    /// For dies with `map_blocks` map blocks (0: none) and `log_slots` places for log blocks.
    pub fn new(
        geometry: &Geometry,
        map_blocks: u32,
        map_entries_per_page: u32,
        log_slots: u32,
    ) -> Self {
        let entries = u64::from(geometry.logical_blocks_per_die()) + u64::from(log_slots);
        let pages = entries.div_ceil(u64::from(map_entries_per_page.max(1)));
        Self {
            dies: geometry.dies.into(),
            pages_per_block: geometry.pages_per_block.into(),
            other_blocks: geometry.blocks_per_die.saturating_sub(map_blocks).into(),
            blocks: map_blocks.into(),
            pages: if map_blocks > 0 { pages } else { 0 },
        }
    }

    /// Whether there is a map on flash.
    pub fn has_map(&self) -> bool {
        self.blocks > 0
    }

    /// The maps are made anew: a page that makes the old one void, the map pages, and the erases of the area.
    fn restart(&self, means: &'static str, oob_reads: u64) -> RecoveryCost {
        let void = u64::from(self.has_map());
        RecoveryCost {
            programs: self.dies * (self.pages + void),
            erases: self.dies * self.blocks,
            ..RecoveryCost::scan(means, oob_reads)
        }
    }

    /// The OOBs of all pages but those of the map areas, and of these the first ones: one may make the map void.
    pub fn full_scan(&self) -> RecoveryCost {
        let oobs = self.other_blocks * self.pages_per_block + self.blocks;
        self.restart("full scan", self.dies * oobs)
    }

    /// The block map is read. What the log blocks take comes on top.
    pub fn block_map(&self, means: &'static str) -> RecoveryCost {
        let oobs = self.dies * self.blocks * self.pages_per_block;
        RecoveryCost {
            page_reads: self.dies * self.pages,
            ..self.restart(means, oobs)
        }
    }
}

/// The costs of a hybrid that reads every page of its log blocks: the full scan, and with map blocks the OOBs of the
/// log blocks and of as many pages of data blocks.
pub fn hybrid_costs(
    geometry: &Geometry,
    map_blocks: u32,
    map_entries_per_page: u32,
    log_slots: u32,
) -> Vec<RecoveryCost> {
    let map = MapCost::new(geometry, map_blocks, map_entries_per_page, log_slots);
    let mut costs = vec![map.full_scan()];
    if map.has_map() {
        let mut cost = map.block_map("map blocks");
        cost.oob_reads += 2 * map.dies * u64::from(log_slots) * map.pages_per_block;
        costs.push(cost);
    }
    costs
}
