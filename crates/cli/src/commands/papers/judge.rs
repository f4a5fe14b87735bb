//! From runs to numbers, lines and verdicts. The rules are those of docs/papers.md, the same for every number.

use std::collections::BTreeMap;

use floatgate_sim::record::papers::{
    Line, LinePoint, NumberRow, PlotResult, Sense, Verdict, WorkloadKind,
};
use serde_json::Value;

use super::item::{Comparison, Item, Number, Plot};
use super::play::{Run, Runs};
use crate::errors::{Outcome, Problem};

/// By how much of the paper's number ours may differ and still be a reproduction.
pub const TOLERANCE: f64 = 0.25;
/// How many times larger or smaller a plain figure may be and still be of the paper's size.
const SAME_SIZE: f64 = 2.0;

/// What is known of ours: a value a run.
struct Measured {
    values: Vec<f64>,
    /// Whether the sign says who is better.
    is_comparison: bool,
    /// What lies between the two directions: 0, or 1 of a ratio.
    middle: f64,
}

impl Measured {
    fn mean(&self) -> Option<f64> {
        let n = self.values.len();
        (n > 0).then(|| self.values.iter().sum::<f64>() / n as f64)
    }

    fn least(&self) -> Option<f64> {
        self.values.iter().copied().reduce(f64::min)
    }

    fn largest(&self) -> Option<f64> {
        self.values.iter().copied().reduce(f64::max)
    }

    /// How many runs go the paper's way: lie on its side of the middle, or keep its limit where it says "at most" or
    /// where the limit is the middle itself.
    fn same_direction(&self, paper: (f64, f64), sense: Sense) -> usize {
        let same = |x: &&f64| self.goes_along(**x, paper, sense);
        self.values.iter().filter(same).count()
    }

    fn goes_along(&self, x: f64, (from, to): (f64, f64), sense: Sense) -> bool {
        let side = |x: f64| (x - self.middle).partial_cmp(&0.0);
        match sense {
            Sense::AtMost => x <= to,
            Sense::AtLeast if from == self.middle => x >= from,
            _ => side(x) == side((from + to) / 2.0),
        }
    }

    fn verdict(&self, paper: (f64, f64), sense: Sense) -> Verdict {
        let (Some(mean), Some(largest)) = (self.mean(), self.largest()) else {
            return Verdict::NotAttempted;
        };
        let (from, to) = paper;
        let all_agree = self.same_direction(paper, sense) == self.values.len();
        let slack = |x: f64| (x - self.middle).abs() * TOLERANCE;
        let is_reproduced = match sense {
            Sense::About => {
                from - slack(from) <= mean
                    && mean <= to + slack(to)
                    && (all_agree || !self.is_comparison)
            }
            Sense::AtLeast => mean >= from && (all_agree || !self.is_comparison),
            Sense::AtMost => largest <= to,
        };
        let goes_along = match (self.is_comparison, sense) {
            (_, Sense::AtMost) => mean <= to * SAME_SIZE,
            (true, _) => self.goes_along(mean, paper, sense),
            (false, Sense::AtLeast) => mean >= from / SAME_SIZE,
            (false, Sense::About) => {
                let (low, high) = (from.min(from / SAME_SIZE), to.max(to * SAME_SIZE));
                low <= mean && mean <= high
            }
        };
        match (is_reproduced, goes_along) {
            (true, _) => Verdict::Reproduced,
            (false, true) => Verdict::SameDirection,
            (false, false) => Verdict::NotReproduced,
        }
    }
}

/// The verdict over several numbers: reproduced if all are, not reproduced if more than half are not, and in between
/// the same direction.
pub fn over(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let of_runs: Vec<Verdict> = verdicts
        .into_iter()
        .filter(|verdict| *verdict <= Verdict::NotReproduced)
        .collect();
    let how_many = |verdict| of_runs.iter().filter(|v| **v == verdict).count();
    match of_runs.len() {
        0 => Verdict::NotAttempted,
        n if how_many(Verdict::Reproduced) == n => Verdict::Reproduced,
        n if 2 * how_many(Verdict::NotReproduced) > n => Verdict::NotReproduced,
        _ => Verdict::SameDirection,
    }
}

/// A row of a number that needed no run.
pub fn exact(text: &str, ours: Option<f64>, paper: f64, within: f64, unit: &str) -> NumberRow {
    let is_equal = ours.is_some_and(|ours| (ours - paper).abs() <= within);
    NumberRow {
        text: text.into(),
        paper: (paper, paper),
        sense: Sense::About,
        unit: unit.into(),
        ours,
        least: ours,
        largest: ours,
        runs: 0,
        same_direction: None,
        workload: WorkloadKind::Own,
        verdict: match (ours, is_equal) {
            (None, _) => Verdict::NotAttempted,
            (_, true) => Verdict::Reproduced,
            (_, false) => Verdict::NotReproduced,
        },
    }
}

/// A declared number, over the runs that it is of.
pub fn number(item: &Item, number: &Number, runs: &Runs) -> NumberRow {
    let own = runs
        .runs
        .iter()
        .filter(|run| run.scheme == number.scheme && is_at(item, run, &number.at));
    let mut values = Vec::new();
    let mut kinds = Vec::new();
    for run in own {
        let Some(value) = figure(run, &number.figure) else {
            continue;
        };
        let value = match &number.than {
            None if number.than_at.is_empty() => Some(value),
            than => {
                let scheme = than.as_ref().unwrap_or(&number.scheme);
                let other = partner(run, scheme, &number.than_at, runs);
                let other = other.and_then(|other| figure(other, &number.figure));
                other.and_then(|other| compared(number.comparison, value, other))
            }
        };
        if let Some(value) = value {
            values.push(value);
            kinds.push(item.study[run.study].workload);
        }
    }
    let ratio = number.comparison == Some(Comparison::Times);
    let measured = Measured {
        values,
        is_comparison: number.comparison.is_some(),
        middle: f64::from(u8::from(ratio)),
    };
    let unit = match number.comparison {
        Some(Comparison::Less | Comparison::More) => "%",
        _ => &number.unit,
    };
    row(
        number.text.clone(),
        &measured,
        number.paper.range(),
        number.sense,
        unit,
        worst(kinds, item),
    )
}

fn row(
    text: String,
    measured: &Measured,
    paper: (f64, f64),
    sense: Sense,
    unit: &str,
    workload: WorkloadKind,
) -> NumberRow {
    let direction = measured
        .is_comparison
        .then(|| measured.same_direction(paper, sense) as u64);
    NumberRow {
        text,
        paper,
        sense,
        unit: unit.into(),
        ours: measured.mean(),
        least: measured.least(),
        largest: measured.largest(),
        runs: measured.values.len() as u64,
        same_direction: direction,
        workload,
        verdict: measured.verdict(paper, sense),
    }
}

/// The least convincing of some workloads.
fn worst(kinds: Vec<WorkloadKind>, item: &Item) -> WorkloadKind {
    let declared = item.study.iter().map(|study| study.workload).max();
    let of_runs = kinds.into_iter().max();
    of_runs.or(declared).unwrap_or(WorkloadKind::Own)
}

fn figure(run: &Run, name: &str) -> Option<f64> {
    run.figures.get(name).copied().flatten()
}

fn compared(comparison: Option<Comparison>, ours: f64, other: f64) -> Option<f64> {
    let value = match comparison? {
        Comparison::Less => (1.0 - ours / other) * 100.0,
        Comparison::More => (ours / other - 1.0) * 100.0,
        Comparison::Times => ours / other,
        Comparison::Above => ours - other,
    };
    value.is_finite().then_some(value)
}

/// The run that one is compared with: of the same study, with the same values but for those named.
fn partner<'r>(
    run: &Run,
    scheme: &str,
    at: &BTreeMap<String, Value>,
    runs: &'r Runs,
) -> Option<&'r Run> {
    let mut varied = run.varied.clone();
    varied.extend(at.iter().map(|(key, value)| (key.clone(), plain(value))));
    runs.runs
        .iter()
        .find(|other| other.study == run.study && other.scheme == scheme && other.varied == varied)
}

fn is_at(item: &Item, run: &Run, at: &BTreeMap<String, Value>) -> bool {
    at.iter().all(|(key, value)| {
        let here = match key.as_str() {
            "study" => Some(&item.study[run.study].name),
            _ => run.varied.get(key),
        };
        let Some(here) = here else {
            return false;
        };
        match value {
            Value::Array(values) => values.iter().any(|value| plain(value) == *here),
            one => plain(one) == *here,
        }
    })
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Finds mistakes in what an item declares before anything runs.
///
/// # Errors
/// The first of them.
pub fn check(item: &Item) -> Outcome<()> {
    item.number
        .iter()
        .try_for_each(|number| check_number(item, number))?;
    for plot in &item.plot {
        let wrong = |text: String| {
            Err(Problem::new(format!(
                "{}, {}: {text}",
                item.title, plot.title
            )))
        };
        if !item.figure.contains_key(&plot.figure) {
            return wrong(format!("no figure {}", plot.figure));
        }
        let is_known = |scheme: &&String| {
            let mut studies = item.study.iter();
            studies.any(|study| study.schemes.contains(scheme))
        };
        let base = plot.relative_to.iter();
        let named = plot.schemes.iter().chain(plot.paper.keys()).chain(base);
        if let Some(unknown) = named.into_iter().find(|scheme| !is_known(scheme)) {
            return wrong(format!("{unknown} runs in no study"));
        }
        let studies = || item.study.iter().map(|study| &study.name);
        if let Some(unknown) = plot
            .study
            .iter()
            .find(|name| !studies().any(|n| n == *name))
        {
            return wrong(format!("there is no study {unknown}"));
        }
    }
    Ok(())
}

fn check_number(item: &Item, number: &Number) -> Outcome<()> {
    let wrong = |text: String| {
        Err(Problem::new(format!(
            "{}, {}: {text}",
            item.title, number.text
        )))
    };
    if !item.figure.contains_key(&number.figure) {
        return wrong(format!("no figure {}", number.figure));
    }
    let is_known = |scheme: &String| {
        item.study
            .iter()
            .any(|study| study.schemes.contains(scheme))
    };
    for scheme in [Some(&number.scheme), number.than.as_ref()]
        .into_iter()
        .flatten()
    {
        if !is_known(scheme) {
            return wrong(format!("{scheme} runs in no study"));
        }
    }
    let is_pair = number.than.is_some() || !number.than_at.is_empty();
    if is_pair != number.comparison.is_some() {
        return wrong("a comparison needs both `than` and `as`".into());
    }
    Ok(())
}

/// A plot, and a number for each point of the paper.
pub fn plot(item: &Item, plot: &Plot, runs: &Runs) -> (PlotResult, Vec<NumberRow>) {
    let none = Vec::new();
    let xs = runs.axes.get(&plot.x).unwrap_or(&none);
    let mut lines = Vec::new();
    let mut numbers = Vec::new();
    for (i, study) in item.study.iter().enumerate() {
        if !plot.study.is_empty() && !plot.study.contains(&study.name) {
            continue;
        }
        for scheme in &study.schemes {
            if !plot.schemes.is_empty() && !plot.schemes.contains(scheme) {
                continue;
            }
            let values = |x: &str| -> Vec<f64> {
                let here = runs.runs.iter().filter(|run| {
                    run.study == i
                        && run.scheme == *scheme
                        && run.varied.get(&plot.x).is_some_and(|value| value == x)
                });
                here.filter_map(|run| {
                    let value = figure(run, &plot.figure)?;
                    match &plot.relative_to {
                        None => Some(value),
                        Some(base) => {
                            let base = partner(run, base, &BTreeMap::new(), runs)?;
                            compared(Some(Comparison::Times), value, figure(base, &plot.figure)?)
                        }
                    }
                })
                .collect()
            };
            let name = item.names.get(scheme).unwrap_or(scheme);
            let measured = |x: &str| Measured {
                values: values(x),
                is_comparison: plot.relative_to.is_some(),
                middle: f64::from(u8::from(plot.relative_to.is_some())),
            };
            let point = |x: &String| {
                let measured = measured(x);
                Some(LinePoint {
                    x: x.clone(),
                    mean: measured.mean()?,
                    least: measured.least()?,
                    largest: measured.largest()?,
                })
            };
            let points: Vec<LinePoint> = xs.iter().filter_map(point).collect();
            for (x, paper) in plot.paper.get(scheme).into_iter().flatten() {
                let measured = measured(&plain(x));
                // The quick form leaves points out.
                if !measured.values.is_empty() {
                    let text = format!("{name}, {} = {}", short_key(&plot.x), plain(x));
                    let printed = (*paper, *paper);
                    let row = row(
                        text,
                        &measured,
                        printed,
                        Sense::About,
                        &plot.y,
                        study.workload,
                    );
                    numbers.push(row);
                }
            }
            if !points.is_empty() {
                lines.push(Line {
                    name: name.clone(),
                    study: study.name.clone(),
                    points,
                });
            }
        }
    }
    let named = |(scheme, points): (&String, &Vec<(Value, f64)>)| {
        let name = item.names.get(scheme).unwrap_or(scheme);
        let points = points.iter().map(|(x, y)| (plain(x), *y)).collect();
        (name.clone(), points)
    };
    let result = PlotResult {
        title: plot.title.clone(),
        x: plot.x.clone(),
        y: plot.y.clone(),
        is_log: plot.log,
        lines,
        paper: plot.paper.iter().map(named).collect(),
    };
    (result, numbers)
}

/// A key without its section.
fn short_key(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], is_comparison: bool) -> Measured {
        Measured {
            values: values.to_vec(),
            is_comparison,
            middle: 0.0,
        }
    }

    #[test]
    fn a_quarter_off_is_a_reproduction_and_more_is_only_the_direction() {
        let verdict = |values: &[f64]| of(values, true).verdict((40.0, 40.0), Sense::About);
        assert_eq!(verdict(&[31.0, 49.0]), Verdict::Reproduced);
        assert_eq!(verdict(&[29.0]), Verdict::SameDirection);
        assert_eq!(verdict(&[51.0]), Verdict::SameDirection);
        assert_eq!(verdict(&[-1.0]), Verdict::NotReproduced);
        // The mean is right, but one run goes the other way.
        assert_eq!(verdict(&[-10.0, 90.0]), Verdict::SameDirection);
        assert_eq!(verdict(&[]), Verdict::NotAttempted);
    }

    #[test]
    fn a_plain_figure_may_be_twice_or_half_as_large() {
        let verdict = |value: f64| of(&[value], false).verdict((10.0, 10.0), Sense::About);
        assert_eq!(verdict(12.5), Verdict::Reproduced);
        assert_eq!(verdict(7.4), Verdict::SameDirection);
        assert_eq!(verdict(20.0), Verdict::SameDirection);
        assert_eq!(verdict(20.1), Verdict::NotReproduced);
        assert_eq!(verdict(4.9), Verdict::NotReproduced);
    }

    #[test]
    fn limits_are_limits() {
        let most = |values: &[f64]| of(values, true).verdict((0.8, 0.8), Sense::AtMost);
        assert_eq!(most(&[0.0, 0.8]), Verdict::Reproduced);
        assert_eq!(most(&[0.0, 0.9]), Verdict::SameDirection);
        assert_eq!(most(&[2.0]), Verdict::NotReproduced);
        let better = |values: &[f64]| of(values, true).verdict((0.0, 0.0), Sense::AtLeast);
        assert_eq!(better(&[0.0, 3.0]), Verdict::Reproduced);
        assert_eq!(better(&[-1.0, 3.0]), Verdict::SameDirection);
        assert_eq!(better(&[-3.0, 1.0]), Verdict::NotReproduced);
        let kept = of(&[-1.0, 7.0, 8.0], true).same_direction((7.0, 7.0), Sense::AtMost);
        assert_eq!(kept, 2);
        let least = |values: &[f64]| of(values, true).verdict((30.0, 30.0), Sense::AtLeast);
        assert_eq!(least(&[30.0, 40.0]), Verdict::Reproduced);
        assert_eq!(least(&[20.0, 30.0]), Verdict::SameDirection);
        assert_eq!(least(&[-5.0]), Verdict::NotReproduced);
    }

    #[test]
    fn a_ratio_turns_at_one() {
        let times = |value: f64| {
            let measured = Measured {
                middle: 1.0,
                ..of(&[value], true)
            };
            measured.verdict((0.5, 0.5), Sense::About)
        };
        assert_eq!(times(0.6), Verdict::Reproduced);
        assert_eq!(times(0.9), Verdict::SameDirection);
        assert_eq!(times(1.1), Verdict::NotReproduced);
    }

    #[test]
    fn the_verdict_over_several_numbers() {
        use Verdict::{NotAttempted as A, NotReproduced as N, Reproduced as R, SameDirection as S};
        assert_eq!(over([R, R, A]), R);
        assert_eq!(over([R, N]), S);
        assert_eq!(over([R, N, N]), N);
        assert_eq!(over([S, N]), S);
        assert_eq!(over([A]), A);
    }
}
