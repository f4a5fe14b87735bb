//! Every combination of the varied values: its settings, its trace, its plan.

use std::collections::HashMap;

use floatgate_catalog::Scheme;
use floatgate_sim::config::Beyond;
use floatgate_sim::record::Own;
use floatgate_sim::record::sweep::VariedValue;

use crate::args::Setup;
use crate::commands::study::Scan;
use crate::config::Settings;
use crate::config::resolve::Plan;
use crate::config::vary::Axis;
use crate::errors::{Outcome, Problem};
use crate::traces::{Choice, Decoded};

/// Most combinations of values.
const CASES_MAX: usize = 100_000;

/// One combination.
pub struct Case {
    /// The value of each axis, by its place.
    values: Vec<usize>,
    /// The settings with these values.
    pub settings: Settings,
    /// Its trace, by its place.
    pub trace: usize,
    /// The run but for its scheme, or why there is none. Sized by [`super::devices::size`].
    pub plan: Outcome<Plan>,
}

impl Case {
    /// Its values by their keys.
    pub fn varied(&self, axes: &[Axis]) -> Own<VariedValue> {
        let values = axes.iter().zip(&self.values);
        values
            .map(|(axis, &i)| (axis.key.clone(), axis.value(i)))
            .collect()
    }
}

/// All combinations, the last axis changing first, or the values in step; and the traces that they are about.
///
/// # Errors
/// If there are too many, the axes are not of one length where they are to go in step, or something is wrong with
/// the settings whatever the values are.
pub fn of(
    axes: &[Axis],
    in_step: bool,
    settings: &Settings,
    given: &Setup,
    schemes: &[Scheme],
) -> Outcome<(Vec<Case>, Vec<Choice>)> {
    let mut traces = Vec::new();
    let mut places = HashMap::new();
    let mut cases = Vec::new();
    for values in combinations(axes, in_step)? {
        let settings = with(axes, &values, settings, schemes)?;
        let choice = Choice::of(&given.trace, &given.columns, &settings)?;
        let trace = *places.entry(format!("{choice:?}")).or_insert_with(|| {
            traces.push(choice);
            traces.len() - 1
        });
        let plan = Plan::of(&settings);
        cases.push(Case {
            values,
            settings,
            trace,
            plan,
        });
    }
    Ok((cases, traces))
}

/// The settings with these values of the axes.
fn with(
    axes: &[Axis],
    values: &[usize],
    settings: &Settings,
    schemes: &[Scheme],
) -> Outcome<Settings> {
    let mut settings = settings.clone();
    for (axis, &i) in axes.iter().zip(values) {
        axis.set(i, &mut settings, schemes)?;
    }
    Ok(settings)
}

/// The settings of the case of that number.
///
/// # Errors
/// As [`of`]; and if there is no such case.
pub fn settings_of(
    number: usize,
    axes: &[Axis],
    in_step: bool,
    settings: &Settings,
    schemes: &[Scheme],
) -> Outcome<Settings> {
    let all = combinations(axes, in_step)?;
    let values = all.get(number);
    let values = values.ok_or_else(|| Problem::bug(format!("there is no case {number}")))?;
    with(axes, values, settings, schemes)
}

fn combinations(axes: &[Axis], in_step: bool) -> Outcome<Vec<Vec<usize>>> {
    if in_step {
        return steps(axes);
    }
    let count = axes.iter().try_fold(1_usize, |n, axis| {
        n.checked_mul(axis.count()).filter(|&n| n <= CASES_MAX)
    });
    let count = count.ok_or_else(|| {
        Problem::new(format!(
            "these are more than {CASES_MAX} combinations of values"
        ))
        .help(
            "fewer values, larger steps (3..20/4, 64..1024*2), or --zip to take the lists in step",
        )
    })?;
    let values_of = |mut number: usize| {
        let mut values: Vec<usize> = axes
            .iter()
            .rev()
            .map(|axis| {
                let value = number % axis.count();
                number /= axis.count();
                value
            })
            .collect();
        values.reverse();
        values
    };
    Ok((0..count).map(values_of).collect())
}

fn steps(axes: &[Axis]) -> Outcome<Vec<Vec<usize>>> {
    let length = axes.first().map_or(0, Axis::count);
    if let Some(axis) = axes.iter().find(|axis| axis.count() != length) {
        let text = format!(
            "--zip takes the values in step, but {} has {} and {} has {length}",
            axis.key,
            axis.count(),
            axes[0].key
        );
        return Err(Problem::new(text)
            .at(&axis.place)
            .help("give all keys the same number of values, or leave --zip out"));
    }
    Ok((0..length).map(|i| vec![i; axes.len()]).collect())
}

/// What the traces touch, as far as a plan cares: whether only regions count, and how large they are.
pub struct Scans(HashMap<(usize, Option<u64>), Scan>);

impl Scans {
    /// Of all cases that have a plan.
    pub fn of(cases: &[Case], traces: &[Decoded]) -> Self {
        let mut scans = HashMap::new();
        for case in cases {
            if let Ok(plan) = &case.plan {
                scans.entry(key(case.trace, plan)).or_insert_with(|| {
                    let mut scan = Scan::new(plan, &case.settings);
                    scan.add(&traces[case.trace].requests);
                    scan
                });
            }
        }
        Self(scans)
    }

    /// Bytes that the device of a plan must have.
    pub fn bytes(&self, trace: usize, plan: &Plan) -> u64 {
        let scan = self.0.get(&key(trace, plan));
        scan.map_or(0, |scan| scan.extent.bytes())
    }

    /// Seconds from the first to the last arrival, as the plan plays them.
    pub fn span_s(&self, trace: usize, plan: &Plan) -> f64 {
        let scan = self.0.get(&key(trace, plan));
        scan.map_or(0.0, |scan| scan.seen(plan).span_s)
    }
}

fn key(trace: usize, plan: &Plan) -> (usize, Option<u64>) {
    let page_bytes = plan.device.part.page_bytes;
    let region_bytes = u64::from(plan.host.region_pages(page_bytes)) * u64::from(page_bytes);
    let regions = plan.host.beyond == Beyond::Compact;
    (trace, regions.then_some(region_bytes))
}
