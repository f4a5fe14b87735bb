//! Arguments of the commands that use a device: `serve`, `image read` and its like.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate serve disk.img --socket disk.sock
  nbdinfo 'nbd+unix:///?socket=disk.sock'
  floatgate serve --memory 256MiB --scheme fast --socket fast.sock
  floatgate serve disk.img --tcp 127.0.0.1:10809

One line tells the URI when clients can connect. SIGTERM or Ctrl-C shuts the device down in order; what was
flushed survives kill -9 too. docs/serve.md tells what is promised, and how QEMU, libnbd, fio and the kernel connect.")]
pub struct ServeArgs {
    /// The image to serve
    #[arg(required_unless_present = "memory", conflicts_with = "memory")]
    pub file: Option<PathBuf>,
    /// Serve a fresh device of that size in memory; it is gone at the end
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub memory: Option<u64>,
    /// The scheme of a device in memory (`floatgate schemes` lists them)
    #[arg(long, value_name = "SCHEME", requires = "memory")]
    pub scheme: Option<String>,
    /// TOML configuration of a device in memory
    #[arg(long, value_name = "FILE", requires = "memory")]
    pub config: Option<PathBuf>,
    /// Override a key of the configuration
    #[arg(long, value_name = "SECTION.KEY=VALUE", requires = "memory")]
    pub set: Vec<String>,
    /// Listen on this Unix socket [default: the image's name and .sock; floatgate.sock]
    #[arg(long, value_name = "PATH", conflicts_with = "tcp")]
    pub socket: Option<PathBuf>,
    /// Listen on a TCP port, of this machine only if no address is given
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub tcp: Option<String>,
    /// Clients at a time; others wait
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// What is written down of what clients do
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Print the line as JSON
    #[arg(long)]
    pub json: bool,
}

/// Who listens to a device while it is used.
#[derive(Debug, Default, Args)]
pub struct ListenArgs {
    /// Write every change with its bytes to this new file, for `floatgate crash-explore`
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Record the requests, without their bytes, as a trace; the name tells the format (.parquet, .csv, .csv.zst)
    #[arg(long, value_name = "TRACE")]
    pub record: Option<PathBuf>,
}

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

/// Arguments of `image read`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate image read disk.img --length 4KiB | xxd
  floatgate image read disk.img --offset 1MiB --length 64KiB --output part.bin")]
pub struct ImageReadArgs {
    /// The image
    pub file: PathBuf,
    /// First byte of the device, a multiple of 512
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = offset)]
    pub offset: u64,
    /// Bytes, a multiple of 512 [default: up to the end of the device]
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub length: Option<u64>,
    /// The file to write, whole or not at all; - is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
}

/// Arguments of `image write`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate image write disk.img part.bin --offset 1MiB
  printf %512s hello | floatgate image write disk.img - --offset 4096

Offset and length are multiples of 512. Nothing is written of what does not fit. All is flushed at the end.")]
pub struct ImageWriteArgs {
    /// The image
    pub file: PathBuf,
    /// The file with the bytes; - is standard input
    pub input: PathBuf,
    /// First byte of the device, a multiple of 512
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = offset)]
    pub offset: u64,
}

/// Arguments of `image import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate image import disk.img ext4.raw

The file's bytes become the device's, from its first; what lies behind them is trimmed. A length that is no
multiple of 512 is filled with zeroes.")]
pub struct ImageImportArgs {
    /// The image
    pub file: PathBuf,
    /// The file with the bytes
    pub input: PathBuf,
}

/// Arguments of `image export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate image export disk.img disk.raw
  floatgate image export disk.img - | zstd > disk.raw.zst")]
pub struct ImageExportArgs {
    /// The image
    pub file: PathBuf,
    /// The file to write, whole or not at all; - is standard output
    pub output: PathBuf,
}

fn offset(text: &str) -> Result<u64, String> {
    match text.trim() {
        "0" => Ok(0),
        other => super::size(other),
    }
}
