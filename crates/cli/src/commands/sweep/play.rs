//! The cells of a sweep: every case under every scheme, some at a time, each kept as it comes.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use floatgate_core::Refusal;
use floatgate_sim::config::{Recipe, RunConfig};
use floatgate_sim::record::sweep::SweepFigures;
use floatgate_sim::record::{self, Reason};
use floatgate_sim::run::{Decoded, Progress, RunError, Simulated};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use super::cases::{Case, Scans};
use super::journal::Journal;
use crate::PROGRAM;
use crate::commands::parallel;
use crate::commands::study::failed;
use crate::commands::variant::Variant;
use crate::config::resolve::Plan;
use crate::config::sizing::{Failure, guarded};
use crate::errors::{Outcome, Problem};
use crate::memory::Budget;
use crate::notes;
use crate::output;
use crate::progress::Bar;
use crate::table::count;
use crate::traces;

/// A case under a scheme.
pub struct Cell<'a> {
    /// The case.
    pub case: &'a Case,
    /// The scheme, with the settings of the case.
    pub variant: Variant<'a>,
    /// What is to be run, unless the settings do not fit together.
    pub config: Option<RunConfig>,
    key: String,
}

impl Cell<'_> {
    /// A short name of everything that determines the result: two cells of one name are one run.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// What came of a cell. Its record is there if it was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Played {
    /// The main figures, if it ran.
    pub figures: Option<SweepFigures>,
    /// The record, or why there is none.
    pub result: Option<record::Outcome>,
}

/// All that the runs need.
pub struct Stage<'a> {
    /// The cells.
    pub cells: &'a [Cell<'a>],
    /// The traces, by the places that the cases name.
    pub traces: &'a [traces::Decoded],
    /// When their requests arrive.
    pub scans: &'a Scans,
    /// Whether all records are kept in memory.
    pub keep_records: bool,
}

/// Plays a configuration and gives its record, as results have it. The arrivals last `span_s` seconds.
///
/// # Errors
/// See [`Failure`].
pub fn record(
    variant: &Variant<'_>,
    plan: &Plan,
    span_s: f64,
    run: impl FnOnce(&Simulated) -> Result<record::Record, RunError>,
) -> Result<record::Record, Failure> {
    let mut record = guarded(|| run(&variant.scheme.life.simulated))?;
    record.scheme.clone_from(&variant.label);
    record.time.arrivals_s = Some(span_s);
    record.time.behind_s = notes::behind_s(&record, plan, span_s);
    Ok(record)
}

/// All cells, by case and then scheme. `identities`: what tells each trace from others; `program`: what tells the program
/// from others.
///
/// # Errors
/// If an option of a scheme's own does not go with the settings of a case.
pub fn cells<'a>(
    cases: &'a [Case],
    chosen: &[Variant<'a>],
    identities: &[String],
    program: &str,
) -> Outcome<Vec<Cell<'a>>> {
    let pairs = cases
        .iter()
        .flat_map(|case| chosen.iter().map(move |variant| (case, variant)));
    pairs
        .map(|(case, variant)| {
            let variant = variant.under(&case.settings)?;
            let config = case.plan.as_ref().ok().map(|plan| variant.run_on(plan));
            let all = format!("{program}\n{}\n{config:?}", identities[case.trace]);
            Ok(Cell {
                case,
                variant,
                key: format!("{:032x}", XxHash3_128::oneshot(all.as_bytes())),
                config,
            })
        })
        .collect()
}

/// The program: its version alone would take a scheme that was changed and built again for the old one.
pub fn program() -> String {
    let file = std::env::current_exe().map(|path| traces::file_state(&path));
    format!("{PROGRAM} {}", file.unwrap_or_default())
}

impl Stage<'_> {
    /// Runs every cell that the journal does not have, and gives what came of all, in the order of the cells.
    ///
    /// # Errors
    /// If the journal cannot be read or written.
    pub fn play(
        &self,
        out: Option<(&Path, bool)>,
        workers: usize,
    ) -> Outcome<(Vec<Played>, Option<Journal>)> {
        let mut by_key: HashMap<&str, usize> = HashMap::new();
        for (i, cell) in self.cells.iter().enumerate() {
            by_key.entry(&cell.key).or_insert(i);
        }
        let mut played: HashMap<String, Played> = HashMap::new();
        let wanted: HashSet<String> = by_key.keys().map(ToString::to_string).collect();
        let journal = match out {
            None => None,
            Some((path, fresh)) => {
                Some(Journal::open(path, fresh, &wanted, &mut |key, result| {
                    if let Some(&cell) = by_key.get(&*key) {
                        played.insert(key, self.kept(&self.cells[cell], result));
                    }
                })?)
            }
        };
        if !played.is_empty() {
            let there = self.cells.iter().filter(|c| played.contains_key(&c.key));
            let (there, all) = (there.count() as u64, self.cells.len() as u64);
            output::tell(&format!(
                "{} of {} cells were there",
                count(there),
                count(all)
            ));
        }
        let mut todo: Vec<usize> = by_key.values().copied().collect();
        todo.retain(|&cell| !played.contains_key(&self.cells[cell].key));
        todo.sort_unstable();
        for (cell, result) in todo.iter().zip(self.run(&todo, journal.as_ref(), workers)?) {
            played.insert(self.cells[*cell].key.clone(), result);
        }
        let of = |cell: &Cell<'_>| played.get(&cell.key).cloned();
        let all: Option<Vec<Played>> = self.cells.iter().map(of).collect();
        let all = all.ok_or_else(|| Problem::bug("a cell was lost"))?;
        Ok((all, journal))
    }

    /// Runs some cells. After an error of the journal nothing more is begun.
    fn run(
        &self,
        todo: &[usize],
        journal: Option<&Journal>,
        workers: usize,
    ) -> Outcome<Vec<Played>> {
        let requests = |i: usize| self.requests(&self.cells[todo[i]]);
        let bar = Bar::long((0..todo.len()).map(requests).sum(), "requests");
        let memory = Budget::of_what_is_free();
        let stopped: Mutex<Option<Problem>> = Mutex::new(None);
        let stop = || stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let played = parallel::all(todo.len(), workers, requests, |i| {
            let cell = &self.cells[todo[i]];
            if stop().is_some() {
                return None;
            }
            let result = self.run_one(cell, &memory, &bar);
            if let Some(journal) = journal.filter(|_| may_be_kept(&result))
                && let Err(problem) = journal.add(&cell.key, &result)
            {
                stop().get_or_insert(problem);
            }
            Some(self.kept(cell, result))
        });
        bar.done();
        match stopped.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(problem) => Err(problem),
            None => Ok(played.into_iter().flatten().collect()),
        }
    }

    /// Requests that a cell plays; none if it has no configuration.
    fn requests(&self, cell: &Cell<'_>) -> u64 {
        let Some(config) = &cell.config else {
            return 0;
        };
        let replays = config.ageing.iter().filter(|r| **r == Recipe::Replay);
        (1 + replays.count() as u64) * self.traces[cell.case.trace].requests.len() as u64
    }

    fn run_one(&self, cell: &Cell<'_>, memory: &Budget, bar: &Bar) -> record::Outcome {
        let (label, title) = (&cell.variant.label, cell.variant.scheme.info.title);
        let mut left = self.requests(cell);
        let mut progress = |step| match step {
            Progress::Ageing => bar.message(format!("{label} ages")),
            Progress::Played(n) => {
                bar.message(label);
                bar.add(n);
                left = left.saturating_sub(n);
            }
        };
        let result = self.record(cell, memory, &mut progress);
        bar.add(left);
        match result {
            Ok(record) => record::Outcome::Record(Box::new(record)),
            Err(failure) => failed(label, title, failure),
        }
    }

    fn record(
        &self,
        cell: &Cell<'_>,
        memory: &Budget,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<record::Record, Failure> {
        let refused =
            |problem: &Problem| Failure::Refused(Refusal::of_all(problem.message().into()));
        let (config, plan) = match (&cell.config, &cell.case.plan) {
            (Some(config), Ok(plan)) => (config, plan),
            (_, Err(problem)) => return Err(refused(problem)),
            (None, Ok(_)) => return Err(Failure::Bug("a plan without a configuration".into())),
        };
        let simulated = &cell.variant.scheme.life.simulated;
        let need = simulated.memory_bytes(config).map_err(Failure::Refused)?;
        let _lease = memory.take(need).map_err(|problem| refused(&problem))?;
        let requests = &self.traces[cell.case.trace].requests;
        let span_s = self.scans.span_s(cell.case.trace, plan);
        self::record(&cell.variant, plan, span_s, |simulated| {
            simulated.run(config, &mut Decoded::new(requests), progress)
        })
    }

    /// What is kept of a result.
    fn kept(&self, cell: &Cell<'_>, result: record::Outcome) -> Played {
        let figures = match (result.record(), &cell.case.plan) {
            (Some(record), Ok(plan)) => {
                let span_s = self.scans.span_s(cell.case.trace, plan);
                Some(SweepFigures::of(record, span_s, record.time.behind_s))
            }
            _ => None,
        };
        let keep = self.keep_records || figures.is_none();
        Played {
            figures,
            result: keep.then_some(result),
        }
    }
}

/// Whether the result would be the same tomorrow: a bug may be gone then, and memory be free.
fn may_be_kept(result: &record::Outcome) -> bool {
    match result {
        record::Outcome::Record(_) => true,
        record::Outcome::Failed(failed) => matches!(failed.reason, Reason::Failed(_)),
    }
}
