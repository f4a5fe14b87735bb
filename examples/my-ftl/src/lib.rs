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

use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Refusal, Run, Start, audited};
use floatgate_core::options::NoOptions;
use floatgate_core::report::{Observation, SchemeCounters, Table, bits_for};
use floatgate_core::{Cause, Flash, Geometry, Lpn, Oob, Pbn, Ppn, Role, Slot, Space};
use floatgate_schemes::parts::scan::{Depth, Rules, Scan, move_tag};

/// Blocks of a die beyond those that the logical pages fill: the head, one erased block, one to win space.
const RESERVE: u32 = 3;

/// One die's ring.
#[derive(Debug)]
pub struct Ring {
    space: Space,
    map: Vec<Ppn>,
    page_at: Vec<Lpn>,
    /// Block in which the next page goes, by its index on the die.
    head: u32,
    /// Erased blocks after it.
    erased: u32,
    /// Blocks that the tail has passed so far.
    collected: u64,
}

impl Ring {
    /// A ring of erased blocks.
    fn empty(space: &Space) -> Result<Self, Refusal> {
        let logical = space.logical_blocks();
        space.need_blocks(&[("data blocks", logical), ("reserve", RESERVE)])?;
        let pages = space.geometry.pages_per_block;
        Ok(Self {
            map: vec![Ppn::NONE; space.logical_pages() as usize],
            page_at: vec![Lpn::NONE; (space.blocks() * pages) as usize],
            head: 0,
            erased: space.blocks() - 1,
            collected: 0,
            space: space.clone(),
        })
    }

    /// Fills the tables from what the flash holds, and finds the head.
    fn scan<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let mut scan = Scan::read(&self.space, 0, Depth::UpToErased, flash)?;
        self.map = scan.newest(Rules::Moves).place;
        let blank = scan.erase_useless(flash)?;
        for (block, _) in scan.blocks() {
            for (position, lpn, _) in scan.pages_of(block) {
                let local = self.local(self.space.geometry.ppn(block, position));
                self.page_at[local] = lpn;
            }
        }
        let in_use = scan.blocks().filter(|(_, found)| found.valid > 0);
        if let Some((head, _)) = in_use.max_by_key(|(_, found)| found.last) {
            self.head = head.0 - self.block(0).0;
            let after = (1..self.space.blocks()).map(|i| self.block(self.head + i));
            self.erased = after.take_while(|block| blank.contains(block)).count() as u32;
        }
        Ok(())
    }

    fn block(&self, index: u32) -> Pbn {
        self.space.geometry.pbn(
            self.space.first_die,
            index % self.space.geometry.blocks_per_die,
        )
    }

    /// Index of a physical page in this die's tables.
    fn local(&self, ppn: Ppn) -> usize {
        ppn.index() - self.space.geometry.first_page(self.block(0)).index()
    }

    /// The next page of the ring, after room has been made for it.
    fn next<F: Flash>(&mut self, flash: &F) -> Ppn {
        let pages = self.space.geometry.pages_per_block;
        if flash.ledger().write_pointer(self.block(self.head)) == pages {
            self.head = (self.head + 1) % self.space.geometry.blocks_per_die;
            self.erased -= 1;
        }
        let block = self.block(self.head);
        self.space
            .geometry
            .ppn(block, flash.ledger().write_pointer(block))
    }

    fn now_at(&mut self, lpn: Lpn, at: Ppn) {
        let local = self.local(at);
        self.map[lpn.index()] = at;
        self.page_at[local] = lpn;
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
    ) -> Result<(), F::Error> {
        while self.erased < 2 {
            self.collect_tail(flash)?;
        }
        let to = self.next(flash);
        let oob = Oob::new(self.space.device_lpn(lpn), Role::Data);
        flash.program_host(slot, to, oob, F::Token::default())?;
        self.now_at(lpn, to);
        Ok(())
    }

    fn collect_tail<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        // The tail is the first block after the erased ones.
        let tail = self.block(self.head + self.erased + 1);
        let pages = 0..self.space.geometry.pages_per_block;
        let valid = |ring: &Self, page| {
            let from = ring.space.geometry.ppn(tail, page);
            let lpn = ring.page_at[ring.local(from)];
            (lpn.is_some() && ring.map[lpn.index()] == from).then_some((from, lpn))
        };
        let last = pages
            .clone()
            .rev()
            .find(|&page| valid(self, page).is_some());
        for page in pages {
            let Some((from, lpn)) = valid(self, page) else {
                continue;
            };
            let to = self.next(flash);
            // After a power cut the tag tells whether the collection was finished.
            let oob = Oob {
                lpn: self.space.device_lpn(lpn),
                role: Role::Data,
                tag: move_tag(Some(page) == last, tail),
            };
            flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
            self.now_at(lpn, to);
        }
        flash.erase(tail, Cause::Gc, F::Token::default())?;
        self.erased += 1;
        self.collected += 1;
        Ok(())
    }
}

impl Ftl for Ring {
    const KEY: &'static str = "ring";
    const TITLE: &'static str = "Ring";
    const SUMMARY: &'static str = "a log that runs round the die: a template";
    const SOURCE: &'static str = "yours";
    type Options = NoOptions;

    fn ram_bytes(geometry: &Geometry, _: &NoOptions) -> u64 {
        4 * (u64::from(geometry.logical_pages) + u64::from(geometry.pages()))
    }

    fn tables(geometry: &Geometry, _: &NoOptions) -> Vec<Table> {
        let pages = u64::from(geometry.logical_pages);
        vec![Table::sram("page map", pages, bits_for(pages))]
    }

    fn format<F: Flash>(
        space: &Space,
        _: &NoOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, Refusal> {
        let mut ring = Self::empty(space)?;
        let logical = space.logical_blocks();
        let pages = space.geometry.pages_per_block;
        if start == Start::Full {
            for index in 0..logical {
                let block = ring.block(index);
                flash.preload(block, pages, Role::Data, &mut |o| {
                    space.device_lpn(Lpn(index * pages + o))
                });
                for o in 0..pages {
                    ring.now_at(Lpn(index * pages + o), space.geometry.ppn(block, o));
                }
            }
            ring.head = logical - 1;
            ring.erased = space.blocks() - logical;
        }
        Ok(ring)
    }

    fn recover<F: Flash>(
        space: &Space,
        _: &NoOptions,
        _means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut ring = Self::empty(space)?;
        ring.scan(flash).map_err(MountError::Flash)?;
        audited(ring, flash)
    }

    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        run.iter()
            .try_for_each(|(lpn, slot)| self.write_page(flash, slot, lpn))
    }

    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        for (lpn, slot) in run.iter() {
            let at = self.map[lpn.index()];
            if at.is_none() {
                flash.absent(slot, F::Token::default());
            } else {
                flash.read_host(slot, at, F::Token::default())?;
            }
        }
        Ok(())
    }

    fn trim<F: Flash>(&mut self, _: &mut F, run: &Run) -> Result<(), F::Error> {
        run.iter()
            .for_each(|(lpn, _)| self.map[lpn.index()] = Ppn::NONE);
        Ok(())
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters::default();
        counters.extra("collected", self.collected);
        counters
    }

    fn reset_counters(&mut self) {
        self.collected = 0;
    }

    fn observe(&self, seen: &mut Observation) {
        seen.sum("erased_blocks", self.erased.into());
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let live: Vec<usize> = (0..self.map.len())
            .filter(|&lpn| self.map[lpn].is_some())
            .collect();
        for &lpn in &live {
            let at = self.map[lpn];
            if !flash.ledger().is_programmed(at) || self.page_at[self.local(at)] != Lpn(lpn as u32)
            {
                return Err(format!("live page {lpn} is not at {}", at.0));
            }
        }
        Ok(live.len() as u64)
    }
}
