//! Problems as Python raises them.

use floatgate::errors::{EXIT_BUG, Problem};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;

/// The exception of a problem: the classes are written in Python.
pub fn raised(py: Python<'_>, problem: &Problem) -> PyErr {
    let class = match problem.code() {
        EXIT_BUG => "BugError",
        _ => "InputError",
    };
    let text = problem.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    error_of(py, class, text)
}

/// An exception of one of the classes that are written in Python.
pub fn error_of(py: Python<'_>, class: &str, text: &str) -> PyErr {
    let made = py
        .import("floatgate.errors")
        .and_then(|errors| errors.getattr(class)?.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// A value of the record as text of JSON.
///
/// # Errors
/// If it cannot be told as JSON, which is a bug.
pub fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
