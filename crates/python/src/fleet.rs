//! Fleets: what `floatgate fleet` does, with the rows as a table; or split here, and replayed by whatever Python has.

use std::path::PathBuf;

use floatgate::library::{
    Fleet, Replayed, SplitFleet, VolumeCame, VolumeErrand, fleet_args, play_volume,
};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;

use crate::errors::{json, raised};
use crate::pulse::interruptible_threads;
use crate::schemes;
use crate::sweep::{read, written};
use crate::tables::Rows;

/// A summary, rows, and what could not be replayed.
type Given<'py> = (String, Bound<'py, PyAny>, Option<String>);

fn given(py: Python<'_>, replayed: Replayed) -> PyResult<Given<'_>> {
    let failures = replayed
        .failures
        .err()
        .map(|problem| problem.message().to_string());
    let rows: PyTable = Rows::of(replayed.rows)?;
    Ok((json(&replayed.summary)?, rows.into_arro3(py)?, failures))
}

/// `floatgate fleet` with these arguments.
#[pyfunction]
pub fn fleet(py: Python<'_>, words: Vec<String>) -> PyResult<Given<'_>> {
    let replayed = interruptible_threads(py, move |beat| {
        let args = fleet_args(&words)?;
        Fleet::of(&args, schemes())?.replay(&args, beat, &mut |_| {})
    })?;
    given(py, replayed)
}

/// A fleet whose trace was split.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct FleetPlan {
    split: SplitFleet<'static>,
    words: Vec<String>,
}

#[pymethods]
impl FleetPlan {
    /// `floatgate fleet` with these arguments, up to where volumes are replayed.
    #[new]
    fn new(py: Python<'_>, words: Vec<String>) -> PyResult<Self> {
        interruptible_threads(py, move |beat| {
            let split = SplitFleet::of(&fleet_args(&words)?, schemes(), beat)?;
            Ok(Self { split, words })
        })
    }

    /// The volumes that can be replayed, the longest first: the place among all, what determines the results in short,
    /// and what to send. `program` is what tells this program from others.
    fn volumes(&self, py: Python<'_>, program: &str) -> PyResult<Vec<(usize, String, String)>> {
        let args = fleet_args(&self.words);
        let sent = args.map(|args| self.split.sent(&args, &self.words, program));
        let sent = sent.map_err(|problem| raised(py, &problem))?.into_iter();
        sent.map(|sent| Ok((sent.volume, sent.key, json(&sent.errand)?)))
            .collect()
    }

    /// What came of the volumes, by their places, in one: of each what `fleet_volume` gave, or why it was lost. The rows go to
    /// `out` too.
    fn replayed<'py>(
        &self,
        py: Python<'py>,
        came: Vec<(usize, Option<String>, String)>,
        out: Option<PathBuf>,
    ) -> PyResult<Given<'py>> {
        let mut all: Vec<Option<Result<VolumeCame, String>>> = Vec::new();
        all.resize_with(self.split.volumes(), || None);
        for (volume, text, why) in came {
            let came = text.map_or(Ok(Err(why)), |text| read(&text).map(Ok));
            let came = came.map_err(|problem| raised(py, &problem))?;
            if let Some(place) = all.get_mut(volume) {
                *place = Some(came);
            }
        }
        let replayed = self.split.replayed(all).and_then(|replayed| {
            out.map_or(Ok(()), |out| replayed.write(&out))?;
            Ok(replayed)
        });
        given(py, replayed.map_err(|problem| raised(py, &problem))?)
    }
}

/// Replays a volume that was sent here.
#[pyfunction]
pub fn fleet_volume(py: Python<'_>, errand: &str) -> PyResult<String> {
    interruptible_threads(py, |beat| {
        let errand: VolumeErrand = read(errand)?;
        let args = fleet_args(&errand.words)?;
        written(&play_volume(&errand, &args, schemes(), beat)?)
    })
}
