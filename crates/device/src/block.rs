//! A block device: one scheme on one flash, with sectors on the outside and pages inside.

use floatgate_core::flash::SEQUENCE_MAX;
use floatgate_core::ftl::{MountError, RecoveryMode};
use floatgate_core::options::Options;
use floatgate_core::{Ftl, Lpn, Pbn, Refusal, Run, Space, Start, Tick};

use crate::error::DeviceError;
use crate::flash::NandFlash;
use crate::nand::{Nand, NandError, PatrolFound};

/// Bytes of a sector unless told otherwise.
pub const SECTOR_BYTES: usize = 512;

/// One scheme on one flash, as a device with sectors.
///
/// A write is acknowledged when the call returns: it survives the end of this process. [`BlockDevice::flush`]
/// makes everything acknowledged before it survive a crash of the machine. A partial page is written by
/// reading the rest. A trim drops the pages that it covers whole; partly covered pages keep their content.
///
/// A device whose chip has no spare block left is read-only. So is one in which a program failed for good: the
/// scheme's tables then stand in the middle of a request, which is safe to read from but not known to be safe to
/// write to.
#[derive(Debug)]
pub struct BlockDevice<S, N> {
    ftl: S,
    flash: NandFlash<N>,
    sector_bytes: usize,
    /// Why writing ended, if it has.
    read_only: Option<String>,
    /// Whether it was a flush.
    has_failed_flush: bool,
    /// The time of the last tick, if no request came since.
    idle_since_ns: Option<u64>,
}

/// The pages that hold a range of bytes.
struct Pages {
    first: u32,
    count: u32,
    /// Where the range begins in the first page.
    offset: usize,
}

impl<S: Ftl<Page = Lpn>, N: Nand> BlockDevice<S, N> {
    /// Makes a fresh device, every sector zero, on an erased chip.
    ///
    /// # Errors
    /// A refusal if scheme, options and chip do not fit together.
    pub fn create(nand: N, options: &S::Options) -> Result<Self, DeviceError> {
        let mut flash = NandFlash::new(nand)?;
        S::live(options)?;
        let space = Space::whole(flash.ledger.geometry());
        let written = (0..space.blocks()).any(|b| flash.ledger.write_pointer(Pbn(b)) > 0);
        if written {
            let text = "a fresh device needs an erased flash".into();
            return Err(DeviceError::Corrupt { text });
        }
        let ftl = S::format(&space, options, Start::Empty, &mut flash).map_err(mount_failed)?;
        Self::assemble(ftl, flash)
    }

    /// Mounts the device on a chip, after a shutdown or a power cut at any moment. Every acknowledged write is
    /// there; each page of a write that was cut is old or new; a trimmed page is zero or something that it once held.
    ///
    /// # Errors
    /// A refusal if scheme, options and chip do not fit together, or if too much of the flash is damaged to recover
    /// the scheme's tables; an error of the chip, after which another attempt may succeed.
    pub fn open(nand: N, options: &S::Options, mode: RecoveryMode) -> Result<Self, DeviceError> {
        // New programs need higher sequence numbers than all there are, and these must stay valid.
        let mut flash = NandFlash::new(nand)?;
        if flash.ledger.sequence > SEQUENCE_MAX / 2 {
            let text = format!("sequence number {} is out of range", flash.ledger.sequence);
            return Err(DeviceError::Corrupt { text });
        }
        S::live(options)?;
        let space = Space::whole(flash.ledger.geometry());
        let ftl = S::recover(&space, options, mode, &mut flash).map_err(mount_failed)?;
        Self::assemble(ftl, flash)
    }

    /// A device of a scheme that was already formatted or recovered on that flash.
    ///
    /// # Errors
    /// If the flash cannot be flushed.
    pub fn assemble(ftl: S, mut flash: NandFlash<N>) -> Result<Self, DeviceError> {
        flash.flush()?;
        Ok(Self {
            ftl,
            flash,
            sector_bytes: SECTOR_BYTES,
            read_only: None,
            has_failed_flush: false,
            idle_since_ns: None,
        })
    }

    /// The same device with sectors of another size.
    ///
    /// # Errors
    /// If the size does not divide the page.
    pub fn with_sector_bytes(mut self, sector_bytes: usize) -> Result<Self, DeviceError> {
        let page_bytes = self.page_bytes();
        if sector_bytes == 0 || !page_bytes.is_multiple_of(sector_bytes) {
            let text =
                format!("sectors of {sector_bytes} bytes do not divide a page of {page_bytes}");
            return Err(Refusal::new("sector_bytes", text).into());
        }
        self.sector_bytes = sector_bytes;
        Ok(self)
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Sectors of the device.
    pub fn sectors(&self) -> u64 {
        let pages = u64::from(self.flash.ledger.geometry().logical_pages);
        pages * self.page_bytes() as u64 / self.sector_bytes as u64
    }

    /// Bytes of a page: writes of whole pages need no read.
    pub fn page_bytes(&self) -> usize {
        self.flash.nand().page_bytes()
    }

    /// The scheme.
    pub fn ftl(&self) -> &S {
        &self.ftl
    }

    /// Its flash.
    pub fn flash_layer(&self) -> &NandFlash<N> {
        &self.flash
    }

    /// Its flash, mutably.
    pub fn flash_layer_mut(&mut self) -> &mut NandFlash<N> {
        &mut self.flash
    }

    /// Why the device is read-only, if it is.
    pub fn read_only(&self) -> Option<String> {
        self.check_writable().err().map(|error| error.to_string())
    }

    /// Reads sectors into `data`.
    ///
    /// # Errors
    /// [`NandError::Unreadable`] if a page is lost; then `data` is unspecified. Never wrong bytes.
    pub fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let count = self.sectors_of(data.len())?;
        self.check_range(sector, count)?;
        if count == 0 {
            return Ok(());
        }
        let pages = self.pages(sector, data.len());
        let bytes = self.read_pages(pages.first, pages.count)?;
        data.copy_from_slice(&bytes[pages.offset..][..data.len()]);
        Ok(())
    }

    /// Reads whole pages into the request's buffer.
    fn read_pages(&mut self, first: u32, count: u32) -> Result<&[u8], DeviceError> {
        self.idle_since_ns = None;
        self.flash.new_request(Lpn(first), count);
        let outcome = self
            .ftl
            .read(&mut self.flash, &Run::whole(Lpn(first), count));
        // A scheme that keeps its map in flash may have to program to serve a read; if that fails, writing
        // ends. An unreadable page does not end it.
        match outcome {
            Err(error) if error.is_lost_page() => return Err(error.into()),
            outcome => self.stop_writing_on_error(outcome)?,
        }
        if let Some(lpn) = self.flash.missing() {
            return Err(NandError::Stale { lpn }.into());
        }
        Ok(self.flash.buffer())
    }

    /// Writes sectors.
    ///
    /// # Errors
    /// If the write failed: each of its pages is then old or new, and the device is read-only.
    pub fn write(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        let count = self.sectors_of(data.len())?;
        self.check_range(sector, count)?;
        self.check_writable()?;
        if count == 0 {
            return Ok(());
        }
        let pages = self.pages(sector, data.len());
        self.idle_since_ns = None;
        let (head, tail) = self.edges(&pages, data.len())?;
        let buffer = self.flash.new_request(Lpn(pages.first), pages.count);
        let end = pages.offset + data.len();
        buffer[..pages.offset].copy_from_slice(&head);
        buffer[pages.offset..end].copy_from_slice(data);
        buffer[end..].copy_from_slice(&tail);
        let run = Run::whole(Lpn(pages.first), pages.count);
        let outcome = self.ftl.write(&mut self.flash, &run);
        self.finish_change(outcome)?;
        self.flash.register.finish_request();
        Ok(())
    }

    /// Drops the pages that a range covers whole: they read as zeroes. Once flushed they do so for good; before, a power
    /// cut may bring back anything that they once held.
    ///
    /// # Errors
    /// As [`BlockDevice::write`].
    pub fn trim(&mut self, sector: u64, count: u64) -> Result<(), DeviceError> {
        self.check_range(sector, count)?;
        self.check_writable()?;
        let per_page = (self.page_bytes() / self.sector_bytes) as u64;
        let (first, end) = (sector.div_ceil(per_page), (sector + count) / per_page);
        if first >= end {
            return Ok(());
        }
        let pages = (end - first) as u32;
        // No scheme puts trimmed pages into the buffer, but slots index its pages.
        self.idle_since_ns = None;
        self.flash.new_request(Lpn(first as u32), pages);
        let run = Run::whole(Lpn(first as u32), pages);
        let unwritten_reads = self.flash.unwritten_reads;
        let outcome = self.ftl.trim(&mut self.flash, &run);
        // A page that is absent from a trim is no read.
        self.flash.unwritten_reads = unwritten_reads;
        // Whether or not it is done: pages that a failed trim has dropped are not lost.
        let sequence = self.flash.ledger.sequence;
        for lpn in first..end {
            self.flash.register.trim(Lpn(lpn as u32), sequence);
        }
        self.finish_change(outcome)
    }

    /// Whether a page holds nothing and reads as zeroes, known without looking: trimmed since the device was mounted,
    /// or never written on a device mounted fresh. Of any other page nothing is said.
    pub fn is_hole(&self, page: u32) -> bool {
        // A write that failed may have left content that the register does not know.
        self.read_only.is_none() && self.flash.register.is_empty_for_certain(Lpn(page))
    }

    /// Returns once everything acknowledged survives a crash of the machine.
    ///
    /// # Errors
    /// As [`Nand::flush`]. What was written since the last flush that succeeded may then be lost; the device is
    /// read-only, and no later flush succeeds.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        if self.has_failed_flush {
            self.check_writable()?;
        }
        let outcome = self.flash.flush();
        self.has_failed_flush |= outcome.is_err();
        self.stop_writing_on_error(outcome)
    }

    /// Passes the time to the scheme, in nanoseconds from any start; call it before requests, and now and then while
    /// idle. The scheme does its timed work that is due, and background work if no request came since the last tick.
    ///
    /// # Errors
    /// As [`BlockDevice::write`]; a read-only device does nothing.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        if self.check_writable().is_err() {
            return Ok(());
        }
        let idle_since_ns = self.idle_since_ns;
        let tick = Tick {
            now_ns,
            idle_ns: idle_since_ns.map(|since| since.min(now_ns)..now_ns),
        };
        let before = self.flash.ledger.counters;
        let outcome = self.ftl.tick(&mut self.flash, &tick);
        // Work done by the scheme ends the idle time.
        let has_worked = self.flash.ledger.counters != before;
        self.idle_since_ns = idle_since_ns.filter(|_| !has_worked).or(Some(now_ns));
        self.finish_change(outcome)?;
        if idle_since_ns.is_some() && !has_worked {
            self.patrol(1)?;
        }
        Ok(())
    }

    /// Reads the next blocks in turn, and moves what begins to fail while it can still be read. An idle device does it
    /// with every [`BlockDevice::tick`].
    ///
    /// # Errors
    /// As [`BlockDevice::write`].
    pub fn patrol(&mut self, blocks: u32) -> Result<PatrolFound, DeviceError> {
        let mut found = PatrolFound::default();
        let outcome = self.flash.nand_mut().patrol(blocks);
        self.finish_change(outcome.map(|patrol| found = patrol))?;
        Ok(found)
    }

    /// Clean shutdown: writes and flushes what a fast next mount needs. Returns the chip.
    ///
    /// # Errors
    /// As [`BlockDevice::write`].
    pub fn shut_down(mut self) -> Result<N, DeviceError> {
        if self.check_writable().is_ok() {
            let outcome = self.ftl.shutdown(&mut self.flash);
            self.finish_change(outcome)?;
        }
        self.flash.flush_with_register()?;
        Ok(self.flash.into_nand())
    }

    /// Scheme and flash separately.
    pub fn into_parts(self) -> (S, NandFlash<N>) {
        (self.ftl, self.flash)
    }

    /// The chip as it is, without a shutdown.
    pub fn into_nand(self) -> N {
        self.flash.into_nand()
    }

    /// Checks the scheme's tables against the flash; returns live pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self) -> Result<u64, String> {
        self.ftl.audit(&self.flash)
    }

    fn sectors_of(&self, bytes: usize) -> Result<u64, DeviceError> {
        if !bytes.is_multiple_of(self.sector_bytes) {
            return Err(DeviceError::Unaligned {
                bytes,
                sector_bytes: self.sector_bytes,
            });
        }
        Ok((bytes / self.sector_bytes) as u64)
    }

    fn check_range(&self, sector: u64, count: u64) -> Result<(), DeviceError> {
        let sectors = self.sectors();
        if sector.checked_add(count).is_none_or(|end| end > sectors) {
            return Err(DeviceError::OutOfRange {
                sector,
                count,
                sectors,
            });
        }
        Ok(())
    }

    fn check_writable(&self) -> Result<(), DeviceError> {
        if let Some(why) = self.read_only.clone() {
            return Err(DeviceError::ReadOnly { why });
        }
        Ok(self.flash.nand().check_writable()?)
    }

    /// A failed change ends all writing.
    fn stop_writing_on_error(&mut self, outcome: Result<(), NandError>) -> Result<(), DeviceError> {
        outcome.map_err(|error| {
            self.read_only = Some(error.to_string());
            error.into()
        })
    }

    /// The same, for a change that must be on the chip before it is acknowledged.
    fn finish_change(&mut self, outcome: Result<(), NandError>) -> Result<(), DeviceError> {
        let kept = outcome.and_then(|()| self.flash.nand().check_kept());
        self.stop_writing_on_error(kept)
    }

    fn pages(&self, sector: u64, bytes: usize) -> Pages {
        let page_bytes = self.page_bytes() as u64;
        let start = sector * self.sector_bytes as u64;
        let (first, end) = (
            start / page_bytes,
            (start + bytes as u64).div_ceil(page_bytes),
        );
        Pages {
            first: first as u32,
            count: (end - first) as u32,
            offset: (start % page_bytes) as usize,
        }
    }

    /// The bytes before and after a range in its first and last page.
    fn edges(&mut self, pages: &Pages, bytes: usize) -> Result<(Vec<u8>, Vec<u8>), DeviceError> {
        let page_bytes = self.page_bytes();
        let end = (pages.offset + bytes) % page_bytes;
        let mut head = Vec::new();
        let mut tail = Vec::new();
        if pages.offset > 0 {
            head = self.read_pages(pages.first, 1)?[..pages.offset].to_vec();
        }
        if end > 0 {
            tail = self.read_pages(pages.first + pages.count - 1, 1)?[end..].to_vec();
        }
        Ok((head, tail))
    }
}

fn mount_failed(error: MountError<NandError>) -> DeviceError {
    match error {
        MountError::Refused(refusal) => DeviceError::Refused(refusal),
        MountError::Flash(error) => DeviceError::Nand(error),
    }
}

/// A scheme's options from `key=value` lines, as an image keeps them.
///
/// # Errors
/// A refusal for the first line that the scheme does not accept.
pub fn options_from_text<S: Ftl<Page = Lpn>>(text: &str) -> Result<S::Options, Refusal> {
    let mut options = S::Options::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let refuse = |message: String| Refusal::new("options", message);
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| refuse(format!("{line:?} is not of the form key=value")))?;
        let value = floatgate_core::options::Value::from_word(value.trim());
        options.set(key.trim(), &value)?;
    }
    Ok(options)
}
