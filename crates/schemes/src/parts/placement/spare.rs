//! What the laboratory writes into the spare area of a page.

use floatgate_core::address::Ppn;

/// More host pages than any flash lives to see. A forged number ends there, so that sums of them have room.
const WRITES_MAX: u64 = 1 << 40;

/// What the OOB of a page says beside its logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spare {
    /// The class of its unit.
    pub(super) class: u32,
    /// The place it was moved from, or `NONE`.
    pub(super) from: Ppn,
    /// The number of its last host write, if that is kept.
    pub(super) last: u64,
    /// Its host writes, if these are kept.
    pub(super) count: u32,
    /// The handle it was written under.
    pub(super) handle: u32,
}

impl Spare {
    pub(super) fn write(&self, bytes: &mut [u8]) {
        bytes[0] = self.class as u8;
        bytes[1] = self.handle as u8;
        bytes[2..6].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[6..10].copy_from_slice(&self.count.to_le_bytes());
        bytes[10..18].copy_from_slice(&self.last.to_le_bytes());
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        Self {
            class: bytes[0].into(),
            handle: bytes[1].into(),
            from: Ppn(word(2)),
            count: word(6),
            last: (u64::from(word(10)) | u64::from(word(14)) << 32).min(WRITES_MAX),
        }
    }
}
