//! Results that another program has made: a command that knows a scheme of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use floatgate::errors::{Outcome, Problem};
use floatgate::library::{fleet_html, run_html, sweep_html, text, why as why_text};
use floatgate_sim::record::sweep::{SweepDocument, SweepFigures};
use floatgate_sim::record::{Document, Outcome as Played, fleet::FleetDocument};
use floatgate_sim::{blocks, requests, series_file};
use floatgate_trace::columns::{Column, Kind, NONE};
use floatgate_trace::{WriteOptions, Writer};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyTable;

use crate::errors::{json, raised};
use crate::frames;
use crate::pulse::interruptible;
use crate::sweep::read;
use crate::tables::Rows;

/// What follows from the document of a run: figures, text, and the time series.
pub fn told<'py>(py: Python<'py>, document: &Document) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let mut series = Rows::new(series_file::COLUMNS);
    if let Some(record) = document.results.first().and_then(Played::record) {
        let time = &record.time;
        let figures = SweepFigures::of(record, time.arrivals_s.unwrap_or(0.0), time.behind_s);
        out.set_item("summary", json(&figures)?)?;
        let text = format!("{}{}", text::of(record), why_text::of(record));
        out.set_item("text", text)?;
        series_file::rows(&record.series).for_each(|row| series.row(&row));
    }
    out.set_item("document", json(document)?)?;
    out.set_item("timeseries", series.finish()?.into_arro3(py)?)?;
    Ok(out)
}

/// The same of what `floatgate run --json` has printed.
#[pyfunction]
pub fn recorded<'py>(py: Python<'py>, document: &str) -> PyResult<Bound<'py, PyDict>> {
    let document: Document = read(document).map_err(|problem| raised(py, &problem))?;
    told(py, &document)
}

/// The report of a document: of a `run`, a `sweep` or a `fleet`.
#[pyfunction]
pub fn report_of(py: Python<'_>, kind: &str, document: &str) -> PyResult<String> {
    let html = match kind {
        "sweep" => read::<SweepDocument>(document).map(|of| sweep_html(&of)),
        "fleet" => read::<FleetDocument>(document).map(|of| fleet_html(&of)),
        _ => read::<Document>(document).map(|of| run_html(&of, None)),
    };
    html.map_err(|problem| raised(py, &problem))
}

/// The table of a CSV file that `floatgate run` has written: of `requests`, or of `blocks`.
#[pyfunction]
pub fn read_rows<'py>(py: Python<'py>, kind: &str, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
    let columns = match kind {
        "blocks" => blocks::COLUMNS,
        _ => requests::COLUMNS,
    };
    let rows = interruptible(py, None, move |pulse| {
        rows_of(&path, columns, &mut || pulse.beat("reads", 0))
    })?;
    rows.finish()?.into_arro3(py)
}

fn rows_of(path: &Path, columns: &[Column], beat: &mut dyn FnMut()) -> Outcome<Rows> {
    let told = |what: String| Problem::new(format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(|error| told(error.to_string()))?;
    let mut lines = BufReader::with_capacity(1 << 20, file).lines();
    let mut next = || {
        lines
            .next()
            .transpose()
            .map_err(|error| told(error.to_string()))
    };
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    if next()?.as_deref() != Some(&names.join(",")) {
        return Err(told("its columns are not those of this version".into())
            .help("build the command with the version of Floatgate that Python has"));
    }
    let mut rows = Rows::new(columns);
    let mut cells = Vec::with_capacity(columns.len());
    for number in 2.. {
        let Some(line) = next()? else { break };
        cells.clear();
        let pairs = line.split(',').zip(columns);
        cells.extend(pairs.filter_map(|(text, column)| cell(text, column.kind)));
        if cells.len() != columns.len() {
            return Err(told(format!("line {number} is no row of this table")));
        }
        rows.row(&cells);
        if number % (1 << 14) == 0 {
            beat();
        }
    }
    Ok(rows)
}

/// A cell as it was written; none if it is none of its kind.
fn cell(text: &str, kind: Kind) -> Option<u64> {
    match kind {
        Kind::Sparse | Kind::Real if text.is_empty() => Some(NONE),
        Kind::Real => text.parse::<f64>().ok().map(f64::to_bits),
        Kind::Word(words) => words
            .iter()
            .position(|word| *word == text)
            .map(|at| at as u64),
        Kind::Small => text.parse::<u32>().ok().map(u64::from),
        Kind::Rising | Kind::Number | Kind::Sparse => text.parse().ok(),
        Kind::Text => None,
    }
}

/// Writes a trace in memory to a file, in the format that its name ends in.
#[pyfunction]
pub fn write_trace(py: Python<'_>, trace: PyTable, path: PathBuf) -> PyResult<()> {
    let (batches, schema) = trace.into_inner();
    interruptible(py, None, move |_| {
        let mut writer = Writer::create(&path, &WriteOptions::default())?;
        for request in frames::requests(&batches, &schema)? {
            writer.write(&request)?;
        }
        writer.finish()?;
        Ok(())
    })
}
