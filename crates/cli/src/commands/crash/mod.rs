//! `floatgate crash-explore`: the user's own check on every state that a power cut could have left.

mod check;
mod explore;
mod text;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use floatgate_serve::crash::{History, Plan, State, Wanted};
use floatgate_trace::TraceError;
use floatgate_trace::outfile::Destination;

use crate::args::CrashExploreArgs;
use crate::errors::{EXIT_DIFFERENT, EXIT_DONE, Outcome, Problem};
use crate::{output, signals};
use check::Check;
use explore::{Bad, Explorer};

/// What came of the states that were checked.
struct Found {
    checked: usize,
    bad: Vec<Bad>,
    /// The bad state with the fewest losses that was come to, and how many checks that took.
    least: Option<(Bad, usize)>,
    seconds: f64,
}

/// Explores, or looks at one state; the exit code says whether a bad one was found.
pub fn run(args: &CrashExploreArgs) -> Outcome<u8> {
    if let Some(path) = &args.save {
        output::check_files(&[("--save", path)], &[&args.log])?;
    }
    let history = History::open(&args.log)
        .map_err(|error| Problem::new(format!("{}: {error}", args.log.display())))?;
    let one = args.state.as_deref().map(|words| state(words, &history));
    let one = one.transpose()?;
    if let (Some(state), None) = (&one, &args.check) {
        return saved_alone(args, &history, state);
    }
    let plan = match one {
        Some(state) => Plan {
            states: vec![state],
            ..Plan::default()
        },
        None => plan(args, &history)?,
    };
    if args.list {
        text::list(args, &history, &plan)?;
        return Ok(EXIT_DONE);
    }
    let Some(command) = &args.check else {
        return Err(Problem::new("--save: which state?")
            .help("give --check, whose first bad state is saved, or --state"));
    };
    let check = Check::new(command, args.timeout, signals::asked_to_end());
    let explorer = Explorer::new(&history, check)?;
    let found = explored(args, &explorer, &plan)?;
    if explorer.stop().load(Ordering::Relaxed) && found.least.is_none() {
        return Err(Problem::new(format!(
            "stopped by a signal after {} of {} states",
            found.checked,
            plan.states.len()
        ))
        .help("none of those was bad; the same command begins again"));
    }
    if let (Some(path), Some((bad, _))) = (&args.save, &found.least) {
        save(path, &explorer, &bad.state)?;
    }
    text::tell(args, &history, &plan, &found)?;
    Ok(match found.least {
        Some(_) => EXIT_DIFFERENT,
        None => EXIT_DONE,
    })
}

fn explored(args: &CrashExploreArgs, explorer: &Explorer<'_>, plan: &Plan) -> Outcome<Found> {
    let start = Instant::now();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(processors, |jobs| jobs as usize);
    let jobs = jobs.clamp(1, plan.states.len().max(1));
    let (checked, bad) = explorer.check_all(&plan.states, jobs, args.keep_going)?;
    // A state that the user names is told as it is.
    let least = match (bad.iter().min_by_key(|bad| bad.losses()), &args.state) {
        (Some(bad), None) => Some(explorer.reduce(bad)?),
        (Some(bad), Some(_)) => Some((bad.clone(), 0)),
        (None, _) => None,
    };
    Ok(Found {
        checked,
        bad,
        least,
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn state(words: &str, history: &History) -> Outcome<State> {
    let state = words.parse::<State>();
    state
        .and_then(|state| state.checked(history))
        .map_err(|why| {
            Problem::new(format!("--state {words}: {why}")).help(
                "as 57, 57:cut=12, 57:cut=12:drop=3,5-7:torn=9@2; --list counts intervals from 0, changes are counted from 1",
            )
        })
}

fn plan(args: &CrashExploreArgs, history: &History) -> Outcome<Plan> {
    let said = |mark: &String| {
        let at = history.marks.iter().position(|said| said == mark);
        at.map(|at| at + 1).ok_or_else(|| {
            let text = format!("--after {mark}: nothing of the kind was said");
            let help = match history.marks.first() {
                Some(first) => format!(
                    "the log has {} marks, the first is {first:?}",
                    history.marks.len()
                ),
                None => "the log has no marks".into(),
            };
            Problem::new(text).help(help)
        })
    };
    let (first, last) = args.intervals.unwrap_or((0, usize::MAX));
    let wanted = Wanted {
        states: args.states as usize,
        seed: args.seed,
        torn: args.torn,
        prefixes_only: args.prefixes_only,
        first,
        last,
        marks: args.after.as_ref().map(said).transpose()?.unwrap_or(0),
    };
    let plan = Plan::new(history, &wanted);
    if plan.states.is_empty() && !args.list {
        let intervals = history.intervals.len();
        return Err(Problem::new("there is no state to check").help(format!(
            "the log has {intervals} intervals, counted from 0, and {} marks: see --list, --intervals, --after",
            history.marks.len()
        )));
    }
    Ok(plan)
}

/// Writes a state to a file of the user's, whole or not at all.
fn save(path: &Path, explorer: &Explorer<'_>, state: &State) -> Outcome<()> {
    let built = explorer.build(state)?;
    let unwritten = |error: TraceError| Problem::new(error.to_string());
    let file = Destination::of(path).and_then(Destination::create);
    let mut file = file.map_err(unwritten)?;
    let mut from = std::fs::File::open(&built)
        .map_err(|error| Problem::new(format!("{}: {error}", built.display())))?;
    std::io::copy(&mut from, &mut file)
        .and_then(|_| file.finish())
        .map_err(|error| unwritten(TraceError::output(path, &error)))?;
    Ok(())
}

fn saved_alone(args: &CrashExploreArgs, history: &History, state: &State) -> Outcome<u8> {
    let check = Check::new("", args.timeout, signals::asked_to_end());
    let explorer = Explorer::new(history, check)?;
    if let Some(path) = &args.save {
        save(path, &explorer, state)?;
        output::report(path, &format!("{}\n", text::described(history, state)))?;
    }
    Ok(EXIT_DONE)
}
