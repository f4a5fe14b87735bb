//! Reads recorded traces that are not part of the repository, if they are there, and holds the results
//! against the table in their folder's README.

use std::path::{Path, PathBuf};

use floatgate_trace::stats::{Statistics, Stats, StatsOptions};
use floatgate_trace::{Counts, Op, OpenOptions, open};

/// The folder beside the workspace, or nothing.
fn folder() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if path.join("README.md").is_file() {
        return Some(path);
    }
    println!("skipped: no traces at {}", path.display());
    None
}

/// The statistics, the counts, the format, and the seconds between the earliest and the latest request
/// with data.
fn measure(path: &Path) -> (Statistics, Counts, &'static str, f64) {
    let mut reader = open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut stats = Stats::new(StatsOptions::default());
    let mut last = 0;
    while let Some(request) = reader.next().unwrap_or_else(|e| panic!("{e}")) {
        stats.add(&request);
        if request.op != Op::Flush {
            last = last.max(request.arrival_ns);
        }
    }
    let format = reader.format().name();
    assert_eq!(reader.bytes_read(), reader.bytes_total().unwrap());
    let first = stats_start(path);
    let counts = reader.counts();
    let seconds = (last + counts.clamped_ns - first) as f64 / 1e9;
    (stats.finish(), counts, format, seconds)
}

/// The arrival of the first request with data; the earlier ones of unsorted traces are clamped to 0.
fn stats_start(path: &Path) -> u64 {
    let mut reader = open(path, &OpenOptions::default()).unwrap();
    reader
        .requests()
        .map(Result::unwrap)
        .find(|request| request.op != Op::Flush)
        .map_or(0, |request| request.arrival_ns)
}

/// The rows of the Markdown tables that describe traces: their cells, the first being a file name.
fn rows(readme: &Path) -> Vec<Vec<String>> {
    std::fs::read_to_string(readme)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with('|') && line.matches('|').count() >= 12)
        .map(|line| {
            line.trim_matches('|')
                .split(" | ")
                .map(|cell| cell.trim().trim_matches('`').replace(',', ""))
                .collect::<Vec<_>>()
        })
        .filter(|cells| cells[0] != "file" && !cells[0].starts_with("---"))
        .collect()
}

/// Whether a value rounded like the table's is the table's.
fn agrees(value: f64, cell: &str) -> bool {
    if cell == "-" {
        return true;
    }
    let digits = cell.split_once('.').map_or(0, |(_, f)| f.len());
    let expected: f64 = cell.parse().unwrap();
    // Some tables are rounded, some are cut off.
    let unit = 10f64.powi(-(digits as i32));
    (value - expected).abs() <= 0.5001 * unit || (0.0..unit).contains(&(value - expected))
}

#[test]
fn public_traces() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    println!(
        "file | format | requests | read % | written GB | footprint MiB | reuse | span GB | s | trims | flushes | skipped"
    );
    for cells in rows(&folder.join("README.md")) {
        let (s, counts, format, seconds) = measure(&folder.join(&cells[0]));
        let data = s.reads + s.writes + s.trims;
        let values = [
            data as f64,
            s.read_share.unwrap_or(0.0) * 100.0,
            s.mean_read_bytes.unwrap_or(0.0),
            s.mean_write_bytes.unwrap_or(0.0),
            s.bytes_written as f64 / 1e9,
            s.footprint_bytes as f64 / (1 << 20) as f64,
            s.write_reuse.unwrap_or(0.0),
            s.device_span as f64 / 1e9,
            seconds,
        ];
        println!(
            "{} | {format} | {} | {:.1} | {:.4} | {:.1} | {:.2} | {:.2} | {:.3} | {} | {} | {}",
            cells[0],
            values[0],
            values[1],
            values[4],
            values[5],
            values[6],
            values[7],
            values[8],
            s.trims,
            s.flushes,
            counts.skipped,
        );
        for (value, cell) in values.iter().zip(&cells[2..]) {
            if !agrees(*value, cell) {
                wrong.push(format!("{}: {value} is not {cell}", cells[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn recorded_traces() {
    let Some(folder) = folder() else { return };
    let folder = folder.join("recorded");
    let mut wrong = Vec::new();
    println!(
        "file | requests | reads | writes | trims | flushes | written MB | read MB | footprint MiB | reuse | s"
    );
    for line in std::fs::read_to_string(folder.join("README.md"))
        .unwrap()
        .lines()
    {
        let cells: Vec<String> = line
            .trim_matches('|')
            .split(" | ")
            .map(|c| c.trim().replace(',', ""))
            .collect();
        if !cells[0].ends_with(".csv.xz") {
            continue;
        }
        let (s, _, _, _) = measure(&folder.join(&cells[0]));
        let values = [
            s.requests as f64,
            s.reads as f64,
            s.writes as f64,
            s.trims as f64,
            s.flushes as f64,
            s.bytes_written as f64 / 1e6,
            s.bytes_read as f64 / 1e6,
            s.footprint_bytes as f64 / (1 << 20) as f64,
            s.write_reuse.unwrap_or(0.0),
            s.duration_ns as f64 / 1e9,
        ];
        println!("{} | {values:.1?} | zeroes {}", cells[0], s.write_zeroes);
        for (value, cell) in values.iter().zip(&cells[2..]) {
            if !agrees(*value, cell) {
                wrong.push(format!("{}: {value} is not {cell}", cells[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
