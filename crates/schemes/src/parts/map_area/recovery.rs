//! The map area after a power cut: whether the map in it can be relied on, and how it is made anew.
//!
//! *Reading.* The newest readable copy of each map page counts, and the map is relied on only if the versions of
//! these copies add up to the sum that the youngest of them notes: then they are the map as it was after the last
//! write to it. A reclaim changes nothing in that: it erases only blocks without a newest copy. If a programmed page of
//! the area cannot be read, there may have been a younger copy: a torn one would do no harm, but a rotten one
//! looks the same, and the map before it calls blocks free that have been taken since. So that takes the full scan.
//!
//! *Making it anew.* A recovery changes data and log blocks before there is a map to note it in, so it first makes
//! the old map void: with a page that says so, in a block with nothing else in it. As long as this void page stands,
//! what is older than it counts for nothing; it goes only when the new map is complete. If there is no erased block
//! for it, one is erased, but never the one with the youngest copy: that copy shows that something is missing
//! while this erase is on its way.
//!
//! *Doomed blocks.* To the map a rebuild has happened when an entry names the new block; to the full scan, when the last
//! page has been copied. In between the map calls a block free that the full scan, should the erase of the block be cut,
//! would take for a whole one. So the void page lists the blocks that the map calls free and that are not blank.

use super::{MapArea, MapShape};
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, OobRead, Role, SpareRead};
use floatgate_core::geometry::Space;

/// Tag of the page that makes everything older void.
const VOID: u32 = 1;

/// A readable page of the area.
#[derive(Clone, Copy, Debug)]
struct Copy {
    at: Ppn,
    read: OobRead,
    version: u64,
    writes: u64,
}

impl Copy {
    fn is_void(&self) -> bool {
        self.read.oob.tag & VOID != 0
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes
        .get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// The 32-bit numbers in a page.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let cells = bytes.chunks_exact(4);
    cells.map(|cell| u32::from_le_bytes([cell[0], cell[1], cell[2], cell[3]]))
}

/// What the OOBs of a die's area say, each block read up to its first erased page.
#[derive(Debug)]
pub struct FoundArea {
    space: Space,
    die: u32,
    shape: MapShape,
    copies: Vec<Copy>,
    /// Whether every programmed page can be read.
    is_readable: bool,
}

impl FoundArea {
    /// Reads the OOBs of the area. The sizes have been [checked](MapShape::check).
    ///
    /// # Errors
    /// Those of the flash.
    pub fn read<F: Flash>(
        space: &Space,
        die: u32,
        shape: MapShape,
        flash: &mut F,
    ) -> Result<Self, F::Error> {
        let geometry = &space.geometry;
        let (mut copies, mut is_readable) = (Vec::new(), true);
        for block in shape.all_blocks(space, die) {
            let end = geometry
                .pages_per_block
                .min(flash.ledger().write_pointer(block) + 1);
            for position in 0..end {
                let at = geometry.ppn(block, position);
                let (found, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
                is_readable &= found.is_some() || !flash.ledger().is_programmed(at);
                if let Some(SpareRead { read, bytes }) =
                    found.filter(|found| found.read.oob.role == Role::Map)
                {
                    let (version, writes) = (number(&bytes, 0), number(&bytes, 8));
                    copies.push(Copy {
                        at,
                        read,
                        version,
                        writes,
                    });
                }
            }
        }
        Ok(Self {
            space: space.clone(),
            die,
            shape,
            copies,
            is_readable,
        })
    }

    /// The die of the area.
    pub fn die(&self) -> u32 {
        self.die
    }

    /// The void page, if there is one; the youngest, if there are several.
    fn void_page(&self) -> Option<&Copy> {
        let voids = self.copies.iter().filter(|copy| copy.is_void());
        voids.max_by_key(|copy| copy.read.sequence)
    }

    /// The newest copies of all map pages, if they are the whole map and nothing makes them void.
    fn newest_copies(&self) -> Option<Vec<Copy>> {
        if !self.is_readable {
            return None;
        }
        let age = |copy: &&Copy| copy.read.sequence;
        let since = self.void_page().map(|copy| age(&copy));
        let mut newest: Vec<Option<&Copy>> = vec![None; self.shape.pages() as usize];
        for copy in self.copies.iter().filter(|copy| Some(age(copy)) > since) {
            let known = newest.get_mut(copy.read.oob.lpn.index())?;
            if known.is_none_or(|known| age(&known) < age(&copy)) {
                *known = Some(copy);
            }
        }
        let newest: Option<Vec<Copy>> = newest.into_iter().map(|copy| copy.copied()).collect();
        let newest = newest?;
        let youngest = newest.iter().max_by_key(age)?;
        let mut versions = newest.iter().map(|copy| copy.version);
        let sum = versions.try_fold(0_u64, u64::checked_add);
        (sum == Some(youngest.writes)).then_some(newest)
    }

    /// Reads the map pages: the entries of the map, or `None` if they cannot be relied on, or if the pages are too
    /// small to hold them.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn entries<F: Flash>(&self, flash: &mut F) -> Result<Option<Vec<u32>>, F::Error> {
        let shape = self.shape;
        let entries_held = shape.entries_per_page.min(shape.entries);
        if u64::from(entries_held) * 4 > u64::from(flash.ledger().page_bytes()) {
            return Ok(None);
        }
        let Some(newest) = self.newest_copies() else {
            return Ok(None);
        };
        let mut entries = Vec::with_capacity(shape.entries as usize);
        for copy in newest {
            let left = shape.entries as usize - entries.len();
            let here = left.min(shape.entries_per_page as usize);
            let wanted = entries.len() + here;
            let take = |bytes: &[u8]| entries.extend(numbers(bytes).take(here));
            flash.read_map(copy.at, take, F::Token::default())?;
            // The OOB of a page can outlive its content.
            if entries.len() < wanted {
                return Ok(None);
            }
        }
        Ok(Some(entries))
    }

    /// Reads the void page, if there is one: the blocks that it lists, and its sequence number. What is older in these
    /// blocks counts no more.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn doomed<F: Flash>(&self, flash: &mut F) -> Result<(u64, Vec<Pbn>), F::Error> {
        let mut blocks = Vec::new();
        let Some(void) = self.void_page() else {
            return Ok((0, blocks));
        };
        let take = |bytes: &[u8]| {
            let listed = numbers(bytes).filter_map(|number| number.checked_sub(1));
            blocks.extend(listed.map(Pbn));
        };
        flash.read_map(void.at, take, F::Token::default())?;
        Ok((void.read.sequence, blocks))
    }

    /// Blocks that a void page can list.
    pub fn most_doomed<F: Flash>(flash: &F) -> usize {
        flash.ledger().page_bytes() as usize / 4
    }

    /// Makes the map void, and notes the `doomed` blocks of the die, which are going to be erased. Returns the block
    /// with the page that says so, for [`MapArea::restart`].
    ///
    /// # Errors
    /// Those of the flash.
    pub fn make_void<F: Flash>(&self, doomed: &[Pbn], flash: &mut F) -> Result<Pbn, F::Error> {
        let mut blocks = self.shape.all_blocks(&self.space, self.die);
        let block = match blocks.find(|&block| flash.ledger().write_pointer(block) == 0) {
            Some(blank) => blank,
            None => {
                let oldest = self.oldest_block();
                flash.erase(oldest, Cause::Map, F::Token::default())?;
                oldest
            }
        };
        let oob = Oob {
            lpn: Lpn(0),
            role: Role::Map,
            tag: VOID,
        };
        let at = self.space.geometry.first_page(block);
        let list = |bytes: &mut [u8]| {
            for (cell, block) in bytes.chunks_exact_mut(4).zip(doomed) {
                cell.copy_from_slice(&(block.0 + 1).to_le_bytes());
            }
        };
        flash.program_map(at, oob, list, F::Token::default())?;
        Ok(block)
    }

    /// The block whose youngest page is the oldest; one without a readable page before all others. As the area has
    /// two blocks at least, it is not the one with the youngest page, if there is any.
    fn oldest_block(&self) -> Pbn {
        let first = self.shape.first_block(&self.space, self.die);
        let mut youngest = vec![0; self.shape.blocks as usize];
        for copy in &self.copies {
            let block = (self.space.geometry.block_of(copy.at).0 - first.0) as usize;
            youngest[block] = copy.read.sequence.max(youngest[block]);
        }
        let oldest = (0..self.shape.blocks).min_by_key(|&i| youngest[i as usize]);
        Pbn(first.0 + oldest.unwrap_or(0))
    }
}

impl MapArea {
    /// Erases the area, but for the void page, writes the whole map, and erases the void page's block.
    /// The sizes have been [checked](MapShape::check).
    ///
    /// # Errors
    /// Those of the flash.
    pub fn restart<F: Flash>(
        space: &Space,
        die: u32,
        shape: MapShape,
        void: Pbn,
        value: impl Fn(u32) -> u32,
        flash: &mut F,
    ) -> Result<Self, F::Error> {
        let mut area = Self::empty(space, die, shape);
        let blocks = shape.all_blocks(space, die);
        area.erased = blocks.filter(|&block| block != void).collect();
        for &block in &area.erased {
            if flash.ledger().write_pointer(block) > 0 {
                flash.erase(block, Cause::Map, F::Token::default())?;
            }
        }
        area.current = area.erased.pop_front().expect("at least two map blocks");
        // The map fits the other blocks, so this one is not taken before it has been erased.
        area.erased.push_back(void);
        for page in 0..shape.pages() {
            area.write_page(flash, page, &value)?;
        }
        flash.erase(void, Cause::Map, F::Token::default())?;
        Ok(area)
    }
}
