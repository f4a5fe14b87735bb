//! `floatgate fit`: which drive would have been measured so.

mod drive;
mod text;

use serde::Serialize;

use floatgate_catalog::Scheme;

use crate::PROGRAM;
use crate::args::FitArgs;
use crate::commands::study::check_outputs;
use crate::config::Settings;
use crate::errors::{Outcome, Problem, nearest};
use crate::fit::measured::{Run, Told, parse};
use crate::fit::solve::{self, Fitted, Known};
use crate::fit::{CANDIDATES, Candidate, Laboratory, Model, Size, simulations};
use crate::output;
use crate::progress::Bar;

use super::parallel::workers;

/// The flag of the configuration.
const OUT_FLAG: &str = "--out";

/// Everything that `--json` prints; docs/fit.md.
#[derive(Debug, Serialize)]
struct FitDocument {
    program: String,
    file: String,
    runs: Vec<RunRow>,
    best: Best,
    candidates: Vec<CandidateRow>,
    notes: Vec<String>,
}

/// A candidate with the numbers that suit it best.
#[derive(Debug, Serialize)]
struct CandidateRow {
    candidate: &'static str,
    gc_policy: &'static str,
    streams: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gc_d: Option<u32>,
    block_pages: u32,
    capacity_bytes: u64,
    capacity_least_bytes: u64,
    capacity_most_bytes: u64,
    overhead: Option<f64>,
    overhead_least: Option<f64>,
    overhead_most: Option<f64>,
    flash_bytes_per_s: Option<f64>,
    error_rms: f64,
    error_worst: f64,
    is_as_good_as_the_best: bool,
}

/// The best one, simulated once more at the runs' own points.
#[derive(Debug, Serialize)]
struct Best {
    #[serde(flatten)]
    fit: CandidateRow,
    /// Beside the best one's own, those of all that are as good.
    capacity_least_bytes_of_all: u64,
    capacity_most_bytes_of_all: u64,
    as_good: Vec<String>,
}

/// A run beside what the best candidate says of it.
#[derive(Debug, Serialize)]
struct RunRow {
    run: String,
    workload: String,
    span_bytes: f64,
    measured: f64,
    unit: &'static str,
    ours: f64,
    error: f64,
    noise: Option<f64>,
}

/// Finds the drive, and prints it.
pub fn run(args: &FitArgs, schemes: &[Scheme]) -> Outcome<()> {
    let shown = args.file.display().to_string();
    let outputs = [(OUT_FLAG, args.out.as_deref())];
    check_outputs(&outputs, [args.file.as_path()].into_iter())?;
    let text = std::fs::read_to_string(&args.file).map_err(|error| {
        Problem::new(format!("{shown}: {error}"))
            .help("a table as docs/fit.md defines it; `floatgate recipe fit` prints commands that make one")
    })?;
    let runs = parse(&shown, text)?;
    let known = Known {
        capacity: args.capacity.map(|bytes| bytes as f64),
        overhead: args.overhead,
    };
    check_capacity(&runs, known)?;
    let models = simulate(args, &runs, known, schemes)?;
    let fitted = solve::rank(&runs, &models, known);
    let fitted = verified(args, &runs, &models, known, schemes, fitted)?;
    let document = document(shown, &runs, &models, &fitted, known)?;
    if let Some(path) = &args.out {
        let toml =
            drive::configuration(&document.file, &runs, &models[fitted[0].model], &fitted[0])?;
        output::write_file(OUT_FLAG, path, toml)?;
        output::tell(&format!("Configuration: {}", path.display()));
    }
    match args.json {
        true => output::print_json(&document),
        false => output::print(&text::text(&document)),
    }
}

fn check_capacity(runs: &[Run], known: Known) -> Outcome<()> {
    let largest = runs.iter().map(|run| run.span_bytes).fold(0.0, f64::max);
    match known.capacity {
        Some(capacity) if capacity < 1.025 * largest => {
            let text = format!("--capacity: {capacity} bytes of flash for {largest} bytes of data");
            Err(Problem::new(text).help(
                "at least 2.5 % more than the largest span_bytes: no collection goes on with less",
            ))
        }
        _ => Ok(()),
    }
}

fn candidates(args: &FitArgs) -> Outcome<Vec<Candidate>> {
    if args.candidates.is_empty() {
        return Ok(CANDIDATES.to_vec());
    }
    let names = || CANDIDATES.iter().map(|candidate| candidate.name);
    let named = args.candidates.iter().map(|name| {
        let found = CANDIDATES
            .iter()
            .find(|candidate| candidate.name == name.trim());
        found.copied().ok_or_else(|| {
            let known = names().collect::<Vec<_>>().join(", ");
            let help = match nearest(name, names()) {
                Some(like) => format!("is {like} meant? there are {known}"),
                None => format!("there are {known}"),
            };
            Problem::new(format!("--candidates: no candidate {name:?}")).help(help)
        })
    });
    named.collect()
}

fn size(args: &FitArgs, block_pages: u32) -> Outcome<Size> {
    let blocks = args.model_pages / block_pages;
    // Fewer are too few for 2.5 % of them to be more than the reserve.
    match blocks {
        160.. => Ok(Size {
            blocks,
            pages: block_pages,
        }),
        _ => {
            let text = format!(
                "--block-pages {block_pages}: a model of {} pages has {blocks} such blocks",
                args.model_pages
            );
            let help = format!(
                "--model-pages {} or more, or smaller blocks",
                160 * block_pages
            );
            Err(Problem::new(text).help(help))
        }
    }
}

fn simulate(args: &FitArgs, runs: &[Run], known: Known, schemes: &[Scheme]) -> Outcome<Vec<Model>> {
    let candidates = candidates(args)?;
    let asked = solve::asked(runs, &solve::capacities(runs, known));
    let sizes = args.block_pages.iter().map(|&pages| size(args, pages));
    let sizes: Vec<Size> = sizes.collect::<Outcome<_>>()?;
    let each = simulations(candidates.len(), &asked);
    let workers = workers(args.jobs, &Settings::default(), each as usize);
    let bar = Bar::long(each * sizes.len() as u64, "simulations");
    let models = sizes.into_iter().map(|size| {
        let laboratory = Laboratory::new(schemes, size, args.rounds)?;
        Model::simulated(&laboratory, &candidates, &asked, workers, &|| bar.add(1))
    });
    let models = models.collect();
    bar.done();
    models
}

/// The best one again, with its runs simulated where they were measured and not interpolated.
fn verified(
    args: &FitArgs,
    runs: &[Run],
    models: &[Model],
    known: Known,
    schemes: &[Scheme],
    mut fitted: Vec<Fitted>,
) -> Outcome<Vec<Fitted>> {
    let best = fitted
        .first()
        .ok_or_else(|| Problem::bug("no candidate was fitted"))?;
    let model = &models[best.model];
    let laboratory = Laboratory::new(schemes, model.size, args.rounds)?;
    let workers = workers(args.jobs, &Settings::default(), runs.len());
    let corrections = super::parallel::all(
        runs.len(),
        workers,
        |_| 0,
        |i| {
            let writes = laboratory.writes(runs[i].workload)?;
            let ratio = best.capacity / runs[i].span_bytes;
            let (ratio, amplification) = laboratory.simulate(&best.candidate, &writes, ratio)?;
            let curve = model.curve(best.place, runs[i].workload);
            let curve = curve.ok_or_else(|| Problem::bug("a workload without a curve"))?;
            Ok((amplification / curve.at(ratio)).ln())
        },
    );
    let corrections: Vec<f64> = corrections.into_iter().collect::<Outcome<_>>()?;
    let place = (best.model, best.place);
    let again = solve::fit(runs, models, place, known, &corrections, solve::noise(runs));
    if let Some(again) = again {
        fitted[0] = again;
        // It stays the best: the others were not simulated as exactly.
        solve::mark(&mut fitted, runs, known);
    }
    Ok(fitted)
}

fn document(
    file: String,
    runs: &[Run],
    models: &[Model],
    fitted: &[Fitted],
    known: Known,
) -> Outcome<FitDocument> {
    let best = fitted
        .first()
        .ok_or_else(|| Problem::bug("no candidate was fitted"))?;
    let as_good: Vec<&Fitted> = fitted.iter().filter(|one| one.is_as_good).collect();
    let ends = as_good.iter().map(|one| one.capacity_range);
    let (low, high) = ends.fold((f64::MAX, 0.0_f64), |(low, high), (a, b)| {
        (low.min(a), high.max(b))
    });
    let mut names: Vec<String> = Vec::new();
    for one in as_good.iter().filter(|one| one.candidate != best.candidate) {
        if !names.iter().any(|name| name == one.candidate.name) {
            names.push(one.candidate.name.into());
        }
    }
    Ok(FitDocument {
        program: PROGRAM.into(),
        file,
        runs: runs.iter().zip(&best.errors).map(run_row).collect(),
        best: Best {
            fit: row(best, models),
            capacity_least_bytes_of_all: low.round() as u64,
            capacity_most_bytes_of_all: high.round() as u64,
            as_good: names,
        },
        candidates: of_each(fitted).map(|one| row(one, models)).collect(),
        notes: text::notes(runs, fitted, known),
    })
}

/// Each candidate once, with the length of blocks that suits it best.
fn of_each(fitted: &[Fitted]) -> impl Iterator<Item = &Fitted> {
    fitted.iter().enumerate().filter_map(|(i, one)| {
        let is_first = fitted[..i]
            .iter()
            .all(|other| other.candidate != one.candidate);
        is_first.then_some(one)
    })
}

fn row(fitted: &Fitted, models: &[Model]) -> CandidateRow {
    let candidate = fitted.candidate;
    CandidateRow {
        candidate: candidate.name,
        gc_policy: candidate.policy,
        streams: candidate.streams(),
        gc_d: candidate.draws,
        block_pages: models[fitted.model].size.pages,
        capacity_bytes: fitted.capacity.round() as u64,
        capacity_least_bytes: fitted.capacity_range.0.round() as u64,
        capacity_most_bytes: fitted.capacity_range.1.round() as u64,
        overhead: fitted.overhead,
        overhead_least: fitted.overhead_range.map(|range| range.0),
        overhead_most: fitted.overhead_range.map(|range| range.1),
        flash_bytes_per_s: fitted.flash_bytes_per_s,
        error_rms: fitted.rms(),
        error_worst: fitted.worst(),
        is_as_good_as_the_best: fitted.is_as_good,
    }
}

fn run_row((run, error): (&Run, &f64)) -> RunRow {
    let (measured, unit, ours) = match run.told {
        Told::Amplification(measured) => (measured, "write amplification", measured / error.exp()),
        // The error is that of the write amplification: a drive that is slower writes more.
        Told::Throughput(measured) => (measured, "bytes/s", measured * error.exp()),
    };
    RunRow {
        run: run.name.clone(),
        workload: run.workload.to_string(),
        span_bytes: run.span_bytes,
        measured,
        unit,
        ours,
        error: ours / measured - 1.0,
        noise: run.noise,
    }
}
