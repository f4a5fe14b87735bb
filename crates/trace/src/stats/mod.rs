//! Streaming workload statistics: memory grows with the footprint of the trace, not with its length.
//!
//! Pass every request to [`Stats::add`], then take the [`Statistics`] from [`Stats::finish`]. The integers are
//! exact: page writes are numbered over the whole trace, a write interval counts the page writes to other
//! pages in between (FASTer, section III-A), and requests are reassembled to their original sizes as in
//! LAST, section 3.2 (docs/spec/workload-analysis.md, sections 1 and 2).
//!
//! ```
//! use floatgate_trace::stats::{Stats, StatsOptions};
//! use floatgate_trace::{open_reader, OpenOptions};
//!
//! let mut reader = open_reader("t", Box::new(&b"W 0 1\nW 4 2\nW 0 1\n"[..]), &OpenOptions::default())?;
//! let mut stats = Stats::new(StatsOptions::default());
//! while let Some(request) = reader.next()? {
//!     stats.add(&request);
//! }
//! let result = stats.finish();
//! assert_eq!((result.page_writes, result.distinct_pages_written), (4, 3));
//! # Ok::<(), floatgate_trace::TraceError>(())
//! ```

mod chains;
mod gaps;
mod pages;
mod result;
mod sizes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use result::{
    Classes, IntervalBound, Intervals, SecondChance, SizeClass, SkewPoint, Statistics,
    StreamStatistics, VolumeStatistics,
};

use crate::{Op, Request};
use gaps::{Gaps, Histogram, start_of_step};
use pages::PageTable;
use sizes::Sizes;

/// The size of a log area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogSize {
    /// In percent of the distinct pages that the trace touches.
    Percent(f64),
    /// In pages.
    Pages(u64),
}

impl std::str::FromStr for LogSize {
    type Err = String;

    /// `5%`, or `4096` for pages.
    fn from_str(text: &str) -> Result<Self, String> {
        let size = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse().ok().map(Self::Percent),
            None => crate::parse::number(text.replace('_', "").as_bytes()).map(Self::Pages),
        };
        match size {
            Some(Self::Percent(percent)) if percent > 0.0 && percent <= 1000.0 => {
                Ok(Self::Percent(percent))
            }
            Some(Self::Pages(pages)) if pages > 0 => Ok(Self::Pages(pages)),
            _ => Err(format!(
                "'{text}' is not a size of a log area, as 5% (of the pages touched) or 4096 (pages)"
            )),
        }
    }
}

/// What to count, and in which units.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsOptions {
    /// Bytes of a page: the unit of page writes, intervals, skew and footprint.
    pub page_bytes: u32,
    /// Bytes of the unit of request sizes: 512 for traces in sectors or bytes, the page for traces in
    /// pages.
    pub size_unit: u32,
    /// The bounds at which the distribution of write intervals is taken.
    pub interval_bounds: Vec<u64>,
    /// The log window `M * P` of a scheme, in page writes.
    pub log_window: Option<u64>,
    /// The sizes of log areas for which [`Statistics::second_chances`] is taken.
    pub log_sizes: Vec<LogSize>,
    /// A page is hot if its mean write interval is below this.
    pub hot_below: u64,
    /// A page is cold if its mean write interval is above this.
    pub cold_above: u64,
    /// The shares of the written pages at which the write skew is taken, in hundredths of a percent.
    pub skew_shares: Vec<u32>,
    /// A write continues an original request that was extended at most this many write requests ago.
    pub chain_window: u64,
    /// A request is sequential if it starts where one of this many previous requests ended.
    pub sequential_window: u32,
    /// Whether to count by request size (takes memory for the footprint of each size).
    pub sizes: bool,
    /// The number of pages of the device, for the share of it that is written.
    pub logical_pages: Option<u64>,
}

impl Default for StatsOptions {
    /// Pages of 4,096 bytes, sizes in sectors, the thresholds of the papers' figures.
    fn default() -> Self {
        let mut interval_bounds = vec![0];
        for decade in 0..9 {
            for step in [1, 2, 5] {
                interval_bounds.push(step * 10u64.pow(decade));
            }
        }
        interval_bounds.push(1_000_000_000);
        StatsOptions {
            page_bytes: 4096,
            size_unit: 512,
            interval_bounds,
            log_window: None,
            log_sizes: [3.0, 5.0, 10.0, 20.0, 25.0, 40.0]
                .map(LogSize::Percent)
                .into(),
            hot_below: 100_000,
            cold_above: 500_000,
            skew_shares: vec![100, 500, 1000, 2000, 3000, 4000, 5000, 7500, 10_000],
            chain_window: 32,
            sequential_window: 32,
            sizes: true,
            logical_pages: None,
        }
    }
}

impl StatsOptions {
    /// Sets the thresholds of the classes as multiples of a log window: hot below 1, cold above 2.
    #[must_use]
    pub fn with_log_window(mut self, page_writes: u64) -> Self {
        self.log_window = Some(page_writes);
        self.hot_below = page_writes;
        self.cold_above = page_writes.saturating_mul(2);
        self
    }
}

/// Collects the statistics of a trace.
#[derive(Debug)]
pub struct Stats {
    options: StatsOptions,
    result: Statistics,
    table: PageTable,
    /// Intervals counted between two neighbouring bounds; the last is above all.
    between: Vec<u64>,
    within_window: u64,
    interval_sum: u128,
    /// All intervals, in narrow steps.
    distances: Histogram,
    sizes: Sizes,
    gaps: Gaps,
    /// Where the last requests ended: volume and address, a ring.
    ends: Vec<(u32, u64)>,
    next_end: usize,
    volumes: BTreeMap<u32, VolumeStatistics>,
    streams: BTreeMap<u32, StreamStatistics>,
}

impl Stats {
    /// An empty collector. A page or unit size of 0 means the default.
    pub fn new(mut options: StatsOptions) -> Self {
        if options.page_bytes == 0 {
            options.page_bytes = 4096;
        }
        if options.size_unit == 0 {
            options.size_unit = 512;
        }
        options.interval_bounds.sort_unstable();
        options.interval_bounds.dedup();
        Stats {
            between: vec![0; options.interval_bounds.len() + 1],
            sizes: Sizes::new(options.size_unit, options.chain_window),
            options,
            result: Statistics::default(),
            table: PageTable::default(),
            within_window: 0,
            interval_sum: 0,
            distances: Histogram::default(),
            gaps: Gaps::default(),
            ends: Vec::new(),
            next_end: 0,
            volumes: BTreeMap::new(),
            streams: BTreeMap::new(),
        }
    }

    /// Counts a request.
    pub fn add(&mut self, request: &Request) {
        let result = &mut self.result;
        result.requests += 1;
        self.gaps.add(request.arrival_ns);
        let volume = self.volumes.entry(request.volume).or_default();
        volume.volume = request.volume;
        volume.requests += 1;
        match request.op {
            Op::Read => {
                result.reads += 1;
                result.bytes_read += request.bytes;
                volume.reads += 1;
                volume.bytes_read += request.bytes;
            }
            Op::Write => {
                result.writes += 1;
                result.bytes_written += request.bytes;
                volume.writes += 1;
                volume.bytes_written += request.bytes;
                if let Some(number) = request.stream.number() {
                    let stream = self.streams.entry(number).or_default();
                    stream.stream = number;
                    stream.writes += 1;
                    stream.bytes_written += request.bytes;
                }
            }
            Op::Trim => {
                result.trims += 1;
                result.bytes_trimmed = result.bytes_trimmed.saturating_add(request.bytes);
                return;
            }
            Op::WriteZeroes => {
                result.write_zeroes += 1;
                result.bytes_zeroed = result.bytes_zeroed.saturating_add(request.bytes);
                return;
            }
            Op::Flush => {
                result.flushes += 1;
                return;
            }
        }
        if request.bytes == 0 {
            return;
        }
        let end = request.offset.saturating_add(request.bytes);
        result.device_span = result.device_span.max(end);
        volume.span = volume.span.max(end);
        self.sequential(request, end);
        let page_bytes = u64::from(self.options.page_bytes);
        let (first, last) = (request.offset / page_bytes, (end - 1) / page_bytes);
        if request.op == Op::Read {
            let new = self.table.read(request.volume, first, last);
            self.touched(request.volume, new);
            return;
        }
        self.write(request.volume, first, last);
        if self.options.sizes {
            self.sizes.add(request.volume, request.offset, end);
        }
    }

    /// Numbers the page writes and takes their intervals.
    fn write(&mut self, volume: u32, first: u64, last: u64) {
        let mut t = self.result.page_writes;
        let mut new = 0;
        let bounds = &self.options.interval_bounds;
        let window = self.options.log_window.unwrap_or(0);
        let (between, within) = (&mut self.between, &mut self.within_window);
        let (sum, distances) = (&mut self.interval_sum, &mut self.distances);
        let mut fresh = 0;
        self.table.write(volume, first, last, |page| {
            if !page.touched() {
                new += 1;
            }
            match page.write(t) {
                Some(interval) => {
                    let i = bounds.partition_point(|&bound| bound < interval);
                    between[i] += 1;
                    *within += u64::from(interval < window);
                    *sum += u128::from(interval);
                    distances.add(interval);
                }
                None => fresh += 1,
            }
            t += 1;
        });
        self.result.page_writes = t;
        self.result.distinct_pages_written += fresh;
        self.touched(volume, new);
    }

    fn touched(&mut self, volume: u32, new: u64) {
        self.result.footprint_pages += new;
        if let Some(volume) = self.volumes.get_mut(&volume) {
            volume.footprint_pages += new;
        }
    }

    /// Whether a read or write starts where an earlier one ended.
    fn sequential(&mut self, request: &Request, end: u64) {
        if self.ends.contains(&(request.volume, request.offset)) {
            match request.op {
                Op::Read => self.result.sequential_reads += 1,
                _ => self.result.sequential_writes += 1,
            }
        }
        let window = self.options.sequential_window as usize;
        if self.ends.len() < window {
            self.ends.push((request.volume, end));
        } else if window > 0 {
            self.ends[self.next_end] = (request.volume, end);
            self.next_end = (self.next_end + 1) % window;
        }
    }

    /// The requests counted so far.
    pub fn requests(&self) -> u64 {
        self.result.requests
    }

    /// Memory held by the collector, in bytes, approximately.
    pub fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes() + self.sizes.memory_bytes()
    }

    /// Ends the trace and computes the statistics.
    pub fn finish(mut self) -> Statistics {
        let mut result = std::mem::take(&mut self.result);
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        result.page_bytes = self.options.page_bytes;
        result.size_unit = self.options.size_unit;
        result.read_share = share(result.reads, result.reads + result.writes);
        result.mean_read_bytes = share(result.bytes_read, result.reads);
        result.mean_write_bytes = share(result.bytes_written, result.writes);
        result.footprint_bytes = result
            .footprint_pages
            .saturating_mul(u64::from(self.options.page_bytes));
        result.write_reuse = share(result.page_writes, result.distinct_pages_written);
        result.written_share_of_device = self
            .options
            .logical_pages
            .and_then(|pages| share(result.distinct_pages_written, pages));
        result.sequential_share = share(
            result.sequential_reads + result.sequential_writes,
            result.reads + result.writes,
        );
        result.duration_ns = self.gaps.duration();
        result.backwards = self.gaps.backwards();
        result.mean_gap_ns = share(result.duration_ns, result.requests.saturating_sub(1));
        result.median_gap_ns = self.gaps.median();
        self.intervals(&mut result);
        result.second_chances = self.second_chances(&result);
        self.skew(&mut result);
        if self.options.sizes {
            result.write_sizes = self.sizes.finish();
        }
        result.volumes = self.volumes.into_values().collect();
        result.streams = self.streams.into_values().collect();
        result
    }

    /// The distributions of write intervals and the classes.
    fn intervals(&self, result: &mut Statistics) {
        let bounds = &self.options.interval_bounds;
        let mut by_page = vec![0u64; bounds.len() + 1];
        let classes = &mut result.classes;
        classes.hot_below = self.options.hot_below;
        classes.cold_above = self.options.cold_above;
        let mut pages = 0;
        for page in self.table.written() {
            let Some((sum, number)) = page.mean_interval() else {
                classes.once += 1;
                continue;
            };
            pages += 1;
            // mean <= bound, without division
            let at_most = |bound: u64| u128::from(sum) <= u128::from(bound) * u128::from(number);
            by_page[bounds.partition_point(|&bound| !at_most(bound))] += 1;
            let below = u128::from(sum) < u128::from(self.options.hot_below) * u128::from(number);
            if below {
                classes.hot += 1;
            } else if at_most(self.options.cold_above) {
                classes.warm += 1;
            } else {
                classes.cold += 1;
            }
        }
        let number = self.between.iter().sum();
        let (mut writes, mut means) = (0, 0);
        result.intervals = Intervals {
            number,
            pages,
            mean: (number > 0).then(|| self.interval_sum as f64 / number as f64),
            log_window: self.options.log_window,
            within_log_window: self.options.log_window.map(|_| self.within_window),
            bounds: bounds
                .iter()
                .enumerate()
                .map(|(i, &bound)| {
                    writes += self.between[i];
                    means += by_page[i];
                    IntervalBound {
                        bound,
                        by_write: writes,
                        by_page: means,
                    }
                })
                .collect(),
        };
    }

    /// By size of the log area: page writes that outlive a log window, and those of them that die in the next.
    fn second_chances(&self, result: &Statistics) -> Vec<SecondChance> {
        let of = |&size: &LogSize| {
            let (percent, pages) = match size {
                LogSize::Percent(percent) => {
                    let pages = result.footprint_pages as f64 * percent / 100.0;
                    (Some(percent), pages.floor() as u64)
                }
                LogSize::Pages(pages) => (None, pages),
            };
            // At most 2^62, so that twice as much is a number.
            let log_window = start_of_step(pages.clamp(1, 1 << 62));
            let dead = self.distances.below(log_window);
            let survivors = result.page_writes - dead;
            let dying = self.distances.below(2 * log_window) - dead;
            SecondChance {
                percent,
                log_window,
                survivors,
                dying,
                dying_share: (survivors > 0).then(|| dying as f64 / survivors as f64),
            }
        };
        self.options.log_sizes.iter().map(of).collect()
    }

    /// The share of the page writes that go to the most written pages.
    fn skew(&self, result: &mut Statistics) {
        let mut counts: Vec<u32> = self.table.written().map(|page| page.writes()).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mut shares = self.options.skew_shares.clone();
        shares.sort_unstable();
        shares.dedup();
        let (mut at, mut writes) = (0usize, 0u64);
        for share in shares {
            let pages = (counts.len() as u128 * u128::from(share.min(10_000)) / 10_000) as usize;
            writes += counts[at..pages].iter().map(|&n| u64::from(n)).sum::<u64>();
            at = pages;
            result.skew.push(SkewPoint {
                share_of_pages: f64::from(share) / 10_000.0,
                pages: pages as u64,
                page_writes: writes,
            });
        }
    }
}
