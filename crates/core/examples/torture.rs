//! Power cuts by the million: `torture --minutes N [--scheme S] [--seed N]`, or `torture --replay "LINE"` with a
//! line that a failure printed. Random small devices of every scheme, cut at every operation.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use floatgate_core::Ftl;
use floatgate_core::ftl::{Visitor, all, visit};
use floatgate_core::torture::{Effort, Tally, random_cuts, replay};

/// A minute's worth of cut points comes in parts, so that all schemes get their turn.
const PART: Duration = Duration::from_millis(500);

struct Cuts {
    seed: u64,
    until: Instant,
}

impl Visitor for Cuts {
    type Output = Result<Tally, String>;
    fn visit<S: Ftl>(self) -> Self::Output {
        let effort = Effort::default();
        random_cuts::<S>(self.seed, u64::MAX, &effort, || Instant::now() > self.until)
    }
}

struct Arguments {
    minutes: f64,
    schemes: Vec<&'static str>,
    seed: u64,
    replay: Option<String>,
}

fn arguments() -> Result<Arguments, String> {
    let mut given = Arguments {
        minutes: 1.0,
        schemes: all().iter().map(|scheme| scheme.key).collect(),
        seed: 1,
        replay: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let unreadable = || format!("{word} {value}: not a number");
        match word.as_str() {
            "--minutes" => given.minutes = value.parse().map_err(|_| unreadable())?,
            "--seed" => given.seed = value.parse().map_err(|_| unreadable())?,
            "--scheme" => given.schemes.retain(|key| *key == value),
            "--replay" => given.replay = Some(value.clone()),
            _ => return Err(format!("{word}: --minutes, --scheme, --seed or --replay")),
        }
        if given.schemes.is_empty() {
            return Err(format!("no scheme {value}"));
        }
    }
    Ok(given)
}

/// Tortures one scheme after the other until the time is up; prints a failure as soon as it comes.
fn torture(given: &Arguments) -> (Vec<Tally>, bool) {
    let end = Instant::now() + Duration::from_secs_f64(given.minutes.clamp(0.0, 1e6) * 60.0);
    let mut tallies = vec![Tally::default(); given.schemes.len()];
    let mut seed = given.seed;
    while Instant::now() < end {
        for (key, tally) in given.schemes.iter().zip(&mut tallies) {
            let until = (Instant::now() + PART).min(end);
            match visit(key, Cuts { seed, until }).expect("it is registered") {
                Ok(more) => *tally += more,
                Err(failure) => {
                    println!("{failure}\n  seed: {seed}");
                    return (tallies, false);
                }
            }
        }
        seed = seed.wrapping_add(1);
    }
    (tallies, true)
}

fn main() -> ExitCode {
    let given = match arguments() {
        Ok(given) => given,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Some(line) = &given.replay {
        return match replay(line) {
            Ok(tally) => {
                println!("holds: {} cut points on the way there", tally.tried);
                ExitCode::SUCCESS
            }
            Err(failure) => {
                println!("{failure}");
                ExitCode::FAILURE
            }
        };
    }
    let (tallies, held) = torture(&given);
    let mut all = Tally::default();
    for (key, tally) in given.schemes.iter().zip(tallies) {
        println!(
            "{key:<14} {:>12} cut points, {} without an erased page left",
            tally.tried, tally.refused
        );
        all += tally;
    }
    println!(
        "{:<14} {:>12} cut points, first seed {}",
        "all", all.tried, given.seed
    );
    if held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
