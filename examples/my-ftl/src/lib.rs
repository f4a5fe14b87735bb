//! `ring`: a log that runs round the blocks of a die.
//!
//! **Paper.** None: a template. Rosenblum and Ousterhout's log-structured file system (1992) is its ancestor.
//!
//! **RAM state.** A page map; for each physical page the logical page written there.
//!
//! **Flash state.** Blocks filled in order, one after the other, round the die. OOB: LPN, role data.
//!
//! **How it writes, reads, reclaims.** A page goes to the head of the ring. When no more than two blocks (and
//! `extra_erased_blocks`) are erased ahead of it, the block at the tail is collected: its valid pages move to the head,
//! whatever their number. Written for one die; `Striped` runs one instance a die.
//!
//! **Recovery.** By a scan of all OOBs: the newest copy of a page wins, and the ring goes on behind the youngest page. A
//! block of nothing but copies of an unfinished collection is given up, since all their sources stand.
//!
//! **Deviations and why.** No hot and cold data: every page is carried round. Improving on that is left to the reader.

pub mod placement;

use floatgate_core::flash::{Cause, Done, Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start, audited};
use floatgate_core::report::{Table, bits_for};
use floatgate_core::state::{Passed, State, Tape};
use floatgate_core::{Described, DieLpn, Geometry, Ppn, Refusal, Space, options, state};
use floatgate_schemes::parts::scan::{Depth, Rules, Scan, move_tag};
use floatgate_schemes::parts::start;

/// Blocks beyond those that the logical pages fill: two erased ones, one to win space. Copies of one collection fill no
/// more than one block; the other is for pages that are lost to power cuts.
const ERASED_MIN: u32 = 2;

options! {
    /// Options of the ring.
    pub struct RingOptions {
        /// Blocks that are kept erased ahead of the head, beyond two.
        extra_erased_blocks: u32 ["blocks a die"] = 0, samples [0, 1, 3];
    }
}

/// One die's ring.
#[derive(Debug)]
pub struct Ring {
    space: Space,
    /// By logical page: its newest copy.
    map: Vec<Ppn>,
    /// By physical page of the die: the logical page whose newest copy is there.
    page_at: Vec<DieLpn>,
    /// The head: index of the physical page that is written next.
    next: usize,
    /// Erased pages from there on, and as many as a write must leave.
    erased: usize,
    erased_min: usize,
}

state!(Ring { map, page_at, next, erased } fixed { space, erased_min });

impl Ring {
    /// A ring of erased blocks.
    fn empty(space: &Space, options: &RingOptions) -> Result<Self, Refusal> {
        let (data, erased) = (space.logical_blocks(), options.extra_erased_blocks);
        let erased = erased.saturating_add(ERASED_MIN);
        space.need_blocks(&[("data", data), ("erased", erased), ("collection", 1)])?;
        let pages = space.geometry.pages_per_block;
        let physical = (space.blocks() * pages) as usize;
        Ok(Self {
            space: space.clone(),
            map: vec![Ppn::NONE; space.logical_pages() as usize],
            page_at: vec![DieLpn::NONE; physical],
            next: 0,
            erased: physical,
            erased_min: (erased * pages) as usize,
        })
    }

    /// The physical page of that index, counted round the ring.
    fn ppn(&self, index: usize) -> Ppn {
        self.space.ppn(index % self.page_at.len())
    }

    /// Notes where the newest copy of a page is; `NONE` if it has none any more.
    fn set_place(&mut self, page: DieLpn, place: Ppn) {
        let old = std::mem::replace(&mut self.map[page.index()], place);
        for (at, page) in [(old, DieLpn::NONE), (place, page)] {
            if at.is_some() {
                self.page_at[self.space.index_of(at)] = page;
            }
        }
    }

    fn set_places(&mut self, places: &[Ppn]) {
        for (page, &at) in (0..).map(DieLpn).zip(places) {
            self.set_place(page, at);
        }
    }

    /// Where the next page goes.
    fn take_next(&mut self) -> Ppn {
        let at = self.ppn(self.next);
        self.next = (self.next + 1) % self.page_at.len();
        self.erased -= 1;
        at
    }

    fn collect_tail<F: Flash>(&mut self, flash: &mut F) -> Done<F> {
        let pages = self.space.geometry.pages_per_block as usize;
        let tail = (self.next + self.erased) % self.page_at.len();
        let block = self.space.geometry.block_of(self.ppn(tail));
        let is_valid = |&index: &usize| self.page_at[index].is_some();
        let valid: Vec<usize> = (tail..tail + pages).filter(is_valid).collect();
        for &index in &valid {
            let (page, from, to) = (self.page_at[index], self.ppn(index), self.take_next());
            // After a power cut the tag tells whether the collection was finished.
            let tag = move_tag(valid.last() == Some(&index), block);
            let oob = Oob::new(self.space.device_lpn(page), Role::Data).tagged(tag);
            flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
            self.set_place(page, to);
        }
        flash.erase(block, Cause::Gc, F::Token::default())?;
        self.erased += pages;
        Ok(())
    }
}

impl Described for Ring {
    const KEY: &'static str = "ring";
    const TITLE: &'static str = "Ring";
    const SUMMARY: &'static str = "a log that runs round the die: a template";
    const SOURCE: &'static str = "yours";
    const TEXT: &'static str = include_str!("lib.rs");
    type Options = RingOptions;

    fn tables(geometry: &Geometry, _: &RingOptions) -> Vec<Table> {
        let pages = u64::from(geometry.logical_pages);
        vec![Table::sram("page map", pages, bits_for(pages))]
    }
}

impl Ftl for Ring {
    type Page = DieLpn;

    fn format<F: Preload>(
        space: &Space,
        options: &RingOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut ring = Self::empty(space, options)?;
        if start == Start::Full {
            let mut map = ring.map.clone();
            start::fill(space, flash, &mut map, |_, _| ()).map_err(MountError::Flash)?;
            ring.set_places(&map);
            ring.next = map.len();
            ring.erased -= map.len();
        }
        Ok(ring)
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &RingOptions,
        _: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut ring = Self::empty(space, options)?;
        let scan = Scan::read(space, 0, Depth::UpToErased, flash);
        let mut scan = scan.map_err(MountError::Flash)?;
        ring.set_places(&scan.newest(Rules::Moves).place);
        let blank = scan.erase_useless(flash).map_err(MountError::Flash)?;
        let in_use = scan.blocks().filter(|(_, found)| found.valid > 0);
        if let Some((head, _)) = in_use.max_by_key(|(_, found)| found.last) {
            let pages = space.geometry.pages_per_block as usize;
            let end = space.index_of(space.geometry.first_page(head)) + pages;
            let left = pages - flash.ledger().write_pointer(head) as usize;
            let is_blank = |&i: &usize| blank.contains(&space.geometry.block_of(ring.ppn(i)));
            let ahead = (end..).step_by(pages).take_while(is_blank).count();
            (ring.next, ring.erased) = (end - left, left + pages * ahead);
            if ring.erased < pages {
                return Err(Refusal::no_room("no erased block for a collection".into()).into());
            }
        }
        audited(ring, flash)
    }

    fn write_page<F: Flash>(&mut self, flash: &mut F, page: DieLpn, slot: Slot) -> Done<F> {
        while self.erased <= self.erased_min {
            self.collect_tail(flash)?;
        }
        let to = self.take_next();
        let oob = Oob::new(self.space.device_lpn(page), Role::Data);
        flash.program_host(slot, to, oob, F::Token::default())?;
        self.set_place(page, to);
        Ok(())
    }

    fn read_page<F: Flash>(&mut self, flash: &mut F, page: DieLpn, slot: Slot) -> Done<F> {
        match self.map[page.index()] {
            Ppn::NONE => flash.absent(slot, F::Token::default()),
            at => drop(flash.read_host(slot, at, F::Token::default())?),
        }
        Ok(())
    }

    fn trim_page<F: Flash>(&mut self, _: &mut F, page: DieLpn, _: Slot) -> Done<F> {
        self.set_place(page, Ppn::NONE);
        Ok(())
    }

    /// So that `--save-state` and `--load-state` work.
    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let mut live = 0;
        for (page, &at) in (0..)
            .map(DieLpn)
            .zip(&self.map)
            .filter(|(_, at)| at.is_some())
        {
            let noted = self.page_at[self.space.index_of(at)];
            if !flash.ledger().is_programmed(at) || noted != page {
                return Err(format!("page {} is not at {}", page.0, at.0));
            }
            live += 1;
        }
        Ok(live)
    }
}
