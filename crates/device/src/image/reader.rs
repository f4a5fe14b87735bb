//! Reading an image without changing it: what opening, describing and checking have in common.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::format::{
    BlockRecord, HEADER_BYTES, Header, Layout, PAGE_HEADER_BYTES, PageFault, PageHeader,
    RECORD_BYTES, record_at,
};
use super::{ImageError, io as image_io};

/// The state of a page, by its header.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Erased,
    /// Programmed before the last erase of the block.
    Stale(u32),
    Fault(PageFault),
    Programmed(PageHeader),
}

/// The state of a block, by its records and page headers.
pub(super) struct BlockSeen {
    pub record: BlockRecord,
    /// What is wrong with either record.
    pub record_faults: [Option<&'static str>; 2],
    pub slots: Vec<Slot>,
    pub last_sequence: u64,
}

/// An image open for reading.
pub(super) struct Reader {
    pub file: File,
    pub header: Header,
    pub layout: Layout,
    /// Each header, or what is wrong with it.
    pub copies: [Result<Header, ImageError>; 2],
    pub file_bytes: u64,
}

impl Reader {
    /// Opens and locks the file: exclusively for writing, shared for reading.
    pub fn open(path: &Path, write: bool) -> Result<Self, ImageError> {
        let file = File::options().read(true).write(write).open(path);
        let file = file.map_err(|e| image_io("open", path, e))?;
        let locked = if write {
            file.try_lock()
        } else {
            file.try_lock_shared()
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.to_path_buf();
                return Err(ImageError::Locked { path });
            }
            Err(TryLockError::Error(e)) => return Err(image_io("lock", path, e)),
        }
        let file_bytes = file
            .metadata()
            .map_err(|e| image_io("read", path, e))?
            .len();
        let copies = [0, 1].map(|copy| read_header(&file, path, copy * HEADER_BYTES as u64));
        let header = newest(&copies)?;
        Ok(Self {
            layout: Layout::of(&header.geometry, header.page_bytes),
            header,
            copies,
            file_bytes,
            file,
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

    /// Records and page headers of a block.
    pub fn block(&self, block: u32) -> io::Result<BlockSeen> {
        let copies = [0, 1].map(|copy| self.record(block, copy));
        let mut record_faults = [None; 2];
        let mut record = BlockRecord::default();
        for (i, copy) in copies.into_iter().enumerate() {
            match copy? {
                Ok(Some(found)) if found.version >= record.version => record = found,
                Ok(_) => {}
                Err(fault) => record_faults[i] = Some(fault),
            }
        }
        let pages = self.header.geometry.pages_per_block;
        let mut bytes = vec![0; pages as usize * PAGE_HEADER_BYTES];
        self.file
            .read_exact_at(&mut bytes, self.layout.block_at(block))?;
        let mut slots: Vec<Slot> = (0..)
            .zip(bytes.chunks_exact(PAGE_HEADER_BYTES))
            .map(|(position, bytes)| slot_of(bytes, block * pages + position))
            .collect();
        let mut last_sequence = 0;
        for slot in &slots {
            if let Slot::Programmed(header) = slot {
                // After a crash of the machine the record may be older than the pages.
                record.erases = record.erases.max(header.era);
                last_sequence = last_sequence.max(header.spare.sequence);
            }
        }
        for slot in &mut slots {
            if let Slot::Programmed(header) = slot
                && header.era < record.erases
            {
                *slot = Slot::Stale(header.era);
            }
        }
        Ok(BlockSeen {
            record,
            record_faults,
            slots,
            last_sequence,
        })
    }

    #[allow(clippy::type_complexity)] // a record, none, or what is wrong with it
    fn record(
        &self,
        block: u32,
        copy: u64,
    ) -> io::Result<Result<Option<BlockRecord>, &'static str>> {
        let mut bytes = [0; RECORD_BYTES];
        self.file
            .read_exact_at(&mut bytes, record_at(block, copy))?;
        Ok(BlockRecord::decode(&bytes, block))
    }

    /// The bytes of a page.
    pub fn data(&self, page: u32, data: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(data, self.layout.data_at(page))
    }
}

fn slot_of(bytes: &[u8], page: u32) -> Slot {
    let bytes = bytes.try_into().expect("cut to that length");
    match PageHeader::decode(bytes, page) {
        Ok(None) => Slot::Erased,
        Ok(Some(header)) => Slot::Programmed(header),
        Err(fault) => Slot::Fault(fault),
    }
}

fn read_header(file: &File, path: &Path, at: u64) -> Result<Header, ImageError> {
    let mut bytes = [0; HEADER_BYTES];
    let mut done = 0;
    // A file shorter than a header is no image, and no error of the file system.
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(image_io("read", path, e)),
        }
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
