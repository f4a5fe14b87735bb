//! What `floatgate bench --json` prints. Times are processor times of the one thread that works.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SCHEMA;

/// What `floatgate bench --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchDocument {
    /// Version of the document's shape.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// The program and its version.
    pub program: String,
    /// The device.
    pub device: BenchDevice,
    /// Of one measurement, s.
    pub measuring_s: f64,
    /// Longest warm-up before it, s.
    pub warm_up_s: f64,
    /// How memory was measured, in words.
    pub memory_measured_as: String,
    /// A loop that does only the memory work of page mapping.
    pub bare_loop: BareSpeed,
    /// One result a scheme.
    pub results: Vec<BenchOutcome>,
}

/// The device of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BenchDevice {
    /// Pages of the flash.
    pub flash_pages: u64,
    /// Pages that the host sees.
    pub logical_pages: u64,
    /// Data bytes of a page.
    pub page_bytes: u64,
    /// Pages a block.
    pub pages_per_block: u32,
    /// Dies of all channels.
    pub dies: u32,
    /// Buses.
    pub channels: u32,
}

/// The bare loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BareSpeed {
    /// Random writes, median of the rounds, 1/s.
    pub random_writes_per_s: f64,
    /// Its tables, bytes for one page of the flash.
    pub bytes_per_flash_page: f64,
}

/// What came out for a scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BenchOutcome {
    /// It was measured.
    Measured(SchemeSpeed),
    /// It was not.
    Failed(BenchFailure),
}

/// How fast a scheme is simulated, and how much memory that takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SchemeSpeed {
    /// Name of the scheme.
    pub scheme: String,
    /// Random writes before the measurement, in times of the logical pages.
    pub aged_device_writes: f64,
    /// Whether these were enough for a steady state.
    pub steady: bool,
    /// Random writes of one page.
    pub random_writes: Speed,
    /// Random writes a second to those of the bare loop in turn with them, median of the rounds.
    pub random_writes_to_bare: f64,
    /// Pages programmed for one that the host writes, during the random writes.
    pub write_amplification: f64,
    /// Random requests of one page, 70 % of them reads.
    pub mixed: Speed,
    /// Sequential writes of 128 KiB.
    pub sequential_writes: Speed,
    /// All tables of simulator and scheme, bytes.
    pub state_bytes: u64,
    /// The same, bytes for one page of the flash.
    pub bytes_per_flash_page: f64,
}

/// Work done in some time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Speed {
    /// Pages that the host wrote and read.
    pub host_pages: u64,
    /// Time, s.
    pub seconds: f64,
    /// Pages that the host wrote and read, 1/s.
    pub host_pages_per_s: f64,
    /// Reads, programs, OOB reads and erases of the flash.
    pub flash_operations: u64,
    /// The same, 1/s.
    pub flash_operations_per_s: f64,
}

/// A scheme that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BenchFailure {
    /// Name of the scheme.
    pub scheme: String,
    /// Why.
    pub failed: String,
}
