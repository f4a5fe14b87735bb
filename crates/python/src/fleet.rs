//! Fleets: what `floatgate fleet` does, with the rows as a table.

use floatgate::library::{Fleet, fleet_args};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;

use crate::errors::json;
use crate::pulse::interruptible_threads;
use crate::schemes;
use crate::tables::Rows;

/// `floatgate fleet` with these arguments: its summary, its rows, and what could not be replayed.
#[pyfunction]
pub fn fleet(
    py: Python<'_>,
    words: Vec<String>,
) -> PyResult<(String, Bound<'_, PyAny>, Option<String>)> {
    let replayed = interruptible_threads(py, move |beat| {
        let args = fleet_args(&words)?;
        Fleet::of(&args, schemes())?.replay(&args, beat, &mut |_| {})
    })?;
    let failures = replayed
        .failures
        .err()
        .map(|problem| problem.message().to_string());
    let rows: PyTable = Rows::of(replayed.rows)?;
    Ok((json(&replayed.summary)?, rows.into_arro3(py)?, failures))
}
