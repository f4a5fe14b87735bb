//! What bringing LAST++ back takes.

use super::LastPlusPlusOptions;
use super::snapshot::Layout;
use crate::ftl::RecoveryCost;
use crate::geometry::Geometry;
use crate::parts::hybrid::MapCost;

/// Bytes of a page of the snapshot, here, where no part is known: those of the paper's device.
const PAGE_BYTES: u32 = 4096;

/// Blocks that a die gives for a snapshot of that many pages.
pub fn snapshot_blocks(pages: u64, die: u64, geometry: &Geometry) -> u64 {
    let here = pages.saturating_sub(die).div_ceil(u64::from(geometry.dies));
    here.div_ceil(u64::from(geometry.pages_per_block))
}

/// The ways back: full scan, map blocks if there are any, snapshot.
pub fn recovery_costs(geometry: &Geometry, options: &LastPlusPlusOptions) -> Vec<RecoveryCost> {
    let (sequential, random) = options.split(geometry.dies);
    let layout = Layout::new(geometry, sequential, random);
    let [dies, blocks, pages] = [
        geometry.dies,
        geometry.blocks_per_die,
        geometry.pages_per_block,
    ]
    .map(u64::from);
    let [sequential, random] = [sequential, random].map(u64::from);
    let map = MapCost::new(
        geometry,
        options.map_blocks,
        options.map_entries_per_page,
        (sequential + random) as u32,
    );
    let mut costs = vec![map.full_scan()];
    if map.has_map() {
        let summaries = if options.summary_pages { random } else { 0 };
        let log_pages = (sequential + random) * pages;
        // Every page of a log block, but for what summaries tell; then the page of the data block for each.
        let oobs = log_pages - summaries * pages + log_pages - summaries;
        let mut cost = map.block_map(if options.summary_pages {
            "map blocks, summary pages"
        } else {
            "map blocks"
        });
        cost.oob_reads += dies * oobs;
        cost.page_reads += dies * summaries;
        costs.push(cost);
    }
    let snapshot = layout.pages(PAGE_BYTES);
    let kept: u64 = (0..dies)
        .map(|die| snapshot_blocks(snapshot, die, geometry))
        .sum();
    let mut cost = map.block_map("snapshot");
    cost.is_after_shutdown = true;
    cost.oob_reads += if map.has_map() {
        dies * (sequential + random) + kept
    } else {
        dies * blocks
    };
    cost.page_reads += snapshot;
    cost.erases += kept;
    costs.push(cost);
    costs
}
