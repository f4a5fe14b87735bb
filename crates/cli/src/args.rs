//! The command line.

mod crash;
mod device;
mod fit;
mod record;

use std::ops::Range;
use std::path::PathBuf;

pub use crash::CrashExploreArgs;
pub use device::{
    AttachArgs, ControlArgs, DeviceArgs, ImageExportArgs, ImageImportArgs, ImageReadArgs,
    ImageWriteArgs, ListenArgs, MountArgs, ServeArgs, StatArgs,
};

pub use fit::{FitArgs, RecipeCommand, RecipeFitArgs};
pub use record::RecordArgs;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use floatgate_trace::stats::LogSize;

/// Exit codes: 0 done, 1 `conform`, `image check` or `crash-explore` found something, 2 something in the input is wrong, 3 a bug.
#[derive(Debug, Parser)]
#[command(
    name = "floatgate",
    version,
    about = "The laboratory and workshop for flash translation layers",
    max_term_width = 100
)]
#[command(
    after_help = "Begin with `floatgate compare`: all schemes on a bundled real trace, a table and a report.\n\
    Files are written whole or not at all; links are followed, devices and pipes are written into.\n\
    Exit codes: 0 done, 1 conform, image check or crash-explore found something, 2 something in the input is wrong, 3 a bug."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one scheme on a trace
    Run(RunArgs),
    /// Run all schemes, or some, on one trace and compare them
    Compare(CompareArgs),
    /// Run schemes over all combinations of varied settings
    Sweep(SweepArgs),
    /// Replay a trace of many volumes, one device a volume
    Fleet(FleetArgs),
    /// Find what a drive is from what it was measured to do: flash, overhead, rule of collection
    Fit(FitArgs),
    /// Print a script that measures a drive
    #[command(subcommand)]
    Recipe(RecipeCommand),
    /// Measure the tables, figures and claims of the five papers again, and tell what came of each
    Papers(PapersArgs),
    /// Measure how fast the schemes are simulated on this machine
    Bench(BenchArgs),
    /// Tell in words where the writes, the erases and the time of a result went
    Explain(ExplainArgs),
    /// Tell how each scheme comes up again after a power cut, and how long it takes
    Recovery(RecoveryArgs),
    /// Cut the power of small random devices at every flash operation, and tell what is lost
    Torture(TortureArgs),
    /// Look at, convert and generate traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Make, describe, check and dump flash images
    #[command(subcommand)]
    Image(ImageCommand),
    /// Serve a device to clients that speak NBD: QEMU, libnbd, fio, the kernel
    Serve(ServeArgs),
    /// Show a device as a file in a folder, through FUSE
    Mount(MountArgs),
    /// Attach a device to this machine as a block device (/dev/loopN)
    Attach(AttachArgs),
    /// Cut the power of a device that is up, take snapshots, and more
    Control(ControlArgs),
    /// Show what a device that is up has done
    Stat(StatArgs),
    /// Run a check on every state that a power cut could have left of a device that was served
    CrashExplore(CrashExploreArgs),
    /// Check schemes and clock against conformance vectors
    Conform(ConformArgs),
    /// List the schemes, or show one and its options
    Schemes(SchemesArgs),
    /// List the flash parts that a device can be made of
    Parts(JsonArgs),
    /// Print a configuration file to start from
    Config(ConfigArgs),
    /// Print the JSON schema of what the other commands print with --json
    #[command(after_help = "Examples:
  floatgate schema > record.schema.json
  check-jsonschema --schemafile record.schema.json results.json      (pip install check-jsonschema)

It describes run, compare, sweep, fleet, bench and recovery. docs/record.md tells where what stands.")]
    Schema,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  floatgate completions bash > ~/.local/share/bash-completion/completions/floatgate"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// `FROM:TO` in seconds as nanoseconds.
fn window_ns(text: &str) -> Result<Range<u64>, String> {
    let told = || format!("{text:?}: two times in seconds with a colon between, as 10:10.5");
    let (from, to) = text.split_once(':').ok_or_else(told)?;
    let ns = |text: &str| {
        let seconds: f64 = text.trim().parse().ok()?;
        (0.0..9e9)
            .contains(&seconds)
            .then_some((seconds * 1e9).round() as u64)
    };
    let (from, to) = ns(from).zip(ns(to)).ok_or_else(told)?;
    match from < to {
        true => Ok(from..to),
        false => Err(format!("{text:?}: the first time is the earlier one")),
    }
}

/// `floatgate explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate run --scheme fast --slowest 20 --json > fast.json && floatgate explain fast.json
  floatgate compare --json | floatgate explain -

Times of the flash are operations times the cell times of the part; docs/record.md defines every figure.")]
pub struct ExplainArgs {
    /// What `run --json` or `compare --json` has printed; - for standard input
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What the columns of a trace hold.
#[derive(Clone, Debug, Default, Args)]
pub struct ColumnsArgs {
    /// What the columns of a CSV or Parquet file hold, as time:s,offset:B,size:B,op by position or
    /// time=When:us,offset=LBA:sectors,size=Len:B,op=Type by name (docs/formats.md)
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<String>,
    /// Where a trace lies that is called otherwise: a copy of what an address names
    #[arg(long, hide = true, num_args = 2, value_names = ["NAME", "FILE"])]
    pub copy: Vec<String>,
}

/// What `run`, `compare`, `sweep` and `fleet` have in common.
#[derive(Debug, Args)]
pub struct Setup {
    /// TOML configuration (`floatgate config` prints one to start from)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Trace file, a bundled trace (oltp-postgres, desktop, ext2-bonnie-150 and others) or a generator with its
    /// parameters, as zipf:space=65536:requests=200000. Several --trace are merged by time
    #[arg(long, value_name = "FILE")]
    pub trace: Vec<String>,
    /// How to read it
    #[command(flatten)]
    pub columns: ColumnsArgs,
    /// Override a key of the configuration
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// The stream of a write, for placement by hints (host.stream_by)
    #[arg(long, value_name = "WHAT", value_parser = ["trace", "volume", "region", "size", "process"])]
    pub stream_by: Option<String>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the HTML report to this file
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

impl Setup {
    /// The keys that are overridden, those among them that have a flag of their own.
    pub fn sets(&self) -> Vec<String> {
        let by = self.stream_by.iter();
        let by = by.map(|by| format!("host.stream_by={by}"));
        self.set.iter().cloned().chain(by).collect()
    }
}

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate run --scheme fast
  floatgate run --scheme fast --trace web.csv.gz --set scheme.log_blocks=64 --set device.dies=4
  floatgate run --scheme fast --slowest 20 --report fast.html
  floatgate run --config ssd.toml --json > result.json
  floatgate run --flow name=db,trace=oltp-postgres --flow name=scan,trace=desktop,queue_depth=8 --alone
  floatgate run --scheme fast --requests-out rows.parquet --series-out series.csv
  floatgate run --scheme fast --timeline fast.json.gz --timeline-between 20:21     (open it in ui.perfetto.dev)
  floatgate run --scheme page --set 'run.ageing=[\"overwrite:0.5\", \"settle\"]' --report page.html
  floatgate run --scheme fast --set run.ageing=settle --save-state aged.state
  floatgate run --load-state aged.state --trace web.csv.gz

A run from a saved device gives the same record as the run that aged it. A state holds no time: after ageing by
\"replay\" too the run begins with an idle device at time 0. Only the version that wrote a state reads it.")]
pub struct RunArgs {
    /// The scheme (`floatgate schemes` lists them)
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// Trace, configuration, results
    #[command(flatten)]
    pub setup: Setup,
    /// A flow of several in place of --trace, as name=db,trace=oltp-postgres,queue_depth=8; the keys are those of a table
    /// [[flow]] (docs/hosts.md)
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub flow: Vec<String>,
    /// Run each flow without the others too, and tell how much it is slowed down
    #[arg(long)]
    pub alone: bool,
    /// Tell of the slowest N requests what they did and what they waited for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub slowest: Option<u32>,
    /// Write one row a request (times, work, merges, waits) to this file: .parquet or .csv
    #[arg(long, value_name = "FILE")]
    pub requests_out: Option<PathBuf>,
    /// Write the time series to this file: .parquet or .csv
    #[arg(long, value_name = "FILE")]
    pub series_out: Option<PathBuf>,
    /// Write one row a block to this file: .parquet or .csv
    #[arg(long, value_name = "FILE")]
    pub blocks_out: Option<PathBuf>,
    /// Write every operation of the flash to this file, for ui.perfetto.dev: .json or .json.gz
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Of the timeline only what lies between these times of the run, in seconds
    #[arg(long, value_name = "FROM:TO", requires = "timeline", value_parser = window_ns)]
    pub timeline_between: Option<Range<u64>>,
    /// Save the device to this file once it is aged, before the run
    #[arg(long, value_name = "FILE", conflicts_with = "load_state")]
    pub save_state: Option<PathBuf>,
    /// Begin with a saved device: scheme, options, sizes and ageing come from the file
    #[arg(long, value_name = "FILE")]
    pub load_state: Option<PathBuf>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate compare
  floatgate compare --trace desktop --scheme page,fast,bast
  floatgate compare --trace web.csv.gz --set host.arrivals=closed --set host.queue_depth=8
  floatgate compare --config ssd.toml --json --no-report > results.json
  floatgate compare --requests-out rows --series-out rows          (rows/fast.parquet, rows/fast-series.parquet)
  floatgate compare --set run.ageing=settle --save-state aged/
  floatgate compare --trace web.csv.gz --load-state aged/

All schemes get the same flash. Without a configuration its capacity is what the trace touches, in
regions of 1 MiB, it begins full, and it has a quarter more blocks than data, most of which schemes with a
log use for that. Each scheme runs twice: as the trace has it, and with one request at a time. The report is written to
floatgate-report.html unless --report names another file.")]
pub struct CompareArgs {
    /// Schemes to compare, with commas between; all if left out
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// Trace, configuration, results
    #[command(flatten)]
    pub setup: Setup,
    /// Save the devices to this folder once they are aged, one file a scheme: FOLDER/fast.state
    #[arg(long, value_name = "FOLDER", conflicts_with = "load_state")]
    pub save_state: Option<PathBuf>,
    /// Begin with saved devices: those of the schemes named, or all in the folder
    #[arg(long, value_name = "FOLDER")]
    pub load_state: Option<PathBuf>,
    /// Write no report
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
    /// Runs at a time (default: one a processor)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Write one row a request to a file a scheme in this folder: fast.parquet
    #[arg(long, value_name = "FOLDER")]
    pub requests_out: Option<PathBuf>,
    /// Write the time series to a file a scheme in this folder: fast-series.parquet
    #[arg(long, value_name = "FOLDER")]
    pub series_out: Option<PathBuf>,
    /// Write one row a block to a file a scheme in this folder: fast-blocks.parquet
    #[arg(long, value_name = "FOLDER")]
    pub blocks_out: Option<PathBuf>,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate sweep --vary device.log_percent=3..20 --scheme fast,last++ --out s.parquet --report s.html
  floatgate sweep --vary host.queue_depth=1,8,32 --vary device.dies=1..32*2 --set host.arrivals=closed
  floatgate sweep --vary trace=oltp-postgres,desktop --vary schemes.fast.sw_log=true,false --scheme fast
  floatgate sweep ssd.toml --out s.csv                       (the varied keys stand in its table [vary])

Values: a,b,c   3..20 (both ends belong to it)   3..20/2 and 0.5..2/0.5 (steps)   64..1024*2 (each twice the
one before). Every key that --set takes can be varied, and `trace`. In a file:

  [vary]
  device.log_percent = \"3..20\"
  host.queue_depth = [1, 8, 32]

A cell that is refused is a row with the reason. With --out what is done is kept in FILE.partial.jsonl until all is
done: the same command goes on where it was stopped. docs/sweeps.md lists the columns.")]
pub struct SweepArgs {
    /// TOML configuration with a table [vary]; the same as --config
    #[arg(value_name = "FILE.toml", conflicts_with = "config")]
    pub file: Option<PathBuf>,
    /// Vary a key of the configuration: every combination of the values of all --vary is run
    #[arg(long, value_name = "SECTION.KEY=VALUES")]
    pub vary: Vec<String>,
    /// Take the values of all varied keys in step, the first of each together, instead of every combination
    #[arg(long)]
    pub zip: bool,
    /// Schemes, with commas between; all if left out
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// Trace, configuration, results
    #[command(flatten)]
    pub setup: Setup,
    /// Write one row a cell to this file: .parquet, .csv or, with the full records, .json
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Begin anew, whatever a sweep that was stopped has left
    #[arg(long, requires = "out")]
    pub fresh: bool,
    /// Cells at a time (default: one a processor)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
}

/// Arguments of `papers`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate papers                         every claim, table and figure, in a quick form
  floatgate papers --list                  what there is
  floatgate papers faster table-2          one of them, with all its numbers
  floatgate papers --full --out papers.json --report papers.html

Verdicts, workloads and the format of an item: docs/papers.md. The report is written to floatgate-papers.html
unless --report names another file. With --out a run that was stopped goes on where it was.")]
pub struct PapersArgs {
    /// Paper: lastpp, last, hat, faster, blog; all if left out
    pub paper: Option<String>,
    /// One of its items
    #[arg(requires = "paper")]
    pub item: Option<String>,
    /// Take the papers of this folder in place of the five: items of yours (docs/papers.md)
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// List papers and items, and run nothing
    #[arg(long)]
    pub list: bool,
    /// All seeds, points and workloads, not only the quick ones
    #[arg(long)]
    pub full: bool,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the HTML report to this file
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write no report
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
    /// Write the results to this file: all of them to .json, the verdicts to .md, one row a number to .parquet or .csv;
    /// may be given several times
    #[arg(long, value_name = "FILE")]
    pub out: Vec<PathBuf>,
    /// Begin anew, whatever a run that was stopped has left
    #[arg(long, requires = "out")]
    pub fresh: bool,
    /// Runs at a time (default: one a processor)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
}

/// How the volumes of several files belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VolumesBy {
    /// A name stands for the same volume in every file
    Name,
    /// Every file has volumes of its own
    File,
}

/// Arguments of `fleet`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate fleet io_traces.csv.zst                          (Alibaba: every device of the trace)
  floatgate fleet msr/ --scheme page,fast --out fleet.parquet
  floatgate fleet day1.csv.gz day2.csv.gz --set device.spare_percent=20 --json > fleet.json
  floatgate fleet vscsi/*.gz --jobs 1 --set host.arrivals=closed
  floatgate fleet msr/ --scheme page:separation=none,page:separation=sepbit,page:separation=fk --report f.html

Every volume gets a device sized to it as `run` and `compare` size theirs, and is replayed alone; all
processors work. The row of a volume in --out is documented in docs/fleets.md. A volume that cannot be
replayed keeps its row, with the reason in it, and the exit code is 2.
The volumes are split off into a temporary file first, about 10 bytes a request; TMPDIR says where.")]
pub struct FleetArgs {
    /// Trace files, or folders of them
    #[arg(value_name = "TRACE")]
    pub traces: Vec<String>,
    /// Schemes, with commas between, as page:separation=fk with options of their own (default: page)
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// Trace, configuration, results
    #[command(flatten)]
    pub setup: Setup,
    /// Write one row a volume and scheme to this file: .parquet or .csv
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How volumes of several files belong together (default: by name in Alibaba, Tencent, MSR and
    /// SYSTOR traces, else by file)
    #[arg(long, value_name = "HOW")]
    pub volumes_by: Option<VolumesBy>,
    /// Devices at a time (default: one a processor)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate bench
  floatgate bench --scheme page,fast --size 32GiB
  floatgate bench --scheme page --dies 32 --channels 8 --json

Random 4 KiB writes at steady state, random requests of which 70 % are reads, and sequential writes, on a
device that begins full, with 10 % of its blocks spare. Ratios hold on a noisy machine; rates hold
only for the moment. Memory: about 8 bytes a page of the flash for page, 12 for dftl and hat, and 8 for the
loop beside them.")]
pub struct BenchArgs {
    /// Schemes to measure, with commas between; all if left out
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// Flash of the device, as 512MiB, 8GiB, 1TiB
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = bench_size)]
    pub size: u64,
    /// Dies
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub dies: u32,
    /// Channels (default: one a die, at most 8); several dies a channel take the event engine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub channels: Option<u32>,
    /// Seconds of processor time of each measurement
    #[arg(long, value_name = "S", default_value_t = 0.25, value_parser = seconds)]
    pub time: f64,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `recovery`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate recovery
  floatgate recovery --scheme bast,fast,last++ --log-blocks 4096
  floatgate recovery --size 32GiB --part k9wbg08u1m --dies 1
  floatgate recovery --size 1TiB --page 16KiB --json

Every row is a way of coming up that a scheme has, with what it takes at most: every block is full, and
the dies work side by side, each on a channel of its own. Without options: the device of the
LAST++ paper (Tables I and III). Schemes that can keep their block map in flash, or summaries of their log
blocks, are shown without and with them.")]
pub struct RecoveryArgs {
    /// Schemes to show, with commas between; all if left out
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// Capacity for the host
    #[arg(long, value_name = "SIZE", default_value = "256GiB", value_parser = size)]
    pub size: u64,
    /// Flash part: its times, and its page and block unless given (`floatgate parts` lists them)
    #[arg(long, value_name = "PART", default_value = "mt29f16g08")]
    pub part: String,
    /// Bytes of a page (default: the part's)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub page: Option<u64>,
    /// Pages of a block (default: the part's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pages_per_block: Option<u32>,
    /// Dies
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub dies: u32,
    /// Log blocks of the whole device (default: one for 512 data blocks, as in the paper, at least 8 a die)
    #[arg(long, value_name = "N")]
    pub log_blocks: Option<u32>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `torture`.
#[derive(Debug, Args)]
#[command(
    long_about = "Cuts the power of small random devices at every operation that changes the flash, cleanly and torn, and again \
during the recovery, and checks that nothing acknowledged is lost. A failure prints one line, and --replay takes that line.",
    after_help = "Examples:
  floatgate torture --minutes 10
  floatgate torture --scheme fast --seed 7
  floatgate torture --replay \"page dies=2 blocks=7 pages=1 logical_pages=8 requests=57 seed=913945 cut=71:clean\""
)]
pub struct TortureArgs {
    /// Schemes to torture, with commas between; all if left out
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// How long, shared by the schemes
    #[arg(long, value_name = "MINUTES", default_value_t = 1.0, value_parser = minutes)]
    pub minutes: f64,
    /// Seed of the first devices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Replay one failure
    #[arg(long, value_name = "LINE", conflicts_with_all = ["scheme", "minutes", "seed"])]
    pub replay: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// A time that comes to an end.
fn minutes(text: &str) -> Result<f64, String> {
    let given = text.parse().ok();
    given
        .filter(|minutes| (0.0..=1e6).contains(minutes))
        .ok_or_else(|| "a number of minutes, 0 to 1000000".into())
}

/// Most bytes of a benchmark's device: page numbers must fit 32 bits.
const BENCH_BYTES_MAX: u64 = 8 << 40;

/// Bytes: a number and a unit.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err("a size such as 4KiB, 512MiB, 8GiB or 1TiB".into()),
    };
    let number: f64 = number.parse().map_err(|_| "a number and a unit, as 4KiB")?;
    let bytes = number * (1_u64 << shift) as f64;
    match (1.0..(1_u64 << 60) as f64).contains(&bytes) {
        true => Ok(bytes as u64),
        false => Err("from 1 byte to 1 EiB".into()),
    }
}

fn bench_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    match bytes <= BENCH_BYTES_MAX {
        true => Ok(bytes),
        false => Err("at most 8 TiB".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("seconds from 0.001 to 3600".into()),
    }
}

/// The commands of `trace`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Print the statistics of a workload
    Info(InfoArgs),
    /// Convert a trace to another format or compression
    Convert(ConvertArgs),
    /// Make a synthetic trace
    Generate(GenerateArgs),
    /// Record the requests that the kernel sends to a block device
    Record(RecordArgs),
}

/// How a trace is read.
#[derive(Debug, Default, Args)]
pub struct ReadArgs {
    /// Format of the input, where detection should not decide
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<String>,
    /// Its columns, where it is a table
    #[command(flatten)]
    pub columns: ColumnsArgs,
    /// Only the requests of this volume
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// Bytes of a page, in traces and statistics that count in pages
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(512..=1 << 24))]
    pub page_bytes: u32,
    /// Put a page cache before it: dirty_pages=N,chunk=N,count=flash|host,page_bytes=N, each with a default (docs/formats.md)
    #[arg(long, value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "")]
    pub pagecache: Option<String>,
}

/// Arguments of `trace info`.
#[derive(Debug, Args)]
#[command(after_help = formats_help("Examples:
  floatgate trace info oltp-postgres
  floatgate trace info sda.blktrace.0 sda.blktrace.1      (several files are merged by time)
  floatgate trace info web.csv.gz --log-window 4096 --json
  floatgate trace info my.csv --columns time:ms,_,offset:sectors,size:B,op:1=W/0=R"))]
pub struct InfoArgs {
    /// The trace, or a bundled one: oltp-postgres, desktop, ext2-bonnie-150 and others
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// How to read it
    #[command(flatten)]
    pub read: ReadArgs,
    /// Pages that a log area takes: tells how many overwrites come back within it
    #[arg(long, value_name = "PAGES")]
    pub log_window: Option<u64>,
    /// Sizes of log areas, in pages or % of the pages touched: which share of the pages that outlive a log window die in
    /// the next
    #[arg(
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        default_value = "3%,5%,10%,20%,25%,40%"
    )]
    pub log_sizes: Vec<LogSize>,
    /// Print the statistics as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace convert`.
#[derive(Debug, Args)]
#[command(after_help = formats_help("Examples:
  floatgate trace convert web.csv.gz web.parquet
  floatgate trace convert oltp-postgres oltp.pages.zst --page-bytes 2048
  floatgate trace convert files.csv.gz device.csv.gz --pagecache dirty_pages=50_000,count=host
  floatgate trace convert sda.blkparse out.txt --to msr"))]
pub struct ConvertArgs {
    /// The trace to read, or a bundled one
    pub file: String,
    /// The file to write; its name tells format and compression (.gz, .xz, .zst, .bz2)
    pub out: PathBuf,
    /// Format of the output, where its name does not tell it
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// How to read it
    #[command(flatten)]
    pub read: ReadArgs,
    /// Print what was written as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace generate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate trace generate                                   (lists the generators)
  floatgate trace generate zipf --set theta=1.1 --set requests=1_000_000 --out zipf.pages
  floatgate trace generate tpcc --pagecache dirty_pages=2000,chunk=200 --out behind.pages
  floatgate trace generate tpcc --set arrival=exponential --set gap=200000 --out tpcc.csv.zst")]
pub struct GenerateArgs {
    /// The generator; without one they are listed
    pub name: Option<String>,
    /// A parameter of the generator
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The file to write; its name tells format and compression
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format of the output, where its name does not tell it
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// Bytes of a page
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(512..=1 << 24))]
    pub page_bytes: u32,
    /// Put a page cache behind it: dirty_pages=N,chunk=N,count=flash|host, each with a default (docs/formats.md)
    #[arg(long, value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "")]
    pub pagecache: Option<String>,
    /// Print what was written, or the list of generators, as JSON
    #[arg(long)]
    pub json: bool,
}

/// The commands of `image`.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Make an image with a fresh device of a scheme in it
    Create(ImageCreateArgs),
    /// Describe an image: scheme, shape, wear, bad blocks
    Info(ImageArgs),
    /// Find and name every inconsistency of an image
    Check(ImageCheckArgs),
    /// List the pages of an image with their spare areas
    Dump(ImageDumpArgs),
    /// Read all of an image, and write anew what begins to fail
    Scrub(ImageScrubArgs),
    /// Read bytes of the device
    Read(ImageReadArgs),
    /// Write bytes of the device
    Write(ImageWriteArgs),
    /// Make the bytes of a file those of the device
    Import(ImageImportArgs),
    /// Write all bytes of the device to a file
    Export(ImageExportArgs),
}

/// Arguments of `image create`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate image create disk.img
  floatgate image create disk.img --scheme fast --set device.capacity_gib=1 --set scheme.log_blocks=64
  floatgate image create disk.img --set device.part=mt29f16g08 --spare-blocks 20 --pair-guard flushed
  floatgate image create disk.img --config ssd.toml --set device.wear_leveling=static

The sections [device], [scheme] and [schemes] of a configuration count. Without a capacity the device
has 64 MiB. A file that exists is left alone; erased blocks take no space on the disk.")]
pub struct ImageCreateArgs {
    /// The file to make
    pub file: PathBuf,
    /// The scheme (`floatgate schemes` lists them)
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// TOML configuration (`floatgate config` prints one to start from)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Override a key of the configuration
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// Blocks of each die that wait for others to fail, beside those of the scheme
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub spare_blocks: u32,
    /// Which lower pages of multi-level cells are copied before their upper partner is programmed
    #[arg(long, value_name = "WHICH", default_value = "off", value_parser = ["off", "flushed", "always"])]
    pub pair_guard: String,
    /// Print the image's description as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `image info`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  floatgate image info disk.img\n  floatgate image info disk.img --json"
)]
pub struct ImageArgs {
    /// The image
    pub file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `image check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate image check disk.img
  floatgate image check disk.img --json

Every page is read. Exit code 0 if there is no error (notes are what a power cut leaves behind, and the
next start puts right), 1 if there is one. docs/image-format.md lists the findings.")]
pub struct ImageCheckArgs {
    /// The image
    pub file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `image scrub`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate image scrub disk.img
  floatgate image scrub disk.img --json

Mounts the device, reads every page, moves blocks in which a page needed retries or is lost, writes damaged copies of
records anew, and closes the image in order. Exit code 0 if every logical page can be read, else 1. `image check` finds
more, and changes nothing.")]
pub struct ImageScrubArgs {
    /// The image
    pub file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `image dump`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate image dump disk.img
  floatgate image dump disk.img --lpn 4711 --data 32
  floatgate image dump disk.img --block 3 --erased --json")]
pub struct ImageDumpArgs {
    /// The image
    pub file: PathBuf,
    /// Only this physical block
    #[arg(long, value_name = "BLOCK")]
    pub block: Option<u32>,
    /// Only the pages that hold this logical page, old versions too
    #[arg(long, value_name = "PAGE")]
    pub lpn: Option<u32>,
    /// Erased pages too
    #[arg(long)]
    pub erased: bool,
    /// The first bytes of each page, in hexadecimal
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub data: usize,
    /// At most this many pages; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub rows: usize,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `conform`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate conform vectors/*/*.json
  floatgate conform --print vectors/fast/01.json

The requests of NN.json stand in NN.txt beside it. Exit code 1 if anything differs.")]
pub struct ConformArgs {
    /// Vectors
    #[arg(required = true, value_name = "FILE.json")]
    pub files: Vec<PathBuf>,
    /// Print what came out, as JSON of the same shape (one line a vector), instead of comparing
    #[arg(long)]
    pub print: bool,
    /// Print the comparison as JSON
    #[arg(long, conflicts_with = "print")]
    pub json: bool,
}

/// Arguments of `schemes`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  floatgate schemes\n  floatgate schemes fast")]
pub struct SchemesArgs {
    /// The scheme to show
    pub name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// A command that only prints.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  floatgate run --scheme page --set device.part=mt29f16g08")]
pub struct JsonArgs {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  floatgate config > floatgate.toml\n  floatgate config --schema > floatgate.schema.json"
)]
pub struct ConfigArgs {
    /// Print a JSON schema of the configuration, for editors
    #[arg(long)]
    pub schema: bool,
}

/// Help that ends with the list of the formats.
fn formats_help(examples: &'static str) -> String {
    let mut help = format!(
        "{examples}\n\nFormats (* can be written), detected by content; gzip, xz, zstd, bzip2 are seen through:\n"
    );
    for format in floatgate_trace::Format::ALL {
        let mark = if format.writable() { '*' } else { ' ' };
        help.push_str(&format!(
            "  {:<10}{mark} {}\n",
            format.name(),
            format.describe()
        ));
    }
    help
}
