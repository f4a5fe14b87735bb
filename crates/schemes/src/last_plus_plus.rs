//! `last++`: sequential writes striped into block-mapped log blocks, all others into page-mapped ones with a
//! hot and a cold partition, on many dies at once.
//!
//! **Paper.** "Exploiting Sequential and Temporal Localities to Improve Performance of NAND Flash-Based SSDs",
//! ACM Transactions on Storage, 2016, sections 4 and 5; its ancestor is LAST (SPEED 2008).
//!
//! **Rules.** docs/spec/last-plus-plus.md has every one of them, to the last counter.
//!
//! **RAM state.** Block map; sequential block mapping table (segment: Seq-ID, a block and a page status table a
//! die); page mapping table of the random log blocks with 2-bit update counters; merge-cost table; a hash table
//! before each of the two; the order in which the dies were written. A segment is the zigzag of Eq. 1: one logical
//! block of every die.
//!
//! **Flash state.** Data blocks; sequential log blocks, each aligned to one logical block of its own die;
//! random log blocks with pages of any die, filled in order, the last page optionally a summary; optionally map
//! blocks; after a clean shutdown a snapshot. OOB: LPN, sequence number, role, which tells hot from cold.
//!
//! **How it writes, reads, reclaims.** The length of the request decides. A sequential page goes to its own
//! position of its segment's log block if that is above all programmed ones; a segment without log blocks takes the
//! place of the one that got its own first, which is merged on all dies. Any other page goes to the die written longest
//! ago, into the hot block if its newest copy is hot or has been updated often enough, else into the cold one. When a
//! die has used up its random log blocks, every such die reclaims one: known dead hot blocks first, then the
//! cheapest of the partition that the maximum hot size names. Idle time is used for merges of cold blocks. A read is
//! one page read.
//!
//! **Recovery.** Clean: the snapshot's pages, block map from map blocks or from the OOB of each block's first page. After a
//! crash: block map from map blocks, a summary page for each full random log block, OOBs of the others and of the
//! sequential ones; without map blocks the OOBs of all pages. Newest sequence number wins, update counters and
//! merge IDs start at 0, partitions come from the roles. Found log blocks take no more pages.
//!
//! **Deviations and why.** A Seq-ID is given once, when the entry is made: so the paper's text has it, its listing
//! renumbers at every block. The floor of two blocks under the maximum hot size, its rounding up, and which partition
//! a cold request or another die takes from are ours, where the paper leaves them open. Lookups are counted as
//! the hash tables would cost them, while an index beside them finds the page. The page status table is the
//! flash's own knowledge of programmed positions. The snapshot finds the keys of its entries in the OOBs, so that
//! it is exactly as large as the paper's tables; it is left out when a die lacks the free blocks for its part.

mod checks;
mod config;
mod costs;
mod counts;
mod merge_cost;
mod merges;
mod random;
mod recovery;
mod segments;
mod shutdown;
pub mod snapshot;
pub mod summary;
#[cfg(test)]
mod tests;

pub use config::{Background, LastPlusPlusOptions};

use crate::parts::heat::Heat;
use crate::parts::hybrid::{Hybrid, HybridPlan, Log, LogPage, Watch};
use crate::parts::lists::Lists;
use config::Plan;
use counts::{Counts, ratio};
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lbn, Lpn, Pbn};
use floatgate_core::described::{Described, RecoveryCost};
use floatgate_core::flash::{Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, Tick, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::{Combine, Observation, SchemeCounters, Table};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
pub use random::RandomHash;
use random::RandomLogs;
use segments::Segments;

/// Tag in the OOBs of snapshot pages; pages of the map area have none.
pub const SNAPSHOT_TAG: u32 = 1;

/// What follows the moves of log pages.
#[derive(Debug)]
struct Logs {
    random: RandomLogs,
    segments: Segments,
}

state!(Logs { random, segments });

impl Watch for Logs {
    const MERGES_ALONE_WRITE_DATA: bool = true;

    #[inline]
    fn moved(&mut self, lpn: DieLpn, lbn: Lbn, from: Option<LogPage>, to: Option<LogPage>) {
        self.random.moved(lpn, lbn, from, to);
    }

    fn released(&mut self, log: Log) {
        self.random.released(log);
        self.segments.released(log);
    }
}

/// A page of the host: by the device's number, by the space's, and where that is.
#[derive(Clone, Copy)]
struct Page {
    device: Lpn,
    local: DieLpn,
    die: u32,
    segment: u32,
    logical: Lbn,
    offset: u32,
}

/// LAST++ on all dies of a device.
#[derive(Debug)]
pub struct LastPlusPlus {
    h: Hybrid<Logs>,
    options: LastPlusPlusOptions,
    plan: Plan,
    counts: Counts,
    /// The dies, the one whose last host program is oldest first.
    die_order: Lists,
    /// Sequence numbers of the pages of open random log blocks, for their summaries.
    sequences: Vec<u64>,
    /// Blocks of the snapshot, until the first change after a clean shutdown.
    snapshot: Vec<Pbn>,
    /// Scratch of the background's victim choice.
    sorted: Vec<(u64, Log)>,
}

state!(LastPlusPlus { h, counts, die_order, sequences } grows { snapshot } fixed { options, plan, sorted });

/// The list of all dies.
const DIES: usize = 0;

impl Logs {
    fn new(space: &Space, options: &LastPlusPlusOptions, plan: &Plan) -> Self {
        let dies = space.dies;
        let room = config::merge_cost_room(&space.geometry, options);
        Self {
            random: RandomLogs::new(
                space,
                plan.log_blocks,
                plan.random_blocks * dies,
                room,
                options.random_hash,
            ),
            segments: Segments::new(
                plan.sequential_segments,
                plan.segments,
                plan.log_blocks * dies,
            ),
        }
    }
}

impl LastPlusPlus {
    /// What follows from geometry and options, if everything fits.
    fn plan(space: &Space, options: &LastPlusPlusOptions) -> Result<(Plan, HybridPlan), Refusal> {
        let plan = Plan::new(space, options)?;
        let hybrid = HybridPlan::new(plan.log_blocks, 0, &options.map);
        hybrid.check(space)?;
        Ok((plan, hybrid))
    }

    fn new(h: Hybrid<Logs>, options: &LastPlusPlusOptions, plan: Plan) -> Self {
        let dies = h.space().dies;
        let mut die_order = Lists::new(dies as usize, 1);
        (0..dies).for_each(|die| die_order.push_back(DIES, die));
        let sequences = if options.summary_pages {
            vec![0; (2 * dies * h.pages_per_block()) as usize]
        } else {
            Vec::new()
        };
        Self {
            h,
            options: options.clone(),
            plan,
            counts: Counts::new(dies),
            die_order,
            sequences,
            snapshot: Vec::new(),
            sorted: Vec::new(),
        }
    }

    fn dies(&self) -> u32 {
        self.h.space().dies
    }

    #[inline(always)]
    fn locate(&self, lpn: Lpn) -> Page {
        let geometry = &self.h.space().geometry;
        let (page, die) = geometry.home(lpn);
        let (segment, offset) = geometry.by_pages().div_rem(page.0);
        Page {
            device: lpn,
            local: DieLpn(die * geometry.logical_pages_per_die() + page.0),
            die,
            segment,
            logical: self.logical(segment, die),
            offset,
        }
    }

    /// The logical block of a segment on a die.
    #[inline(always)]
    fn logical(&self, segment: u32, die: u32) -> Lbn {
        Lbn(die * self.plan.segments + segment)
    }

    fn look_up_page(&mut self, page: &Page) -> bool {
        let at = self.h.newest_log_page(page.local);
        let (found, references) = self.h.watch.random.look_up(page.device, at);
        self.counts.look_up(references);
        found
    }

    fn look_up_segment(&mut self, segment: u32) {
        let references = self.h.watch.segments.look_up(segment);
        self.counts.look_up(references);
    }

    fn programmed_on(&mut self, die: u32) {
        self.die_order.move_to_back(DIES, die);
        self.counts.die_pages[die as usize] += 1;
    }

    // ---- sequential log blocks ----------------------------------------------------------------------

    /// Algorithm 1. Returns whether the page could be placed; if not, it takes the random path.
    fn write_sequential<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        page: &Page,
    ) -> Result<bool, F::Error> {
        self.look_up_segment(page.segment);
        if !self.h.watch.segments.contains(page.segment) {
            if self.h.watch.segments.is_full() {
                self.merge_lowest_segment(flash)?;
            }
            self.h.watch.segments.insert(page.segment);
        }
        let log = match self.h.owned(page.logical) {
            Some(log) => log,
            None => {
                let log = self.h.take_log(flash, page.die, Some(page.logical))?;
                self.h.watch.segments.taken(page.segment, log);
                log
            }
        };
        if page.offset < self.h.written(flash, log) {
            return Ok(false);
        }
        self.look_up_page(page);
        let role = Role::LogSequential;
        self.h
            .write_at(flash, slot, log, page.offset, page.local, role)?;
        self.counts.seq_pages += 1;
        self.programmed_on(page.die);
        Ok(true)
    }

    /// Merges the segment with the lowest Seq-ID on all dies. Its entry goes with its last block.
    fn merge_lowest_segment<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let segment = self.h.watch.segments.lowest().expect("the table is full");
        for die in 0..self.dies() {
            let lbn = self.logical(segment, die);
            if let Some(log) = self.h.owned(lbn) {
                self.h.merge_aligned(flash, log, lbn)?;
            }
        }
        debug_assert!(!self.h.watch.segments.contains(segment));
        Ok(())
    }

    // ---- random log blocks --------------------------------------------------------------------------

    /// Algorithm 2.
    fn write_random<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        page: &Page,
    ) -> Result<(), F::Error> {
        self.look_up_page(page);
        let die = self.die_order.first(DIES).expect("at least one die");
        let (log, partition) = self.random_log(flash, die, page.local)?;
        let position = self.h.written(flash, log);
        if self.options.summary_pages {
            let first = self.sequences_of(die, partition);
            self.sequences[first + position as usize] = flash.ledger().next_sequence();
        }
        self.h
            .write_at(flash, slot, log, position, page.local, partition.role())?;
        self.counts.random_pages[partition as usize] += 1;
        self.programmed_on(die);
        if position + 1 == self.plan.host_pages_per_block {
            self.close(flash, log, die, partition)?;
        }
        Ok(())
    }

    /// The open block of a die that takes a page, and its partition. Merges may have to come first; they may
    /// make a hot page cold.
    fn random_log<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        local: DieLpn,
    ) -> Result<(Log, Heat), F::Error> {
        loop {
            let partition = self.partition_of(local);
            if let Some(log) = self.h.watch.random.open(die, partition) {
                return Ok((log, partition));
            }
            if self.h.watch.random.in_use(die) < self.plan.random_blocks {
                let log = self.h.take_log(flash, die, None)?;
                self.h.watch.random.taken(log, die, partition);
                return Ok((log, partition));
            }
            self.foreground_merge(flash, die, partition)?;
        }
    }

    #[inline(always)]
    fn partition_of(&self, local: DieLpn) -> Heat {
        if self.options.partitions == 1 {
            return Heat::Cold;
        }
        let at = self.h.newest_log_page(local);
        match self.h.watch.random.entry(at) {
            Some((Heat::Hot, _)) => Heat::Hot,
            Some((_, updates)) if u32::from(updates) >= self.options.hot_updates => Heat::Hot,
            _ => Heat::Cold,
        }
    }

    /// Where the sequence numbers of a partition's open block begin.
    fn sequences_of(&self, die: u32, partition: Heat) -> usize {
        (2 * die as usize + partition as usize) * self.h.pages_per_block() as usize
    }

    /// An open block is full: writes its summary.
    fn close<F: Flash>(
        &mut self,
        flash: &mut F,
        log: Log,
        die: u32,
        partition: Heat,
    ) -> Result<(), F::Error> {
        self.h.watch.random.closed(log);
        if !self.options.summary_pages {
            return Ok(());
        }
        let positions = self.plan.host_pages_per_block;
        let first = self.sequences_of(die, partition);
        let to = flash
            .ledger()
            .geometry()
            .ppn(self.h.log_block(log), positions);
        let (h, sequences) = (&self.h, &self.sequences);
        let oob = Oob {
            lpn: Lpn(positions),
            role: Role::Summary,
            tag: partition as u32,
        };
        let fill = |bytes: &mut [u8]| {
            let pages = (0..positions).map(|i| {
                let lpn = h.space().device_lpn(h.log_page(log, i));
                (lpn, sequences[first + i as usize])
            });
            summary::write(bytes, partition, pages);
        };
        flash.program_map(to, oob, fill, F::Token::default())?;
        self.counts.summary_programs += 1;
        Ok(())
    }
}

impl Described for LastPlusPlus {
    const KEY: &'static str = "last++";
    const TITLE: &'static str = "LAST++";
    const SUMMARY: &'static str =
        "striped sequential log blocks, hot and cold random ones, on all dies at once";
    const SOURCE: &'static str = "ACM TOS 2016";
    const TEXT: &'static str = include_str!("last_plus_plus.rs");
    type Options = LastPlusPlusOptions;

    fn check(space: &Space, options: &LastPlusPlusOptions) -> Result<(), Refusal> {
        Self::plan(space, options).map(|_| ())
    }

    fn tables(geometry: &Geometry, options: &LastPlusPlusOptions) -> Vec<Table> {
        config::tables(geometry, options)
    }

    fn ram_bytes(geometry: &Geometry, options: &LastPlusPlusOptions) -> u64 {
        config::ram_bytes(geometry, options)
    }

    fn recovery_costs(geometry: &Geometry, options: &LastPlusPlusOptions) -> Vec<RecoveryCost> {
        costs::recovery_costs(geometry, options)
    }

    fn counters(&self) -> SchemeCounters {
        let c = &self.counts;
        let m = &self.h.merges;
        let mut counters = SchemeCounters::of(m);
        let extra = [
            ("seq_pages", c.seq_pages),
            ("cold_pages", c.random_pages[0]),
            ("hot_pages", c.random_pages[1]),
            ("log_reclaimed", m.log_reclaimed),
            ("log_pages_used", m.log_pages_used),
            ("merge_invocations", c.merge_invocations),
            ("background_merges", c.background_merges),
            ("hash_lookups", c.hash_lookups),
            ("hash_references", c.hash_references),
        ];
        for (name, value) in extra {
            counters.extra(name, value);
        }
        let stats = [
            (
                "references_per_lookup",
                ratio(c.hash_references, c.hash_lookups),
            ),
            ("known_dead_victims", c.known_dead_victims as f64),
            ("summary_programs", c.summary_programs as f64),
            ("snapshot_programs", c.snapshot_programs as f64),
            ("snapshots_left_out", c.snapshots_left_out as f64),
        ];
        for (name, value) in stats.into_iter().chain(self.momentary()) {
            counters.stat(name, value, Combine::Sum);
        }
        counters
    }

    fn reset_counters(&mut self) {
        self.h.merges = Default::default();
        self.counts = Counts::new(self.dies());
    }

    fn observe(&self, seen: &mut Observation) {
        for (name, value) in self.momentary() {
            seen.sum(name, value);
        }
    }
}

impl Ftl for LastPlusPlus {
    type Page = Lpn;
    const USES_IDLE_TIME: bool = true;

    fn format<F: Preload>(
        space: &Space,
        options: &LastPlusPlusOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let (plan, hybrid) = Self::plan(space, options)?;
        let logs = Logs::new(space, options, &plan);
        let h = Hybrid::format(space, &hybrid, start, logs, flash)?;
        Ok(Self::new(h, options, plan))
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &LastPlusPlusOptions,
        means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let ftl = Self::mount(space, options, means, flash)?;
        audited(ftl, flash)
    }

    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        if !self.snapshot.is_empty() {
            self.drop_snapshot(flash)?;
        }
        let sequential = self.options.is_sequential(run.request_pages);
        run.iter().try_for_each(|(lpn, slot)| {
            let page = self.locate(lpn);
            if sequential && self.write_sequential(flash, slot, &page)? {
                return Ok(());
            }
            self.write_random(flash, slot, &page)
        })
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.write(flash, &Run::page_at(page, slot))
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let page = self.locate(page);
        if !self.look_up_page(&page) {
            self.look_up_segment(page.segment);
        }
        self.h.read(flash, slot, page.local)
    }

    fn trim_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        _slot: Slot,
    ) -> Result<(), F::Error> {
        if !self.snapshot.is_empty() {
            self.drop_snapshot(flash)?;
        }
        let page = self.locate(page);
        self.h.trim(page.local);
        Ok(())
    }

    fn tick<F: Flash>(&mut self, flash: &mut F, tick: &Tick) -> Result<(), F::Error> {
        let Some(idle_ns) = &tick.idle_ns else {
            return Ok(());
        };
        if self.options.background == Background::Off {
            return Ok(());
        }
        let from = idle_ns.start.saturating_add(self.options.idle_timeout_ns);
        self.background_merges(flash, from, idle_ns.end)
    }

    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        if !self.snapshot.is_empty() {
            return Ok(());
        }
        let pages = self.plan.layout.pages(flash.ledger().page_bytes());
        self.write_snapshot(flash, pages)
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.h.prefetch(self.locate(lpn).local);
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let live = self.h.audit(flash)?;
        self.audit_segments(flash)?;
        self.audit_budgets(flash)?;
        self.h.watch.random.audit(|log| {
            (0..self.h.pages_per_block())
                .filter(move |&position| self.h.is_valid_at(log, position))
                .map(move |position| (position, self.h.log_page(log, position)))
        })?;
        Ok(live)
    }
}
