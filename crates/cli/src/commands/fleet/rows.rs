//! One row a volume and scheme; `docs/fleets.md` defines every column.

use std::path::Path;

use floatgate_sim::record::Record;
use floatgate_trace::columns::{Column, Kind, NONE, TableWriter};
use serde::{Deserialize, Serialize};

use super::input::Input;
use crate::commands::variant::Variant;
use crate::config::resolve::Plan;
use crate::config::sizing::Failure;
use crate::errors::Outcome;
use crate::laid::Laid;
use crate::notes;

/// What a volume came to under a scheme.
pub struct Row {
    /// Its place among the volumes.
    pub volume: usize,
    /// The scheme's place among those chosen.
    pub scheme: usize,
    /// What was measured.
    pub measured: Result<Measured, Failure>,
}

/// What is kept of a run: a fleet has too many for their records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Pages that the host wrote: what volumes are weighted by.
    pub host_page_writes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Valid pages moved.
    pub copies: u64,
    /// Pages programmed for one that the host wrote.
    pub write_amplification: Option<f64>,
    /// 99th percentile of the response times of reads and writes, us.
    pub response_p99_us: Option<f64>,
    /// How late the device was, if it did not keep up, s.
    pub behind_s: Option<f64>,
    /// In the order of [`MEASURED`] and then [`OWN`].
    cells: Vec<u64>,
}

impl Measured {
    /// Of a record.
    pub fn of(record: &Record, plan: &Plan, span_s: f64) -> Self {
        let behind_s = notes::behind_s(record, plan, span_s);
        let measured = MEASURED.iter().map(|(_, cell)| match cell {
            Count(of) => of(record),
            Real(of) => real(of(record)),
        });
        let own = [real(Some(span_s)), real(behind_s)];
        Self {
            host_page_writes: record.counters.host.page_writes,
            erases: record.derived.erases,
            copies: record.derived.copies,
            write_amplification: record.derived.write_amplification,
            response_p99_us: record.time.response.all.p99_us,
            behind_s,
            cells: measured.chain(own).collect(),
        }
    }
}

fn real(value: Option<f64>) -> u64 {
    value.map_or(NONE, f64::to_bits)
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

/// What of a record a cell takes.
enum Cell {
    Count(fn(&Record) -> u64),
    Real(fn(&Record) -> Option<f64>),
}

use Cell::{Count, Real};

impl Cell {
    const fn kind(&self) -> Kind {
        match self {
            Count(_) => Kind::Sparse,
            Real(_) => Kind::Real,
        }
    }
}

/// What is taken from the record of the run.
const MEASURED: [(&str, Cell); 24] = [
    ("device_bytes", Count(|r| r.device.logical_bytes)),
    ("dies", Count(|r| r.device.dies.into())),
    ("blocks_per_die", Count(|r| r.device.blocks.into())),
    ("page_bytes", Count(|r| r.device.page_bytes.into())),
    ("host_page_reads", Count(|r| r.counters.host.page_reads)),
    ("host_page_writes", Count(|r| r.counters.host.page_writes)),
    ("host_page_trims", Count(|r| r.counters.host.page_trims)),
    ("flash_page_reads", Count(|r| r.counters.flash.reads.sum())),
    (
        "flash_page_programs",
        Count(|r| r.counters.flash.programs.sum()),
    ),
    (
        "flash_spare_reads",
        Count(|r| r.counters.flash.oob_reads.sum()),
    ),
    ("copies", Count(|r| r.derived.copies)),
    ("erases", Count(|r| r.derived.erases)),
    (
        "write_amplification",
        Real(|r| r.derived.write_amplification),
    ),
    ("response_mean_us", Real(|r| r.time.response.all.mean_us)),
    ("response_p50_us", Real(|r| r.time.response.all.p50_us)),
    ("response_p99_us", Real(|r| r.time.response.all.p99_us)),
    ("response_p99_9_us", Real(|r| r.time.response.all.p99_9_us)),
    ("response_max_us", Real(|r| r.time.response.all.max_us)),
    ("read_p99_us", Real(|r| r.time.response.read.p99_us)),
    ("write_p99_us", Real(|r| r.time.response.write.p99_us)),
    ("elapsed_s", Real(|r| Some(r.time.elapsed_s))),
    ("block_erases_mean", Real(|r| Some(r.wear.mean))),
    ("block_erases_max", Count(|r| r.wear.max.into())),
    ("energy_uj", Real(|r| Some(r.energy.total_uj))),
];

/// How late a device is that did not keep up.
pub const BEHIND: &str = "behind_s";

/// What is not in the record.
const OWN: [(&str, Kind); 2] = [("arrivals_s", Kind::Real), (BEHIND, Kind::Real)];

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
            let (name, cell) = &MEASURED[i - HEAD.len()];
            (*name, cell.kind())
        } else {
            OWN[i - HEAD.len() - MEASURED.len()]
        };
        columns[i] = Column { name, kind };
        i += 1;
    }
    columns
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

/// The rows, laid out.
pub fn laid(input: &Input, chosen: &[Variant<'_>], rows: &[Row]) -> Laid {
    let columns = COLUMNS
        .iter()
        .map(|column| (column.name.into(), column.kind));
    let mut laid = Laid {
        columns: columns.collect(),
        ..Laid::default()
    };
    let schemes: Vec<u64> = chosen.iter().map(|v| laid.text(&*v.label)).collect();
    let names: Vec<u64> = input.volumes.iter().map(|v| laid.text(&*v.name)).collect();
    for row in rows {
        let volume = &input.volumes[row.volume];
        let error = match &row.measured {
            Ok(_) => NONE,
            Err(failure) => laid.text(text_of(failure)),
        };
        let head = [
            names[row.volume],
            schemes[row.scheme],
            error,
            volume.requests,
            volume.backwards,
            volume.clamped,
        ];
        let empty = [NONE; MEASURED.len() + OWN.len()];
        let cells = row.measured.as_ref().map_or(&empty[..], |of| &of.cells);
        laid.rows.push([&head[..], cells].concat());
    }
    laid
}
