//! Arguments of `fit` and of `recipe fit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::fit::Workload;

/// Arguments of `fit`.
#[derive(Debug, Args)]
#[command(
    long_about = "Finds what a drive is from what it was measured to do: the flash that can hold data, a constant factor for what is \
written beside pages, which rule collects, and whether moved pages lie beside those of the host or apart. Every candidate is \
simulated and told with its errors; what the measurements cannot tell apart is said.",
    after_help = "Examples:
  floatgate recipe fit /dev/nvme0n1 > measure.sh      (commands that measure a drive; they destroy what is on it)
  floatgate fit measured.csv
  floatgate fit measured.csv --out drive.toml && floatgate run --config drive.toml --trace mine.csv
  floatgate fit measured.csv --candidates greedy,cost-benefit --block-pages 64 --overhead 1 --json

docs/fit.md says what stands in the file, what is fitted, and how often hidden configurations were found."
)]
pub struct FitArgs {
    /// What was measured: a table with a row for each reading of the drive's counters
    #[arg(value_name = "MEASURED.csv")]
    pub file: PathBuf,
    /// The flash that can hold data, if it is known (as 1071GiB)
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub capacity: Option<u64>,
    /// Bytes written to flash for each byte of pages, if that is known
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub overhead: Option<f64>,
    /// Only these candidates, with commas between
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub candidates: Vec<String>,
    /// Pages of a block in the models that are tried
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "64,256", value_parser = clap::value_parser!(u32).range(8..=4096))]
    pub block_pages: Vec<u32>,
    /// Pages of data in a model: more are nearer to a drive, and take longer
    #[arg(long, value_name = "N", default_value_t = 51_200, value_parser = clap::value_parser!(u32).range(4096..=1 << 24))]
    pub model_pages: u32,
    /// Bytes that the drive was written in each run, in sizes of what was written to
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub rounds: u32,
    /// Simulations at a time [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Write a configuration of a device like the drive, for `floatgate run --config`
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

fn factor(text: &str) -> Result<f64, String> {
    let given = text.parse().ok();
    given
        .filter(|factor| (1.0..=1.5).contains(factor))
        .ok_or_else(|| "a factor from 1 to 1.5".into())
}

/// The commands of `recipe`.
#[derive(Debug, Subcommand)]
pub enum RecipeCommand {
    /// Print a script that measures a drive for `floatgate fit`, and destroys what is on it
    Fit(RecipeFitArgs),
}

/// Arguments of `recipe fit`.
#[derive(Debug, Args)]
#[command(
    long_about = "Prints a shell script that measures a drive for `floatgate fit`. Nothing is run or touched by this command. The script \
DESTROYS ALL DATA on the drive, and asks for a word before it begins: run it on a drive that holds nothing.",
    after_help = "Examples:
  floatgate recipe fit /dev/nvme0n1 > measure.sh
  sh measure.sh --destroy-all-data && floatgate fit measured.csv
  floatgate recipe fit /dev/nvme0n1 --fill 50,75,100 --skew 'hot(90/10)' --counter none --out mine.csv

A device that Floatgate serves (docs/serve.md), which nobody has to be afraid for:
  floatgate serve --memory 256MiB --scheme page --socket disk.sock --control disk.ctl &
  floatgate recipe fit 'nbd+unix:///?socket=disk.sock' --served disk.ctl --every 0.2 > measure.sh"
)]
pub struct RecipeFitArgs {
    /// The block device, or the NBD URI of a served one
    #[arg(value_name = "DEVICE")]
    pub device: String,
    /// The control socket of a device that Floatgate serves: its counters are read there
    #[arg(long, value_name = "SOCKET", conflicts_with = "counter")]
    pub served: Option<String>,
    /// Where bytes written to flash are counted: ocp (log page C0h of NVMe drives) or none (throughput is taken)
    #[arg(long, value_name = "WHERE", default_value = "ocp", value_parser = ["ocp", "none"])]
    pub counter: String,
    /// Levels of the fill sweep, in percent of the drive
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "50,60,70,80,90,100", value_parser = clap::value_parser!(u32).range(5..=100))]
    pub fill: Vec<u32>,
    /// Skewed workloads, on all of the drive
    #[arg(long, value_name = "WORKLOAD,...", value_delimiter = ',', default_value = "fio-zipf(0.8),hot(80/20),hot(90/10)", value_parser = Workload::parse)]
    pub skew: Vec<Workload>,
    /// Bytes written in each run, in sizes of what it writes to
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub rounds: u32,
    /// Seconds between two readings of the counters
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = super::seconds)]
    pub every: f64,
    /// The table that the script makes
    #[arg(long, value_name = "FILE", default_value = "measured.csv")]
    pub out: String,
}
