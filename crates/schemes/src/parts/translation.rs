//! A page map kept on flash: translation pages in blocks of their own among the data blocks, the directory that
//! finds them, room for them, and the collection of their blocks. DFTL and its kin differ only in what they
//! cache above it.

use crate::parts::page_store::{Append, PageStore};
use crate::parts::scan::move_tag;
use floatgate_core::address::{Divisor, Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, SpareArea};
use floatgate_core::ftl::Start;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

pub mod checkpoint;
pub mod recovery;

use checkpoint::Checkpoint;

/// The translation pages of a device and the blocks that hold them.
#[derive(Debug)]
pub struct TranslationPages {
    /// Newest copy of each translation page.
    gtd: Vec<Ppn>,
    /// Where each die appends translation pages.
    open: Vec<Append>,
    by_entries: Divisor,
    by_dies: Divisor,
    /// Old bytes of the page being rewritten .
    content: Vec<u8>,
    logical_pages: u32,
    /// Least erased and map blocks together on a die, by the proof of the reserve.
    floor: u32,
    /// Translation pages moved by collections.
    pub moves: u64,
    /// [`Checkpoint::version`] of each; as the OOBs of its copies tell it.
    versions: Vec<u32>,
    /// What the OOBs of translation pages say of the map as a whole. Whoever owns the map keeps
    /// [`Checkpoint::pending`] up to date; `u64::MAX` if no change waits.
    pub checkpoint: Checkpoint,
}

state!(TranslationPages { gtd, open, moves, versions, checkpoint }
    fixed { by_entries, by_dies, content, logical_pages, floor });

/// Blocks of one die that translation pages fill: `q` whole ones at most, and one open.
pub fn whole_map_blocks(geometry: &Geometry, entries_per_page: u32) -> u32 {
    let pages = geometry.logical_pages.div_ceil(entries_per_page);
    pages.div_ceil(geometry.dies) / geometry.pages_per_block
}

impl TranslationPages {
    /// The map of a fresh device: with start `full` behind the data of every die, else not written yet.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn format<F: Preload>(
        store: &mut PageStore,
        entries_per_page: u32,
        writer: u8,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, F::Error> {
        let geometry = store.geometry().clone();
        let pages = geometry.logical_pages.div_ceil(entries_per_page);
        let none = vec![Ppn::NONE; pages as usize];
        let unwritten = vec![0; pages as usize];
        let mut map = Self::found(&geometry, entries_per_page, writer, none, unwritten);
        if start == Start::Full {
            map.fill(store, flash, &geometry)?;
        }
        Ok(map)
    }

    /// A map whose translation pages lie at those places, in closed blocks.
    fn found(
        geometry: &Geometry,
        entries_per_page: u32,
        writer: u8,
        gtd: Vec<Ppn>,
        versions: Vec<u32>,
    ) -> Self {
        Self {
            open: vec![Append::NONE; geometry.dies as usize],
            by_entries: Divisor::new(entries_per_page),
            by_dies: Divisor::new(geometry.dies),
            content: Vec::new(),
            logical_pages: geometry.logical_pages,
            floor: whole_map_blocks(geometry, entries_per_page) + 3,
            moves: 0,
            checkpoint: Checkpoint {
                pending: u64::MAX,
                closed: 0,
                version: 0,
                writes: versions.iter().copied().fold(0, u32::wrapping_add),
                entries: entries_per_page,
                writer,
            },
            versions,
            gtd,
        }
    }

    fn fill<F: Preload>(
        &mut self,
        store: &mut PageStore,
        flash: &mut F,
        geometry: &Geometry,
    ) -> Result<(), F::Error> {
        let pages = self.gtd.len() as u32;
        for page in 0..pages {
            let die = self.home(page) as usize;
            if !self.open[die].has_room() {
                self.open[die] = store.open_map(die as u32);
            }
            let (to, full) = self.open[die].take();
            store.map_programmed(Lpn(page), to, full);
            self.gtd[page as usize] = to;
        }
        self.versions.fill(1);
        self.checkpoint.writes = pages;
        let checkpoint = Checkpoint {
            // After all of them.
            pending: flash.ledger().next_sequence() + u64::from(pages),
            version: 1,
            ..self.checkpoint
        };
        for first in 0..pages {
            let (block, position) = geometry.split(self.gtd[first as usize]);
            if position == 0 {
                let left = (pages - first).div_ceil(geometry.dies);
                let number = |i: u32| first + i * geometry.dies;
                flash.preload_map(
                    block,
                    left.min(geometry.pages_per_block),
                    |i| {
                        Oob::new(Lpn(number(i)), Role::Map)
                            .with_bytes(move |bytes| checkpoint.put(bytes))
                    },
                    |i, bytes| self.write_all(number(i), store, bytes),
                )?;
            }
        }
        Ok(())
    }

    /// The spare area of the next program of a translation page, with its checkpoint: `pending` is the oldest change that
    /// is not on flash after it.
    fn signed<F: Flash>(&self, flash: &F, oob: Oob, pending: u64) -> impl SpareArea + use<F> {
        let checkpoint = Checkpoint {
            pending: pending.min(flash.ledger().next_sequence()),
            version: self.versions[oob.lpn.index()],
            ..self.checkpoint
        };
        oob.with_bytes(move |bytes| checkpoint.put(bytes))
    }

    fn write_all(&self, page: u32, store: &PageStore, bytes: &mut [u8]) {
        bytes.fill(0xFF);
        let entries = self.by_entries.get();
        let first = page * entries;
        let end = first.saturating_add(entries).min(self.logical_pages);
        for lpn in (first..end).map(Lpn) {
            self.put_entry(bytes, lpn, store.place(lpn));
        }
    }

    /// Memory of the tables in bytes.
    pub fn ram_bytes(geometry: &Geometry, entries_per_page: u32) -> u64 {
        8 * u64::from(geometry.logical_pages.div_ceil(entries_per_page))
            + 8 * u64::from(geometry.dies)
    }

    /// The translation page of a logical page.
    #[inline(always)]
    pub fn page_of(&self, lpn: Lpn) -> u32 {
        self.by_entries.div(lpn.0)
    }

    /// The first logical page whose entry stands in a translation page.
    pub fn first_of(&self, page: u32) -> Lpn {
        Lpn(page * self.by_entries.get())
    }

    /// The last logical page whose entry stands in a translation page.
    pub fn last_of(&self, page: u32) -> Lpn {
        let entries = self.by_entries.get();
        let end = (page * entries).saturating_add(entries);
        Lpn(end.min(self.logical_pages) - 1)
    }

    /// Translation pages.
    pub fn len(&self) -> u32 {
        self.gtd.len() as u32
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.gtd.is_empty()
    }

    /// Whether a translation page has ever been written.
    #[inline(always)]
    pub fn exists(&self, page: u32) -> bool {
        self.gtd[page as usize].is_some()
    }

    #[inline(always)]
    pub(super) fn home(&self, page: u32) -> u32 {
        self.by_dies.rem(page)
    }

    /// The die of the translation page that has the entry of a logical page.
    pub fn die_of(&self, lpn: Lpn) -> u32 {
        self.home(self.page_of(lpn))
    }

    /// Writes the entry of a logical page into the bytes of its translation page, as far as those reach.
    pub fn put_entry(&self, bytes: &mut [u8], lpn: Lpn, place: Ppn) {
        let at = self.by_entries.rem(lpn.0) as usize * 4;
        if let Some(cell) = bytes.get_mut(at..at + 4) {
            cell.copy_from_slice(&place.0.to_le_bytes());
        }
    }

    /// Reads a translation page that exists, for the entry of `lpn`, which is not newer in memory.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn load<F: Flash>(
        &self,
        flash: &mut F,
        store: &PageStore,
        lpn: Lpn,
    ) -> Result<F::Token, F::Error> {
        let from = self.gtd[self.page_of(lpn) as usize];
        let at = self.by_entries.rem(lpn.0) as usize * 4;
        let check = |bytes: &[u8]| {
            let stored = bytes.get(at..at + 4);
            debug_assert!(
                stored.is_none_or(|cell| cell == store.place(lpn).0.to_le_bytes()),
                "the entry of page {} on flash is {stored:?}",
                lpn.0
            );
        };
        flash.read_map(from, check, F::Token::default())
    }

    /// Reads a translation page that exists, for all its entries but those that are newer in memory.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn load_all<F: Flash>(
        &self,
        flash: &mut F,
        store: &PageStore,
        page: u32,
        is_newer: impl Fn(Lpn) -> bool,
    ) -> Result<F::Token, F::Error> {
        let entries = (self.first_of(page).0..=self.last_of(page).0).map(Lpn);
        let check = |bytes: &[u8]| {
            let mut stored = entries.zip(bytes.chunks_exact(4));
            let wrong = stored
                .find(|(lpn, cell)| !is_newer(*lpn) && *cell != store.place(*lpn).0.to_le_bytes());
            debug_assert!(wrong.is_none(), "an entry on flash: {wrong:?}");
        };
        flash.read_map(self.gtd[page as usize], check, F::Token::default())
    }

    /// The translation page of a logical page, as a division.
    pub fn divisor(&self) -> Divisor {
        self.by_entries
    }

    /// Writes a new copy of a translation page: the old content with what `change` puts in. It waits for the
    /// read of the old copy and for `produced`. `pending` is the oldest change that waits after it. Returns whether
    /// there was an old copy to read.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn write<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        (produced, pending): (F::Token, u64),
        change: impl FnOnce(&Self, &PageStore, &mut [u8]),
    ) -> Result<bool, F::Error> {
        let die = self.home(page);
        self.make_room(flash, store, die)?;
        let old = self.gtd[page as usize];
        let mut content = std::mem::take(&mut self.content);
        content.clear();
        let mut after = produced;
        if old.is_some() {
            let keep = |bytes: &[u8]| content.extend_from_slice(bytes);
            let read = flash.read_map(old, keep, F::Token::default())?;
            after = flash.join(read, produced);
        }
        let fill = |map: &Self, store: &PageStore, bytes: &mut [u8]| {
            if old.is_none() {
                bytes.fill(0xFF);
            } else if content.is_empty() {
                // It cannot be read any more; its places are in memory too.
                map.write_all(page, store, bytes);
            } else {
                bytes.copy_from_slice(&content);
            }
            change(map, store, bytes);
        };
        self.append(flash, store, page, (after, pending), fill)?;
        self.content = content;
        Ok(old.is_some())
    }

    /// Writes a new copy of a translation page from the places in memory, without a read. It waits for what
    /// `end` says, and so does what is pending after it, as in [`TranslationPages::write`].
    ///
    /// # Errors
    /// Those of the flash.
    pub fn rewrite<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        end: (F::Token, u64),
    ) -> Result<(), F::Error> {
        self.make_room(flash, store, self.home(page))?;
        let fill = |map: &Self, store: &PageStore, bytes: &mut [u8]| {
            map.write_all(page, store, bytes);
        };
        self.append(flash, store, page, end, fill)
    }

    /// Programs a translation page where there is room for it.
    fn append<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        page: u32,
        (after, pending): (F::Token, u64),
        fill: impl FnOnce(&Self, &PageStore, &mut [u8]),
    ) -> Result<(), F::Error> {
        let old = self.gtd[page as usize];
        let version = &mut self.versions[page as usize];
        *version = version.wrapping_add(1);
        self.checkpoint.writes = self.checkpoint.writes.wrapping_add(1);
        let die = self.home(page) as usize;
        let (to, full) = self.open[die].take();
        let oob = self.signed(flash, Oob::new(Lpn(page), Role::Map), pending);
        flash.program_map(to, oob, |bytes| fill(self, store, bytes), after)?;
        store.map_programmed(Lpn(page), to, full);
        if old.is_some() {
            store.map_dropped(old);
        }
        self.gtd[page as usize] = to;
        Ok(())
    }

    /// Room for one translation page on a die. Never takes the die's last erased block.
    fn make_room<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        die: u32,
    ) -> Result<(), F::Error> {
        while !self.open[die as usize].has_room() {
            if store.erased(die) >= 2 {
                self.open[die as usize] = store.open_map(die);
            } else {
                let victim = store.map_victim(die);
                self.collect(flash, store, victim)?;
            }
        }
        Ok(())
    }

    /// Collects a map block: its valid pages move to the append point, it is erased.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn collect<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        victim: Pbn,
    ) -> Result<(), F::Error> {
        let die = store.geometry().die_of(victim);
        let mut from = store.geometry().first_page(victim);
        let mut left = store.valid(victim);
        while left > 0 {
            let page = store.page_at(from);
            if self.gtd[page.index()] == from {
                left -= 1;
                let (role, tag) = (Role::Map, move_tag(left == 0, victim));
                let oob = Oob {
                    lpn: page,
                    role,
                    tag,
                };
                self.move_page(flash, store, die, oob, from)?;
            }
            from.0 += 1;
        }
        flash.erase(victim, Cause::Map, F::Token::default())?;
        store.reclaimed(victim);
        Ok(())
    }

    fn move_page<F: Flash>(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        die: u32,
        oob: Oob,
        from: Ppn,
    ) -> Result<(), F::Error> {
        if !self.open[die as usize].has_room() {
            self.open[die as usize] = store.open_map(die);
        }
        let (to, full) = self.open[die as usize].take();
        let signed = self.signed(flash, oob, self.checkpoint.pending);
        flash.copy(from, to, signed, Cause::Map, F::Token::default())?;
        store.map_programmed(oob.lpn, to, full);
        store.map_dropped(from);
        self.gtd[oob.lpn.index()] = to;
        self.moves += 1;
        Ok(())
    }

    /// Places of all translation pages that exist.
    pub fn places(&self) -> impl Iterator<Item = Ppn> + '_ {
        self.gtd.iter().copied().filter(|place| place.is_some())
    }

    /// Checks the directory and the reserve of every die.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F, store: &PageStore) -> Result<(), String> {
        let geometry = store.geometry();
        for (page, &place) in self.gtd.iter().enumerate().filter(|(_, p)| p.is_some()) {
            let block = geometry.block_of(place);
            if !flash.ledger().is_programmed(place)
                || store.page_at(place) != Lpn(page as u32)
                || !store.is_map(block)
                || geometry.die_of(block) != self.home(page as u32)
            {
                return Err(format!("translation page {page} is not at {}", place.0));
            }
        }
        for die in 0..geometry.dies {
            let (erased, map) = (store.erased(die), store.map_blocks(die));
            if erased + map < self.floor {
                return Err(format!(
                    "die {die} has {erased} erased and {map} map blocks, at least {} by the reserve",
                    self.floor
                ));
            }
        }
        Ok(())
    }
}
