//! `blog`: BLog and, with `layout = mlc`, BLogFTL: log blocks that serve few logical blocks each.
//!
//! **Paper.** Guan et al., "A Block-Level Log-Block Management Scheme for MLC NAND Flash Memory Storage
//! Systems", IEEE Trans. Computers, 2017: section 3 is BLog, section 4 BLogFTL.
//!
//! **RAM state.** LDMT: the data block of each logical block, its next free page, and for each group of pages
//! where the newest sub-table lies (the page-mapping-table directory). DLT: the log blocks of each logical
//! block, at most `u`, in order. LMT: the logical blocks of each log block, at most `l`, in order; its next
//! free page; when it was last empty. One bit a page: live or not. Kept as well: the place of every page. In
//! `slc` that is the page map; in `mlc` it is a shadow of what the OOBs say, so that a flash without bytes
//! can be simulated and one with bytes be checked.
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
//! **Recovery.** Full OOB scan, newest sequence number per page. Data blocks have role data; a logical block
//! without one has swapped in the log block with its oldest live page. The others of role log are the log
//! blocks, ordered by their first page. The sub-tables give the directory: newest page of each group.
//!
//! **Deviations and why.** A written map in RAM tells pages that do not exist, which the paper would learn by an
//! OOB read each. A swapped-in block keeps sub-tables that call it a log block, since an OOB cannot be
//! rewritten: the LDMT keeps how many pages it inherited so, and what is found there means the block
//! itself. "Oldest" log block is the one that was emptied longest ago. Situation 2 waits until no log block is
//! both open and below `l`, and a swap needs a log block that serves nobody else: the paper is vague on both.

use crate::address::{Divisor, Lpn, Pbn, Ppn};
use crate::flash::{Cause, Flash, Oob, Role, SCHEME_OOB_BYTES, Slot};
use crate::ftl::{Ftl, Refusal, Run, Start};
use crate::geometry::{Geometry, Space};
use crate::parts::hybrid::programmable;
use crate::parts::log_table::{LogTable, Row};
use crate::parts::pool::Pool;
use crate::parts::sub_table::{Index, IndexFormat};
use crate::report::{Combine, Memory, Merges, Named, Observation, SchemeCounters, Table};
use crate::{choice, options};

choice! {
    /// Where pages lie in a block and where the page map is kept.
    pub enum Layout {
        /// BLogFTL: blocks filled in order, page map in the OOBs.
        Mlc = "mlc",
        /// Plain BLog: data blocks hold pages at their own offsets, page map in RAM.
        Slc = "slc",
    }
}

options! {
    /// Options of `blog`.
    pub struct BlogOptions {
        /// Log blocks of the whole device, divided by the dies; at least 1 a die.
        log_blocks: u32 ["blocks, device"] = 512;
        /// Most log blocks that a logical block may hold.
        u: u32 ["log blocks"] = 2;
        /// Most logical blocks that a log block may serve.
        l: u32 ["logical blocks"] = 4;
        /// BLogFTL (mlc) or plain BLog (slc).
        layout: Layout [""] = Layout::Mlc;
        /// Bytes of a page's OOB.
        oob_bytes: u32 ["bytes"] = 64;
        /// Bytes of it that sub-tables may not use.
        oob_ecc_bytes: u32 ["bytes"] = 2;
        /// Pages in one sub-table; overrides what the OOB has room for.
        entries_per_oob: Option<u32> ["pages"] = None, shown "as many as the OOB holds";
    }
}

/// Most that `u` and `l` may be: the paper's tables number log blocks and logical blocks with two bytes.
const LIST_MAX: u32 = 65_535;

impl BlogOptions {
    fn index_format(&self, geometry: &Geometry) -> IndexFormat {
        IndexFormat::new(self.u.min(LIST_MAX), geometry.pages_per_block)
    }

    /// Pages in one sub-table; 0 if not one index fits.
    fn entries(&self, geometry: &Geometry) -> u32 {
        let bits = u64::from(self.oob_bytes.saturating_sub(self.oob_ecc_bytes)) * 8;
        let fit = bits / u64::from(self.index_format(geometry).bits());
        let entries = self.entries_per_oob.map_or(fit, u64::from);
        entries.min(geometry.pages_per_block.into()) as u32
    }

    /// Checks the options and returns the log blocks of one die.
    fn check(&self, space: &Space, bears_data: bool) -> Result<u32, Refusal> {
        for (key, value) in [("u", self.u), ("l", self.l)] {
            if !(1..=LIST_MAX).contains(&value) {
                let text = format!("{key} = {value}: takes 1 to {LIST_MAX}");
                return Err(Refusal::new(key, text));
            }
        }
        let (format, entries) = (
            self.index_format(&space.geometry),
            self.entries(&space.geometry),
        );
        if self.entries_per_oob == Some(0) {
            let text = "entries_per_oob = 0: a sub-table has at least 1 page";
            return Err(Refusal::new("entries_per_oob", text.into()));
        }
        if self.layout == Layout::Mlc && entries == 0 {
            let text = format!(
                "oob_bytes = {} with oob_ecc_bytes = {}: no room for an index of {} bits",
                self.oob_bytes,
                self.oob_ecc_bytes,
                format.bits()
            );
            return Err(Refusal::new("oob_bytes", text));
        }
        let bytes = format.bytes(entries);
        if self.layout == Layout::Mlc && bears_data && bytes > SCHEME_OOB_BYTES as u64 {
            let text = format!(
                "a sub-table of {entries} indexes of {} bits takes {bytes} bytes: a flash that bears data has \
                 {SCHEME_OOB_BYTES} for it",
                format.bits()
            );
            return Err(Refusal::new("entries_per_oob", text));
        }
        let log_blocks = super::log_budget(space, Some(self.log_blocks), 1)?;
        space.need_blocks(&[
            ("data blocks", space.logical_blocks()),
            ("log blocks", log_blocks),
            ("merge reserve", 1),
        ])?;
        Ok(log_blocks)
    }
}

/// How often each reason to merge came up, and what the page's other counters count.
#[derive(Clone, Debug, Default)]
struct Counts {
    situations: [u64; 3],
    reduced: u64,
    reduced_in_space_gc: u64,
    most_rebuilds: u64,
}

/// One instance of BLog or BLogFTL.
#[derive(Debug)]
pub struct Blog {
    space: Space,
    layout: Layout,
    /// Divides a page number inside a logical block by the pages of a group.
    by_entries: Divisor,
    groups: u32,
    format: IndexFormat,

    /// Place of the newest version of each page, `NONE` if the page is not live.
    place: Vec<Ppn>,
    /// LDMT: data block.
    data: Vec<Pbn>,
    /// LDMT: pages of the data block that were written while it was a log block.
    inherited: Vec<u32>,
    /// LDMT: for each group of pages the page whose OOB holds the newest sub-table.
    directory: Vec<Ppn>,
    /// DLT and LMT.
    logs: LogTable,
    pool: Pool,

    /// Sub-table of the page in work, and whose it is; used only where the flash bears data.
    table: Vec<Index>,
    table_of: Option<(u32, u32)>,
    /// Sub-table of the pages that a merge copies; likewise.
    copied: Vec<Index>,
    merges: Merges,
    counts: Counts,
    rebuilds_of_write: u64,
    in_space_gc: bool,
}

impl Blog {
    #[inline(always)]
    fn split(&self, lpn: Lpn) -> (u32, u32) {
        self.space.geometry.by_pages().div_rem(lpn.0)
    }

    #[inline(always)]
    fn pages(&self) -> u32 {
        self.space.geometry.pages_per_block
    }

    #[inline(always)]
    fn directory_at(&self, b: u32, group: u32) -> usize {
        (b * self.groups + group) as usize
    }

    /// Pages of a group, inside their logical block.
    fn group_pages(&self, group: u32) -> std::ops::Range<u32> {
        let entries = self.by_entries.get();
        let first = group * entries;
        first..self.pages().min(first + entries)
    }

    // ---- sub-tables -------------------------------------------------------------------------------

    /// Where an index leads that was found in the OOB of page `in_page` of logical block `b`.
    fn resolve(&self, b: u32, in_page: Ppn, index: Index) -> Option<Ppn> {
        let index = self.without_inheritance(b, in_page, index);
        let block = if index.log {
            let row = self.logs.rows_of(b).nth(index.position as usize)?;
            self.logs.row(row).block
        } else {
            self.data[b as usize]
        };
        Some(self.space.geometry.ppn(block, index.offset))
    }

    /// The index with the flag it would have now: what a swapped-in data block inherited from its time as a
    /// log block names it as one, but means itself.
    fn without_inheritance(&self, b: u32, in_page: Ppn, index: Index) -> Index {
        let (block, offset) = self.space.geometry.split(in_page);
        let inherited = block == self.data[b as usize] && offset < self.inherited[b as usize];
        if !inherited || index == self.format.unwritten() {
            return index;
        }
        Index::in_data(index.offset)
    }

    /// Takes the sub-table of a group into the buffer before a page of it is written: one OOB read if there
    /// is one.
    #[inline]
    fn fetch_sub_table<F: Flash>(
        &mut self,
        flash: &mut F,
        b: u32,
        group: u32,
    ) -> Result<F::Token, F::Error> {
        if F::BEARS_DATA {
            self.table.fill(self.format.unwritten());
            self.table_of = Some((b, group));
        }
        let at = self.directory[self.directory_at(b, group)];
        if at.is_none() {
            return Ok(F::Token::default());
        }
        let (_, token) = flash.read_oob(at, Cause::Map, F::Token::default())?;
        if F::BEARS_DATA {
            for i in 0..self.group_pages(group).len() as u32 {
                let index = self.format.unpack(flash.last_oob_bytes(), i);
                self.table[i as usize] = self.without_inheritance(b, at, index);
            }
        }
        Ok(token)
    }

    /// The buffered sub-table as it is after a merge of its logical block: every live page lies in the
    /// data block, and nothing else is known any more.
    fn renew_sub_table(&mut self, b: u32) {
        let Some((_, group)) = self.table_of.filter(|&(of, _)| of == b) else {
            return;
        };
        for (i, p) in self.group_pages(group).enumerate() {
            let at = self.place[(b * self.pages() + p) as usize];
            self.table[i] = if at.is_some() {
                Index::in_data(self.space.geometry.split(at).1)
            } else {
                self.format.unwritten()
            };
        }
    }

    /// Puts the buffered sub-table with page `p` changed into the OOB of the next program.
    #[inline]
    fn stage_sub_table<F: Flash>(&mut self, flash: &mut F, p: u32, index: Index) {
        let (_, i) = self.by_entries.div_rem(p);
        self.table[i as usize] = index;
        let (format, table) = (self.format, &self.table);
        flash.next_oob_bytes(|bytes| format.pack(table, bytes));
    }

    /// Reads the sub-tables of a logical block, before a merge. Where they bear data, they say where the
    /// pages are.
    fn read_sub_tables<F: Flash>(&mut self, flash: &mut F, b: u32) -> Result<(), F::Error> {
        for group in 0..self.groups {
            let at = self.directory[self.directory_at(b, group)];
            if at.is_none() {
                continue;
            }
            // Copies follow on the same die, so its order makes them wait.
            flash.read_oob(at, Cause::Map, F::Token::default())?;
            if F::BEARS_DATA {
                for p in self.group_pages(group) {
                    let lpn = Lpn(b * self.pages() + p);
                    if self.place[lpn.index()].is_some() {
                        self.place[lpn.index()] = self.look_up(flash, lpn, at);
                    }
                }
            }
        }
        Ok(())
    }

    /// The place of a live page by the OOB of page `at` that was read last.
    fn look_up<F: Flash>(&self, flash: &F, lpn: Lpn, at: Ppn) -> Ppn {
        let (b, p) = self.split(lpn);
        let (_, i) = self.by_entries.div_rem(p);
        let index = self.format.unpack(flash.last_oob_bytes(), i);
        let found = self.resolve(b, at, index);
        debug_assert_eq!(
            found,
            Some(self.place[lpn.index()]),
            "page {p} of {b} by {index:?} in the OOB of {}",
            at.0
        );
        found.expect("a sub-table names a log block that its logical block does not hold")
    }

    // ---- page write -------------------------------------------------------------------------------

    #[inline]
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
    ) -> Result<(), F::Error> {
        let (b, p) = self.split(lpn);
        let mut translated = F::Token::default();
        if self.layout == Layout::Mlc {
            translated = self.fetch_sub_table(flash, b, self.by_entries.div(p))?;
        }
        self.rebuilds_of_write = 0;
        loop {
            if let Some(offset) = self.data_page(flash, lpn, b, p) {
                let to = self.space.geometry.ppn(self.data[b as usize], offset);
                let index = Index::in_data(offset);
                return self.program(flash, slot, lpn, to, index, Role::Data, translated);
            }
            if let Some(row) = self.log_row(flash, b)? {
                return self.append(flash, slot, lpn, row, translated);
            }
            self.counts.most_rebuilds = self.counts.most_rebuilds.max(self.rebuilds_of_write);
        }
    }

    /// The page of the data block that takes page `p`, if one does. Gives the logical block a data block
    /// if it has none.
    #[inline]
    fn data_page<F: Flash>(&mut self, flash: &F, lpn: Lpn, b: u32, p: u32) -> Option<u32> {
        if self.data[b as usize].is_none() {
            self.data[b as usize] = self.pool.take();
        }
        let block = self.data[b as usize];
        if self.layout == Layout::Slc {
            return programmable(flash, block, p).then_some(p);
        }
        let offset = flash.written(block);
        (self.place[lpn.index()].is_none() && offset < self.pages()).then_some(offset)
    }

    /// The row of the LMT that takes the next page of `b`; `None` if a merge had to come first, after which
    /// the page write starts again.
    #[inline]
    fn log_row<F: Flash>(&mut self, flash: &mut F, b: u32) -> Result<Option<u32>, F::Error> {
        if let Some(tail) = self.logs.open_tail(b) {
            return Ok(Some(tail));
        }
        if self.logs.holds_all(b) {
            self.counts.situations[0] += 1;
            self.reduced_order_merge(flash, b)?;
            return Ok(None);
        }
        if let Some(row) = self.logs.candidate() {
            self.logs.join(b, row);
            return Ok(Some(row));
        }
        let crowded = self.logs.emptiest();
        if let Some(merged) = crowded.and_then(|row| self.logs.most_spread(row)) {
            self.counts.situations[1] += 1;
            self.reduced_order_merge(flash, merged)?;
            return Ok(None);
        }
        self.counts.situations[2] += 1;
        self.space_gc(flash)?;
        Ok(None)
    }

    #[inline]
    fn append<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        row: u32,
        translated: F::Token,
    ) -> Result<(), F::Error> {
        let (b, _) = self.split(lpn);
        let Row { block, offset, .. } = self.logs.row(row);
        let index = Index {
            log: true,
            position: self.logs.held(b) - 1,
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
        lpn: Lpn,
        to: Ppn,
        index: Index,
        role: Role,
        translated: F::Token,
    ) -> Result<(), F::Error> {
        let (b, p) = self.split(lpn);
        if F::BEARS_DATA && self.layout == Layout::Mlc {
            self.stage_sub_table(flash, p, index);
        }
        let oob = Oob::new(self.space.device_lpn(lpn), role);
        flash.host_program(slot, to, oob, translated)?;
        self.settle(lpn, b, p, to);
        Ok(())
    }

    /// A page has a new place; its OOB has the newest sub-table of its group.
    #[inline(always)]
    fn settle(&mut self, lpn: Lpn, b: u32, p: u32, to: Ppn) {
        self.place[lpn.index()] = to;
        if self.layout == Layout::Mlc {
            let at = self.directory_at(b, self.by_entries.div(p));
            self.directory[at] = to;
        }
    }

    // ---- merges -----------------------------------------------------------------------------------

    /// Brings all live pages of `b` into its data block; no log block is erased. Returns the row whose log
    /// block became the data block, if one did.
    fn reduced_order_merge<F: Flash>(
        &mut self,
        flash: &mut F,
        b: u32,
    ) -> Result<Option<u32>, F::Error> {
        self.rebuilds_of_write += 1;
        if self.layout == Layout::Mlc {
            self.read_sub_tables(flash, b)?;
        }
        let alone = self.row_with_everything(b);
        match alone {
            Some(row) => self.swap(flash, b, row)?,
            None => self.gather(flash, b)?,
        }
        if F::BEARS_DATA {
            self.renew_sub_table(b);
        }
        Ok(alone)
    }

    /// The row whose log block serves `b` alone and holds all its live pages (in `slc` at their own offsets
    /// and nothing else), if there is one.
    fn row_with_everything(&self, b: u32) -> Option<u32> {
        let pages = self.pages();
        let mine = &self.place[(b * pages) as usize..((b + 1) * pages) as usize];
        let mut live = mine.iter().filter(|at| at.is_some());
        let block = self.space.geometry.block_of(*live.next()?);
        let first = self.space.geometry.first_page(block).0;
        if !live.all(|at| (first..first + pages).contains(&at.0)) {
            return None;
        }
        let row = self.logs.row_at(b, block)?;
        let fits = self.layout == Layout::Mlc || self.is_aligned(row, b);
        (self.logs.association(row) == 1 && fits).then_some(row)
    }

    fn is_aligned(&self, row: u32, b: u32) -> bool {
        let own = b * self.pages()..;
        self.logs
            .programmed(row)
            .iter()
            .zip(own)
            .all(|(lpn, own)| lpn.0 == own)
    }

    /// The log block of `row` becomes the data block of `b`, the old data block the log block of `row`.
    fn swap<F: Flash>(&mut self, flash: &mut F, b: u32, row: u32) -> Result<(), F::Error> {
        let Row { block, offset, .. } = self.logs.row(row);
        if self.layout == Layout::Mlc {
            self.inherited[b as usize] = offset;
            self.find_sub_tables(b, row);
        }
        let old = std::mem::replace(&mut self.data[b as usize], block);
        self.logs.leave(b);
        self.erase_data(flash, old)?;
        self.merges.log_reclaimed += 1;
        self.merges.log_pages_used += u64::from(offset);
        self.logs.empty(row, old);
        self.merges.switch += 1;
        self.merges.erases_switch += u64::from(!self.in_space_gc);
        Ok(())
    }

    /// The directory of `b` when all its live pages lie in the log block of `row`: the highest page there of
    /// each group that has a live page.
    fn find_sub_tables(&mut self, b: u32, row: u32) {
        let first = self.directory_at(b, 0);
        self.directory[first..first + self.groups as usize].fill(Ppn::NONE);
        let first = self.space.geometry.first_page(self.logs.row(row).block).0;
        for (lpn, at) in self.logs.programmed(row).iter().zip(first..) {
            let (of, p) = self.split(*lpn);
            if of == b {
                let group = self.directory_at(b, self.by_entries.div(p));
                self.directory[group] = Ppn(at);
            }
        }
        for group in 0..self.groups {
            let is_live = |p| self.place[(b * self.pages() + p) as usize].is_some();
            if !self.group_pages(group).any(is_live) {
                let at = self.directory_at(b, group);
                self.directory[at] = Ppn::NONE;
            }
        }
    }

    /// Copies the live pages of `b` into a fresh data block, or leaves it without one if there are none.
    fn gather<F: Flash>(&mut self, flash: &mut F, b: u32) -> Result<(), F::Error> {
        let old = self.data[b as usize];
        let mut fresh = Pbn::NONE;
        let mut copies = 0;
        for group in 0..self.groups {
            if F::BEARS_DATA {
                self.copied.fill(self.format.unwritten());
            }
            let mut last = Ppn::NONE;
            for p in self.group_pages(group) {
                let lpn = Lpn(b * self.pages() + p);
                if self.place[lpn.index()].is_none() {
                    continue;
                }
                if fresh.is_none() {
                    fresh = self.pool.take();
                }
                let packed = self.layout == Layout::Mlc;
                last = self.copy(flash, lpn, fresh, if packed { copies } else { p })?;
                copies += 1;
            }
            let at = self.directory_at(b, group);
            self.directory[at] = if self.layout == Layout::Mlc {
                last
            } else {
                Ppn::NONE
            };
        }
        self.data[b as usize] = fresh;
        self.inherited[b as usize] = 0;
        self.logs.leave(b);
        self.erase_data(flash, old)?;
        self.pool.give(old);
        self.counts.reduced += 1;
        if self.in_space_gc {
            self.counts.reduced_in_space_gc += 1;
            self.merges.copies_full += u64::from(copies);
        }
        Ok(())
    }

    /// Copies a page to its place in a fresh data block. Its sub-table has what was copied so far: that of
    /// the group's last page is whole.
    #[inline]
    fn copy<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: Lpn,
        fresh: Pbn,
        offset: u32,
    ) -> Result<Ppn, F::Error> {
        if F::BEARS_DATA && self.layout == Layout::Mlc {
            let (_, p) = self.split(lpn);
            let (_, i) = self.by_entries.div_rem(p);
            self.copied[i as usize] = Index::in_data(offset);
            let (format, table) = (self.format, &self.copied);
            flash.next_oob_bytes(|bytes| format.pack(table, bytes));
        }
        let from = self.place[lpn.index()];
        let to = self.space.geometry.ppn(fresh, offset);
        let oob = Oob::new(self.space.device_lpn(lpn), Role::Data);
        flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
        self.place[lpn.index()] = to;
        Ok(to)
    }

    fn erase_data<F: Flash>(&mut self, flash: &mut F, block: Pbn) -> Result<(), F::Error> {
        self.merges.wasted_data_pages += u64::from(self.pages() - flash.programmed(block));
        self.merges.erases_full += u64::from(self.in_space_gc);
        flash.erase(block, Cause::Gc, F::Token::default())?;
        Ok(())
    }

    /// Frees the log block that serves fewest logical blocks.
    fn space_gc<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let row = self.logs.victim();
        let association = self.logs.association(row);
        if association > 0 {
            self.merges.count_full(association as usize);
        }
        self.in_space_gc = true;
        let mut swapped = false;
        while let Some(b) = self.logs.first_served(row) {
            swapped = self.reduced_order_merge(flash, b)? == Some(row);
        }
        self.in_space_gc = false;
        if swapped {
            return Ok(());
        }
        let Row { block, offset, .. } = self.logs.row(row);
        flash.erase(block, Cause::Gc, F::Token::default())?;
        self.merges.wasted_log_pages += u64::from(self.pages() - offset);
        self.merges.log_reclaimed += 1;
        self.merges.log_pages_used += u64::from(offset);
        if association > 0 {
            self.merges.erases_full += 1;
        } else {
            self.merges.dead += 1;
            self.merges.erases_dead += 1;
        }
        self.logs.empty(row, block);
        Ok(())
    }
}

impl Ftl for Blog {
    const KEY: &'static str = "blog";
    const TITLE: &'static str = "BLogFTL";
    const SUMMARY: &'static str = "log blocks for few logical blocks each, page map in the OOBs";
    const SOURCE: &'static str = "Guan et al., IEEE TC 2017";
    type Options = BlogOptions;

    fn ram_bytes(geometry: &Geometry, options: &BlogOptions) -> u64 {
        let logical_blocks = u64::from(geometry.logical_blocks());
        let log_blocks = u64::from(options.log_blocks);
        let pages = u64::from(geometry.pages_per_block);
        let entries = u64::from(options.entries(geometry).max(1));
        let groups = pages.div_ceil(entries);
        let (u, l) = (options.u.into(), options.l.into());
        4 * u64::from(geometry.logical_pages)
            + (8 + 4 * groups) * logical_blocks
            + 4 * u64::from(geometry.blocks())
            + LogTable::ram_bytes(logical_blocks, log_blocks, pages, u, l)
    }

    /// The paper's formula: `(10 + 2u) * Ndata + (3 + 2l) * Nlog` bytes. It leaves out the written map (a bit a
    /// page) and, for plain BLog, gives no size of the page map; four bytes a log page are taken.
    fn tables(geometry: &Geometry, options: &BlogOptions) -> Vec<Table> {
        let logical_blocks = u64::from(geometry.logical_blocks());
        let log_blocks = u64::from(options.log_blocks);
        let pages = u64::from(geometry.pages_per_block);
        let (u, l) = (
            u64::from(options.u.min(LIST_MAX)),
            u64::from(options.l.min(LIST_MAX)),
        );
        let mut tables = vec![
            Table::sram("LDMT", logical_blocks, 8 * (2 + 1 + 5)),
            Table::sram("DLT", logical_blocks, 8 * (2 + 2 * u)),
            Table::sram("LMT", log_blocks, 8 * (2 + 1 + 2 * l)),
        ];
        if options.layout == Layout::Slc {
            tables.push(Table::sram("log-page map", log_blocks * pages, 32));
            return tables;
        }
        let entries = u64::from(options.entries(geometry).max(1));
        tables.push(Table {
            name: "sub-tables in OOBs",
            entries: logical_blocks * pages.div_ceil(entries),
            bits_per_entry: entries * u64::from(options.index_format(geometry).bits()),
            memory: Memory::Flash,
        });
        tables
    }

    fn format<F: Flash>(
        space: &Space,
        options: &BlogOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, Refusal> {
        let log_blocks = options.check(space, F::BEARS_DATA)?;
        let mut blog = Self::blank(space, options);
        if start == Start::Full {
            blog.fill(flash);
        }
        let log_blocks = (0..log_blocks).map(|_| blog.pool.take()).collect();
        let (logical_blocks, pages) = (space.logical_blocks(), blog.pages());
        blog.logs = LogTable::new(logical_blocks, pages, options.u, options.l, log_blocks);
        Ok(blog)
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
        run.iter()
            .for_each(|(lpn, _)| self.place[lpn.index()] = Ppn::NONE);
        Ok(())
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters {
            merges: self.merges.clone(),
            own_merges: vec![Named {
                name: "reduced",
                value: self.counts.reduced,
                combine: Combine::Sum,
            }],
            ..SchemeCounters::default()
        };
        let [situation1, situation2, situation3] = self.counts.situations;
        counters.extra("situation1", situation1);
        counters.extra("situation2", situation2);
        counters.extra("situation3", situation3);
        counters.extra("wasted_data_pages", self.merges.wasted_data_pages);
        counters.extra("wasted_log_pages", self.merges.wasted_log_pages);
        let reduced_in_space_gc = self.counts.reduced_in_space_gc as f64;
        counters.stat("reduced_in_space_gc", reduced_in_space_gc, Combine::Sum);
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

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.audit_blocks(flash)?;
        self.logs.audit(flash, self.data.len() as u32)?;
        (0..self.data.len() as u32)
            .map(|b| self.audit_pages(flash, b))
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
            by_entries: Divisor::new(entries),
            groups,
            format,
            place: vec![Ppn::NONE; space.logical_pages() as usize],
            data: vec![Pbn::NONE; logical_blocks as usize],
            inherited: vec![0; logical_blocks as usize],
            directory: vec![Ppn::NONE; (logical_blocks * groups) as usize],
            logs: LogTable::new(0, pages, 1, 1, Vec::new()),
            pool: Pool::new(blocks, geometry.blocks_per_die),
            table: vec![format.unwritten(); entries as usize],
            table_of: None,
            copied: vec![format.unwritten(); entries as usize],
            merges: Merges::default(),
            counts: Counts::default(),
            rebuilds_of_write: 0,
            in_space_gc: false,
            space: space.clone(),
        }
    }

    /// Start state `full`: every logical block whole in the physical block of the same number.
    fn fill<F: Flash>(&mut self, flash: &mut F) {
        let pages = self.pages();
        for b in 0..self.data.len() as u32 {
            let block = self.pool.take();
            self.data[b as usize] = block;
            let space = &self.space;
            flash.preload(block, pages, Role::Data, &mut |p| {
                space.device_lpn(Lpn(b * pages + p))
            });
            for p in 0..pages {
                let at = self.space.geometry.ppn(block, p);
                self.settle(Lpn(b * pages + p), b, p, at);
                if F::BEARS_DATA && self.layout == Layout::Mlc {
                    let (group, i) = self.by_entries.div_rem(p);
                    let first = self.group_pages(group).start;
                    let table: Vec<Index> = (first..=first + i).map(Index::in_data).collect();
                    self.copied.fill(self.format.unwritten());
                    self.copied[..table.len()].copy_from_slice(&table);
                    let (format, table) = (self.format, &self.copied);
                    flash.preload_oob_bytes(at, |bytes| format.pack(table, bytes));
                }
            }
        }
    }

    #[inline]
    fn read_page<F: Flash>(&mut self, flash: &mut F, slot: Slot, lpn: Lpn) -> Result<(), F::Error> {
        let mut from = self.place[lpn.index()];
        if from.is_none() {
            flash.host_unwritten(slot, F::Token::default());
            return Ok(());
        }
        let mut translated = F::Token::default();
        if self.layout == Layout::Mlc {
            let (b, p) = self.split(lpn);
            let at = self.directory[self.directory_at(b, self.by_entries.div(p))];
            (_, translated) = flash.read_oob(at, Cause::Map, F::Token::default())?;
            if F::BEARS_DATA {
                from = self.look_up(flash, lpn, at);
            }
        }
        flash.host_read(slot, from, translated)?;
        Ok(())
    }

    // ---- checks -----------------------------------------------------------------------------------

    /// Every block is a data block, a log block or free, once.
    fn audit_blocks<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let geometry = &self.space.geometry;
        let first = geometry.pbn(self.space.first_die, 0).0;
        let mut uses = vec![0; geometry.blocks_per_die as usize];
        let data = self.data.iter().copied().filter(|block| block.is_some());
        let logs = (0..self.logs.len()).map(|row| self.logs.row(row).block);
        for block in data.chain(logs).chain(self.pool.iter()) {
            uses[(block.0 - first) as usize] += 1;
        }
        if let Some(block) = uses.iter().position(|&uses| uses != 1) {
            return Err(format!("block {block} has {} uses", uses[block]));
        }
        if self.pool.is_empty() || self.pool.iter().any(|block| flash.written(block) > 0) {
            return Err("no block is free, or a free block is not erased".into());
        }
        Ok(())
    }

    /// Live pages of `b` and its sub-tables lie in its data block or its log blocks.
    fn audit_pages<F: Flash>(&self, flash: &F, b: u32) -> Result<u64, String> {
        let geometry = &self.space.geometry;
        let data = self.data[b as usize];
        if data.is_none() && self.logs.held(b) > 0 {
            return Err(format!(
                "logical block {b} has log blocks and no data block"
            ));
        }
        let row_of = |block: Pbn| self.logs.row_at(b, block);
        let mut live = 0;
        for p in 0..self.pages() {
            let lpn = Lpn(b * self.pages() + p);
            let at = self.place[lpn.index()];
            if at.is_none() {
                continue;
            }
            live += 1;
            let (block, offset) = geometry.split(at);
            let fits = match row_of(block) {
                Some(row) => self.logs.programmed(row).get(offset as usize) == Some(&lpn),
                None => block == data && (self.layout == Layout::Mlc || offset == p),
            };
            if !fits || !flash.is_programmed(at) {
                return Err(format!("live page {p} of {b} cannot lie at {}", at.0));
            }
            let table = self.directory[self.directory_at(b, self.by_entries.div(p))];
            if self.layout == Layout::Mlc && table.is_none() {
                return Err(format!("live page {p} of {b} has no sub-table"));
            }
        }
        for group in 0..self.groups {
            let at = self.directory[self.directory_at(b, group)];
            if at.is_none() {
                continue;
            }
            let (block, _) = geometry.split(at);
            let known = block == data || row_of(block).is_some();
            if !known || !flash.is_programmed(at) {
                return Err(format!("sub-table {group} of {b} cannot lie at {}", at.0));
            }
        }
        Ok(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Striped;
    use crate::geometry::ProgramOrder;
    use crate::rng::SplitMix64;
    use crate::suite::{Bench, Case};

    type Device = Bench<Striped<Blog>>;

    fn device(case: &Case) -> Device {
        let mut bench = Bench::new(case).unwrap();
        bench.audit_each = true;
        bench
    }

    /// A row of the LMT as the worked examples show it: next free page and logical blocks.
    fn row(bench: &Device, block: u32) -> String {
        let blog = &bench.ftl.instances()[0];
        let row = (0..blog.logs.len()).find(|&row| blog.logs.row(row).block == Pbn(block));
        let row = row.expect("a log block");
        let list: Vec<String> = blog.logs.served(row).map(|b| b.to_string()).collect();
        format!("{} [{}]", blog.logs.row(row).offset, list.join(","))
    }

    fn rows(bench: &Device, blocks: std::ops::Range<u32>) -> String {
        let rows: Vec<String> = blocks.map(|block| row(bench, block)).collect();
        rows.join(" ")
    }

    fn place(bench: &Device, lpn: u32) -> (u32, u32) {
        let blog = &bench.ftl.instances()[0];
        let (block, offset) = blog.space.geometry.split(blog.place[lpn as usize]);
        (block.0, offset)
    }

    fn situations(bench: &Device) -> [u64; 3] {
        ["situation1", "situation2", "situation3"].map(|name| bench.extra(name))
    }

    /// What the OOBs say about every live page is where it lies.
    fn check_sub_tables(bench: &Device) {
        for blog in bench.ftl.instances() {
            for (i, &at) in blog.place.iter().enumerate().filter(|(_, at)| at.is_some()) {
                let (b, p) = blog.split(Lpn(i as u32));
                let (group, i) = blog.by_entries.div_rem(p);
                let table = blog.directory[blog.directory_at(b, group)];
                let bytes = bench.flash.peek_oob_bytes(table).unwrap();
                let index = blog.format.unpack(bytes, i);
                assert_eq!(blog.resolve(b, table, index), Some(at), "page {p} of {b}");
            }
        }
    }

    /// The device of Figs. 2 and 3: 9 logical blocks in blocks 0 to 8, log blocks 9 to 12, block 13 spare.
    fn figure_2(layout: &str) -> Case {
        Case::small(1, 14, 4, 9)
            .with("log_blocks", 4)
            .with("u", 2)
            .with("l", 2)
            .with("layout", layout)
    }

    /// Figs. 2 and 3: the paper's writes go to the emptiest log block; nothing is merged.
    fn play_figures_2_and_3(bench: &mut Device) {
        let steps: [(u32, (u32, u32), &str); 10] = [
            (0, (9, 0), "1 [0] 0 [] 0 [] 0 []"), // Fig. 2 is this step
            (4, (10, 0), "1 [0] 1 [1] 0 [] 0 []"),
            (8, (11, 0), "1 [0] 1 [1] 1 [2] 0 []"),
            (1, (9, 1), "2 [0] 1 [1] 1 [2] 0 []"),
            (2, (9, 2), "3 [0] 1 [1] 1 [2] 0 []"),
            (0, (9, 3), "4 [0] 1 [1] 1 [2] 0 []"),
            (12, (12, 0), "4 [0] 1 [1] 1 [2] 1 [3]"),
            (27, (10, 1), "4 [0] 2 [1,6] 1 [2] 1 [3]"),
            (5, (10, 2), "4 [0] 3 [1,6] 1 [2] 1 [3]"),
            (9, (11, 1), "4 [0] 3 [1,6] 2 [2] 1 [3]"),
        ];
        assert_eq!(rows(bench, 9..13), "0 [] 0 [] 0 [] 0 []");
        for (lpn, to, expected) in steps {
            bench.write(lpn, 1).unwrap();
            assert_eq!(place(bench, lpn), to, "page {lpn}");
            assert_eq!(rows(bench, 9..13), expected, "after page {lpn}");
        }
    }

    #[test]
    fn figures_2_and_3() {
        for (layout, oob_reads) in [("mlc", 10), ("slc", 0)] {
            let mut bench = device(&figure_2(layout));
            play_figures_2_and_3(&mut bench);
            let c = bench.counters();
            assert_eq!((c.programs.host, c.programs.gc, c.erases.gc), (10, 0, 0));
            assert_eq!((c.oob_reads.map, c.oob_reads.sum()), (oob_reads, oob_reads));
            assert_eq!(situations(&bench), [0, 0, 0]);
        }
    }

    /// Copies, erases and OOB reads since the start.
    fn costs(bench: &Device, mlc: bool) -> (u64, u64, u64) {
        let c = bench.counters();
        let oob_reads = c.oob_reads.map;
        assert!(
            mlc || oob_reads == 0,
            "slc has its map in memory and reads no OOB"
        );
        (c.programs.gc, c.erases.gc, oob_reads)
    }

    /// Worked example B: Figs. 2 and 3 go on into all three situations, a swap included.
    #[test]
    fn three_situations_after_figure_3() {
        for mlc in [true, false] {
            let mut bench = device(&figure_2(if mlc { "mlc" } else { "slc" }));
            play_figures_2_and_3(&mut bench);
            let oob = |n| if mlc { n } else { 0 };

            bench.play("W 0 1"); // 11
            assert_eq!(place(&bench, 0), (12, 1));
            let held: Vec<u32> = bench.ftl.instances()[0].logs.rows_of(0).collect();
            assert_eq!(held, [0, 3], "the rows of blocks 9 and 12");
            assert_eq!(costs(&bench, mlc), (0, 0, oob(11)));

            bench.play("W 13 1, W 14 1, W 8 1, W 10 1"); // 12 to 15
            assert_eq!(
                [13, 14, 8, 10].map(|lpn| place(&bench, lpn)),
                [(12, 2), (12, 3), (11, 2), (11, 3)]
            );
            assert_eq!(costs(&bench, mlc), (0, 0, oob(15)));

            bench.play("W 20 1"); // 16: Situation 2
            assert_eq!(situations(&bench), [0, 1, 0]);
            assert_eq!(bench.ftl.instances()[0].data[1], Pbn(13));
            assert_eq!(bench.flash.ledger.erase_count(Pbn(1)), 1);
            assert_eq!((place(&bench, 20), place(&bench, 5)), ((10, 3), (13, 1)));
            assert_eq!(row(&bench, 10), "4 [6,5]");
            assert_eq!(costs(&bench, mlc), (4, 1, oob(17)));

            bench.play("W 32 1"); // 17: Situation 3
            assert_eq!(situations(&bench), [0, 1, 1]);
            assert_eq!(bench.ftl.instances()[0].data[0], Pbn(1));
            assert_eq!(
                [0, 9].map(|b| bench.flash.ledger.erase_count(Pbn(b))),
                [1; 2]
            );
            assert_eq!(place(&bench, 32), (9, 0));
            assert_eq!(rows(&bench, 9..13), "1 [8] 4 [6,5] 4 [2] 4 [3]");
            assert_eq!(costs(&bench, mlc), (8, 3, oob(19)));

            bench.play("W 33 1, W 34 1, W 35 1"); // 18 to 20
            assert_eq!(place(&bench, 35), (9, 3));
            assert_eq!(costs(&bench, mlc), (8, 3, oob(22)));

            bench.play("W 32 1"); // 21: Situation 3
            assert_eq!(situations(&bench), [0, 1, 2]);
            assert_eq!(bench.ftl.instances()[0].data[2], Pbn(0));
            assert_eq!(
                [2, 11].map(|b| bench.flash.ledger.erase_count(Pbn(b))),
                [1; 2]
            );
            assert_eq!(place(&bench, 32), (11, 0));
            let held: Vec<u32> = bench.ftl.instances()[0].logs.rows_of(8).collect();
            assert_eq!(held, [0, 2], "the rows of blocks 9 and 11");
            assert_eq!(costs(&bench, mlc), (12, 5, oob(24)));

            bench.play("W 33 1, W 34 1, W 35 1"); // 22 to 24
            assert_eq!(place(&bench, 35), (11, 3));
            assert_eq!(costs(&bench, mlc), (12, 5, oob(27)));

            bench.play("W 35 1"); // 25: Situation 1, a swap
            assert_eq!(bench.ftl.instances()[0].data[8], Pbn(11));
            assert_eq!(bench.flash.ledger.erase_count(Pbn(8)), 1);
            assert_eq!(
                (row(&bench, 9), row(&bench, 8)),
                ("4 []".into(), "1 [8]".into())
            );
            assert_eq!(place(&bench, 35), (8, 0));
            assert_eq!(costs(&bench, mlc), (12, 6, oob(29)));

            assert_eq!(situations(&bench), [1, 1, 2]);
            let merges = bench.scheme().merges;
            assert_eq!((merges.switch, bench.extra("reduced")), (1, 3));
            assert_eq!(
                (merges.full, merges.full_merge_associated, merges.dead),
                (2, 2, 0)
            );
            bench.read_all().unwrap();
        }
    }

    /// The sub-table in the OOB of the page at `at` and the directory's entry of a group, as Fig. 5 shows them.
    fn show(blog: &Blog, index: Index) -> String {
        if index == blog.format.unwritten() {
            return "-".into();
        }
        format!(
            "{}/{}/{}",
            u32::from(index.log),
            index.position,
            index.offset
        )
    }

    fn directory_entry(bench: &Device, b: u32, group: u32) -> String {
        let blog = &bench.ftl.instances()[0];
        let at = blog.directory[blog.directory_at(b, group)];
        if at.is_none() {
            return "-".into();
        }
        let (block, offset) = blog.space.geometry.split(at);
        let position = blog
            .logs
            .rows_of(b)
            .position(|row| blog.logs.row(row).block == block);
        let index = Index {
            log: block != blog.data[b as usize],
            position: position.unwrap_or(0) as u32,
            offset,
        };
        show(blog, index)
    }

    /// Fig. 5, every row: data block and log block are the figure's #11 and #17, blocks 4 and 0 here.
    #[test]
    fn figure_5() {
        let case = Case {
            start: Start::Empty,
            ..Case::small(1, 16, 8, 8)
        };
        let case = case
            .with("log_blocks", 4)
            .with("u", 2)
            .with("l", 2)
            .with("entries_per_oob", 4);
        let mut bench = device(&case);
        type Step = (u32, u32, u32, &'static str, &'static str, u32, &'static str);
        let steps: [Step; 11] = [
            (35, 88, 1, "0/0/0", "-", 0, "- - - 0/0/0"),
            (36, 89, 2, "0/0/0", "0/0/1", 0, "0/0/1 - - -"),
            (34, 90, 3, "0/0/2", "0/0/1", 0, "- - 0/0/2 0/0/0"),
            (34, 136, 3, "1/0/0", "0/0/1", 1, "- - 1/0/0 0/0/0"),
            (34, 137, 3, "1/0/1", "0/0/1", 2, "- - 1/0/1 0/0/0"),
            (33, 91, 4, "0/0/3", "0/0/1", 2, "- 0/0/3 1/0/1 0/0/0"),
            (37, 92, 5, "0/0/3", "0/0/4", 2, "0/0/1 0/0/4 - -"),
            (35, 138, 5, "1/0/2", "0/0/4", 3, "- 0/0/3 1/0/1 1/0/2"),
            (34, 139, 5, "1/0/3", "0/0/4", 4, "- 0/0/3 1/0/3 1/0/2"),
            (39, 93, 6, "1/0/3", "0/0/5", 4, "0/0/1 0/0/4 - 0/0/5"),
            (37, 140, 6, "1/0/3", "1/0/4", 5, "0/0/1 1/0/4 - 0/0/5"),
        ];
        for (i, (lpn, figure_ppn, data_offset, index0, index1, log_offset, table)) in
            steps.into_iter().enumerate()
        {
            bench.write(lpn, 1).unwrap();
            let block = if figure_ppn < 96 { 4 } else { 0 };
            assert_eq!(place(&bench, lpn), (block, figure_ppn % 8), "step {i}");
            let blog = &bench.ftl.instances()[0];
            assert_eq!(bench.flash.written(Pbn(4)), data_offset);
            assert_eq!(blog.logs.row(0).offset, log_offset);
            assert_eq!(directory_entry(&bench, 4, 0), index0, "step {i}");
            assert_eq!(directory_entry(&bench, 4, 1), index1, "step {i}");
            let at = blog.place[lpn as usize];
            let bytes = bench.flash.peek_oob_bytes(at).unwrap();
            let shown: Vec<String> = (0..4)
                .map(|i| show(blog, blog.format.unpack(bytes, i)))
                .collect();
            assert_eq!(shown.join(" "), table, "step {i}");
            check_sub_tables(&bench);
        }
        assert_eq!(bench.counters().oob_reads.map, 9);
        bench.play("R 36 1");
        let c = bench.counters();
        assert_eq!(
            (c.programs.host, c.oob_reads.map, c.reads.host),
            (11, 10, 1)
        );
    }

    /// Section 7 of the paper: no more than 20 KB for 1,024 data blocks and 512 log blocks.
    #[test]
    fn memory_of_the_paper_is_19968_bytes() {
        let geometry = Geometry::new(1, 1600, 128, 1024 * 128, ProgramOrder::Ascending).unwrap();
        let options = BlogOptions::default();
        let sram = |options| {
            let tables = Striped::<Blog>::tables(&geometry, options);
            let sram = tables
                .into_iter()
                .filter(|table| table.memory == Memory::Sram);
            sram.map(|table| table.bits() / 8).collect::<Vec<_>>()
        };
        // LDMT and DLT are the paper's 14 bytes a data block, the LMT its 11 bytes a log block.
        assert_eq!(sram(&options), [8 * 1024, 6 * 1024, 5632]);
        assert_eq!(sram(&options).iter().sum::<u64>(), 19_968);
        // A whole page map would take 512 KB, the map of Superblock FTL 4 KB.
        assert_eq!((1024 * 128 * 4, 4 * 1024), (512 * 1024, 4096));
        let slc = BlogOptions {
            layout: Layout::Slc,
            ..options
        };
        assert_eq!(sram(&slc).iter().sum::<u64>(), 19_968 + 512 * 128 * 4);
    }

    /// Section 4: 64 bytes less 2 for the ECC hold 45 indexes of 11 bits; the directory takes 33 bits a row.
    #[test]
    fn three_sub_tables_of_45_pages() {
        let geometry = Geometry::new(1, 1600, 128, 1024 * 128, ProgramOrder::Ascending).unwrap();
        let options = BlogOptions {
            u: 8,
            ..BlogOptions::default()
        };
        let bits = options.index_format(&geometry).bits();
        let entries = options.entries(&geometry);
        let groups = 128_u32.div_ceil(entries);
        assert_eq!((bits, entries, groups, groups * bits), (11, 45, 3, 33));
        let default = BlogOptions::default();
        assert_eq!(default.index_format(&geometry).bits(), 9);
        assert_eq!(default.entries(&geometry), 55);
    }

    // Table 1's part in microseconds.
    const READ: u64 = 60;
    const PROGRAM: u64 = 800;
    const READ_OOB: u64 = 20;
    const ERASE: u64 = 1500;

    fn microseconds(bench: &Device) -> u64 {
        let c = bench.counters();
        c.reads.sum() * READ
            + c.programs.sum() * PROGRAM
            + c.oob_reads.sum() * READ_OOB
            + c.erases.sum() * ERASE
    }

    /// Table 2: best and worst case of one page, by its formulas and by playing them.
    #[test]
    fn table_2() {
        let merge = 128 * (READ + PROGRAM) + ERASE;
        assert_eq!(merge, 111_580, "page level, worst case");
        assert_eq!(READ + merge, 111_640, "DFTL, worst case");
        assert_eq!(
            4 * merge + ERASE,
            447_820,
            "Superblock FTL with N = 4, worst case"
        );

        // One log block that serves four logical blocks, full: the next page pays for all four.
        let case = Case::small(1, 8, 128, 6).with("log_blocks", 1).with("l", 4);
        let mut bench = device(&case);
        bench.play("R 5 1");
        assert_eq!(microseconds(&bench), READ_OOB + READ, "best case of a read");
        bench.play("W 0 1");
        let write = READ_OOB + PROGRAM;
        assert_eq!(
            microseconds(&bench),
            READ_OOB + READ + write,
            "best case of a write"
        );
        bench.play("W 128 42, W 256 42, W 384 43");
        let before = (microseconds(&bench), bench.counters().oob_reads.map);
        assert_eq!(row(&bench, 6), "128 [0,1,2,3]");
        bench.play("W 512 1");
        assert_eq!(situations(&bench), [0, 0, 1]);
        let oob_reads = bench.counters().oob_reads.map - before.1;
        assert_eq!(
            oob_reads,
            1 + 4 * 3,
            "this page's, and three groups a merge"
        );
        let worst = microseconds(&bench) - before.0 - PROGRAM - oob_reads * READ_OOB;
        assert_eq!(worst, 4 * merge + ERASE, "BLogFTL with l = 4, worst case");
    }

    /// A victim whose last logical block lies in it alone is swapped away: nothing is left to erase.
    #[test]
    fn space_gc_may_swap_its_victim_away() {
        for layout in ["mlc", "slc"] {
            let case = Case::small(1, 5, 4, 2)
                .with("log_blocks", 1)
                .with("l", 1)
                .with("layout", layout);
            let mut bench = device(&case);
            bench.play("W 0 4, W 4 1, R 0 8");
            let merges = bench.scheme().merges;
            assert_eq!((merges.full, merges.switch, merges.dead), (1, 1, 0));
            assert_eq!(
                (bench.extra("reduced"), merges.full_merge_associated),
                (0, 1)
            );
            assert_eq!(
                (bench.counters().erases.gc, bench.counters().programs.gc),
                (1, 0)
            );
            assert_eq!(
                row(&bench, 0),
                "1 [1]",
                "the old data block is the log block now"
            );
            assert_eq!((merges.log_reclaimed, merges.log_pages_used), (1, 4));
        }
    }

    /// Plain BLog swaps only a block whose pages lie at their own offsets; BLogFTL any order.
    #[test]
    fn slc_swaps_aligned_blocks_only() {
        for (layout, switch, copies) in [("mlc", 1, 0), ("slc", 0, 4)] {
            let case = Case::small(1, 5, 4, 2)
                .with("log_blocks", 1)
                .with("layout", layout);
            let mut bench = device(&case);
            bench.play("W 1 1, W 0 1, W 2 2, W 4 1, R 0 8");
            assert_eq!(bench.scheme().merges.switch, switch);
            assert_eq!(bench.counters().programs.gc, copies);
        }
    }

    /// A log block becomes a data block half full: its old sub-tables call it a log block, later ones a
    /// data block, and both are understood.
    #[test]
    fn a_swapped_in_block_understands_its_old_sub_tables() {
        let case = Case::small(1, 7, 8, 2)
            .with("log_blocks", 2)
            .with("u", 1)
            .with("l", 2)
            .with("entries_per_oob", 3);
        let mut bench = device(&case);
        // Logical block 0 keeps pages 0, 1 and 4 only; page 4 is rewritten until the log block is full.
        bench.play("T 0 8, W 0 2, W 4 1, W 4 1, W 4 1, W 4 1, W 1 1, W 0 1");
        let blog = &bench.ftl.instances()[0];
        assert_eq!((row(&bench, 2), blog.inherited[0]), ("8 [0]".into(), 0));
        bench.play("W 4 1");
        assert_eq!(bench.scheme().merges.switch, 1);
        let blog = &bench.ftl.instances()[0];
        assert_eq!((blog.data[0], blog.inherited[0]), (Pbn(2), 8));
        assert_eq!(
            directory_entry(&bench, 0, 2),
            "-",
            "no page of that group is live"
        );
        check_sub_tables(&bench);
        bench.play("W 7 1, W 0 1, R 0 8");
        check_sub_tables(&bench);
    }

    #[test]
    fn a_victim_without_a_logical_block_is_dead() {
        // Situation 1 of logical block 0 leaves the full log block to nobody.
        let case = Case::small(1, 6, 4, 2)
            .with("log_blocks", 1)
            .with("u", 1)
            .with("layout", "slc");
        let mut bench = device(&case);
        bench.play("W 1 1, W 0 1, W 3 1, W 2 1, W 0 1");
        assert_eq!(situations(&bench), [1, 0, 1]);
        let merges = bench.scheme().merges;
        assert_eq!(
            (merges.dead, merges.full, bench.extra("reduced")),
            (1, 0, 1)
        );
        assert_eq!((merges.log_reclaimed, merges.erases_dead), (1, 1));
    }

    /// A logical block without a live page loses its data block; never-programmed pages count as wasted.
    #[test]
    fn an_empty_logical_block_gives_its_data_block_back() {
        let case = Case {
            start: Start::Empty,
            ..Case::small(1, 6, 4, 2)
        };
        let mut bench = device(&case.with("log_blocks", 1).with("u", 1));
        bench.play("W 0 1, W 0 4, T 0 4, W 4 1, W 4 2, T 0 1, W 4 1");
        // The log block has one page of logical block 0, which is all trimmed now, and three of logical block
        // 1. The next page finds it full: both are merged.
        assert_eq!(situations(&bench), [0, 0, 0]);
        bench.play("W 4 1, W 4 1");
        let blog = &bench.ftl.instances()[0];
        assert_eq!(situations(&bench), [1, 0, 1]);
        assert_eq!(bench.extra("reduced"), 2);
        assert_eq!(bench.extra("wasted_data_pages"), 2);
        assert!(blog.data[0].is_none());
    }

    fn refusal(case: &Case) -> String {
        Device::new(case).unwrap_err().message
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let small = || Case::small(1, 14, 4, 9).with("log_blocks", 4);
        assert!(Device::new(&small()).is_ok());
        let asked = [
            (small().with("u", 0), "u = 0: takes 1 to 65535"),
            (small().with("l", 70_000), "l = 70000: takes 1 to 65535"),
            (small().with("entries_per_oob", 0), "at least 1 page"),
            (
                small().with("oob_bytes", 2),
                "no room for an index of 4 bits",
            ),
            (small().with("oob_ecc_bytes", 64), "no room for an index"),
            (
                small().with("log_blocks", 5),
                "9 data blocks + 5 log blocks + 1 merge reserve = 15",
            ),
            (
                small().with("log_blocks", 0),
                "at least 1 on each of 1 dies",
            ),
            (
                Case::small(2, 14, 4, 9).with("log_blocks", 5),
                "cannot be divided by 2 dies",
            ),
            (
                Case::small(1, 14, 512, 9)
                    .with("log_blocks", 4)
                    .with("entries_per_oob", 500),
                "a flash that bears data has 64",
            ),
        ];
        for (case, message) in asked {
            let refused = refusal(&case);
            assert!(refused.contains(message), "{refused}");
        }
        // What plain BLog does not use cannot be wrong.
        let slc = small().with("layout", "slc").with("oob_bytes", 0);
        assert!(Device::new(&slc).is_ok());
        for value in [65_535, 1] {
            let case = small().with("u", value).with("l", value);
            assert!(Device::new(&case).is_ok());
        }
    }

    /// One page write and the law of section 8 of the paper: never more than `l` rebuilds (two if `l` is 1) and
    /// never more than `l + 1` erases.
    fn write_within_the_bound(bench: &mut Device, lpn: u32, l: u64) -> Result<(), String> {
        let rebuilds = |bench: &Device| bench.scheme().merges.switch + bench.extra("reduced");
        let before = (
            rebuilds(bench),
            bench.counters().erases.gc,
            situations(bench),
        );
        bench.write(lpn, 1)?;
        let rebuilt = rebuilds(bench) - before.0;
        let erased = bench.counters().erases.gc - before.1;
        let entered: Vec<u64> = (0..3).map(|i| situations(bench)[i] - before.2[i]).collect();
        if rebuilt > l.max(2) || erased > l + 1 {
            return Err(format!(
                "{rebuilt} rebuilds and {erased} erases for one page"
            ));
        }
        if entered[0] > 1 || entered[1] + entered[2] > 1 {
            return Err(format!("situations {entered:?} in one page write"));
        }
        Ok(())
    }

    fn random_case(rng: &mut SplitMix64) -> (Case, u32) {
        let mut up_to = |n: u64| 1 + rng.below(n) as u32;
        let (dies, pages, logical) = (up_to(2), up_to(9), up_to(8));
        let (log_blocks, spare) = (up_to(5), up_to(3));
        let (u, l, entries) = (up_to(4), up_to(4), up_to(9));
        let mut case = Case::small(dies, logical + log_blocks + spare, pages, logical)
            .with("log_blocks", log_blocks * dies)
            .with("u", u)
            .with("l", l)
            .with("layout", ["mlc", "mlc", "slc"][rng.below(3) as usize]);
        if rng.below(2) == 0 {
            case = case.with("entries_per_oob", entries);
        }
        if rng.below(2) == 0 {
            case.start = Start::Empty;
        }
        if rng.below(2) == 0 {
            case.order = ProgramOrder::Any;
        }
        (case, l)
    }

    /// Random devices and requests; after each of them tables, OOBs and the bound are checked.
    #[test]
    fn never_more_than_l_rebuilds_in_one_page_write() {
        let devices = 400;
        for seed in 0..devices {
            let mut rng = SplitMix64::new(seed);
            let (case, l) = random_case(&mut rng);
            let mut bench = device(&case);
            let mlc = bench.ftl.instances()[0].layout == Layout::Mlc;
            let pages = u64::from(case.logical_pages);
            let (trims, hot) = (rng.below(4), 1 + rng.below(pages));
            for _ in 0..250 {
                let range = if rng.below(3) == 0 { pages } else { hot };
                let lpn = rng.below(range) as u32;
                let most = u64::from(case.logical_pages - lpn).min(1 + pages / 2);
                let outcome = match rng.below(12) {
                    kind if kind < trims => bench.trim(lpn, 1 + rng.below(most) as u32),
                    3 => bench.read(lpn, 1 + rng.below(most) as u32),
                    4 => {
                        let end = lpn + 1 + rng.below(most) as u32;
                        (lpn..end)
                            .try_for_each(|lpn| write_within_the_bound(&mut bench, lpn, l.into()))
                    }
                    _ => write_within_the_bound(&mut bench, lpn, l.into()),
                };
                outcome.unwrap_or_else(|error| panic!("seed {seed}, {case}: {error}"));
                if mlc {
                    check_sub_tables(&bench);
                }
            }
            bench.read_all().unwrap();
            assert_eq!(bench.extra("wasted_log_pages"), 0);
            let merges = bench.scheme().merges;
            assert!(merges.copies_full <= bench.counters().programs.gc);
            let erases = merges.erases_switch + merges.erases_full + merges.erases_dead;
            assert!(erases <= bench.counters().erases.gc);
        }
    }
}
