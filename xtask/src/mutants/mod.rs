//! `cargo xtask mutants`: would the suites notice? Bugs from a table are planted in a copy of the source, all in one
//! build, each behind a switch; then the suites run with one bug on after the other.

mod baseline;
mod bench;
mod report;
mod scratch;
mod suites;
pub mod table;
mod trial;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use clap::Args;

use crate::process::{root, target};
use crate::steps::Outcome;
use baseline::Baseline;
use report::Report;
use suites::Binaries;
use table::Bug;

/// Bugs that the gate tries, and what chooses them: of every part of the schemes some, none of the device, whose tests
/// would have to be built too.
const GATE_AMONG: &str = "1-79,156-159";
const GATE_SAMPLE: usize = 6;
const GATE_SEED: u64 = 14;

#[derive(Debug, Args)]
pub struct MutantsArgs {
    /// Only these bugs
    #[arg(long, value_name = "12,15-20", value_parser = numbers)]
    only: Option<Numbers>,
    /// So many of them, chosen by the seed
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Chooses the sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Bugs that are tried at the same time; as many as there are processors if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Write the table as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Numbers of bugs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbers(BTreeSet<u32>);

fn numbers(text: &str) -> Result<Numbers, String> {
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |word: &str| word.trim().parse::<u32>().ok();
        let range = number(first).zip(number(last));
        let range = range.filter(|(first, last)| first <= last && last - first < 10_000);
        let (first, last) = range.ok_or_else(|| format!("{part:?} is no number and no range"))?;
        all.extend(first..=last);
    }
    Ok(Numbers(all))
}

/// Why nothing was tried.
enum Trouble {
    /// Wrong arguments, or a table that does not fit the source.
    Use(String),
    /// Something broke without a bug.
    Broken(String),
}

/// Exit code 1 if a bug has survived, 2 if the arguments or the table are wrong.
pub fn mutants(args: &MutantsArgs) -> ExitCode {
    match try_all(args) {
        Ok(report) => match report.complaint() {
            None => ExitCode::SUCCESS,
            Some(complaint) => {
                eprintln!("{complaint}");
                ExitCode::FAILURE
            }
        },
        Err(Trouble::Broken(why)) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
        Err(Trouble::Use(why)) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// The gate's step: a sample.
pub fn sample() -> Outcome {
    let args = MutantsArgs {
        only: numbers(GATE_AMONG).ok(),
        sample: Some(GATE_SAMPLE),
        seed: GATE_SEED,
        jobs: None,
        json: None,
    };
    match try_all(&args) {
        Ok(report) => report.complaint().map_or(Outcome::Passed, Outcome::Failed),
        Err(Trouble::Use(why) | Trouble::Broken(why)) => Outcome::Failed(why),
    }
}

fn try_all(args: &MutantsArgs) -> Result<Report, Trouble> {
    let table = table::read(&root()).map_err(Trouble::Use)?;
    let planted = table::plant(&root(), &table).map_err(Trouble::Use)?;
    let bugs = chosen(&table, args).map_err(Trouble::Use)?;
    let folder = target().join("mutants");
    let source = folder.join("source");
    std::fs::create_dir_all(&source).map_err(|e| Trouble::Broken(e.to_string()))?;
    scratch::copy(&root(), &source, &planted).map_err(Trouble::Broken)?;
    let binaries = Binaries::new(source, folder.join("build"));
    let jobs = args
        .jobs
        .map(usize::from)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let report = on_all(&binaries, &bugs, jobs)?;
    report.print();
    if let Some(file) = &args.json {
        let written = std::fs::write(file, report.json());
        written.map_err(|e| Trouble::Use(format!("{}: {e}", file.display())))?;
    }
    Ok(report)
}

/// The bugs that the arguments ask for. A sample has none that cannot be seen.
fn chosen(table: &[Bug], args: &MutantsArgs) -> Result<Vec<Bug>, String> {
    let mut bugs = table.to_vec();
    if let Some(Numbers(only)) = &args.only {
        let known: BTreeSet<u32> = table.iter().map(|bug| bug.id).collect();
        if only.is_disjoint(&known) {
            return Err("--only: there are no such bugs".into());
        }
        bugs.retain(|bug| only.contains(&bug.id));
    }
    if let Some(count) = args.sample {
        bugs.retain(|bug| bug.equivalent.is_none());
        bugs.sort_by_key(|bug| mixed(args.seed.wrapping_mul(1 << 32).wrapping_add(bug.id.into())));
        bugs.truncate(count);
        bugs.sort_by_key(|bug| bug.id);
    }
    Ok(bugs)
}

/// SplitMix64: a number without any order.
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Tries every bug, some at a time.
fn on_all(binaries: &Binaries, bugs: &[Bug], jobs: usize) -> Result<Report, Trouble> {
    let next = Mutex::new(bugs.iter());
    let report = Mutex::new(Report::new(bugs.len()));
    let baseline = Baseline::default();
    let take = || next.lock().ok()?.next();
    let work = || -> Result<(), String> {
        while let Some(bug) = take() {
            let verdict = trial::try_bug(binaries, &baseline, bug, suites::for_bug(bug))?;
            if let Ok(mut report) = report.lock() {
                report.add(bug, verdict);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(bugs.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let done = workers.into_iter().map(|worker| worker.join());
        let done = done.map(|done| done.unwrap_or_else(|_| Err("a worker panicked".into())));
        done.collect::<Result<(), String>>()
    })
    .map_err(Trouble::Broken)?;
    Ok(report
        .into_inner()
        .unwrap_or_else(|error| error.into_inner()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read() {
        let read = numbers("12,15-17").expect("well formed");
        assert_eq!(read, Numbers([12, 15, 16, 17].into()));
        for wrong in ["", "x", "3-", "5-2", "1,,2"] {
            assert!(numbers(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_sample_is_the_same_each_time_and_another_for_another_seed() {
        let table = table::read(&root()).expect("the table");
        let draw = |seed| {
            let args = MutantsArgs {
                only: None,
                sample: Some(5),
                seed,
                jobs: None,
                json: None,
            };
            let bugs = chosen(&table, &args).expect("a sample");
            bugs.iter().map(|bug| bug.id).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1).len(), 5);
    }
}
