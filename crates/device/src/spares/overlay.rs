//! What a scheme still rearranges on a read-only device.
//!
//! Some schemes program flash even when the host only reads: they write back map pages, or merge a little
//! with every request. Once the spares have run out, nothing on the chip changes any more, on any die,
//! so everything acknowledged stays there. What the scheme still does is kept in memory: its tables stay
//! consistent, the host can read everything, and the end of the process loses nothing that was promised. The same
//! when a system call below has failed, after which nothing more may be written.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};

use floatgate_core::{Geometry, Pbn, Ppn};

use crate::nand::{NandError, Spare};

/// Why nothing reaches the chip any more.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// The spares of a die ran out.
    Spares { die: u32 },
    /// A system call failed.
    Failed {
        doing: &'static str,
        kind: ErrorKind,
        text: String,
    },
}

impl Why {
    /// Whether an error of the chip is such a reason.
    pub fn of(error: &NandError) -> Option<Self> {
        match error {
            NandError::ReadOnly { die } => Some(Self::Spares { die: *die }),
            NandError::Io { doing, source } => Some(Self::Failed {
                doing,
                kind: source.kind(),
                text: source.to_string(),
            }),
            _ => None,
        }
    }

    /// The error once more.
    pub fn error(&self) -> NandError {
        match self {
            Self::Spares { die } => NandError::ReadOnly { die: *die },
            Self::Failed { doing, kind, text } => NandError::Io {
                doing,
                source: Error::new(*kind, text.clone()),
            },
        }
    }
}

/// Programs and erases that never reach the chip.
#[derive(Debug)]
pub(super) struct Overlay {
    /// Since when there is one.
    pub why: Why,
    pages: BTreeMap<u32, (Spare, Vec<u8>)>,
    /// By block: erased here, whatever the chip holds.
    erased: Vec<bool>,
}

impl Overlay {
    pub fn new(geometry: &Geometry, why: Why) -> Self {
        Self {
            why,
            pages: BTreeMap::new(),
            erased: vec![false; geometry.blocks() as usize],
        }
    }

    /// Whether the chip's content of a block no longer counts.
    pub fn hides(&self, block: Pbn) -> bool {
        self.erased[block.index()]
    }

    pub fn holds(&self, page: Ppn) -> bool {
        self.pages.contains_key(&page.0)
    }

    /// A page: its spare area and bytes if it is kept here, an error if it was erased here, else `None`.
    #[allow(clippy::type_complexity)] // here, erased, or on the chip
    pub fn page(&self, block: Pbn, page: Ppn) -> Result<Option<&(Spare, Vec<u8>)>, NandError> {
        match self.pages.get(&page.0) {
            None if self.hides(block) => Err(NandError::Erased { page }),
            found => Ok(found),
        }
    }

    pub fn program(&mut self, page: Ppn, spare: &Spare, data: &[u8]) {
        self.pages.insert(page.0, (*spare, data.to_vec()));
    }

    pub fn erase(&mut self, geometry: &Geometry, block: Pbn) {
        let first = geometry.first_page(block).0;
        let of_block = first..first + geometry.pages_per_block;
        self.pages.retain(|page, _| !of_block.contains(page));
        self.erased[block.index()] = true;
    }
}
