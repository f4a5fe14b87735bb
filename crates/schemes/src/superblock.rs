//! `superblock`: adjacent logical blocks share a few physical blocks, page-mapped among each other.
//!
//! **Paper.** Kang, Jo, Kim, Lee, "A Superblock-Based Flash Translation Layer for NAND Flash Memory", EMSOFT
//! 2006; as LAST (section 2.3), LAST++ (section 3) and BLogFTL (section 2.3) describe it.
//!
//! **Rules.** docs/spec/superblock.md has every one of them, to the last counter.
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
//! list is in the order of the blocks' first sequence numbers. Copies name the blocks of their sources, so that of
//! a full merge that was cut either the filled blocks are given up or the emptied ones. No copies; all blocks are
//! closed. The PGD names the OOBs that agree with where the pages are.
//!
//! **Deviations and why.** The papers at hand leave open which superblock gives way when the pool is used up (here:
//! one with a dead block, then the one written longest ago) and how many blocks a full merge writes
//! (here: as few as hold the pages, since inside a superblock any page may lie anywhere).

mod blocks;
mod oob_tables;
mod recovery;
#[cfg(test)]
mod tests;

use blocks::Superblocks;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Pbn};
use floatgate_core::described::Described;
use floatgate_core::flash::{Cause, Flash, Preload, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::options;
use floatgate_core::report::{Memory, Merges, Observation, SchemeCounters, Table};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
use oob_tables::OobTables;
use recovery::copy_tag;

options! {
    /// Options of `superblock`.
    pub struct SuperblockOptions {
        /// U-blocks of the whole device, divided by the dies; at least 1 a die.
        log_blocks: Option<u32> ["blocks"] = None, shown "required", samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Logical blocks of a superblock (N).
        superblock_blocks: u32 ["blocks"] = 4, samples [1, 2, 3];
        /// Most U-blocks of a superblock (M).
        extra_blocks: u32 ["blocks"] = 2, samples [1, 2, 3];
        /// OOB reads of one translation.
        oob_reads_per_access: u32 ["OOB reads"] = 2, samples [0, 1, 3];
    }
}

/// More OOB reads a translation than any map in OOBs could need.
const OOB_READS_MAX: u32 = 1_000;

/// One instance of Superblock FTL.
#[derive(Debug)]
pub struct Superblock {
    b: Superblocks,
    options: SuperblockOptions,
    log_blocks: u32,
    data_pages: u64,
    log_pages: u64,
    /// Scratch of a full merge: the blocks it fills and those it takes apart.
    fresh: Vec<Pbn>,
    set: Vec<Pbn>,
}

state!(Superblock { b, data_pages, log_pages } fixed { options, log_blocks, fresh, set });

impl Superblock {
    fn with_blocks(b: Superblocks, options: &SuperblockOptions, log_blocks: u32) -> Self {
        Self {
            b,
            options: options.clone(),
            log_blocks,
            data_pages: 0,
            log_pages: 0,
            fresh: Vec::new(),
            set: Vec::new(),
        }
    }

    /// The OOB reads of one translation: PMD, PTEs, and again where more are asked for.
    #[inline]
    fn translate<F: Flash>(&self, flash: &mut F, lpn: DieLpn) -> Result<F::Token, F::Error> {
        let space = self.b.space();
        let (lbn, offset) = self.b.split(lpn);
        let (pmd, pte) = self.b.tables.places(lbn, offset);
        // What no program has put into an OOB yet is looked for where the page itself lies, if anywhere.
        let newest = self.b.newest(lpn);
        let page = if newest.is_some() {
            newest
        } else {
            let geometry = &space.geometry;
            geometry.first_page(geometry.pbn(space.first_die, 0))
        };
        let mut done = F::Token::default();
        for read in 0..self.options.oob_reads_per_access {
            let table = if read % 2 == 0 { pmd } else { pte };
            let from = if table.is_some() { table } else { page };
            (_, done) = flash.read_oob(from, Cause::Map, done)?;
        }
        Ok(done)
    }

    /// Sees to it that a superblock has an open block.
    #[inline]
    fn make_room<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<(), F::Error> {
        while self.b.superblock(s).open.is_none() {
            if self.b.lacks_data_blocks(s) {
                self.b.open_block(s);
            } else if self.b.superblock(s).logs >= self.options.extra_blocks {
                self.collect(flash, s)?;
            } else if self.b.logs_in_use() < self.log_blocks {
                self.b.open_block(s);
            } else {
                let victim = self.b.victim();
                self.collect(flash, victim)?;
            }
        }
        Ok(())
    }

    /// Wins a block from a superblock that has U-blocks.
    fn collect<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<(), F::Error> {
        if self.b.superblock(s).dead > 0 {
            self.collect_dead(flash, s)?;
        } else if !self.collect_partial(flash, s)? {
            self.collect_full(flash, s)?;
        }
        self.b.assign_roles(s);
        Ok(())
    }

    fn collect_dead<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<(), F::Error> {
        let dead = self.b.emptiest(s, |_, block| block.valid == 0);
        let dead = dead.expect("a block without a valid page");
        let log = self.b.block(dead).log;
        let merges = &mut self.b.merges;
        if log {
            merges.dead += 1;
            merges.erases_dead += 1;
        } else {
            merges.switch += 1;
            merges.erases_switch += 1;
        }
        self.b.erase(flash, s, dead)
    }

    /// Copies the emptiest block into the open one, if there is one and it has the room.
    fn collect_partial<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<bool, F::Error> {
        let open = self.b.superblock(s).open;
        if open.is_none() {
            return Ok(false);
        }
        let victim = self.b.emptiest(s, |b, _| b != open);
        let victim = victim.expect("more blocks than the open one");
        let mut left = self.b.block(victim).valid;
        if left > self.b.pages_per_block() - flash.ledger().write_pointer(open) {
            return Ok(false);
        }
        self.b.merges.partial += 1;
        self.b.merges.copies_partial += u64::from(left);
        self.b.merges.erases_partial += 1;
        let by_pages = flash.ledger().geometry().by_pages();
        let mut pages = self.b.pages(s).map(DieLpn);
        while left > 0 {
            let lpn = pages.next().expect("a page for each that is valid");
            let from = self.b.newest(lpn);
            if from.is_some() && Pbn(by_pages.div(from.0)) == victim {
                let to = flash
                    .ledger()
                    .geometry()
                    .ppn(open, flash.ledger().write_pointer(open));
                left -= 1;
                let is_last = left == 0;
                self.b.copy(flash, s, lpn, to, |from| {
                    if is_last { copy_tag(true, from) } else { 0 }
                })?;
            }
        }
        self.b.erase(flash, s, victim)?;
        Ok(true)
    }

    /// Takes the emptiest U-block apart, with the D-blocks of its logical blocks and as many more as it takes
    /// to win a block.
    fn collect_full<F: Flash>(&mut self, flash: &mut F, s: u32) -> Result<(), F::Error> {
        let victim = self.b.emptiest(s, |_, block| block.log);
        let victim = victim.expect("a U-block");
        let associated = self.put_associated_in_set(s, victim);
        let pages = self.b.pages_per_block();
        let (mut size, mut valid) = (0, 0);
        for block in self.b.blocks_of(s).map(|b| self.b.block(b)) {
            size += u32::from(block.in_set);
            valid += if block.in_set { block.valid } else { 0 };
        }
        while valid.div_ceil(pages) > size - 1 {
            let more = self.b.emptiest(s, |_, block| !block.in_set);
            let more = more.expect("the whole superblock gives a block");
            self.b.put_in_set(more);
            size += 1;
            valid += self.b.block(more).valid;
        }
        self.b.merges.count_full(associated);
        self.b.merges.copies_full += u64::from(valid);
        self.b.merges.erases_full += u64::from(size);
        self.rewrite_set(flash, s, valid)
    }

    /// Puts a U-block and the D-blocks of its logical blocks into the set; returns the number of these.
    fn put_associated_in_set(&mut self, s: u32, victim: Pbn) -> usize {
        self.b.put_in_set(victim);
        let pages = self.b.pages_per_block();
        let by_pages = self.b.space().geometry.by_pages();
        let mut associated = 0;
        let logical = self.b.logical(s);
        for lbn in (logical.start.0..logical.end.0).map(Lbn) {
            let lpns = (lbn.0 * pages..(lbn.0 + 1) * pages).map(DieLpn);
            let in_victim = |lpn| {
                let at = self.b.newest(lpn);
                at.is_some() && Pbn(by_pages.div(at.0)) == victim
            };
            if !lpns.clone().any(in_victim) {
                continue;
            }
            associated += 1;
            for lpn in lpns {
                let at = self.b.newest(lpn);
                if at.is_some() && !self.b.block_at(at).log {
                    self.b.put_in_set(Pbn(by_pages.div(at.0)));
                }
            }
        }
        associated
    }

    /// Copies the `valid` pages of the set into fresh blocks, those of D-blocks first, and erases the set.
    fn rewrite_set<F: Flash>(&mut self, flash: &mut F, s: u32, valid: u32) -> Result<(), F::Error> {
        let pages = self.b.pages_per_block();
        self.fresh.clear();
        for _ in 0..valid.div_ceil(pages) {
            let block = self.b.take_block(s);
            self.fresh.push(block);
        }
        let mut copied = 0;
        for log in [false, true] {
            for lpn in self.b.pages(s).map(DieLpn) {
                let from = self.b.newest(lpn);
                if from.is_none() {
                    continue;
                }
                let block = self.b.block_at(from);
                if block.in_set && block.log == log {
                    let to = self.fresh[(copied / pages) as usize];
                    let to = flash.ledger().geometry().ppn(to, copied % pages);
                    copied += 1;
                    let is_last = copied == valid;
                    self.b
                        .copy(flash, s, lpn, to, |from| copy_tag(is_last, from))?;
                }
            }
        }
        self.set.clear();
        let in_set = |&b: &Pbn| self.b.block(b).in_set;
        self.set.extend(self.b.blocks_of(s).filter(in_set));
        for &block in &self.set {
            self.b.erase(flash, s, block)?;
        }
        self.b.put_in_front(flash, s, &self.fresh);
        Ok(())
    }

    /// The sizes and thresholds of this moment.
    fn observe_state(&self, seen: &mut Observation) {
        seen.sum("u_blocks", f64::from(self.b.logs_in_use()));
        seen.sum("superblocks_with_u_blocks", f64::from(self.b.with_logs()));
        seen.sum(
            "superblocks_with_dead_blocks",
            f64::from(self.b.with_logs_and_dead()),
        );
        seen.mean("d_utilisation", self.b.utilisation(false));
        seen.mean("u_utilisation", self.b.utilisation(true));
    }
}

impl Described for Superblock {
    const KEY: &'static str = "superblock";
    const TITLE: &'static str = "Superblock FTL";
    const SUMMARY: &'static str =
        "adjacent logical blocks page-mapped in blocks of their own, the map in OOBs";
    const SOURCE: &'static str = "Kang et al., EMSOFT 2006";
    const TEXT: &'static str = include_str!("superblock.rs");
    type Options = SuperblockOptions;

    fn check(space: &Space, options: &SuperblockOptions) -> Result<(), Refusal> {
        plan(space, options).map(|_| ())
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

    fn ram_bytes(geometry: &Geometry, options: &SuperblockOptions) -> u64 {
        Superblocks::ram_bytes(geometry, options.superblock_blocks)
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters::of(&self.b.merges);
        counters.extra("d_pages", self.data_pages);
        counters.extra("u_pages", self.log_pages);
        counters.stats_of(|seen| self.observe_state(seen));
        counters
    }

    fn reset_counters(&mut self) {
        self.b.merges = Merges::default();
        self.data_pages = 0;
        self.log_pages = 0;
    }

    fn observe(&self, seen: &mut Observation) {
        self.observe_state(seen);
        self.b.merges.observe(seen);
    }
}

impl Ftl for Superblock {
    type Page = DieLpn;

    fn format<F: Preload>(
        space: &Space,
        options: &SuperblockOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let log_blocks = plan(space, options)?;
        let blocks = Superblocks::format(space, options.superblock_blocks, start, flash)
            .map_err(MountError::Flash)?;
        Ok(Self::with_blocks(blocks, options, log_blocks))
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &SuperblockOptions,
        _means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let log_blocks = plan(space, options)?;
        let blocks = Superblocks::blank(space, options.superblock_blocks);
        let mut superblock = Self::with_blocks(blocks, options, log_blocks);
        superblock.scan(flash).map_err(MountError::Flash)?;
        audited(superblock, flash)
    }

    #[inline]
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let translated = self.translate(flash, lpn)?;
        self.make_room(flash, self.b.superblock_of(lpn))?;
        if self.b.write(flash, slot, lpn, translated)? {
            self.log_pages += 1;
        } else {
            self.data_pages += 1;
        }
        Ok(())
    }

    #[inline]
    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let at = self.b.newest(lpn);
        if at.is_none() {
            flash.absent(slot, F::Token::default());
            return Ok(());
        }
        let translated = self.translate(flash, lpn)?;
        flash.read_host(slot, at, translated)?;
        Ok(())
    }

    fn trim_page<F: Flash>(
        &mut self,
        _flash: &mut F,
        page: DieLpn,
        _slot: Slot,
    ) -> Result<(), F::Error> {
        self.b.trim(page);
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, lpn: DieLpn) {
        self.b.prefetch(lpn);
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.b
            .audit(flash, self.log_blocks, self.options.extra_blocks)
    }
}

/// Refuses values that mean nothing and devices that are too small; returns the U-blocks of one die.
fn plan(space: &Space, options: &SuperblockOptions) -> Result<u32, Refusal> {
    let log_blocks = crate::parts::budgets::log_budget(space, options.log_blocks, 1)?;
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
    space.need_blocks(&[
        ("data blocks", space.logical_blocks()),
        ("log blocks", log_blocks),
        (
            "merge reserve (superblock_blocks)",
            options.superblock_blocks,
        ),
    ])?;
    Ok(log_blocks)
}
