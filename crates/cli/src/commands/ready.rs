//! What `serve`, `mount` and `attach` have in common: the device of the command line, the line that tells where it is to be
//! found, its end.

use std::sync::Arc;

use floatgate_catalog::Catalog;
use floatgate_device::Drive;
use floatgate_device::drive::cache::CacheSetup;
use floatgate_device::image::header_of;
use floatgate_device::power::Times;
use floatgate_serve::control::Control;
use floatgate_serve::{Setup, Shared, Tap};
use floatgate_sim::clock::{FlashOp, Machine, OpKind};
use floatgate_sim::part::{PARTS, Part, part};
use serde::Serialize;

use super::{bytes, image, listeners};
use crate::args::DeviceArgs;
use crate::errors::{Outcome, Problem};
use crate::output;

/// What is read ahead unless something else is asked for: the window of Linux's page cache.
const AHEAD_BYTES: u64 = 128 << 10;

/// What is told when the device can be used.
#[derive(Clone, Debug, Serialize)]
pub struct Ready {
    /// Where NBD's clients connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The socket that a virtual machine's monitor connects to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vhost_user: Option<String>,
    /// The file that the device is shown as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The block device that the kernel shows it as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_device: Option<String>,
    scheme: &'static str,
    bytes: u64,
    page_bytes: usize,
    #[serde(skip)]
    sector_bytes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<String>,
}

impl Ready {
    /// Of a device that is nowhere yet.
    pub fn new(drive: &dyn Drive) -> Self {
        Self {
            uri: None,
            vhost_user: None,
            path: None,
            block_device: None,
            scheme: drive.scheme(),
            bytes: drive.sectors() * drive.sector_bytes() as u64,
            page_bytes: drive.page_bytes(),
            sector_bytes: drive.sector_bytes() as u32,
            read_only: drive.read_only(),
        }
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only.is_some()
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Prints it: a line for each place, or one of JSON.
    pub fn print(&self, as_json: bool) -> Outcome<()> {
        if as_json {
            let line = serde_json::to_string(self);
            let line = line.map_err(|error| Problem::bug(error.to_string()))?;
            return output::print(&format!("{line}\n"));
        }
        let why = self.read_only.as_ref();
        let why = why.map_or(String::new(), |why| format!(", read-only: {why}"));
        let vhost_user = self.vhost_user.as_ref();
        let vhost_user = vhost_user.map(|path| format!("vhost-user:{path}"));
        let places = [&self.uri, &vhost_user, &self.path, &self.block_device];
        let lines = places.into_iter().flatten().map(|place| {
            let (scheme, bytes) = (self.scheme, self.bytes);
            format!("{place}  {scheme}, {bytes} bytes{why}\n")
        });
        output::print(&lines.collect::<String>())
    }
}

/// Mounts the device in an image, or makes one in memory.
pub fn open(args: &DeviceArgs, catalog: &Catalog) -> Outcome<Box<dyn Drive>> {
    listeners::check(&args.listen)?;
    match (&args.file, args.memory) {
        (Some(file), _) => bytes::mount(file, catalog),
        (None, capacity) => image::in_memory(args, capacity.unwrap_or_default(), catalog),
    }
}

/// How the device is as a drive. What makes no sense is refused before the device is touched.
pub fn setup(args: &DeviceArgs, catalog: &Catalog) -> Outcome<Setup> {
    let times = match args.real_time {
        true => Some(times(args, catalog)?),
        false => None,
    };
    Ok(Setup {
        cache: caches(args)?,
        times,
        image: args.file.clone(),
        cut: args.cut,
        tell: output::tell,
    })
}

/// The caches that are asked for.
fn caches(args: &DeviceArgs) -> Outcome<Option<CacheSetup>> {
    let read_bytes = args.read_cache.unwrap_or_default();
    if args.read_ahead.is_some_and(|ahead| ahead > read_bytes) {
        return Err(Problem::new("--read-ahead: no more than --read-cache"));
    }
    let setup = CacheSetup {
        write_bytes: args.write_cache.unwrap_or_default(),
        eviction: args.cache_policy,
        is_protected: args.cache_protected,
        read_bytes,
        ahead_bytes: args.read_ahead.unwrap_or(AHEAD_BYTES.min(read_bytes)),
    };
    Ok((args.write_cache.is_some() || args.read_cache.is_some()).then_some(setup))
}

/// The times of the part that is named, by the command line or the image, or those of the device in memory.
fn times(args: &DeviceArgs, catalog: &Catalog) -> Outcome<Times> {
    let named = |name: &str, place: &str| {
        part(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            Problem::new(format!("{place}: no part {name:?}"))
                .help(format!("--part takes one of {}", known.join(", ")))
        })
    };
    let mut part = match (&args.part, &args.file) {
        (Some(name), _) => named(name, "--part")?,
        (None, None) => return image::part_in_memory(args, catalog).map(|part| times_of(&part)),
        (None, Some(file)) => {
            let header = header_of(file).map_err(image::unusable)?;
            named(&header.part, "--real-time takes the part of the image")?
        }
    };
    if let Some(file) = &args.file {
        part.page_bytes = header_of(file).map_err(image::unusable)?.page_bytes;
    }
    Ok(times_of(&part))
}

/// Each operation by itself, as the simulator times it: commands, transfer, cells.
fn times_of(part: &Part) -> Times {
    let machine = Machine {
        t_r_ns: part.t_r_ns,
        t_prog_ns: part.program_ns_of_page(),
        t_bers_ns: part.t_bers_ns,
        t_r_oob_ns: part.t_r_oob_ns,
        cycle_ns: part.cycle_ns,
        in_ps: part.in_ps,
        out_ps: part.out_ps,
        page_bytes: part.page_bytes,
        oob_bytes: part.oob_bytes,
        ..Machine::default()
    };
    let of = |kind| machine.duration_ns(FlashOp::new(kind, 0));
    Times {
        read_ns: of(OpKind::Read),
        oob_read_ns: of(OpKind::OobRead),
        program_ns: of(OpKind::Program),
        erase_ns: of(OpKind::Erase),
    }
}

/// Puts a device up, and takes its control socket if there is to be one.
pub fn put_up(
    args: &DeviceArgs,
    drive: Box<dyn Drive>,
    taps: Vec<Box<dyn Tap>>,
    setup: Setup,
) -> Outcome<(Arc<Shared>, Option<Control>)> {
    let control = args.control.as_ref().map(|path| {
        Control::bind(path).map_err(|error| {
            Problem::new(format!("--control {}: {error}", path.display()))
                .help("name another file (a socket's path has at most 107 bytes)")
        })
    });
    let control = control.transpose()?;
    Ok((Arc::new(Shared::with(drive, taps, setup)), control))
}

/// Shuts the device down.
pub fn shut_down(shared: &Shared) -> Outcome<()> {
    shared.close().map_err(|why| {
        Problem::new(format!("the device was not shut down in order: {why}"))
            .help("what was flushed is there; the next mount recovers as after a power cut")
    })
}
