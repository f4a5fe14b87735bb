//! What `floatgate fleet --json` prints; its rows, one a volume and scheme, are in the file of `--out`
//! (docs/fleets.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configuration, SCHEMA, TraceCounts};

/// What `floatgate fleet --json` prints, and what its report shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetDocument {
    /// Version of the document's shape.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// The program and its version.
    pub program: String,
    /// The trace, all files together.
    pub trace: FleetTrace,
    /// The devices in words.
    pub device: String,
    /// Settings that all volumes share.
    pub configuration: Configuration,
    /// Volumes of the trace, and files that gave none.
    pub volumes: u64,
    /// Remarks on the results, in words.
    pub notes: Vec<String>,
    /// One summary a scheme.
    pub results: Vec<SchemeSummary>,
}

/// A trace of many volumes as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetTrace {
    /// Its first file, or what its files are called together.
    pub name: String,
    /// What the readers of all files met.
    pub counts: TraceCounts,
}

/// One scheme on all volumes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SchemeSummary {
    /// Name of the scheme.
    pub scheme: String,
    /// What the scheme is called.
    pub title: String,
    /// Write amplification over the volumes that were written to.
    pub write_amplification: Spread,
    /// 99th percentile of the response times of reads and writes over the volumes, us.
    pub response_p99_us: Spread,
    /// Volumes that were written to and of which nothing had to be collected.
    pub volumes_without_collection: u64,
    /// Volumes whose device did not keep up with the arrivals.
    pub volumes_behind: u64,
    /// Volumes that could not be replayed.
    pub failures: Vec<VolumeFailure>,
}

/// How a value spreads over the volumes that have it; `null` where none has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Volumes that have the value.
    pub volumes: u64,
    /// Smallest.
    pub min: Option<f64>,
    /// 5th percentile by nearest rank.
    pub p5: Option<f64>,
    /// 25th percentile.
    pub p25: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Mean, every volume alike.
    pub mean: Option<f64>,
    /// Mean by the pages that the host wrote to each volume.
    pub mean_weighted_by_host_writes: Option<f64>,
    /// The distribution as steps: a value, and the share of the volumes that have at most it. At most about 400
    /// steps.
    pub cumulative: Vec<(f64, f64)>,
}

/// A volume that could not be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeFailure {
    /// Its name.
    pub volume: String,
    /// Why.
    pub error: String,
}
