//! `ring`: a log that runs round the blocks of a die.
//!
//! **Paper.** None: a template. Rosenblum and Ousterhout's log-structured file system (1992) is its ancestor.
//!
//! **RAM state.** A page map; for each physical page the logical page written there.
//!
//! **Flash state.** Blocks filled in order, one after the other, round the die. OOB: LPN, role data.
//!
//! **How it writes, reads, reclaims.** A page goes to the head of the ring. When fewer than two blocks (and
//! `extra_erased_blocks` more) are erased, the block at the tail is collected: its valid pages move to the head, whatever
//! their number. Written for one die; `Striped` runs one instance a die.
//!
//! **Recovery.** By a scan of all OOBs: the newest copy of a page wins, and the block with the youngest page is the head.
//! A block of nothing but copies of an unfinished collection is given up, since all their sources stand: so there is always
//! an erased block after the head, and the collection begins again.
//!
//! **Deviations and why.** No hot and cold data: every page is carried round. Improving on that is left to the reader.

use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start, audited};
use floatgate_core::report::{Table, bits_for};
use floatgate_core::{Described, DieLpn, Geometry, Pbn, Ppn, Refusal, Space, options};
use floatgate_schemes::parts::scan::{Depth, Rules, Scan, move_tag};
use floatgate_schemes::parts::start;

/// Erased blocks that a collection can need: it fills the head and goes on in the next block before it erases one.
const ERASED_MIN: u32 = 2;

options! {
    /// Options of the ring.
    pub struct RingOptions {
        /// Blocks that are kept erased ahead of the head, beyond the two that a collection needs.
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
    /// Block in which the next page goes, by its index on the die.
    head: u32,
    /// Erased blocks after it, and how many there must be for a write.
    erased: u32,
    erased_min: u32,
}

impl Ring {
    /// A ring of erased blocks.
    fn empty(space: &Space, options: &RingOptions) -> Result<Self, Refusal> {
        let (data, erased) = (
            space.logical_blocks(),
            ERASED_MIN + options.extra_erased_blocks,
        );
        space.need_blocks(&[
            ("data blocks", data),
            ("erased blocks", erased),
            ("head", 1),
        ])?;
        let pages = space.blocks() * space.geometry.pages_per_block;
        Ok(Self {
            space: space.clone(),
            map: vec![Ppn::NONE; space.logical_pages() as usize],
            page_at: vec![DieLpn::NONE; pages as usize],
            head: 0,
            erased: space.blocks() - 1,
            erased_min: erased,
        })
    }

    fn block(&self, index: u32) -> Pbn {
        let first_die = self.space.first_die;
        self.space
            .geometry
            .pbn(first_die, index % self.space.blocks())
    }

    /// Index of a physical page in this die's tables.
    fn local(&self, at: Ppn) -> usize {
        at.index() - self.space.geometry.first_page(self.block(0)).index()
    }

    /// Notes where the newest copy of a page is; `NONE` if it has none any more.
    fn set_place(&mut self, page: DieLpn, place: Ppn) {
        let old = std::mem::replace(&mut self.map[page.index()], place);
        for (at, page) in [(old, DieLpn::NONE), (place, page)] {
            if at.is_some() {
                let local = self.local(at);
                self.page_at[local] = page;
            }
        }
    }

    fn set_places(&mut self, places: &[Ppn]) {
        let pages = (0..).map(DieLpn);
        pages
            .zip(places)
            .for_each(|(page, &at)| self.set_place(page, at));
    }

    /// The next page of the ring.
    fn next<F: Flash>(&mut self, flash: &F) -> Ppn {
        let written = |block| flash.ledger().write_pointer(block);
        if written(self.block(self.head)) == self.space.geometry.pages_per_block {
            self.head = (self.head + 1) % self.space.blocks();
            self.erased -= 1;
        }
        let head = self.block(self.head);
        self.space.geometry.ppn(head, written(head))
    }

    fn collect_tail<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let tail = self.block(self.head + self.erased + 1);
        let pages =
            (0..self.space.geometry.pages_per_block).map(|i| self.space.geometry.ppn(tail, i));
        let valid: Vec<Ppn> = pages
            .filter(|&at| self.page_at[self.local(at)].is_some())
            .collect();
        for (i, &from) in valid.iter().enumerate() {
            let (page, to) = (self.page_at[self.local(from)], self.next(flash));
            // After a power cut the tag tells whether the collection was finished.
            let tag = move_tag(i + 1 == valid.len(), tail);
            let oob = Oob::new(self.space.device_lpn(page), Role::Data).tagged(tag);
            flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
            self.set_place(page, to);
        }
        flash.erase(tail, Cause::Gc, F::Token::default())?;
        self.erased += 1;
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
            ring.head = space.logical_blocks() - 1;
            ring.erased = space.blocks() - space.logical_blocks();
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
            ring.head = head.0 - ring.block(0).0;
            let after = (1..space.blocks()).map(|i| ring.block(ring.head + i));
            ring.erased = after.take_while(|block| blank.contains(block)).count() as u32;
        }
        audited(ring, flash)
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        while self.erased < self.erased_min {
            self.collect_tail(flash)?;
        }
        let to = self.next(flash);
        let oob = Oob::new(self.space.device_lpn(page), Role::Data);
        flash.program_host(slot, to, oob, F::Token::default())?;
        self.set_place(page, to);
        Ok(())
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let at = self.map[page.index()];
        if at.is_none() {
            flash.absent(slot, F::Token::default());
            return Ok(());
        }
        flash.read_host(slot, at, F::Token::default())
    }

    fn trim_page<F: Flash>(&mut self, _: &mut F, page: DieLpn, _: Slot) -> Result<(), F::Error> {
        self.set_place(page, Ppn::NONE);
        Ok(())
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        for (page, &at) in (0..).map(DieLpn).zip(&self.map) {
            let is_there =
                |at| flash.ledger().is_programmed(at) && self.page_at[self.local(at)] == page;
            if at.is_some() && !is_there(at) {
                return Err(format!("page {} is not at {}", page.0, at.0));
            }
        }
        Ok(self.map.iter().filter(|at| at.is_some()).count() as u64)
    }
}
