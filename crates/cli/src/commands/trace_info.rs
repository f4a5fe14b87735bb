//! `floatgate trace info`.

use floatgate_trace::stats::{Statistics, Stats, StatsOptions};
use serde_json::json;

use crate::args::InfoArgs;
use crate::errors::Outcome;
use crate::output;
use crate::table::{Table, bytes, count, micros, percent, short, short_or_dash};
use crate::traces::{About, Choice};

/// Requests read at a time.
const BATCH: usize = 1 << 16;
/// Sizes shown; the others are in the JSON.
const SIZES_SHOWN: usize = 12;
/// Streams shown: as many as a drive may have handles.
const STREAMS_SHOWN: usize = 64;

/// Reads a trace and prints what kind of workload it is.
pub fn run(args: &InfoArgs) -> Outcome<()> {
    let choice = Choice::new(&args.files, &args.read)?;
    let (about, statistics, volume_names) = statistics(args, &choice, &mut || {})?;
    if args.json {
        let statistics = serde_json::to_value(&statistics).unwrap_or_default();
        return output::print_json(&json!({"trace": about.record(), "statistics": statistics}));
    }
    let sections = [
        format!("{}\n", about.describe()),
        overview(&statistics),
        intervals(&statistics),
        second_chances(&statistics),
        skew(&statistics),
        sizes(&statistics),
        volumes(&statistics, &volume_names),
        streams(&statistics),
    ];
    let text: Vec<String> = sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect();
    output::print(&text.join("\n"))
}

/// What kind of workload a trace is, and the names of its volumes. `read` is called now and then meanwhile.
///
/// # Errors
/// If it cannot be read.
pub fn statistics(
    args: &InfoArgs,
    choice: &Choice,
    read: &mut dyn FnMut(),
) -> Outcome<(About, Statistics, Vec<String>)> {
    let mut options = StatsOptions {
        page_bytes: args.read.page_bytes,
        log_sizes: args.log_sizes.clone(),
        ..StatsOptions::default()
    };
    if let Some(window) = args.log_window {
        options = options.with_log_window(window);
    }
    let mut stats = Stats::new(options);
    let mut reader = choice.open()?;
    let mut batch = Vec::with_capacity(BATCH);
    while reader.next_batch(&mut batch, BATCH)? > 0 {
        batch.iter().for_each(|request| stats.add(request));
        batch.clear();
        read();
    }
    let names = reader.volume_names().to_vec();
    Ok((About::of(choice, &reader), stats.finish(), names))
}

fn overview(s: &Statistics) -> String {
    let mut table = Table::new(&["<", "<"]);
    let ns = |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| micros(ns / 1000.0));
    let size = |mean: Option<f64>| mean.map_or_else(|| "-".into(), bytes);
    let kinds = format!(
        "{}: {} reads, {} writes, {} trims, {} write zeroes, {} flushes",
        count(s.requests),
        count(s.reads),
        count(s.writes),
        count(s.trims),
        count(s.write_zeroes),
        count(s.flushes)
    );
    table.row(["requests", &kinds]);
    table.row(["reads of reads and writes", &percent(s.read_share)]);
    table.row([
        "read",
        &format!(
            "{} bytes ({}), mean {}",
            count(s.bytes_read),
            bytes(s.bytes_read as f64),
            size(s.mean_read_bytes)
        ),
    ]);
    table.row([
        "written",
        &format!(
            "{} bytes ({}), mean {}",
            count(s.bytes_written),
            bytes(s.bytes_written as f64),
            size(s.mean_write_bytes)
        ),
    ]);
    if s.bytes_trimmed + s.bytes_zeroed > 0 {
        table.row([
            "trimmed, zeroed",
            &format!(
                "{}, {}",
                bytes(s.bytes_trimmed as f64),
                bytes(s.bytes_zeroed as f64)
            ),
        ]);
    }
    table.row([
        "duration",
        &format!("{} s", short(s.duration_ns as f64 / 1e9)),
    ]);
    table.row([
        "between requests",
        &format!(
            "mean {}, median {}",
            ns(s.mean_gap_ns),
            ns(s.median_gap_ns.map(|ns| ns as f64))
        ),
    ]);
    table.row([
        "footprint",
        &format!(
            "{} ({} pages of {} bytes)",
            bytes(s.footprint_bytes as f64),
            count(s.footprint_pages),
            s.page_bytes
        ),
    ]);
    table.row(["highest address", &bytes(s.device_span as f64)]);
    let reuse = short_or_dash(s.write_reuse);
    table.row([
        "page writes",
        &format!(
            "{} to {} pages: each {reuse} times",
            count(s.page_writes),
            count(s.distinct_pages_written)
        ),
    ]);
    table.row([
        "sequential",
        &format!(
            "{} ({} reads, {} writes)",
            percent(s.sequential_share),
            count(s.sequential_reads),
            count(s.sequential_writes)
        ),
    ]);
    table.render()
}

fn intervals(s: &Statistics) -> String {
    let of = &s.intervals;
    if of.number == 0 {
        return "no page is written twice\n".into();
    }
    let share = |n: u64, all: u64| percent((all > 0).then(|| n as f64 / all as f64));
    let mut table = Table::new(&[
        "write interval up to",
        "of overwrites",
        "of overwritten pages",
    ]);
    let mut shown = u64::MAX;
    for bound in &of.bounds {
        // Bounds that tell nothing new are left out.
        if bound.by_write != shown {
            table.row([
                count(bound.bound),
                share(bound.by_write, of.number),
                share(bound.by_page, of.pages),
            ]);
        }
        shown = bound.by_write;
    }
    let mut out = table.render();
    out.push_str(&format!(
        "(page writes to other pages between two writes of a page; mean {})\n",
        short_or_dash(of.mean)
    ));
    if let (Some(window), Some(within)) = (of.log_window, of.within_log_window) {
        out.push_str(&format!(
            "within a log window of {} pages: {} of overwrites\n",
            count(window),
            share(within, of.number)
        ));
    }
    let c = &s.classes;
    out.push_str(&format!(
        "pages by mean interval: {} hot (below {}), {} warm, {} cold (above {}), {} written once\n",
        count(c.hot),
        count(c.hot_below),
        count(c.warm),
        count(c.cold),
        count(c.cold_above),
        count(c.once)
    ));
    out
}

fn second_chances(s: &Statistics) -> String {
    if s.intervals.number == 0 {
        return String::new();
    }
    let mut table = Table::new(&["log area", "pages", "survivors", "dying", "of survivors"]);
    for of in &s.second_chances {
        table.row([
            of.percent
                .map_or_else(|| "-".into(), |percent| format!("{} %", short(percent))),
            count(of.log_window),
            count(of.survivors),
            count(of.dying),
            percent(of.dying_share),
        ]);
    }
    let mut out = table.render();
    out.push_str(
        "(survivors: page writes still valid after one log window, as many page writes as the log area takes;\n \
         dying: those overwritten in the next: what a second chance saves a merge)\n",
    );
    out
}

fn skew(s: &Statistics) -> String {
    if s.page_writes == 0 {
        return String::new();
    }
    let mut table = Table::new(&["most written pages", "of page writes"]);
    for point in &s.skew {
        let share = point.page_writes as f64 / s.page_writes as f64;
        table.row([percent(Some(point.share_of_pages)), percent(Some(share))]);
    }
    table.render()
}

fn sizes(s: &Statistics) -> String {
    if s.write_sizes.is_empty() {
        return String::new();
    }
    let mut by_requests = s.write_sizes.clone();
    by_requests.sort_by(|a, b| b.requests.cmp(&a.requests).then(a.size.cmp(&b.size)));
    by_requests.truncate(SIZES_SHOWN);
    by_requests.sort_by_key(|class| class.size);
    let mut table = Table::new(&[
        "write size",
        "requests",
        "of writes",
        "updates of a unit",
        "original request",
    ]);
    for class in &by_requests {
        table.row([
            bytes(class.size as f64 * f64::from(s.size_unit)),
            count(class.requests),
            percent(Some(class.requests as f64 / s.writes.max(1) as f64)),
            short(class.update_frequency()),
            bytes(class.mean_original() * f64::from(s.size_unit)),
        ]);
    }
    let left = s.write_sizes.len() - by_requests.len();
    let rest = if left > 0 {
        format!("(and {left} rarer sizes; --json has all)\n")
    } else {
        String::new()
    };
    table.render() + &rest
}

fn volumes(s: &Statistics, names: &[String]) -> String {
    if s.volumes.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(&[
        "<volume",
        "requests",
        "reads",
        "writes",
        "read",
        "written",
        "highest address",
    ]);
    let mut largest = s.volumes.clone();
    largest.sort_by(|a, b| b.requests.cmp(&a.requests).then(a.volume.cmp(&b.volume)));
    for v in largest.iter().take(SIZES_SHOWN) {
        table.row([
            names
                .get(v.volume as usize)
                .cloned()
                .unwrap_or_else(|| v.volume.to_string()),
            count(v.requests),
            count(v.reads),
            count(v.writes),
            bytes(v.bytes_read as f64),
            bytes(v.bytes_written as f64),
            bytes(v.span as f64),
        ]);
    }
    let left = s.volumes.len().saturating_sub(SIZES_SHOWN);
    let rest = if left > 0 {
        format!("(and {left} smaller volumes; --json has all)\n")
    } else {
        String::new()
    };
    table.render() + &rest
}

fn streams(s: &Statistics) -> String {
    if s.streams.is_empty() {
        return String::new();
    }
    let share = |n: u64, all: u64| percent((all > 0).then(|| n as f64 / all as f64));
    let mut table = Table::new(&["stream", "writes", "of writes", "written", "of bytes"]);
    let mut row = |name: String, writes: u64, written: u64| {
        table.row([
            name,
            count(writes),
            share(writes, s.writes),
            bytes(written as f64),
            share(written, s.bytes_written),
        ]);
    };
    let (mut writes, mut written) = (s.writes, s.bytes_written);
    for (i, stream) in s.streams.iter().enumerate() {
        if i < STREAMS_SHOWN {
            row(
                stream.stream.to_string(),
                stream.writes,
                stream.bytes_written,
            );
        }
        writes -= stream.writes;
        written -= stream.bytes_written;
    }
    if writes > 0 {
        row("none".into(), writes, written);
    }
    let left = s.streams.len().saturating_sub(STREAMS_SHOWN);
    let rest = match left {
        0 => String::new(),
        _ => format!("(and {left} more streams; --json has all)\n"),
    };
    table.render() + &rest
}
