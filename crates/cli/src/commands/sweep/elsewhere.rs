//! Cells that are played elsewhere: in other processes, perhaps on other machines, whoever brings them there.

use std::path::PathBuf;

use floatgate_catalog::Scheme;
use floatgate_core::Refusal;
use floatgate_sim::record::sweep::{SweepDocument, SweepFigures};
use floatgate_sim::record::{self, Failed, Reason};
use floatgate_sim::run::Progress;
use floatgate_sim::streamed::Streamed;
use serde::{Deserialize, Serialize};

use super::play::{self, Cell, Played};
use super::{Given, Planned, cases, document};
use crate::args::SweepArgs;
use crate::commands::study::{failed, in_short};
use crate::config::resolve::Plan;
use crate::errors::{Outcome, Problem};
use crate::memory;
use crate::traces::Choice;

/// All that is needed to play a cell: the arguments of the sweep, which cell it is, and what its device came to among
/// the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Errand {
    /// The arguments.
    pub words: Vec<String>,
    /// The folder that names of files count from.
    folder: PathBuf,
    case: usize,
    scheme: usize,
    device: Device,
    span_s: f64,
    keep_record: bool,
    /// What the configuration comes to, in short: elsewhere it must come to the same.
    configuration: String,
}

/// What of a device follows from the trace and from the other cells.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Device {
    dies: u32,
    channels: u32,
    logical_pages: u64,
    blocks: u32,
}

impl Device {
    fn of(plan: &Plan) -> Self {
        Self {
            dies: plan.device.dies,
            channels: plan.device.channels,
            logical_pages: plan.device.logical_pages,
            blocks: plan.device.blocks,
        }
    }

    fn give(self, plan: &mut Plan) {
        plan.device.dies = self.dies;
        plan.device.channels = self.channels;
        plan.device.logical_pages = self.logical_pages;
        plan.device.blocks = self.blocks;
    }
}

/// A cell as its sender sees it.
pub struct Sent {
    /// What determines its result, in short.
    pub key: String,
    /// Its scheme.
    pub scheme: String,
    /// Its place among the cases.
    pub case: usize,
    /// What to send, or what came of it already: it is refused.
    pub errand: Result<Errand, Played>,
}

impl Planned<'_> {
    /// All cells, to be played elsewhere. `words`: the arguments of the sweep; `program`: what tells the program from
    /// others.
    ///
    /// # Errors
    /// If an option of a scheme's own does not go with the settings of a case.
    pub fn sent(&self, words: &[String], program: &str, keep_record: bool) -> Outcome<Vec<Sent>> {
        let folder = std::env::current_dir().unwrap_or_default();
        let cells = self.cells(program)?;
        let send = |(number, cell): (usize, &Cell<'_>)| {
            let (case, scheme) = (number / self.chosen.len(), number % self.chosen.len());
            let errand = match (&cell.case.plan, &cell.config) {
                (Ok(plan), Some(config)) => Ok(Errand {
                    words: words.to_vec(),
                    folder: folder.clone(),
                    case,
                    scheme,
                    device: Device::of(plan),
                    span_s: self.scans.span_s(cell.case.trace, plan),
                    keep_record,
                    configuration: in_short(config),
                }),
                (Err(problem), _) => {
                    Err(lost(cell, Reason::Refused(problem.message().to_string())))
                }
                (Ok(_), None) => return Err(Problem::bug("a plan without a configuration")),
            };
            Ok(Sent {
                key: cell.key().to_string(),
                scheme: cell.variant.label.clone(),
                case,
                errand,
            })
        };
        cells.iter().enumerate().map(send).collect()
    }

    /// The sweep with what came of its cells. Those without anything are left out; of those whose way was lost the text
    /// says why.
    ///
    /// # Errors
    /// As [`Planned::sent`].
    pub fn document(&self, came: Vec<Option<Result<Played, String>>>) -> Outcome<SweepDocument> {
        let cells = self.cells("")?;
        let mut played = Vec::new();
        let mut kept = Vec::new();
        for (cell, came) in cells.into_iter().zip(came) {
            match came {
                None => continue,
                Some(Ok(came)) => played.push(came),
                Some(Err(why)) => played.push(lost(&cell, Reason::Failed(why))),
            }
            kept.push(cell);
        }
        let (axes, cases, traces) = (&self.axes, &self.cases, &self.traces);
        Ok(document::of(
            axes,
            cases,
            traces,
            &kept,
            &played,
            &self.chosen,
        ))
    }
}

/// What came of a cell without a record.
fn lost(cell: &Cell<'_>, reason: Reason) -> Played {
    let failed = Failed {
        scheme: cell.variant.label.clone(),
        title: cell.variant.scheme.info.title.into(),
        reason,
    };
    Played {
        figures: None,
        result: Some(record::Outcome::Failed(failed)),
    }
}

/// Plays a cell that was sent here; `args` are its words, read.
///
/// # Errors
/// If it cannot be read here what could be read there, or comes to another run.
pub fn play(
    errand: &Errand,
    args: &SweepArgs,
    schemes: &[Scheme],
    progress: &mut dyn FnMut(Progress),
) -> Outcome<Played> {
    let given = Given::of(args, schemes)?;
    let settings =
        cases::settings_of(errand.case, &given.axes, args.zip, &given.settings, schemes)?;
    let choice = Choice::of(&args.setup.trace, &args.setup.columns, &settings)?;
    let choice = choice.in_folder(&errand.folder);
    let variant = given.chosen.get(errand.scheme);
    let variant = variant.ok_or_else(|| Problem::bug("there is no such scheme here"))?;
    let variant = variant.under(&settings)?;
    let mut plan = Plan::of(&settings)?;
    errand.device.give(&mut plan);
    let config = variant.run_on(&plan);
    if in_short(&config) != errand.configuration {
        return Err(Problem::new("this cell comes to another run here than where it was planned")
            .help("the same version of Floatgate and the same configuration file must be in both places"));
    }
    let played = play::record(&variant, &plan, errand.span_s, |simulated| {
        let need = simulated.memory_bytes(&config)?;
        memory::check(need, memory::available(), "the run")
            .map_err(|problem| Refusal::of_all(problem.message().into()))?;
        let mut source = Streamed::new(move || choice.open())?;
        simulated.run(&config, &mut source, progress)
    });
    Ok(match played {
        Ok(record) => Played {
            figures: Some(SweepFigures::of(
                &record,
                errand.span_s,
                record.time.behind_s,
            )),
            result: errand
                .keep_record
                .then(|| record::Outcome::Record(Box::new(record))),
        },
        Err(failure) => Played {
            figures: None,
            result: Some(failed(&variant.label, variant.scheme.info.title, failure)),
        },
    })
}
