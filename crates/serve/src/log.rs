//! The write log: everything that changed a device's bytes, in its order, with the bytes.
//!
//! A log stands alone: it begins with what the device held. All numbers are little-endian.
//!
//! | header | bytes |
//! |---|---|
//! | `FGWRITES` | 8 |
//! | version, 1 | 4 |
//! | bytes of a sector, bytes of a page | 4, 4 |
//! | bytes of the device | 8 |
//! | CRC-32C of all that | 4 |
//!
//! | record | bytes |
//! |---|---|
//! | kind ([`Kind`]) | 1 |
//! | flags: 1 FUA; 2 the bytes are packed (zstd); 4 they are zeroes, and not there | 1 |
//! | zero | 2 |
//! | bytes that follow, *n* | 4 |
//! | offset on the device | 8 |
//! | bytes there | 8 |
//! | CRC-32C of the record's place in the file (8 bytes) and of all that | 4 |
//! | the bytes, and their CRC-32C if there are any | *n*, 4 |
//!
//! A record is written in one piece, so the log of a process that was killed can be read up to its last whole record. The
//! head has a checksum of its own: a damaged length is told from the end of the file.

mod reader;
mod writer;

pub use reader::{LogError, Place, Reader, Record, load};
pub use writer::LogTap;

/// The first bytes of a log.
const MAGIC: [u8; 8] = *b"FGWRITES";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;
const HEAD_BYTES: usize = 28;
/// Most bytes of a record. Longer writes become several.
const DATA_MAX: usize = 32 << 20;
/// Most bytes of a mark. What is longer is cut.
const MARK_MAX: usize = 64 << 10;

const FUA: u8 = 1;
const PACKED: u8 = 2;
const ZEROES: u8 = 4;

/// What a log is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Bytes of a page: a trim drops whole pages.
    pub page_bytes: u32,
    /// Bytes of the device.
    pub device_bytes: u64,
}

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes that the device held when the log began.
    Content = 1,
    /// All that the device held has been told; changes follow.
    Begin = 2,
    /// Bytes were written.
    Write = 3,
    /// The pages that the range covers whole were dropped.
    Trim = 4,
    /// All that was done before survives a power cut.
    Flush = 5,
    /// A client said something.
    Mark = 6,
    /// The device was shut down.
    End = 7,
    /// The power went, or another content took the place of this one: what the device holds from there on does not follow
    /// from what was done, and nothing is told of it.
    Cut = 8,
}

/// How a log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The device was shut down.
    ShutDown,
    /// The power went.
    Cut,
    /// Its writer was killed.
    Killed,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [
            Self::Content,
            Self::Begin,
            Self::Write,
            Self::Trim,
            Self::Flush,
            Self::Mark,
            Self::End,
            Self::Cut,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }

    /// Whether a record of it may have bytes.
    fn has_data(self) -> bool {
        matches!(self, Self::Content | Self::Write | Self::Mark)
    }
}

/// The checksum of a record's head, which depends on where it stands: one that was moved is not taken for another.
fn head_checksum(at: u64, head: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&at.to_le_bytes()), head)
}

#[cfg(test)]
mod tests;
