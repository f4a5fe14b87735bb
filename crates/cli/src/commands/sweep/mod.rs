//! `floatgate sweep`: schemes over all combinations of varied settings.

pub(super) mod cases;
mod closed_form;
pub(super) mod devices;
mod document;
pub mod elsewhere;
pub(super) mod journal;
pub mod play;
pub mod rows;

use std::path::Path;

use floatgate_catalog::Scheme;
use floatgate_sim::record::sweep::SweepDocument;
use floatgate_sim::record::{self, Reason};

use super::compare::chosen;
use super::parallel;
use super::study::{REPORT_FLAG, check_outputs, notes_text, write_report};
use super::variant::Variant;
use crate::args::SweepArgs;
use crate::config::Settings;
use crate::config::vary::{self, Axis};
use crate::errors::{Outcome, Problem};
use crate::output;
use crate::progress::Bar;
use crate::report;
use crate::table::{bytes, count, some};
use crate::traces::{Choice, Decoded};

use cases::{Case, Scans};
use play::{Cell, Played, Stage};
use rows::OUT_FLAG;

/// Runs every scheme on every combination, and prints and writes a row for each.
pub fn run(args: &SweepArgs, schemes: &[Scheme]) -> Outcome<()> {
    let planned = Planned::new(args, schemes, &mut |trace| output::tell(trace))?;
    let Planned {
        settings,
        axes,
        chosen,
        cases,
        traces,
        scans,
        ..
    } = &planned;
    let cells = planned.cells(&play::program())?;
    output::tell(&format!("Device: {}", devices::describe(cases)));
    let workers = parallel::workers(args.jobs, settings, cells.len());
    let held: u64 = traces.iter().map(Decoded::bytes).sum();
    output::tell(&format!(
        "Sweep:  {}, {} at a time; {} for the traces",
        described(axes, cells.len(), chosen.len(), args.zip),
        workers,
        bytes(held as f64)
    ));
    let stage = Stage {
        cells: &cells,
        traces,
        scans,
        keep_records: args.setup.json || args.out.as_deref().is_some_and(rows::is_json),
    };
    let out = args.out.as_deref().map(|path| (path, args.fresh));
    let (played, journal) = stage.play(out, workers)?;
    let problem = failures(&played);
    if played.iter().all(|cell| cell.figures.is_none()) {
        journal.map_or(Ok(()), journal::Journal::remove)?;
        return Err(problem.unwrap_or_else(|| Problem::new("no cell ran")));
    }
    let document = document::of(axes, cases, traces, &cells, &played, chosen);
    finish(args, &document)?;
    // Only now is it of no more use.
    journal.map_or(Ok(()), journal::Journal::remove)?;
    problem
        .filter(|problem| problem.code() == crate::errors::EXIT_BUG)
        .map_or(Ok(()), Err)
}

/// A sweep whose traces were read and whose devices are sized; nothing has run yet.
pub struct Planned<'a> {
    settings: Settings,
    axes: Vec<Axis>,
    chosen: Vec<Variant<'a>>,
    cases: Vec<Case>,
    traces: Vec<Decoded>,
    identities: Vec<String>,
    scans: Scans,
}

impl<'a> Planned<'a> {
    /// Reads and checks all that is asked for. `tell` is called with what is to be said of each trace.
    ///
    /// # Errors
    /// Whatever is wrong with settings, traces or files and concerns all cells.
    pub fn new(
        args: &SweepArgs,
        schemes: &'a [Scheme],
        tell: &mut dyn FnMut(&str),
    ) -> Outcome<Self> {
        let Given {
            file,
            settings,
            axes,
            chosen,
        } = Given::of(args, schemes)?;
        let named: Vec<&Scheme> = chosen.iter().map(|variant| variant.scheme).collect();
        check_axes(args, &axes, &named)?;
        let (mut cases, choices) = cases::of(&axes, args.zip, &settings, &args.setup, schemes)?;
        if let Some(case) = cases.first() {
            case.settings.check_options(&named)?;
        }
        if let Some(out) = &args.out {
            rows::check_name(out)?;
        }
        let outputs = [
            (OUT_FLAG, args.out.as_deref()),
            (REPORT_FLAG, args.setup.report.as_deref()),
        ];
        check_outputs(&outputs, choices.iter().flat_map(Choice::paths).chain(file))?;
        let (traces, identities) = read(&choices)?;
        for trace in &traces {
            tell(&format!("Trace:  {}", trace.about.describe()));
        }
        let scans = Scans::of(&cases, &traces);
        devices::size(&mut cases, &scans, schemes, &chosen);
        if let Some(problem) = no_plan(&cases) {
            return Err(problem);
        }
        Ok(Self {
            settings,
            axes,
            chosen,
            cases,
            traces,
            identities,
            scans,
        })
    }

    /// All cells, by case and then scheme.
    ///
    /// # Errors
    /// As [`play::cells`].
    fn cells(&self, program: &str) -> Outcome<Vec<Cell<'_>>> {
        play::cells(&self.cases, &self.chosen, &self.identities, program)
    }
}

/// What the arguments of a sweep say; nothing was opened but the configuration.
struct Given<'a, 'f> {
    file: Option<&'f Path>,
    settings: Settings,
    axes: Vec<Axis>,
    chosen: Vec<Variant<'a>>,
}

impl<'a, 'f> Given<'a, 'f> {
    fn of(args: &'f SweepArgs, schemes: &'a [Scheme]) -> Outcome<Self> {
        let file = args.file.as_deref().or(args.setup.config.as_deref());
        let sets = args.setup.sets();
        let (settings, axes) = vary::load(file, &sets, &args.vary, args.zip, schemes)?;
        let (chosen, _) = chosen(&args.scheme, &settings, schemes)?;
        Ok(Self {
            file,
            settings,
            axes,
            chosen,
        })
    }
}

/// Refuses what would run only once, and what would be varied in vain.
fn check_axes(args: &SweepArgs, axes: &[Axis], chosen: &[&Scheme]) -> Outcome<()> {
    if axes.is_empty() {
        return Err(Problem::new("nothing is varied").help(
            "--vary device.log_percent=3..20, or a table [vary] in the configuration; `floatgate sweep --help` has examples",
        ));
    }
    for axis in axes {
        let of_other = |scheme: &&Scheme| !axis.path.starts_with(&own_options(scheme));
        if axis.path.starts_with("schemes.") && chosen.iter().all(of_other) {
            let text = format!("{} is varied, but its scheme does not run", axis.key);
            let names: Vec<&str> = chosen.iter().map(|scheme| scheme.info.key).collect();
            return Err(Problem::new(text).at(&axis.place).help(format!(
                "add it to the schemes, which are {}",
                names.join(", ")
            )));
        }
    }
    let trace = axes.iter().find(|axis| axis.path == "trace.file");
    match trace.filter(|_| !args.setup.trace.is_empty()) {
        Some(axis) => Err(
            Problem::new(format!("--trace and {} both name the trace", axis.key))
                .at(&axis.place)
                .help("leave --trace out"),
        ),
        None => Ok(()),
    }
}

/// The problem of a sweep whose settings never fit together: it can point at one of them.
fn no_plan(cases: &[Case]) -> Option<Problem> {
    let problems: Option<Vec<&Problem>> = cases.iter().map(|c| c.plan.as_ref().err()).collect();
    problems?.first().map(|problem| (*problem).clone())
}

/// What the paths of a scheme's own options begin with.
fn own_options(scheme: &Scheme) -> String {
    format!("schemes.{}.", scheme.info.key)
}

/// Reads all traces: whatever is wrong with one of them shows before anything has run.
fn read(choices: &[Choice]) -> Outcome<(Vec<Decoded>, Vec<String>)> {
    let bar = Bar::new(choices.len() as u64, "traces read");
    let (mut traces, mut identities) = (Vec::new(), Vec::new());
    for choice in choices {
        bar.message(choice.name());
        identities.push(choice.identity());
        traces.push(choice.decode(&mut || {})?);
        bar.add(1);
    }
    bar.done();
    Ok((traces, identities))
}

/// One line: how the cells come about.
fn described(axes: &[Axis], cells: usize, schemes: usize, in_step: bool) -> String {
    let between = if in_step { " with " } else { " x " };
    let factors: Vec<String> = axes
        .iter()
        .map(|axis| format!("{} of {}", some(axis.count() as u64, "value"), axis.key))
        .collect();
    format!(
        "{} = {} x {}",
        some(cells as u64, "cell"),
        factors.join(between),
        some(schemes as u64, "scheme")
    )
}

/// A bug if there is one, else why the first cell that failed did so.
fn failures(played: &[Played]) -> Option<Problem> {
    let failed = played.iter().filter_map(|cell| match &cell.result {
        Some(record::Outcome::Failed(failed)) => Some(failed),
        _ => None,
    });
    let problem = |failed: &record::Failed| match &failed.reason {
        Reason::Bug(text) => Problem::bug(format!("{}: {text}", failed.scheme)),
        Reason::Refused(text) | Reason::Failed(text) => Problem::new(format!(
            "no cell could be run; the first: {}: {text}",
            failed.scheme
        )),
    };
    let mut problems: Vec<Problem> = failed.map(problem).collect();
    let bug = problems
        .iter()
        .position(|problem| problem.code() == crate::errors::EXIT_BUG);
    (!problems.is_empty()).then(|| problems.swap_remove(bug.unwrap_or(0)))
}

/// Prints and writes what was asked for.
fn finish(args: &SweepArgs, document: &SweepDocument) -> Outcome<()> {
    if let Some(path) = &args.out {
        rows::write(path, document)?;
        let cells = some(document.cells.len() as u64, "row");
        output::tell(&format!("Cells:  {cells} in {}", path.display()));
    }
    let failed: u64 = document.results.iter().map(|scheme| scheme.failed).sum();
    if failed > 0 {
        output::tell(&format!(
            "{} of {} cells gave no record; their rows say why",
            count(failed),
            count(document.cells.len() as u64)
        ));
    }
    if args.setup.json {
        output::print_json(document)?;
    } else {
        let (table, notes) = (rows::text(document), notes_text(&document.notes));
        output::print(&format!("\n{table}{notes}\n"))?;
    }
    match &args.setup.report {
        Some(path) => write_report(path, &html(document)),
        None => Ok(()),
    }
}

/// The report of a sweep, without its records.
pub fn html(document: &SweepDocument) -> String {
    report::sweep_html(&document::for_report(document))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(reason: Reason) -> Played {
        let failed = record::Failed {
            scheme: "fast".into(),
            title: "FAST".into(),
            reason,
        };
        Played {
            figures: None,
            result: Some(record::Outcome::Failed(failed)),
        }
    }

    #[test]
    fn a_bug_is_told_before_a_refusal() {
        let ran = Played {
            figures: None,
            result: None,
        };
        let refused = || played(Reason::Refused("too small".into()));
        let bug = played(Reason::Bug("a law is broken".into()));
        assert!(failures(&[ran]).is_none());
        let problem = failures(&[refused(), refused()]).expect("a problem");
        assert_eq!(problem.code(), crate::errors::EXIT_USER);
        let problem = failures(&[refused(), bug, refused()]).expect("a problem");
        assert_eq!(problem.code(), crate::errors::EXIT_BUG);
        assert_eq!(problem.message(), "fast: a law is broken");
    }
}
