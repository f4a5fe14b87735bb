//! Times of requests (docs/spec/metrics.md section 3): in microseconds, the whole run in seconds. Percentiles are up to 0.1 %
//! too high, everything else is exact.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ratio;
use super::sources::Sources;
use crate::metrics::{self, Latencies, Metrics};

/// Times. A figure of nothing (no request, no time) is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Time {
    /// From the first arrival to the latest completion, s.
    pub elapsed_s: f64,
    /// From the first arrival to the last, as the run plays them, s. `null` where the trace was not read before the run.
    pub arrivals_s: Option<f64>,
    /// Response times: from arrival to completion; from issue in a closed loop.
    pub response: Responses,
    /// Response times of the reads and writes of the same trace when requests come one at a time (a closed loop of one) to
    /// the same device: what the scheme takes without a queue. `null` where that was not measured; `compare` measures it.
    pub alone: Option<Latency>,
    /// How late the device was, s: at the end of the run, or its longest response, if that is more than a tenth of the time over
    /// which requests arrived. It did not keep up, and response times measure its queue. `null` if it did, and in a closed loop.
    pub behind_s: Option<f64>,
    /// Service times of reads and writes: from first start to completion.
    pub service: Brief,
    /// Queueing times of reads and writes: from arrival to first start.
    pub queue: Brief,
    /// Reads and writes completed, requests/s.
    pub iops: Option<f64>,
    /// Bytes that reads and writes ask for, 10^6 bytes/s.
    pub throughput_mb_s: Option<f64>,
    /// Pages that the host wrote, pages/s.
    pub pages_written_per_second: Option<f64>,
    /// From issue to completion, summed over writes, us a page written by the host.
    pub elapsed_per_written_page_us: Option<f64>,
    /// Busy time of each die as a share of the time to the latest end of any operation.
    pub die_utilisation: Vec<Option<f64>>,
    /// Busy time of each channel's bus as a share of the same.
    pub channel_utilisation: Vec<Option<f64>>,
    /// Host pages that each channel serves above those of channel 0, % of these.
    pub channel_share_difference_percent: Vec<Option<f64>>,
}

impl Time {
    pub(super) fn of(from: &Sources<'_>) -> Self {
        let m = from.metrics;
        let elapsed_s = from.elapsed_ns() as f64 / 1e9;
        let until_last_end_ns = from.since_first_ns(from.last_end_ns) as f64;
        let utilisation = |busy_ns: &[u64]| -> Vec<Option<f64>> {
            let share = |&ns: &u64| ratio(ns as f64, until_last_end_ns);
            busy_ns.iter().map(share).collect()
        };
        let requests = (m.reads.count() + m.writes.count()) as f64;
        let written = from.host.page_writes as f64;
        Self {
            elapsed_s,
            arrivals_s: None,
            response: Responses::of(&m.reads, &m.writes, &m.trims, &m.flushes),
            alone: None,
            behind_s: None,
            service: Brief::of(&m.service),
            queue: Brief::of(&m.queue),
            iops: ratio(requests, elapsed_s),
            throughput_mb_s: ratio((m.read_bytes + m.write_bytes) as f64 / 1e6, elapsed_s),
            pages_written_per_second: ratio(written, elapsed_s),
            elapsed_per_written_page_us: ratio(m.write_busy_ns as f64 / 1000.0, written),
            die_utilisation: utilisation(&from.die_busy_ns),
            channel_utilisation: utilisation(&from.channel_busy_ns),
            channel_share_difference_percent: channel_shares(from),
        }
    }
}

/// How much more or less each channel serves than channel 0, in percent.
fn channel_shares(from: &Sources<'_>) -> Vec<Option<f64>> {
    let machine = from.config.device.machine();
    let mut pages = vec![0.0; machine.channels as usize];
    for (die, &n) in (0..).zip(from.host_pages_by_die) {
        pages[machine.channel_of(die) as usize] += n as f64;
    }
    let difference = |&n: &f64| ratio((n - pages[0]) * 100.0, pages[0]);
    pages.iter().map(difference).collect()
}

/// Response times by kind of request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Responses {
    /// Reads and writes together.
    pub all: Latency,
    /// Reads.
    pub read: Latency,
    /// Writes.
    pub write: Latency,
    /// Trims.
    pub trim: Brief,
    /// Flushes.
    pub flush: Brief,
}

impl Responses {
    pub(super) fn of(
        reads: &Latencies,
        writes: &Latencies,
        trims: &metrics::Brief,
        flushes: &metrics::Brief,
    ) -> Self {
        let mut all = reads.clone();
        all.add(writes);
        Self {
            all: Latency::of(&all),
            read: Latency::of(reads),
            write: Latency::of(writes),
            trim: Brief::of(trims),
            flush: Brief::of(flushes),
        }
    }
}

/// How long requests took; `null` of no requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// Mean, us.
    pub mean_us: Option<f64>,
    /// Population standard deviation, us.
    pub deviation_us: Option<f64>,
    /// Median, us.
    pub p50_us: Option<f64>,
    /// 90th percentile by nearest rank, us.
    pub p90_us: Option<f64>,
    /// 99th percentile, us.
    pub p99_us: Option<f64>,
    /// 99.9th percentile, us.
    pub p99_9_us: Option<f64>,
    /// Longest, us.
    pub max_us: Option<f64>,
}

impl Latency {
    fn of(l: &Latencies) -> Self {
        let us = |ns: Option<f64>| ns.map(|ns| ns / 1000.0);
        let at = |q| us(l.percentile_ns(q).map(|ns| ns as f64));
        Self {
            count: l.count(),
            mean_us: us(l.mean_ns()),
            deviation_us: us(l.deviation_ns()),
            p50_us: at(50.0),
            p90_us: at(90.0),
            p99_us: at(99.0),
            p99_9_us: at(99.9),
            max_us: us((l.count() > 0).then_some(l.max_ns() as f64)),
        }
    }
}

/// The same in short, for what nobody asks percentiles of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    /// Requests.
    pub count: u64,
    /// Mean, us; `null` of no requests.
    pub mean_us: Option<f64>,
    /// Longest, us; `null` of no requests.
    pub max_us: Option<f64>,
}

impl Brief {
    fn of(b: &metrics::Brief) -> Self {
        Self {
            count: b.count,
            mean_us: b.mean_ns().map(|ns| ns / 1000.0),
            max_us: (b.count > 0).then_some(b.max_ns as f64 / 1000.0),
        }
    }
}

/// Response times as steps: a time in ns, and the share of the requests that took at most so long. At most about
/// 400 steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Reads.
    pub read: Vec<(u64, f64)>,
    /// Writes.
    pub write: Vec<(u64, f64)>,
}

impl Distribution {
    pub(super) fn of(m: &Metrics) -> Self {
        Self {
            read: m.reads.cumulative(),
            write: m.writes.cumulative(),
        }
    }
}
