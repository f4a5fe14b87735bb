//! The results.

use serde::{Deserialize, Serialize};

/// The statistics of a trace. Shares are between 0 and 1; what has no value (the mean size of no
/// reads) is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Requests of all kinds.
    pub requests: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Trim (discard) requests.
    pub trims: u64,
    /// Write-zeroes requests; they count neither as writes nor as trims.
    pub write_zeroes: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Reads over reads and writes.
    pub read_share: Option<f64>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes trimmed (overlaps counted each time).
    pub bytes_trimmed: u64,
    /// Bytes of write-zeroes requests.
    pub bytes_zeroed: u64,
    /// Mean bytes of a read.
    pub mean_read_bytes: Option<f64>,
    /// Mean bytes of a write.
    pub mean_write_bytes: Option<f64>,
    /// Latest minus earliest arrival, in nanoseconds.
    pub duration_ns: u64,
    /// Duration over the number of distances between requests, in nanoseconds.
    pub mean_gap_ns: Option<f64>,
    /// Median distance of two neighbouring requests, in nanoseconds, exact to 1/2048; a request with a
    /// time before its neighbour's has distance 0.
    pub median_gap_ns: Option<u64>,
    /// Requests with a time before that of the request before them.
    pub backwards: u64,
    /// The page size that the page counts are in.
    pub page_bytes: u32,
    /// Distinct pages that a read or write touches, volume by volume.
    pub footprint_pages: u64,
    /// The footprint in bytes: pages times page size.
    pub footprint_bytes: u64,
    /// Highest byte address (exclusive) of a read or write on any volume.
    pub device_span: u64,
    /// Page writes `T`: a write counts once for each page that it touches.
    pub page_writes: u64,
    /// Distinct pages written.
    pub distinct_pages_written: u64,
    /// Page writes over distinct pages written; 1 means that nothing is overwritten.
    pub write_reuse: Option<f64>,
    /// Distinct pages written over the pages of the device, if these were given.
    pub written_share_of_device: Option<f64>,
    /// Reads that start where a recent read or write ended.
    pub sequential_reads: u64,
    /// Writes that start where a recent read or write ended.
    pub sequential_writes: u64,
    /// Sequential requests over reads and writes.
    pub sequential_share: Option<f64>,
    /// The write intervals.
    pub intervals: Intervals,
    /// What a second chance in a log area would do, by its size.
    pub second_chances: Vec<SecondChance>,
    /// The pages by class.
    pub classes: Classes,
    /// The write skew, by growing share of pages.
    pub skew: Vec<SkewPoint>,
    /// The unit of `write_sizes`, in bytes.
    pub size_unit: u32,
    /// Writes by size, smallest first; empty if not asked for.
    pub write_sizes: Vec<SizeClass>,
    /// Volume by volume, by number.
    pub volumes: Vec<VolumeStatistics>,
    /// Stream by stream, by number; writes without one are in none.
    pub streams: Vec<StreamStatistics>,
}

/// The distribution of write intervals: for two consecutive writes of a page, the number of page
/// writes to other pages in between.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// All intervals.
    pub number: u64,
    /// Pages with at least one interval.
    pub pages: u64,
    /// Mean of all intervals.
    pub mean: Option<f64>,
    /// The log window that was asked for, in page writes.
    pub log_window: Option<u64>,
    /// Intervals below the log window.
    pub within_log_window: Option<u64>,
    /// The distribution, cumulative.
    pub bounds: Vec<IntervalBound>,
}

/// A point of the two cumulative distributions of write intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalBound {
    /// The bound, included.
    pub bound: u64,
    /// Intervals of at most the bound (of [`Intervals::number`]).
    pub by_write: u64,
    /// Pages with a mean interval of at most the bound (of [`Intervals::pages`]).
    pub by_page: u64,
}

/// A log area of one size: how many of the pages that outlive a log window die in the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondChance {
    /// The size in percent of the pages touched, if it was given so.
    pub percent: Option<f64>,
    /// The log window: page writes that the log area takes, cut to 11 significant bits.
    pub log_window: u64,
    /// Page writes whose page is not written again in the log window behind them: survivors.
    pub survivors: u64,
    /// Survivors whose page is written again in the log window after that.
    pub dying: u64,
    /// Dying survivors over survivors.
    pub dying_share: Option<f64>,
}

/// Written pages by their mean write interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// A mean below this is hot.
    pub hot_below: u64,
    /// A mean above this is cold.
    pub cold_above: u64,
    /// Hot pages.
    pub hot: u64,
    /// Pages between, both thresholds included.
    pub warm: u64,
    /// Cold pages.
    pub cold: u64,
    /// Pages written only once.
    pub once: u64,
}

/// A point of the write skew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SkewPoint {
    /// The share of the pages written, most written first.
    pub share_of_pages: f64,
    /// That share in pages, rounded down.
    pub pages: u64,
    /// Their page writes.
    pub page_writes: u64,
}

/// The writes of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeClass {
    /// The size in units.
    pub size: u64,
    /// Write requests of this size.
    pub requests: u64,
    /// Units they wrote.
    pub unit_writes: u64,
    /// Distinct units they wrote.
    pub distinct_units: u64,
    /// Sum over these requests of the length, in units, of the original request that each belongs to.
    pub original_sum: u64,
}

impl SizeClass {
    /// The mean number of updates of a unit within the class (LAST, Fig. 5(a)).
    pub fn update_frequency(&self) -> f64 {
        self.unit_writes as f64 / self.distinct_units.max(1) as f64 - 1.0
    }

    /// The mean length of the original requests, in units (LAST, Fig. 5(b)).
    pub fn mean_original(&self) -> f64 {
        self.original_sum as f64 / self.requests.max(1) as f64
    }
}

/// One volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeStatistics {
    /// Its number.
    pub volume: u32,
    /// Requests of all kinds.
    pub requests: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Distinct pages that a read or write touches.
    pub footprint_pages: u64,
    /// Highest byte address (exclusive) of a read or write.
    pub span: u64,
}

/// The writes that name a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamStatistics {
    /// Its number.
    pub stream: u32,
    /// Write requests.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
}
