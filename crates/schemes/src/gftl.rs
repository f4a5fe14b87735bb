//! `gftl`: block mapping with a write buffer in flash, cleaned in small steps of bounded length.
//!
//! **Paper.** Choudhuri, Givargis, "Deterministic service guarantees for NAND flash using partial block
//! cleaning", CODES+ISSS 2008 (longer: Journal of Software 4(7), 2009); a baseline of the BLogFTL paper, section 6.
//!
//! **Rules.** docs/spec/gftl.md has every one of them, to the last counter.
//!
//! **RAM state.** Block map; place of every page in the write buffer; the queue of logical blocks that wait
//! for cleaning; one cleaning job with the place of its logical block's pages; the list of blocks to erase; a
//! live bit a page.
//!
//! **Flash state.** One primary block for each logical block, filled in the order of arrival; at most
//! `log_blocks` buffer blocks, filled likewise by all logical blocks; the new block of the job. OOB: LPN,
//! sequence number, role data (primary and job) or log (buffer).
//!
//! **How it writes, reads, reclaims.** A page goes to the next page of its primary, or to the buffer if the
//! primary is full or just being cleaned. Logical blocks with a full primary wait in a queue; a job copies the
//! newest pages of the first one, in order, into a new block. After each page read or written one step is done:
//! one erase, or the OOB scan that opens a job, or at most `chunk_pages` copies. A read of a page in the
//! primary searches the primary's OOBs from its end.
//!
//! **Recovery.** Full OOB scan. A block whose first page has role log is a buffer block. Of two data
//! blocks of one logical block the younger is a job's: given up if all its sources stand, else the job is brought to
//! its end. Logical blocks with pages in the buffer are queued, oldest such page first. Found blocks take no
//! more pages. A device without a block to spare may run out of erased pages when programs are torn in a row, and then
//! refuses: docs/recovery.md says why no recovery could do better.
//!
//! **Deviations and why.** The papers say what is guaranteed and that one chunk of work follows each
//! request; order of cleaning, the buffer's own map, the erase list and what happens when the buffer is full after
//! all (steps are forced until it is not) are ours: the simplest scheme with those properties.

use crate::parts::start;
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
use std::collections::VecDeque;

use crate::hints::{large_table, prefetch};
use crate::parts::pool::Pool;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Pbn, Ppn};
use floatgate_core::described::{ChipTimes, Described};
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start, audited};
use floatgate_core::geometry::{Geometry, PAGES_PER_BLOCK_MAX, Space};
use floatgate_core::report::{Combine, Merges, Observation, SchemeCounters, Table};
use floatgate_core::{choice, options};

mod audit;
mod recovery;
#[cfg(test)]
mod tests;

choice! {
    /// When a logical block is queued for cleaning.
    pub enum QueueWhen {
        /// As soon as its primary is full.
        Full = "full",
        /// Only when a write finds the primary full.
        Update = "update",
    }
}

choice! {
    /// Where the page table of a primary is.
    pub enum Lookup {
        /// In its OOBs: the memory of block mapping, OOB reads for reads and jobs.
        Oob = "oob",
        /// In memory.
        Ram = "ram",
    }
}

options! {
    /// Options of `gftl`.
    pub struct GftlOptions {
        /// Blocks of the write buffer of the whole device, divided by the dies; at least 1 a die.
        log_blocks: u32 ["blocks"] = 512, samples [1, 2, 2, 3, 3, 4], scope Device, setting LogBlocks;
        /// Most copies in one step, at least 1: the copies that take no longer than an erase.
        chunk_pages: Option<u32> ["pages"] = None, shown "max(1, tBERS / (tR + tPROG)) of the chip; 6 without one", samples [1, 2, 3, 4, 64];
        /// When a logical block is queued for cleaning.
        queue_when: QueueWhen [""] = QueueWhen::Full;
        /// Where the page table of a primary is.
        lookup: Lookup [""] = Lookup::Oob;
    }
}

/// Blocks of an instance beside primaries and buffer: the new block of the job, or the old primary on its way out.
const RESERVE: u32 = 1;

/// Copies that take no longer than an erase on a part of those times: the default of `chunk_pages`. Who knows
/// the part sets the option to it; without a part the times of `ssdsim` (20, 200, 1500 us) stand in.
///
/// Never more than a block can have pages: further copies would not fit a job anyway.
pub fn default_chunk_pages(t_r_ns: u64, t_prog_ns: u64, t_bers_ns: u64) -> u32 {
    let copy_ns = t_r_ns.saturating_add(t_prog_ns).max(1);
    (t_bers_ns / copy_ns).clamp(1, u64::from(PAGES_PER_BLOCK_MAX)) as u32
}

/// Buffer blocks of an instance with which no step is ever forced, for `logical_blocks` of `pages_per_block` pages;
/// `None` for blocks of one page, whose every step would have to be an erase.
///
/// Why: the queue is a round, in which every logical block gets one job, of as many steps as it has chunks, plus
/// one to erase the old primary and one for the scan. Since a logical block may be queued again behind the others,
/// a page leaves the buffer within one job more than there are logical blocks. Meanwhile each page written adds at
/// most one page to the buffer and does one step, and of every `P` steps one erases a buffer block. Parts of blocks
/// at both ends, and one that waits for its erase, make three more.
pub fn buffer_for_guarantee(
    logical_blocks: u32,
    pages_per_block: u32,
    chunk_pages: u32,
    lookup: Lookup,
) -> Option<u64> {
    let job_steps =
        pages_per_block.div_ceil(chunk_pages.max(1)) + 1 + u32::from(lookup == Lookup::Oob);
    let steps = (u64::from(logical_blocks) + 1) * u64::from(job_steps);
    let useful = pages_per_block.checked_sub(1).filter(|&pages| pages > 0)?;
    Some(steps.div_ceil(u64::from(useful)) + 3)
}

/// What a block is at present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Erased, or with pages of one logical block: a primary, or the new block of the job.
    Plain,
    /// The buffer block that is being filled.
    Active,
    /// A full buffer block with a valid page.
    Closed,
    /// A full buffer block without one; on the erase list.
    Dying,
    /// A primary that a job has replaced after copies; on the erase list.
    Replaced,
    /// A primary that had no live page; on the erase list.
    Dropped,
}

impl State for Kind {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let all = [
            Self::Plain,
            Self::Active,
            Self::Closed,
            Self::Dying,
            Self::Replaced,
            Self::Dropped,
        ];
        tape.one_of(self, &all)
    }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    kind: Kind,
    /// Valid pages; kept for buffer blocks only.
    valid: u32,
    /// Found after a power cut, so its erased pages cannot be trusted: it counts as full.
    sealed: bool,
}

state!(Block {
    kind,
    valid,
    sealed
});

const PLAIN: Block = Block {
    kind: Kind::Plain,
    valid: 0,
    sealed: false,
};

/// The cleaning of one logical block.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    lbn: Lbn,
    /// Next page number to look at.
    pos: u32,
    /// The block that takes the copies, or `NONE` before the first.
    fresh: Pbn,
    copies: u32,
    /// No page before this one, from `pos` on, lies in the primary.
    next_in_primary: u32,
}

state!(Job {
    lbn,
    pos,
    fresh,
    copies,
    next_in_primary
});

/// Counters since the last reset.
#[derive(Clone, Debug, Default)]
struct Counts {
    merges: Merges,
    steps: u64,
    forced_steps: u64,
    scans: u64,
    requeued: u64,
    buffer_erases: u64,
    scan_oob_reads: u64,
    search_oob_reads: u64,
    /// The longest search of a read.
    longest_search: u32,
    /// The fullest the buffer was, and the longest the queue.
    most_buffer_blocks: u32,
    longest_queue: u32,
}

state!(Counts {
    merges,
    steps,
    forced_steps,
    scans,
    requeued,
    buffer_erases,
    scan_oob_reads,
    search_oob_reads,
    longest_search,
    most_buffer_blocks,
    longest_queue,
});

/// One instance of GFTL.
#[derive(Debug)]
pub struct Gftl {
    space: Space,
    buffer_limit: u32,
    chunk_pages: u32,
    queue_when: QueueWhen,
    lookup: Lookup,
    /// Where the newest version of a page lies; `NONE` if the page is not live.
    newest: Vec<Ppn>,
    primary: Vec<Pbn>,
    blocks: Vec<Block>,
    pool: Pool,
    active: Option<Pbn>,
    /// Active, closed and dying blocks.
    buffer_blocks: u32,
    queue: VecDeque<Lbn>,
    is_queued: Vec<bool>,
    job: Option<Job>,
    erase_list: VecDeque<Pbn>,
    counts: Counts,
}

state!(Gftl {
    newest, primary, blocks, pool, active, buffer_blocks, queue, is_queued, job, erase_list, counts,
} fixed { space, buffer_limit, chunk_pages, queue_when, lookup });

impl Gftl {
    /// Checks the options and makes empty tables; the erased blocks are not known.
    fn blank(space: &Space, options: &GftlOptions) -> Result<Self, Refusal> {
        let geometry = &space.geometry;
        let (buffer_limit, chunk_pages) = plan(space, options)?;
        let logical = space.logical_blocks();
        Ok(Self {
            buffer_limit,
            chunk_pages,
            queue_when: options.queue_when,
            lookup: options.lookup,
            newest: large_table(Ppn::NONE, space.logical_pages() as usize),
            primary: vec![Pbn::NONE; logical as usize],
            blocks: vec![PLAIN; geometry.blocks_per_die as usize],
            pool: Pool::new(std::iter::empty(), geometry.blocks_per_die),
            active: None,
            buffer_blocks: 0,
            queue: VecDeque::with_capacity(logical as usize),
            is_queued: vec![false; logical as usize],
            job: None,
            erase_list: VecDeque::with_capacity(buffer_limit as usize + 1),
            counts: Counts::default(),
            space: space.clone(),
        })
    }

    #[inline(always)]
    fn pages(&self) -> u32 {
        self.space.geometry.pages_per_block
    }

    #[inline(always)]
    fn logical_of(&self, lpn: DieLpn) -> Lbn {
        Lbn(self.space.geometry.by_pages().div(lpn.0))
    }

    /// Index of a block inside the die.
    #[inline(always)]
    fn in_die(&self, pbn: Pbn) -> usize {
        (pbn.0 - self.space.first_die * self.space.geometry.blocks_per_die) as usize
    }

    /// Pages of a block that are programmed, or cannot be.
    #[inline(always)]
    fn written<F: Flash>(&self, flash: &F, pbn: Pbn) -> u32 {
        if self.blocks[self.in_die(pbn)].sealed {
            self.pages()
        } else {
            flash.ledger().write_pointer(pbn)
        }
    }

    #[inline(always)]
    fn is_job(&self, lbn: Lbn) -> bool {
        self.job.is_some_and(|job| job.lbn == lbn)
    }

    #[inline(always)]
    fn in_buffer(&self, at: Ppn) -> bool {
        let block = self.blocks[self.in_die(self.space.geometry.block_of(at))];
        matches!(block.kind, Kind::Active | Kind::Closed)
    }

    // ---- host pages -------------------------------------------------------------------------------

    /// Programs a page in the primary of its logical block, if that has a free page.
    #[inline]
    fn write_to_primary<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        lbn: Lbn,
    ) -> Result<bool, F::Error> {
        if self.primary[lbn.index()].is_none() {
            self.primary[lbn.index()] = self.pool.take();
        }
        let block = self.primary[lbn.index()];
        let position = self.written(flash, block);
        if position == self.pages() {
            return Ok(false);
        }
        self.program(flash, slot, lpn, block, position, Role::Data)?;
        if self.queue_when == QueueWhen::Full && position + 1 == self.pages() {
            self.enqueue(lbn);
        }
        Ok(true)
    }

    /// Programs a page in the active buffer block, which there is room to have.
    fn write_to_buffer<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        lbn: Lbn,
    ) -> Result<(), F::Error> {
        let block = match self.active {
            Some(block) => block,
            None => self.open_buffer_block(),
        };
        let position = flash.ledger().write_pointer(block);
        self.program(flash, slot, lpn, block, position, Role::Log)?;
        if position + 1 == self.pages() {
            let at = self.in_die(block);
            self.blocks[at].kind = Kind::Closed;
            self.active = None;
        }
        if !self.is_job(lbn) {
            self.enqueue(lbn);
        }
        Ok(())
    }

    fn open_buffer_block(&mut self) -> Pbn {
        let block = self.pool.take();
        let at = self.in_die(block);
        self.blocks[at] = Block {
            kind: Kind::Active,
            ..PLAIN
        };
        self.active = Some(block);
        self.buffer_blocks += 1;
        let most = &mut self.counts.most_buffer_blocks;
        *most = (*most).max(self.buffer_blocks);
        block
    }

    fn program<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        block: Pbn,
        position: u32,
        role: Role,
    ) -> Result<(), F::Error> {
        let to = self.space.geometry.ppn(block, position);
        let oob = Oob::new(self.space.device_lpn(lpn), role);
        flash.program_host(slot, to, oob, F::Token::default())?;
        self.move_newest(lpn, to);
        Ok(())
    }

    /// The one place where the newest version of a page moves. A closed block that loses its last valid page is
    /// dying.
    #[inline]
    fn move_newest(&mut self, lpn: DieLpn, to: Ppn) {
        let from = std::mem::replace(&mut self.newest[lpn.index()], to);
        if from.is_some() && self.in_buffer(from) {
            let pbn = self.space.geometry.block_of(from);
            let at = self.in_die(pbn);
            let block = &mut self.blocks[at];
            block.valid -= 1;
            if block.valid == 0 && block.kind == Kind::Closed {
                block.kind = Kind::Dying;
                self.erase_list.push_back(pbn);
            }
        }
        if to.is_some() && self.in_buffer(to) {
            let at = self.in_die(self.space.geometry.block_of(to));
            self.blocks[at].valid += 1;
        }
    }

    fn enqueue(&mut self, lbn: Lbn) {
        if std::mem::replace(&mut self.is_queued[lbn.index()], true) {
            return;
        }
        self.queue.push_back(lbn);
        let longest = &mut self.counts.longest_queue;
        *longest = (*longest).max(self.queue.len() as u32);
    }

    /// Reads the OOBs of the primary from its last page downward until the page is found.
    fn search<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        at: Ppn,
    ) -> Result<F::Token, F::Error> {
        let mut found = F::Token::default();
        let lbn = self.logical_of(lpn);
        let (block, position) = self.space.geometry.split(at);
        if self.lookup == Lookup::Ram || block != self.primary[lbn.index()] || self.is_job(lbn) {
            return Ok(found);
        }
        let end = flash.ledger().write_pointer(block);
        for i in (position..end).rev() {
            let page = self.space.geometry.ppn(block, i);
            let (_, read) = flash.read_oob(page, Cause::Map, F::Token::default())?;
            found = flash.join(found, read);
        }
        let reads = end - position;
        self.counts.search_oob_reads += u64::from(reads);
        self.counts.longest_search = self.counts.longest_search.max(reads);
        Ok(found)
    }

    // ---- cleaning ---------------------------------------------------------------------------------

    /// The step that follows a page of the host.
    #[inline]
    fn step_after<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let worked = self.step(flash)?;
        self.counts.steps += u64::from(worked);
        Ok(())
    }

    /// One step of cleaning. Returns whether there was something to do.
    fn step<F: Flash>(&mut self, flash: &mut F) -> Result<bool, F::Error> {
        if let Some(block) = self.erase_list.pop_front() {
            self.erase(flash, block)?;
            return Ok(true);
        }
        if self.job.is_none() {
            let Some(lbn) = self.queue.pop_front() else {
                return Ok(false);
            };
            self.is_queued[lbn.index()] = false;
            self.job = Some(Job {
                lbn,
                pos: 0,
                fresh: Pbn::NONE,
                copies: 0,
                next_in_primary: 0,
            });
            let primary = self.primary[lbn.index()];
            if self.lookup == Lookup::Oob && primary.is_some() {
                self.scan(flash, primary)?;
                return Ok(true);
            }
        }
        self.clean(flash)?;
        Ok(true)
    }

    /// Reads the OOBs of a primary: where the pages of the job lie.
    fn scan<F: Flash>(&mut self, flash: &mut F, primary: Pbn) -> Result<(), F::Error> {
        let end = flash.ledger().write_pointer(primary);
        for i in 0..end {
            let page = self.space.geometry.ppn(primary, i);
            flash.read_oob(page, Cause::Map, F::Token::default())?;
        }
        self.counts.scans += 1;
        self.counts.scan_oob_reads += u64::from(end);
        Ok(())
    }

    /// The copies of one step, and the end of the job if its last page is reached.
    fn clean<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let pages = self.pages();
        let mut job = self.job.expect("called for a job");
        let first = job.lbn.0 * pages;
        let mut copies = 0;
        while job.pos < pages {
            let lpn = DieLpn(first + job.pos);
            let from = self.newest[lpn.index()];
            // Pages that are not live are passed even when no copy is left.
            if from.is_some() {
                if copies == self.chunk_pages {
                    break;
                }
                if job.fresh.is_none() {
                    job.fresh = self.pool.take();
                }
                let to = self.space.geometry.ppn(job.fresh, job.copies);
                let is_last = self.is_last_in_primary(&mut job);
                let oob = Oob {
                    lpn: self.space.device_lpn(lpn),
                    role: Role::Data,
                    tag: recovery::copy_tag(from, is_last),
                };
                flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
                self.move_newest(lpn, to);
                copies += 1;
                job.copies += 1;
            }
            job.pos += 1;
        }
        self.counts.merges.copies_full += u64::from(copies);
        self.job = Some(job);
        if job.pos == pages {
            self.finish(job);
        }
        Ok(())
    }

    /// Whether the copy of the page at `pos` leaves no valid page in the old primary. None ever comes there while
    /// the job runs, so the search goes on from where it ended.
    fn is_last_in_primary(&self, job: &mut Job) -> bool {
        let old = self.primary[job.lbn.index()];
        let first = job.lbn.0 * self.pages();
        let lies_there = |&offset: &u32| {
            let at = self.newest[(first + offset) as usize];
            at.is_some() && self.space.geometry.block_of(at) == old
        };
        let from = job.next_in_primary.max(job.pos + 1);
        let next = (from..self.pages()).find(lies_there);
        job.next_in_primary = next.unwrap_or(self.pages());
        next.is_none()
    }

    fn finish(&mut self, job: Job) {
        self.job = None;
        let lbn = job.lbn;
        let old = std::mem::replace(&mut self.primary[lbn.index()], job.fresh);
        let kind = if job.copies > 0 {
            self.counts.merges.count_full(1);
            Kind::Replaced
        } else {
            self.counts.merges.dead += 1;
            Kind::Dropped
        };
        if old.is_some() {
            let at = self.in_die(old);
            self.blocks[at].kind = kind;
            self.erase_list.push_back(old);
        }
        // Pages written after the job had passed them.
        let pages = lbn.index() * self.pages() as usize..(lbn.index() + 1) * self.pages() as usize;
        let left = self.newest[pages]
            .iter()
            .any(|&at| at.is_some() && self.in_buffer(at));
        if left {
            self.enqueue(lbn);
            self.counts.requeued += 1;
        }
    }

    fn erase<F: Flash>(&mut self, flash: &mut F, pbn: Pbn) -> Result<(), F::Error> {
        let at = self.in_die(pbn);
        let wasted = u64::from(self.pages() - flash.ledger().programmed_pages(pbn));
        let (counts, merges) = (&mut self.counts.buffer_erases, &mut self.counts.merges);
        match self.blocks[at].kind {
            Kind::Dying => {
                *counts += 1;
                merges.log_reclaimed += 1;
                merges.log_pages_used += u64::from(self.space.geometry.pages_per_block);
                self.buffer_blocks -= 1;
            }
            Kind::Dropped => {
                merges.erases_dead += 1;
                merges.wasted_data_pages += wasted;
            }
            _ => {
                merges.erases_full += 1;
                merges.wasted_data_pages += wasted;
            }
        }
        flash.erase(pbn, Cause::Gc, F::Token::default())?;
        self.blocks[at] = PLAIN;
        self.pool.give(pbn);
        Ok(())
    }
}

/// The buffer blocks of a die and the copies in one step, if everything fits.
fn plan(space: &Space, options: &GftlOptions) -> Result<(u32, u32), Refusal> {
    let buffer_limit = crate::parts::budgets::log_budget(space, Some(options.log_blocks), 1)?;
    let unknown_part = || default_chunk_pages(20_000, 200_000, 1_500_000);
    let chunk_pages = options.chunk_pages.unwrap_or_else(unknown_part);
    if chunk_pages == 0 {
        let text = "chunk_pages = 0: at least 1 copy in a step".into();
        return Err(Refusal::new("chunk_pages", text));
    }
    space.need_blocks(&[
        ("data blocks", space.logical_blocks()),
        ("buffer blocks", buffer_limit),
        ("cleaning reserve", RESERVE),
    ])?;
    Ok((buffer_limit, chunk_pages))
}

impl Described for Gftl {
    const KEY: &'static str = "gftl";
    const TITLE: &'static str = "GFTL";
    const SUMMARY: &'static str = "block mapping with a write buffer, cleaned in bounded steps";
    const SOURCE: &'static str = "Choudhuri, Givargis, CODES+ISSS 2008";
    const TEXT: &'static str = include_str!("gftl.rs");
    type Options = GftlOptions;

    fn check(space: &Space, options: &GftlOptions) -> Result<(), Refusal> {
        plan(space, options).map(|_| ())
    }

    fn tables(geometry: &Geometry, options: &GftlOptions) -> Vec<Table> {
        let blocks = u64::from(geometry.logical_blocks());
        let pages_per_block = u64::from(geometry.pages_per_block);
        let logical_pages = u64::from(geometry.logical_pages);
        let buffer_pages = u64::from(options.log_blocks) * pages_per_block;
        let job_pages = u64::from(geometry.dies) * pages_per_block;
        let mut tables = vec![
            Table::sram("block map", blocks, 32),
            Table::sram("buffer-page map", buffer_pages, 64),
            Table::sram("job", job_pages, 8),
            Table::sram("queue", blocks, 32),
            Table::sram("live bits", logical_pages, 1),
        ];
        if options.lookup == Lookup::Ram {
            tables.push(Table::sram("primary-page map", logical_pages, 16));
        }
        tables
    }

    fn ram_bytes(geometry: &Geometry, _options: &GftlOptions) -> u64 {
        4 * u64::from(geometry.logical_pages)
            + 9 * u64::from(geometry.logical_blocks())
            + 16 * u64::from(geometry.blocks())
    }

    fn fit_to_chip(options: &mut GftlOptions, times: ChipTimes) {
        let default = default_chunk_pages(times.t_r_ns, times.t_prog_ns, times.t_bers_ns);
        options.chunk_pages.get_or_insert(default);
    }

    /// Only without a block to spare.
    fn may_run_out_of_pages(space: &Space, options: &GftlOptions) -> bool {
        plan(space, options).is_ok_and(|(buffer_limit, _)| {
            space.blocks() == space.logical_blocks() + buffer_limit + RESERVE
        })
    }

    fn counters(&self) -> SchemeCounters {
        let c = &self.counts;
        let mut counters = SchemeCounters::of(&c.merges);
        counters.extra("steps", c.steps);
        counters.extra("forced_steps", c.forced_steps);
        counters.extra("scans", c.scans);
        counters.extra("requeued", c.requeued);
        counters.extra("buffer_erases", c.buffer_erases);
        let stats = [
            ("scan_oob_reads", c.scan_oob_reads, Combine::Sum),
            ("search_oob_reads", c.search_oob_reads, Combine::Sum),
            ("longest_search", c.longest_search.into(), Combine::Max),
            (
                "most_buffer_blocks",
                c.most_buffer_blocks.into(),
                Combine::Max,
            ),
            ("longest_queue", c.longest_queue.into(), Combine::Max),
        ];
        for (name, value, combine) in stats {
            counters.stat(name, value as f64, combine);
        }
        counters
    }

    fn reset_counters(&mut self) {
        self.counts = Counts {
            most_buffer_blocks: self.buffer_blocks,
            longest_queue: self.queue.len() as u32,
            ..Counts::default()
        };
    }

    fn observe(&self, seen: &mut Observation) {
        let c = &self.counts;
        seen.sum("queue_length", self.queue.len() as f64);
        seen.sum("buffer_blocks", f64::from(self.buffer_blocks));
        seen.mean(
            "buffer_fill",
            f64::from(self.buffer_blocks) / f64::from(self.buffer_limit),
        );
        seen.sum("blocks_to_erase", self.erase_list.len() as f64);
        seen.sum("steps", c.steps as f64);
        seen.sum("forced_steps", c.forced_steps as f64);
        seen.sum("oob_reads", (c.scan_oob_reads + c.search_oob_reads) as f64);
    }
}

impl Ftl for Gftl {
    type Page = DieLpn;

    fn format<F: Preload>(
        space: &Space,
        options: &GftlOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut gftl = Self::blank(space, options)?;
        let geometry = &space.geometry;
        let first = geometry.pbn(space.first_die, 0).0;
        let used = if start == Start::Full {
            space.logical_blocks()
        } else {
            0
        };
        let free = (first + used..first + geometry.blocks_per_die).map(Pbn);
        gftl.pool = Pool::new(free, geometry.blocks_per_die);
        if start == Start::Full {
            let primary = &mut gftl.primary;
            start::fill(space, flash, &mut gftl.newest, |lbn, block| {
                primary[lbn.index()] = block;
            })
            .map_err(MountError::Flash)?;
        }
        Ok(gftl)
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &GftlOptions,
        _means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut gftl = Self::blank(space, options)?;
        gftl.scan_device(flash)?;
        gftl.reset_counters();
        audited(gftl, flash)
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let lbn = self.logical_of(lpn);
        loop {
            if !self.is_job(lbn) && self.write_to_primary(flash, slot, lpn, lbn)? {
                break;
            }
            if self.active.is_some() || self.buffer_blocks < self.buffer_limit {
                self.write_to_buffer(flash, slot, lpn, lbn)?;
                break;
            }
            // The buffer is full: its pages wait for their jobs, so there is always something to do.
            let worked = self.step(flash)?;
            assert!(worked, "a full buffer without work to empty it");
            self.counts.forced_steps += 1;
        }
        self.step_after(flash)
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let at = self.newest[lpn.index()];
        if at.is_none() {
            flash.absent(slot, F::Token::default());
        } else {
            let found = self.search(flash, lpn, at)?;
            flash.read_host(slot, at, found)?;
        }
        self.step_after(flash)
    }

    fn trim_page<F: Flash>(
        &mut self,
        _flash: &mut F,
        page: DieLpn,
        _slot: Slot,
    ) -> Result<(), F::Error> {
        self.move_newest(page, Ppn::NONE);
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, lpn: DieLpn) {
        prefetch(&self.newest, lpn.index());
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.check(flash)
    }
}
