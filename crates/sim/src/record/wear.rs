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
    /// Host data, in bytes, until the most erased block reaches the part's endurance at this wear; `null` if that is
    /// not known or nothing was erased.
    pub lifetime_bytes: Option<f64>,
    /// What wear levelling did; left out where it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leveling: Option<Swaps>,
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
