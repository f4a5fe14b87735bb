//! What a scan says of the scheme's own bytes in the OOBs, and how a scheme puts pages aside by rules of its own.

use super::{Depth, Scan};
use floatgate_core::address::{DieLpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, OobRead};
use floatgate_core::geometry::Space;

/// The OOB bytes of one page.
#[derive(Clone, Debug)]
struct Bytes {
    at: Ppn,
    sequence: u64,
    bytes: Vec<u8>,
}

/// For each group of logical pages the scheme's OOB bytes of the readable page of it that was programmed last.
#[derive(Debug)]
pub struct SpareBytes {
    groups: Vec<Bytes>,
}

impl SpareBytes {
    /// Nothing read yet of so many groups.
    pub fn new(groups: usize) -> Self {
        let unread = Bytes {
            at: Ppn::NONE,
            sequence: 0,
            bytes: Vec::new(),
        };
        Self {
            groups: vec![unread; groups],
        }
    }

    fn note(&mut self, group: usize, at: Ppn, sequence: u64, bytes: &[u8]) {
        let known = &mut self.groups[group];
        if known.at.is_none() || sequence > known.sequence {
            (known.at, known.sequence) = (at, sequence);
            known.bytes.clear();
            known.bytes.extend_from_slice(bytes);
        }
    }

    /// The bytes of page `at`, if it is the one of its group that was programmed last.
    pub fn of(&self, group: usize, at: Ppn) -> Option<&[u8]> {
        let known = &self.groups[group];
        (known.at == at && at.is_some()).then_some(&known.bytes)
    }
}

impl Scan {
    /// Reads the OOBs of all blocks of a space, and keeps the scheme's bytes by group of logical pages.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn read_with_bytes<F: Flash>(
        space: &Space,
        depth: Depth,
        flash: &mut F,
        bytes: &mut SpareBytes,
        group_of: impl Fn(DieLpn) -> usize,
    ) -> Result<Self, F::Error> {
        let mut scan = Self::unread(space, 0, flash);
        for i in 0..space.blocks() {
            let block = Pbn(scan.first.0 + i);
            let end = match depth {
                Depth::Whole => space.geometry.pages_per_block,
                Depth::UpToErased => space
                    .geometry
                    .pages_per_block
                    .min(flash.ledger().write_pointer(block) + 1),
            };
            for position in 0..end {
                let at = space.geometry.ppn(block, position);
                let (found, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
                scan.note(i as usize, position, found.map(|found| found.read));
                if let (Some(found), Some((lpn, read))) = (found, scan.page_at(at)) {
                    bytes.note(group_of(lpn), at, read.sequence, &found.bytes);
                }
            }
        }
        Ok(scan)
    }

    /// Puts aside every readable page that `counts` denies: it is nobody's newest copy. Its block keeps what was
    /// found in it.
    pub fn retain(&mut self, mut counts: impl FnMut(Ppn, DieLpn, &OobRead) -> bool) {
        let first = self.space.geometry.first_page(self.first).0;
        let space = &self.space;
        for (at, oob) in (first..).zip(&mut self.oobs) {
            *oob = oob.filter(|read| {
                let lpn = space.local_lpn(read.oob.lpn);
                lpn.is_some_and(|lpn| counts(Ppn(at), lpn, read))
            });
        }
    }

    /// Whether a block is one of the space.
    pub fn contains(&self, block: Pbn) -> bool {
        (self.first.0..self.first.0 + self.space.blocks()).contains(&block.0)
    }

    /// All readable pages that count: block, local page, OOB.
    pub fn pages(&self) -> impl Iterator<Item = (Pbn, DieLpn, OobRead)> + '_ {
        self.blocks().flat_map(|(block, _)| {
            let pages = self.pages_of(block);
            pages.map(move |(_, lpn, read)| (block, lpn, read))
        })
    }
}
