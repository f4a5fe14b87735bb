//! One row a cell: in a file, and for a terminal. `docs/sweeps.md` defines every column.

use std::path::Path;

use floatgate_sim::record::sweep::{
    SweepCell, SweepDevice, SweepDocument, SweepFigures, VariedKey, VariedValue,
};
use floatgate_sim::record::{self, Reason, schema};
use floatgate_trace::columns::{Column, Kind, NONE, TableWriter};
use serde::Serialize;
use serde_json::Value;

use crate::errors::{Outcome, Problem};
use crate::laid::Laid;
use crate::output;
use crate::table::{Table, bytes, count, energy, micros, short, short_or_dash};

/// Whether the file holds the whole document.
pub fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}

/// Refuses a name that nothing could be written to, before the work.
///
/// # Errors
/// If its ending tells no format, or a file cannot be made there.
pub fn check_name(path: &Path) -> Outcome<()> {
    const ANY: &[Column] = &[Column {
        name: "scheme",
        kind: Kind::Text,
    }];
    if path.is_dir() {
        let text = format!("cannot write {}: it is a folder", path.display());
        return Err(Problem::new(text).help("name a file"));
    }
    if !is_json(path) {
        // What was begun and not finished leaves nothing behind.
        TableWriter::create(path, ANY)?;
    }
    Ok(())
}

/// The flag that names the file.
pub const OUT_FLAG: &str = "--out";

/// How a cell came out.
const OUTCOMES: &[&str] = &["ran", "refused", "failed", "bug"];

/// Writes the file: all of it or nothing.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, document: &SweepDocument) -> Outcome<()> {
    if is_json(path) {
        return output::write_file(OUT_FLAG, path, &output::json(document)?);
    }
    let laid = laid(document);
    let table = TableWriter::create(path, leaked(laid.columns.clone()))?;
    laid.write(table)?;
    Ok(())
}

/// The rows, laid out.
pub fn laid(document: &SweepDocument) -> Laid {
    let fields = [fields("SweepDevice"), fields("SweepFigures")];
    let mut laid = Laid {
        columns: columns(&document.varied, &fields),
        ..Laid::default()
    };
    for cell in &document.cells {
        let row = row(document, cell, &fields, &mut laid);
        laid.rows.push(row);
    }
    laid
}

fn row(
    document: &SweepDocument,
    cell: &SweepCell,
    fields: &[Vec<(String, Kind)>; 2],
    laid: &mut Laid,
) -> Vec<u64> {
    let mut row = Vec::new();
    for (key, value) in document.varied.iter().zip(cell.varied.values()) {
        row.push(match kind(key) {
            Kind::Text => laid.text(value.to_string()),
            _ => bits(&serde_json::to_value(value).unwrap_or_default(), kind(key)),
        });
    }
    let (outcome, reason) = outcome(cell);
    row.push(laid.text(&*cell.trace));
    row.push(laid.text(&*cell.scheme));
    row.push(outcome);
    row.push(reason.map_or(NONE, |reason| laid.text(reason)));
    push(&mut row, &fields[0], &cell.device);
    push(&mut row, &fields[1], &cell.figures);
    row
}

/// The place of the outcome among [`OUTCOMES`], and why there is no record.
fn outcome(cell: &SweepCell) -> (u64, Option<&str>) {
    match &cell.result {
        Some(record::Outcome::Failed(failed)) => match &failed.reason {
            Reason::Refused(text) => (1, Some(text)),
            Reason::Failed(text) => (2, Some(text)),
            Reason::Bug(text) => (3, Some(text)),
        },
        _ => (0, None),
    }
}

/// The numbers of a struct of the record, as its schema lists them.
fn fields(definition: &str) -> Vec<(String, Kind)> {
    let schema = schema();
    let properties = schema["$defs"][definition]["properties"].as_object();
    let kind_of = |of: &Value| {
        let kinds = &of["type"];
        let whole = |kind: &Value| kind == "integer";
        let is_whole = whole(kinds) || kinds.as_array().is_some_and(|all| all.iter().any(whole));
        if is_whole { Kind::Sparse } else { Kind::Real }
    };
    let fields = properties.into_iter().flatten();
    fields
        .map(|(name, of)| (name.clone(), kind_of(of)))
        .collect()
}

/// What a varied key's column holds.
fn kind(key: &VariedKey) -> Kind {
    let whole = |value: &VariedValue| matches!(value, VariedValue::Whole(n) if *n >= 0);
    let number =
        |value: &VariedValue| matches!(value, VariedValue::Whole(_) | VariedValue::Number(_));
    if key.values.iter().all(whole) {
        Kind::Number
    } else if key.values.iter().all(number) {
        Kind::Real
    } else {
        Kind::Text
    }
}

fn columns(varied: &[VariedKey], fields: &[Vec<(String, Kind)>]) -> Vec<(String, Kind)> {
    // One called as the column of all sweeps would come twice.
    let name = |key: &VariedKey| match &*key.key {
        "trace" => "trace.file".into(),
        other => other.to_string(),
    };
    let varied = varied.iter().map(|key| (name(key), kind(key)));
    let common = [
        ("trace", Kind::Text),
        ("scheme", Kind::Text),
        ("outcome", Kind::Word(OUTCOMES)),
        ("reason", Kind::Text),
    ];
    let common = common.map(|(name, kind)| (name.to_string(), kind));
    let fields = fields.iter().flatten().cloned();
    varied.chain(common).chain(fields).collect()
}

/// A file's columns are known for ever; these are known when the only file of this process is written.
fn leaked(columns: Vec<(String, Kind)>) -> &'static [Column] {
    let column = |(name, kind): (String, Kind)| Column {
        name: name.leak(),
        kind,
    };
    columns.into_iter().map(column).collect::<Vec<_>>().leak()
}

/// The cells of a struct; empty if there is none.
fn push(row: &mut Vec<u64>, fields: &[(String, Kind)], of: &Option<impl Serialize>) {
    let values = serde_json::to_value(of).unwrap_or_default();
    row.extend(fields.iter().map(|(name, kind)| bits(&values[name], *kind)));
}

fn bits(value: &Value, kind: Kind) -> u64 {
    match kind {
        Kind::Real => value.as_f64().map_or(NONE, f64::to_bits),
        _ => value.as_u64().unwrap_or(NONE),
    }
}

/// The cells, aligned.
pub fn text(document: &SweepDocument) -> String {
    let behind = |cell: &SweepCell| cell.figures.is_some_and(|f| f.behind_s.is_some());
    let behind = document.cells.iter().any(behind);
    let mut names: Vec<String> = document.varied.iter().map(heading).collect();
    names.extend(FIGURES.map(str::to_string));
    names.extend(behind.then(|| "behind".into()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::new(&names);
    for cell in &document.cells {
        let mut cells: Vec<String> = cell.varied.values().map(ToString::to_string).collect();
        cells.push(cell.scheme.clone());
        match (&cell.figures, outcome(cell)) {
            (Some(figures), _) => {
                cells.extend(figures_of(figures, cell.device.as_ref()));
                let late = figures.behind_s.map(|s| format!("{} s", short(s)));
                cells.extend(behind.then(|| late.unwrap_or_else(|| "-".into())));
                table.row(cells);
            }
            (None, (3, reason)) => {
                table.across_after(cells, format!("BUG: {}", reason.unwrap_or_default()))
            }
            (None, (outcome, reason)) => table.across_after(
                cells,
                format!(
                    "{}: {}",
                    OUTCOMES[outcome as usize],
                    reason.unwrap_or_default()
                ),
            ),
        }
    }
    let late = if behind {
        "; behind: how late a device was that did not keep up"
    } else {
        ""
    };
    format!(
        "{}mean to max: response time of reads and writes; WA: write amplification; merges: all kinds{late}\n",
        table.render()
    )
}

/// The key without its section; numbers stand right, words left.
fn heading(key: &VariedKey) -> String {
    let name = key.key.rsplit('.').next().unwrap_or_default();
    match kind(key) {
        Kind::Text => format!("<{name}"),
        _ => name.to_string(),
    }
}

/// What stands right of the varied keys.
const FIGURES: [&str; 12] = [
    "<scheme",
    "mean",
    "p50",
    "p99",
    "p99.9",
    "max",
    "WA",
    "erases",
    "merges",
    "spare",
    "map memory",
    "energy",
];

/// The cells right of the scheme.
fn figures_of(figures: &SweepFigures, device: Option<&SweepDevice>) -> [String; FIGURES.len() - 1] {
    let time = |us: Option<f64>| us.map_or_else(|| "-".into(), micros);
    let merges = figures.merges_switch
        + figures.merges_partial
        + figures.merges_full
        + figures.merges_dead
        + figures.merges_other;
    [
        time(figures.response_mean_us),
        time(figures.response_p50_us),
        time(figures.response_p99_us),
        time(figures.response_p99_9_us),
        time(figures.response_max_us),
        short_or_dash(figures.write_amplification),
        count(figures.erases),
        count(merges),
        device.map_or_else(
            || "-".into(),
            |device| format!("{:.1} %", device.spare_percent),
        ),
        bytes((figures.map_memory_bytes + figures.map_pcm_bytes).ceil()),
        energy(figures.energy_uj),
    ]
}
