//! Why requests took so long: what the rows of single requests tell, in short.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the time of the requests went. Only there if requests were recorded (`--requests-out`, `--slowest`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// What requests around a percentile of the response time of reads and writes spent their time on.
    pub percentiles: Vec<PartsAt>,
    /// Responses by size of the request: reads, then writes, the smallest first.
    pub sizes: Vec<SizeClass>,
    /// The slowest requests, the slowest first; as many as were asked for.
    pub slowest: Vec<SlowRequest>,
}

/// Means over the reads and writes whose response is about that of a percentile (within 3.2 %).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartsAt {
    /// The percentile; 100: the longest.
    pub percentile: f64,
    /// Requests that this is a mean of.
    pub requests: u64,
    /// From arrival to completion, us.
    pub response_us: f64,
    /// From arrival to the first start, us.
    pub queueing_us: f64,
    /// Work on the map, us. Work is a sum over operations, some of which may run at the same time or be left behind.
    pub translation_us: f64,
    /// Work on the host's own pages, us.
    pub flash_us: f64,
    /// Work of merges and collections, us.
    pub gc_us: f64,
}

/// Responses of the requests of one kind and about one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeClass {
    /// `R` read, `W` write.
    pub op: String,
    /// Fewest pages.
    pub pages_from: u32,
    /// Most pages.
    pub pages_to: u32,
    /// Requests.
    pub count: u64,
    /// Mean response, us.
    pub mean_us: f64,
    /// 99th percentile, us; up to 3.2 % too high.
    pub p99_us: f64,
    /// Longest, us.
    pub max_us: f64,
}

/// A slow request and what it waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRequest {
    /// The request.
    #[serde(flatten)]
    pub request: Explanation,
    /// Its longest wait for a die; `null` if every die was free.
    pub waited: Option<Wait>,
}

/// A wait for a die, and the chain of requests behind it: each waited for the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// From the issue until the die was done with all work issued before, us.
    pub waited_us: f64,
    /// The die.
    pub die: u32,
    /// The earlier request whose work came last there; `null`: work of the scheme in idle time or by a timer.
    pub behind_number: Option<u64>,
    /// Requests of the chain.
    pub chain_requests: u64,
    /// Whether the first of them, or the request itself, waited for work in idle time or by a timer.
    pub behind_background: bool,
    /// Those of the chain with the most work, at most three, the latest first.
    pub heaviest: Vec<Explanation>,
}

/// One request: docs/requests.md says what each figure is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Number in the trace, from 0.
    pub number: u64,
    /// `R` read, `W` write, `T` trim, `F` flush.
    pub op: String,
    /// First logical page.
    pub first_lpn: u32,
    /// Pages.
    pub pages: u32,
    /// Arrival, s.
    pub arrival_s: f64,
    /// From arrival to completion, us.
    pub response_us: f64,
    /// From arrival to the first start, us.
    pub queueing_us: f64,
    /// Work on the map, us.
    pub translation_us: f64,
    /// Work on its own pages, us.
    pub flash_us: f64,
    /// Work of merges and collections, us.
    pub gc_us: f64,
    /// Switch merges run for it.
    pub merges_switch: u64,
    /// Partial merges.
    pub merges_partial: u64,
    /// Full merges.
    pub merges_full: u64,
    /// Dead victims.
    pub merges_dead: u64,
    /// Merges of kinds of the scheme's own.
    pub merges_other: u64,
    /// Dies that it had work on.
    pub dies: u32,
    /// The die whose work for it ended with it.
    pub die_last: Option<u32>,
}
