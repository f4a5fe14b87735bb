//! Reads whole recorded traces and compares them with the table in their folder's README.md: those of the repository,
//! and those of the folder in `FLOATGATE_TRACES`, if it is set.

use std::path::Path;

use floatgate_trace::stats::{Statistics, Stats, StatsOptions};
use floatgate_trace::{Counts, Op, OpenOptions, open};

/// A trace as it was read.
struct Read {
    statistics: Statistics,
    counts: Counts,
    format: &'static str,
    /// From the first request with data to the latest.
    seconds: f64,
}

fn read(path: &Path) -> Read {
    let mut reader = open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut stats = Stats::new(StatsOptions::default());
    let (mut first, mut last) = (None, 0);
    while let Some(request) = reader.next().unwrap_or_else(|e| panic!("{e}")) {
        stats.add(&request);
        if request.op != Op::Flush {
            first.get_or_insert(request.arrival_ns);
            last = last.max(request.arrival_ns);
        }
    }
    assert_eq!(reader.bytes_read(), reader.bytes_total().unwrap());
    let counts = reader.counts();
    Read {
        statistics: stats.finish(),
        format: reader.format().name(),
        // The earlier requests of unsorted traces are clamped to 0.
        seconds: (last + counts.clamped_ns - first.unwrap_or(0)) as f64 / 1e9,
        counts,
    }
}

impl Read {
    /// The value for the column of that title; `None` if it is not a figure of the trace.
    fn figure(&self, title: &str, counts_flushes: bool) -> Option<f64> {
        let s = &self.statistics;
        let data = s.reads + s.writes + s.trims;
        Some(match title {
            "requests" if counts_flushes => s.requests as f64,
            "requests" => data as f64,
            "reads" => s.reads as f64,
            "writes" => s.writes as f64,
            "trims" => s.trims as f64,
            "flushes" => s.flushes as f64,
            "reads %" => s.read_share.unwrap_or(0.0) * 100.0,
            "mean read B" => s.mean_read_bytes.unwrap_or(0.0),
            "mean write B" => s.mean_write_bytes.unwrap_or(0.0),
            "written GB" => s.bytes_written as f64 / 1e9,
            "written MB" => s.bytes_written as f64 / 1e6,
            "read MB" => s.bytes_read as f64 / 1e6,
            "footprint MiB" => s.footprint_bytes as f64 / f64::from(1 << 20),
            "write reuse" => s.write_reuse.unwrap_or(0.0),
            "device span GB" => s.device_span as f64 / 1e9,
            "duration s" => self.seconds,
            "seconds" => s.duration_ns as f64 / 1e9,
            _ => return None,
        })
    }
}

/// The cells of a row of a Markdown table.
fn cells(line: &str) -> Vec<&str> {
    let cells = line.trim_matches('|').split(" | ");
    cells.map(|cell| cell.trim().trim_matches('`')).collect()
}

/// Whether a value rounded like the table's is the table's.
fn agrees(value: f64, cell: &str) -> bool {
    if cell == "-" {
        return true;
    }
    let digits = cell.split_once('.').map_or(0, |(_, f)| f.len());
    let expected: f64 = cell.replace(',', "").parse().unwrap();
    // Some tables are rounded, some truncated.
    let unit = 10f64.powi(-(digits as i32));
    (value - expected).abs() <= 0.5001 * unit || (0.0..unit).contains(&(value - expected))
}

/// Compares every trace in the tables of a folder's README.md with its row. Returns the number of traces.
fn check(folder: &Path) -> usize {
    let readme = folder.join("README.md");
    let readme =
        std::fs::read_to_string(&readme).unwrap_or_else(|e| panic!("{}: {e}", readme.display()));
    let (mut titles, mut wrong, mut traces) = (Vec::new(), Vec::new(), 0);
    for line in readme.lines() {
        if line.starts_with("| file |") {
            titles = cells(line);
        } else if !line.starts_with('|') {
            titles.clear();
        }
        let row = cells(line);
        let path = folder.join(row[0]);
        if !titles.contains(&"requests") || !path.is_file() {
            continue;
        }
        let trace = read(&path);
        let (format, skipped) = (trace.format, trace.counts.skipped);
        println!("{}: {format}, {skipped} records skipped", row[0]);
        traces += 1;
        for (title, cell) in titles.iter().zip(&row) {
            let value = trace.figure(title, titles.contains(&"flushes"));
            if let Some(value) = value.filter(|&value| !agrees(value, cell)) {
                wrong.push(format!("{}: {title}: {value} is not {cell}", row[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    traces
}

#[test]
fn bundled_traces_are_what_their_table_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    assert_eq!(check(&folder), 12);
}

#[test]
fn given_traces_are_what_their_table_says() {
    let Some(folder) = std::env::var_os("FLOATGATE_TRACES") else {
        println!("no further traces: FLOATGATE_TRACES is not set");
        return;
    };
    assert!(
        check(Path::new(&folder)) > 0,
        "no trace in the table of {folder:?}"
    );
}
