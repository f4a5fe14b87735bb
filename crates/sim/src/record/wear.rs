//! Erases of the blocks (docs/spec/metrics.md section 6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ratio;
use super::sources::Sources;

/// Erases of a block since the start, over all blocks of all dies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wear {
    /// Mean, erases.
    pub mean: f64,
    /// Population standard deviation, erases.
    pub sd: f64,
    /// Fewest, erases.
    pub min: u32,
    /// Most, erases.
    pub max: u32,
    /// `max - min`.
    pub spread: u32,
    /// Fewest erases of a class, and the blocks in it: at most 64 classes of equal width.
    pub histogram: Vec<(u32, u32)>,
    /// The blocks in their places.
    #[serde(default)]
    pub map: WearMap,
    /// Host data, in bytes, until the most erased block reaches the part's endurance at this wear; `null` if that is
    /// not known or nothing was erased.
    pub lifetime_bytes: Option<f64>,
    /// What wear levelling did; left out where it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leveling: Option<Swaps>,
}

/// Erases by die and block. Where there are more than about 4096 blocks, neighbours share a cell, and the most erased
/// block stands for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WearMap {
    /// Dies that share a row.
    pub dies_per_row: u32,
    /// Blocks of a die that share a cell.
    pub blocks_per_cell: u32,
    /// The rows: the most erases of any block in each cell.
    pub rows: Vec<Vec<u32>>,
}

/// Most cells of a map, and most of its rows.
const CELLS_MAX: u32 = 4096;
const ROWS_MAX: u32 = 64;

impl WearMap {
    fn of(counts: &[u32], dies: u32) -> Self {
        let blocks = counts.len() / dies.max(1) as usize;
        let dies_per_row = dies.div_ceil(ROWS_MAX).max(1);
        let rows = dies.div_ceil(dies_per_row).max(1);
        let blocks_per_cell = blocks.div_ceil((CELLS_MAX / rows) as usize).max(1);
        let mut map = Self {
            dies_per_row,
            blocks_per_cell: blocks_per_cell as u32,
            rows: vec![vec![0; blocks.div_ceil(blocks_per_cell)]; rows as usize],
        };
        for (i, &erases) in counts.iter().enumerate() {
            let (die, block) = (i / blocks.max(1), i % blocks.max(1));
            let cell = &mut map.rows[die / dies_per_row as usize][block / blocks_per_cell];
            *cell = erases.max(*cell);
        }
        map
    }
}

/// What wear levelling did. Its copies and erases are in the counters of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swaps {
    /// Blocks with cold content that changed places with worn ones.
    pub swaps: u64,
    /// Pages copied for that.
    pub moved_pages: u64,
}

impl Wear {
    pub(super) fn of(from: &Sources<'_>) -> Self {
        let counts = &from.erase_counts;
        let n = counts.len() as f64;
        let mean = counts.iter().map(|&e| f64::from(e)).sum::<f64>() / n;
        let square = counts
            .iter()
            .map(|&e| f64::from(e) * f64::from(e))
            .sum::<f64>()
            / n;
        let min = counts.iter().min().copied().unwrap_or(0);
        let max = counts.iter().max().copied().unwrap_or(0);
        let part = &from.config.device.part;
        let host_bytes = from.host.page_writes as f64 * f64::from(part.page_bytes);
        let until = |endurance| ratio(host_bytes * f64::from(endurance), f64::from(max));
        let swaps = |(swaps, moved_pages)| Swaps { swaps, moved_pages };
        Self {
            mean,
            sd: (square - mean * mean).max(0.0).sqrt(),
            min,
            max,
            spread: max - min,
            histogram: histogram(counts, max),
            map: WearMap::of(counts, from.config.device.dies),
            lifetime_bytes: part.endurance.and_then(until),
            leveling: from.levelling.map(swaps),
        }
    }
}

fn histogram(counts: &[u32], max: u32) -> Vec<(u32, u32)> {
    let width = max / 64 + 1;
    let mut classes = vec![0; (max / width + 1) as usize];
    counts
        .iter()
        .for_each(|&e| classes[(e / width) as usize] += 1);
    classes
        .into_iter()
        .enumerate()
        .map(|(i, n)| (i as u32 * width, n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_many_blocks_keeps_the_most_erased_one() {
        let small = WearMap::of(&[1, 2, 3, 4, 5, 6], 2);
        assert_eq!(small.rows, [[1, 2, 3], [4, 5, 6]]);
        let mut counts = vec![1; 128 * 1000];
        counts[77 * 1000 + 999] = 9;
        let large = WearMap::of(&counts, 128);
        assert_eq!((large.dies_per_row, large.blocks_per_cell), (2, 16));
        assert_eq!((large.rows.len(), large.rows[0].len()), (64, 63));
        assert_eq!(large.rows[38].last(), Some(&9));
        assert_eq!(large.rows.concat().iter().filter(|&&n| n == 9).count(), 1);
    }
}
