//! The region of an image for phase-change memory: the entries of all logical pages, and the seal of a clean close.
//!
//! An entry lies in one page of the page cache, so a crash of the machine leaves it old or new, and a checksum finds
//! what else may have happened to it. Entries have no number of an operation: which of them are ahead of the flash after a
//! crash, or behind it, is told by what they name (`crates/device/src/pcm.rs`). The *seal* says that after operation so-and-so they were
//! complete, and bears a checksum over all of them: an entry that is older than it was breaks it.

use floatgate_core::{Lpn, Ppn};

use crate::entry::PcmEntry;

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 24;
/// Bytes of a page of the region.
pub const PAGE_BYTES: usize = 4096;
/// Entries in a page of the region: none straddles two.
pub const PAGE_ENTRIES: usize = PAGE_BYTES / ENTRY_BYTES;
/// Bytes of the seal; it has a page of the region for itself, before the entries.
pub const SEAL_BYTES: usize = 24;

const SEAL_MAGIC: u32 = u32::from_le_bytes(*b"FGPC");
const CRC_AT: usize = 20;

/// Bytes of the region of a device with so many logical pages.
pub fn region_bytes(logical_pages: u32) -> u64 {
    (1 + u64::from(logical_pages).div_ceil(PAGE_ENTRIES as u64)) * PAGE_BYTES as u64
}

/// The bytes of an entry; all zero for none.
pub fn encode(lpn: Lpn, entry: Option<&PcmEntry>) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    if let Some(entry) = entry {
        bytes[..4].copy_from_slice(&entry.place.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&entry.era.to_le_bytes());
        bytes[8..16].copy_from_slice(&entry.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&entry.tag.to_le_bytes());
        let crc = crc_of(lpn, &bytes);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

/// Reads an entry; `None` if there is none.
///
/// # Errors
/// What is wrong.
pub fn decode(lpn: Lpn, bytes: &[u8; ENTRY_BYTES]) -> Result<Option<PcmEntry>, &'static str> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    if u32_at(bytes, CRC_AT) != crc_of(lpn, bytes) {
        return Err("checksum");
    }
    let entry = PcmEntry {
        place: Ppn(u32_at(bytes, 0)),
        era: u32_at(bytes, 4),
        sequence: u64_at(bytes, 8),
        tag: u32_at(bytes, 16),
    };
    // A number that leaves no room for later ones is none that a device has given.
    match entry.sequence < 1 << 62 {
        true => Ok(Some(entry)),
        false => Err("an impossible number"),
    }
}

/// Over the entry and the page that it is of: in another's place it is damaged.
fn crc_of(lpn: Lpn, bytes: &[u8; ENTRY_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&lpn.0.to_le_bytes()), &bytes[..CRC_AT])
}

/// What a clean close says of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The last operation before it.
    pub op: u64,
    /// Over all pages of entries.
    pub entries_crc: u32,
}

impl Seal {
    /// The bytes.
    pub fn encode(&self) -> [u8; SEAL_BYTES] {
        let mut bytes = [0; SEAL_BYTES];
        bytes[..4].copy_from_slice(&SEAL_MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.entries_crc.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.op.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a seal; `None` if the region was never sealed.
    ///
    /// # Errors
    /// What is wrong.
    pub fn decode(bytes: &[u8; SEAL_BYTES]) -> Result<Option<Self>, &'static str> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if u32_at(bytes, 0) != SEAL_MAGIC
            || u32_at(bytes, CRC_AT) != crc32c::crc32c(&bytes[..CRC_AT])
        {
            return Err("checksum");
        }
        Ok(Some(Self {
            op: u64_at(bytes, 8),
            entries_crc: u32_at(bytes, 4),
        }))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_an_entry_counts_and_so_does_its_place() {
        let entry = PcmEntry {
            place: Ppn(41),
            era: 3,
            sequence: 1 << 40,
            tag: 9,
        };
        let bytes = encode(Lpn(7), Some(&entry));
        assert_eq!(decode(Lpn(7), &bytes), Ok(Some(entry)));
        assert_eq!(decode(Lpn(8), &bytes), Err("checksum"));
        for bit in 0..8 * ENTRY_BYTES {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(Lpn(7), &torn), Err("checksum"), "bit {bit}");
        }
        assert_eq!(decode(Lpn(7), &encode(Lpn(7), None)), Ok(None));
        let late = PcmEntry {
            sequence: 1 << 62,
            ..entry
        };
        let bytes = encode(Lpn(7), Some(&late));
        assert_eq!(decode(Lpn(7), &bytes), Err("an impossible number"));
    }

    #[test]
    fn every_bit_of_a_seal_counts() {
        let seal = Seal {
            op: 77,
            entries_crc: 0xABCD_EF01,
        };
        let bytes = seal.encode();
        assert_eq!(Seal::decode(&bytes), Ok(Some(seal)));
        for bit in 0..8 * SEAL_BYTES {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Seal::decode(&torn), Err("checksum"), "bit {bit}");
        }
        assert_eq!(Seal::decode(&[0; SEAL_BYTES]), Ok(None));
    }
}
