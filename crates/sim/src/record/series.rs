//! How the run went over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Own, own_beside, ratio};
use crate::metrics;

/// How the run went over time: columns of equal length, a row for each of at most 512 samples. Counts are totals
/// since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Requests issued.
    pub requests: Vec<u64>,
    /// Issue time of the last, s.
    pub time_s: Vec<f64>,
    /// Response of the reads and writes completed since the sample before: mean, us; `null` of none.
    pub response_mean_us: Vec<Option<f64>>,
    /// The longest of them, us.
    pub response_max_us: Vec<f64>,
    /// Host pages programmed.
    pub host_programs: Vec<u64>,
    /// Pages programmed, all causes.
    pub programs: Vec<u64>,
    /// Blocks erased, all causes.
    pub erases: Vec<u64>,
    /// Switch merges.
    pub merges_switch: Vec<u64>,
    /// Partial merges.
    pub merges_partial: Vec<u64>,
    /// Full merges.
    pub merges_full: Vec<u64>,
    /// Dead victims.
    pub merges_dead: Vec<u64>,
    /// Momentary values of the scheme's own; `null` where there is no value.
    #[serde(flatten)]
    pub own: Own<Vec<Option<f64>>>,
}

impl Series {
    pub(super) fn of(series: &metrics::Series) -> Self {
        fn column<T>(of: &metrics::Series, value: impl Fn(&metrics::Sample) -> T) -> Vec<T> {
            of.samples.iter().map(value).collect()
        }
        let names = series.observed_names.iter().enumerate();
        let own = names.map(|(i, &name)| {
            let value = |s: &metrics::Sample| s.observed.get(i).copied().filter(|x| x.is_finite());
            (name, column(series, value))
        });
        let merges = |kind: usize| column(series, |s| s.merges[kind]);
        Self {
            requests: column(series, |s| s.requests),
            time_s: column(series, |s| s.time_ns as f64 / 1e9),
            response_mean_us: column(series, |s| {
                ratio(s.response_sum_ns as f64 / 1000.0, s.completed as f64)
            }),
            response_max_us: column(series, |s| s.response_max_ns as f64 / 1000.0),
            host_programs: column(series, |s| s.host_programs),
            programs: column(series, |s| s.programs),
            erases: column(series, |s| s.erases),
            merges_switch: merges(0),
            merges_partial: merges(1),
            merges_full: merges(2),
            merges_dead: merges(3),
            own: own_beside(&Self::default(), own),
        }
    }
}
