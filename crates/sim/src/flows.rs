//! Several flows at once: each has requests of its own, that come at their times or as fast as a number of them under way
//! allows, and a part of the address space. Their commands wait in a queue a flow; whenever the device has room, the
//! [arbiter](arbiter) says whose first command goes next (docs/hosts.md).

mod arbiter;
mod device;
mod play;
mod queue;

use std::ops::Range;

use floatgate_core::Refusal;
use floatgate_trace::{Stream, TraceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{self, Recipe, RunConfig};
use crate::host::{BeyondEnd, Kind};
use crate::metrics::{Brief, Latencies};
use crate::source::Source;

pub(crate) use device::{Command, Device};
pub(crate) use play::Play;

/// How urgent the commands of a flow are.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Before all others.
    Urgent,
    /// Before medium and low.
    High,
    /// Before low.
    #[default]
    Medium,
    /// After all others.
    Low,
}

impl Priority {
    /// All of them by name.
    pub const NAMES: [&'static str; 4] = ["urgent", "high", "medium", "low"];

    /// The priority of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Urgent, Self::High, Self::Medium, Self::Low];
        let at = Self::NAMES.iter().position(|known| *known == name)?;
        Some(all[at])
    }
}

/// How the device chooses among flows with a command that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// One flow after the other, `burst` commands each.
    #[default]
    RoundRobin,
    /// Urgent flows first; the others one after the other, as many times `burst` commands as their weight.
    Weighted,
    /// The highest priority first; flows of one priority one after the other, `burst` commands each.
    Priority,
}

impl Arbitration {
    /// All of them by name.
    pub const NAMES: [&'static str; 3] = ["round-robin", "weighted", "priority"];

    /// The arbitration of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::RoundRobin, Self::Weighted, Self::Priority];
        let at = Self::NAMES.iter().position(|known| *known == name)?;
        Some(all[at])
    }
}

/// What device and host agree on for all flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// How the device chooses among the flows.
    pub arbitration: Arbitration,
    /// Commands that a flow may have taken in its turn.
    pub burst: u32,
    /// Bytes of a command at most; longer reads and writes are split. 0: no limit.
    pub max_request_bytes: u64,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            arbitration: Arbitration::RoundRobin,
            burst: 1,
            max_request_bytes: 0,
        }
    }
}

/// A flow but for its requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowConfig {
    /// Its name.
    pub name: String,
    /// Requests that it keeps under way; 0: they come at the times of its trace.
    pub queue_depth: u32,
    /// Where its part of the device begins, as a share of the device.
    pub from: f64,
    /// How much of the device that part is.
    pub share: f64,
    /// Its priority.
    pub priority: Priority,
    /// Its weight.
    pub weight: u32,
    /// The stream of all its writes; `null`: what its trace says.
    pub stream: Option<u16>,
    /// Arrival times are divided by this.
    pub speed: f64,
    /// When it begins, ns after the start of the run.
    pub start_ns: u64,
}

impl FlowConfig {
    /// One of `flows` flows that share the device evenly, with arrival times as they are.
    pub fn even(name: &str, number: usize, flows: usize) -> Self {
        Self {
            name: name.into(),
            queue_depth: 0,
            from: number as f64 / flows as f64,
            share: 1.0 / flows as f64,
            priority: Priority::default(),
            weight: 1,
            stream: None,
            speed: 1.0,
            start_ns: 0,
        }
    }

    /// Its logical pages on a device.
    pub fn pages(&self, logical_pages: u64) -> Range<u64> {
        let at = |share: f64| ((share * logical_pages as f64).round() as u64).min(logical_pages);
        at(self.from)..at(self.from + self.share)
    }

    /// Pages of a device whose part for this flow has that many.
    pub fn device_pages(&self, pages: u64) -> u64 {
        match self.share {
            share if share >= 1.0 => pages,
            // Both ends are rounded.
            share => ((pages + 1) as f64 / share).ceil() as u64,
        }
    }

    fn stream(&self) -> Option<Stream> {
        Stream::new(self.stream?.into())
    }
}

/// A flow: what it is, and its requests.
pub struct Flow {
    /// What it is.
    pub config: FlowConfig,
    /// Its requests.
    pub source: Box<dyn Source>,
}

/// The flows of a run.
pub struct Flows {
    /// For all of them.
    pub link: Link,
    /// One by one.
    pub flows: Vec<Flow>,
}

/// What was measured of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub config: FlowConfig,
    /// Its logical pages.
    pub pages: Range<u64>,
    pub reads: Latencies,
    pub writes: Latencies,
    pub trims: Brief,
    pub flushes: Brief,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub first_arrival_ns: Option<u64>,
    pub last_completion_ns: u64,
    /// Pages that its reads and writes touch.
    pub page_reads: u64,
    pub page_writes: u64,
    /// Commands that the device took.
    pub commands: u64,
    /// Requests and bytes of reads and writes that were completed while all flows were at work.
    pub together: Together,
}

impl Measured {
    fn of(config: &FlowConfig, pages: Range<u64>) -> Self {
        Self {
            config: config.clone(),
            pages,
            reads: Latencies::default(),
            writes: Latencies::default(),
            trims: Brief::default(),
            flushes: Brief::default(),
            read_bytes: 0,
            write_bytes: 0,
            first_arrival_ns: None,
            last_completion_ns: 0,
            page_reads: 0,
            page_writes: 0,
            commands: 0,
            together: Together::default(),
        }
    }

    fn completed(&mut self, kind: Kind, arrival_ns: u64, end_ns: u64) {
        let response_ns = end_ns.saturating_sub(arrival_ns);
        self.last_completion_ns = self.last_completion_ns.max(end_ns);
        match kind {
            Kind::Read => self.reads.record(response_ns),
            Kind::Write => self.writes.record(response_ns),
            Kind::Trim | Kind::EmptyTrim => self.trims.record(response_ns),
            Kind::Flush | Kind::Drain => self.flushes.record(response_ns),
        }
    }
}

/// Requests and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Together {
    pub requests: u64,
    pub bytes: u64,
}

/// Why the flows cannot go on.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// A trace cannot be read.
    Trace(TraceError),
    /// A request lies beyond its flow's part of the device; in words.
    Beyond(String),
}

impl From<TraceError> for Stopped {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

impl Flows {
    /// Checks the flows and what their run does not go with.
    ///
    /// # Errors
    /// Names the key at fault.
    pub fn check(&self, config: &RunConfig) -> Result<(), Refusal> {
        let refuse = |key: &str, text: String| Err(Refusal::new(key, text));
        if config.ageing.contains(&Recipe::Replay) {
            let text = "run.ageing: \"replay\" plays one trace, and there are several flows";
            return refuse("ageing", text.into());
        }
        if config.host.arrivals == config::Arrivals::Closed {
            let text = "arrivals = \"closed\": each flow has a queue_depth of its own";
            return refuse("arrivals", text.into());
        }
        if self.link.arbitration != Arbitration::RoundRobin && config.host.queue_depth == 0 {
            let text = "arbitration: without host.queue_depth the device takes every command at once, and there is nothing to choose";
            return refuse("arbitration", text.into());
        }
        let (most, page) = (self.link.max_request_bytes, config.device.part.page_bytes);
        if most > 0 && most < page.into() {
            let text = format!("max_request: {most} bytes are less than a page of {page}");
            return refuse("max_request", text);
        }
        for flow in self.flows.iter().map(|flow| &flow.config) {
            if flow.pages(config.device.logical_pages).is_empty() {
                let text = format!("flow {}: its part of the device has no page", flow.name);
                return refuse("flow", text);
            }
        }
        Ok(())
    }
}

/// What is wrong with a request of a flow, in words.
fn beyond_text(
    flow: &FlowConfig,
    pages: u64,
    page_bytes: u32,
    position: &str,
    what: BeyondEnd,
) -> String {
    let name = &flow.name;
    match what {
        BeyondEnd::Page { last_page } => format!(
            "flow {name}: {position}: page {last_page}, but its part of the device has pages 0 to {} of {page_bytes} bytes\n  \
             help: a larger device, a larger share for the flow, or host.beyond = \"wrap\" or \"compact\"",
            pages.saturating_sub(1)
        ),
        BeyondEnd::TooLong => format!("flow {name}: {position}: this request is too long"),
        BeyondEnd::Regions => format!(
            "flow {name}: {position}: the regions that it touches do not fit into its {pages} pages\n  \
             help: a larger device, or a larger share for the flow"
        ),
    }
}
