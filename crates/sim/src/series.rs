//! How a run goes over time: samples that keep their peaks, however few of them are left.

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
    pub responses: Window,
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
    /// Time of the operations issued so far, by die.
    pub die_busy_ns: Vec<u64>,
    /// Their time on the bus, by channel.
    pub channel_busy_ns: Vec<u64>,
    /// The scheme's own values.
    pub observed: Vec<f64>,
}

impl Sample {
    /// One sample for this one and the next: totals of the later one, sums as sums, peaks as peaks.
    fn merged(self, next: Self) -> Self {
        Self {
            backlog_max: self.backlog_max.max(next.backlog_max),
            responses: self.responses.merged(next.responses),
            flush_max_ns: self.flush_max_ns.max(next.flush_max_ns),
            ..next
        }
    }
}

/// Responses of some stretch of the run: count, sum and maximum are exact, percentiles up to 1/32 too high.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// How many.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: u128,
    /// The longest, ns.
    pub max_ns: u64,
    /// How many are in each class that has any, by class.
    classes: Vec<(u16, u64)>,
}

impl Window {
    fn merged(self, next: Self) -> Self {
        let mut classes = self.classes;
        classes.extend(next.classes);
        classes.sort_unstable_by_key(|&(class, _)| class);
        classes.dedup_by(|from, into| {
            let same = from.0 == into.0;
            into.1 += if same { from.1 } else { 0 };
            same
        });
        Self {
            count: self.count + next.count,
            sum_ns: self.sum_ns + next.sum_ns,
            max_ns: self.max_ns.max(next.max_ns),
            classes,
        }
    }

    /// The `ceil(q/100 * n)`-th smallest response, ns; up to 1/32 too high, never above the longest.
    pub fn percentile_ns(&self, q: f64) -> Option<u64> {
        let rank = ((q / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let class = self.classes.iter().find(|&&(_, n)| {
            below += n;
            below >= rank
        });
        class.map(|&(class, _)| class_end_ns(class.into()).min(self.max_ns))
    }
}

/// Classes of responses: numbers below 32 have their own, above that every octave has 32.
const CLASS_BITS: u32 = 5;
const CLASSES: usize = (65 - CLASS_BITS as usize) << CLASS_BITS;

#[inline(always)]
pub(crate) fn class_of(ns: u64) -> usize {
    let octave = (63 - (ns | 1).leading_zeros()).saturating_sub(CLASS_BITS);
    ((octave as usize) << CLASS_BITS) + (ns >> octave) as usize
}

/// The largest time in a class, ns.
pub(crate) fn class_end_ns(class: usize) -> u64 {
    let octave = (class >> CLASS_BITS).saturating_sub(1);
    let first = (class - (octave << CLASS_BITS)) as u64;
    // The class above the last one begins past 2^64.
    ((u128::from(first) + 1 << octave) - 1) as u64
}

/// The window in work.
#[derive(Clone, Debug)]
struct Open {
    count: u64,
    sum_ns: u128,
    max_ns: u64,
    classes: Box<[u64; CLASSES]>,
    /// One bit a class that has any: a sample looks at these alone.
    used: [u64; CLASSES / 64],
    flush_max_ns: u64,
    backlog_max: u64,
}

impl Default for Open {
    fn default() -> Self {
        Self {
            count: 0,
            sum_ns: 0,
            max_ns: 0,
            classes: Box::new([0; CLASSES]),
            used: [0; CLASSES / 64],
            flush_max_ns: 0,
            backlog_max: 0,
        }
    }
}

impl Open {
    /// What is in it, and an empty one.
    fn close(&mut self) -> Window {
        let mut classes = Vec::new();
        for (i, word) in self.used.iter_mut().enumerate() {
            while *word != 0 {
                let class = i * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                classes.push((class as u16, std::mem::take(&mut self.classes[class])));
            }
        }
        Window {
            count: std::mem::take(&mut self.count),
            sum_ns: std::mem::take(&mut self.sum_ns),
            max_ns: std::mem::take(&mut self.max_ns),
            classes,
        }
    }
}

/// A time series that never grows beyond a few hundred samples: when it is full, every two become one and
/// the step doubles.
#[derive(Clone, Debug)]
pub struct Series {
    /// The samples.
    pub samples: Vec<Sample>,
    /// Names of the scheme's values.
    pub observed_names: Vec<&'static str>,
    /// Requests from one sample to the next.
    pub every: u64,
    open: Open,
}

/// Most samples of a series.
const SAMPLES_MAX: usize = 512;

impl Default for Series {
    fn default() -> Self {
        Self {
            samples: Vec::new(),
            observed_names: Vec::new(),
            every: 64,
            open: Open::default(),
        }
    }
}

impl Series {
    /// So many reads and writes have completed with that response.
    pub fn completed(&mut self, response_ns: u64, n: u64) {
        let (open, class) = (&mut self.open, class_of(response_ns));
        open.count += n;
        open.sum_ns += u128::from(response_ns) * u128::from(n);
        open.max_ns = open.max_ns.max(response_ns);
        open.classes[class] += n;
        open.used[class / 64] |= 1 << (class % 64);
    }

    /// A flush has completed with that response.
    pub fn flushed(&mut self, response_ns: u64) {
        self.open.flush_max_ns = self.open.flush_max_ns.max(response_ns);
    }

    /// So many requests have arrived and are not complete.
    pub fn looked(&mut self, backlog: u64) {
        self.open.backlog_max = self.open.backlog_max.max(backlog);
    }

    /// Appends a sample and closes the window.
    pub fn push(&mut self, sample: Sample) {
        self.samples.push(Sample {
            responses: self.open.close(),
            flush_max_ns: std::mem::take(&mut self.open.flush_max_ns),
            backlog_max: std::mem::take(&mut self.open.backlog_max).max(sample.backlog),
            ..sample
        });
        if self.samples.len() < SAMPLES_MAX {
            return;
        }
        let halves = std::mem::take(&mut self.samples);
        let mut pairs = halves.into_iter();
        while let (Some(a), Some(b)) = (pairs.next(), pairs.next()) {
            self.samples.push(a.merged(b));
        }
        self.every *= 2;
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
        let completed: u64 = samples.iter().map(|s| s.responses.count).sum();
        let longest = samples.iter().map(|s| s.responses.max_ns).max();
        assert_eq!((completed, longest), (10_000, Some(9_999)));
        assert_eq!(samples.iter().map(|s| s.backlog_max).max(), Some(77));
        assert_eq!(samples.iter().map(|s| s.flush_max_ns).max(), Some(88));
    }

    #[test]
    fn classes_follow_each_other_without_a_gap() {
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
        assert_eq!(class_end_ns(CLASSES - 1), u64::MAX);
        for class in 0..CLASSES - 1 {
            let end_ns = class_end_ns(class);
            assert_eq!((class_of(end_ns), class_of(end_ns + 1)), (class, class + 1));
            let begin_ns = if class == 0 {
                0
            } else {
                class_end_ns(class - 1) + 1
            };
            assert!((end_ns - begin_ns) <= end_ns / 32, "{begin_ns} {end_ns}");
        }
    }

    #[test]
    fn percentiles_of_merged_windows_are_those_of_all_responses() {
        let (mut series, mut all) = (Series::default(), Vec::new());
        for i in 0..600_u64 {
            for j in 0..10 {
                let ns = (i * 7919 + j * 104_729) % 1_000_003;
                series.completed(ns, 1);
                all.push(ns);
            }
            series.push(Sample::default());
        }
        let samples = std::mem::take(&mut series.samples).into_iter();
        let whole = samples.reduce(Sample::merged).expect("samples").responses;
        all.sort_unstable();
        for (q, rank) in [(50.0, 3_000), (99.0, 5_940), (99.9, 5_994), (100.0, 6_000)] {
            let (exact, told) = (all[rank - 1], whole.percentile_ns(q).expect("some"));
            assert!(
                told >= exact && told - exact <= exact / 32,
                "{q}: {told} {exact}"
            );
        }
        assert_eq!(Window::default().percentile_ns(99.0), None);
    }
}
