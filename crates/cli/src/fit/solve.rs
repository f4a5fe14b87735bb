//! The numbers that explain the runs best, candidate by candidate: capacity, overhead, speed of the flash.
//!
//! Errors are logarithms of measured over ours. With the capacity given, the best overhead is the mean of the errors of the
//! runs that count bytes, and the best speed that of the runs that only have a throughput; so the capacity alone is
//! searched, in steps too small to matter.

use std::ops::Range;

use floatgate_sim::analytic::greedy;

use super::measured::{Run, Told};
use super::{Candidate, Model, Workload};

/// Steps of the capacity, as a share.
const STEP: f64 = 2e-4;
/// Runs are not explained better than that: what the model itself is off, as a share.
pub const FLOOR: f64 = 0.003;
/// A number may go so far that the squares of the errors grow by so many squares of the noise: two standard deviations.
const RANGE: f64 = 4.0;
/// A candidate is as good as the best if its squares are more by no more than that: else it is a hundred times less likely.
const AS_GOOD: f64 = 9.2;
/// Writing beside pages costs no more than that.
const OVERHEAD_MAX: f64 = 1.5;
/// The least spare space that is simulated.
const RATIO_MIN: f64 = 1.025;
const RATIO_MAX: f64 = 30.0;

/// What is not to be fitted, because it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Bytes of flash.
    pub capacity: Option<f64>,
    /// The factor of what is written beside pages.
    pub overhead: Option<f64>,
}

/// A candidate with the numbers that suit it best.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// Which model.
    pub model: usize,
    /// Which of its candidates.
    pub place: usize,
    /// The candidate.
    pub candidate: Candidate,
    /// Bytes of flash that can hold data.
    pub capacity: f64,
    /// As far as it can go.
    pub capacity_range: (f64, f64),
    /// The factor of what is written beside pages; nothing if no run counts bytes.
    pub overhead: Option<f64>,
    /// As far as it can go.
    pub overhead_range: Option<(f64, f64)>,
    /// Bytes a second that the flash programs, where runs have throughputs only.
    pub flash_bytes_per_s: Option<f64>,
    /// Error of each run, the logarithm of measured over ours.
    pub errors: Vec<f64>,
    /// Whether it explains the runs as well as the best one does.
    pub is_as_good: bool,
    /// Whether the capacity is at an end of what was tried.
    pub is_at_end: bool,
}

impl Fitted {
    /// The sum of the squares of the errors.
    pub fn squares(&self) -> f64 {
        squares(&self.errors)
    }

    /// The root of their mean.
    pub fn rms(&self) -> f64 {
        (self.squares() / self.errors.len() as f64).sqrt()
    }

    /// The largest.
    pub fn worst(&self) -> f64 {
        self.errors
            .iter()
            .fold(0.0, |worst: f64, error| worst.max(error.abs()))
    }
}

fn squares(errors: &[f64]) -> f64 {
    errors.iter().map(|error| error * error).sum()
}

/// How many of the runs count bytes, and how many have throughputs only.
pub fn kinds(runs: &[Run]) -> (usize, usize) {
    let counted = runs
        .iter()
        .filter(|run| matches!(run.told, Told::Amplification(_)))
        .count();
    (counted, runs.len() - counted)
}

/// How many numbers are fitted to the runs.
pub fn numbers(runs: &[Run], known: Known) -> usize {
    let (counted, timed) = kinds(runs);
    usize::from(known.capacity.is_none())
        + usize::from(counted > 0 && known.overhead.is_none())
        + usize::from(timed > 0)
}

/// Bytes of flash between which the best is looked for.
pub fn capacities(runs: &[Run], known: Known) -> Range<f64> {
    if let Some(capacity) = known.capacity {
        return capacity * (1.0 - STEP / 2.0)..capacity * (1.0 + STEP / 2.0);
    }
    let largest = runs.iter().map(|run| run.span_bytes).fold(0.0, f64::max);
    let most_written = runs.iter().filter_map(|run| match run.told {
        Told::Amplification(amplification) => {
            Some((amplification / known.overhead.unwrap_or(1.0), run))
        }
        Told::Throughput(_) => None,
    });
    let Some((amplification, run)) = most_written.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return largest * RATIO_MIN..largest * 1.8;
    };
    // Around what greedy collection would need for it: other rules need more space, skewed writes less or more.
    let spare = spare_of_greedy(amplification);
    let (least, most) = match run.workload {
        Workload::Uniform => (0.85, 2.0),
        _ => (0.5, 2.4),
    };
    let low = run.span_bytes * (1.0 + least * spare);
    low.max(largest * RATIO_MIN)
        ..(run.span_bytes * (1.0 + most * spare)).max(largest * RATIO_MIN * 1.05)
}

/// Flash over data, less 1, at which the closed formula for greedy collection gives this write amplification.
fn spare_of_greedy(amplification: f64) -> f64 {
    let (mut low, mut high) = (1e-3_f64, RATIO_MAX);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        match greedy(1.0 + middle, 64) > amplification {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// The workloads of the runs, each with the ratios of flash to data that it takes.
pub fn asked(runs: &[Run], capacities: &Range<f64>) -> Vec<(Workload, Range<f64>)> {
    let mut asked: Vec<(Workload, Range<f64>)> = Vec::new();
    for run in runs {
        // A little more on both sides: interpolation is best inside.
        let low =
            (capacities.start / run.span_bytes * 0.99).clamp(RATIO_MIN - 0.005, RATIO_MAX / 1.2);
        let high = (capacities.end / run.span_bytes * 1.01).clamp(low * 1.05, RATIO_MAX);
        match asked
            .iter_mut()
            .find(|(workload, _)| *workload == run.workload)
        {
            Some((_, range)) => *range = range.start.min(low)..range.end.max(high),
            None => asked.push((run.workload, low..high)),
        }
    }
    asked
}

/// The errors left when overhead and speed are the best ones.
struct Best {
    overhead: f64,
    speed: f64,
    errors: Vec<f64>,
}

/// `raw`: logarithms of measured over the model's write amplification; for throughputs, of the inverse.
fn best(runs: &[Run], raw: &[f64], known: Known) -> Best {
    let mean = |counted: bool| {
        let of = runs.iter().zip(raw);
        let of = of.filter(|(run, _)| matches!(run.told, Told::Amplification(_)) == counted);
        let (sum, n) = of.fold((0.0, 0.0), |(sum, n), (_, error)| (sum + error, n + 1.0));
        if n > 0.0 { sum / n } else { 0.0 }
    };
    let overhead = match known.overhead {
        Some(overhead) => overhead.ln(),
        None => mean(true).clamp(0.0, OVERHEAD_MAX.ln()),
    };
    let speed = mean(false);
    let error = |(run, raw): (&Run, &f64)| match run.told {
        Told::Amplification(_) => raw - overhead,
        Told::Throughput(_) => raw - speed,
    };
    let errors = runs.iter().zip(raw).map(error).collect();
    Best {
        overhead,
        speed,
        errors,
    }
}

/// What each run says about a candidate, with corrections of what the model says of each.
fn raw(
    runs: &[Run],
    model: &Model,
    place: usize,
    capacity: f64,
    corrections: &[f64],
) -> Option<Vec<f64>> {
    let of = |(run, correction): (&Run, &f64)| {
        let ours = model
            .curve(place, run.workload)?
            .at(capacity / run.span_bytes)
            .ln()
            + correction;
        Some(match run.told {
            Told::Amplification(measured) => measured.ln() - ours,
            Told::Throughput(speed) => -speed.ln() - ours,
        })
    };
    runs.iter().zip(corrections).map(of).collect()
}

/// The best numbers for a candidate of a model. `noise`: the least of a run's, as a share.
pub fn fit(
    runs: &[Run],
    models: &[Model],
    (model, place): (usize, usize),
    known: Known,
    corrections: &[f64],
    noise: f64,
) -> Option<Fitted> {
    let range = capacities(runs, known);
    let steps = ((range.end / range.start).ln() / STEP).ceil().max(1.0) as u32;
    let at = |i: u32| {
        range.start * ((range.end / range.start).ln() * f64::from(i) / f64::from(steps)).exp()
    };
    let tried = (0..=steps).map(|i| {
        let raw = raw(runs, models.get(model)?, place, at(i), corrections)?;
        Some((at(i), best(runs, &raw, known)))
    });
    let tried: Vec<(f64, Best)> = tried.collect::<Option<_>>()?;
    let sum = |(_, best): &(f64, Best)| squares(&best.errors);
    let (chosen, (capacity, found)) = tried
        .iter()
        .enumerate()
        .min_by(|(_, a), (_, b)| sum(a).total_cmp(&sum(b)))?;
    let free = runs.len().saturating_sub(numbers(runs, known)).max(1) as f64;
    let variance = (squares(&found.errors) / free).max(noise * noise);
    let limit = squares(&found.errors) + RANGE * variance;
    let within: Vec<&(f64, Best)> = tried.iter().filter(|tried| sum(tried) <= limit).collect();
    let (counted, timed) = kinds(runs);
    let overheads = within.iter().map(|tried| {
        let reach = match known.overhead {
            Some(_) => 0.0,
            None => ((limit - sum(tried)) / counted.max(1) as f64).sqrt(),
        };
        (tried.1.overhead - reach, tried.1.overhead + reach)
    });
    let overhead_range = overheads.fold((f64::MAX, 0.0_f64), |(low, high), (a, b)| {
        (low.min(a), high.max(b))
    });
    let fitted_capacity = known.capacity.is_none();
    Some(Fitted {
        model,
        place,
        candidate: models.get(model)?.candidates.get(place).copied()?,
        capacity: known.capacity.unwrap_or(*capacity),
        capacity_range: match known.capacity {
            Some(capacity) => (capacity, capacity),
            None => (within.first()?.0, within.last()?.0),
        },
        overhead: (counted > 0).then(|| found.overhead.exp()),
        overhead_range: (counted > 0)
            .then(|| (overhead_range.0.max(0.0).exp(), overhead_range.1.exp())),
        flash_bytes_per_s: (timed > 0).then(|| (-found.speed).exp()),
        errors: found.errors.clone(),
        is_as_good: false,
        is_at_end: fitted_capacity && (chosen == 0 || chosen as u32 == steps),
    })
}

/// What a run's noise is at least: that of the model, or what the runs say of themselves.
pub fn noise(runs: &[Run]) -> f64 {
    let told: Vec<f64> = runs.iter().filter_map(|run| run.noise).collect();
    let mean = squares(&told) / told.len().max(1) as f64;
    mean.sqrt().max(FLOOR)
}

/// All candidates of all models with their best numbers, the best first.
pub fn rank(runs: &[Run], models: &[Model], known: Known) -> Vec<Fitted> {
    let (noise, none) = (noise(runs), vec![0.0; runs.len()]);
    let places = models
        .iter()
        .enumerate()
        .flat_map(|(i, model)| (0..model.candidates.len()).map(move |j| (i, j)));
    let mut fitted: Vec<Fitted> = places
        .filter_map(|place| fit(runs, models, place, known, &none, noise))
        .collect();
    fitted.sort_by(|a, b| a.squares().total_cmp(&b.squares()));
    mark(&mut fitted, runs, known);
    fitted
}

/// Says which are as good as the first.
pub fn mark(fitted: &mut [Fitted], runs: &[Run], known: Known) {
    let Some(least) = fitted.first().map(Fitted::squares) else {
        return;
    };
    let free = runs.len().saturating_sub(numbers(runs, known)).max(1) as f64;
    let variance = (least / free).max(noise(runs).powi(2));
    for one in fitted {
        one.is_as_good = one.squares() <= least + AS_GOOD * variance;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CANDIDATES, Curve};
    use super::*;

    const HOT: Workload = Workload::Hot {
        writes: 90,
        pages: 10,
    };
    const FLASH: f64 = 1.2e9;

    /// Two candidates, alike under uniform writes; the second costs a tenth less when writes are skewed.
    fn models() -> Vec<Model> {
        let curve = |skewed: f64| {
            let at = |ratio: f64| (ratio, 1.0 + skewed * (greedy(ratio, 64) - 1.0));
            Curve::new((0..40).map(|i| at(1.03 * 1.04_f64.powi(i))))
        };
        let curves = vec![curve(1.0), curve(1.2), curve(1.0), curve(1.05)];
        vec![Model::known(
            &CANDIDATES[..2],
            &[Workload::Uniform, HOT],
            curves,
        )]
    }

    fn run(workload: Workload, span_bytes: f64, told: Told) -> Run {
        Run {
            name: "a".into(),
            workload,
            logical_bytes: None,
            span_bytes,
            told,
            noise: None,
        }
    }

    /// What a drive like the first candidate gives: by its counter, or by its speed.
    fn runs(overhead: f64, speed: Option<f64>) -> Vec<Run> {
        let models = models();
        let spans = [0.5e9, 0.7e9, 0.8e9, 0.9e9, 1e9].map(|span| (Workload::Uniform, span));
        let told = |(workload, span): (Workload, f64)| {
            let amplification = models[0].curve(0, workload).unwrap().at(FLASH / span);
            run(
                workload,
                span,
                match speed {
                    Some(speed) => Told::Throughput(speed / amplification),
                    None => Told::Amplification(overhead * amplification),
                },
            )
        };
        spans
            .into_iter()
            .chain([(HOT, 1e9), (HOT, 0.8e9)])
            .map(told)
            .collect()
    }

    fn near(ours: f64, truth: f64, share: f64) {
        assert!((ours / truth - 1.0).abs() < share, "{ours} for {truth}");
    }

    #[test]
    fn a_drive_with_a_counter_is_found() {
        let fitted = rank(&runs(1.05, None), &models(), Known::default());
        let [best, other] = &fitted[..] else {
            panic!("two candidates");
        };
        assert_eq!(best.candidate, CANDIDATES[0]);
        near(best.capacity, FLASH, 5e-4);
        near(best.overhead.unwrap(), 1.05, 1e-3);
        assert_eq!(best.flash_bytes_per_s, None);
        assert!(best.is_as_good && !other.is_as_good && !best.is_at_end);
        // The ranges hold the truth and more, but not everything.
        let (low, high) = best.capacity_range;
        assert!(
            0.97 * FLASH < low
                && low < 0.999 * FLASH
                && 1.001 * FLASH < high
                && high < 1.03 * FLASH
        );
        let (low, high) = best.overhead_range.unwrap();
        assert!(
            1.03 < low && low < 1.0499 && 1.0501 < high && high < 1.07,
            "{low} {high}"
        );
    }

    #[test]
    fn a_drive_without_a_counter_is_found_by_its_speed() {
        let fitted = rank(&runs(1.05, Some(3e8)), &models(), Known::default());
        assert_eq!(fitted[0].candidate, CANDIDATES[0]);
        near(fitted[0].capacity, FLASH, 5e-4);
        near(fitted[0].flash_bytes_per_s.unwrap(), 3e8, 2e-3);
        assert_eq!(fitted[0].overhead, None);
        assert!(!fitted[1].is_as_good);
    }

    #[test]
    fn uniform_writes_do_not_tell_what_is_alike_under_them() {
        let runs: Vec<Run> = runs(1.02, None).into_iter().take(5).collect();
        let fitted = rank(&runs, &models(), Known::default());
        assert!(fitted.iter().all(|one| one.is_as_good));
    }

    #[test]
    fn nothing_is_written_beside_pages_at_the_least() {
        // Some of the measured write amplifications are too low to be true.
        let fitted = rank(&runs(0.98, None), &models(), Known::default());
        assert_eq!(fitted[0].overhead, Some(1.0));
        let (low, _) = fitted[0].overhead_range.unwrap();
        assert_eq!(low, 1.0);
    }

    #[test]
    fn what_is_known_is_not_fitted() {
        let known = Known {
            capacity: Some(1.21e9),
            overhead: Some(1.03),
        };
        let runs = runs(1.05, None);
        let fitted = rank(&runs, &models(), known);
        assert_eq!(
            (fitted[0].capacity, fitted[0].capacity_range),
            (1.21e9, (1.21e9, 1.21e9))
        );
        near(fitted[0].overhead.unwrap(), 1.03, 1e-12);
        assert_eq!(
            (numbers(&runs, known), numbers(&runs, Known::default())),
            (0, 2)
        );
        assert!(fitted[0].worst() > 0.01);
    }
}
