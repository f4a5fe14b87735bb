//! What the scan of a BLog device comes to, while its tables are made.

use crate::parts::scan::{Scan, SpareBytes};
use floatgate_core::address::{Lbn, Pbn};

/// What a block is found to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Erased.
    #[default]
    Blank,
    /// Data block of a logical block.
    Data,
    /// Anything else in use.
    Log,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// What it is.
    pub kind: Kind,
    /// Live pages.
    pub live: u32,
    /// Logical blocks that it serves as a log block.
    pub serves: u32,
}

/// What the scan comes to, while the tables are made.
pub struct Found {
    /// The OOBs that count.
    pub scan: Scan,
    /// The sub-tables of the youngest pages.
    pub bytes: SpareBytes,
    /// Sequence number of the newest copy of each page.
    pub sequence: Vec<u64>,
    /// By block of the die.
    pub blocks: Vec<Block>,
    /// By logical block: its log blocks in order, each with the sequence number of its first page there.
    pub held: Vec<Vec<(u64, Pbn)>>,
    /// For each of these its slot in the DLT row.
    pub slots: Vec<Vec<u32>>,
    /// First block of the die.
    pub first: u32,
}

impl Found {
    /// What a block is.
    pub fn block(&mut self, block: Pbn) -> &mut Block {
        &mut self.blocks[(block.0 - self.first) as usize]
    }

    /// The blocks of one kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = Pbn> + '_ {
        let numbered = self.blocks.iter().enumerate();
        let of_kind = numbered.filter(move |(_, block)| block.kind == kind);
        of_kind.map(|(i, _)| Pbn(self.first + i as u32))
    }

    /// The logical block `lbn` has no log blocks any more.
    pub fn leave(&mut self, lbn: Lbn) {
        for (_, log) in std::mem::take(&mut self.held[lbn.index()]) {
            self.block(log).serves -= 1;
        }
    }
}
