//! Collection: blocks are won back for the host.

use std::ops::Range;

use super::{Die, PageStore, Streams};
use crate::hints::{prefetch, prefetch_all};
use crate::parts::scan::move_tag;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Role};

/// How far ahead of a collection map entries are asked for: about the time of a memory access.
const PREFETCH_PAGES: usize = 32;

/// What a scheme hears of collections, and where it has a say in them.
pub trait Moves<F: Flash> {
    /// Whether [`Moves::moved`] does anything. If not, the pages of a victim move in one run.
    const HEARS_OF_EACH: bool = true;

    /// A page of the victim, which may be valid, is looked at soon: a place to ask for what [`Moves::moved`] needs.
    #[inline(always)]
    fn expects(&self, lpn: Lpn) {
        let _ = lpn;
    }

    /// `lpn` has been programmed at its new place; `done` is when.
    fn moved(&mut self, flash: &mut F, lpn: Lpn, to: Ppn, done: F::Token) {
        let _ = (flash, lpn, to, done);
    }

    /// The block to collect on a die; the policy's choice unless the scheme knows better.
    fn choose(&mut self, store: &mut PageStore, die: u32) -> Pbn {
        store.choose(die)
    }

    /// Collects a block with mapping pages (only schemes that have such blocks).
    ///
    /// # Errors
    /// Those of the flash.
    fn collect_map(
        &mut self,
        flash: &mut F,
        store: &mut PageStore,
        victim: Pbn,
    ) -> Result<(), F::Error> {
        let _ = (flash, store, victim);
        Ok(())
    }

    /// All valid pages of a data block have moved; it is erased next.
    ///
    /// # Errors
    /// Those of the flash.
    fn before_erase(&mut self, flash: &mut F, store: &mut PageStore) -> Result<(), F::Error> {
        let _ = (flash, store);
        Ok(())
    }
}

impl<F: Flash> Moves<F> for () {
    const HEARS_OF_EACH: bool = false;
}

/// Finds the valid pages of a block that begins at `first` and whose pages hold or held the logical pages `held`.
/// There must be `valid` of them.
fn gather(map: &[Ppn], held: &[Lpn], first: Ppn, valid: u32, moving: &mut Moving) {
    // The map entries of a block's pages lie anywhere: ask for them ahead of time.
    let soon = held.len().min(PREFETCH_PAGES);
    held[..soon]
        .iter()
        .for_each(|lpn| prefetch(map, lpn.index()));
    let (mut at, mut found) = (first, 0);
    // Which pages are valid follows no pattern, so there is no branch on it.
    let (from, lpns) = (
        &mut moving.from[..held.len()],
        &mut moving.lpns[..held.len()],
    );
    let mut take = |lpn: Lpn| {
        (from[found], lpns[found]) = (at, lpn);
        found += usize::from(map[lpn.index()] == at);
        at.0 += 1;
    };
    for stretch in held.windows(PREFETCH_PAGES + 1) {
        prefetch(map, stretch[PREFETCH_PAGES].index());
        take(stretch[0]);
    }
    held[held.len() - soon..].iter().for_each(|&lpn| take(lpn));
    assert_eq!(found as u32, valid, "valid pages of a block");
}

/// The valid pages of a block that is collected: scratch, as long as a block.
#[derive(Debug)]
pub(super) struct Moving {
    /// Where they lie.
    from: Vec<Ppn>,
    lpns: Vec<Lpn>,
}

impl Moving {
    pub(super) fn new(pages_per_block: u32) -> Self {
        Self {
            from: vec![Ppn::NONE; pages_per_block as usize],
            lpns: vec![Lpn::NONE; pages_per_block as usize],
        }
    }
}

impl PageStore {
    #[cold]
    #[inline(never)]
    pub(super) fn make_room<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        while self.dies[die as usize].pool.len() < self.options.gc_low {
            self.collect(flash, die, moves)?;
        }
        if !self.dies[die as usize].host.has_room() {
            self.dies[die as usize].host = self.open(die);
        }
        Ok(())
    }

    /// Collects one block of a die: valid pages move to the append point, the block is erased.
    fn collect<F: Flash, M: Moves<F>>(
        &mut self,
        flash: &mut F,
        die: u32,
        moves: &mut M,
    ) -> Result<(), F::Error> {
        let victim = moves.choose(self, die);
        if self.has_map_blocks && self.victims.is_second(victim) {
            return moves.collect_map(flash, self, victim);
        }
        let first = self.geometry.first_page(victim).index();
        let pages = self.geometry.pages_per_block as usize;
        prefetch_all(&self.page_at, first..first + pages);
        let valid = self.victims.valid(victim);
        self.victims.collecting(victim);
        if M::HEARS_OF_EACH {
            self.move_pages(flash, die, victim, valid, moves)?;
        } else {
            self.move_runs(flash, die, victim, valid)?;
        }
        moves.before_erase(flash, self)?;
        flash.erase(victim, Cause::Gc, F::Token::default())?;
        self.reclaimed(victim);
        Ok(())
    }

    /// The block to collect on a die by the policy.
    pub fn choose(&mut self, die: u32) -> Pbn {
        self.victims
            .choose(die, self.clock)
            .expect("the reserve leaves a block with an invalid page")
    }

    fn move_pages<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        victim: Pbn,
        valid: u32,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let (mut from, mut left) = (self.geometry.first_page(victim), valid);
        let end = from.index() + self.geometry.pages_per_block as usize;
        for at in from.index()..end.min(from.index() + PREFETCH_PAGES) {
            self.expect_page(at, moves);
        }
        while left > 0 {
            if from.index() + PREFETCH_PAGES < end {
                self.expect_page(from.index() + PREFETCH_PAGES, moves);
            }
            let lpn = self.page_at[from.index()];
            if self.map[lpn.index()] == from {
                left -= 1;
                let (role, tag) = (Role::Data, move_tag(left == 0, victim));
                self.move_page(flash, die, Oob { lpn, role, tag }, from, moves)?;
            }
            from.0 += 1;
        }
        Ok(())
    }

    /// The map entry of the page at a place is looked at soon.
    #[inline(always)]
    fn expect_page<F: Flash>(&self, at: usize, moves: &impl Moves<F>) {
        let lpn = self.page_at[at];
        prefetch(&self.map, lpn.index());
        moves.expects(lpn);
    }

    /// Moves the valid pages of `victim`, in as many runs of copies as the append points have room for.
    fn move_runs<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        victim: Pbn,
        valid: u32,
    ) -> Result<(), F::Error> {
        if valid == 0 {
            return Ok(());
        }
        let first = self.geometry.first_page(victim);
        let pages = self.geometry.pages_per_block as usize;
        let held = &self.page_at[first.index()..first.index() + pages];
        gather(&self.map, held, first, valid, &mut self.moving);
        self.moved += u64::from(valid);
        let mut done = 0;
        while done < valid as usize {
            done = self.move_run(flash, die, victim, done..valid as usize)?;
        }
        Ok(())
    }

    /// Moves as many of the gathered pages as the append point has room for. Returns the first one left.
    fn move_run<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        victim: Pbn,
        pages: Range<usize>,
    ) -> Result<usize, F::Error> {
        let shared = self.options.streams == Streams::Shared;
        let here = &self.dies[die as usize];
        let mut point = if shared { here.host } else { here.gc };
        if !point.has_room() {
            point = self.open(die);
        }
        let to = point.next;
        let end = pages.end.min(pages.start + (point.end - to) as usize);
        let lpns = &self.moving.lpns[pages.start..end];
        self.page_at[to as usize..to as usize + lpns.len()].copy_from_slice(lpns);
        for (to, lpn) in (to..).zip(lpns) {
            self.map[lpn.index()] = Ppn(to);
        }
        let oob_of = |i: usize| Oob {
            lpn: lpns[i],
            role: Role::Data,
            tag: move_tag(pages.start + i + 1 == pages.end, victim),
        };
        flash.copy_run(
            &self.moving.from[pages.start..end],
            Ppn(to),
            oob_of,
            Cause::Gc,
            F::Token::default(),
        )?;
        let moved = lpns.len() as u32;
        point.next += moved;
        self.clock += u64::from(moved);
        if !point.has_room() {
            let block = self.geometry.block_of(Ppn(to));
            self.victims.filled(block, self.clock);
        }
        let here = &mut self.dies[die as usize];
        *(if shared { &mut here.host } else { &mut here.gc }) = point;
        Ok(end)
    }

    #[inline]
    pub(super) fn move_page<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        oob: Oob,
        from: Ppn,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let shared = self.options.streams == Streams::Shared;
        let append = |dies: &[Die]| {
            if shared {
                dies[die as usize].host
            } else {
                dies[die as usize].gc
            }
        };
        if !append(&self.dies).has_room() {
            let fresh = self.open(die);
            let die = &mut self.dies[die as usize];
            *(if shared { &mut die.host } else { &mut die.gc }) = fresh;
        }
        let here = &mut self.dies[die as usize];
        let point = if shared { &mut here.host } else { &mut here.gc };
        let (to, full) = point.take();
        let done = flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
        self.now_at(oob.lpn, to, die, full);
        self.moved += 1;
        moves.moved(flash, oob.lpn, to, done);
        Ok(())
    }
}
