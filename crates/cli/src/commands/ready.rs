//! What `serve`, `mount` and `attach` have in common: the device of the command line, the line that tells where it is to be
//! found, its end.

use floatgate_catalog::Catalog;
use floatgate_device::Drive;
use floatgate_serve::Shared;
use serde::Serialize;

use super::{bytes, image, listeners};
use crate::args::DeviceArgs;
use crate::errors::{Outcome, Problem};
use crate::output;

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

/// Shuts the device down.
pub fn shut_down(shared: &Shared) -> Outcome<()> {
    shared.close().map_err(|why| {
        Problem::new(format!("the device was not shut down in order: {why}"))
            .help("what was flushed is there; the next mount recovers as after a power cut")
    })
}
