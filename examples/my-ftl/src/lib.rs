//! `ring`: a log that runs round the blocks of a die.
//!
//! **Paper.** None: a template. Rosenblum and Ousterhout's log-structured file system (1992) is its ancestor.
//!
//! **RAM state.** A page table; for each physical page the logical page written there.
//!
//! **Flash state.** Blocks filled in order, one after the other, round the die. OOB: LPN, role data.
//!
//! **How it writes, reads, reclaims.** A page goes to the head of the ring. When fewer than two blocks are
//! erased, the block at the tail is collected: its valid pages move to the head, whatever their number.
//! Written for one die; `Striped` runs one instance a die.
//!
//! **Recovery.** By a scan of all OOBs: the newest copy of a page wins. The head is the block with the youngest page. A
//! block that holds nothing but copies of an unfinished collection is given up, since all their sources stand: so there is
//! always an erased block after the head, and the collection begins again.
//!
//! **Deviations and why.** No hot and cold data: every page is carried round, however cold. Improving on that is
//! left to the reader.

use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start, audited};
use floatgate_core::options::NoOptions;
use floatgate_core::report::{Table, bits_for};
use floatgate_core::{Described, DieLpn, Geometry, Pbn, Ppn, Refusal, Space};
use floatgate_schemes::parts::scan::{Depth, Rules, Scan, move_tag};
use floatgate_schemes::parts::start;

/// Blocks of a die beyond those that the logical pages fill: the head, one erased block, one to win space.
const RESERVE: u32 = 3;

/// One die's ring.
#[derive(Debug)]
pub struct Ring {
    space: Space,
    map: Vec<Ppn>,
    /// By physical page of the die: the logical page written there.
    page_at: Vec<DieLpn>,
    /// Block in which the next page goes, by its index on the die.
    head: u32,
    /// Erased blocks after it.
    erased: u32,
}

impl Ring {
    /// A ring of erased blocks.
    fn empty(space: &Space) -> Result<Self, Refusal> {
        let logical = space.logical_blocks();
        space.need_blocks(&[("data blocks", logical), ("reserve", RESERVE)])?;
        let pages = space.geometry.pages_per_block;
        Ok(Self {
            map: vec![Ppn::NONE; space.logical_pages() as usize],
            page_at: vec![DieLpn::NONE; (space.blocks() * pages) as usize],
            head: 0,
            erased: space.blocks() - 1,
            space: space.clone(),
        })
    }

    /// Fills the tables from what the flash holds, and finds the head.
    fn scan<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let mut scan = Scan::read(&self.space, 0, Depth::UpToErased, flash)?;
        let newest = scan.newest(Rules::Moves);
        self.adopt(newest.place);
        let blank = scan.erase_useless(flash)?;
        let in_use = scan.blocks().filter(|(_, found)| found.valid > 0);
        if let Some((head, _)) = in_use.max_by_key(|(_, found)| found.last) {
            self.head = head.0 - self.block(0).0;
            let after = (1..self.space.blocks()).map(|i| self.block(self.head + i));
            self.erased = after.take_while(|block| blank.contains(block)).count() as u32;
        }
        Ok(())
    }

    /// Takes over where every page lies.
    fn adopt(&mut self, map: Vec<Ppn>) {
        for (page, &at) in (0..).map(DieLpn).zip(&map).filter(|(_, at)| at.is_some()) {
            let local = self.local(at);
            self.page_at[local] = page;
        }
        self.map = map;
    }

    fn block(&self, index: u32) -> Pbn {
        let blocks = self.space.geometry.blocks_per_die;
        self.space
            .geometry
            .pbn(self.space.first_die, index % blocks)
    }

    /// Index of a physical page in this die's tables.
    fn local(&self, at: Ppn) -> usize {
        at.index() - self.space.geometry.first_page(self.block(0)).index()
    }

    /// The next page of the ring, after room has been made for it.
    fn next<F: Flash>(&mut self, flash: &F) -> Ppn {
        if flash.ledger().write_pointer(self.block(self.head))
            == self.space.geometry.pages_per_block
        {
            self.head = (self.head + 1) % self.space.geometry.blocks_per_die;
            self.erased -= 1;
        }
        let block = self.block(self.head);
        self.space
            .geometry
            .ppn(block, flash.ledger().write_pointer(block))
    }

    fn now_at(&mut self, page: DieLpn, at: Ppn) {
        let local = self.local(at);
        self.map[page.index()] = at;
        self.page_at[local] = page;
    }

    /// The logical page whose newest copy lies there, if one does.
    fn valid_at(&self, at: Ppn) -> Option<DieLpn> {
        let page = self.page_at[self.local(at)];
        (page.is_some() && self.map[page.index()] == at).then_some(page)
    }

    fn collect_tail<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        // The tail is the first block after the erased ones.
        let tail = self.block(self.head + self.erased + 1);
        let pages =
            (0..self.space.geometry.pages_per_block).map(|i| self.space.geometry.ppn(tail, i));
        let valid: Vec<(Ppn, DieLpn)> = pages
            .filter_map(|at| Some((at, self.valid_at(at)?)))
            .collect();
        for (i, &(from, page)) in valid.iter().enumerate() {
            let to = self.next(flash);
            // After a power cut the tag tells whether the collection was finished.
            let tag = move_tag(i + 1 == valid.len(), tail);
            let oob = Oob::new(self.space.device_lpn(page), Role::Data).tagged(tag);
            flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
            self.now_at(page, to);
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
    type Options = NoOptions;

    fn tables(geometry: &Geometry, _: &NoOptions) -> Vec<Table> {
        let pages = u64::from(geometry.logical_pages);
        vec![Table::sram("page map", pages, bits_for(pages))]
    }
}

impl Ftl for Ring {
    type Page = DieLpn;

    fn format<F: Preload>(
        space: &Space,
        _: &NoOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut ring = Self::empty(space)?;
        if start == Start::Full {
            let mut map = ring.map.clone();
            start::fill(space, flash, &mut map, |_, _| ()).map_err(MountError::Flash)?;
            ring.adopt(map);
            ring.head = space.logical_blocks() - 1;
            ring.erased = space.blocks() - space.logical_blocks();
        }
        Ok(ring)
    }

    fn recover<F: Flash>(
        space: &Space,
        _: &NoOptions,
        _: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut ring = Self::empty(space)?;
        ring.scan(flash).map_err(MountError::Flash)?;
        audited(ring, flash)
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        while self.erased < 2 {
            self.collect_tail(flash)?;
        }
        let to = self.next(flash);
        let oob = Oob::new(self.space.device_lpn(page), Role::Data);
        flash.program_host(slot, to, oob, F::Token::default())?;
        self.now_at(page, to);
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
        } else {
            flash.read_host(slot, at, F::Token::default())?;
        }
        Ok(())
    }

    fn trim_page<F: Flash>(&mut self, _: &mut F, page: DieLpn, _: Slot) -> Result<(), F::Error> {
        self.map[page.index()] = Ppn::NONE;
        Ok(())
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let live = || {
            (0..)
                .map(DieLpn)
                .zip(&self.map)
                .filter(|(_, at)| at.is_some())
        };
        match live().find(|&(page, &at)| {
            !flash.ledger().is_programmed(at) || self.valid_at(at) != Some(page)
        }) {
            Some((page, at)) => Err(format!("live page {} is not at {}", page.0, at.0)),
            None => Ok(live().count() as u64),
        }
    }
}
