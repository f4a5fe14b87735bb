//! The spare area of a page: what a scheme writes there, and reads back after a power cut.

use crate::address::Lpn;

/// Bytes of every OOB that belong to the scheme, on a flash that stores bytes, in addition to logical page, sequence
/// number, role and tag.
pub const SCHEME_OOB_BYTES: usize = 64;

/// A recovery rejects higher sequence numbers, since the next program needs a higher one still.
pub const SEQUENCE_MAX: u64 = (1 << 63) - 1;

/// What a page is for, as recorded in its OOB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Role {
    /// A page of a data block.
    #[default]
    Data = 0,
    /// A page of a log block.
    Log = 1,
    /// A page of a sequential log block (LAST, LAST++).
    LogSequential = 2,
    /// A page of a hot random log block (LAST, LAST++).
    LogHot = 3,
    /// A page of a cold random log block (LAST, LAST++).
    LogCold = 4,
    /// A page that holds mapping information.
    Map = 5,
    /// The summary of a log block.
    Summary = 6,
    /// A log block of second-chance copies (FASTer).
    LogChance = 7,
    /// The isolation block (FASTer).
    LogIsolation = 8,
}

impl Role {
    /// All roles, by their numbers.
    pub const ALL: [Self; 9] = [
        Self::Data,
        Self::Log,
        Self::LogSequential,
        Self::LogHot,
        Self::LogCold,
        Self::Map,
        Self::Summary,
        Self::LogChance,
        Self::LogIsolation,
    ];
}

/// The spare area of a page as a scheme writes it. The flash adds the sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oob {
    /// The logical page of the whole device, or the number of the map page.
    pub lpn: Lpn,
    /// What the page is for.
    pub role: Role,
    /// A few bits for the scheme (a flag, a kind of block).
    pub tag: u32,
}

impl Oob {
    /// An OOB without a tag.
    #[inline(always)]
    pub fn new(lpn: Lpn, role: Role) -> Self {
        Self { lpn, role, tag: 0 }
    }

    /// The same with a tag.
    #[inline(always)]
    #[must_use]
    pub fn tagged(self, tag: u32) -> Self {
        Self { tag, ..self }
    }

    /// The same with the scheme's own bytes: `fill` gets [`SCHEME_OOB_BYTES`] zeroes. Only a flash that stores bytes calls
    /// it, so it costs a simulation nothing.
    #[inline(always)]
    pub fn with_bytes<B: FnOnce(&mut [u8])>(self, fill: B) -> OobWithBytes<B> {
        OobWithBytes { oob: self, fill }
    }
}

/// An [`Oob`] with the scheme's own bytes, see [`Oob::with_bytes`].
#[derive(Debug)]
pub struct OobWithBytes<B> {
    oob: Oob,
    fill: B,
}

/// What a program writes into the spare area: an [`Oob`], or one [with bytes](Oob::with_bytes).
pub trait SpareArea {
    /// The fixed part.
    fn oob(&self) -> Oob;

    /// Writes the scheme's own bytes over zeroes.
    fn fill_bytes(self, bytes: &mut [u8]);
}

impl SpareArea for Oob {
    #[inline(always)]
    fn oob(&self) -> Oob {
        *self
    }

    #[inline(always)]
    fn fill_bytes(self, _bytes: &mut [u8]) {}
}

impl<B: FnOnce(&mut [u8])> SpareArea for OobWithBytes<B> {
    #[inline(always)]
    fn oob(&self) -> Oob {
        self.oob
    }

    #[inline(always)]
    fn fill_bytes(self, bytes: &mut [u8]) {
        (self.fill)(bytes);
    }
}

/// An OOB as read back: with the device-wide sequence number of its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OobRead {
    /// What the scheme wrote.
    pub oob: Oob,
    /// Grows with every program on the device.
    pub sequence: u64,
}

/// A whole spare area as read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpareRead {
    /// The fixed part.
    pub read: OobRead,
    /// The scheme's own bytes, zeroes if it wrote none.
    pub bytes: [u8; SCHEME_OOB_BYTES],
}
