//! Memory between host and scheme: what it was, and what it did (docs/buffer.md).

use floatgate_core::buffer::Eviction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::EvictionName;
use super::ratio;
use super::sources::Sources;
use crate::config;

/// Settings of the memory between host and scheme, by the keys of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferSettings {
    /// Pages that the write buffer holds; 0: there is none.
    pub write_pages: u32,
    /// What is written out first.
    #[serde(with = "EvictionName")]
    pub eviction: Eviction,
    /// Pages of a block of `bplru`, and of the longest write to the scheme; 0: a logical block of every die.
    pub block_pages: u32,
    /// Whether a block that leaves under `bplru` was filled up with its other pages, read from the flash.
    #[serde(default)]
    pub padding: bool,
    /// Pages that are kept free.
    pub reserve_pages: u32,
    /// Time without a request in work after which all is written out, us; 0: never.
    pub idle_us: f64,
    /// Whether what was held after the last request was written out.
    pub write_out_at_end: bool,
    /// Whether the memory survives a power cut, so that flushes write nothing out.
    pub protected: bool,
    /// Pages that the read cache holds; 0: there is none.
    pub read_pages: u32,
    /// Pages that are read ahead behind a sequential stream.
    pub prefetch_pages: u32,
    /// Time of a page into the memory or out of it.
    pub dram_ns_per_page: u64,
}

impl BufferSettings {
    /// Of a device; none if it has no memory there.
    pub fn of(device: &config::Device) -> Option<Self> {
        let buffer = &device.buffer;
        buffer.is_on().then(|| Self {
            write_pages: buffer.write_pages,
            eviction: buffer.eviction,
            block_pages: buffer.block_pages,
            padding: buffer.padding,
            reserve_pages: buffer.reserve_pages,
            idle_us: buffer.idle_ns as f64 / 1000.0,
            write_out_at_end: buffer.write_out_at_end,
            protected: buffer.protected,
            read_pages: buffer.read_pages,
            prefetch_pages: buffer.prefetch_pages,
            dram_ns_per_page: buffer.dram_ns_per_page,
        })
    }
}

/// What the memory between host and scheme did, in pages unless the name says otherwise. Pages written by the host are
/// those absorbed, trimmed, written out and held at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Buffer {
    /// Written again while they were held: each saved a program.
    pub absorbed: u64,
    /// Trimmed while they were held.
    pub trimmed: u64,
    /// Written out to the scheme.
    pub written_out: u64,
    /// Not held, but written to the scheme with pages of their block that were written out, to fill it up.
    #[serde(default)]
    pub padded_pages: u64,
    /// Of `padded_pages`: found in the read cache. The others were read from the flash.
    #[serde(default)]
    pub padded_cached: u64,
    /// Writes in which they were handed to the scheme, each of pages that follow each other.
    pub runs: u64,
    /// Held at the end: not written out, so not in the counters of the flash.
    pub held_at_end: u64,
    /// Read from the write buffer.
    pub read_held: u64,
    /// Read from the read cache.
    pub read_cached: u64,
    /// Read for the host from neither, pages without content among them.
    pub read_missed: u64,
    /// Read ahead.
    pub read_ahead: u64,
    /// Of `read_ahead`: read by the host afterwards.
    pub read_ahead_used: u64,
    /// Of `read_ahead`: dropped before anybody read them. The rest was in the cache at the end.
    pub read_ahead_wasted: u64,
    /// Share of the pages written by the host that were absorbed.
    pub write_hits: Option<f64>,
    /// Share of the pages read by the host that were in memory.
    pub read_hits: Option<f64>,
    /// Mean length of the writes to the scheme.
    pub run_pages: Option<f64>,
}

impl Buffer {
    pub(super) fn of(from: &Sources<'_>) -> Option<Self> {
        let c = from.buffer?;
        let found = (c.read_held + c.read_cached) as f64;
        Some(Self {
            absorbed: c.absorbed,
            trimmed: c.trimmed,
            written_out: c.written_out,
            padded_pages: c.padded,
            padded_cached: c.padded_cached,
            runs: c.runs,
            held_at_end: c.held,
            read_held: c.read_held,
            read_cached: c.read_cached,
            read_missed: c.read_missed,
            read_ahead: c.read_ahead,
            read_ahead_used: c.read_ahead_used,
            read_ahead_wasted: c.read_ahead_wasted,
            write_hits: ratio(c.absorbed as f64, from.host.page_writes as f64),
            read_hits: ratio(found, from.host.page_reads as f64),
            run_pages: ratio((c.written_out + c.padded) as f64, c.runs as f64),
        })
    }
}
