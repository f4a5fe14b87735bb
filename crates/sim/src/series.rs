//! How a run goes over time: samples that keep their peaks, however few of them are left.

use crate::histogram::{self, Histogram};
use crate::merges::MergeKinds;

/// One point of the time series: totals since the start of the run, and what came since the sample before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Requests issued so far.
    pub requests: u64,
    /// Issue time of the last, ns.
    pub time_ns: u64,
    /// Requests that had arrived and were not complete when the last one arrived, itself included.
    pub backlog: u64,
    /// The most of them at any look since the sample before.
    pub backlog_max: u64,
    /// Reads and writes completed since the sample before.
    pub completed: u64,
    /// Sum of their responses, ns.
    pub response_sum_ns: u128,
    /// The longest of their responses, ns.
    pub response_max_ns: u64,
    /// Flushes completed so far.
    pub flushes: u64,
    /// The longest response of the flushes since the sample before, ns.
    pub flush_max_ns: u64,
    /// Bytes that reads have asked for so far.
    pub read_bytes: u64,
    /// Bytes that writes have asked for so far.
    pub write_bytes: u64,
    /// Host pages written so far.
    pub host_programs: u64,
    /// Pages programmed so far, all causes.
    pub programs: u64,
    /// Erases so far.
    pub erases: u64,
    /// Merges so far.
    pub merges: MergeKinds,
    /// Time of the operations issued so far: of each die, then on the bus of each channel.
    pub busy_ns: Vec<u64>,
    /// The scheme's own values.
    pub observed: Vec<f64>,
}

impl Sample {
    /// One sample for this one and the next: totals of the later one, sums as sums, peaks as peaks.
    fn merged(self, next: Self) -> Self {
        Self {
            backlog_max: self.backlog_max.max(next.backlog_max),
            completed: self.completed + next.completed,
            response_sum_ns: self.response_sum_ns + next.response_sum_ns,
            response_max_ns: self.response_max_ns.max(next.response_max_ns),
            flush_max_ns: self.flush_max_ns.max(next.flush_max_ns),
            ..next
        }
    }
}

/// How the responses of some stretch of the run are distributed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Requests issued before its end.
    pub requests: u64,
    /// Reads and writes completed in it, and the longest response, ns.
    count: u64,
    max_ns: u64,
    histogram: Histogram<5>,
}

impl Window {
    fn merged(mut self, next: Self) -> Self {
        self.histogram.add_all(&next.histogram);
        Self {
            requests: next.requests,
            count: self.count + next.count,
            max_ns: self.max_ns.max(next.max_ns),
            histogram: self.histogram,
        }
    }

    /// The `ceil(q/100 * n)`-th smallest response, ns; up to 1/32 too high, never above the longest.
    pub fn percentile_ns(&self, q: f64) -> Option<u64> {
        let ranked_ns = self.histogram.ranked_ns(histogram::rank(q, self.count));
        ranked_ns.map(|ns| ns.min(self.max_ns))
    }
}

/// What came since the last sample, and how the responses since the last window are distributed.
#[derive(Clone, Debug, Default)]
struct Open {
    completed: u64,
    response_sum_ns: u128,
    response_max_ns: u64,
    flush_max_ns: u64,
    backlog_max: u64,
    window: Window,
}

/// A time series that never grows beyond a few hundred samples: when it is full, every two become one and
/// the step doubles.
#[derive(Clone, Debug)]
pub struct Series {
    /// The samples.
    pub samples: Vec<Sample>,
    /// Distributions, each of so many samples that percentiles say something.
    pub windows: Vec<Window>,
    /// Names of the scheme's values.
    pub observed_names: Vec<&'static str>,
    /// Requests from one sample to the next.
    pub every: u64,
    open: Open,
}

/// Looks at the backlog from one sample to the next, and the fewest and most requests between two.
const LOOKS: u64 = 2;
const LOOK_MIN: u64 = 64;
const LOOK_MAX: u64 = 4096;

/// Requests between samples at first.
const EVERY_MIN: u64 = 128;
/// Most samples of a series.
const SAMPLES_MAX: usize = 512;
/// Samples from one window to the next.
const WINDOW_SAMPLES: usize = 8;

impl Default for Series {
    fn default() -> Self {
        Self {
            samples: Vec::new(),
            windows: Vec::new(),
            observed_names: Vec::new(),
            every: EVERY_MIN,
            open: Open::default(),
        }
    }
}

impl Series {
    /// So many reads and writes have completed with that response.
    #[inline]
    pub fn completed(&mut self, response_ns: u64, n: u64) {
        let open = &mut self.open;
        open.completed += n;
        open.response_sum_ns += u128::from(response_ns) * u128::from(n);
        open.response_max_ns = open.response_max_ns.max(response_ns);
        open.window.histogram.add(response_ns, n);
    }

    /// A flush has completed with that response.
    pub fn flushed(&mut self, response_ns: u64) {
        self.open.flush_max_ns = self.open.flush_max_ns.max(response_ns);
    }

    /// Requests from one look at the backlog to the next: samples are a multiple of it apart.
    pub fn look_each(&self) -> u64 {
        (self.every / LOOKS).clamp(LOOK_MIN, LOOK_MAX)
    }

    /// So many requests have arrived and are not complete.
    pub fn looked(&mut self, backlog: u64) {
        self.open.backlog_max = self.open.backlog_max.max(backlog);
    }

    /// Appends a sample, with what came since the one before.
    pub fn push(&mut self, sample: Sample) {
        let open = &mut self.open;
        let sample = Sample {
            completed: std::mem::take(&mut open.completed),
            response_sum_ns: std::mem::take(&mut open.response_sum_ns),
            response_max_ns: std::mem::take(&mut open.response_max_ns),
            flush_max_ns: std::mem::take(&mut open.flush_max_ns),
            backlog_max: std::mem::take(&mut open.backlog_max).max(sample.backlog),
            ..sample
        };
        let window = &mut open.window;
        window.requests = sample.requests;
        window.count += sample.completed;
        window.max_ns = window.max_ns.max(sample.response_max_ns);
        self.samples.push(sample);
        if self.samples.len().is_multiple_of(WINDOW_SAMPLES) {
            self.windows.push(std::mem::take(window));
        }
        if self.samples.len() == SAMPLES_MAX {
            halve(&mut self.samples, Sample::merged);
            halve(&mut self.windows, Window::merged);
            self.every *= 2;
        }
    }

    /// The windows, and what came after the last one as one more.
    pub fn all_windows(&self) -> Vec<Window> {
        let rest = self.open.window.clone();
        self.windows.iter().cloned().chain([rest]).collect()
    }
}

/// Makes one of every two.
fn halve<T>(all: &mut Vec<T>, merged: impl Fn(T, T) -> T) {
    let mut pairs = std::mem::take(all).into_iter();
    while let (Some(a), Some(b)) = (pairs.next(), pairs.next()) {
        all.push(merged(a, b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_stays_short_and_keeps_sums_and_peaks() {
        let mut series = Series::default();
        for i in 0..10_000_u64 {
            series.completed(i, 1);
            if i == 4_321 {
                series.looked(77);
                series.flushed(88);
            }
            series.push(Sample {
                requests: i,
                backlog: i % 10,
                ..Sample::default()
            });
        }
        let samples = &series.samples;
        assert!(samples.len() < SAMPLES_MAX);
        let completed: u64 = samples.iter().map(|s| s.completed).sum();
        let longest = samples.iter().map(|s| s.response_max_ns).max();
        assert_eq!((completed, longest), (10_000, Some(9_999)));
        assert_eq!(samples.iter().map(|s| s.backlog_max).max(), Some(77));
        assert_eq!(samples.iter().map(|s| s.flush_max_ns).max(), Some(88));
    }

    #[test]
    fn percentiles_of_merged_windows_are_those_of_all_responses() {
        let (mut series, mut all) = (Series::default(), Vec::new());
        for i in 0..700_u64 {
            for j in 0..10 {
                let ns = (i * 7919 + j * 104_729) % 1_000_003;
                series.completed(ns, 1);
                all.push(ns);
            }
            series.push(Sample::default());
        }
        assert!(series.windows.len() > 8);
        let whole = series.all_windows().into_iter().reduce(Window::merged);
        let whole = whole.expect("windows");
        all.sort_unstable();
        for (q, rank) in [(50.0, 3_500), (99.0, 6_930), (99.9, 6_993), (100.0, 7_000)] {
            let (exact, told) = (all[rank - 1], whole.percentile_ns(q).expect("some"));
            assert!(
                told >= exact && told - exact <= exact / 32,
                "{q}: {told} {exact}"
            );
        }
        assert_eq!(Window::default().percentile_ns(99.0), None);
    }
}
