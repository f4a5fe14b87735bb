//! A device whose scheme is chosen while the program runs: what a server or a command needs of it, behind one pointer.

use std::path::Path;

use floatgate_core::{Ftl, Lpn};

use crate::block::{BlockDevice, SECTOR_BYTES};
use crate::error::DeviceError;
use crate::image::{self, Durability, ImageNand, ImageSpec};
use crate::spares::Spares;

/// A mounted device of any scheme. Offsets and lengths count sectors; the promises are those of [`BlockDevice`].
pub trait Drive: Send {
    /// Key of the scheme.
    fn scheme(&self) -> &'static str;
    /// Bytes of a sector: offsets and lengths are multiples of it.
    fn sector_bytes(&self) -> usize;
    /// Sectors of the device.
    fn sectors(&self) -> u64;
    /// Bytes of a page: writes of whole pages need no read.
    fn page_bytes(&self) -> usize;
    /// Why the device is read-only, if it is.
    fn read_only(&self) -> Option<String>;
    /// Reads sectors into `data`.
    ///
    /// # Errors
    /// As [`BlockDevice::read`].
    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<(), DeviceError>;
    /// Writes sectors.
    ///
    /// # Errors
    /// As [`BlockDevice::write`].
    fn write(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError>;
    /// Writes sectors that survive a crash of the machine when this returns.
    ///
    /// # Errors
    /// As [`Drive::write`] and [`Drive::flush`].
    fn write_through(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.write(sector, data)?;
        self.flush()
    }
    /// Drops the pages that a range covers whole.
    ///
    /// # Errors
    /// As [`BlockDevice::trim`].
    fn trim(&mut self, sector: u64, count: u64) -> Result<(), DeviceError>;
    /// Whether a page is known to hold nothing.
    fn is_hole(&self, page: u32) -> bool;
    /// Returns once everything acknowledged survives a crash of the machine.
    ///
    /// # Errors
    /// As [`BlockDevice::flush`].
    fn flush(&mut self) -> Result<(), DeviceError>;
    /// Passes the time to the scheme.
    ///
    /// # Errors
    /// As [`BlockDevice::tick`].
    fn tick(&mut self, now_ns: u64) -> Result<(), DeviceError>;
    /// Shuts the device down and closes what it lies in.
    ///
    /// # Errors
    /// As [`BlockDevice::shut_down`]; those of writing the file.
    fn close(self: Box<Self>) -> Result<(), DeviceError>;
}

impl<S: Ftl<Page = Lpn>> Drive for BlockDevice<S, Spares<ImageNand>> {
    fn scheme(&self) -> &'static str {
        S::KEY
    }

    fn sector_bytes(&self) -> usize {
        self.sector_bytes()
    }

    fn sectors(&self) -> u64 {
        self.sectors()
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes()
    }

    fn read_only(&self) -> Option<String> {
        self.read_only()
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        self.read(sector, data)
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.write(sector, data)
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<(), DeviceError> {
        self.trim(sector, count)
    }

    fn is_hole(&self, page: u32) -> bool {
        self.is_hole(page)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.flush()
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        self.tick(now_ns)
    }

    fn close(self: Box<Self>) -> Result<(), DeviceError> {
        Ok(self.shut_down()?.into_nand().close()?)
    }
}

/// A device that was mounted, or why not.
pub type Mounted = Result<Box<dyn Drive>, DeviceError>;

/// Mounts the device in an image of that scheme.
///
/// # Errors
/// As [`image::open`].
pub fn mount<S: Ftl<Page = Lpn>>(path: &Path, durability: Durability) -> Mounted {
    Ok(Box::new(
        image::open::<S>(path, durability)?.with_sector_bytes(SECTOR_BYTES)?,
    ))
}

/// A fresh device in memory, which the end of the process takes with it. The same chip as in a file, but in a file that
/// has no disk: what is measured on it is the program, and nothing is compiled twice.
///
/// # Errors
/// A refusal if scheme, options and shape do not fit together; an error if the system has no such files.
pub fn in_memory<S: Ftl<Page = Lpn>>(spec: &ImageSpec) -> Mounted {
    Ok(Box::new(
        image::create_in_memory::<S>(spec)?.with_sector_bytes(SECTOR_BYTES)?,
    ))
}
