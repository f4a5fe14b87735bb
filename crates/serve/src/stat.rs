//! What a device has done so far, as it is told to whoever asks.

use std::collections::BTreeMap;

use floatgate_core::report::ByCause;
use floatgate_device::drive::Figures;
use floatgate_device::drive::cache::CacheFigures;
use floatgate_device::power::ChipCounts;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest time that is told apart: an hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
/// Digits of a time.
const DIGITS: u8 = 2;

/// Kinds of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    WriteZeroes,
    Trim,
    Flush,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Read, "read"),
    (Kind::Write, "write"),
    (Kind::WriteZeroes, "write_zeroes"),
    (Kind::Trim, "trim"),
    (Kind::Flush, "flush"),
];

/// Requests as they end.
#[derive(Debug)]
pub(crate) struct Ended {
    kinds: [OfKind; 5],
    /// How late the machine was, where requests take the time of a flash.
    lag_max_ns: u64,
    late: u64,
}

#[derive(Debug)]
struct OfKind {
    bytes: u64,
    errors: u64,
    latency_ns: Histogram<u64>,
    latency_sum_ns: u64,
}

impl Ended {
    pub fn new() -> Self {
        let histogram = || Histogram::new_with_max(LATENCY_MAX_NS, DIGITS);
        Self {
            kinds: [(); 5].map(|()| OfKind {
                bytes: 0,
                errors: 0,
                latency_ns: histogram().expect("bounds that a histogram has"),
                latency_sum_ns: 0,
            }),
            lag_max_ns: 0,
            late: 0,
        }
    }

    /// A request has ended.
    pub fn note(&mut self, kind: Kind, bytes: u64, latency_ns: u64, is_done: bool) {
        let of = &mut self.kinds[kind as usize];
        of.bytes += if is_done { bytes } else { 0 };
        of.errors += u64::from(!is_done);
        of.latency_sum_ns = of.latency_sum_ns.saturating_add(latency_ns);
        of.latency_ns.saturating_record(latency_ns);
    }

    /// A request could not be answered when the modelled flash would have.
    pub fn note_lag(&mut self, lag_ns: u64) {
        self.late += 1;
        self.lag_max_ns = self.lag_max_ns.max(lag_ns);
    }

    pub fn requests(&self) -> BTreeMap<String, Requests> {
        let told = KINDS.map(|(kind, name)| {
            let of = &self.kinds[kind as usize];
            let at = |quantile| of.latency_ns.value_at_quantile(quantile);
            let requests = Requests {
                requests: of.latency_ns.len(),
                bytes: of.bytes,
                errors: of.errors,
                latency_sum_ns: of.latency_sum_ns,
                p50_ns: at(0.5),
                p90_ns: at(0.9),
                p99_ns: at(0.99),
                p999_ns: at(0.999),
                max_ns: of.latency_ns.max(),
            };
            (name.to_string(), requests)
        });
        told.into()
    }

    pub fn lag(&self) -> Lag {
        Lag {
            late_requests: self.late,
            max_ns: self.lag_max_ns,
        }
    }
}

/// Requests of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Requests {
    /// Those that were answered.
    pub requests: u64,
    /// Bytes of those that were done.
    pub bytes: u64,
    /// Those that failed.
    pub errors: u64,
    /// Sum of the times that they took.
    pub latency_sum_ns: u64,
    /// Median of these times.
    pub p50_ns: u64,
    /// 90 % took no longer.
    pub p90_ns: u64,
    /// 99 % took no longer.
    pub p99_ns: u64,
    /// 99.9 % took no longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// How far the machine was behind the modelled flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Lag {
    /// Requests that were answered later than the flash would have.
    pub late_requests: u64,
    /// The most that one was late.
    pub max_ns: u64,
}

/// Operations of the scheme, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Operations {
    /// For data of the host.
    pub host: u64,
    /// For moves of valid pages.
    pub gc: u64,
    /// For mapping information.
    pub map: u64,
}

impl Operations {
    fn add(&mut self, more: &ByCause) {
        self.host += more.host;
        self.gc += more.gc;
        self.map += more.map;
    }
}

/// The flash, as the scheme used it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SchemeOperations {
    /// Pages read.
    pub reads: Operations,
    /// Spare areas read.
    pub oob_reads: Operations,
    /// Pages programmed.
    pub programs: Operations,
    /// Blocks erased.
    pub erases: Operations,
}

/// What was done in all lives of the device since it was put up: power cuts do not set it to zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub scheme: SchemeOperations,
    pub chip: ChipCounts,
}

impl Totals {
    pub fn with(mut self, figures: &Figures) -> Self {
        self.scheme.reads.add(&figures.scheme.reads);
        self.scheme.oob_reads.add(&figures.scheme.oob_reads);
        self.scheme.programs.add(&figures.scheme.programs);
        self.scheme.erases.add(&figures.scheme.erases);
        self.chip.reads += figures.chip.reads;
        self.chip.oob_reads += figures.chip.oob_reads;
        self.chip.programs += figures.chip.programs;
        self.chip.erases += figures.chip.erases;
        self.chip.marks += figures.chip.marks;
        self
    }
}

/// Blocks and what they have been through.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Wear {
    /// Spare blocks that are left.
    pub spares_left: u64,
    /// Bad blocks.
    pub bad_blocks: u64,
    /// Good blocks.
    pub good_blocks: u64,
    /// Erases of the good block with the fewest.
    pub erases_min: u32,
    /// Mean erases of a good block.
    pub erases_mean: f64,
    /// Erases of the good block with the most.
    pub erases_max: u32,
}

/// The answer to `stat`. Counts begin when the device is put up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stat {
    /// Key of the scheme.
    pub scheme: String,
    /// Bytes of the device.
    pub device_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// How long it has been up.
    pub uptime_ns: u64,
    /// Whether the power is on.
    pub is_on: bool,
    /// Power cuts so far.
    pub power_cuts: u64,
    /// Why nothing can be written, if so.
    pub read_only: Option<String>,
    /// Requests by kind.
    pub requests: BTreeMap<String, Requests>,
    /// Flushes that the device has done: one may serve several that asked.
    pub flushes_done: u64,
    /// Operations of the scheme.
    pub scheme_operations: SchemeOperations,
    /// Operations of the chip, those below the scheme included.
    pub chip_operations: ChipCounts,
    /// Bytes programmed by the chip for each byte that clients wrote; none before the first.
    pub write_amplification: Option<f64>,
    /// Spare blocks and wear; none while the power is off.
    pub wear: Option<Wear>,
    /// The write cache and the read cache, if there is any and the power is on.
    pub cache: Option<CacheFigures>,
    /// Where requests take the time of a flash: how late the machine was.
    pub lag: Option<Lag>,
}
