//! A chip in a file. The format is described byte by byte in `docs/image-format.md`, and in [`format`].
//!
//! **What reaches the disk when.** A program or erase is in the file when the call returns: it survives the
//! end of this process. [`flush`](crate::Nand::flush) is `fdatasync`: everything before it survives a crash of the
//! machine. What comes after the last flush may reach the disk in any order and in part; so operations are
//! numbered, a header says up to which number all of them are on the disk, and opening the image believes what follows
//! up to the first operation that is missing or not whole. The rest is discarded. So a crash of the machine leaves
//! what a power cut between two operations would have left, and no scheme has to know about page caches.
//!
//! **What must not be overwritten.** To be discarded, an erase must leave the block as it was; to be counted, an
//! operation must leave its number. So an erase only writes the block's record. The block's pages are freed, or
//! programmed again, when the erase is on the disk, and the operations that programmed them are below the
//! number in either header: mostly long since, else after another `fdatasync`. With [`Durability::Process`] nothing
//! waits for the disk, and only the end of the process is survived.
//!
//! **After a failed sync** nothing is known about what is on the disk, and a second one proves nothing. So the first
//! failure of a write or a sync is final: nothing is changed and nothing is promised any more.
//!
//! **What is trusted.** Nothing. Each page carries a checksum over its bytes, its spare area and its
//! address. A page below the number in the header was on the disk, so if it cannot be read it has rotted, and was not
//! cut.

pub mod check;
mod chip;
mod claims;
pub(crate) mod create;
pub mod describe;
pub mod disk;
pub mod entries;
mod finding;
pub mod format;
mod log;
pub mod memory;
mod open;
mod reader;
mod region;
mod scrub;

use std::path::{Path, PathBuf};

use crate::nand::NandError;
pub use check::{CheckReport, check};
pub use chip::ImageNand;
pub use create::{ImageSpec, create, create_in_memory};
pub use describe::{
    Dump, DumpSelection, EntryRow, ImageInfo, PageRow, PcmInfo, dump, header_of, info,
};
pub use finding::{Finding, Severity};
pub use open::{mount, open};
pub use scrub::{ScrubReport, scrub};

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
                "format version {version}: this program reads versions {} and {}",
                format::VERSION,
                format::VERSION_WITH_PCM
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

/// What is waited for. See the module's text.
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
    /// Pages from before the last erase of their block, whose space was not freed yet.
    pub stale: u64,
    /// Pages and records discarded, because an operation before them had not reached the disk.
    pub discarded: u64,
    /// Pages of the register that are damaged.
    pub damaged_register: u64,
    /// Damaged entries of the phase-change memory.
    pub damaged_entries: u64,
    /// Bad blocks.
    pub bad_blocks: u64,
    /// Block records of which a copy is damaged.
    pub damaged_records: u64,
    /// Whether one of the two headers is damaged.
    pub damaged_header: bool,
    /// Whether the image was closed cleanly.
    pub clean: bool,
    /// Whether the register then told of everything.
    pub exact: bool,
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
