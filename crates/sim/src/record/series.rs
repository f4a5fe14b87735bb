//! How the run went over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Own, own_beside, ratio};
use crate::merges::MergeKinds;
use crate::series::{self, Sample, Window};

/// How the run went over time: columns of equal length, a row for each of at most 512 samples. Counts are totals
/// since the start of the run. In a long run a sample stands for many requests; peaks are kept all the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Series {
    /// Requests issued.
    pub requests: Vec<u64>,
    /// Issue time of the last, s.
    pub time_s: Vec<f64>,
    /// Response of the reads and writes completed since the sample before: mean, us; `null` of none.
    pub response_mean_us: Vec<Option<f64>>,
    /// 99th percentile of the responses in the stretch of eight samples, or the rest at the end, in which this one lies,
    /// us; up to 3.2 % too high.
    pub response_p99_us: Vec<Option<f64>>,
    /// Their 99.9th percentile, us; up to 3.2 % too high.
    pub response_p99_9_us: Vec<Option<f64>>,
    /// The longest since the sample before, us.
    pub response_max_us: Vec<f64>,
    /// Requests that had arrived and were not complete when the last one arrived, itself included.
    pub backlog: Vec<u64>,
    /// The most of them at any look since the sample before: twice from sample to sample, and at least every 4096
    /// requests.
    pub backlog_max: Vec<u64>,
    /// Flushes completed.
    pub flushes: Vec<u64>,
    /// The longest response of the flushes since the sample before, us.
    pub flush_max_us: Vec<f64>,
    /// Bytes that reads asked for.
    pub read_bytes: Vec<u64>,
    /// Bytes that writes asked for.
    pub write_bytes: Vec<u64>,
    /// Share of the time since the sample before in which a die was busy: mean of the dies. Work that does not fit
    /// into the time is carried on to the next sample; `null` if no time has passed.
    pub die_utilisation: Vec<Option<f64>>,
    /// The same of the busiest die.
    pub die_utilisation_max: Vec<Option<f64>>,
    /// Share of the time in which the bus of a channel was busy: mean of the channels, counted likewise.
    pub channel_utilisation: Vec<Option<f64>>,
    /// The same of the busiest channel.
    pub channel_utilisation_max: Vec<Option<f64>>,
    /// Host pages programmed.
    pub host_programs: Vec<u64>,
    /// Pages programmed, all causes.
    pub programs: Vec<u64>,
    /// Blocks erased, all causes.
    pub erases: Vec<u64>,
    /// Switch merges.
    pub merges_switch: Vec<u64>,
    /// Partial merges.
    pub merges_partial: Vec<u64>,
    /// Full merges.
    pub merges_full: Vec<u64>,
    /// Dead victims.
    pub merges_dead: Vec<u64>,
    /// Merges of kinds of the scheme's own.
    pub merges_other: Vec<u64>,
    /// Momentary values of the scheme's own; `null` where there is no value.
    #[serde(flatten)]
    pub own: Own<Vec<Option<f64>>>,
}

impl Series {
    pub(super) fn of(series: &series::Series, dies: usize) -> Self {
        fn column<T>(of: &series::Series, value: impl Fn(&Sample) -> T) -> Vec<T> {
            of.samples.iter().map(value).collect()
        }
        let us = |ns: u64| ns as f64 / 1000.0;
        let names = series.observed_names.iter().enumerate();
        let own = names.map(|(i, &name)| {
            let value = |s: &Sample| s.observed.get(i).copied().filter(|x| x.is_finite());
            (name, column(series, value))
        });
        let merges = |of: fn(&MergeKinds) -> u64| column(series, |s| of(&s.merges));
        let windows = series.all_windows();
        let percentile = |q| {
            let of_window = |window: &Window| window.percentile_ns(q).map(us);
            let values: Vec<Option<f64>> = windows.iter().map(of_window).collect();
            column(series, |s| {
                let window = windows.partition_point(|window| window.requests < s.requests);
                values.get(window).copied().flatten()
            })
        };
        let shares = |of: std::ops::Range<usize>| {
            Shares::of(&series.samples, |s| {
                s.busy_ns.get(of.clone()).unwrap_or(&[])
            })
        };
        let busy = series.samples.first().map_or(0, |s| s.busy_ns.len());
        let (dies, channels) = (shares(0..dies), shares(dies..busy));
        Self {
            requests: column(series, |s| s.requests),
            time_s: column(series, |s| s.time_ns as f64 / 1e9),
            response_mean_us: column(series, |s| {
                ratio(s.response_sum_ns as f64 / 1000.0, s.completed as f64)
            }),
            response_p99_us: percentile(99.0),
            response_p99_9_us: percentile(99.9),
            response_max_us: column(series, |s| us(s.response_max_ns)),
            backlog: column(series, |s| s.backlog),
            backlog_max: column(series, |s| s.backlog_max),
            flushes: column(series, |s| s.flushes),
            flush_max_us: column(series, |s| us(s.flush_max_ns)),
            read_bytes: column(series, |s| s.read_bytes),
            write_bytes: column(series, |s| s.write_bytes),
            die_utilisation: dies.mean,
            die_utilisation_max: dies.max,
            channel_utilisation: channels.mean,
            channel_utilisation_max: channels.max,
            host_programs: column(series, |s| s.host_programs),
            programs: column(series, |s| s.programs),
            erases: column(series, |s| s.erases),
            merges_switch: merges(|m| m.switch),
            merges_partial: merges(|m| m.partial),
            merges_full: merges(|m| m.full),
            merges_dead: merges(|m| m.dead),
            merges_other: merges(|m| m.other),
            own: own_beside(&Self::default(), own),
        }
    }
}

/// How busy dies or channels were between samples.
#[derive(Default)]
struct Shares {
    mean: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
}

impl Shares {
    /// From the time of the operations issued by each sample. What is issued in a burst is not done in a burst: what the
    /// time does not suffice for is left to the samples after.
    fn of(samples: &[Sample], issued_ns: impl Fn(&Sample) -> &[u64]) -> Self {
        let mut shares = Self::default();
        let (mut from_ns, mut before, mut left_ns) = (0, Vec::new(), Vec::new());
        for sample in samples {
            let issued = issued_ns(sample);
            before.resize(issued.len(), 0);
            left_ns.resize(issued.len(), 0);
            let time_ns = sample.time_ns.saturating_sub(from_ns);
            let busy = issued.iter().zip(&mut before).zip(&mut left_ns);
            let busy = busy.map(|((&issued, before), left)| {
                let work_ns = *left + (issued - std::mem::replace(before, issued));
                let done_ns = work_ns.min(time_ns);
                *left = work_ns - done_ns;
                done_ns
            });
            let (sum, max, n) = busy.fold((0.0, 0, 0), |(sum, max, n), ns| {
                (sum + ns as f64, ns.max(max), n + 1)
            });
            shares
                .mean
                .push(ratio(sum / f64::from(n.max(1)), time_ns as f64));
            shares.max.push(ratio(max as f64, time_ns as f64));
            from_ns = sample.time_ns;
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two dies: one gets work for 150 ns in the first 100 ns, the other for 20 ns after that.
    #[test]
    fn work_that_does_not_fit_is_carried_on() {
        let sample = |time_ns, a, b| Sample {
            time_ns,
            busy_ns: vec![a, b],
            ..Sample::default()
        };
        let samples = [
            sample(0, 10, 0),
            sample(100, 150, 0),
            sample(200, 150, 20),
            sample(200, 150, 20),
            sample(300, 150, 20),
        ];
        let shares = Shares::of(&samples, |s| &s.busy_ns);
        assert_eq!(shares.mean, [None, Some(0.5), Some(0.35), None, Some(0.0)]);
        assert_eq!(shares.max, [None, Some(1.0), Some(0.5), None, Some(0.0)]);
    }
}
