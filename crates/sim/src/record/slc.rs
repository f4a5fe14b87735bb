//! The cache of flash blocks with one bit a cell: what it was, and what it did (docs/slc.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ratio;
use super::sources::Sources;
use crate::config::{Device, WhenFull};

/// Settings of the cache with one bit a cell, by the keys of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlcSettings {
    /// Blocks of each die that are always used so.
    pub blocks: u32,
    /// Whether room for logical pages without content was used so too.
    pub dynamic: bool,
    /// Bits of a cell that is used in full: a block has so much fewer pages with one.
    pub bits: u32,
    /// Cell time of a program, us.
    pub t_prog_us: f64,
    /// Cell time of a read, us.
    pub t_r_us: f64,
    /// Time without a request in work after which blocks are folded, us; 0: never.
    pub fold_after_us: f64,
    /// What is done with writes when the cache is full.
    pub when_full: WhenFull,
    /// Erased blocks of the device below which `fold` folds.
    pub low_blocks: u32,
}

impl SlcSettings {
    /// Of a device; none if it has no such cache.
    pub fn of(device: &Device) -> Option<Self> {
        let slc = &device.slc;
        let us = |ns: u64| ns as f64 / 1000.0;
        slc.is_on().then(|| Self {
            blocks: slc.blocks,
            dynamic: slc.dynamic,
            bits: slc.bits,
            t_prog_us: us(slc.t_prog_ns),
            t_r_us: us(slc.t_r_ns),
            fold_after_us: us(slc.fold_after_ns),
            when_full: slc.when_full,
            low_blocks: slc.low_blocks,
        })
    }
}

/// What the cache with one bit a cell did, in pages unless the name says otherwise. Pages written by the host are those taken
/// in and those written direct; pages taken in are those absorbed, trimmed, folded and held at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slc {
    /// Programmed in the cache. The counters of the flash leave them out, write amplification has them.
    pub taken_in: u64,
    /// Written again while they were held: they were never folded.
    pub absorbed: u64,
    /// Trimmed while they were held.
    pub trimmed: u64,
    /// Moved to the scheme.
    pub folded: u64,
    /// Writes in which they were handed to the scheme, each of pages that follow each other.
    pub runs: u64,
    /// Written to the scheme past the cache.
    pub direct: u64,
    /// Read from the cache, old content of partly written pages among them.
    pub reads: u64,
    /// Blocks of the cache erased. The counters of the flash and the wear leave them out.
    pub erases: u64,
    /// What it could hold at the start.
    pub capacity_at_start: u64,
    /// What it could hold at the end.
    pub capacity_at_end: u64,
    /// Held at the end: not moved to the scheme.
    pub held_at_end: u64,
    /// Held after a request, the mean of all requests.
    pub held_mean: Option<f64>,
    /// Most that were held after a request.
    pub held_peak: u64,
}

impl Slc {
    pub(super) fn of(from: &Sources<'_>) -> Option<Self> {
        let c = from.slc?;
        Some(Self {
            taken_in: c.taken_in,
            absorbed: c.absorbed,
            trimmed: c.trimmed,
            folded: c.folded,
            runs: c.runs,
            direct: c.direct,
            reads: c.reads,
            erases: c.erases,
            capacity_at_start: c.capacity[0],
            capacity_at_end: c.capacity[1],
            held_at_end: c.held,
            held_mean: ratio(c.held_sum as f64, c.requests as f64),
            held_peak: c.held_peak,
        })
    }
}
