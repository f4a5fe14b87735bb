//! What several flows at once got of the device (docs/hosts.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ratio;
use super::time::{Latency, Responses};
use crate::flows::{FlowConfig, Link, Measured};
use crate::metrics::Latencies;

/// Flows, and how evenly they were served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flows {
    /// How the device took commands from them.
    pub link: Link,
    /// One by one.
    pub each: Vec<Flow>,
    /// Least slowdown divided by the largest: 1 if all flows suffer equally. `null` where slowdowns were not measured.
    pub fairness: Option<f64>,
    /// Jain's index of the speeds, which are 1 / slowdown: 1 if they are equal, 1 / n if one of n flows gets everything.
    pub jain: Option<f64>,
}

/// What a flow got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// What was asked for.
    pub config: FlowConfig,
    /// Its first logical page.
    pub first_page: u64,
    /// Its logical pages.
    pub pages: u64,
    /// Commands that the device took: more than its requests where these were split.
    pub commands: u64,
    /// Bytes that its reads ask for.
    pub read_bytes: u64,
    /// Bytes that its writes ask for.
    pub write_bytes: u64,
    /// Pages that its reads touch.
    pub page_reads: u64,
    /// Pages that its writes touch.
    pub page_writes: u64,
    /// From its first request to its latest completion, s.
    pub elapsed_s: f64,
    /// Reads and writes completed, requests/s of this time.
    pub iops: Option<f64>,
    /// Bytes of them, 10^6 bytes/s of this time.
    pub throughput_mb_s: Option<f64>,
    /// Reads and writes completed while all flows were at work: after the last of them began, before the first was over.
    pub requests_together: u64,
    /// Its share of the bytes that all flows got in that time, %.
    pub share_percent: Option<f64>,
    /// Response times: from arrival to completion, of a request as a whole. In a closed loop a request arrives when the one
    /// whose place it takes is complete.
    pub response: Responses,
    /// Response times of the same reads and writes without the other flows; `null` where that was not measured.
    pub alone: Option<Latency>,
    /// Mean response divided by that without the other flows.
    pub slowdown: Option<f64>,
}

impl Flows {
    /// Of flows that have been played.
    pub(crate) fn of(link: Link, measured: &[Measured]) -> Self {
        let together = measured.iter().map(|flow| flow.together.bytes);
        let bytes: u64 = together.sum();
        Self {
            link,
            each: measured.iter().map(|flow| Flow::of(flow, bytes)).collect(),
            fairness: None,
            jain: None,
        }
    }

    /// Takes in the record of each flow's run without the others, in the order of the flows.
    pub fn compare(&mut self, alone: &[Self]) {
        for (flow, alone) in self.each.iter_mut().zip(alone) {
            flow.alone = alone.each.first().map(|flow| flow.response.all);
            let means = flow.alone.and_then(|alone| alone.mean_us);
            let means = flow.response.all.mean_us.zip(means);
            flow.slowdown = means.and_then(|(together, alone)| ratio(together, alone));
        }
        let slowdowns: Option<Vec<f64>> = self.each.iter().map(|flow| flow.slowdown).collect();
        let Some(slowdowns) = slowdowns else {
            return;
        };
        let least = slowdowns.iter().copied().reduce(f64::min);
        let most = slowdowns.iter().copied().reduce(f64::max);
        self.fairness = least.zip(most).and_then(|(least, most)| ratio(least, most));
        let speeds = slowdowns.iter().map(|slowdown| 1.0 / slowdown);
        let (sum, squares) = speeds.fold((0.0, 0.0), |(sum, squares), speed| {
            (sum + speed, squares + speed * speed)
        });
        self.jain = ratio(sum * sum, slowdowns.len() as f64 * squares);
    }
}

impl Flow {
    fn of(m: &Measured, bytes_together: u64) -> Self {
        let elapsed_ns = m
            .last_completion_ns
            .saturating_sub(m.first_arrival_ns.unwrap_or(0));
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let mut all: Latencies = m.reads.clone();
        all.add(&m.writes);
        let bytes = m.read_bytes + m.write_bytes;
        Self {
            config: m.config.clone(),
            first_page: m.pages.start,
            pages: m.pages.end - m.pages.start,
            commands: m.commands,
            read_bytes: m.read_bytes,
            write_bytes: m.write_bytes,
            page_reads: m.page_reads,
            page_writes: m.page_writes,
            elapsed_s,
            iops: ratio(all.count() as f64, elapsed_s),
            throughput_mb_s: ratio(bytes as f64 / 1e6, elapsed_s),
            requests_together: m.together.requests,
            share_percent: ratio(m.together.bytes as f64 * 100.0, bytes_together as f64),
            response: Responses::of(&m.reads, &m.writes, &m.trims, &m.flushes),
            alone: None,
            slowdown: None,
        }
    }
}
