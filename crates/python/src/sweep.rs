//! Sweeps: planned here, played by whatever Python has, and put together here again.

use std::path::PathBuf;

use floatgate::errors::{Outcome, Problem};
use floatgate::library::{
    self, Errand, Planned, Played, Sent, sweep_args, sweep_text, write_sweep,
};
use floatgate_sim::record::sweep::SweepDocument;
use floatgate_sim::run::Progress;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::errors::{json, raised};
use crate::pulse::interruptible;
use crate::schemes;
use crate::tables::Rows;

/// What was sent.
pub fn read<T: DeserializeOwned>(text: &str) -> Outcome<T> {
    serde_json::from_str(text).map_err(|error| Problem::bug(error.to_string()))
}

/// What is to be sent.
pub fn written(value: &impl Serialize) -> Outcome<String> {
    serde_json::to_string(value).map_err(|error| Problem::bug(error.to_string()))
}

/// A cell: what determines its result in short, its scheme, its case, what to send to play it, and what came of it if
/// it is refused.
type Cell = (String, String, usize, Option<String>, Option<String>);

fn cell(sent: Sent) -> Outcome<Cell> {
    let (errand, came) = match sent.errand {
        Ok(errand) => (Some(written(&errand)?), None),
        Err(came) => (None, Some(written(&came)?)),
    };
    Ok((sent.key, sent.scheme, sent.case, errand, came))
}

/// A sweep whose traces were read and whose devices are sized.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct SweepPlan {
    planned: Planned<'static>,
    words: Vec<String>,
}

#[pymethods]
impl SweepPlan {
    /// `floatgate sweep` with these arguments, up to where cells are played.
    #[new]
    fn new(py: Python<'_>, words: Vec<String>) -> PyResult<Self> {
        interruptible(py, None, move |_| {
            let planned = Planned::new(&sweep_args(&words)?, schemes(), &mut |_| {})?;
            Ok(Self { planned, words })
        })
    }

    /// All cells, by case and then scheme. `program` is what tells this program from others.
    fn cells(&self, py: Python<'_>, program: &str, keep_records: bool) -> PyResult<Vec<Cell>> {
        let sent = self.planned.sent(&self.words, program, keep_records);
        let cells = sent.and_then(|sent| sent.into_iter().map(cell).collect());
        cells.map_err(|problem| raised(py, &problem))
    }

    /// What came of all cells, in their order, in one document: of each what `sweep_cell` gave, or why it was lost; cells
    /// without either are left out.
    fn document(
        &self,
        py: Python<'_>,
        came: Vec<Option<(Option<String>, String)>>,
    ) -> PyResult<String> {
        let one = |(played, why): (Option<String>, String)| -> Outcome<Result<Played, String>> {
            played.map_or(Ok(Err(why)), |text| read(&text).map(Ok))
        };
        let came = came.into_iter().map(|came| came.map(one).transpose());
        let document = came
            .collect::<Outcome<Vec<_>>>()
            .and_then(|came| self.planned.document(came));
        json(&document.map_err(|problem| raised(py, &problem))?)
    }
}

/// Plays a cell that was sent here.
#[pyfunction]
pub fn sweep_cell(py: Python<'_>, errand: &str) -> PyResult<String> {
    interruptible(py, None, |pulse| {
        let errand: Errand = read(errand)?;
        let args = sweep_args(&errand.words)?;
        let mut progress = |step| match step {
            Progress::Ageing => pulse.beat("ages", 0),
            Progress::Played(n) => pulse.beat("plays", n),
        };
        written(&library::play(&errand, &args, schemes(), &mut progress)?)
    })
}

fn document(py: Python<'_>, text: &str) -> PyResult<SweepDocument> {
    read(text).map_err(|problem| raised(py, &problem))
}

/// The rows of a document as a table.
#[pyfunction]
pub fn sweep_table<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    Rows::of(library::laid(&document(py, text)?))?.into_arro3(py)
}

/// What `floatgate sweep` prints of a document.
#[pyfunction]
pub fn sweep_printed(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(sweep_text(&document(py, text)?))
}

/// What `floatgate sweep --out` writes of a document.
#[pyfunction]
pub fn sweep_write(py: Python<'_>, text: &str, path: PathBuf) -> PyResult<()> {
    let document = document(py, text)?;
    write_sweep(&path, &document).map_err(|problem| raised(py, &problem))
}
