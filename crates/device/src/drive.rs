//! A device whose scheme is chosen while the program runs: what a server or a command needs of it, behind one pointer.

use std::path::Path;

use floatgate_core::report::FlashCounters;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Pbn};

use crate::block::{BlockDevice, SECTOR_BYTES};
use crate::error::DeviceError;
use crate::image::{self, Durability, Found, ImageNand, ImageSpec};
use crate::nand::{BlockState, Nand};
use crate::power::{ChipCounts, Powered, Supply};
use crate::spares::Spares;

pub mod cache;
pub mod medium;

use cache::CacheFigures;
use medium::Medium;

/// What a device has done since it was mounted, and what it is worn.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The scheme's operations by cause.
    pub scheme: FlashCounters,
    /// The chip's operations: those of the scheme, and of spare blocks and wear levelling below it.
    pub chip: ChipCounts,
    /// Spare blocks that are left.
    pub spares_left: u64,
    /// Blocks that are bad.
    pub bad_blocks: u64,
    /// Good blocks.
    pub good_blocks: u64,
    /// Erases of all good blocks in their life.
    pub erases: u64,
    /// Those of the good block with the fewest.
    pub erases_min: u32,
    /// Those of the good block with the most.
    pub erases_max: u32,
    /// What mounting it found.
    pub found: Found,
    /// Its caches, if there are any.
    pub cache: Option<CacheFigures>,
}

/// What becomes of writes that no flush has covered when the power goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unflushed {
    /// All of them reach the flash.
    Keep,
    /// None does.
    Drop,
    /// Each is drawn, and they get there in any order.
    #[default]
    Some,
}

/// What a power cut does to a volatile write cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Loss {
    /// Which unflushed runs of sectors reach the flash.
    pub unflushed: Unflushed,
    /// Whether only a part of a run may get there, and the power may go in the middle of an operation of the flash.
    pub tear: bool,
}

/// What became of the unflushed runs of sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Lost {
    /// Runs that reached the flash.
    pub kept_runs: u64,
    /// Runs that did not.
    pub dropped_runs: u64,
    /// Runs of which the first sectors did.
    pub torn_runs: u64,
}

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
    /// Pages of a logical block of every die: written as a whole they suit schemes that map blocks.
    fn block_pages(&self) -> u32;
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
    /// The power of its flash, if it is in hand.
    fn supply(&mut self) -> Option<&mut Supply> {
        None
    }
    /// What it has done, and what it is worn.
    fn figures(&self) -> Figures {
        Figures::default()
    }
    /// What it lies in, if it can be mounted from there again.
    fn medium(&self) -> Option<Medium> {
        None
    }
    /// The power is about to go: what has not reached the flash is lost as it is drawn. The device is not to be used
    /// afterwards.
    fn lose(&mut self, loss: Loss, rng: &mut SplitMix64) -> Lost {
        let _ = (loss, rng);
        Lost::default()
    }
    /// The power is about to go, or is gone: what memory that outlasts it has for the flash, first sectors and bytes; none
    /// where there is no such memory, and nothing is asked of [`Drive::lose`] where there is.
    fn outlasting(&self) -> Option<Vec<(u64, Vec<u8>)>> {
        None
    }
    /// Shuts the device down and closes what it lies in.
    ///
    /// # Errors
    /// As [`BlockDevice::shut_down`]; those of writing the file.
    fn close(self: Box<Self>) -> Result<(), DeviceError>;
}

impl<S: Ftl<Page = Lpn>> Drive for BlockDevice<S, Spares<Powered<ImageNand>>> {
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

    fn block_pages(&self) -> u32 {
        let ledger = &self.flash_layer().ledger;
        ledger.geometry().pages_of_a_block_a_die()
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

    fn supply(&mut self) -> Option<&mut Supply> {
        Some(self.flash_layer_mut().nand_mut().nand_mut().supply_mut())
    }

    fn figures(&self) -> Figures {
        let (flash, spares) = (self.flash_layer(), self.flash_layer().nand());
        figures_of(flash.ledger.counters, spares)
    }

    fn medium(&self) -> Option<Medium> {
        let nand = self.flash_layer().nand().nand().inner();
        Some(Medium::new(nand, mount_again::<S>))
    }

    fn close(self: Box<Self>) -> Result<(), DeviceError> {
        Ok(self.shut_down()?.into_nand().close()?)
    }
}

/// The same for all schemes, and compiled once.
fn figures_of(scheme: FlashCounters, spares: &Spares<Powered<ImageNand>>) -> Figures {
    let powered = spares.nand();
    let nand = powered.inner();
    let blocks = nand.geometry().blocks();
    let is_good = |block: &Pbn| nand.block_state(*block) == BlockState::Good;
    let good = || (0..blocks).map(Pbn).filter(is_good);
    let erases = || good().map(|block| nand.erase_count(block));
    let good_blocks = good().count() as u64;
    Figures {
        scheme,
        chip: powered.supply().counts(),
        spares_left: spares.spares_left(),
        bad_blocks: u64::from(blocks) - good_blocks,
        good_blocks,
        erases: erases().map(u64::from).sum(),
        erases_min: erases().min().unwrap_or(0),
        erases_max: erases().max().unwrap_or(0),
        found: nand.found(),
        cache: None,
    }
}

fn mount_again<S: Ftl<Page = Lpn>>(nand: ImageNand) -> Mounted {
    Ok(Box::new(
        image::mount::<S>(nand)?.with_sector_bytes(SECTOR_BYTES)?,
    ))
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

/// A fresh device in memory, which the end of the process takes with it. The same chip as in a file, on bytes without a
/// disk: what is measured on it is the program, and nothing is compiled twice.
///
/// # Errors
/// A refusal if scheme, options and shape do not fit together.
pub fn in_memory<S: Ftl<Page = Lpn>>(spec: &ImageSpec) -> Mounted {
    Ok(Box::new(
        image::create_in_memory::<S>(spec)?.with_sector_bytes(SECTOR_BYTES)?,
    ))
}
