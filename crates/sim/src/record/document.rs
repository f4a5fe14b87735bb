//! Records of one trace on one device, with what they are about: what `floatgate run` and `compare` print.

use floatgate_trace::Counts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configuration, Record, SCHEMA};

/// What `floatgate run --json` and `floatgate compare --json` print, and what their report shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// Version of the shape of the document and of all records in it.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// The program and its version.
    pub program: String,
    /// The trace.
    pub trace: Trace,
    /// The device in words.
    pub device: String,
    /// Settings of device, host and run that all results share.
    pub configuration: Configuration,
    /// Remarks on the results, in words.
    pub notes: Vec<String>,
    /// One result a scheme.
    pub results: Vec<Outcome>,
}

/// A trace as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Its file, or the name of a bundled trace.
    pub name: String,
    /// Its format, as `floatgate trace info` calls it.
    pub format: String,
    /// What the reader met.
    pub counts: TraceCounts,
}

/// What the reader of a trace met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCounts {
    /// Requests handed out.
    pub accepted: u64,
    /// Records that are no requests by design: headers, comments, blank lines, requests of 0 bytes.
    pub skipped: u64,
    /// Of `skipped`: reads, writes and trims of 0 bytes.
    pub empty: u64,
    /// Requests left out because another volume was asked for. Not part of `skipped`.
    pub filtered: u64,
    /// Of `accepted`: requests with a time before that of the one before them.
    pub backwards: u64,
    /// Of `accepted`: requests with a time before the trace's first; they arrive at 0.
    pub clamped: u64,
    /// By how much the earliest of these was before the first, ns.
    pub clamped_ns: u64,
}

impl From<Counts> for TraceCounts {
    fn from(counts: Counts) -> Self {
        let Counts {
            accepted,
            skipped,
            empty,
            filtered,
            backwards,
            clamped,
            clamped_ns,
        } = counts;
        Self {
            accepted,
            skipped,
            empty,
            filtered,
            backwards,
            clamped,
            clamped_ns,
        }
    }
}

/// The result of a scheme: a record, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Outcome {
    /// It ran.
    Record(Box<Record>),
    /// It did not.
    Failed(Failed),
}

impl Outcome {
    /// The record, if there is one.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Record(record) => Some(record),
            Self::Failed(_) => None,
        }
    }
}

/// A scheme that gave no record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Name of the scheme.
    pub scheme: String,
    /// What the scheme is called.
    pub title: String,
    /// Why.
    #[serde(flatten)]
    pub reason: Reason,
}

/// Why a scheme gave no record, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The device or the options do not suit the scheme.
    Refused(String),
    /// The trace does not fit the device.
    Failed(String),
    /// A law did not hold: a bug in the scheme or the simulator.
    Bug(String),
}
