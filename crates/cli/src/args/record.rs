//! Arguments of `trace record`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `trace record`.
#[derive(Debug, Args)]
#[command(
    long_about = "Records the requests that the kernel sends to a block device: reads, writes, discards, zeroes, flushes, without \
their bytes. It listens to the tracepoint block:block_rq_issue in a tracing group of its own, which is gone at the end; nothing \
is changed on the device.",
    after_help = "Examples:
  sudo floatgate trace record /dev/nvme0n1 -o day.parquet --seconds 86400
  sudo floatgate trace record /dev/sda2 -o build.csv.zst -- make -j8
  floatgate run --scheme fast --trace build.csv.zst

Without --seconds and without a command it ends at Ctrl-C. Of a partition only its own requests are recorded, counted from
its beginning. Times have microseconds. A write with FUA is recorded as a write and a flush. Write the trace to another
disk than the one that is recorded."
)]
pub struct RecordArgs {
    /// The block device, or a partition of one
    pub device: PathBuf,
    /// The trace to write; its name tells format and compression (.parquet, .csv, .csv.zst)
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// End after so many seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: Option<u32>,
    /// Memory of the kernel's buffer, in MiB a processor: what comes faster than it is read is lost, and told
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer_mib: u32,
    /// Print what was recorded as JSON
    #[arg(long)]
    pub json: bool,
    /// End when this command does
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "seconds")]
    pub command: Vec<String>,
}
