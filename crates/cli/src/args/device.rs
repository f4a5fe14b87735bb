//! Arguments of the commands that use a device: `serve`, `mount`, `attach`, `image read` and its like.

use std::path::PathBuf;

use clap::Args;
use floatgate_core::buffer::Eviction;
use floatgate_serve::CutPlan;

/// The device that `serve`, `mount` and `attach` put up.
#[derive(Debug, Args)]
pub struct DeviceArgs {
    /// The image
    #[arg(required_unless_present = "memory", conflicts_with = "memory")]
    pub file: Option<PathBuf>,
    /// A fresh device of that size in memory instead; it is gone at the end
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
    /// Put a volatile write cache in front: what no flush has covered is lost in a power cut, and with the process
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub write_cache: Option<u64>,
    /// What leaves the write cache first: lru (pages) or bplru (logical blocks; docs/buffer.md)
    #[arg(long, value_name = "POLICY", requires = "write_cache", value_parser = eviction, default_value = "bplru")]
    pub cache_policy: Eviction,
    /// The write cache outlasts the power, as with capacitors: flushes leave it as it is, power cuts take nothing
    #[arg(long, requires = "write_cache")]
    pub cache_protected: bool,
    /// Put a read cache in front
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub read_cache: Option<u64>,
    /// Bytes that are read ahead of sequential reads; 0 for none [default: 128KiB, or the read cache if that is smaller]
    #[arg(long, value_name = "SIZE", requires = "read_cache", value_parser = offset)]
    pub read_ahead: Option<u64>,
    /// Answer when the modelled flash would be done, not before (docs/serve.md)
    #[arg(long)]
    pub real_time: bool,
    /// The part whose times are taken (`floatgate parts`) [default: the image's; device.* in memory]
    #[arg(long, value_name = "PART", requires = "real_time")]
    pub part: Option<String>,
    /// Take commands on this Unix socket: power cuts, statistics, snapshots (`floatgate control`, `floatgate stat`)
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Cut the power: write=N, flush=N, flash=N, after=N, or random=SEED,within=N; and unflushed=keep|drop|some, tear, seed=N
    #[arg(long, value_name = "WHEN[,HOW...]", requires = "control")]
    pub cut: Option<CutPlan>,
    /// What is written down of what is done to it
    #[command(flatten)]
    pub listen: ListenArgs,
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

/// Arguments of `control`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate serve disk.img --control disk.ctl &
  floatgate control disk.ctl cut --at-write 100 --tear --seed 7
  floatgate control disk.ctl on
  floatgate control disk.ctl snapshot before.img
  floatgate control disk.ctl '{\"do\":\"cut\",\"at\":{\"flush\":3},\"unflushed\":\"drop\"}'

The answer is a JSON object; the exit code is 1 if it tells of an error. docs/serve.md lists the commands.")]
pub struct ControlArgs {
    /// The socket that `--control` named
    pub socket: PathBuf,
    /// stat, cut, on, shutdown, mark TEXT, snapshot FILE, restore FILE; or a JSON object
    pub command: String,
    /// The text or file of that command
    pub argument: Option<String>,
    /// Of `cut`: in the n-th write from now
    #[arg(long, value_name = "N", group = "at")]
    pub at_write: Option<u64>,
    /// Of `cut`: in the n-th flush from now
    #[arg(long, value_name = "N", group = "at")]
    pub at_flush: Option<u64>,
    /// Of `cut`: in the n-th operation of the flash from now
    #[arg(long, value_name = "N", group = "at")]
    pub at_flash: Option<u64>,
    /// Of `cut`: what becomes of writes that no flush has covered: keep, drop or some
    #[arg(long, value_name = "WHICH")]
    pub unflushed: Option<String>,
    /// Of `cut`: in the middle of a write, and of an operation of the flash
    #[arg(long)]
    pub tear: bool,
    /// Of `cut`: of all that is drawn
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Arguments of `stat`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate stat disk.ctl
  floatgate stat disk.ctl --every 1
  floatgate stat disk.ctl --prometheus > /var/lib/node_exporter/floatgate.prom")]
pub struct StatArgs {
    /// The socket that `--control` named
    pub socket: PathBuf,
    /// Print JSON
    #[arg(long, conflicts_with = "prometheus")]
    pub json: bool,
    /// Print the text format of Prometheus
    #[arg(long)]
    pub prometheus: bool,
    /// Again every so many seconds, until a signal
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub every: Option<u32>,
}

impl ServeArgs {
    /// Whether another front end is asked for, so that NBD need not be.
    pub fn has_other_front_end(&self) -> bool {
        #[cfg(feature = "ublk")]
        if self.ublk {
            return true;
        }
        self.vhost_user.is_some()
    }
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floatgate serve disk.img --socket disk.sock
  nbdinfo 'nbd+unix:///?socket=disk.sock'
  floatgate serve --memory 256MiB --scheme fast --socket fast.sock
  floatgate serve disk.img --tcp 127.0.0.1:10809
  floatgate serve disk.img --vhost-user disk.vhost

One line tells the URI when clients can connect. SIGTERM or Ctrl-C shuts the device down in order; what was
flushed survives kill -9 too. docs/serve.md tells what is promised, and how QEMU, libnbd, fio and the kernel connect.")]
pub struct ServeArgs {
    /// What to serve
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Listen on this Unix socket [default: the image's name and .sock; floatgate.sock]
    #[arg(long, value_name = "PATH", conflicts_with = "tcp")]
    pub socket: Option<PathBuf>,
    /// Listen on a TCP port, of this machine only if no address is given
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub tcp: Option<String>,
    /// Serve a virtual machine's disk (vhost-user-blk) on this Unix socket, and NBD only if --socket or --tcp asks for it
    #[arg(long, value_name = "PATH")]
    pub vhost_user: Option<PathBuf>,
    /// Serve a block device of this machine (/dev/ublkbN), and NBD only if --socket or --tcp asks for it
    #[cfg(feature = "ublk")]
    #[arg(long)]
    pub ublk: bool,
    /// Clients of NBD at a time; others wait
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// Print the line as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `mount`.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:
  mkdir shown && floatgate mount disk.img shown
  dd if=shown/device bs=1M count=1 | xxd | head
  floatgate mount --memory 256MiB --scheme fast shown

The folder holds one file, `device`, for you alone, until SIGTERM, Ctrl-C or `fusermount3 -u shown`. Needs FUSE, no root.
`floatgate attach` makes a block device of it."
)]
pub struct MountArgs {
    /// What to show
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The folder to show it in
    #[arg(required = true)]
    pub folder: PathBuf,
    /// Print the line as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `attach`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo floatgate attach disk.img &            # prints /dev/loop0
  sudo mkfs.ext4 /dev/loop0 && sudo mount -o discard /dev/loop0 /mnt
  sudo umount /mnt && sudo kill %1

Needs root, FUSE and losetup. It ends in order at SIGTERM, Ctrl-C or `losetup -d`: a file system that is still mounted
is named and waited for.")]
pub struct AttachArgs {
    /// What to attach
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Print the line as JSON
    #[arg(long)]
    pub json: bool,
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

fn eviction(text: &str) -> Result<Eviction, String> {
    Eviction::from_name(text).ok_or_else(|| "one of lru, bplru".into())
}

fn offset(text: &str) -> Result<u64, String> {
    match text.trim() {
        "0" => Ok(0),
        other => super::size(other),
    }
}
