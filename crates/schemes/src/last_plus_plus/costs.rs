//! What bringing LAST++ back takes.

use super::config::Plan;
use super::{LastPlusPlus, LastPlusPlusOptions};
use crate::parts::hybrid;
use floatgate_core::described::RecoveryCost;
use floatgate_core::geometry::{Geometry, Space};

/// Bytes of a page of the snapshot, here, where no part is known: those of the paper's device.
const PAGE_BYTES: u32 = 4096;

/// Blocks that a die gives for a snapshot of that many pages.
pub fn snapshot_blocks(pages: u64, die: u64, geometry: &Geometry) -> u64 {
    let here = pages.saturating_sub(die).div_ceil(geometry.dies.into());
    here.div_ceil(geometry.pages_per_block.into())
}

/// The ways back: full scan, map blocks if there are any, snapshot.
pub fn recovery_costs(geometry: &Geometry, options: &LastPlusPlusOptions) -> Vec<RecoveryCost> {
    let plan = LastPlusPlus::plan(&Space::whole(geometry), options);
    let (plan, hybrid) = match plan {
        Ok((plan, hybrid)) => (Some(plan), Ok(hybrid)),
        Err(refusal) => (None, Err(refusal)),
    };
    let mut costs = hybrid::recovery_costs(geometry, hybrid);
    let Some(plan) = plan else { return costs };
    let mut snapshot = RecoveryCost::scan("snapshot", 0);
    if let Some(by_map) = costs.get_mut(1) {
        // Without what it counts for log blocks this is the block map alone.
        by_map.oob_reads -= 2 * on_all_dies(geometry, plan.log_blocks * geometry.pages_per_block);
        snapshot = by_map.clone();
        add_log_blocks(by_map, geometry, &plan, options.summary_pages);
    }
    add_snapshot(&mut snapshot, geometry, &plan, options.map.map_blocks > 0);
    costs.push(snapshot);
    costs
}

fn on_all_dies(geometry: &Geometry, n: u32) -> u64 {
    u64::from(geometry.dies) * u64::from(n)
}

/// The summary pages and the OOBs of all other log pages; then a page of a data block for every page found.
fn add_log_blocks(cost: &mut RecoveryCost, geometry: &Geometry, plan: &Plan, summary_pages: bool) {
    let pages = geometry.pages_per_block;
    let sequential = plan.sequential_segments * pages;
    let mut log_oobs = sequential + plan.random_blocks * pages;
    if summary_pages {
        log_oobs = sequential;
        cost.means = "map blocks, summary pages";
        cost.page_reads += on_all_dies(geometry, plan.random_blocks);
    }
    let found = sequential + plan.random_blocks * plan.host_pages_per_block;
    cost.oob_reads += on_all_dies(geometry, log_oobs + found);
}

/// The snapshot's pages, the first OOBs that find it and complete it, and its erase before the first write.
fn add_snapshot(cost: &mut RecoveryCost, geometry: &Geometry, plan: &Plan, has_map: bool) {
    let pages = plan.layout.pages(PAGE_BYTES);
    let blocks: u64 = (0..u64::from(geometry.dies))
        .map(|die| snapshot_blocks(pages, die, geometry))
        .sum();
    cost.means = "snapshot";
    cost.is_after_shutdown = true;
    cost.oob_reads += if has_map {
        on_all_dies(geometry, plan.log_blocks) + blocks
    } else {
        geometry.blocks().into()
    };
    cost.page_reads += pages;
    cost.erases += blocks;
}
