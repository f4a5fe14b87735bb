//! Synthetic workloads: page requests that are the same on every machine for the same seed
//! (docs/spec/workload-analysis.md, sections 3 to 5).
//!
//! [`generators`] lists them with their parameters; [`build`] makes one from texts, as given on a command line or in a
//! configuration.
//!
//! ```
//! use floatgate_trace::generate;
//!
//! let requests: Vec<u64> = generate::build(
//!     "skew",
//!     &[("space", "16"), ("distinct", "10"), ("writes", "12"), ("seed", "7")],
//! )?
//! .map(|request| request.lpn)
//! .collect();
//! assert_eq!(requests, [13, 13, 13, 11, 13, 15, 13, 13, 11, 13, 11, 3]);
//! # Ok::<(), generate::GenerateError>(())
//! ```

mod arrival;
mod cases;
mod opened;
mod params;
mod patterns;
mod rng;
#[cfg(test)]
mod tests;
mod tiers;

use serde::{Deserialize, Serialize};

pub use arrival::Arrival;
pub use opened::{is_generated, open};
pub use params::{GeneratorInfo, ParamInfo, generators};
pub use rng::SplitMix64;

use crate::{Op, Request, Stream};
use arrival::Clock;
use cases::Hinted;
use params::Values;
use patterns::{Mixed, Randomness, Sequential, Skew, Step, Tpcc, Uniform, Zipf, zipf_sums};

/// A request in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PageRequest {
    /// Arrival in nanoseconds since the start.
    pub arrival_ns: u64,
    /// The operation.
    pub op: Op,
    /// The first logical page.
    pub lpn: u64,
    /// The number of pages, at least 1.
    pub n: u32,
    /// The stream of a write, from generators that have streams.
    #[serde(default)]
    pub stream: Stream,
}

impl PageRequest {
    /// The same request in bytes, on volume 0. An address past 2^64 bytes is cut there.
    pub const fn to_request(self, page_bytes: u32) -> Request {
        let offset = self.lpn.saturating_mul(page_bytes as u64);
        let bytes = self.n as u64 * page_bytes as u64;
        Request {
            arrival_ns: self.arrival_ns,
            op: self.op,
            volume: 0,
            stream: self.stream,
            offset,
            bytes: if bytes > u64::MAX - offset {
                u64::MAX - offset
            } else {
                bytes
            },
        }
    }
}

/// Why a generator cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerateError {
    /// The requested generator.
    pub generator: String,
    /// The parameter at fault, if it is a parameter.
    pub param: Option<String>,
    /// What is wrong and what would work.
    pub message: String,
}

impl std::fmt::Display for GenerateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "generator '{}'", self.generator)?;
        if let Some(param) = &self.param {
            write!(f, ", parameter '{param}'")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for GenerateError {}

/// A generator ready to run.
pub type Requests = Box<dyn Iterator<Item = PageRequest> + Send>;

/// Builds a generator from parameters as texts; missing ones have their defaults.
///
/// Numbers may have underscores (`1_000_000`). Building takes memory for the permutation of the space
/// (4 bytes a page; `zipf` 8 more for each page of its working set), running takes none.
///
/// # Errors
/// An unknown generator or parameter, a value that is not a number, and values that contradict each other.
pub fn build(name: &str, params: &[(&str, &str)]) -> Result<Requests, GenerateError> {
    let values = Values::new(name, params)?;
    let seed = values.number("seed", 0, u64::MAX)?;
    let random = SplitMix64::new(seed);
    let steps: Box<dyn Iterator<Item = Hinted> + Send> = match name {
        "cachelib" => Box::new(cases::cachelib(&values, random)?),
        "kv-cache" => Box::new(cases::kv_cache(&values, random)?),
        _ => Box::new(plain(name, &values, random)?.map(|step| (step, Stream::NONE))),
    };
    let mut clock = Clock::new(values.arrival()?, seed);
    Ok(Box::new(steps.map(move |((op, lpn, n), stream)| {
        PageRequest {
            arrival_ns: clock.tick(),
            op,
            lpn,
            n,
            stream,
        }
    })))
}

/// A generator without streams.
fn plain(
    name: &str,
    values: &Values<'_>,
    mut random: SplitMix64,
) -> Result<Box<dyn Iterator<Item = Step> + Send>, GenerateError> {
    Ok(match name {
        "skew" => {
            let space = values.space()?;
            let distinct = values.number("distinct", 1, space)?;
            let (x, y) = (values.percent("x")?, values.percent("y")?);
            let hot = distinct * y / 100;
            if hot == 0 && x > 0 {
                return Err(
                    values.wrong("y", "no page is hot: y % of distinct is less than one page")
                );
            }
            if hot == distinct && x < 100 {
                return Err(values.wrong("y", "no page is cold: y % of distinct is all of them"));
            }
            Box::new(Skew {
                pages: random.permutation(space as u32),
                random,
                hot,
                distinct,
                x,
                left: values.number("writes", 1, u64::MAX)?,
            })
        }
        "tpcc" => {
            let space = values.space()?;
            let working = space * values.percent("working")? / 100;
            let reads = values.number("reads", 0, 99)?;
            let left = values.number("writes", 1, u64::MAX)?;
            let tiers = tiers::tiers(values, working)?;
            let pages = random.permutation(space as u32);
            Box::new(Tpcc {
                pages: tiers::place(values, &tiers, pages)?,
                random,
                tiers,
                space,
                reads,
                left,
            })
        }
        "uniform" => {
            let (slots, n) = values.slots(1)?;
            Box::new(Uniform {
                random,
                slots,
                n,
                reads: values.reads()?,
                left: values.number("requests", 1, u64::MAX)?,
            })
        }
        "zipf" => {
            let space = values.space()?;
            let distinct = match values.number("distinct", 0, space)? {
                0 => space,
                n => n,
            };
            if distinct > MAX_RANKS {
                return Err(values.wrong("distinct", &format!("at most {MAX_RANKS} pages")));
            }
            let theta = values.fraction("theta", 5.0)?;
            Box::new(Zipf {
                pages: random.permutation(space as u32),
                random,
                sums: zipf_sums(distinct, theta),
                reads: values.reads()?,
                left: values.number("requests", 1, u64::MAX)?,
            })
        }
        "sequential" => {
            let streams = values.number("streams", 1, 1 << 20)?;
            let (slots, n) = values.slots(streams)?;
            Box::new(Sequential {
                random,
                slots,
                streams,
                n,
                reads: values.reads()?,
                at: 0,
                left: values.number("requests", 1, u64::MAX)?,
            })
        }
        "mixed" => {
            let (slots, n) = values.slots(1)?;
            Box::new(Mixed {
                random,
                slots,
                n,
                reads: values.reads()?,
                sequential: values.percent("sequential")?,
                behind: 0,
                left: values.number("requests", 1, u64::MAX)?,
            })
        }
        _ => {
            let (slots, n) = values.slots(1)?;
            Box::new(Randomness {
                random,
                slots,
                n,
                share: values.percent("random")?,
                continues: values.is_second("sequential", ["front", "continue"])?,
                next: 0,
                left: values.number("requests", 1, u64::MAX)?,
            })
        }
    })
}

/// Zipf's table is limited to 2 GiB.
const MAX_RANKS: u64 = 1 << 28;
