//! What held requests up while most of them waited.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::series::Series;
use super::sources::Sources;

/// Busy for that share of the time, a die or a channel is what the others wait for.
const BUSY: f64 = 0.8;

/// Part of the work beside the host's own from which on it counts.
const FAIR_PART: f64 = 0.1;

/// Where the time of waiting requests went, in the samples of the series at whose begin and end at least half as many were
/// waiting as ever.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldUp {
    /// What they waited for.
    pub by: By,
    /// Share of that time in which the busiest die was busy.
    pub die_utilisation: f64,
    /// Share of that time in which the busiest channel was busy.
    pub channel_utilisation: f64,
    /// The most requests that had arrived and were not complete.
    pub backlog_max: u64,
    /// Seconds of the run that were looked at.
    pub seconds: f64,
}

/// What requests wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The dies: they are busy nearly all of the time.
    Dies,
    /// One die, or a few, while others have time.
    OneDie,
    /// A channel.
    Channel,
    /// The phase-change memory, one entry after the other: dies and channels have time.
    Pcm,
    /// Work on the map that is done one step after the other: dies and channels have time.
    Map,
    /// Merges or collections, each of which waits for the one before or for several dies: dies and channels have time.
    Merges,
    /// Writes in the order that the scheme gives them: dies and channels have time.
    Order,
}

impl HeldUp {
    /// None if requests hardly waited for each other, or only in bursts that begin and end between two samples.
    pub(super) fn of(series: &Series, from: &Sources<'_>) -> Option<Self> {
        let backlog_max = *series.backlog.iter().max()?;
        if backlog_max < 2 {
            return None;
        }
        let is_crowded = |n: u64| 2 * n >= backlog_max;
        let begins = std::iter::once((0, 0.0));
        let ends = || {
            series
                .backlog
                .iter()
                .copied()
                .zip(series.time_s.iter().copied())
        };
        let weigh = |((before, begin), (after, end)): ((u64, f64), (u64, f64))| {
            if is_crowded(before) && is_crowded(after) {
                end - begin
            } else {
                0.0
            }
        };
        let weights: Vec<f64> = begins.chain(ends()).zip(ends()).map(weigh).collect();
        let seconds: f64 = weights.iter().sum();
        if seconds <= 0.0 {
            return None;
        }
        let mean = |shares: &[Option<f64>]| {
            let weighted = shares.iter().zip(&weights);
            weighted
                .map(|(share, weight)| share.unwrap_or(0.0) * weight)
                .sum::<f64>()
                / seconds
        };
        let die_utilisation = mean(&series.die_utilisation_max);
        let channel_utilisation = mean(&series.channel_utilisation_max);
        let by = if die_utilisation >= BUSY {
            let all = mean(&series.die_utilisation);
            if all >= die_utilisation / 2.0 {
                By::Dies
            } else {
                By::OneDie
            }
        } else if channel_utilisation >= BUSY {
            By::Channel
        } else {
            By::chain(from)
        };
        Some(Self {
            by,
            die_utilisation,
            channel_utilisation,
            backlog_max,
            seconds,
        })
    }
}

impl By {
    /// What the scheme does one step after the other, by the times of cells. Work on a map is one chain for the whole
    /// device, merges and collections are one a die or a few: so a map that takes a fair part of all this work is what
    /// the others wait for.
    fn chain(from: &Sources<'_>) -> Self {
        let (c, device) = (from.flash, &from.config.device);
        let part = &device.part;
        let cells_ns = |reads: u64, programs: u64, erases: u64| {
            let ns = [
                (reads, part.t_r_ns),
                (programs, part.program_ns_of_page()),
                (erases, part.t_bers_ns),
            ];
            ns.iter().map(|&(n, ns)| n as f64 * ns as f64).sum::<f64>()
        };
        let pcm_ns = c.pcm_reads as f64 * device.pcm_read_ns as f64
            + c.pcm_writes as f64 * device.pcm_write_ns as f64;
        let map_ns = cells_ns(c.reads.map, c.programs.map, c.erases.map);
        let gc_ns = cells_ns(c.reads.gc, c.programs.gc, c.erases.gc);
        let is_fair = |ns: f64| ns > FAIR_PART * (pcm_ns + map_ns + gc_ns);
        match () {
            () if is_fair(pcm_ns) => Self::Pcm,
            () if is_fair(map_ns) => Self::Map,
            () if gc_ns > 0.0 => Self::Merges,
            () => Self::Order,
        }
    }

    /// In words, for a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dies => "dies",
            Self::OneDie => "one die",
            Self::Channel => "channel",
            Self::Pcm => "PCM",
            Self::Map => "map steps",
            Self::Merges => "merge steps",
            Self::Order => "order",
        }
    }
}
