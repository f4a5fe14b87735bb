//! A page's place in few bits, and many of them packed into the spare bytes of one OOB.

use crate::parts::bits::{BitWriter, bits_at};
use floatgate_core::report::bits_for;

/// Where a page of a logical block lies, relative to the blocks that its logical block has at present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Index {
    /// In a log block, not in the data block.
    pub log: bool,
    /// Which of the log blocks of the logical block, from 0; 0 for the data block.
    pub position: u32,
    /// Page of that block.
    pub offset: u32,
}

impl Index {
    /// A page of the data block.
    #[inline(always)]
    pub fn in_data(offset: u32) -> Self {
        Self {
            log: false,
            position: 0,
            offset,
        }
    }
}

/// How many bits each part of an [`Index`] takes: 1 for the flag, then the position, then the offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexFormat {
    position_bits: u32,
    offset_bits: u32,
}

impl IndexFormat {
    /// The format for at most `log_blocks` log blocks a logical block and `pages` pages a block.
    pub fn new(log_blocks: u32, pages: u32) -> Self {
        Self {
            position_bits: bits_for(log_blocks.into()) as u32,
            offset_bits: bits_for(pages.into()) as u32,
        }
    }

    /// Bits of one index: at least 1, at most 33, because both numbers fit 16 bits.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        1 + self.position_bits + self.offset_bits
    }

    /// Bytes that so many indexes fill.
    pub fn bytes(self, indexes: u32) -> u64 {
        (u64::from(indexes) * u64::from(self.bits())).div_ceil(8)
    }

    /// The index of a page that was never written: the data block with a position, which no written page
    /// has. Formats without position bits lack such a value; theirs is the last offset, and whoever
    /// asks must know whether the page exists (they must anyway, because of trims).
    pub fn unwritten(self) -> Index {
        Index {
            log: false,
            position: ((1_u64 << self.position_bits) - 1) as u32,
            offset: ((1_u64 << self.offset_bits) - 1) as u32,
        }
    }

    /// Packs `indexes` into the first bytes.
    ///
    /// # Panics
    /// If the bytes are too few.
    pub fn pack(self, indexes: &[Index], bytes: &mut [u8]) {
        let mut packed = BitWriter::new(bytes);
        for index in indexes {
            let value = u64::from(index.offset)
                | u64::from(index.position) << self.offset_bits
                | u64::from(index.log) << (self.offset_bits + self.position_bits);
            packed.put(value, self.bits());
        }
        packed.finish();
    }

    /// Index number `i` of packed bytes.
    ///
    /// # Panics
    /// If the bytes are too few.
    pub fn unpack(self, bytes: &[u8], i: u32) -> Index {
        let width = self.bits();
        let value = bits_at(bytes, u64::from(i) * u64::from(width), width);
        let low = |bits: u32| (1_u64 << bits) - 1;
        Index {
            log: value >> (self.offset_bits + self.position_bits) & 1 == 1,
            position: (value >> self.offset_bits & low(self.position_bits)) as u32,
            offset: (value & low(self.offset_bits)) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_indexes_come_back() {
        let mut rng = floatgate_core::rng::SplitMix64::new(3);
        for (log_blocks, pages) in [
            (1, 1),
            (1, 128),
            (2, 128),
            (8, 128),
            (5, 6),
            (65_535, 65_000),
        ] {
            let format = IndexFormat::new(log_blocks, pages);
            let mut bytes = [0xFF; 64];
            let n = 8 * 64 / format.bits();
            let mut index = || Index {
                log: rng.below(2) == 1,
                position: rng.below(log_blocks.into()) as u32,
                offset: rng.below(pages.into()) as u32,
            };
            let mut indexes: Vec<Index> = (0..n).map(|_| index()).collect();
            indexes[0] = format.unwritten();
            format.pack(&indexes, &mut bytes);
            let back: Vec<Index> = (0..n).map(|i| format.unpack(&bytes, i)).collect();
            assert_eq!(back, indexes);
        }
    }

    /// BLogFTL section 4: eight log blocks of 128 pages make an index of 11 bits, 45 of them fill 62 bytes.
    #[test]
    fn eleven_bits_and_forty_five_indexes() {
        let format = IndexFormat::new(8, 128);
        assert_eq!((format.bits(), format.bytes(45)), (11, 62));
        assert_eq!(62 * 8 / format.bits(), 45);
        assert_eq!(IndexFormat::new(2, 128).bits(), 9);
        assert_eq!(IndexFormat::new(1, 128).bits(), 8);
    }
}
