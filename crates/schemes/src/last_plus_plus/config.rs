//! Options of LAST++, what follows from them, and the memory of its tables.

use crate::last_plus_plus::random::{RandomHash, RandomLogs};
use crate::last_plus_plus::segments::Segments;
use crate::last_plus_plus::snapshot::Layout;
use crate::parts::budgets::log_budget;
use crate::parts::hybrid::Hybrid;
use crate::parts::map_area::MapBlockOptions;
use floatgate_core::Refusal;
use floatgate_core::geometry::{Geometry, PAGES_PER_BLOCK_MAX, Space};
use floatgate_core::report::{Table, bits_for};
use floatgate_core::{choice, options};

choice! {
    /// What the scheme does with idle time.
    pub enum Background {
        /// Nothing.
        Off = "off",
        /// Merges cold blocks that are dead or have not changed for long.
        Conservative = "conservative",
        /// Merges cold blocks as long as there are any.
        Aggressive = "aggressive",
    }
}

options! {
    /// Options of `last++`.
    pub struct LastPlusPlusOptions {
        /// Log blocks of the whole device, a multiple of the dies; at least 3 a die.
        log_blocks: Option<u32> ["blocks"] = None, shown "required", samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Those of them that take sequential writes, a multiple of the dies; at least 1 a die, and 2 a die must be left.
        sequential_log_blocks: Option<u32> ["blocks"] = None, shown "a quarter, at least 1 a die", samples [1, 1, 2], scope Device;
        /// Longer requests are sequential.
        sequential_threshold: u32 ["pages"] = 16, samples [1, 2, 3, 0, 4, 5];
        /// Whether a request of exactly the threshold's length is sequential too.
        sequential_inclusive: bool [""] = false;
        /// Partitions of the random log blocks: 2, or 1 to treat every page as cold.
        partitions: u32 [""] = 2, samples [1, 2];
        /// Value of the update counter (1 to 3) from which a page is hot.
        hot_updates: u32 ["updates"] = 3, samples [1, 2, 3];
        /// Largest size of the hot partition; 0: by the share of hot pages among the valid ones.
        hot_maximum_percent: u32 ["% of a die's random log blocks"] = 0, samples [0, 50, 100];
        /// Buckets of the hash table of the random log blocks, and how a page finds its own.
        random_hash: RandomHash [""] = RandomHash::Mod;
        /// Logical blocks in one list of the merge-cost table; 0: as many as a block has pages.
        merge_cost_entries: u32 ["entries"] = 32, samples [0, 1, 2];
        /// Whether the last page of a random log block lists the others.
        summary_pages: bool [""] = true;
        /// What the scheme does with idle time.
        background: Background [""] = Background::Off;
        /// Idle time before a background merge starts.
        idle_timeout_ns: u64 ["ns"] = 100_000_000, samples [0, 1_000_000];
        /// Page read, as background merges estimate it.
        t_read_ns: u64 ["ns"] = 50_000;
        /// Page program, as background merges estimate it.
        t_program_ns: u64 ["ns"] = 900_000;
        /// Block erase, as background merges estimate it.
        t_erase_ns: u64 ["ns"] = 3_500_000;
        ..map: MapBlockOptions;
    }
}

impl LastPlusPlusOptions {
    /// Whether a request of that many pages is sequential.
    #[inline(always)]
    pub fn is_sequential(&self, request_pages: u32) -> bool {
        request_pages > self.sequential_threshold
            || self.sequential_inclusive && request_pages == self.sequential_threshold
    }

    /// Sequential and random log blocks of a die, if the options fit a device of that many dies.
    pub fn split(&self, dies: u32) -> (u32, u32) {
        let all = self.log_blocks.unwrap_or(0) / dies;
        let sequential = match self.sequential_log_blocks {
            Some(blocks) => blocks / dies,
            None => (all / 4).max(1),
        };
        (sequential, all.saturating_sub(sequential))
    }

    fn check(&self) -> Result<(), Refusal> {
        let ranges = [
            ("partitions", self.partitions, 1, 2),
            ("hot_updates", self.hot_updates, 1, 3),
            ("hot_maximum_percent", self.hot_maximum_percent, 0, 100),
        ];
        for (key, value, lowest, highest) in ranges {
            if !(lowest..=highest).contains(&value) {
                let text = format!("{key} = {value}: {lowest} to {highest}");
                return Err(Refusal::new(key, text));
            }
        }
        Ok(())
    }
}

/// Numbers that follow from geometry and options.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Log blocks of a die.
    pub log_blocks: u32,
    /// Segments that may have sequential log blocks (`nseg`).
    pub sequential_segments: u32,
    /// Random log blocks of a die (`r`).
    pub random_blocks: u32,
    /// Segments of the device (`NS`).
    pub segments: u32,
    /// Host pages that a random log block takes.
    pub host_pages_per_block: u32,
    /// Sizes of the two mapping tables.
    pub layout: Layout,
}

impl Plan {
    /// Checks the options.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    pub fn new(space: &Space, options: &LastPlusPlusOptions) -> Result<Self, Refusal> {
        options.check()?;
        let log_blocks = log_budget(space, options.log_blocks, 3)?;
        if let Some(blocks) = options.sequential_log_blocks {
            let key = "sequential_log_blocks";
            let share = space.share(key, blocks)?;
            if share < 1 || share.saturating_add(2) > log_blocks {
                let text = format!(
                    "{key} = {blocks}: at least 1 of each die's {log_blocks} log blocks is sequential, and at least 2 are random"
                );
                return Err(Refusal::new(key, text));
            }
        }
        let geometry = &space.geometry;
        let pages = geometry.pages_per_block;
        if options.summary_pages && pages < 2 {
            let text = "summary_pages = true: a block of 1 page has no room for a summary";
            return Err(Refusal::new("summary_pages", text.into()));
        }
        let (sequential_segments, random_blocks) = options.split(geometry.dies);
        Ok(Self {
            log_blocks,
            sequential_segments,
            random_blocks,
            segments: geometry.logical_blocks_per_die(),
            host_pages_per_block: pages - u32::from(options.summary_pages),
            layout: Layout::new(geometry, sequential_segments, random_blocks),
        })
    }
}

/// Elements of a merge-cost list that can ever be used: no block has pages of more logical blocks.
pub fn merge_cost_room(geometry: &Geometry, options: &LastPlusPlusOptions) -> u32 {
    match options.merge_cost_entries {
        0 => geometry.pages_per_block,
        entries => entries.min(geometry.pages_per_block),
    }
}

/// The paper's Table I for any device. Block addresses number all physical blocks, as the paper's do.
pub fn tables(geometry: &Geometry, options: &LastPlusPlusOptions) -> Vec<Table> {
    let (segments, random_blocks) = options.split(geometry.dies);
    let layout = Layout::new(geometry, segments, random_blocks);
    let blocks = u64::from(geometry.blocks());
    let random = u64::from(random_blocks) * u64::from(geometry.dies);
    let (page_bits, block_bits) = (bits_for(geometry.pages_per_block.into()), bits_for(blocks));
    let list = match options.merge_cost_entries {
        0 => u64::from(geometry.pages_per_block),
        entries => u64::from(entries.min(PAGES_PER_BLOCK_MAX)),
    };
    // Length of the list, overflow flag, latest update ID; then the list.
    let cost_bits = bits_for(list) + 1 + 16 + list * (block_bits + page_bits);
    let segments = u64::from(segments);
    vec![
        Table::sram(
            "sequential block map",
            segments,
            layout.sequential_entry_bits(),
        ),
        Table::sram(
            "random page map",
            layout.random_entries(),
            layout.random_entry_bits(),
        ),
        Table::sram("merge-cost table", random, cost_bits),
        Table::sram("block map", blocks, block_bits),
        Table::sram(
            "hash tables",
            2 * segments + options.random_hash.buckets(layout.random_entries()),
            64,
        ),
    ]
}

/// Memory of this program for a device.
pub fn ram_bytes(geometry: &Geometry, options: &LastPlusPlusOptions) -> u64 {
    let log_blocks = options.log_blocks.unwrap_or(0);
    let (segments, random_blocks) = options.split(geometry.dies);
    let random = u64::from(random_blocks) * u64::from(geometry.dies);
    let room = merge_cost_room(geometry, options);
    Hybrid::<()>::ram_bytes(geometry, log_blocks)
        + RandomLogs::ram_bytes(
            log_blocks.into(),
            random,
            room.into(),
            geometry.pages_per_block.into(),
            options.random_hash,
        )
        + Segments::ram_bytes(
            segments.into(),
            geometry.logical_blocks_per_die().into(),
            log_blocks.into(),
        )
}
