//! One row a volume and scheme; `docs/fleets.md` defines every column.

use std::path::Path;

use floatgate_catalog::Scheme;
use floatgate_trace::columns::{Column, Kind, NONE, TableSummary, TableWriter};
use serde_json::Value;

use super::input::Input;
use crate::config::resolve::Plan;
use crate::config::sizing::Failure;
use crate::errors::Outcome;
use crate::notes;

/// What a volume came to under a scheme.
pub struct Row {
    /// Its place among the volumes.
    pub volume: usize,
    /// The scheme's place among those chosen.
    pub scheme: usize,
    /// Its cells in the order of [`MEASURED`] and then [`OWN`].
    pub cells: Result<Vec<u64>, Failure>,
}

/// What the row begins with.
const HEAD: [(&str, Kind); 6] = [
    ("volume", Kind::Text),
    ("scheme", Kind::Text),
    ("error", Kind::Text),
    ("requests", Kind::Number),
    ("times_back", Kind::Number),
    ("times_clamped", Kind::Number),
];

/// What is taken from the record of the run: column, kind, where it stands. Of an object the sum of its numbers.
const MEASURED: [(&str, Kind, &str); 24] = [
    ("device_bytes", Kind::Sparse, "device/logical_bytes"),
    ("dies", Kind::Sparse, "device/dies"),
    ("blocks_per_die", Kind::Sparse, "device/blocks"),
    ("page_bytes", Kind::Sparse, "device/page_bytes"),
    ("host_page_reads", Kind::Sparse, "counters/host/page_reads"),
    (HOST_WRITES, Kind::Sparse, "counters/host/page_writes"),
    ("host_page_trims", Kind::Sparse, "counters/host/page_trims"),
    ("flash_page_reads", Kind::Sparse, "counters/flash/reads"),
    (
        "flash_page_programs",
        Kind::Sparse,
        "counters/flash/programs",
    ),
    (
        "flash_spare_reads",
        Kind::Sparse,
        "counters/flash/oob_reads",
    ),
    ("copies", Kind::Sparse, "derived/copies"),
    ("erases", Kind::Sparse, "derived/erases"),
    (AMPLIFICATION, Kind::Real, "derived/write_amplification"),
    ("response_mean_us", Kind::Real, "time/response/all/mean_us"),
    ("response_p50_us", Kind::Real, "time/response/all/p50_us"),
    (P99, Kind::Real, "time/response/all/p99_us"),
    (
        "response_p99_9_us",
        Kind::Real,
        "time/response/all/p99_9_us",
    ),
    ("response_max_us", Kind::Real, "time/response/all/max_us"),
    ("read_p99_us", Kind::Real, "time/response/read/p99_us"),
    ("write_p99_us", Kind::Real, "time/response/write/p99_us"),
    ("elapsed_s", Kind::Real, "time/elapsed_s"),
    ("block_erases_mean", Kind::Real, "wear/mean"),
    ("block_erases_max", Kind::Sparse, "wear/max"),
    ("energy_uj", Kind::Real, "energy/total_uj"),
];

/// What is not in the record.
const OWN: [(&str, Kind); 2] = [("arrivals_s", Kind::Real), (BEHIND, Kind::Real)];

/// Pages that the host wrote: what volumes are weighted by.
pub const HOST_WRITES: &str = "host_page_writes";
/// Write amplification.
pub const AMPLIFICATION: &str = "write_amplification";
/// The 99th percentile of the response times of reads and writes.
pub const P99: &str = "response_p99_us";
/// How late a device is that did not keep up.
pub const BEHIND: &str = "behind_s";

const COLUMNS: [Column; HEAD.len() + MEASURED.len() + OWN.len()] = columns();

const fn columns() -> [Column; HEAD.len() + MEASURED.len() + OWN.len()] {
    let mut columns = [Column {
        name: "",
        kind: Kind::Number,
    }; HEAD.len() + MEASURED.len() + OWN.len()];
    let mut i = 0;
    while i < columns.len() {
        let (name, kind) = if i < HEAD.len() {
            HEAD[i]
        } else if i < HEAD.len() + MEASURED.len() {
            let (name, kind, _) = MEASURED[i - HEAD.len()];
            (name, kind)
        } else {
            OWN[i - HEAD.len() - MEASURED.len()]
        };
        columns[i] = Column { name, kind };
        i += 1;
    }
    columns
}

/// The cells of a record.
pub fn cells(record: &Value, plan: &Plan, span_s: f64) -> Vec<u64> {
    let measured = MEASURED.iter().map(|(_, kind, path)| match kind {
        Kind::Real => real(notes::number(record, path)),
        _ => record.pointer(&format!("/{path}")).map_or(NONE, sum),
    });
    let own = [
        real(Some(span_s)),
        real(notes::backlog_s(record, plan, span_s)),
    ];
    measured.chain(own).collect()
}

fn real(value: Option<f64>) -> u64 {
    value.map_or(NONE, f64::to_bits)
}

fn sum(value: &Value) -> u64 {
    match value {
        Value::Object(parts) => parts.values().map(sum).sum(),
        number => number.as_u64().unwrap_or(NONE),
    }
}

/// A number of a row, by the name of its column; none where the cell is empty.
pub fn number(cells: &[u64], name: &str) -> Option<f64> {
    let at = COLUMNS.iter().position(|column| column.name == name)?;
    let cell = *cells.get(at.checked_sub(HEAD.len())?)?;
    match COLUMNS[at].kind {
        _ if cell == NONE => None,
        Kind::Real => Some(f64::from_bits(cell)),
        _ => Some(cell as f64),
    }
}

/// A failure in words.
pub fn text_of(failure: &Failure) -> String {
    match failure {
        Failure::Refused(refusal) => refusal.message.clone(),
        Failure::Trace(text) | Failure::Bug(text) => text.clone(),
    }
}

/// Starts the file.
///
/// # Errors
/// If it cannot be made.
pub fn create(path: &Path) -> Outcome<TableWriter> {
    Ok(TableWriter::create(path, &COLUMNS)?)
}

/// Writes all rows and ends the file.
///
/// # Errors
/// If it cannot be written.
pub fn write(
    mut table: TableWriter,
    input: &Input,
    chosen: &[&Scheme],
    rows: &[Row],
) -> Outcome<TableSummary> {
    let schemes: Vec<u64> = chosen.iter().map(|s| table.text(s.info.key)).collect();
    let names: Vec<u64> = input.volumes.iter().map(|v| table.text(&*v.name)).collect();
    for row in rows {
        let volume = &input.volumes[row.volume];
        let error = match &row.cells {
            Ok(_) => NONE,
            Err(failure) => table.text(text_of(failure)),
        };
        let head = [
            names[row.volume],
            schemes[row.scheme],
            error,
            volume.requests,
            volume.backwards,
            volume.clamped,
        ];
        let empty = || vec![NONE; MEASURED.len() + OWN.len()];
        let measured = row.cells.as_ref().map_or_else(|_| empty(), Clone::clone);
        table.row(&[&head[..], &measured].concat())?;
    }
    Ok(table.finish()?)
}
