//! What the tags of BLog's pages say: the data block that a logical block had.

use floatgate_core::address::Pbn;
use floatgate_core::flash::{Flash, OobRead, Role};
use floatgate_core::geometry::Space;
use floatgate_core::report::bits_for;

/// Shift of the block in the tag of a host page; the bits below are those of [`move_tag`](crate::parts::scan::move_tag).
const BLOCK_SHIFT: u32 = 2;
/// Bits of a tag above them.
const BLOCK_BITS: u32 = 30;

/// How host pages name the data block of their logical block: its number in the die, from 1, and above it as much of
/// its number of erases as there is room for, which tells it from what the block was before.
#[derive(Clone, Copy, Debug)]
pub struct DataTag {
    first: u32,
    blocks: u32,
    width: u32,
}

impl DataTag {
    /// The tags of a space of one die.
    pub fn new(space: &Space) -> Self {
        let blocks = space.blocks();
        Self {
            first: space.geometry.pbn(space.first_die, 0).0,
            blocks,
            width: bits_for(u64::from(blocks) + 1) as u32,
        }
    }

    /// The tag of a page of a logical block with that data block; 0 if its number has too many bits.
    pub fn of<F: Flash>(self, flash: &F, data: Pbn) -> u32 {
        if self.width > BLOCK_BITS {
            return 0;
        }
        let number = data.0 - self.first + 1;
        let room = (1_u64 << (BLOCK_BITS - self.width)) - 1;
        let life = (u64::from(flash.erase_count(data)) & room) as u32;
        (number | life.checked_shl(self.width).unwrap_or(0)) << BLOCK_SHIFT
    }

    fn named_by(self, tag: u32) -> Option<Pbn> {
        let is_host = tag & ((1 << BLOCK_SHIFT) - 1) == 0;
        let number = (tag >> BLOCK_SHIFT) & ((1 << self.width.min(BLOCK_BITS)) - 1);
        let is_named = is_host && (1..=self.blocks).contains(&number);
        is_named.then(|| Pbn(self.first + number - 1))
    }
}

/// The youngest page of a logical block that is not of an unfinished merge, and the data block that it tells.
#[derive(Clone, Copy)]
pub struct Head {
    /// Its sequence number.
    pub sequence: u64,
    /// Tag of the host pages that came beside that data block, if it is one of them.
    pub tag: Option<u32>,
    /// That data block, or `NONE`.
    pub data: Pbn,
}

impl Head {
    /// What a page of `block` tells.
    pub fn of(tags: DataTag, block: Pbn, read: &OobRead) -> Self {
        let named = tags.named_by(read.oob.tag);
        let own = if read.oob.role == Role::Data {
            block
        } else {
            Pbn::NONE
        };
        Self {
            sequence: read.sequence,
            tag: named.map(|_| read.oob.tag),
            data: named.unwrap_or(own),
        }
    }
}
