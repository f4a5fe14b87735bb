//! What a run leaves behind: one shape for people, programs and reports, as plain structs.
//!
//! A [`Record`] is built once, from a session that has come to its end; everything that shows results reads its
//! fields. The command prints it inside a [`Document`] with the trace and the configuration. The JSON schema of all
//! this is made from the structs ([`schema()`]); `docs/record.md` describes it for people. Definitions of the figures:
//! docs/spec/metrics.md; where a field has its section, it says so.
//!
//! | module | what it holds |
//! |---|---|
//! | `device` | the device, the host, the ageing of a run |
//! | `counters` | pages of the host, operations of the flash, merges |
//! | `time` | response times, throughput, how busy dies and channels were |
//! | `held_up` | what requests waited for |
//! | `derived`, `stats` | figures made of counters; counters beyond those that conformance compares |
//! | `schedule` | what came of a schedule other than the order of issue |
//! | `buffer` | what a write buffer and a read cache between host and scheme did |
//! | `slc` | what a cache of flash blocks with one bit a cell did |
//! | `wear`, `tables`, `series` | erases of blocks; mapping tables; how it went over time |
//! | `flows` | what several flows at once got of the device |
//! | `explained` | where the time of requests went, if rows of them were made |
//! | `document`, `configuration` | records of one trace and one device with what they are about |
//! | [`fleet`], [`sweep`], [`mod@bench`], [`recovery`] | what `floatgate fleet`, `sweep`, `bench` and `recovery` print |

pub mod bench;
mod buffer;
mod configuration;
mod counters;
mod derived;
mod device;
mod document;
mod explained;
pub mod fleet;
mod flows;
mod held_up;
mod names;
pub mod papers;
pub mod recovery;
mod schema;
mod series;
mod slc;
mod sources;
mod stats;
pub mod sweep;
mod tables;
mod time;
mod wear;

use floatgate_core::{Ftl, Lpn, Start};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::ageing::Aged;
pub use crate::energy::Energy;
pub use buffer::{Buffer, BufferSettings};
pub use configuration::{Configuration, DeviceSettings, HostSettings, RunSettings, WriteZeroes};
pub use counters::{Causes, Counters, EraseCauses, FlashOperations, HostPages, MergeCounts};
pub use derived::Derived;
pub use device::{Device, Host};
pub use document::{Document, Failed, Outcome, Reason, Trace, TraceCounts};
pub use explained::{Explained, Explanation, PartsAt, SizeClass, SlowRequest, Wait};
pub use flows::{Flow, Flows};
pub use held_up::{By, HeldUp};
pub use schema::schema;
pub use series::Series;
pub use slc::{Slc, SlcSettings};
pub use stats::Stats;
pub use tables::{TableSize, Tables};
pub use time::{Brief, Distribution, Latency, Responses, Time};
pub use wear::{Swaps, Wear, WearMap};

use crate::clock::{Clock, ScheduleStats};
use crate::session::Session;
use names::StartName;
use sources::Sources;

/// Version of the shape of everything here. It grows when a field goes, moves or changes its meaning or unit; a new
/// field leaves it as it is.
pub const SCHEMA: u32 = 1;

/// Values under names that the scheme chose, in its order.
pub type Own<T> = IndexMap<String, T>;

/// The record of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Version of the record's shape.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// Name of the scheme, as `fast`; in a comparison with the options given to it alone, as `fast:sw_log=false`.
    pub scheme: String,
    /// What the scheme is called.
    pub title: String,
    /// The modelled device.
    pub device: Device,
    /// The scheme's options in force: all of them, each as text.
    pub options: Own<String>,
    /// State of the device before any ageing: `empty` (all blocks erased) or `full` (every logical page written once).
    #[serde(with = "StartName")]
    pub start: Start,
    /// Steps of ageing before the measurement, in order.
    pub ageing: Vec<Aged>,
    /// How the host drove the device.
    pub host: Host,
    /// What was counted, in the shape of the conformance vectors.
    pub counters: Counters,
    /// Times.
    pub time: Time,
    /// Figures made of the counters.
    pub derived: Derived,
    /// Further counters.
    pub stats: Stats,
    /// What came of the schedule; left out where every die keeps the order of issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleStats>,
    /// What the memory between host and scheme did; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// What the cache with one bit a cell did; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc: Option<Slc>,
    /// Energy by component.
    pub energy: Energy,
    /// Erases of the blocks.
    pub wear: Wear,
    /// The scheme's tables.
    pub tables: Tables,
    /// What requests waited for when most of them waited; `null` if they hardly did.
    pub held_up: Option<HeldUp>,
    /// The run over time, as columns of equal length.
    pub series: Series,
    /// Distributions of response times.
    pub distribution: Distribution,
    /// What each of several flows got; left out if there was one trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Flows>,
    /// Where the time of the requests went; left out if no requests were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
}

impl Record {
    /// The record of a session that has been settled, after these steps of ageing.
    pub fn of<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>, aged: Vec<Aged>) -> Self {
        Self::made(S::KEY, S::TITLE, &Sources::of(session), aged)
    }

    fn made(key: &str, title: &str, from: &Sources<'_>, ageing: Vec<Aged>) -> Self {
        let config = from.config;
        let series = Series::of(&from.metrics.series, &config.device.machine());
        Self {
            schema: SCHEMA,
            scheme: key.into(),
            title: title.into(),
            device: Device::of(&config.device),
            options: own(from.options.iter().cloned()),
            start: config.start,
            ageing,
            host: Host::of(&config.host),
            counters: Counters::of(from),
            time: Time::of(from),
            derived: Derived::of(from),
            stats: Stats::of(from),
            schedule: from.schedule,
            buffer: Buffer::of(from),
            slc: Slc::of(from),
            energy: from.energy(),
            wear: Wear::of(from),
            tables: Tables::of(&from.tables),
            held_up: HeldUp::of(&series, from),
            series,
            distribution: Distribution::of(from.metrics),
            flows: None,
            explained: None,
        }
    }
}

/// `a / b`, or no value.
fn ratio(a: f64, b: f64) -> Option<f64> {
    (b != 0.0).then(|| a / b)
}

fn own<T>(values: impl IntoIterator<Item = (&'static str, T)>) -> Own<T> {
    let named = |(name, value): (&str, T)| (name.into(), value);
    values.into_iter().map(named).collect()
}

/// Values of a scheme's own that stand in one object with fields common to all schemes: a name that a field has
/// gets `own_` before it, so that no key comes twice.
fn own_beside<T>(
    fields: &impl Serialize,
    values: impl IntoIterator<Item = (&'static str, T)>,
) -> Own<T> {
    let fields = serde_json::to_value(fields).unwrap_or_default();
    let named = |(name, value): (&str, T)| match fields.get(name) {
        None => (name.into(), value),
        Some(_) => (format!("own_{name}"), value),
    };
    values.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests;
