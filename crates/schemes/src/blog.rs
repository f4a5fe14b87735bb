//! `blog`: BLog and, with `layout = mlc`, BLogFTL: log blocks that serve few logical blocks each.
//!
//! **Paper.** Guan et al., "A Block-Level Log-Block Management Scheme for MLC NAND Flash Memory Storage
//! Systems", IEEE Trans. Computers, 2017: section 3 is BLog, section 4 BLogFTL.
//!
//! **Rules.** docs/spec/blog.md has every one of them, to the last counter.
//!
//! **RAM state.** LDMT: the data block of each logical block, its next free page, and for each group of pages
//! where the newest sub-table lies (the page-mapping-table directory). DLT: the log blocks of each logical
//! block, at most `u`, in order. LMT: the logical blocks of each log block, at most `l`, in order; its next
//! free page; when it was last empty. One bit a page: live or not. Kept as well: the place of every page. In
//! `slc` that is the page map; in `mlc` it is a shadow of what the OOBs say, so that a flash without bytes
//! can be simulated, one with bytes be checked, and an OOB that has become unreadable costs no page but its own.
//!
//! **Flash state.** Data blocks and a fixed number of log blocks. `slc`: data blocks hold pages at their own
//! offsets. `mlc`: every block is filled from page 0 upward whatever the page, and the scheme's bytes of
//! each OOB hold the sub-table of the page's group: for each page of the group whether it lies in the data block
//! or a log block, in which log block of the DLT row, and at which offset. OOB besides: LPN, sequence
//! number, role data or log. These lie beside the scheme's 64 bytes; `oob_ecc_bytes` says what a device
//! that has no further bytes must keep for them.
//!
//! **How it writes, reads, reclaims.** An update goes to the last log block of its logical block, or to the
//! emptiest log block that may take one more logical block. A logical block that holds `u` full ones is merged
//! (Situation 1): its live pages move together, or the log block that holds them all alone becomes the
//! data block; no log block is erased, but its association falls. If every open log block serves `l`
//! logical blocks, one of them is merged so (Situation 2, Associativity-GC). If all are full, the one
//! with the smallest association is freed and erased (Situation 3, Space-GC). `mlc` reads the OOB of the
//! group's newest page before each page read, page write, and once a group before a merge.
//!
//! Options that are not the default: `association = valid` counts, of the logical blocks of a log block, those with
//! something live in it, and takes the others off it without a merge. That leaves a hole in the DLT row, which the
//! next log block fills. `situation2 = space_gc` frees a log block in Situation 2 as well.
//!
//! **Recovery.** Full OOB scan, newest sequence number per page. A page of the host names the data block of that
//! time, so the youngest page of a logical block tells its data block. A logical block without one has swapped in
//! the log block with its live pages. The others are the log blocks, ordered by their first page, and full from
//! then on. DLT and LMT keep their orders, so the sub-tables still hold; a logical block for which they do not, because
//! trimmed pages came back, has its pages copied together.
//!
//! **Deviations and why.** A written map in RAM tells pages that do not exist, which the paper would learn by an
//! OOB read each. A swapped-in block keeps sub-tables that call it a log block, since an OOB cannot be
//! rewritten: the LDMT keeps how many pages it inherited so, and what is found there means the block
//! itself. "Oldest" log block is the one that was emptied longest ago. Situation 2 waits until no log block is
//! both open and below `l`, and a swap needs a log block that serves nobody else: the paper is vague on both.

mod checks;
mod config;
mod log_table;
mod map;
mod merges;
mod recovery;
mod sub_table;
#[cfg(test)]
mod tests;
mod validity;

pub use config::{Association, BlogOptions, Layout, Situation2};

use crate::hints::{large_table, prefetch};
use crate::parts::hybrid::programmable;
use crate::parts::pool::Pool;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Divisor, Lbn, Pbn, Ppn};
use floatgate_core::described::Described;
use floatgate_core::flash::{Cause, Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::{Combine, Merges, Named, Observation, SchemeCounters, Table};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
use log_table::{LogTable, Row};
use map::Fetched;
use recovery::DataTag;
use sub_table::{Index, IndexFormat};

/// How often each reason to merge came up, and what the other counters of docs/spec/blog.md count.
#[derive(Clone, Debug, Default)]
struct Counts {
    situations: [u64; 3],
    reduced: u64,
    reduced_in_space_gc: u64,
    most_rebuilds: u64,
}

state!(Counts {
    situations,
    reduced,
    reduced_in_space_gc,
    most_rebuilds
});

/// One instance of BLog or BLogFTL.
#[derive(Debug)]
pub struct Blog {
    space: Space,
    layout: Layout,
    by_validity: bool,
    situation2: Situation2,
    /// Divides a page number inside a logical block by the pages of a group.
    by_entries: Divisor,
    groups: u32,
    format: IndexFormat,
    data_tag: DataTag,

    /// Place of the newest version of each page, `NONE` if the page is not live.
    place: Vec<Ppn>,
    /// LDMT: data block.
    data: Vec<Pbn>,
    /// Whether the data block takes no more pages, because a power cut may have left it half erased.
    is_closed: Vec<bool>,
    /// LDMT: pages of the data block that were written while it was a log block.
    inherited: Vec<u32>,
    /// LDMT: for each group of pages the page whose OOB holds the newest sub-table.
    directory: Vec<Ppn>,
    /// DLT and LMT.
    logs: LogTable,
    pool: Pool,

    /// What is known of the sub-table of the page in work.
    fetched: Fetched,
    /// The sub-table made of it, and that of the pages that a merge copies; made only where the flash stores bytes.
    table: Vec<Index>,
    copied: Vec<Index>,
    merges: Merges,
    counts: Counts,
    rebuilds_of_write: u64,
    in_space_gc: bool,
}

state!(Blog {
    place, data, is_closed, inherited, directory, logs, pool, fetched, merges, counts, rebuilds_of_write, in_space_gc,
} fixed { space, layout, by_validity, situation2, by_entries, groups, format, data_tag, table, copied });

impl Blog {
    #[inline(always)]
    fn split(&self, lpn: DieLpn) -> (Lbn, u32) {
        let (lbn, p) = self.space.geometry.by_pages().div_rem(lpn.0);
        (Lbn(lbn), p)
    }

    #[inline(always)]
    fn pages(&self) -> u32 {
        self.space.geometry.pages_per_block
    }

    #[inline(always)]
    fn directory_at(&self, lbn: Lbn, group: u32) -> usize {
        (lbn.0 * self.groups + group) as usize
    }

    /// Pages of a group, inside their logical block.
    fn group_pages(&self, group: u32) -> std::ops::Range<u32> {
        let entries = self.by_entries.get();
        let first = group * entries;
        first..self.pages().min(first + entries)
    }

    /// The page of the data block that takes page `p`, if one does. Gives the logical block a data block
    /// if it has none.
    #[inline]
    fn data_page<F: Flash>(&mut self, flash: &F, lpn: DieLpn, lbn: Lbn, p: u32) -> Option<u32> {
        if self.data[lbn.index()].is_none() {
            self.data[lbn.index()] = self.pool.take();
        }
        if self.is_closed[lbn.index()] {
            return None;
        }
        let block = self.data[lbn.index()];
        if self.layout == Layout::Slc {
            return programmable(flash, block, p).then_some(p);
        }
        let offset = flash.ledger().write_pointer(block);
        (self.place[lpn.index()].is_none() && offset < self.pages()).then_some(offset)
    }

    /// The row of the LMT that takes the next page of `lbn`; `None` if a merge had to come first, after which
    /// the page write starts again.
    #[inline]
    fn log_row<F: Flash>(&mut self, flash: &mut F, lbn: Lbn) -> Result<Option<u32>, F::Error> {
        if let Some(tail) = self.logs.open_tail(lbn) {
            return Ok(Some(tail));
        }
        if self.logs.holds_all(lbn) {
            if self.by_validity
                && let Some(row) = self.deserted(lbn)
            {
                self.take_off(lbn, row);
                return Ok(None);
            }
            self.counts.situations[0] += 1;
            self.reduced_order_merge(flash, lbn)?;
            return Ok(None);
        }
        if let Some(row) = self.logs.candidate() {
            self.logs.join(lbn, row);
            return Ok(Some(row));
        }
        let crowded = self.logs.emptiest();
        let situation = if crowded.is_some() { 1 } else { 2 };
        self.counts.situations[situation] += 1;
        match crowded.and_then(|row| self.logs.most_spread(row)) {
            Some(merged) if self.situation2 == Situation2::Merge => {
                self.reduced_order_merge(flash, merged)?;
            }
            _ => self.space_gc(flash)?,
        }
        Ok(None)
    }

    #[inline]
    fn append<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        row: u32,
        translated: F::Token,
    ) -> Result<(), F::Error> {
        let (lbn, _) = self.split(lpn);
        let Row { block, offset, .. } = self.logs.row(row);
        let index = Index {
            log: true,
            position: self.logs.tail_position(lbn).expect("the row is its tail"),
            offset,
        };
        let to = self.space.geometry.ppn(block, offset);
        self.program(flash, slot, lpn, to, index, Role::Log, translated)?;
        self.logs.append(row, lpn);
        Ok(())
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn program<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        to: Ppn,
        index: Index,
        role: Role,
        translated: F::Token,
    ) -> Result<(), F::Error> {
        let (lbn, p) = self.split(lpn);
        let tag = self.data_tag.of(flash, self.data[lbn.index()]);
        let oob = Oob::new(self.space.device_lpn(lpn), role).tagged(tag);
        let spare = oob.with_bytes(|bytes| {
            if self.layout == Layout::Mlc {
                self.write_sub_table(p, index, bytes);
            }
        });
        flash.program_host(slot, to, spare, translated)?;
        self.note_place(lpn, lbn, p, to);
        Ok(())
    }

    /// A page has a new place; its OOB has the newest sub-table of its group.
    #[inline(always)]
    fn note_place(&mut self, lpn: DieLpn, lbn: Lbn, p: u32, to: Ppn) {
        if self.by_validity {
            self.count_move(lpn, to);
        }
        self.place[lpn.index()] = to;
        if self.layout == Layout::Mlc {
            let at = self.directory_at(lbn, self.by_entries.div(p));
            self.directory[at] = to;
        }
    }
}

impl Described for Blog {
    const KEY: &'static str = "blog";
    const TITLE: &'static str = "BLogFTL";
    const SUMMARY: &'static str = "log blocks for few logical blocks each, page map in the OOBs";
    const SOURCE: &'static str = "Guan et al., IEEE TC 2017";
    const TEXT: &'static str = include_str!("blog.rs");
    type Options = BlogOptions;

    fn check(space: &Space, options: &BlogOptions) -> Result<(), Refusal> {
        options.plan(space).map(|_| ())
    }

    fn tables(geometry: &Geometry, options: &BlogOptions) -> Vec<Table> {
        options.tables(geometry)
    }

    fn ram_bytes(geometry: &Geometry, options: &BlogOptions) -> u64 {
        options.ram_bytes(geometry)
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters::of(&self.merges);
        counters.own_merges.push(Named {
            name: "reduced",
            value: self.counts.reduced,
            combine: Combine::Sum,
        });
        let [situation1, situation2, situation3] = self.counts.situations;
        counters.extra("situation1", situation1);
        counters.extra("situation2", situation2);
        counters.extra("situation3", situation3);
        counters.extra("wasted_data_pages", self.merges.wasted_data_pages);
        counters.extra("wasted_log_pages", self.merges.wasted_log_pages);
        counters.stat_sums([("reduced_in_space_gc", self.counts.reduced_in_space_gc)]);
        let most_rebuilds = self.counts.most_rebuilds as f64;
        counters.stat("most_rebuilds_in_a_page_write", most_rebuilds, Combine::Max);
        counters
    }

    fn reset_counters(&mut self) {
        self.merges = Merges::default();
        self.counts = Counts::default();
    }

    fn observe(&self, seen: &mut Observation) {
        let pairs = f64::from(self.logs.pairs());
        seen.mean("mean_association", pairs / f64::from(self.logs.len()));
        seen.mean("mean_dlt_row_length", pairs / self.data.len() as f64);
        seen.sum("free_log_pages", self.logs.free_pages() as f64);
        let [situation1, situation2, situation3] = self.counts.situations;
        seen.sum("situation1", situation1 as f64);
        seen.sum("situation2", situation2 as f64);
        seen.sum("situation3", situation3 as f64);
    }
}

impl Ftl for Blog {
    type Page = DieLpn;

    fn format<F: Preload>(
        space: &Space,
        options: &BlogOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let log_blocks = options.plan(space)?;
        options.check_oob(&space.geometry, flash.ledger().oob_bytes())?;
        let mut blog = Self::blank(space, options);
        if start == Start::Full {
            blog.fill(flash).map_err(MountError::Flash)?;
        }
        let log_blocks = (0..log_blocks).map(|_| blog.pool.take()).collect();
        let (logical_blocks, pages) = (space.logical_blocks(), blog.pages());
        blog.logs = LogTable::new(logical_blocks, pages, options.budgets(), log_blocks);
        Ok(blog)
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &BlogOptions,
        _means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let log_blocks = options.plan(space)?;
        options.check_oob(&space.geometry, flash.ledger().oob_bytes())?;
        let mut blog = Self::blank(space, options);
        blog.scan(options, log_blocks, flash)?;
        audited(blog, flash)
    }

    #[inline]
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let (lbn, p) = self.split(lpn);
        let mut translated = F::Token::default();
        if self.layout == Layout::Mlc {
            translated = self.fetch_sub_table(flash, lbn, self.by_entries.div(p))?;
        }
        self.rebuilds_of_write = 0;
        loop {
            if let Some(offset) = self.data_page(flash, lpn, lbn, p) {
                let to = self.space.geometry.ppn(self.data[lbn.index()], offset);
                let index = Index::in_data(offset);
                return self.program(flash, slot, lpn, to, index, Role::Data, translated);
            }
            if let Some(row) = self.log_row(flash, lbn)? {
                return self.append(flash, slot, lpn, row, translated);
            }
            self.counts.most_rebuilds = self.counts.most_rebuilds.max(self.rebuilds_of_write);
        }
    }

    #[inline]
    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let mut from = self.place[lpn.index()];
        if from.is_none() {
            flash.absent(slot, F::Token::default());
            return Ok(());
        }
        let mut translated = F::Token::default();
        if self.layout == Layout::Mlc {
            let (lbn, p) = self.split(lpn);
            let at = self.directory[self.directory_at(lbn, self.by_entries.div(p))];
            let (found, done) = flash.read_oob(at, Cause::Map, F::Token::default())?;
            translated = done;
            if let Some(found) = found {
                from = self.look_up(lpn, at, &found.bytes);
            }
        }
        flash.read_host(slot, from, translated)?;
        Ok(())
    }

    fn trim_page<F: Flash>(
        &mut self,
        _flash: &mut F,
        page: DieLpn,
        _slot: Slot,
    ) -> Result<(), F::Error> {
        if self.by_validity {
            self.count_move(page, Ppn::NONE);
        }
        self.place[page.index()] = Ppn::NONE;
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, lpn: DieLpn) {
        prefetch(&self.place, lpn.index());
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.audit_blocks(flash)?;
        self.logs.audit(flash, self.data.len() as u32)?;
        (0..self.data.len() as u32)
            .map(Lbn)
            .map(|lbn| self.audit_pages(flash, lbn))
            .sum()
    }
}

impl Blog {
    fn blank(space: &Space, options: &BlogOptions) -> Self {
        let geometry = &space.geometry;
        let (pages, logical_blocks) = (geometry.pages_per_block, space.logical_blocks());
        let mlc = options.layout == Layout::Mlc;
        let entries = if mlc {
            options.entries(geometry)
        } else {
            pages
        };
        let groups = pages.div_ceil(entries);
        let format = options.index_format(geometry);
        let first = geometry.pbn(space.first_die, 0).0;
        let blocks = (first..first + geometry.blocks_per_die).map(Pbn);
        Self {
            layout: options.layout,
            by_validity: options.association == Association::Valid,
            situation2: options.situation2,
            by_entries: Divisor::new(entries),
            groups,
            format,
            data_tag: DataTag::new(space),
            place: large_table(Ppn::NONE, space.logical_pages() as usize),
            data: vec![Pbn::NONE; logical_blocks as usize],
            is_closed: vec![false; logical_blocks as usize],
            inherited: vec![0; logical_blocks as usize],
            directory: vec![Ppn::NONE; (logical_blocks * groups) as usize],
            logs: LogTable::new(0, pages, options.budgets(), Vec::new()),
            pool: Pool::new(blocks, geometry.blocks_per_die),
            table: vec![format.unwritten(); entries as usize],
            fetched: Fetched::default(),
            copied: vec![format.unwritten(); entries as usize],
            merges: Merges::default(),
            counts: Counts::default(),
            rebuilds_of_write: 0,
            in_space_gc: false,
            space: space.clone(),
        }
    }
}
