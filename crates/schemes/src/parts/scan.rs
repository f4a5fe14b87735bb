//! The full scan of the OOBs, and what it says after a power cut.
//!
//! One rule finds every page: of all readable copies of a logical page the one programmed last wins. Three
//! more keep blocks that were on their way out from looking like blocks in use. All three rest on the tag
//! that a moved page carries ([`move_tag`]):
//!
//! 1. **Unfinished moves.** A block that holds nothing but copies with [`MORE`] is the target of a move that
//!    was cut, if nothing was programmed after it on its die. All its sources still stand, so the block is void (unless it holds a
//!    page that nobody else has, which a cut cannot cause but a rotten page can).
//! 2. **Emptied blocks.** The last page of a move names the block that the move empties. If nothing in that
//!    block is younger, the block is void: its erase was about to come, or had begun. This matters because
//!    trims are not recorded: a trimmed page in such a block would look alive and keep the block in use.
//! 3. **Rebuilds** (schemes with data blocks). The last page of a rebuild of a logical block makes every
//!    older page of that logical block void that is not in the rebuild: it had been trimmed or copied.
//!
//! An erase that was cut leaves anything behind: old pages, unreadable ones, blank ones. A page that looks
//! blank there must not be programmed, and nothing tells such a block from an honest one that is half
//! full. So whoever recovers programs only blocks that were wholly blank, that he has erased himself, or that
//! cannot have been on their way out.

mod spare_bytes;

pub use spare_bytes::SpareBytes;

use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, OobRead, Role, SEQUENCE_MAX, SpareRead};
use floatgate_core::geometry::Space;
use floatgate_core::pcm::Recalled;

/// Tag of a moved page: the move goes on.
pub const MORE: u32 = 1;
/// Tag of a moved page: the move ends here.
const LAST: u32 = 2;
/// Block numbers above this one do not fit the tag and are not named.
const NAMED_MAX: u32 = (1 << 30) - 2;

/// The tag of a moved page: whether it is the last of its move, and which block has then nothing left that
/// counts (`NONE` if no block follows from the move alone).
#[inline]
pub fn move_tag(is_last: bool, emptied: Pbn) -> u32 {
    if !is_last {
        return MORE;
    }
    let named = if emptied.0 > NAMED_MAX {
        0
    } else {
        emptied.0 + 1
    };
    LAST | named << 2
}

/// The block that a tag says is emptied.
pub(super) fn emptied_by(tag: u32) -> Option<Pbn> {
    (tag & LAST != 0 && tag >> 2 != 0).then(|| Pbn((tag >> 2) - 1))
}

/// What the scan found in one block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Whether any page is programmed, readable or not.
    pub is_used: bool,
    /// Readable pages.
    pub readable: u32,
    /// Sequence number of the oldest readable page.
    pub first: u64,
    /// Sequence number of the youngest readable page.
    pub last: u64,
    /// Role of the oldest readable page.
    pub role: Role,
    /// Pages that are the newest copy of a logical page; known after [`Scan::newest`].
    pub valid: u32,
    /// Whether its content counts no more.
    pub is_void: bool,
    /// Whether it holds mapping pages.
    pub holds_map: bool,
    /// Whether it holds a page that can be read and tells what all others of the block hold.
    pub has_summary: bool,
}

/// How much of a block is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Every position: pages may be missing in between.
    Whole,
    /// Up to the first erased page above all programmed ones: blocks filled in order.
    UpToErased,
}

/// Which rules tell the copies that count (see the module's text).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// The newest copy wins, nothing else: tags are the scheme's own.
    Plain,
    /// Moves are tagged with [`move_tag`]: rules 1 and 2.
    Moves,
    /// Rebuilds of whole logical blocks are among the moves: all rules.
    Rebuilds,
}

/// The OOBs of a space, read once. Pages are numbered die by die ([`DieLpn`]); a scheme for all dies, whose
/// [`Run`](floatgate_core::ftl::Run)s have the numbers of the device, translates by [`Space::device_lpn`] and [`Space::local_lpn`].
#[derive(Debug)]
pub struct Scan {
    space: Space,
    first: Pbn,
    left_out: u32,
    oobs: Vec<Option<OobRead>>,
    /// Pages that have been read.
    is_read: Vec<bool>,
    blocks: Vec<Found>,
}

impl Scan {
    /// Reads the OOBs of all blocks of the space except the last `left_out` of each die.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn read<F: Flash>(
        space: &Space,
        left_out: u32,
        depth: Depth,
        flash: &mut F,
    ) -> Result<Self, F::Error> {
        let mut scan = Self::unread(space, left_out, flash);
        scan.read_rest(depth, flash)?;
        Ok(scan)
    }

    /// Reads what of it has not been read.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn read_rest<F: Flash>(&mut self, depth: Depth, flash: &mut F) -> Result<(), F::Error> {
        for i in 0..self.space.blocks() {
            if !self.is_left_out(i) {
                self.read_block(Pbn(self.first.0 + i), depth, flash)?;
            }
        }
        Ok(())
    }

    /// The same without a read: all that is known is which blocks are blank.
    pub fn unread<F: Flash>(space: &Space, left_out: u32, flash: &F) -> Self {
        let geometry = &space.geometry;
        let pages = geometry.pages_per_block;
        let mut scan = Self {
            first: geometry.pbn(space.first_die, 0),
            left_out,
            oobs: vec![None; (space.blocks() * pages) as usize],
            is_read: vec![false; (space.blocks() * pages) as usize],
            blocks: vec![Found::default(); space.blocks() as usize],
            space: space.clone(),
        };
        for i in 0..space.blocks() {
            scan.blocks[i as usize].is_used =
                !scan.is_left_out(i) && flash.ledger().write_pointer(Pbn(scan.first.0 + i)) > 0;
        }
        scan
    }

    /// Reads the OOB of a page, whatever it is for.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn read_page<F: Flash>(
        &mut self,
        at: Ppn,
        flash: &mut F,
    ) -> Result<Option<SpareRead>, F::Error> {
        let (found, _) = flash.read_oob(at, Cause::Map, F::Token::default())?;
        let oob = found.map(|found| found.read);
        let (block, position) = self.space.geometry.split(at);
        let block = (block.0 - self.first.0) as usize;
        let pages = self.space.geometry.pages_per_block as usize;
        self.is_read[block * pages + position as usize] = true;
        self.note(block, position, oob);
        Ok(found)
    }

    /// Reads the OOBs of a block that have not been read.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn read_block<F: Flash>(
        &mut self,
        block: Pbn,
        depth: Depth,
        flash: &mut F,
    ) -> Result<(), F::Error> {
        let pages = self.space.geometry.pages_per_block;
        let end = match depth {
            Depth::Whole => pages,
            Depth::UpToErased => pages.min(flash.ledger().write_pointer(block) + 1),
        };
        for position in 0..end {
            let index = (block.0 - self.first.0) * pages + position;
            if !self.is_read[index as usize] {
                let at = self.space.geometry.ppn(block, position);
                self.read_page(at, flash)?;
            }
        }
        Ok(())
    }

    /// Notes a page that is known from elsewhere.
    pub fn set_page(&mut self, at: Ppn, read: OobRead) {
        let (block, position) = self.space.geometry.split(at);
        self.note((block.0 - self.first.0) as usize, position, Some(read));
    }

    /// Takes an OOB for read that a memory beside the flash keeps. Of two for one page the first counts.
    pub fn take_recalled(&mut self, recalled: &Recalled) {
        let (block, position) = self.space.geometry.split(recalled.place);
        let block = block.0.wrapping_sub(self.first.0);
        let pages = self.space.geometry.pages_per_block;
        let is_here = block < self.space.blocks() && !self.is_left_out(block);
        let index = (block as usize * pages as usize).saturating_add(position as usize);
        if is_here && !self.is_read[index] {
            self.is_read[index] = true;
            self.note(block as usize, position, Some(recalled.read));
        }
    }

    fn is_left_out(&self, block: u32) -> bool {
        let blocks_per_die = self.space.geometry.blocks_per_die;
        block % blocks_per_die >= blocks_per_die - self.left_out
    }

    fn note(&mut self, block: usize, position: u32, oob: Option<OobRead>) {
        // A page of no logical page of this space is nobody's, like one that cannot be read; and no device gets as far
        // as the highest sequence numbers.
        let Some(read) = oob.filter(|read| read.sequence <= SEQUENCE_MAX) else {
            return;
        };
        if read.oob.role == Role::Map {
            let found = &mut self.blocks[block];
            if !found.holds_map || read.sequence < found.first {
                found.first = read.sequence;
            }
            found.last = found.last.max(read.sequence);
            found.holds_map = true;
            return;
        }
        if read.oob.role == Role::Summary {
            self.blocks[block].has_summary = true;
            return;
        }
        if self.space.local_lpn(read.oob.lpn).is_none() {
            return;
        }
        let pages = self.space.geometry.pages_per_block as usize;
        self.oobs[block * pages + position as usize] = oob;
        let found = &mut self.blocks[block];
        if found.readable == 0 || read.sequence < found.first {
            found.first = read.sequence;
            found.role = read.oob.role;
        }
        found.last = found.last.max(read.sequence);
        found.readable += 1;
    }

    /// Rule 2, by the pages read so far: a block of which only the first page is read was emptied if it has not been
    /// erased since.
    pub fn void_emptied(&mut self) {
        for read in self.oobs.iter().flatten() {
            let named =
                emptied_by(read.oob.tag).and_then(|block| block.0.checked_sub(self.first.0));
            let block = named.and_then(|i| self.blocks.get_mut(i as usize));
            if let Some(block) = block.filter(|block| block.last < read.sequence) {
                block.is_void = true;
            }
        }
    }

    /// The blocks of the space with what was found in them, in the order of their numbers.
    pub fn blocks(&self) -> impl Iterator<Item = (Pbn, &Found)> + '_ {
        let numbered = self.blocks.iter().enumerate();
        numbered.map(|(i, found)| (Pbn(self.first.0 + i as u32), found))
    }

    /// What was found in one block.
    pub fn found(&self, block: Pbn) -> &Found {
        &self.blocks[(block.0 - self.first.0) as usize]
    }

    /// Declares the content of a block void.
    pub fn set_void(&mut self, block: Pbn) {
        self.blocks[(block.0 - self.first.0) as usize].is_void = true;
    }

    /// Declares every readable page of a block valid.
    pub fn set_valid(&mut self, block: Pbn) {
        let found = &mut self.blocks[(block.0 - self.first.0) as usize];
        found.valid = found.readable;
    }

    /// The readable pages of a block: position, local page, OOB.
    pub fn pages_of(&self, block: Pbn) -> impl Iterator<Item = (u32, DieLpn, OobRead)> + '_ {
        let pages = self.space.geometry.pages_per_block as usize;
        let first = (block.0 - self.first.0) as usize * pages;
        let oobs = self.oobs[first..first + pages].iter().enumerate();
        oobs.filter_map(|(position, oob)| {
            let oob = (*oob)?;
            let local = self.space.local_lpn(oob.oob.lpn)?;
            Some((position as u32, local, oob))
        })
    }

    /// The readable page at an address of the space, with its local page.
    pub fn page_at(&self, at: Ppn) -> Option<(DieLpn, OobRead)> {
        let first = self.space.geometry.first_page(self.first);
        let oob = (*self.oobs.get(at.0.checked_sub(first.0)? as usize)?)?;
        Some((self.space.local_lpn(oob.oob.lpn)?, oob))
    }

    /// The logical block to which all readable pages of a block are aligned, if there is one.
    pub fn aligned_to(&self, block: Pbn) -> Option<Lbn> {
        let by_pages = self.space.geometry.by_pages();
        let mut pages = self.pages_of(block).map(|(position, lpn, _)| {
            let (lbn, offset) = by_pages.div_rem(lpn.0);
            (offset == position).then_some(Lbn(lbn))
        });
        let first = pages.next()??;
        pages.all(|lbn| lbn == Some(first)).then_some(first)
    }

    /// The newest copy of every page; counts the valid pages of each block.
    pub fn newest(&mut self, rules: Rules) -> Newest {
        if rules != Rules::Plain {
            self.void_emptied();
        }
        let fences = match rules {
            Rules::Rebuilds => self.fences(),
            Rules::Plain | Rules::Moves => Vec::new(),
        };
        let mut newest = Newest {
            place: vec![Ppn::NONE; self.space.logical_pages() as usize],
            sequence: vec![0; self.space.logical_pages() as usize],
        };
        let youngest = self.youngest();
        let unfinished = |scan: &Self, block| {
            rules != Rules::Plain
                && scan.found(block).readable > 0
                && youngest[scan.space.geometry.die_of(block) as usize] == scan.found(block).last
                && scan.pages_of(block).all(|(.., read)| read.oob.tag == MORE)
        };
        let blocks: Vec<Pbn> = self.blocks().map(|(block, _)| block).collect();
        let (mut doubtful, sound): (Vec<Pbn>, Vec<Pbn>) = blocks
            .into_iter()
            .filter(|&block| !self.found(block).is_void)
            .partition(|&block| unfinished(self, block));
        for block in sound {
            self.take_newest(block, &fences, &mut newest);
        }
        // The oldest first: a block that lost the end of its move to a cut erase is doubtful too, and may be the
        // source of a younger unfinished move.
        doubtful.sort_unstable_by_key(|&block| self.found(block).first);
        for block in doubtful {
            let alone = |(_, lpn, oob): (u32, DieLpn, OobRead)| {
                newest.place[lpn.index()].is_none()
                    && self.counts(&fences, block, lpn, oob.sequence)
            };
            if self.pages_of(block).any(alone) {
                self.take_newest(block, &fences, &mut newest);
            } else {
                self.set_void(block);
            }
        }
        self.count_valid(&newest);
        newest
    }

    /// By die: sequence number of the youngest page that can be read. A die programs nothing after a cut, so a move
    /// that was cut holds it: if others have followed on the die, it has lost its end to something else. Other dies may
    /// have been ahead when the power went.
    pub fn youngest(&self) -> Vec<u64> {
        let mut youngest = vec![0; self.space.geometry.dies as usize];
        for (block, found) in self.blocks() {
            let youngest = &mut youngest[self.space.geometry.die_of(block) as usize];
            *youngest = found.last.max(*youngest);
        }
        youngest
    }

    /// Counts the valid pages of each block.
    pub fn count_valid(&mut self, newest: &Newest) {
        self.count_places(newest.place.iter().copied());
    }

    /// Counts the valid pages of each block, which are those at some places.
    pub fn count_places(&mut self, places: impl Iterator<Item = Ppn>) {
        for block in &mut self.blocks {
            block.valid = 0;
        }
        for at in places.filter(|at| at.is_some()) {
            let block = self.space.geometry.block_of(at).0 - self.first.0;
            self.blocks[block as usize].valid += 1;
        }
    }

    fn take_newest(&self, block: Pbn, fences: &[(u64, Pbn)], newest: &mut Newest) {
        for (position, lpn, oob) in self.pages_of(block) {
            let known = &mut newest.sequence[lpn.index()];
            if oob.sequence >= *known && self.counts(fences, block, lpn, oob.sequence) {
                *known = oob.sequence;
                newest.place[lpn.index()] = self.space.geometry.ppn(block, position);
            }
        }
    }

    /// Whether rule 3 lets a copy count.
    fn counts(&self, fences: &[(u64, Pbn)], block: Pbn, lpn: DieLpn, sequence: u64) -> bool {
        let l = self.space.geometry.by_pages().div(lpn.0) as usize;
        let fence = fences.get(l);
        fence.is_none_or(|&(since, rebuilt)| sequence > since || block == rebuilt)
    }

    /// By logical block: whether what has been read so far tells of a rebuild.
    pub fn rebuilt(&self) -> Vec<bool> {
        let fences = self.fences().into_iter();
        fences.map(|(_, rebuilt)| rebuilt.is_some()).collect()
    }

    /// By logical block: the end of its latest rebuild, and where it is.
    fn fences(&self) -> Vec<(u64, Pbn)> {
        let mut fences = vec![(0, Pbn::NONE); self.space.logical_blocks() as usize];
        for (block, _) in self.blocks().filter(|(_, found)| !found.is_void) {
            for (_, lpn, read) in self.pages_of(block) {
                if read.oob.role == Role::Data && read.oob.tag & LAST != 0 {
                    let l = self.space.geometry.by_pages().div(lpn.0) as usize;
                    fences[l] = fences[l].max((read.sequence, block));
                }
            }
        }
        fences
    }

    /// Erases every block that holds something, but no newest copy; those with mapping pages first, so that nothing
    /// else changes while they still tell how everything was. After it no block without a valid page is anything
    /// but blank. Returns the blank blocks in the order of their numbers.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn erase_useless<F: Flash>(&mut self, flash: &mut F) -> Result<Vec<Pbn>, F::Error> {
        for cause in [Cause::Map, Cause::Gc] {
            for i in 0..self.blocks.len() {
                let found = self.blocks[i];
                let is_meant = found.holds_map == (cause == Cause::Map);
                if is_meant && found.is_used && found.valid == 0 {
                    let block = Pbn(self.first.0 + i as u32);
                    flash.erase(block, cause, F::Token::default())?;
                    self.forget(i);
                }
            }
            // On every die, before the others begin.
            flash.drain();
        }
        let is_blank = |&i: &u32| !self.is_left_out(i) && !self.blocks[i as usize].is_used;
        let blank = (0..self.space.blocks()).filter(is_blank);
        Ok(blank.map(|i| Pbn(self.first.0 + i)).collect())
    }

    /// Takes back what was read in a block: it holds something, but nothing in it says anything.
    pub fn disregard(&mut self, block: Pbn) {
        self.forget((block.0 - self.first.0) as usize);
        self.blocks[(block.0 - self.first.0) as usize].is_used = true;
    }

    fn forget(&mut self, block: usize) {
        let pages = self.space.geometry.pages_per_block as usize;
        self.oobs[block * pages..(block + 1) * pages].fill(None);
        self.blocks[block] = Found::default();
    }
}

/// The newest copy of every page of a space, by local page.
#[derive(Clone, Debug)]
pub struct Newest {
    /// Where it lies, or `NONE`.
    pub place: Vec<Ppn>,
    /// Its sequence number.
    pub sequence: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::{MORE, Rules, Scan};
    use floatgate_core::flash::{Oob, OobRead, Role};
    use floatgate_core::{Geometry, Lpn, Pbn, ProgramOrder, Space};
    use floatgate_testkit::ram::RamFlash;

    /// Block 2 was a data block on its way out: trimmed pages are in it, and its cut erase took the page that ended
    /// its move. Block 0 is the target of a cut rebuild from it. Taken for a data block, the target would leave one
    /// block more in use than there were.
    #[test]
    fn a_target_is_void_although_its_source_lost_the_end_of_its_move() {
        let geometry = Geometry::new(1, 4, 3, 6, ProgramOrder::Any).unwrap();
        let flash = RamFlash::new(&geometry, 16);
        let mut scan = Scan::unread(&Space::whole(&geometry), 0, &flash);
        for (block, position, sequence) in [(2, 0, 10), (2, 1, 11), (0, 0, 20)] {
            let oob = Oob {
                lpn: Lpn(position),
                role: Role::Data,
                tag: MORE,
            };
            scan.set_page(
                geometry.ppn(Pbn(block), position),
                OobRead { oob, sequence },
            );
        }
        let newest = scan.newest(Rules::Rebuilds);
        let source = [0, 1].map(|position| geometry.ppn(Pbn(2), position));
        assert_eq!(newest.place[..2], source);
        assert!(scan.found(Pbn(0)).is_void);
        assert!(!scan.found(Pbn(2)).is_void);
    }
}
