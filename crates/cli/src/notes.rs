//! Remarks on results that a reader should not have to find out: why nothing was collected, and whether
//! the device kept up.

use floatgate_sim::config::Arrivals;
use floatgate_sim::record::Record;

use crate::config::Settings;
use crate::config::resolve::Plan;
use crate::table::{bytes, count, short, some};

/// The latest arrival of a run, seconds after the first.
pub fn span_s(first_ns: u64, last_ns: u64, plan: &Plan) -> f64 {
    last_ns.saturating_sub(first_ns) as f64 / 1e9 / plan.host.speed
}

/// What a pass over the trace has found, for the remarks.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Seconds from the first to the last arrival, as the run plays them.
    pub span_s: f64,
    /// Requests of which a part lies beyond the device and was wrapped to its begin.
    pub wrapped: u64,
    /// How long the writes are.
    pub writes: WriteSizes,
}

/// Write requests by their length in pages.
#[derive(Clone, Copy, Debug)]
pub struct WriteSizes {
    /// By pages; the last are as long or longer.
    by_pages: [u64; Self::CLASSES],
}

impl WriteSizes {
    /// No threshold of a scheme is longer.
    const CLASSES: usize = 129;

    /// Takes a write of so many pages.
    pub fn add(&mut self, pages: u64) {
        self.by_pages[(pages as usize).min(Self::CLASSES - 1)] += 1;
    }

    /// The length that most writes have, in pages, if most are longer than a threshold.
    fn usual_if_above(&self, threshold: u64) -> Option<usize> {
        let longer = self
            .by_pages
            .iter()
            .skip(threshold as usize + 1)
            .sum::<u64>();
        let is_most = 2 * longer > self.by_pages.iter().sum::<u64>();
        let usual = (0..Self::CLASSES).max_by_key(|&pages| self.by_pages[pages]);
        usual.filter(|&pages| is_most && pages as u64 > threshold)
    }
}

impl Default for WriteSizes {
    fn default() -> Self {
        Self {
            by_pages: [0; Self::CLASSES],
        }
    }
}

/// The remarks on some records of one device and one trace.
pub fn of(records: &[&Record], plan: &Plan, settings: &Settings, seen: &Seen) -> Vec<String> {
    let span_s = seen.span_s;
    let mut notes = plan.changes(settings);
    notes.extend((seen.wrapped > 0).then(|| {
        format!(
            "{} went beyond the end of the device and on from its begin (host.beyond = \"wrap\"): \
             addresses that the trace keeps apart fall on the same pages.",
            some(seen.wrapped, "request")
        )
    }));
    notes.extend(nothing_collected(records, plan));
    notes.extend(taken_for_sequential(records, plan, &seen.writes));
    notes.extend(fell_behind(records, span_s));
    notes.extend(not_settled(records));
    notes
}

fn names(records: &[&Record]) -> String {
    let names: Vec<&str> = records.iter().map(|record| &*record.scheme).collect();
    names.join(", ")
}

fn nothing_collected(records: &[&Record], plan: &Plan) -> Option<String> {
    let none: Vec<&Record> = records
        .iter()
        .copied()
        .filter(|record| record.derived.erases == 0 && record.derived.copies == 0)
        .collect();
    let first = none.first()?;
    let written = first.counters.host.page_writes;
    let device = &plan.device;
    let pages =
        u64::from(device.dies) * u64::from(device.blocks) * u64::from(device.part.pages_per_block);
    let full = plan.start == floatgate_core::Start::Full;
    let erased = if full {
        pages - device.logical_pages
    } else {
        pages
    };
    let why = if written == 0 {
        "the trace writes nothing".to_string()
    } else if written <= erased {
        format!(
            "the host wrote {} pages and {} were erased at the start",
            count(written),
            count(erased)
        )
    } else {
        format!(
            "the host wrote {} pages, and what they replaced went without copies",
            count(written)
        )
    };
    Some(format!(
        "no garbage collection happened in {}: {why}. A longer trace, a smaller device or --set run.ageing=overwrite:1 makes it happen.",
        names(&none)
    ))
}

/// A scheme that tells sequential writes by their length, where nearly all are longer than its threshold.
fn taken_for_sequential(records: &[&Record], plan: &Plan, writes: &WriteSizes) -> Option<String> {
    let above = |record: &&&Record| {
        let threshold = record.options.get("sequential_threshold")?.parse().ok()?;
        Some((threshold, writes.usual_if_above(threshold)?))
    };
    let found = records
        .iter()
        .find_map(|record| Some((record, above(&record)?)));
    found.map(|(record, (threshold, usual))| {
        let page_bytes = f64::from(plan.device.part.page_bytes);
        format!(
            "{} takes writes of more than {threshold} pages for sequential, and the usual write of this trace has {usual} ({}): \
             its log for random writes is hardly used. --scheme {key},{key}:sequential_threshold={usual} shows the difference.",
            record.scheme,
            bytes(usual as f64 * page_bytes),
            key = record.scheme.split(':').next().unwrap_or_default(),
        )
    })
}

/// Requests below which nobody can say whether a device keeps up.
const REQUESTS_TO_JUDGE: u64 = 100;

/// A device that is still busy long after the last arrival did not keep up: its response times say how long
/// the queue grew, not how fast the scheme is.
fn fell_behind(records: &[&Record], span_s: f64) -> Option<String> {
    let slow: Vec<&Record> = records
        .iter()
        .copied()
        .filter(|record| record.time.behind_s.is_some())
        .collect();
    let worst = slow
        .iter()
        .filter_map(|record| record.time.behind_s)
        .fold(0.0, f64::max);
    (!slow.is_empty()).then(|| {
        format!(
            "{} did not keep up with the arrivals ({} s): requests waited up to {} s, so the response times measure the \
             queue. More dies, --set host.speed=0.5, or a closed loop (--set host.arrivals=closed) compare the schemes below saturation.",
            names(&slow),
            short(span_s),
            short(worst)
        )
    })
}

/// Seconds by which a device is behind that did not keep up with the arrivals; none if it did.
pub fn behind_s(record: &Record, plan: &Plan, span_s: f64) -> Option<f64> {
    let time = &record.time;
    let few = time.response.all.count < REQUESTS_TO_JUDGE;
    if plan.host.arrivals == Arrivals::Closed || span_s <= 0.0 || few {
        return None;
    }
    let worst_s = time.response.all.max_us.unwrap_or(0.0) / 1e6;
    let backlog_s = (time.elapsed_s - span_s).max(worst_s);
    (backlog_s > 0.1 * span_s).then_some(backlog_s)
}

fn not_settled(records: &[&Record]) -> Option<String> {
    let unsettled = |record: &&Record| {
        let mut steps = record.ageing.iter();
        steps.any(|step| step.settled == Some(false))
    };
    let unsettled: Vec<&Record> = records.iter().copied().filter(unsettled).collect();
    (!unsettled.is_empty()).then(|| {
        format!("ageing step settle gave up in {}: write amplification still changed by 1 % a device write", names(&unsettled))
    })
}
