//! `superblock`: adjacent logical blocks share a few physical blocks, page-mapped among each other.
//!
//! **Paper.** Kang, Jo, Kim, Lee, "A Superblock-Based Flash Translation Layer for NAND Flash Memory", EMSOFT
//! 2006; as LAST (section 2.3), LAST++ (section 3) and BLogFTL (section 2.3) describe it.
//!
//! **RAM state.** For each superblock the list of its physical blocks, the open one among them, and whose turn
//! it is when log blocks run out; the PGD. This program also keeps the whole page map in memory, as a
//! cache of what the OOBs say.
//!
//! **Flash state.** Blocks filled strictly in order with pages of one superblock. The first blocks of a superblock's
//! list are its D-blocks (data), the rest its U-blocks (log): a role is a place in the list. OOB: LPN, sequence
//! number, role at the time of the program, and in the scheme's own bytes the PMD and the PTEs that the program
//! changed (layout: [`OobTables`]).
//!
//! **How it writes, reads, reclaims.** Pages go to the superblock's open block; without one it takes a fresh
//! block while it may have more U-blocks and the pool lasts. Otherwise a superblock is collected: itself, if it has
//! its most U-blocks, or the one written longest ago. A collection erases a dead block, or copies the emptiest
//! block into the open one, or merges a U-block with the D-blocks of the same logical blocks into fresh
//! blocks, cold pages first. Every translation reads OOBs: a host write, and a read of a live page.
//!
//! **Recovery.** Full OOB scan: newest sequence number per page; a block belongs to the superblock of its pages; the
//! list is in the order of the blocks' first sequence numbers.
//!
//! **Deviations and why.** The papers at hand leave open which superblock gives way when the pool is used up (here:
//! one with a dead block, then the one written longest ago) and how many blocks a full merge writes
//! (here: as few as hold the pages, since inside a superblock any page may lie anywhere).

use crate::address::{Divisor, Lpn, Pbn, Ppn};
use crate::flash::{Cause, Flash, Oob, Role, Slot};
use crate::ftl::{Ftl, Refusal, Run, Start};
use crate::geometry::{Geometry, Space};
use crate::options;
use crate::parts::lists::Lists;
use crate::parts::oob_tables::OobTables;
use crate::parts::pool::Pool;
use crate::report::{Combine, Memory, Merges, Observation, SchemeCounters, Table};

options! {
    /// Options of `superblock`.
    pub struct SuperblockOptions {
        /// U-blocks of the whole device, divided by the dies; at least 1 a die.
        log_blocks: Option<u32> ["blocks, device"] = None, shown "required";
        /// Logical blocks of a superblock (N).
        superblock_blocks: u32 ["blocks"] = 4;
        /// Most U-blocks of a superblock (M).
        extra_blocks: u32 ["blocks"] = 2;
        /// OOB reads of one translation.
        oob_reads_per_access: u32 ["OOB reads"] = 2;
    }
}

/// More OOB reads a translation than any map in OOBs could need.
const OOB_READS_MAX: u32 = 1_000;

#[derive(Clone, Copy, Default, Debug)]
struct Block {
    valid: u32,
    programmed: u32,
    /// Host pages programmed while it was a U-block.
    log_pages: u32,
    /// Whether it is a U-block.
    log: bool,
    /// Whether the full merge in work takes it apart.
    in_set: bool,
}

#[derive(Clone, Copy, Debug)]
struct Super {
    open: Pbn,
    /// U-blocks.
    logs: u32,
    /// Blocks without a valid page.
    dead: u32,
    /// Whether it has U-blocks and a dead block: it gives way before others.
    easy: bool,
}

/// One instance of Superblock FTL.
#[derive(Debug)]
pub struct Superblock {
    space: Space,
    options: SuperblockOptions,
    by_superblock: Divisor,
    log_blocks: u32,
    newest: Vec<Ppn>,
    /// By physical block of the die.
    blocks: Vec<Block>,
    supers: Vec<Super>,
    /// The physical blocks of each superblock, D-blocks first.
    lists: Lists,
    /// Superblocks with U-blocks, the one written longest ago first.
    recent: Lists,
    /// Superblocks that are `easy`.
    easy: u32,
    logs_in_use: u32,
    pool: Pool,
    tables: OobTables,
    merges: Merges,
    data_pages: u64,
    log_pages: u64,
    /// Scratch of a full merge.
    fresh: Vec<Pbn>,
    set: Vec<Pbn>,
}

impl Superblock {
    #[inline(always)]
    fn pages_per_block(&self) -> u32 {
        self.space.geometry.pages_per_block
    }

    /// Index of a block inside the die.
    #[inline(always)]
    fn index(&self, block: Pbn) -> usize {
        (block.0 - self.first_block()) as usize
    }

    #[inline(always)]
    fn first_block(&self) -> u32 {
        self.space.first_die * self.space.geometry.blocks_per_die
    }

    #[inline(always)]
    fn index_at(&self, at: Ppn) -> usize {
        self.index(self.space.geometry.block_of(at))
    }

    /// Logical blocks of a superblock.
    fn logical(&self, s: u32) -> std::ops::Range<u32> {
        let n = self.options.superblock_blocks;
        s * n..(s * n).saturating_add(n).min(self.space.logical_blocks())
    }

    /// Local pages of a superblock.
    fn pages(&self, s: u32) -> std::ops::Range<u32> {
        let (logical, pages) = (self.logical(s), self.pages_per_block());
        logical.start * pages..logical.end * pages
    }

    /// The blocks of a superblock in the order of its list.
    fn blocks_of(&self, s: u32) -> impl Iterator<Item = Pbn> + '_ {
        let first = self.first_block();
        self.lists.iter(s as usize).map(move |b| Pbn(first + b))
    }

    // ---- host pages -------------------------------------------------------------------------------

    #[inline]
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
    ) -> Result<(), F::Error> {
        let translated = self.translate(flash, lpn)?;
        let (l, o) = self.space.geometry.by_pages().div_rem(lpn.0);
        let s = self.by_superblock.div(l);
        self.make_room(flash, s)?;
        let open = self.supers[s as usize].open;
        let block = self.index(open);
        let log = self.blocks[block].log;
        let (role, pages) = if log {
            (Role::Log, &mut self.log_pages)
        } else {
            (Role::Data, &mut self.data_pages)
        };
        *pages += 1;
        self.blocks[block].log_pages += u32::from(log);
        let position = flash.written(open);
        let to = self.space.geometry.ppn(open, position);
        self.bear_tables(flash, l, o, to);
        let oob = Oob::new(self.space.device_lpn(lpn), role);
        flash.host_program(slot, to, oob, translated)?;
        self.placed(s, lpn, l, o, to);
        if position + 1 == self.pages_per_block() {
            self.supers[s as usize].open = Pbn::NONE;
        }
        if self.supers[s as usize].logs > 0 {
            self.recent.move_to_back(0, s);
        }
        Ok(())
    }

    /// The OOB reads of one translation: PMD, PTEs, and again where more are asked for.
    #[inline]
    fn translate<F: Flash>(&self, flash: &mut F, lpn: Lpn) -> Result<F::Token, F::Error> {
        let (l, o) = self.space.geometry.by_pages().div_rem(lpn.0);
        let (pmd, pte) = self.tables.places(l, o);
        // What no program has put into an OOB yet is looked for where the page itself lies, if anywhere.
        let newest = self.newest[lpn.index()];
        let page = if newest.is_some() {
            newest
        } else {
            self.space.geometry.first_page(Pbn(self.first_block()))
        };
        let mut done = F::Token::default();
        for read in 0..self.options.oob_reads_per_access {
            let table = if read % 2 == 0 { pmd } else { pte };
            let from = if table.is_some() { table } else { page };
            (_, done) = flash.read_oob(from, Cause::Map, done)?;
        }
        Ok(done)
    }

    #[inline]
    fn read_page<F: Flash>(&mut self, flash: &mut F, slot: Slot, lpn: Lpn) -> Result<(), F::Error> {
        let at = self.newest[lpn.index()];
        if at.is_none() {
            flash.host_unwritten(slot, F::Token::default());
            return Ok(());
        }
        let translated = self.translate(flash, lpn)?;
        flash.host_read(slot, at, translated)?;
        Ok(())
    }

    #[inline(always)]
    fn bear_tables<F: Flash>(&self, flash: &mut F, l: u32, o: u32, to: Ppn) {
        let pages = self.pages_per_block() as usize;
        let first = l as usize * pages;
        self.tables
            .bear(flash, l, o, to, &self.newest[first..first + pages]);
    }

    /// A page has been programmed at `to`.
    #[inline]
    fn placed(&mut self, s: u32, lpn: Lpn, l: u32, o: u32, to: Ppn) {
        self.tables.programmed(l, o, to);
        let block = self.index_at(to);
        self.blocks[block].programmed += 1;
        self.move_newest(s, lpn, to);
    }

    /// The one place where the newest version of a page moves.
    #[inline]
    fn move_newest(&mut self, s: u32, lpn: Lpn, to: Ppn) {
        let from = std::mem::replace(&mut self.newest[lpn.index()], to);
        if to.is_some() {
            let block = self.index_at(to);
            self.blocks[block].valid += 1;
            if self.blocks[block].valid == 1 {
                self.supers[s as usize].dead -= 1;
                self.judge(s);
            }
        }
        if from.is_some() {
            let block = self.index_at(from);
            self.blocks[block].valid -= 1;
            if self.blocks[block].valid == 0 {
                self.supers[s as usize].dead += 1;
                self.judge(s);
            }
        }
    }

    /// Whether a superblock is `easy` may have changed.
    fn judge(&mut self, s: u32) {
        let one = &mut self.supers[s as usize];
        let easy = one.logs > 0 && one.dead > 0;
        self.easy = self.easy - u32::from(one.easy) + u32::from(easy);
        one.easy = easy;
    }

    // ---- blocks of a superblock ----------------------------------------------------------------------

    /// Sees to it that a superblock has an open block.
    #[inline]
    fn make_room<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<(), F::Error> {
        while self.supers[s as usize].open.is_none() {
            let logs = self.supers[s as usize].logs;
            if self.lists.len(s as usize) < self.logical(s).len() as u32 {
                self.open_block(s);
            } else if logs >= self.options.extra_blocks {
                self.collect(flash, s)?;
            } else if self.logs_in_use < self.log_blocks {
                self.open_block(s);
            } else {
                let victim = self.victim();
                self.collect(flash, victim)?;
            }
        }
        Ok(())
    }

    /// A fresh block at the end of a superblock's list.
    fn open_block(&mut self, s: u32) {
        let block = self.take_block(s);
        self.lists.push_back(s as usize, self.index(block) as u32);
        self.supers[s as usize].open = block;
        self.settle(s);
    }

    /// A free block for a superblock; it counts as dead until its first page.
    fn take_block(&mut self, s: u32) -> Pbn {
        let block = self.pool.take();
        let at = self.index(block);
        self.blocks[at] = Block::default();
        self.supers[s as usize].dead += 1;
        block
    }

    /// The superblock that gives way when the pool of U-blocks is used up.
    fn victim(&self) -> u32 {
        let mut recent = self.recent.iter(0);
        let easy = |&s: &u32| self.supers[s as usize].easy;
        let victim = if self.easy > 0 {
            recent.find(easy)
        } else {
            recent.next()
        };
        victim.expect("someone has the U-blocks of the pool")
    }

    /// Gives every block of a superblock the role of its place, and counts its U-blocks.
    fn settle(&mut self, s: u32) {
        let data_blocks = self.logical(s).len() as u32;
        let mut next = self.lists.first(s as usize);
        let mut place = 0;
        while let Some(b) = next {
            let block = &mut self.blocks[b as usize];
            let log = place >= data_blocks;
            if block.log && !log {
                self.merges.log_reclaimed += 1;
                self.merges.log_pages_used += u64::from(std::mem::take(&mut block.log_pages));
            }
            block.log = log;
            place += 1;
            next = self.lists.next(b);
        }
        let logs = place.saturating_sub(data_blocks);
        self.logs_in_use = self.logs_in_use - self.supers[s as usize].logs + logs;
        self.supers[s as usize].logs = logs;
        if logs == 0 {
            self.recent.remove(s);
        } else if self.recent.list_of(s).is_none() {
            self.recent.push_back(0, s);
        }
        self.judge(s);
    }

    /// The block with the fewest valid pages among those that `which` allows, the first of equal ones.
    fn emptiest(&self, s: u32, which: impl Fn(Pbn, &Block) -> bool) -> Option<Pbn> {
        self.blocks_of(s)
            .filter(|&b| which(b, &self.blocks[self.index(b)]))
            .min_by_key(|&b| self.blocks[self.index(b)].valid)
    }

    // ---- collections -----------------------------------------------------------------------------

    /// Wins a block from a superblock that has U-blocks.
    fn collect<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<(), F::Error> {
        if self.supers[s as usize].dead > 0 {
            self.collect_dead(flash, s)?;
        } else if !self.collect_partial(flash, s)? {
            self.collect_full(flash, s)?;
        }
        self.settle(s);
        Ok(())
    }

    fn collect_dead<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<(), F::Error> {
        let dead = self.emptiest(s, |_, block| block.valid == 0);
        let dead = dead.expect("a block without a valid page");
        if self.blocks[self.index(dead)].log {
            self.merges.dead += 1;
            self.merges.erases_dead += 1;
        } else {
            self.merges.switch += 1;
            self.merges.erases_switch += 1;
        }
        self.erase(flash, s, dead)
    }

    /// Copies the emptiest block into the open one, if there is one and it has the room.
    fn collect_partial<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<bool, F::Error> {
        let open = self.supers[s as usize].open;
        if open.is_none() {
            return Ok(false);
        }
        let victim = self.emptiest(s, |b, _| b != open);
        let victim = victim.expect("more blocks than the open one");
        let at = self.index(victim);
        let mut left = self.blocks[at].valid;
        let mut position = flash.written(open);
        if left > self.pages_per_block() - position {
            return Ok(false);
        }
        self.merges.partial += 1;
        self.merges.copies_partial += u64::from(left);
        self.merges.erases_partial += 1;
        let mut pages = self.pages(s);
        while left > 0 {
            let lpn = Lpn(pages
                .next()
                .expect("a valid page for each that was counted"));
            let from = self.newest[lpn.index()];
            if from.is_some() && self.index_at(from) == at {
                self.copy(flash, s, lpn, self.space.geometry.ppn(open, position))?;
                position += 1;
                left -= 1;
            }
        }
        if position == self.pages_per_block() {
            self.supers[s as usize].open = Pbn::NONE;
        }
        self.erase(flash, s, victim)?;
        Ok(true)
    }

    /// Takes the emptiest U-block apart, with the D-blocks of its logical blocks and as many more as it takes
    /// to win a block.
    fn collect_full<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<(), F::Error> {
        let victim = self.emptiest(s, |_, block| block.log);
        let victim = victim.expect("a U-block");
        let associated = self.mark_associated(s, victim);
        self.merges.count_full(associated);
        let pages = self.pages_per_block();
        let (mut size, mut valid) = (0, 0);
        for b in self.lists.iter(s as usize) {
            let block = &self.blocks[b as usize];
            size += u32::from(block.in_set);
            valid += if block.in_set { block.valid } else { 0 };
        }
        while valid.div_ceil(pages) > size - 1 {
            let more = self.emptiest(s, |_, block| !block.in_set);
            let more = more.expect("the whole superblock gives a block");
            let at = self.index(more);
            self.blocks[at].in_set = true;
            size += 1;
            valid += self.blocks[at].valid;
        }
        self.merges.copies_full += u64::from(valid);
        self.merges.erases_full += u64::from(size);
        self.rewrite_set(flash, s, valid.div_ceil(pages))
    }

    /// Puts a U-block and the D-blocks of its logical blocks into the set; returns the number of these.
    fn mark_associated(&mut self, s: u32, victim: Pbn) -> usize {
        let victim = self.index(victim);
        self.blocks[victim].in_set = true;
        let pages = self.pages_per_block();
        let mut associated = 0;
        for l in self.logical(s) {
            let newest = (l * pages) as usize..((l + 1) * pages) as usize;
            let live = |at: &&Ppn| at.is_some();
            let in_victim = |&at: &Ppn| self.index_at(at) == victim;
            if !self.newest[newest.clone()]
                .iter()
                .filter(live)
                .any(in_victim)
            {
                continue;
            }
            associated += 1;
            for lpn in newest {
                let at = self.newest[lpn];
                if at.is_some() {
                    let block = self.index_at(at);
                    self.blocks[block].in_set |= !self.blocks[block].log;
                }
            }
        }
        associated
    }

    /// Copies the pages of the set into `count` fresh blocks, those of D-blocks first, and erases the set.
    fn rewrite_set<F: Flash>(&mut self, flash: &mut F, s: u32, count: u32) -> Result<(), F::Error> {
        let pages = self.pages_per_block();
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.clear();
        for _ in 0..count {
            fresh.push(self.take_block(s));
        }
        let mut copied = 0;
        for log in [false, true] {
            for lpn in self.pages(s).map(Lpn) {
                let from = self.newest[lpn.index()];
                if from.is_none() {
                    continue;
                }
                let block = &self.blocks[self.index_at(from)];
                if block.in_set && block.log == log {
                    let to = fresh[(copied / pages) as usize];
                    self.copy(flash, s, lpn, self.space.geometry.ppn(to, copied % pages))?;
                    copied += 1;
                }
            }
        }
        let mut set = std::mem::take(&mut self.set);
        set.clear();
        set.extend(
            self.blocks_of(s)
                .filter(|&b| self.blocks[self.index(b)].in_set),
        );
        for &block in &set {
            self.erase(flash, s, block)?;
        }
        for &block in fresh.iter().rev() {
            self.lists.push_front(s as usize, self.index(block) as u32);
        }
        if self.supers[s as usize].open.is_none() && copied % pages != 0 {
            self.supers[s as usize].open = *fresh.last().expect("at least one fresh block");
        }
        self.set = set;
        self.fresh = fresh;
        Ok(())
    }

    fn copy<F: Flash>(&mut self, flash: &mut F, s: u32, lpn: Lpn, to: Ppn) -> Result<(), F::Error> {
        let (l, o) = self.space.geometry.by_pages().div_rem(lpn.0);
        let role = if self.blocks[self.index_at(to)].log {
            Role::Log
        } else {
            Role::Data
        };
        self.bear_tables(flash, l, o, to);
        let oob = Oob::new(self.space.device_lpn(lpn), role);
        let from = self.newest[lpn.index()];
        flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
        self.placed(s, lpn, l, o, to);
        Ok(())
    }

    /// Erases a block without a valid page and takes it out of its superblock.
    fn erase<F: Flash>(&mut self, flash: &mut F, s: u32, block: Pbn) -> Result<(), F::Error> {
        let at = self.index(block);
        let Block {
            valid,
            programmed,
            log_pages,
            log,
            ..
        } = std::mem::take(&mut self.blocks[at]);
        debug_assert_eq!(valid, 0, "erase of a block with valid pages");
        let wasted = u64::from(self.pages_per_block() - programmed);
        if log {
            self.merges.log_reclaimed += 1;
            self.merges.log_pages_used += u64::from(log_pages);
            self.merges.wasted_log_pages += wasted;
        } else {
            self.merges.wasted_data_pages += wasted;
        }
        let logical = self.logical(s);
        self.tables.erased(block, logical);
        self.lists.remove(at as u32);
        let one = &mut self.supers[s as usize];
        one.dead -= 1;
        if one.open == block {
            one.open = Pbn::NONE;
        }
        flash.erase(block, Cause::Gc, F::Token::default())?;
        self.pool.give(block);
        Ok(())
    }

    // ---- start and checks ----------------------------------------------------------------------------

    /// Every logical block whole and valid in the physical block of the same number.
    fn fill<F: Flash>(&mut self, flash: &mut F) {
        let pages = self.pages_per_block();
        for l in 0..self.space.logical_blocks() {
            let block = Pbn(self.first_block() + l);
            for o in 0..pages {
                self.newest[(l * pages + o) as usize] = self.space.geometry.ppn(block, o);
            }
            self.blocks[l as usize] = Block {
                valid: pages,
                programmed: pages,
                ..Block::default()
            };
            let s = self.by_superblock.div(l);
            self.lists.push_back(s as usize, l);
            let space = &self.space;
            flash.preload(block, pages, Role::Data, &mut |o| {
                space.device_lpn(Lpn(l * pages + o))
            });
        }
    }

    /// Valid pages over programmed pages of the D-blocks or of the U-blocks; 0 without a page.
    fn utilisation(&self, log: bool) -> f64 {
        let of_kind = self.blocks.iter().filter(|block| block.log == log);
        let (valid, programmed) = of_kind.fold((0, 0), |(v, p), block| {
            (v + u64::from(block.valid), p + u64::from(block.programmed))
        });
        valid as f64 / programmed.max(1) as f64
    }

    fn audit_superblock<F: Flash>(&self, flash: &F, s: u32) -> Result<(), String> {
        let one = &self.supers[s as usize];
        let data_blocks = self.logical(s).len();
        let (mut logs, mut dead) = (0, 0);
        for (place, block) in self.blocks_of(s).enumerate() {
            let entry = &self.blocks[self.index(block)];
            logs += u32::from(entry.log);
            dead += u32::from(entry.valid == 0);
            if entry.log != (place >= data_blocks) {
                return Err(format!(
                    "block {} at place {place} has the wrong role",
                    block.0
                ));
            }
            if entry.in_set || entry.programmed != flash.programmed(block) {
                return Err(format!("the entry of block {} is wrong", block.0));
            }
        }
        if (logs, dead) != (one.logs, one.dead) || one.easy != (logs > 0 && dead > 0) {
            return Err(format!(
                "superblock {s} counts {one:?} of {logs} U-blocks, {dead} dead"
            ));
        }
        if logs > self.options.extra_blocks {
            return Err(format!("superblock {s} has {logs} U-blocks"));
        }
        if (logs > 0) != self.recent.list_of(s).is_some() {
            return Err(format!("superblock {s} is wrongly in or out of turn"));
        }
        let open = one.open;
        let in_list = |b: Pbn| self.lists.list_of(self.index(b) as u32) == Some(s as usize);
        if open.is_some() && (!in_list(open) || flash.written(open) == self.pages_per_block()) {
            return Err(format!(
                "the open block {} of superblock {s} is none",
                open.0
            ));
        }
        Ok(())
    }

    /// The sizes and thresholds of this moment.
    fn observe_state(&self, seen: &mut Observation) {
        seen.sum("u_blocks", f64::from(self.logs_in_use));
        seen.sum("superblocks_with_u_blocks", f64::from(self.recent.len(0)));
        seen.sum("superblocks_with_dead_blocks", f64::from(self.easy));
        seen.mean("d_utilisation", self.utilisation(false));
        seen.mean("u_utilisation", self.utilisation(true));
    }
}

impl Ftl for Superblock {
    const KEY: &'static str = "superblock";
    const TITLE: &'static str = "Superblock FTL";
    const SUMMARY: &'static str =
        "adjacent logical blocks page-mapped in blocks of their own, the map in OOBs";
    const SOURCE: &'static str = "Kang et al., EMSOFT 2006";
    type Options = SuperblockOptions;

    fn ram_bytes(geometry: &Geometry, options: &SuperblockOptions) -> u64 {
        let (blocks, logical) = (
            u64::from(geometry.blocks()),
            u64::from(geometry.logical_blocks()),
        );
        let superblocks = u64::from(geometry.dies) * u64::from(superblocks(geometry, options));
        4 * u64::from(geometry.logical_pages)
            + (std::mem::size_of::<Block>() as u64 + 12 + 4) * blocks
            + (std::mem::size_of::<Super>() as u64 + 24) * superblocks
            + 4 * logical
            + OobTables::ram_bytes(geometry)
    }

    fn tables(geometry: &Geometry, _options: &SuperblockOptions) -> Vec<Table> {
        let in_oobs = Table {
            name: "page table (PTEs in the OOBs)",
            entries: geometry.logical_pages.into(),
            bits_per_entry: OobTables::entry_bits(geometry).into(),
            memory: Memory::Flash,
        };
        let blocks = geometry.logical_blocks();
        vec![
            Table::sram("page global directory", blocks.into(), 32),
            in_oobs,
        ]
    }

    fn format<F: Flash>(
        space: &Space,
        options: &SuperblockOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, Refusal> {
        let log_blocks = super::log_budget(space, options.log_blocks, 1)?;
        check(options)?;
        let geometry = &space.geometry;
        let logical = space.logical_blocks();
        space.need_blocks(&[
            ("data blocks", logical),
            ("log blocks", log_blocks),
            (
                "merge reserve (superblock_blocks)",
                options.superblock_blocks,
            ),
        ])?;
        let superblocks = superblocks(geometry, options) as usize;
        let used = if start == Start::Full { logical } else { 0 };
        let first = geometry.pbn(space.first_die, 0).0;
        let blocks = geometry.blocks_per_die;
        let none = Super {
            open: Pbn::NONE,
            logs: 0,
            dead: 0,
            easy: false,
        };
        let mut instance = Self {
            options: options.clone(),
            by_superblock: Divisor::new(options.superblock_blocks),
            log_blocks,
            newest: vec![Ppn::NONE; space.logical_pages() as usize],
            blocks: vec![Block::default(); blocks as usize],
            supers: vec![none; superblocks],
            lists: Lists::new(blocks as usize, superblocks),
            recent: Lists::new(superblocks, 1),
            easy: 0,
            logs_in_use: 0,
            pool: Pool::new((first + used..first + blocks).map(Pbn), blocks),
            tables: OobTables::new(space),
            merges: Merges::default(),
            data_pages: 0,
            log_pages: 0,
            fresh: Vec::with_capacity(options.superblock_blocks as usize),
            set: Vec::new(),
            space: space.clone(),
        };
        if start == Start::Full {
            instance.fill(flash);
        }
        Ok(instance)
    }

    #[inline]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        run.iter()
            .try_for_each(|(lpn, slot)| self.write_page(flash, slot, lpn))
    }

    #[inline]
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        run.iter()
            .try_for_each(|(lpn, slot)| self.read_page(flash, slot, lpn))
    }

    fn trim<F: Flash>(&mut self, _flash: &mut F, run: &Run) -> Result<(), F::Error> {
        for (lpn, _) in run.iter() {
            if self.newest[lpn.index()].is_some() {
                let (l, _) = self.space.geometry.by_pages().div_rem(lpn.0);
                self.move_newest(self.by_superblock.div(l), lpn, Ppn::NONE);
            }
        }
        Ok(())
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters {
            merges: self.merges.clone(),
            ..SchemeCounters::default()
        };
        counters.extra("d_pages", self.data_pages);
        counters.extra("u_pages", self.log_pages);
        let sums = [
            ("log_reclaimed", self.merges.log_reclaimed),
            ("log_pages_used", self.merges.log_pages_used),
        ];
        for (name, value) in sums {
            counters.stat(name, value as f64, Combine::Sum);
        }
        let mut seen = Observation::default();
        self.observe_state(&mut seen);
        counters.stats.extend(seen.values);
        counters
    }

    fn reset_counters(&mut self) {
        self.merges = Merges::default();
        self.data_pages = 0;
        self.log_pages = 0;
    }

    fn observe(&self, seen: &mut Observation) {
        self.observe_state(seen);
        // As sums: the ratios (association, utilisation of log blocks) are for the whole device.
        let merges = &self.merges;
        seen.sum("full_merges", merges.full as f64);
        seen.sum("full_merge_associated", merges.full_merge_associated as f64);
        seen.sum("log_reclaimed", merges.log_reclaimed as f64);
        seen.sum("log_pages_used", merges.log_pages_used as f64);
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let mut valid = vec![0; self.blocks.len()];
        let mut live = 0;
        for (lpn, &at) in self.newest.iter().enumerate() {
            if at.is_none() {
                continue;
            }
            let l = self.space.geometry.by_pages().div(lpn as u32);
            let s = self.by_superblock.div(l) as usize;
            let block = self.index_at(at);
            if !flash.is_programmed(at) || self.lists.list_of(block as u32) != Some(s) {
                return Err(format!("live page {lpn} is not at {}", at.0));
            }
            valid[block] += 1;
            live += 1;
        }
        for (b, (block, valid)) in self.blocks.iter().zip(valid).enumerate() {
            if block.valid != valid {
                return Err(format!(
                    "block {b} counts {} valid pages of {valid}",
                    block.valid
                ));
            }
        }
        let superblocks = 0..self.supers.len() as u32;
        superblocks
            .clone()
            .try_for_each(|s| self.audit_superblock(flash, s))?;
        let logs: u32 = self.supers.iter().map(|s| s.logs).sum();
        let easy = self.supers.iter().filter(|s| s.easy).count() as u32;
        if (logs, easy) != (self.logs_in_use, self.easy) || logs > self.log_blocks {
            return Err(format!("{logs} U-blocks, budget {}", self.log_blocks));
        }
        let listed: u32 = superblocks.map(|s| self.lists.len(s as usize)).sum();
        let free = self.pool.len();
        if listed + free != self.blocks.len() as u32 || free < self.options.superblock_blocks {
            return Err(format!("{listed} blocks in use and {free} free"));
        }
        if !self.pool.iter().all(|b| flash.written(b) == 0) {
            return Err("a block in the free list is not erased".into());
        }
        Ok(live)
    }
}

/// Superblocks of one die.
fn superblocks(geometry: &Geometry, options: &SuperblockOptions) -> u32 {
    geometry
        .logical_blocks_per_die()
        .div_ceil(options.superblock_blocks.max(1))
}

/// Refuses values that mean nothing.
fn check(options: &SuperblockOptions) -> Result<(), Refusal> {
    let at_least_one = [
        ("superblock_blocks", options.superblock_blocks),
        ("extra_blocks", options.extra_blocks),
    ];
    for (key, value) in at_least_one {
        if value == 0 {
            return Err(Refusal::new(key, format!("{key} = 0: at least 1")));
        }
    }
    let reads = options.oob_reads_per_access;
    if reads > OOB_READS_MAX {
        let text = format!("oob_reads_per_access = {reads}: at most {OOB_READS_MAX}");
        return Err(Refusal::new("oob_reads_per_access", text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::ProgramOrder;
    use crate::rng::SplitMix64;
    use crate::suite::{Bench, Case};

    fn bench(case: &Case) -> Bench<Superblock> {
        let mut bench = Bench::new(case).unwrap();
        bench.audit_each = true;
        bench
    }

    /// The pages of a block by position, as its OOBs tell.
    fn content(bench: &Bench<Superblock>, block: u32) -> Vec<u32> {
        let pages = bench.flash.geometry().pages_per_block;
        (block * pages..(block + 1) * pages)
            .filter_map(|page| bench.flash.peek_oob(Ppn(page)))
            .map(|read| read.oob.lpn.0)
            .collect()
    }

    fn list(bench: &Bench<Superblock>, s: u32) -> Vec<u32> {
        bench.ftl.blocks_of(s).map(|block| block.0).collect()
    }

    #[test]
    fn blogftl_fig_1() {
        let case = Case::small(1, 16, 4, 9)
            .with("log_blocks", 4)
            .with("superblock_blocks", 3);
        let mut bench = bench(&case);
        bench.play("W 0 1, W 4 1, W 8 1, W 1 1, W 2 1, W 0 1, W 12 1, W 27 1, W 5 1, W 9 1");
        assert_eq!(content(&bench, 9), [0, 4, 8, 1]);
        assert_eq!(bench.ftl.blocks[9].valid, 3);
        assert_eq!(content(&bench, 10), [2, 0, 5, 9]);
        assert_eq!(
            (content(&bench, 11), content(&bench, 12)),
            (vec![12], vec![27])
        );
        let c = bench.counters();
        assert_eq!((c.programs.gc, c.erases.gc, c.oob_reads.map), (0, 0, 20));
        bench.play("W 6 1");
        let c = bench.counters();
        assert_eq!((c.programs.gc, c.erases.gc, c.oob_reads.map), (8, 4, 22));
        let merges = bench.scheme().merges;
        assert_eq!((merges.full, merges.full_merge_associated), (1, 3));
        assert_eq!(list(&bench, 0), [13, 14, 10, 15]);
        assert_eq!(content(&bench, 13), [3, 6, 7, 10]);
        assert_eq!(content(&bench, 14), [11, 1, 4, 8]);
        assert_eq!(content(&bench, 15), [6]);
    }

    #[test]
    fn sequential_overwrite_switches() {
        let case = Case::small(1, 16, 4, 8).with("log_blocks", 4);
        let mut bench = bench(&case);
        bench.play("W 0 16, W 0 16, W 0 16");
        let c = bench.counters();
        assert_eq!((c.programs.host, c.programs.gc, c.erases.gc), (48, 0, 10));
        assert_eq!(bench.scheme().merges.switch, 10);
    }

    /// BLogFTL Table 2: the worst write of a superblock costs `N * ((Tr + Tw) * P + Te) + Te`: all its pages copied, its
    /// `N` D-blocks and a U-block erased.
    #[test]
    fn worst_write_of_blogftl_table_2() {
        let (n, pages) = (3, 4);
        let case = Case::small(1, 16, pages, 9)
            .with("log_blocks", 1)
            .with("superblock_blocks", n)
            .with("extra_blocks", 1);
        let mut bench = bench(&case);
        // One page of each logical block, and no block without a valid page.
        bench.play("W 0 1, W 4 1, W 8 1, W 1 1");
        bench.play("W 2 1");
        let c = bench.counters();
        assert_eq!(
            (c.programs.gc, c.erases.gc),
            (u64::from(n * pages), u64::from(n) + 1)
        );
    }

    /// Following PGD, PMD and PTE through the OOBs finds every live page that has been programmed since the start.
    #[test]
    fn the_oobs_bear_the_page_table() {
        // 64 pages a block take several groups; trims are left out of the first half.
        for (pages, seed) in [(4, 1), (64, 2), (80, 3)] {
            let case = Case {
                logical_pages: 10 * pages,
                ..Case::small(1, 24, pages, 10)
            }
            .with("log_blocks", 6);
            let mut bench = bench(&case);
            bench.audit_each = false;
            let mut rng = SplitMix64::new(seed);
            for round in 0..40 * u64::from(pages) {
                let lpn = rng.below(u64::from(case.logical_pages)) as u32;
                if round > 20 * u64::from(pages) && rng.below(20) == 0 {
                    bench.trim(lpn, 1).unwrap();
                } else {
                    bench.write(lpn, 1).unwrap();
                }
            }
            bench.audit().unwrap();
            let found = (0..case.logical_pages)
                .filter(|&lpn| follow(&mut bench, lpn))
                .count();
            assert!(
                found > case.logical_pages as usize * 8 / 10,
                "{found} found"
            );
        }
    }

    /// Whether the OOBs say where a page lies; if they do, it must be right.
    fn follow(bench: &mut Bench<Superblock>, lpn: u32) -> bool {
        let ftl = &bench.ftl;
        let newest = ftl.newest[lpn as usize];
        let (l, o) = ftl.space.geometry.by_pages().div_rem(lpn);
        let (pmd, pte) = ftl.tables.places(l, o);
        if newest.is_none() || pmd.is_none() || pte.is_none() {
            return false;
        }
        let Ok(_) = bench.flash.read_oob(pmd, Cause::Map, ());
        assert_eq!(ftl.tables.read_pmd(bench.flash.last_oob_bytes(), o), pte);
        let Ok(_) = bench.flash.read_oob(pte, Cause::Map, ());
        assert_eq!(ftl.tables.read_pte(bench.flash.last_oob_bytes(), o), newest);
        true
    }

    /// BLogFTL's 1,024 blocks take 4 KB. LAST++'s Table II counts 2.09 MB for SUPERBLOCK at 256 GB, the same as for
    /// BAST and FAST, that is with a page map of 1,024 log blocks in RAM; but the scheme keeps its page map
    /// in the OOBs, and its directory is 2 MB there.
    #[test]
    fn memory_of_the_papers_devices() {
        let device = |dies: u32, blocks: u32, logical: u64| {
            Geometry::new(dies, blocks, 128, logical * 128, ProgramOrder::Ascending).unwrap()
        };
        let bytes = |tables: &[Table]| {
            let ram = tables.iter().filter(|t| t.memory == Memory::Sram);
            ram.map(Table::bits).sum::<u64>() / 8
        };
        let options = SuperblockOptions::default();
        let small = device(1, 1_100, 1_024);
        assert_eq!(bytes(&Superblock::tables(&small, &options)), 4 << 10);
        let large = device(8, 66_000, 524_288);
        assert_eq!(bytes(&Superblock::tables(&large, &options)), 2 << 20);
        let as_bast = bytes(&crate::ftl::hybrid_tables(&large, 1_024)) as f64;
        assert_eq!(format!("{:.2}", as_bast / f64::from(1 << 20)), "2.09");
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let key = |case: Case| Bench::<Superblock>::new(&case).unwrap_err().key.unwrap();
        let small = || Case::small(1, 16, 4, 8).with("log_blocks", 4);
        let huge = i64::from(u32::MAX - 1);
        assert_eq!(key(Case::small(1, 16, 4, 8)), "log_blocks");
        assert_eq!(
            key(Case::small(1, 16, 4, 8).with("log_blocks", 5)),
            "blocks"
        );
        assert_eq!(
            key(Case::small(1, 16, 4, 8).with("log_blocks", huge)),
            "blocks"
        );
        for name in ["superblock_blocks", "extra_blocks"] {
            assert_eq!(key(small().with(name, 0)), name);
        }
        assert_eq!(key(small().with("superblock_blocks", huge)), "blocks");
        assert_eq!(
            key(small().with("oob_reads_per_access", huge)),
            "oob_reads_per_access"
        );
        assert!(Bench::<Superblock>::new(&small().with("extra_blocks", huge)).is_ok());
    }
}
