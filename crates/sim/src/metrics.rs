//! What is measured while requests complete (docs/spec/metrics.md, sections 3 and 7).

use crate::backlog::Backlog;
use crate::histogram::{self, Histogram};
use crate::series::Series;

/// Latencies of one kind of request: exact count, mean, deviation and maximum, percentiles from a
/// histogram that is at most 0.1 % too high.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    histogram: Histogram<10>,
    count: u64,
    sum_ns: u128,
    sum_of_squares: u128,
    max_ns: u64,
}

impl Latencies {
    /// Takes one latency.
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Takes the same latency `n` times.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        self.histogram.add(ns, n);
        self.count += n;
        self.sum_ns += u128::from(ns) * u128::from(n);
        // A sum that does not fit stays at its limit: such a device is hours late anyway.
        let squares = (u128::from(ns) * u128::from(ns)).saturating_mul(n.into());
        self.sum_of_squares = self.sum_of_squares.saturating_add(squares);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Takes all of another.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add_all(&other.histogram);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum, ns.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Largest, ns.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Mean, ns; none of nothing.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// Population standard deviation, ns.
    pub fn deviation_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        let mean_square = self.sum_of_squares as f64 / self.count as f64;
        Some((mean_square - mean * mean).max(0.0).sqrt())
    }

    /// The `ceil(q/100 * n)`-th smallest, ns.
    pub fn percentile_ns(&self, q: f64) -> Option<u64> {
        let ranked_ns = self.histogram.ranked_ns(histogram::rank(q, self.count));
        ranked_ns.map(|ns| ns.min(self.max_ns))
    }

    /// The distribution as steps `(latency ns, share of requests at or below it)`.
    pub fn cumulative(&self) -> Vec<(u64, f64)> {
        let mut below = 0;
        let mut steps = Vec::new();
        for (end_ns, n) in self.histogram.classes() {
            below += n;
            steps.push((end_ns.min(self.max_ns), below as f64 / self.count as f64));
        }
        thin(steps)
    }
}

/// At most about 400 steps, the last one kept: more do not show in a plot.
fn thin(steps: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    let every = steps.len().div_ceil(400).max(1);
    let last = steps.len().saturating_sub(1);
    steps
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % every == 0 || *i == last)
        .map(|(_, step)| step)
        .collect()
}

/// Count, sum and maximum, for kinds that nobody asks percentiles of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brief {
    /// How many.
    pub count: u64,
    /// Sum, ns.
    pub sum_ns: u128,
    /// Largest, ns.
    pub max_ns: u64,
}

impl Brief {
    /// Takes one.
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Takes the same `n` times.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        self.count += n;
        self.sum_ns += u128::from(ns) * u128::from(n);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Mean, ns.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

/// What is measured of one read or write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Whether it is a write.
    pub is_write: bool,
    /// From arrival to completion, ns.
    pub response_ns: u64,
    /// From first start to completion, ns.
    pub service_ns: u64,
    /// From arrival to first start, ns.
    pub queue_ns: u64,
    /// From issue to completion, ns.
    pub busy_ns: u64,
}

/// Everything measured about requests.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// The latest measurement and how often it came in a row: on an idle device most requests take the same
    /// time, and a histogram need not be told one by one. [`Metrics::flush`] takes them in.
    latest: (Measured, u64),
    /// Responses of reads.
    pub reads: Latencies,
    /// Responses of writes.
    pub writes: Latencies,
    /// Responses of trims.
    pub trims: Brief,
    /// Responses of flushes.
    pub flushes: Brief,
    /// Service times of reads and writes.
    pub service: Brief,
    /// Queueing times of reads and writes.
    pub queue: Brief,
    /// Completion minus issue, summed over writes.
    pub write_busy_ns: u128,
    /// Bytes that reads ask for.
    pub read_bytes: u64,
    /// Bytes that writes ask for.
    pub write_bytes: u64,
    /// Arrival of the first request.
    pub first_arrival_ns: Option<u64>,
    /// Latest completion.
    pub last_completion_ns: u64,
    /// Reads of old content for partly written pages.
    pub partial_write_reads: u64,
    /// Parts beyond the first of requests that were cut.
    pub cuts: u64,
    /// Requests that have arrived and are not complete.
    pub(crate) backlog: Backlog,
    /// Over time.
    pub series: Series,
}

impl Metrics {
    /// Takes the times of a read or write.
    #[inline(always)]
    pub fn measure(&mut self, measured: Measured) {
        if self.latest.0 == measured {
            self.latest.1 += 1;
        } else {
            self.flush();
            self.latest = (measured, 1);
        }
    }

    /// Takes in what [`Metrics::measure`] holds back. To be called before anything is read.
    pub fn flush(&mut self) {
        let (m, n) = std::mem::take(&mut self.latest);
        if n == 0 {
            return;
        }
        if m.is_write {
            self.writes.record_n(m.response_ns, n);
            self.write_busy_ns += u128::from(m.busy_ns) * u128::from(n);
        } else {
            self.reads.record_n(m.response_ns, n);
        }
        self.service.record_n(m.service_ns, n);
        self.queue.record_n(m.queue_ns, n);
        self.series.completed(m.response_ns, n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_of_the_definitions() {
        let mut l = Latencies::default();
        [1, 2, 3, 4].into_iter().for_each(|ns| l.record(ns));
        assert_eq!(l.mean_ns(), Some(2.5));
        assert!((l.deviation_ns().unwrap() - 1.118_034).abs() < 1e-6);
        let at = |q| l.percentile_ns(q).unwrap();
        assert_eq!((at(50.0), at(90.0), at(99.0)), (2, 4, 4));
        assert_eq!(Latencies::default().percentile_ns(50.0), None);
    }
}
