//! Traces without a run: as tables, and what is in them.

use std::sync::Arc;

use floatgate::library::{self, Frame, info_args};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use serde_json::json;

use crate::errors::json as written;
use crate::frames;
use crate::pulse::interruptible;

/// The trace that the arguments of `floatgate trace info` name, as a table.
#[pyfunction]
pub fn read_trace(py: Python<'_>, words: Vec<String>) -> PyResult<Bound<'_, PyAny>> {
    let rows = interruptible(py, None, move |pulse| {
        let args = info_args(&words)?;
        let decoded = library::decode(&args, &mut || pulse.beat("reads", 0))?;
        Ok(frames::rows(&decoded.requests))
    })?;
    rows.finish()?.into_arro3(py)
}

/// What `floatgate trace info --json` prints of the trace that the arguments name, or of a table.
#[pyfunction]
#[pyo3(signature = (words, trace))]
pub fn trace_info(py: Python<'_>, words: Vec<String>, trace: Option<PyTable>) -> PyResult<String> {
    let table = trace.map(PyTable::into_inner);
    let (about, statistics) = interruptible(py, None, move |pulse| {
        let args = info_args(&words)?;
        let frame = table.map(|(batches, schema)| frames::requests(&batches, &schema));
        let frame = frame.transpose()?.map(|requests| Frame(Arc::new(requests)));
        // The words name the frame as they name a file.
        let named = frame.map(|frame| (crate::run::FRAME, frame));
        library::statistics(&args, named, &mut || pulse.beat("reads", 0))
    })?;
    written(&json!({"trace": about.record(), "statistics": statistics}))
}
