//! What a flash with translation pages holds after a power cut: the newest copy of every translation page, and where
//! every logical page lies.
//!
//! *The full scan* reads all OOBs. Data pages follow the rules of [`scan`](crate::parts::scan); the newest copy of a
//! translation page is the newest, unless it lies in the block of an unfinished move.
//!
//! *From the translation pages.* The OOB of the first page of every block tells its role; all OOBs of map blocks
//! give the directory; the translation pages give the map. What they miss is *pending*: changes by data pages
//! younger than [`Checkpoint::pending`], of which that of the youngest copy counts: a greater one may come from before a
//! recovery, and rest on translation pages of other dies that were never programmed. So the OOBs of all
//! data blocks begun since are read too, and those of the blocks that were open at the time: on each die the
//! youngest block begun before. In no mode can this be left out, for a cut inside a request leaves pages that no
//! translation page knows, and every recovery must come to the same newest page. A place that a translation page
//! names is good if its block is older than the pending changes (nothing that changed earlier was still named when
//! the block was erased); in younger blocks the OOB must bear it out.
//!
//! *Pending trims* leave no page behind. A block all of whose pages have been trimmed may be erased with its places still
//! named, and a cut erase leaves anything. Where trims wait (and only there) the die's other data blocks are read
//! as well, unless its youngest page shows that no erase can have been going on: a page of the host with room behind
//! it, or a copy with others to follow.
//!
//! The map on flash is not trusted, and all OOBs are read, if a translation page does not have room for its
//! entries, if the options have changed, or if a page is missing, older than it was, or cannot be read: the youngest copy
//! notes the sum of the versions of all ([`Checkpoint::writes`]). Nor is it trusted if it names a page that is gone, or a copy of
//! a move that has not ended, and no younger page stands for it: it may be ahead of the die of that move.

use super::TranslationPages;
use super::checkpoint::Checkpoint;
use crate::parts::scan::{MORE, Rules, Scan};
use floatgate_core::address::{DieLpn, Lpn, Pbn, Ppn};
use floatgate_core::flash::{Flash, Role, SpareRead};
use floatgate_core::geometry::{Geometry, Space};

/// How the map is kept, and what may be relied on.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Entries of a translation page.
    pub entries_per_page: u32,
    /// [`Checkpoint::writer`].
    pub writer: u8,
    /// Whether the translation pages may be relied on.
    pub is_trusted: bool,
    /// Whether moved pages have blocks of their own.
    pub is_split: bool,
    /// Whether trims wait in memory while data blocks are erased.
    pub trims_wait: bool,
}

/// A copy of a translation page.
#[derive(Clone, Copy, Debug)]
struct MapCopy {
    at: Ppn,
    number: u32,
    sequence: u64,
    tag: u32,
    checkpoint: Checkpoint,
}

/// What was found.
#[derive(Debug)]
pub struct FoundMap {
    /// The blocks; their valid pages are counted, mapping pages too.
    pub scan: Scan,
    /// Where each logical page lies, by LPN.
    pub places: Vec<Ppn>,
    /// Where the newest copy of each translation page lies.
    pub directory: Vec<Ppn>,
    /// [`Checkpoint::version`] of these copies.
    pub versions: Vec<u32>,
    /// Translation pages whose entries on flash are not those places.
    pub stale: Vec<u32>,
    /// [`Checkpoint::pending`] until all of these are written.
    pub pending: u64,
    /// Whether the translation pages gave the map.
    pub was_trusted: bool,
}

impl FoundMap {
    /// Reads a flash.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn read<F: Flash>(space: &Space, layout: &Layout, flash: &mut F) -> Result<Self, F::Error> {
        let mut reader = Reader::new(space, layout, flash);
        reader.read_roles(flash)?;
        reader.read_map_blocks(flash)?;
        reader.find_directory();
        let is_loaded = reader.load(flash)?;
        let mut since = reader.trusted_since().filter(|_| is_loaded);
        let mut places = match since {
            Some(since) => reader.replay(since, flash)?,
            None => reader.scan_all(flash)?,
        };
        // Two logical pages at one place: whoever wrote that map, it was no power cut.
        if since.is_some() && (reader.is_ahead || !reader.are_apart(&places)) {
            since = None;
            places = reader.scan_all(flash)?;
        }
        let stale = reader.stale(&places);
        let directory: Vec<Ppn> = (0..reader.newest.len())
            .map(|page| reader.place_of(page))
            .collect();
        let versions = reader.newest.iter();
        let versions = versions.map(|copy| copy.map_or(0, |copy| copy.checkpoint.version));
        let versions = versions.collect();
        let mut scan = reader.scan;
        scan.count_places(places.iter().chain(&directory).copied());
        Ok(Self {
            scan,
            places,
            directory,
            versions,
            stale,
            pending: since.unwrap_or(1),
            was_trusted: since.is_some(),
        })
    }
}

struct Reader<'a> {
    space: &'a Space,
    geometry: &'a Geometry,
    layout: &'a Layout,
    /// Entries of a translation page that its bytes reach.
    reach: u32,
    scan: Scan,
    /// Positions of each block: programmed ones, and read so far.
    written: Vec<u32>,
    read: Vec<u32>,
    /// In the order of their programs, once all are read.
    copies: Vec<MapCopy>,
    /// The newest of them by translation page.
    newest: Vec<Option<MapCopy>>,
    /// The entries on flash, by LPN.
    stored: Vec<Ppn>,
    /// Whether they name a page that is gone or does not count, and nothing programmed since stands for it. A translation
    /// page waits for its own pages only, and its die may have been ahead of that of a move that has not ended: such copies
    /// are void, and the recovery that erases them can itself be cut before it has written the map anew.
    is_ahead: bool,
}

impl<'a> Reader<'a> {
    fn new<F: Flash>(space: &'a Space, layout: &'a Layout, flash: &F) -> Self {
        let geometry = &space.geometry;
        let pages = geometry.logical_pages.div_ceil(layout.entries_per_page);
        Self {
            space,
            geometry,
            layout,
            reach: layout.entries_per_page.min(flash.ledger().page_bytes() / 4),
            scan: Scan::unread(space, 0, flash),
            written: (0..geometry.blocks())
                .map(|block| flash.ledger().write_pointer(Pbn(block)))
                .collect(),
            read: vec![0; geometry.blocks() as usize],
            copies: Vec::new(),
            newest: vec![None; pages as usize],
            stored: vec![Ppn::NONE; geometry.logical_pages as usize],
            is_ahead: false,
        }
    }

    fn blocks(&self) -> impl Iterator<Item = Pbn> + use<> {
        (0..self.geometry.blocks()).map(Pbn)
    }

    /// Reads the next page of a block. Whether it can be read.
    fn read_next<F: Flash>(&mut self, block: Pbn, flash: &mut F) -> Result<bool, F::Error> {
        let at = self.geometry.ppn(block, self.read[block.index()]);
        self.read[block.index()] += 1;
        let found = self.scan.read_page(at, flash)?;
        if let Some(SpareRead { read, bytes }) =
            found.filter(|found| found.read.oob.role == Role::Map)
        {
            self.copies.push(MapCopy {
                at,
                number: read.oob.lpn.0,
                sequence: read.sequence,
                tag: read.oob.tag,
                checkpoint: Checkpoint::of(&bytes),
            });
        }
        Ok(found.is_some())
    }

    /// The first page of every block; further ones where it cannot be read.
    fn read_roles<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        for block in self.blocks() {
            while !self.read_next(block, flash)?
                && self.read[block.index()] < self.written[block.index()]
            {}
        }
        Ok(())
    }

    /// The other pages of a block, up to the first erased one.
    fn read_rest<F: Flash>(&mut self, block: Pbn, flash: &mut F) -> Result<(), F::Error> {
        let pages = self.geometry.pages_per_block;
        while self.read[block.index()] < pages.min(self.written[block.index()] + 1) {
            self.read_next(block, flash)?;
        }
        Ok(())
    }

    fn is_whole(&self, block: Pbn) -> bool {
        self.read[block.index()] >= self.written[block.index()]
    }

    fn read_map_blocks<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        for block in self.blocks() {
            if self.scan.found(block).holds_map {
                self.read_rest(block, flash)?;
            }
        }
        self.copies.sort_unstable_by_key(|copy| copy.sequence);
        Ok(())
    }

    fn find_directory(&mut self) {
        let mut is_unfinished = vec![true; self.geometry.blocks() as usize];
        for copy in self.copies.iter().filter(|copy| copy.tag != MORE) {
            is_unfinished[self.geometry.block_of(copy.at).index()] = false;
        }
        let unfinished = |copy: &&MapCopy| is_unfinished[self.geometry.block_of(copy.at).index()];
        for copy in self.copies.iter().filter(|copy| !unfinished(copy)) {
            if let Some(newest) = self.newest.get_mut(copy.number as usize) {
                *newest = Some(*copy);
            }
        }
        // The sources of an unfinished move stand, unless one has become unreadable.
        for copy in self.copies.iter().filter(unfinished) {
            if let Some(newest) = self.newest.get_mut(copy.number as usize) {
                newest.get_or_insert(*copy);
            }
        }
    }

    fn place_of(&self, page: usize) -> Ppn {
        self.newest[page].map_or(Ppn::NONE, |copy| copy.at)
    }

    /// Reads every translation page. Whether all that exist could be read: the OOB of one can outlive its content.
    fn load<F: Flash>(&mut self, flash: &mut F) -> Result<bool, F::Error> {
        let mut unread = 0;
        for copy in self.newest.iter().flatten() {
            let first = (copy.number * self.layout.entries_per_page) as usize;
            let stored = &mut self.stored[first..];
            unread += 1;
            let take = |bytes: &[u8]| {
                unread -= 1;
                let entries = bytes.chunks_exact(4).take(self.reach as usize);
                for (place, cell) in stored.iter_mut().zip(entries) {
                    *place = Ppn(cell.try_into().map_or(u32::MAX, u32::from_le_bytes));
                }
            };
            flash.read_map(copy.at, take, F::Token::default())?;
        }
        Ok(unread == 0)
    }

    /// Whether no two pages lie at the same place.
    fn are_apart(&self, places: &[Ppn]) -> bool {
        let mut is_taken = vec![false; self.geometry.pages() as usize];
        let directory = self.newest.iter().flatten().map(|copy| copy.at);
        let places = places.iter().copied().filter(|at| at.is_some());
        places
            .chain(directory)
            .all(|at| !std::mem::replace(&mut is_taken[at.index()], true))
    }

    fn fits(&self, copy: &MapCopy) -> bool {
        let Layout {
            entries_per_page,
            writer,
            ..
        } = *self.layout;
        copy.checkpoint.fits(entries_per_page, writer)
    }

    /// The oldest change that the translation pages may miss, if they can be trusted.
    fn trusted_since(&self) -> Option<u64> {
        let last = self.copies.last()?;
        let found = self.newest.iter().flatten();
        let versions = found.clone().map(|copy| copy.checkpoint.version);
        let is_complete = last.checkpoint.writes == versions.fold(0, u32::wrapping_add);
        let can_be_trusted = self.layout.is_trusted
            && self.reach == self.layout.entries_per_page
            && self.fits(last)
            && is_complete
            && found.clone().all(|copy| self.fits(copy));
        can_be_trusted.then_some(last.checkpoint.pending)
    }

    /// The map by the OOBs of all pages.
    fn scan_all<F: Flash>(&mut self, flash: &mut F) -> Result<Vec<Ppn>, F::Error> {
        for block in self.blocks() {
            self.read_rest(block, flash)?;
        }
        let newest = self.scan.newest(Rules::Moves);
        let mut places = vec![Ppn::NONE; newest.place.len()];
        for (local, at) in newest.place.into_iter().enumerate() {
            places[self.space.device_lpn(DieLpn(local as u32)).index()] = at;
        }
        Ok(places)
    }

    /// The map by the translation pages and the data pages programmed since.
    fn replay<F: Flash>(&mut self, since: u64, flash: &mut F) -> Result<Vec<Ppn>, F::Error> {
        self.read_since(since, flash)?;
        if self.layout.trims_wait {
            for die in 0..self.geometry.dies {
                if self.may_be_erasing(die) {
                    for block in self.data_blocks_of(die) {
                        self.read_rest(block, flash)?;
                    }
                }
            }
        }
        self.scan.void_emptied();
        self.void_unfinished();
        let mut places = self.stored.clone();
        for (lpn, place) in places.iter_mut().enumerate() {
            if !self.is_borne_out(Lpn(lpn as u32), *place) {
                *place = Ppn::NONE;
            }
        }
        let mut sequences = vec![0; places.len()];
        for block in self.blocks().filter(|&block| self.is_whole(block)) {
            if self.scan.found(block).is_void {
                continue;
            }
            for (position, _, read) in self.scan.pages_of(block) {
                let lpn = read.oob.lpn.index();
                if read.sequence >= since && read.sequence > sequences[lpn] {
                    sequences[lpn] = read.sequence;
                    places[lpn] = self.geometry.ppn(block, position);
                }
            }
        }
        let mut named = self.stored.iter().zip(&places);
        self.is_ahead = named.any(|(named, now)| named.is_some() && now.is_none());
        Ok(places)
    }

    fn is_data(&self, block: Pbn) -> bool {
        self.scan.found(block).readable > 0
    }

    fn data_blocks_of(&self, die: u32) -> Vec<Pbn> {
        let first = self.geometry.pbn(die, 0).0;
        let blocks = (first..first + self.geometry.blocks_per_die).map(Pbn);
        blocks.filter(|&block| self.is_data(block)).collect()
    }

    /// The append point that filled a block, of `host` and `gc`.
    fn stream(&self, block: Pbn) -> usize {
        let first = self.scan.pages_of(block).next();
        let is_moved = first.is_some_and(|(.., read)| read.oob.tag != 0);
        usize::from(self.layout.is_split && is_moved)
    }

    /// The data pages programmed since a number, with those before them in their blocks.
    fn read_since<F: Flash>(&mut self, since: u64, flash: &mut F) -> Result<(), F::Error> {
        for die in 0..self.geometry.dies {
            let mut open: [Option<Pbn>; 2] = [None; 2];
            for block in self.data_blocks_of(die) {
                let first = self.scan.found(block).first;
                if first >= since {
                    self.read_rest(block, flash)?;
                    continue;
                }
                let open = &mut open[self.stream(block)];
                if open.is_none_or(|known| self.scan.found(known).first < first) {
                    *open = Some(block);
                }
            }
            for block in open.into_iter().flatten() {
                self.read_rest(block, flash)?;
            }
        }
        Ok(())
    }

    /// Whether an erase of a data block of a die can have been cut: blocks are collected only when the host's
    /// append point is full or missing.
    fn may_be_erasing(&self, die: u32) -> bool {
        let closed = self.copies.iter().map(|copy| copy.checkpoint.closed).max();
        let blocks = self.data_blocks_of(die).into_iter();
        let youngest = blocks
            .filter(|&block| self.stream(block) == 0)
            .max_by_key(|&block| self.scan.found(block).first);
        let last = youngest.and_then(|block| self.scan.pages_of(block).last());
        last.is_none_or(|(position, _, read)| {
            let is_full = position + 1 == self.geometry.pages_per_block;
            let is_open = read.oob.tag == 0 && !is_full || read.oob.tag == MORE;
            !is_open || Some(read.sequence) <= closed
        })
    }

    /// A block with nothing but copies of a move that did not end is void; no page of any kind can have been written
    /// since on its die.
    fn void_unfinished(&mut self) {
        let mut map = vec![0; self.geometry.dies as usize];
        for copy in &self.copies {
            map[self.geometry.die_of(self.geometry.block_of(copy.at)) as usize] = copy.sequence;
        }
        let youngest = self.scan.youngest();
        for block in self.blocks() {
            let found = self.scan.found(block);
            let die = self.geometry.die_of(block) as usize;
            let is_young = found.first > map[die] && youngest[die] == found.last;
            let mut pages = self.scan.pages_of(block);
            let is_unfinished = pages.all(|(.., read)| read.oob.tag == MORE);
            drop(pages);
            if is_young && self.is_whole(block) && is_unfinished {
                self.scan.set_void(block);
            }
        }
    }

    /// Whether the place that a translation page names holds that logical page, as far as that can be seen.
    fn is_borne_out(&self, lpn: Lpn, at: Ppn) -> bool {
        if at.0 >= self.geometry.pages() {
            return false;
        }
        let block = self.geometry.block_of(at);
        if !self.is_data(block) || self.scan.found(block).is_void {
            return false;
        }
        let read = self.scan.page_at(at);
        !self.is_whole(block) || read.is_some_and(|(_, read)| read.oob.lpn == lpn)
    }

    /// The translation pages whose entries are not those places, or that [`Reader::trusted_since`] would not trust.
    fn stale(&self, places: &[Ppn]) -> Vec<u32> {
        let entries = self.layout.entries_per_page as usize;
        let runs = places.chunks(entries).zip(self.stored.chunks(entries));
        let is_stale = |(newest, (now, stored)): (&Option<MapCopy>, (&[Ppn], &[Ppn]))| match newest
        {
            None => now.iter().any(|place| place.is_some()),
            Some(copy) => {
                let reach = now.len().min(self.reach as usize);
                now[..reach] != stored[..reach] || !self.fits(copy)
            }
        };
        let flags = self.newest.iter().zip(runs).map(is_stale);
        let numbered = (0..).zip(flags);
        numbered
            .filter_map(|(page, stale)| stale.then_some(page))
            .collect()
    }
}

impl TranslationPages {
    /// The map that was found, with `places` in the store: writes what is stale, so that the map on flash is that
    /// in memory.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn recover<F: Flash>(
        store: &mut super::PageStore,
        found: &FoundMap,
        layout: &Layout,
        flash: &mut F,
    ) -> Result<Self, F::Error> {
        let directory = found.directory.clone();
        let geometry = store.geometry().clone();
        let (entries, writer) = (layout.entries_per_page, layout.writer);
        let versions = found.versions.clone();
        let mut pages = Self::found(&geometry, entries, writer, directory, versions);
        pages.checkpoint.pending = found.pending;
        pages.checkpoint.closed = flash.ledger().next_sequence().saturating_sub(1);
        for &page in &found.stale {
            pages.rewrite(flash, store, page, (F::Token::default(), found.pending))?;
        }
        pages.checkpoint.pending = u64::MAX;
        Ok(pages)
    }

    /// Says on flash that no change waits and that all blocks are closed, so that the next recovery reads little.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn end_recovery<F: Flash>(
        &mut self,
        store: &mut super::PageStore,
        flash: &mut F,
    ) -> Result<(), F::Error> {
        let written = self.gtd.iter().position(|place| place.is_some());
        written.map_or(Ok(()), |page| {
            self.rewrite(flash, store, page as u32, (F::Token::default(), u64::MAX))
        })
    }
}
