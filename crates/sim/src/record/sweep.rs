//! What `floatgate sweep --json` prints: one cell for every combination of the varied settings under every scheme. The
//! fields of [`SweepDevice`] and [`SweepFigures`] are the columns of the file of `--out` (docs/sweeps.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use floatgate_core::report::Memory;

use super::{Configuration, Outcome, Own, Record, SCHEMA, Trace};

/// What `floatgate sweep --json` prints, and what its report shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDocument {
    /// Version of the shape of the document and of all records in it.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// The program and its version.
    pub program: String,
    /// The traces, in the order of their first cells.
    pub traces: Vec<Trace>,
    /// The devices in words.
    pub device: String,
    /// Settings of the first cell that has a device; `varied` says which of them differ in others. Left out if
    /// there is no such cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Configuration>,
    /// Remarks on the results, in words.
    pub notes: Vec<String>,
    /// The varied keys, in the order in which they were given.
    pub varied: Vec<VariedKey>,
    /// One summary a scheme.
    pub results: Vec<SweptScheme>,
    /// All cells: the last of the varied keys changes first, and under it the scheme.
    pub cells: Vec<SweepCell>,
}

/// A varied key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariedKey {
    /// The key as it was written, as `device.log_percent`.
    pub key: String,
    /// Its values, in the order in which they were given.
    pub values: Vec<VariedValue>,
}

/// A value of a varied key, in the unit that the key's name says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum VariedValue {
    /// A truth value.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Number(f64),
    /// A text; a list as it would stand in a configuration.
    Text(String),
}

impl std::fmt::Display for VariedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Whole(n) => write!(f, "{n}"),
            Self::Number(x) => write!(f, "{x}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A scheme over all its cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptScheme {
    /// Name of the scheme.
    pub scheme: String,
    /// What the scheme is called.
    pub title: String,
    /// Cells that ran.
    pub ran: u64,
    /// Cells that gave no record.
    pub failed: u64,
    /// Write amplification over the cells that ran; `null` if none of them wrote.
    pub write_amplification: Option<Extremes>,
    /// Mean response time of reads and writes over the cells that ran, us; `null` if there were none.
    pub response_mean_us: Option<Extremes>,
}

/// Between which values something lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extremes {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Extremes {
    /// Of some values; none of no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let wider = |all: Option<Self>, x: f64| {
            let Self { min, max } = all.unwrap_or(Self { min: x, max: x });
            Some(Self {
                min: min.min(x),
                max: max.max(x),
            })
        };
        values.into_iter().fold(None, wider)
    }
}

/// One combination of the varied settings under one scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCell {
    /// The value of every varied key.
    pub varied: Own<VariedValue>,
    /// The trace.
    pub trace: String,
    /// Name of the scheme.
    pub scheme: String,
    /// The device as asked for and as it was; `null` if the settings do not fit together.
    pub device: Option<SweepDevice>,
    /// The main figures; `null` if there is no record.
    pub figures: Option<SweepFigures>,
    /// The record, or why there is none. Of a cell that ran it is left out in the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Outcome>,
}

/// The device of a cell: what was asked for, and what it got.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDevice {
    /// Capacity asked for, bytes; `null` if it was left to the trace.
    pub asked_bytes: Option<u64>,
    /// Spare blocks asked for, % of the data blocks; `null` if the blocks of a die were given.
    pub asked_spare_percent: Option<f64>,
    /// Log blocks asked for, % of the data blocks; `null` if the scheme has none, or their number was given.
    pub asked_log_percent: Option<f64>,
    /// Capacity, bytes.
    pub logical_bytes: u64,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Pages a block.
    pub pages_per_block: u32,
    /// Dies of all channels.
    pub dies: u32,
    /// Buses.
    pub channels: u32,
    /// Data and spare blocks a die.
    pub blocks_per_die: u32,
    /// Blocks a die that the logical pages fill.
    pub data_blocks_per_die: u64,
    /// Spare blocks, % of the data blocks.
    pub spare_percent: f64,
    /// Log blocks of the whole device; `null` if the scheme has none.
    pub log_blocks: Option<u64>,
    /// Write amplification by the closed formula (docs/spec/analytic.md) if single pages were written uniformly at
    /// random on this device, collected greedily, with one append point; `null` if the scheme puts no pages apart.
    pub uniform_write_amplification: Option<f64>,
}

/// The main figures of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFigures {
    /// Mean response time of reads and writes, us.
    pub response_mean_us: Option<f64>,
    /// Median of the same, us.
    pub response_p50_us: Option<f64>,
    /// 99th percentile of the same, us.
    pub response_p99_us: Option<f64>,
    /// 99.9th percentile of the same, us.
    pub response_p99_9_us: Option<f64>,
    /// Longest of the same, us.
    pub response_max_us: Option<f64>,
    /// Mean response time of reads, us.
    pub read_mean_us: Option<f64>,
    /// 99th percentile of reads, us.
    pub read_p99_us: Option<f64>,
    /// 99.9th percentile of reads, us.
    pub read_p99_9_us: Option<f64>,
    /// Longest read, us.
    pub read_max_us: Option<f64>,
    /// Mean response time of writes, us.
    pub write_mean_us: Option<f64>,
    /// 99th percentile of writes, us.
    pub write_p99_us: Option<f64>,
    /// 99.9th percentile of writes, us.
    pub write_p99_9_us: Option<f64>,
    /// Longest write, us.
    pub write_max_us: Option<f64>,
    /// Pages programmed for one that the host wrote.
    pub write_amplification: Option<f64>,
    /// Pages that the host wrote.
    pub host_page_writes: u64,
    /// Pages that the host read.
    pub host_page_reads: u64,
    /// Pages moved by merges and collections.
    pub copies: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Switch merges.
    pub merges_switch: u64,
    /// Partial merges.
    pub merges_partial: u64,
    /// Full merges.
    pub merges_full: u64,
    /// Log blocks without a valid page, erased.
    pub merges_dead: u64,
    /// Merges of the scheme's own kinds.
    pub merges_other: u64,
    /// Erases of a block, mean.
    pub block_erases_mean: f64,
    /// Erases of the block with the most.
    pub block_erases_max: u32,
    /// Mapping tables in the controller's memory, bytes.
    pub map_memory_bytes: f64,
    /// Mapping tables in phase-change memory, bytes.
    pub map_pcm_bytes: f64,
    /// Energy, uJ.
    pub energy_uj: f64,
    /// Reads and writes completed, requests/s.
    pub iops: Option<f64>,
    /// From the first arrival to the last completion, s.
    pub elapsed_s: f64,
    /// From the first arrival to the last, s.
    pub arrivals_s: f64,
    /// How late the device was if it did not keep up with the arrivals, s; else `null`.
    pub behind_s: Option<f64>,
    /// Steps of ageing that gave up before the device was settled.
    pub unsettled_steps: u64,
}

impl SweepFigures {
    /// Of a record whose requests arrived within `arrivals_s`, and whose device was late by `behind_s` if it did not
    /// keep up.
    pub fn of(record: &Record, arrivals_s: f64, behind_s: Option<f64>) -> Self {
        let response = &record.time.response;
        let (all, read, write) = (&response.all, &response.read, &response.write);
        let (counters, derived) = (&record.counters, &record.derived);
        let merges = &counters.merges;
        let in_memory = |places: &[Memory]| record.tables.bytes_in(places);
        let gave_up = record.ageing.iter().filter(|s| s.settled == Some(false));
        Self {
            response_mean_us: all.mean_us,
            response_p50_us: all.p50_us,
            response_p99_us: all.p99_us,
            response_p99_9_us: all.p99_9_us,
            response_max_us: all.max_us,
            read_mean_us: read.mean_us,
            read_p99_us: read.p99_us,
            read_p99_9_us: read.p99_9_us,
            read_max_us: read.max_us,
            write_mean_us: write.mean_us,
            write_p99_us: write.p99_us,
            write_p99_9_us: write.p99_9_us,
            write_max_us: write.max_us,
            write_amplification: derived.write_amplification,
            host_page_writes: counters.host.page_writes,
            host_page_reads: counters.host.page_reads,
            copies: derived.copies,
            erases: derived.erases,
            merges_switch: merges.switch,
            merges_partial: merges.partial,
            merges_full: merges.full,
            merges_dead: merges.dead,
            merges_other: merges.own.values().sum(),
            block_erases_mean: record.wear.mean,
            block_erases_max: record.wear.max,
            map_memory_bytes: in_memory(&[Memory::Sram, Memory::Dram]),
            map_pcm_bytes: in_memory(&[Memory::Pcm]),
            energy_uj: record.energy.total_uj,
            iops: record.time.iops,
            elapsed_s: record.time.elapsed_s,
            arrivals_s,
            behind_s,
            unsettled_steps: gave_up.count() as u64,
        }
    }
}
