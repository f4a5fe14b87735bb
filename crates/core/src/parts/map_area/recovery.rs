//! The map area after a power cut: whether the map in it can be relied on, and how it is made anew.
//!
//! *Reading.* The newest readable copy of each map page counts, and the map is relied on only if the versions of
//! these copies add up to the sum that the youngest of them notes: then they are the map as it was after the last
//! write to it. A reclaim changes nothing in that: it erases only blocks without a newest copy.
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
use crate::address::{Lpn, Pbn, Ppn};
use crate::flash::{Cause, Flash, Oob, OobRead, Role};
use crate::geometry::Space;

/// Tag of the page that makes everything older void.
const VOID: u32 = 1;

/// A readable page of the area.
#[derive(Clone, Copy)]
struct Copy {
    at: Ppn,
    read: OobRead,
    version: u64,
    writes: u64,
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

/// The OOBs of the area's blocks, each up to its first erased page.
fn read_oobs<F: Flash>(
    space: &Space,
    die: u32,
    shape: MapShape,
    flash: &mut F,
) -> Result<Vec<Copy>, F::Error> {
    let geometry = &space.geometry;
    let first = shape.first_block(space, die).0;
    let mut copies = Vec::new();
    for block in (first..first + shape.blocks).map(Pbn) {
        let end = geometry.pages_per_block.min(flash.written(block) + 1);
        for position in 0..end {
            let at = geometry.ppn(block, position);
            let (read, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
            if let Some(read) = read.filter(|read| read.oob.role == Role::Map) {
                let bytes = flash.last_oob_bytes();
                let (version, writes) = (number(bytes, 0), number(bytes, 8));
                copies.push(Copy {
                    at,
                    read,
                    version,
                    writes,
                });
            }
        }
    }
    Ok(copies)
}

/// The newest copies of all map pages, if they are the whole map and nothing makes them void.
fn newest_copies(copies: &[Copy], pages: u32) -> Option<Vec<Copy>> {
    let age = |copy: &&Copy| copy.read.sequence;
    let is_void = |copy: &&Copy| copy.read.oob.tag & VOID != 0;
    let since = copies.iter().filter(is_void).map(|copy| age(&copy)).max();
    let mut newest: Vec<Option<&Copy>> = vec![None; pages as usize];
    for copy in copies.iter().filter(|copy| Some(age(copy)) > since) {
        let known = newest.get_mut(copy.read.oob.lpn.index())?;
        if known.is_none_or(|known| age(&known) < age(&copy)) {
            *known = Some(copy);
        }
    }
    let newest: Vec<Copy> = newest
        .into_iter()
        .map(|copy| copy.copied())
        .collect::<Option<_>>()?;
    let youngest = newest.iter().max_by_key(age)?;
    let versions = newest
        .iter()
        .try_fold(0_u64, |sum, copy| sum.checked_add(copy.version));
    (versions == Some(youngest.writes)).then_some(newest)
}

impl MapArea {
    /// The entries of a die's map as the area holds them; `None` if they cannot be relied on, or if the pages are too
    /// small to hold them. Reads the OOBs of the area, each block up to its first erased page, and the map pages.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn read_back<F: Flash>(
        space: &Space,
        die: u32,
        shape: MapShape,
        flash: &mut F,
    ) -> Result<Option<Vec<u32>>, F::Error> {
        let entries_held = shape.entries_per_page.min(shape.entries);
        if !F::BEARS_DATA || u64::from(entries_held) * 4 > u64::from(flash.page_bytes()) {
            return Ok(None);
        }
        let copies = read_oobs(space, die, shape, flash)?;
        let Some(newest) = newest_copies(&copies, shape.pages()) else {
            return Ok(None);
        };
        let mut entries = Vec::with_capacity(shape.entries as usize);
        for (page, copy) in newest.iter().enumerate() {
            let left = shape.entries as usize - page * shape.entries_per_page as usize;
            let here = left.min(shape.entries_per_page as usize);
            let take = |bytes: &[u8]| {
                entries.extend(numbers(bytes).take(here));
            };
            flash.read_map(copy.at, take, F::Token::default())?;
        }
        Ok(Some(entries))
    }

    /// Blocks that a void page can list.
    pub fn most_doomed<F: Flash>(flash: &F) -> usize {
        flash.page_bytes() as usize / 4
    }

    /// Makes the map in the area void, and notes the `doomed` blocks of the die, which are going to be erased. Returns
    /// the block with the page that says so, for [`MapArea::restart`].
    ///
    /// # Errors
    /// Those of the flash.
    pub fn make_void<F: Flash>(
        space: &Space,
        die: u32,
        shape: MapShape,
        doomed: &[Pbn],
        flash: &mut F,
    ) -> Result<Pbn, F::Error> {
        let first = shape.first_block(space, die).0;
        let mut blocks = (first..first + shape.blocks).map(Pbn);
        let block = match blocks.find(|&block| flash.written(block) == 0) {
            Some(blank) => blank,
            None => {
                let oldest = Self::oldest_block(space, die, shape, flash)?;
                flash.erase(oldest, Cause::Map, F::Token::default())?;
                oldest
            }
        };
        let oob = Oob {
            lpn: Lpn(0),
            role: Role::Map,
            tag: VOID,
        };
        let at = space.geometry.first_page(block);
        let list = |bytes: &mut [u8]| {
            for (cell, block) in bytes.chunks_exact_mut(4).zip(doomed) {
                cell.copy_from_slice(&(block.0 + 1).to_le_bytes());
            }
        };
        flash.program_map(at, oob, list, F::Token::default())?;
        Ok(block)
    }

    /// The blocks that the void page lists, if there is one, and its sequence number: what is older in these blocks
    /// counts no more. Reads the OOB of the first page of each block of the area, and the void page.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn doomed<F: Flash>(
        space: &Space,
        die: u32,
        shape: MapShape,
        flash: &mut F,
    ) -> Result<(u64, Vec<Pbn>), F::Error> {
        let first = shape.first_block(space, die).0;
        let mut void: Option<(u64, Ppn)> = None;
        for block in (first..first + shape.blocks).map(Pbn) {
            let at = space.geometry.first_page(block);
            let (read, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
            let is_void = |read: &OobRead| read.oob.role == Role::Map && read.oob.tag & VOID != 0;
            void = void.max(read.filter(is_void).map(|read| (read.sequence, at)));
        }
        let mut blocks = Vec::new();
        let Some((sequence, at)) = void else {
            return Ok((0, blocks));
        };
        let take = |bytes: &[u8]| {
            blocks = numbers(bytes)
                .filter_map(|n| n.checked_sub(1))
                .map(Pbn)
                .collect()
        };
        flash.read_map(at, take, F::Token::default())?;
        Ok((sequence, blocks))
    }

    /// The block whose youngest page is the oldest; one without a readable page before all others. As the area has
    /// two blocks at least, it is not the one with the youngest page, if there is any.
    fn oldest_block<F: Flash>(
        space: &Space,
        die: u32,
        shape: MapShape,
        flash: &mut F,
    ) -> Result<Pbn, F::Error> {
        let first = shape.first_block(space, die).0;
        let mut youngest = vec![0; shape.blocks as usize];
        for copy in read_oobs(space, die, shape, flash)? {
            let block = (space.geometry.block_of(copy.at).0 - first) as usize;
            youngest[block] = copy.read.sequence.max(youngest[block]);
        }
        let oldest = (0..shape.blocks).min_by_key(|&i| youngest[i as usize]);
        Ok(Pbn(first + oldest.unwrap_or(0)))
    }

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
        let blocks = (area.base.0..area.base.0 + shape.blocks).map(Pbn);
        area.erased = blocks.filter(|&block| block != void).collect();
        for &block in &area.erased {
            if flash.written(block) > 0 {
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
