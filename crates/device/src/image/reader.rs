//! Reading an image without changing it: what opening, describing and checking have in common.

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use floatgate_core::Pbn;

use super::disk::Disk;
use super::format::{
    BlockRecord, HEADER_BYTES, Header, Layout, PAGE_HEADER_BYTES, PageFault, PageHeader,
    RECORD_BYTES, REGISTER_BYTES, RegisterPage, record_at,
};
use super::region::RegionSeen;
use super::{ImageError, io as image_io};

/// The state of a page, by its header.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Erased,
    /// Programmed before the last erase of the block.
    Stale(PageHeader),
    /// Programmed after an operation that did not reach the disk: it counts as erased.
    Unfinished,
    Fault(PageFault),
    Programmed(PageHeader),
}

/// The state of a block, by its records and page headers.
pub(super) struct BlockSeen {
    pub record: BlockRecord,
    /// Numbers of the operations that wrote its two records; 0 for one that is not there.
    pub record_ops: [u64; 2],
    /// What is wrong with either record.
    pub record_faults: [Option<&'static str>; 2],
    pub slots: Vec<Slot>,
    pub last_sequence: u64,
}

/// A page of the register.
pub(super) struct RegisterSeen {
    /// The newer of its copies, if one was ever written.
    pub newest: Option<RegisterPage>,
    /// How many copies say the same.
    pub copies: u8,
    /// What is wrong with either.
    pub faults: [Option<&'static str>; 2],
}

impl RegisterSeen {
    fn add(&mut self, found: RegisterPage) {
        self.copies = 1;
        match &self.newest {
            Some(newest) if newest.entries == found.entries => self.copies = 2,
            Some(newest) if newest.version > found.version => return,
            _ => {}
        }
        if self
            .newest
            .as_ref()
            .is_none_or(|newest| newest.version < found.version)
        {
            self.newest = Some(found);
        }
    }
}

/// An image open for reading.
pub(super) struct Reader<D = File> {
    pub disk: D,
    pub header: Header,
    pub layout: Layout,
    /// Each header, or what is wrong with it.
    pub copies: [Result<Header, ImageError>; 2],
    pub file_bytes: u64,
    /// The last operation that is believed; see [`Tail`].
    pub end: u64,
    /// From where on there is something in the file, as far as that is known.
    data_from: Cell<(u64, u64)>,
}

/// What a crash of the machine may have left of the operations after the last flush.
///
/// Operations are numbered. Up to [`Header::durable`] all of them are on the disk. Of the others any may be there, in
/// part or whole; they are believed up to the first that is missing, as if the power had gone right there.
#[derive(Default)]
pub(super) struct Tail {
    /// Number, where it is, and whether it is whole.
    found: Vec<(u64, Late, bool)>,
}

/// What an operation left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Late {
    /// A record of a block: block, copy.
    Record(u32, u64),
    /// A page.
    Page(u32),
}

impl Tail {
    /// The last operation that is believed.
    pub fn end(&mut self, durable: u64) -> u64 {
        self.found.sort_unstable();
        let mut end = durable;
        for &(op, _, is_whole) in &self.found {
            if op == end + 1 && is_whole {
                end = op;
            }
        }
        end
    }

    /// What operations beyond that one left.
    pub fn beyond(&self, end: u64) -> impl Iterator<Item = Late> + '_ {
        let late = self.found.iter().filter(move |(op, ..)| *op > end);
        late.map(|&(_, what, _)| what)
    }

    fn note(&mut self, durable: u64, op: u64, what: Late, is_whole: impl FnOnce() -> bool) {
        if op > durable {
            self.found.push((op, what, is_whole()));
        }
    }
}

/// Opens and locks an image: exclusively for writing, shared for reading.
pub(super) fn open_locked(path: &Path, write: bool) -> Result<File, ImageError> {
    let file = File::options().read(true).write(write).open(path);
    let file = file.map_err(|e| image_io("open", path, e))?;
    let locked = if write {
        file.try_lock()
    } else {
        file.try_lock_shared()
    };
    match locked {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let path = path.to_path_buf();
            Err(ImageError::Locked { path })
        }
        Err(TryLockError::Error(e)) => Err(image_io("lock", path, e)),
    }
}

impl Reader {
    /// An image in a file.
    pub fn open(path: &Path, write: bool) -> Result<Self, ImageError> {
        Self::of(open_locked(path, write)?, path)
    }
}

impl<D: Disk> Reader<D> {
    /// Reads the headers.
    pub fn of(disk: D, path: &Path) -> Result<Self, ImageError> {
        let file_bytes = disk.bytes().map_err(|e| image_io("read", path, e))?;
        let copies = [0, 1].map(|copy| read_header(&disk, path, copy * HEADER_BYTES as u64));
        let header = newest(&copies)?;
        Ok(Self {
            layout: Layout::of(&header),
            header,
            copies,
            file_bytes,
            end: u64::MAX,
            data_from: Cell::new((0, 0)),
            disk,
        })
    }

    pub fn check_length(&self) -> Result<(), ImageError> {
        if self.file_bytes < self.layout.file_bytes {
            return Err(ImageError::Truncated {
                bytes: self.file_bytes,
                expected: self.layout.file_bytes,
            });
        }
        Ok(())
    }

    /// Believes what is whole, and no more; returns the rest, of which nobody must take notice.
    pub fn find_end(&mut self) -> io::Result<Tail> {
        let mut tail = Tail::default();
        for block in 0..self.header.geometry.blocks() {
            self.note_tail(&self.block(block)?, block, &mut tail)?;
        }
        self.end = tail.end(self.header.durable);
        Ok(tail)
    }

    /// Adds the operations of a block that came after the last flush.
    pub fn note_tail(&self, seen: &BlockSeen, block: u32, tail: &mut Tail) -> io::Result<()> {
        let durable = self.header.durable;
        for (copy, &op) in (0..).zip(&seen.record_ops) {
            tail.note(durable, op, Late::Record(block, copy), || true);
        }
        for slot in &seen.slots {
            if let Slot::Programmed(header) | Slot::Stale(header) = slot
                && header.op > durable
            {
                let mut data = vec![0; self.header.page_bytes as usize];
                self.data(header.page, &mut data)?;
                let what = Late::Page(header.page);
                tail.note(durable, header.op, what, || header.fits(&data));
            }
        }
        Ok(())
    }

    /// Records and page headers of a block.
    pub fn block(&self, block: u32) -> io::Result<BlockSeen> {
        let mut seen = BlockSeen {
            record: BlockRecord::default(),
            record_ops: [0; 2],
            record_faults: [None; 2],
            slots: Vec::new(),
            last_sequence: 0,
        };
        let mut records = [0; 2 * RECORD_BYTES];
        self.disk.read(&mut records, record_at(block, 0))?;
        for (i, copy) in records.chunks_exact(RECORD_BYTES).enumerate() {
            let copy = copy.try_into().expect("cut to that length");
            match BlockRecord::decode(copy, block) {
                Ok(Some(found)) if found.op <= self.end => {
                    seen.record_ops[i] = found.op;
                    if found.version >= seen.record.version {
                        seen.record = found;
                    }
                }
                Ok(_) => {}
                Err(fault) => seen.record_faults[i] = Some(fault),
            }
        }
        let pages = self.header.geometry.pages_per_block;
        let header_bytes = pages as usize * PAGE_HEADER_BYTES;
        let at = self.layout.block_at(block);
        if self.may_hold_data(at, header_bytes as u64) {
            let mut bytes = vec![0; header_bytes];
            self.disk.read(&mut bytes, at)?;
            let headers = (0..).zip(bytes.chunks_exact(PAGE_HEADER_BYTES));
            let slot = |(position, bytes)| self.slot_of(bytes, Pbn(block), position);
            seen.slots = headers.map(slot).collect();
        } else {
            seen.slots = vec![Slot::Erased; pages as usize];
        }
        for slot in &seen.slots {
            if let Slot::Programmed(header) = slot {
                // A damaged record may be older than the pages.
                seen.record.erases = seen.record.erases.max(header.era);
                seen.last_sequence = seen.last_sequence.max(header.spare.sequence);
            }
        }
        for slot in &mut seen.slots {
            if let Slot::Programmed(header) = slot
                && header.era < seen.record.erases
            {
                *slot = Slot::Stale(*header);
            }
        }
        Ok(seen)
    }

    fn slot_of(&self, bytes: &[u8], block: Pbn, position: u32) -> Slot {
        let bytes = bytes.try_into().expect("cut to that length");
        let page = self.header.geometry.ppn(block, position);
        match PageHeader::decode(bytes, page.0) {
            Ok(None) => Slot::Erased,
            Ok(Some(header)) if header.op > self.end => Slot::Unfinished,
            Ok(Some(header)) => Slot::Programmed(header),
            Err(fault) => Slot::Fault(fault),
        }
    }

    /// Whether a range may hold anything but zeroes; ranges are asked for in ascending order, mostly.
    fn may_hold_data(&self, at: u64, bytes: u64) -> bool {
        let (asked, from) = self.data_from.get();
        if at < asked || at >= from {
            let from = self.disk.next_data(at).unwrap_or(u64::MAX);
            self.data_from.set((at, from));
        }
        self.data_from.get().1 < at + bytes
    }

    /// A page of the register.
    pub fn register(disk: &D, layout: &Layout, page: usize) -> io::Result<RegisterSeen> {
        let mut seen = RegisterSeen {
            newest: None,
            copies: 0,
            faults: [None; 2],
        };
        for copy in 0..2 {
            let mut bytes = [0; REGISTER_BYTES];
            disk.read(&mut bytes, layout.register_at(page, copy))?;
            match RegisterPage::decode(&bytes, page) {
                Ok(Some(found)) => seen.add(found),
                Ok(None) => {}
                Err(fault) => seen.faults[copy as usize] = Some(fault),
            }
        }
        if seen.newest.is_none() && seen.faults == [None; 2] {
            // Never written: as good as two copies of nothing.
            seen.copies = 2;
        }
        Ok(seen)
    }

    /// The region for phase-change memory, if there is one.
    pub fn region(&self) -> io::Result<Option<RegionSeen>> {
        if !self.header.pcm {
            return Ok(None);
        }
        let pages = self.header.geometry.logical_pages;
        RegionSeen::read(&self.disk, &self.layout, pages).map(Some)
    }

    /// The bytes of a page.
    pub fn data(&self, page: u32, data: &mut [u8]) -> io::Result<()> {
        self.disk.read(data, self.layout.data_at(page))
    }
}

fn read_header<D: Disk>(disk: &D, path: &Path, at: u64) -> Result<Header, ImageError> {
    let mut bytes = [0; HEADER_BYTES];
    match disk.read(&mut bytes, at) {
        Ok(()) => {}
        // A file shorter than a header is no image, and no error of the file system.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {}
        Err(e) => return Err(image_io("read", path, e)),
    }
    Header::decode(&bytes)
}

/// The newer of the valid headers; if both are damaged, what is wrong with the first.
fn newest(copies: &[Result<Header, ImageError>; 2]) -> Result<Header, ImageError> {
    match copies {
        [Ok(a), Ok(b)] if b.sequence > a.sequence => Ok(b.clone()),
        [Ok(a), _] => Ok(a.clone()),
        [_, Ok(b)] => Ok(b.clone()),
        [Err(a), Err(b)] => Err(match (a, b) {
            // The more telling of the two.
            (ImageError::Magic, other) | (other, _) => other.again(),
        }),
    }
}

impl ImageError {
    /// The same error once more; those of the file system are told anew.
    fn again(&self) -> Self {
        match self {
            Self::Io {
                doing,
                path,
                source,
            } => image_io(
                doing,
                path,
                io::Error::new(source.kind(), source.to_string()),
            ),
            Self::Locked { path } => Self::Locked { path: path.clone() },
            Self::Magic => Self::Magic,
            Self::Version { version } => Self::Version { version: *version },
            Self::HeaderChecksum => Self::HeaderChecksum,
            Self::Header { what } => Self::Header { what: what.clone() },
            Self::Truncated { bytes, expected } => Self::Truncated {
                bytes: *bytes,
                expected: *expected,
            },
        }
    }
}
