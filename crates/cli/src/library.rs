//! The commands for programs: arguments are the words of the command line, results are values.

use clap::Parser;
use floatgate_trace::stats::Statistics;

pub use floatgate_catalog::Scheme;

pub use crate::args::{FleetArgs, InfoArgs, RunArgs, SweepArgs};
pub use crate::commands::fleet::elsewhere::{
    Came as VolumeCame, Errand as VolumeErrand, Split as SplitFleet, play as play_volume,
};
pub use crate::commands::fleet::{Asked as Fleet, Replayed};
pub use crate::commands::single::{Ready, Single};
pub use crate::commands::sweep::elsewhere::{Errand, Sent, play};
pub use crate::commands::sweep::play::Played;
pub use crate::commands::sweep::rows::{laid, text as sweep_text, write as write_sweep};
pub use crate::commands::sweep::{Planned, html as sweep_html};
pub use crate::config::sizing::quietly;
pub use crate::laid::Laid;
pub use crate::report::{fleet_html, html as run_html, text, why};
pub use crate::traces::{About, Decoded, Frame};

use crate::Cli;
use crate::args::{Arguments, Command, TraceCommand};
use crate::commands::trace_info;
use crate::errors::{Outcome, Problem};
use crate::traces::Choice;

fn command(head: &[&str], words: &[String]) -> Outcome<Command> {
    let program = ["floatgate"].iter().chain(head).map(ToString::to_string);
    let parsed = Arguments::try_parse_from(program.chain(words.iter().cloned()));
    parsed.map(|arguments| arguments.command).map_err(|error| {
        let text = error.to_string();
        Problem::new(text.trim_start_matches("error: ").trim_end())
    })
}

/// The arguments of `floatgate run`.
///
/// # Errors
/// What a word does not mean.
pub fn run_args(words: &[String]) -> Outcome<RunArgs> {
    match command(&["run"], words)? {
        Command::Run(args) => Ok(args),
        _ => Err(Problem::bug("these are no arguments of run")),
    }
}

/// The arguments of `floatgate sweep`.
///
/// # Errors
/// What a word does not mean.
pub fn sweep_args(words: &[String]) -> Outcome<SweepArgs> {
    match command(&["sweep"], words)? {
        Command::Sweep(args) => Ok(args),
        _ => Err(Problem::bug("these are no arguments of sweep")),
    }
}

/// The arguments of `floatgate fleet`.
///
/// # Errors
/// What a word does not mean.
pub fn fleet_args(words: &[String]) -> Outcome<FleetArgs> {
    match command(&["fleet"], words)? {
        Command::Fleet(args) => Ok(args),
        _ => Err(Problem::bug("these are no arguments of fleet")),
    }
}

/// The arguments of `floatgate trace info`.
///
/// # Errors
/// What a word does not mean.
pub fn info_args(words: &[String]) -> Outcome<InfoArgs> {
    match command(&["trace", "info"], words)? {
        Command::Trace(TraceCommand::Info(args)) => Ok(args),
        _ => Err(Problem::bug("these are no arguments of trace info")),
    }
}

/// Which trace it is that is to be looked at; what is called by the name of a frame is in memory.
fn choice(args: &InfoArgs, frame: Option<(&str, Frame)>) -> Outcome<Choice> {
    let mut choice = Choice::new(&args.files, &args.read)?;
    if let Some((name, frame)) = frame {
        choice.supply(name, frame);
    }
    Ok(choice)
}

/// All requests of a trace. `read` is called now and then meanwhile.
///
/// # Errors
/// If it cannot be read.
pub fn decode(args: &InfoArgs, read: &mut dyn FnMut()) -> Outcome<Decoded> {
    choice(args, None)?.decode(read)
}

/// What kind of workload a trace is. `read` is called now and then meanwhile.
///
/// # Errors
/// If it cannot be read.
pub fn statistics(
    args: &InfoArgs,
    frame: Option<(&str, Frame)>,
    read: &mut dyn FnMut(),
) -> Outcome<(About, Statistics)> {
    let (about, statistics, _) = trace_info::statistics(args, &choice(args, frame)?, read)?;
    Ok((about, statistics))
}

impl Cli {
    /// The schemes, by their names.
    pub fn schemes(&self) -> &[Scheme] {
        &self.catalog
    }
}
