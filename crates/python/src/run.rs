//! One run: what `floatgate run` does, with tables in memory in place of files.

use std::cell::RefCell;
use std::sync::Arc;

use floatgate::errors::Outcome;
use floatgate::library::{Frame, Ready, RunArgs, Scheme, Single, run_args};
use floatgate_sim::blocks::{self, BlockRow};
use floatgate_sim::clock::{Does, Operation};
use floatgate_sim::record::{Document, Outcome as Played};
use floatgate_sim::requests::{self, RequestRow};
use floatgate_sim::run::{Besides, Progress};
use floatgate_sim::timeline;
use floatgate_sim::why::Why;
use floatgate_trace::columns::{Column, Kind, NONE};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyTable;

use crate::frames;
use crate::own::{self, Own};
use crate::pulse::{Pulse, interruptible};
use crate::recorded::told;
use crate::tables::Rows;
use crate::written;

/// What a trace in memory is called: no file has this name.
pub const FRAME: &str = "<frame>";

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

/// One row an operation of the flash; docs/python.md defines the columns.
const OPERATIONS: &[Column] = &[
    column("die", Kind::Small),
    column("does", Kind::Word(timeline::DOES)),
    column("cause", Kind::Word(timeline::CAUSES)),
    column("pages", Kind::Small),
    column("request", Kind::Sparse),
    column("start_ns", Kind::Number),
    column("end_ns", Kind::Number),
];

fn operation_cells(operation: &Operation) -> [u64; OPERATIONS.len()] {
    let pages = match operation.does {
        Does::Copies { pages, .. } => pages,
        Does::One(_) => 1,
    };
    [
        operation.die.into(),
        timeline::does_index(operation.does) as u64,
        timeline::cause_index(operation.cause) as u64,
        pages.into(),
        operation.request.unwrap_or(NONE),
        operation.start_ns,
        operation.end_ns,
    ]
}

/// What a run leaves.
struct Done {
    document: Document,
    requests: Option<Rows>,
    operations: Option<Rows>,
    blocks: Rows,
}

/// What of a run is kept beside its record.
#[derive(Clone, Copy)]
struct Wanted {
    requests: bool,
    operations: bool,
}

/// `floatgate run` with these arguments. What `trace` holds is the trace, if there is one; `own` is what of the scheme is
/// written in Python.
#[pyfunction]
#[pyo3(signature = (words, trace, keep, tell, own))]
pub fn simulate<'py>(
    py: Python<'py>,
    words: Vec<String>,
    trace: Option<PyTable>,
    keep: (bool, bool),
    tell: Option<Py<PyAny>>,
    own: Own,
) -> PyResult<Bound<'py, PyDict>> {
    let table = trace.map(PyTable::into_inner);
    let wanted = Wanted {
        requests: keep.0,
        operations: keep.1,
    };
    let done = interruptible(py, tell, move |pulse| {
        let mut words = words;
        let frame = table.map(|(batches, schema)| frames::requests(&batches, &schema));
        let frame = frame.transpose()?.map(|requests| Frame(Arc::new(requests)));
        if frame.is_some() {
            words.extend(["--trace".into(), FRAME.into()]);
        }
        let args = run_args(&words)?;
        let schemes = written::schemes(&own);
        own::with(own, || run(&args, schemes, frame, wanted, pulse))
    })?;
    given(py, done)
}

fn run(
    args: &RunArgs,
    schemes: &[Scheme],
    frame: Option<Frame>,
    wanted: Wanted,
    pulse: &mut Pulse,
) -> Outcome<Done> {
    let mut single = Single::new(args, schemes)?;
    if let Some(frame) = frame {
        single.supply(FRAME, frame);
    }
    let ready = single.ready(&mut || pulse.beat("reads", 0))?;
    written::check(&ready.config().scheme)?;
    pulse.begin(ready.requests());
    play(&ready, args.slowest.unwrap_or(0) as usize, wanted, pulse)
}

fn play(ready: &Ready<'_>, slowest: usize, wanted: Wanted, pulse: &mut Pulse) -> Outcome<Done> {
    let mut requests = wanted.requests.then(|| Rows::new(requests::COLUMNS));
    let operations = wanted
        .operations
        .then(|| RefCell::new(Rows::new(OPERATIONS)));
    let mut why = (slowest > 0 || wanted.requests).then(|| Why::new(slowest));
    let records = why.is_some();
    let mut take = |rows: &[RequestRow]| {
        if let Some(why) = &mut why {
            why.add(rows);
        }
        if let Some(table) = &mut requests {
            rows.iter().for_each(|row| table.row(&row.cells()));
        }
        Ok(())
    };
    let mut take_operations = |all: &[Operation]| {
        if let Some(table) = &operations {
            let mut table = table.borrow_mut();
            all.iter()
                .for_each(|operation| table.row(&operation_cells(operation)));
        }
        Ok(())
    };
    let mut of_blocks: Vec<BlockRow> = Vec::new();
    let besides = Besides {
        rows: records.then_some(&mut take as _),
        operations: wanted.operations.then_some(&mut take_operations as _),
        blocks: Some(&mut of_blocks),
        ..Besides::default()
    };
    let mut record = ready.record(besides, &mut |step| match step {
        Progress::Ageing => pulse.beat("ages", 0),
        Progress::Played(n) => pulse.beat("plays", n),
    })?;
    record.explained = why.as_ref().map(Why::explained);
    let mut document = ready.document(record);
    if let (Some(Played::Record(record)), Some(name)) = (document.results.first_mut(), own::name())
    {
        record.scheme = name;
    }
    let mut blocks = Rows::new(blocks::COLUMNS);
    of_blocks.iter().for_each(|row| blocks.row(&row.cells()));
    Ok(Done {
        document,
        requests,
        operations: operations.map(RefCell::into_inner),
        blocks,
    })
}

/// The same as Python has it: texts of JSON, and tables.
fn given(py: Python<'_>, done: Done) -> PyResult<Bound<'_, PyDict>> {
    let table = |rows: Option<Rows>| -> PyResult<Option<Bound<'_, PyAny>>> {
        rows.map(|rows| rows.finish()?.into_arro3(py)).transpose()
    };
    let out = told(py, &done.document)?;
    out.set_item("blocks", table(Some(done.blocks))?)?;
    out.set_item("requests", table(done.requests)?)?;
    out.set_item("timeline", table(done.operations)?)?;
    Ok(out)
}
