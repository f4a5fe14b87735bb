//! The snapshot that LAST++ writes at a clean shutdown: sequential block mapping table and page mapping table,
//! with as many bits an entry as the paper's Table I gives them.
//!
//! Table I's entries hold no keys (those are in the hash tables), so the snapshot takes them from what
//! the next start knows anyway. A sequential entry names its blocks; the segment follows from their OOBs. The entries of
//! the page table stand in the order of the log pages (dies, then blocks by index, then positions), and hold in
//! the place of the address, which is thereby known, the LPN: all ones for a page that is not valid. An LPN needs
//! no more bits than a physical address. A bit of a page status table is 0 where a power cut has spoilt the page, because
//! nothing can be read there. The entries of blocks that are not in use fill each die's share.

use crate::parts::bits::{BitWriter, bits_at};
use floatgate_core::address::Lpn;
use floatgate_core::geometry::Geometry;
use floatgate_core::report::bits_for;

/// What a segment has on each die: the index of its block and the block's page status table, or nothing.
pub type SegmentBlocks = Vec<Option<(u32, Vec<bool>)>>;

/// The log pages of a die's random log blocks: LPN and update counter of the valid ones.
pub type LogPages = Vec<Option<(Lpn, u8)>>;

/// Sizes of the tables, as memory and snapshot count them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Segments that may have sequential log blocks.
    pub segments: u32,
    /// Random log blocks of a die.
    pub random_blocks: u32,
    dies: u32,
    pages_per_block: u32,
    seq_id_bits: u32,
    block_bits: u32,
    page_address_bits: u32,
}

/// Bits of an update counter.
const UPDATE_BITS: u32 = 2;

impl Layout {
    /// The tables of a device.
    pub fn new(geometry: &Geometry, segments: u32, random_blocks: u32) -> Self {
        let bits = |n: u32| bits_for(n.into()) as u32;
        let block_bits = bits(geometry.blocks_per_die);
        Self {
            segments,
            random_blocks,
            dies: geometry.dies,
            pages_per_block: geometry.pages_per_block,
            seq_id_bits: bits(segments),
            block_bits,
            page_address_bits: bits(geometry.dies) + block_bits + bits(geometry.pages_per_block),
        }
    }

    /// Bits of one entry of the sequential block mapping table: Seq-ID, a block of each die, PST.
    pub fn sequential_entry_bits(&self) -> u64 {
        let dies = u64::from(self.dies);
        u64::from(self.seq_id_bits) + dies * u64::from(self.block_bits + self.pages_per_block)
    }

    /// Entries of the page mapping table.
    pub fn random_entries(&self) -> u64 {
        u64::from(self.random_blocks) * u64::from(self.dies) * u64::from(self.pages_per_block)
    }

    /// Bits of one entry of the page mapping table: die, block, page, update counter.
    pub fn random_entry_bits(&self) -> u64 {
        u64::from(self.page_address_bits + UPDATE_BITS)
    }

    /// Bytes of both tables.
    pub fn bytes(&self) -> u64 {
        let bits = u64::from(self.segments) * self.sequential_entry_bits()
            + self.random_entries() * self.random_entry_bits();
        bits.div_ceil(8)
    }

    /// Pages of the snapshot.
    pub fn pages(&self, page_bytes: u32) -> u64 {
        self.bytes().div_ceil(u64::from(page_bytes.max(1)))
    }

    /// The tables as bytes: segments by Seq-ID, log pages by die.
    pub fn write(&self, segments: &[SegmentBlocks], pages: &[LogPages]) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes() as usize];
        let mut out = BitWriter::new(&mut bytes);
        for rank in 0..self.segments {
            out.put(rank.into(), self.seq_id_bits);
            for die in 0..self.dies as usize {
                let block = segments.get(rank as usize).and_then(|s| s[die].as_ref());
                out.put(block.map_or(0, |b| b.0).into(), self.block_bits);
                for position in 0..self.pages_per_block as usize {
                    out.put(block.is_some_and(|b| b.1[position]).into(), 1);
                }
            }
        }
        let share = (self.random_blocks * self.pages_per_block) as usize;
        for die in pages {
            for i in 0..share {
                let (lpn, updates) = match die.get(i) {
                    Some(Some((lpn, updates))) => (u64::from(lpn.0), *updates),
                    _ => (self.no_page(), 0),
                };
                out.put(lpn, self.page_address_bits);
                out.put(updates.into(), UPDATE_BITS);
            }
        }
        out.finish();
        bytes
    }

    /// The tables back from their bytes, in the form that [`Self::write`] takes.
    pub fn read(&self, bytes: &[u8]) -> (Vec<SegmentBlocks>, Vec<LogPages>) {
        let mut at = 0;
        let mut get = |width: u32| {
            let value = bits_at(bytes, at, width);
            at += u64::from(width);
            value
        };
        let mut segments = Vec::new();
        for _ in 0..self.segments {
            get(self.seq_id_bits);
            let dies = (0..self.dies).map(|_| {
                let block = get(self.block_bits) as u32;
                let pst: Vec<bool> = (0..self.pages_per_block).map(|_| get(1) == 1).collect();
                pst.contains(&true).then_some((block, pst))
            });
            let dies: Vec<_> = dies.collect();
            if dies.iter().any(Option::is_some) {
                segments.push(dies);
            }
        }
        let share = self.random_blocks * self.pages_per_block;
        let pages = (0..self.dies)
            .map(|_| {
                let one = |_| {
                    let lpn = get(self.page_address_bits);
                    let updates = get(UPDATE_BITS) as u8;
                    (lpn != self.no_page()).then_some((Lpn(lpn as u32), updates))
                };
                (0..share).map(one).collect()
            })
            .collect();
        (segments, pages)
    }

    /// All ones: above every LPN, because there are fewer logical than physical pages.
    fn no_page(&self) -> u64 {
        (1 << self.page_address_bits) - 1
    }
}
