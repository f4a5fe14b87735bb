//! `floatgate torture`: power cuts by the million, at every operation and with several dies in flight.

use std::time::{Duration, Instant};

use floatgate_catalog::{Catalog, Scheme};
use floatgate_testkit::torture::{Effort, Finding, Line, Tally};
use serde_json::json;

use super::schemes::find;
use crate::args::TortureArgs;
use crate::errors::{EXIT_DIFFERENT, EXIT_DONE, Outcome, Problem};
use crate::output;
use crate::progress::Bar;

/// The time is dealt out in turns, at most so long, so that every scheme gets some of it.
const TURN: Duration = Duration::from_millis(500);

/// Tortures, or replays one line; the exit code says whether something was lost.
pub fn run(args: &TortureArgs, catalog: &Catalog) -> Outcome<u8> {
    if let Some(line) = &args.replay {
        return replayed(line, catalog, args.json);
    }
    let schemes: Vec<&Scheme> = match args.scheme.is_empty() {
        true => catalog.iter().collect(),
        false => args
            .scheme
            .iter()
            .map(|name| find(catalog, name.trim()))
            .collect::<Outcome<_>>()?,
    };
    let (tallies, lost) = torture(args, &schemes);
    if args.json {
        let rows: Vec<_> = schemes
            .iter()
            .zip(&tallies)
            .map(|(scheme, tally)| {
                json!({"scheme": scheme.info.key, "cut_points": tally.tried, "refused": tally.refused})
            })
            .collect();
        output::print_json(&json!({"first_seed": args.seed, "schemes": rows, "lost": lost}))?;
    } else {
        output::print(&table(args, &schemes, &tallies, lost.as_deref()))?;
    }
    Ok(exit(lost.is_none()))
}

fn exit(held: bool) -> u8 {
    if held { EXIT_DONE } else { EXIT_DIFFERENT }
}

fn replayed(text: &str, catalog: &Catalog, as_json: bool) -> Outcome<u8> {
    // A line that cannot be read is a mistake of the user's, not a loss.
    let unreadable = |why: String| {
        Problem::new(format!("--replay: {why}"))
            .help("give the line as a failure printed it, scheme first, in quotes")
    };
    let line = Line::parse(text).map_err(unreadable)?;
    let tested = find(catalog, &line.scheme)?.life.tested;
    if let Some(refusal) = line.trial.case().and_then(|case| tested.refusal(case)) {
        return Err(unreadable(format!("{} refuses it: {refusal}", line.scheme)));
    }
    let outcome = tested.replay(&line.trial);
    if as_json {
        let tried = outcome.as_ref().map(|tally| tally.tried).ok();
        let lost = outcome.as_ref().err().map(Finding::to_string);
        output::print_json(&json!({"cut_points": tried, "lost": lost}))?;
    } else {
        output::print(&match &outcome {
            Ok(tally) => format!("holds: {} cut points on the way there\n", tally.tried),
            Err(finding) => format!("{finding}\n"),
        })?;
    }
    Ok(exit(outcome.is_ok()))
}

/// One scheme after the other until the time is up or something is lost.
fn torture(args: &TortureArgs, schemes: &[&Scheme]) -> (Vec<Tally>, Option<String>) {
    let start = Instant::now();
    let length = Duration::from_secs_f64(args.minutes * 60.0);
    let turn_length = TURN.min(length / (2 * schemes.len().max(1) as u32));
    let bar = Bar::new(length.as_secs(), "s");
    let mut tallies = vec![Tally::default(); schemes.len()];
    let (mut seed, mut in_flight) = (args.seed, false);
    let mut lost = None;
    'all: while start.elapsed() < length {
        for (scheme, tally) in schemes.iter().zip(&mut tallies) {
            let turn = Instant::now();
            let mut is_over = || turn.elapsed() > turn_length || start.elapsed() > length;
            let tested = scheme.life.tested;
            // One after the other: operation by operation, and with several dies in flight.
            let outcome = if in_flight {
                tested.random_flights(seed, u64::MAX, &mut is_over)
            } else {
                tested.random_cuts(seed, u64::MAX, &Effort::default(), &mut is_over)
            };
            match outcome {
                Ok(more) => *tally += more,
                Err(failure) => {
                    lost = Some(format!("{failure}\n  seed: {seed}"));
                    break 'all;
                }
            }
            bar.set(start.elapsed().as_secs());
            bar.message(scheme.info.key);
        }
        if in_flight {
            seed = seed.wrapping_add(1);
        }
        in_flight = !in_flight;
    }
    bar.done();
    (tallies, lost)
}

fn table(args: &TortureArgs, schemes: &[&Scheme], tallies: &[Tally], lost: Option<&str>) -> String {
    let mut all = Tally::default();
    let mut text = String::new();
    for (scheme, tally) in schemes.iter().zip(tallies) {
        text += &line(scheme.info.key, *tally);
        all += *tally;
    }
    text += &line("all", all);
    text += &match lost {
        Some(failure) => format!("\nLOST: {failure}\n"),
        None => format!("nothing lost; first seed {}\n", args.seed),
    };
    text
}

fn line(name: &str, tally: Tally) -> String {
    format!(
        "{name:<14} {:>12} cut points, {} without an erased page left\n",
        tally.tried, tally.refused
    )
}
