//! How the run went over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Own, own_beside, ratio};
use crate::clock::Machine;
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
    pub(super) fn of(series: &series::Series, machine: &Machine) -> Self {
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
        let [dies, channels] = Shares::of(&series.samples, machine);
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

/// Work of a die or a bus, ns: issued by the last sample, and left to do.
#[derive(Clone, Copy, Default)]
struct Load {
    issued_ns: u64,
    left_ns: f64,
}

impl Load {
    /// Takes what has been issued, and gives all there is to do.
    fn work_ns(&mut self, issued_ns: u64) -> f64 {
        let before_ns = std::mem::replace(&mut self.issued_ns, issued_ns);
        self.left_ns + (issued_ns - before_ns) as f64
    }
}

impl Shares {
    /// Of dies and channels, from the time of the operations issued by each sample. What is issued in a burst is not done
    /// in a burst: what the time does not suffice for is left to the samples after. A bus gets on as its dies do.
    fn of(samples: &[Sample], machine: &Machine) -> [Self; 2] {
        let dies = machine.dies as usize;
        let (mut of_dies, mut of_channels) = (Self::default(), Self::default());
        let mut from_ns = 0;
        let mut loads = Vec::new();
        for sample in samples {
            loads.resize(sample.busy_ns.len(), Load::default());
            let (die_loads, channel_loads) = loads.split_at_mut(dies);
            let (die_issued, channel_issued) = sample.busy_ns.split_at(dies);
            let time_ns = sample.time_ns.saturating_sub(from_ns) as f64;
            let mut on_channels = vec![(0.0, 0.0); channel_issued.len()];
            let mut done_ns = Vec::with_capacity(dies);
            for (die, (load, &issued_ns)) in die_loads.iter_mut().zip(die_issued).enumerate() {
                let work_ns = load.work_ns(issued_ns);
                let done = work_ns.min(time_ns);
                load.left_ns = work_ns - done;
                done_ns.push(done);
                let channel = machine.channel_of(die as u32) as usize;
                if let Some((work, done_there)) = on_channels.get_mut(channel) {
                    (*work, *done_there) = (*work + work_ns, *done_there + done);
                }
            }
            of_dies.push(&done_ns, time_ns);
            let channels = channel_loads
                .iter_mut()
                .zip(channel_issued)
                .zip(on_channels);
            let done_ns: Vec<f64> = channels
                .map(|((load, &issued_ns), (work, done))| {
                    let work_ns = load.work_ns(issued_ns);
                    let share = if work > 0.0 { done / work } else { 1.0 };
                    let done = (work_ns * share).min(time_ns);
                    load.left_ns = work_ns - done;
                    done
                })
                .collect();
            of_channels.push(&done_ns, time_ns);
            from_ns = sample.time_ns;
        }
        [of_dies, of_channels]
    }

    fn push(&mut self, done_ns: &[f64], time_ns: f64) {
        let n = done_ns.len().max(1) as f64;
        let max_ns = done_ns.iter().copied().fold(0.0, f64::max);
        self.mean
            .push(ratio(done_ns.iter().sum::<f64>() / n, time_ns).map(|share| share.min(1.0)));
        self.max.push(ratio(max_ns, time_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two dies on a channel: one gets work for 150 ns in the first 100 ns, the other for 20 ns after that; a fifth of it is
    /// on the bus.
    #[test]
    fn work_that_does_not_fit_is_carried_on() {
        let sample = |time_ns, a, b, bus| Sample {
            time_ns,
            busy_ns: vec![a, b, bus],
            ..Sample::default()
        };
        let samples = [
            sample(0, 10, 0, 2),
            sample(100, 150, 0, 30),
            sample(200, 150, 20, 34),
            sample(200, 150, 20, 34),
            sample(300, 150, 20, 34),
        ];
        let [dies, channels] = Shares::of(
            &samples,
            &Machine {
                dies: 2,
                ..Machine::default()
            },
        );
        assert_eq!(dies.mean, [None, Some(0.5), Some(0.35), None, Some(0.0)]);
        assert_eq!(dies.max, [None, Some(1.0), Some(0.5), None, Some(0.0)]);
        assert_eq!(channels.max, [None, Some(0.2), Some(0.14), None, Some(0.0)]);
    }
}
