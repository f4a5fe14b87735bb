//! Arguments of `crash-explore`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `crash-explore`.
#[derive(Debug, Args)]
#[command(
    long_about = "Builds the states that a power cut could have left of a drive with a volatile write cache, from a log of its \
writes, and runs a check of yours on each. What was flushed, and what was written with FUA, is in all of them; of the rest \
any part may be missing.",
    after_help = "Examples:
  floatgate serve disk.img --socket disk.sock --log run.log
  floatgate crash-explore run.log --check './check.sh {}'
  floatgate crash-explore run.log --check 'e2fsck -fn {}' --states 200 --keep-going
  floatgate crash-explore run.log --state 57:cut=12:drop=3,5 --save bad.raw
  floatgate crash-explore run.log --list

The check is a shell command. {} in it, and FLOATGATE_STATE, is a file with the device's bytes, its own to write to;
FLOATGATE_MARKS a file with the marks said before the cut, one a line. Exit code 0 of the check is good, all else is bad.
States lie in TMPDIR. Exit codes: 0 all good, 1 a bad state, 2 something in the input is wrong. docs/crash-laboratory.md
tells what the states are."
)]
pub struct CrashExploreArgs {
    /// The log that `serve --log` wrote
    pub log: PathBuf,
    /// The check
    #[arg(long, value_name = "COMMAND", required_unless_present_any = ["list", "save"])]
    pub check: Option<String>,
    /// States to check at most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub states: u32,
    /// Seed of the states that are drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Let a write be kept in part, by sectors
    #[arg(long)]
    pub torn: bool,
    /// Lose nothing but the end
    #[arg(long)]
    pub prefixes_only: bool,
    /// Only these intervals between flushes, as --list counts them
    #[arg(long, value_name = "FIRST..LAST", value_parser = intervals)]
    pub intervals: Option<(usize, usize)>,
    /// Only states in which this mark had been said
    #[arg(long, value_name = "MARK")]
    pub after: Option<String>,
    /// Seconds after which a check is ended, and the state bad
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
    /// Checks at a time [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Check all states, and tell of every bad one
    #[arg(long)]
    pub keep_going: bool,
    /// Only this state, in the words of a line that was printed
    #[arg(long, value_name = "STATE", conflicts_with_all = ["keep_going", "torn", "prefixes_only", "intervals", "after"])]
    pub state: Option<String>,
    /// Write that state, or the bad one that was found, to this file, byte for byte as the device was
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// List the intervals between flushes, and how many states of each would be checked
    #[arg(long, conflicts_with_all = ["check", "save", "state"])]
    pub list: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Intervals: `A..B`, both included.
fn intervals(text: &str) -> Result<(usize, usize), String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err("two numbers as 3..7, the smaller one first".into()),
    }
}
