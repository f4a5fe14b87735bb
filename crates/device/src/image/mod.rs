//! A chip in a file. The format is described byte by byte in `docs/image-format.md`, and in [`format`].
//!
//! **What reaches the disk when.** A program or erase is in the file when the call returns: it survives the
//! end of this process, in the order of the calls. [`flush`](crate::Nand::flush) is `fdatasync`: everything
//! before it survives a crash of the machine. Of what comes after the last flush any subset may then be
//! there; each page is whole or reads as an error. With [`Durability::Machine`] an erase waits until the pages
//! programmed before it are on the disk, so that the only copy of a page is always there; with
//! [`Durability::Process`] it does not wait, and only the end of the process is survived.
//!
//! **What is trusted.** Nothing. Each page carries a checksum over its bytes, its spare area and its
//! address. After a clean close spare areas are read alone; otherwise together with their page.

pub mod check;
mod claims;
mod create;
pub mod describe;
mod finding;
pub mod format;
mod open;
mod reader;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use floatgate_core::{Geometry, Pbn, Ppn};

use crate::nand::{BlockState, Damage, Nand, NandError, Spare};
use crate::ram::check_program_rule;
pub use check::{CheckReport, check};
pub use create::{ImageSpec, create};
pub use describe::{Dump, DumpSelection, ImageInfo, PageRow, dump, info};
pub use finding::{Finding, Severity};
use format::{BlockRecord, HEADER_BYTES, Header, Layout, PAGE_HEADER_BYTES, PageHeader, record_at};
pub use open::open;
use reader::{Reader, Slot};

/// Why an image was not created or opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImageError {
    /// The file system reported an error.
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// Another program has it open.
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The first bytes are not those of an image.
    Magic,
    /// An unknown format version.
    Version {
        /// Its number.
        version: u32,
    },
    /// Both headers are damaged.
    HeaderChecksum,
    /// A header holds an impossible value.
    Header {
        /// What.
        what: String,
    },
    /// The file ends too early.
    Truncated {
        /// Its length.
        bytes: u64,
        /// What it should be.
        expected: u64,
    },
}

impl std::fmt::Display for ImageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io {
                doing,
                path,
                source,
            } => write!(f, "{doing} {}: {source}", path.display()),
            Self::Locked { path } => write!(f, "{} is in use by another program", path.display()),
            Self::Magic => f.write_str("not a Floatgate image: its first bytes are not FLOATGAT"),
            Self::Version { version } => write!(
                f,
                "format version {version}: this program reads version {}",
                format::VERSION
            ),
            Self::HeaderChecksum => f.write_str("both headers are damaged (checksum)"),
            Self::Header { what } => write!(f, "the header is invalid: {what}"),
            Self::Truncated { bytes, expected } => {
                write!(
                    f,
                    "the file ends after {bytes} bytes; it must have {expected}"
                )
            }
        }
    }
}

impl std::error::Error for ImageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What an erase waits for. See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Flushed data survives a crash of the machine.
    #[default]
    Machine,
    /// Everything survives the end of the process; nothing more is promised.
    Process,
}

/// What opening an image found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Found {
    /// Pages programmed, readable or not.
    pub programmed: u64,
    /// Of these, pages whose header is torn or rotten.
    pub unreadable: u64,
    /// Erased pages below programmed ones.
    pub gaps: u64,
    /// Pages from before the last erase of their block, which did not reach them.
    pub stale: u64,
    /// Bad blocks.
    pub bad_blocks: u64,
    /// Block records of which a copy is damaged.
    pub damaged_records: u64,
    /// Whether one of the two headers is damaged.
    pub damaged_header: bool,
    /// Whether the image was closed cleanly.
    pub clean: bool,
}

/// A chip in a file, locked against a second opener. See the module's text.
#[derive(Debug)]
pub struct ImageNand {
    file: File,
    header: Header,
    layout: Layout,
    durability: Durability,
    blocks: Vec<BlockRecord>,
    /// Highest programmed position + 1 of each block.
    written: Vec<u32>,
    /// One bit a page.
    programmed: Vec<u64>,
    last_sequence: u64,
    /// Something was programmed since the last flush.
    unsynced: bool,
    found: Found,
    scratch: Vec<u8>,
}

impl ImageNand {
    /// Opens an image and finds out what is programmed.
    ///
    /// # Errors
    /// If the file is not an image, has damaged headers, is too short, or is open elsewhere.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, ImageError> {
        let reader = Reader::open(path, true)?;
        reader.check_length()?;
        let geometry = &reader.header.geometry;
        let mut nand = Self {
            layout: reader.layout,
            durability,
            blocks: Vec::with_capacity(geometry.blocks() as usize),
            written: vec![0; geometry.blocks() as usize],
            programmed: vec![0; (geometry.pages() as usize).div_ceil(64)],
            last_sequence: 0,
            unsynced: false,
            found: Found {
                clean: reader.header.clean,
                damaged_header: reader.copies.iter().any(Result::is_err),
                ..Found::default()
            },
            scratch: vec![0; reader.header.page_bytes as usize],
            header: reader.header.clone(),
            file: reader.file.try_clone().map_err(|e| io("open", path, e))?,
        };
        for block in 0..geometry.blocks() {
            nand.load_block(&reader, block)
                .map_err(|e| io("read", path, e))?;
        }
        Ok(nand)
    }

    fn load_block(&mut self, reader: &Reader, block: u32) -> std::io::Result<()> {
        let seen = reader.block(block)?;
        self.blocks.push(seen.record);
        self.found.damaged_records += u64::from(seen.record_faults.iter().any(Option::is_some));
        self.found.bad_blocks += u64::from(seen.record.state != BlockState::Good);
        self.last_sequence = self.last_sequence.max(seen.last_sequence);
        let mut programmed = 0;
        for (position, slot) in (0..).zip(&seen.slots) {
            match slot {
                Slot::Erased => continue,
                Slot::Stale(_) => {
                    self.found.stale += 1;
                    continue;
                }
                Slot::Fault(_) => self.found.unreadable += 1,
                Slot::Programmed(_) => {}
            }
            programmed += 1;
            self.mark(self.header.geometry.ppn(Pbn(block), position), true);
            self.written[block as usize] = position + 1;
        }
        self.found.programmed += programmed;
        self.found.gaps += u64::from(self.written[block as usize]) - programmed;
        Ok(())
    }

    /// What opening found.
    pub fn found(&self) -> Found {
        self.found
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Flushes and marks the image as closed cleanly.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn close(mut self) -> Result<(), NandError> {
        self.flush()?;
        if !self.header.clean {
            self.rewrite_header(true)?;
        }
        Ok(())
    }

    /// Marks the image as not closed cleanly, before the first change.
    fn mark_dirty(&mut self) -> Result<(), NandError> {
        if self.header.clean {
            self.rewrite_header(false)?;
        }
        Ok(())
    }

    fn rewrite_header(&mut self, clean: bool) -> Result<(), NandError> {
        self.header.clean = clean;
        self.header.sequence += 1;
        let at = self.header.sequence % 2 * HEADER_BYTES as u64;
        self.put(&self.header.encode(), at)?;
        match self.durability {
            Durability::Machine => self.sync(),
            Durability::Process => Ok(()),
        }
    }

    fn put(&self, bytes: &[u8], at: u64) -> Result<(), NandError> {
        self.file
            .write_all_at(bytes, at)
            .map_err(|e| nand_io("write", e))
    }

    fn sync(&mut self) -> Result<(), NandError> {
        self.file.sync_data().map_err(|e| nand_io("flush", e))?;
        self.unsynced = false;
        Ok(())
    }

    fn put_record(
        &mut self,
        block: Pbn,
        change: impl FnOnce(&mut BlockRecord),
    ) -> Result<(), NandError> {
        let mut record = self.blocks[block.index()];
        change(&mut record);
        record.version = record.version.wrapping_add(1);
        self.put(
            &record.encode(block.0),
            record_at(block.0, record.version % 2),
        )?;
        self.blocks[block.index()] = record;
        Ok(())
    }

    fn mark(&mut self, page: Ppn, programmed: bool) {
        let (word, bit) = (page.index() / 64, page.index() % 64);
        self.programmed[word] = self.programmed[word] & !(1 << bit) | u64::from(programmed) << bit;
    }

    /// The header of a programmed page, if it names this page and was written since the last erase of the block.
    fn page_header(&self, page: Ppn) -> Result<PageHeader, NandError> {
        if !self.is_programmed(page) {
            return Err(NandError::Erased { page });
        }
        let mut bytes = [0; PAGE_HEADER_BYTES];
        read_at(&self.file, &mut bytes, self.layout.header_at(page.0))?;
        let era = self.blocks[self.header.geometry.block_of(page).index()].erases;
        match PageHeader::decode(&bytes, page.0) {
            Ok(Some(header)) if header.era == era => Ok(header),
            _ => Err(NandError::Unreadable { page }),
        }
    }
}

impl Nand for ImageNand {
    fn geometry(&self) -> &Geometry {
        &self.header.geometry
    }

    fn page_bytes(&self) -> usize {
        self.header.page_bytes as usize
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.programmed[page.index() / 64] >> (page.index() % 64) & 1 == 1
    }

    fn erase_count(&self, block: Pbn) -> u32 {
        self.blocks[block.index()].erases
    }

    fn block_state(&self, block: Pbn) -> BlockState {
        self.blocks[block.index()].state
    }

    fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    fn read(&mut self, page: Ppn, data: &mut [u8]) -> Result<Spare, NandError> {
        let header = self.page_header(page)?;
        read_at(&self.file, data, self.layout.data_at(page.0))?;
        if !header.fits(data) {
            return Err(NandError::Unreadable { page });
        }
        Ok(header.spare)
    }

    fn read_spare(&mut self, page: Ppn) -> Result<Spare, NandError> {
        if self.found.clean {
            return Ok(self.page_header(page)?.spare);
        }
        let mut data = std::mem::take(&mut self.scratch);
        let spare = self.read(page, &mut data);
        self.scratch = data;
        spare
    }

    fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) -> Result<(), NandError> {
        let (block, position) = self.header.geometry.split(page);
        let written = self.written[block.index()];
        check_program_rule(
            &self.header.geometry,
            page,
            self.is_programmed(page),
            written,
        )?;
        self.mark_dirty()?;
        let era = self.blocks[block.index()].erases;
        let header = PageHeader::new(era, page.0, spare, data);
        // The header last: a page without one is erased.
        self.unsynced = true;
        self.put(data, self.layout.data_at(page.0))?;
        self.put(&header.encode(), self.layout.header_at(page.0))?;
        self.mark(page, true);
        self.written[block.index()] = written.max(position + 1);
        self.last_sequence = self.last_sequence.max(spare.sequence);
        Ok(())
    }

    fn erase(&mut self, block: Pbn) -> Result<(), NandError> {
        self.mark_dirty()?;
        if self.unsynced && self.durability == Durability::Machine {
            self.sync()?;
        }
        // The new count makes all pages stale; the hole only frees their space.
        self.put_record(block, |record| {
            record.erases = record.erases.saturating_add(1)
        })?;
        for position in 0..self.written[block.index()] {
            self.mark(self.header.geometry.ppn(block, position), false);
        }
        self.written[block.index()] = 0;
        punch(
            &self.file,
            self.layout.block_at(block.0),
            self.layout.block_bytes,
        )
        .map_err(|e| nand_io("erase in", e))
    }

    fn mark_bad(&mut self, block: Pbn, state: BlockState) -> Result<(), NandError> {
        self.mark_dirty()?;
        if self.unsynced && self.durability == Durability::Machine {
            self.sync()?;
        }
        self.put_record(block, |record| record.state = state)
    }

    fn flush(&mut self) -> Result<(), NandError> {
        self.sync()
    }
}

impl Damage for ImageNand {
    fn spoil(&mut self, page: Ppn) -> Result<(), NandError> {
        self.mark_dirty()?;
        self.put(&[0xA5; PAGE_HEADER_BYTES], self.layout.header_at(page.0))?;
        self.mark(page, true);
        let (block, position) = self.header.geometry.split(page);
        let written = &mut self.written[block.index()];
        *written = (*written).max(position + 1);
        Ok(())
    }

    fn vanish(&mut self, page: Ppn) -> Result<(), NandError> {
        self.mark_dirty()?;
        self.put(&[0; PAGE_HEADER_BYTES], self.layout.header_at(page.0))?;
        self.mark(page, false);
        let block = self.header.geometry.block_of(page);
        self.written[block.index()] = crate::nand::written(self, block);
        Ok(())
    }
}

fn read_at(file: &File, bytes: &mut [u8], at: u64) -> Result<(), NandError> {
    file.read_exact_at(bytes, at)
        .map_err(|e| nand_io("read", e))
}

/// Punches a hole, which reads as zeroes; writes zeroes where the file system has no holes.
fn punch(file: &File, at: u64, bytes: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(file, flags, at, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        outcome => return Ok(outcome?),
    }
    let zeroes = vec![0; bytes.min(1 << 20) as usize];
    let mut done = 0;
    while done < bytes {
        let now = (bytes - done).min(zeroes.len() as u64);
        file.write_all_at(&zeroes[..now as usize], at + done)?;
        done += now;
    }
    Ok(())
}

fn nand_io(doing: &'static str, source: std::io::Error) -> NandError {
    NandError::Io { doing, source }
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> ImageError {
    let path = path.to_path_buf();
    ImageError::Io {
        doing,
        path,
        source,
    }
}
