//! `leaftl`: page mapping by learned segments.
//!
//! **Paper.** Sun, Li, Sun, Sun, Vucinic, Huang, "LeaFTL: A Learning-Based Flash Translation Layer for Solid-State
//! Drives", ASPLOS 2023, and its public simulator.
//!
//! **Rules.** docs/spec/leaftl.md has every one of them, to the last counter; what it leaves open is as in
//! docs/spec/page.md.
//!
//! **RAM state.** By group of logical pages, levels of line segments from logical page to place, newer above older; the
//! members of segments whose line is not exact; the places of valid pages in open blocks; a mapped bit a page; the
//! valid pages of each block. Optionally a write buffer.
//!
//! **Flash state.** Data blocks filled in order. OOB: LPN, sequence number, role data, and the LPNs of the `gamma` pages
//! before.
//!
//! **How it writes, reads, reclaims.** Pages are appended as in page mapping. A block is learned when it is full: its valid
//! pages, in order of LPN, are cut into segments each of which puts its pages at most `gamma` pages wrong, and these
//! go on top of the levels. A read asks the levels from the top. Where an inexact segment is wrong, one or two pages
//! are read in vain, and their OOBs name the right one. A write or a trim looks for the old copy in the same way, by
//! OOBs alone. A collection moves the pages of its victim in order of LPN, which makes for long segments, and ends with the
//! segments of the victim. Every `compact_pages` programs the levels lose what is stale.
//!
//! **Recovery.** Full OOB scan: the newest number of an LPN wins, and every block in use is closed and learned anew.
//! The write buffer would be lost, so a flash that stores bytes, and can lose its power, refuses it.
//!
//! **Deviations and why.** Blocks are learned when they are full and not from a buffer that is flushed, so that no
//! acknowledged page waits in memory. All arithmetic is in whole numbers. Each copy of a collection is one read and one
//! program, though all reads come first by the rules: on one die that takes the same time. The map is in memory, as in
//! the paper's main figures; nothing of it is paged out to flash, and there is no snapshot. What the OOBs say is also in a
//! table beside the map, because a simulated flash holds nothing: every read of an OOB is there for its count and its time.

use crate::parts::page_store::{Append, GcOptions, Streams};
use crate::parts::pool::Pool;
use crate::parts::victims::Victims;
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Divisor, Pbn, Ppn};
use floatgate_core::described::Described;
use floatgate_core::flash::{Done, Flash, Preload, SCHEME_OOB_BYTES, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::options;
use floatgate_core::report::{Observation, SchemeCounters, Table};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};
use floatgate_core::wear::WearLeveling;

use crate::hints::{large_table, prefetch};
use levels::{Levels, Sizes};
use places::{PageBits, Places};
use segments::{GROUP_PAGES_MAX, Piece, Point};

mod audit;
mod collect;
mod find;
mod learn;
mod levels;
mod places;
mod recovery;
mod segments;
#[cfg(test)]
mod tests;

/// Largest error bound.
const GAMMA_MAX: u32 = 32;

options! {
    /// Options of `leaftl`.
    pub struct LeaFtlOptions {
        /// A die collects garbage until it has this many erased blocks.
        gc_low: u32 ["blocks, die"] = 2, samples [2, 3, 5];
        /// Whether pages moved by collections get an append point of their own.
        streams: Streams [""] = Streams::Split;
        /// Most pages by which a segment may be wrong, at most 32.
        gamma: u32 ["pages"] = 0, samples [0, 1, 2, 4, 16];
        /// Logical pages of a group, 2 to 256: no segment crosses its end.
        group_pages: u32 ["pages"] = 256, samples [2, 3, 8, 64, 256];
        /// Programs from one compaction to the next; 0: none.
        compact_pages: u32 ["pages, die"] = 65_536, samples [0, 1, 9, 60];
        /// Pages of the write buffer; 0: none. A power cut loses what is in it.
        buffer_pages: u32 ["pages, die"] = 0;
        ..gc: GcOptions;
    }
}

/// Counters since the last reset.
#[derive(Clone, Debug, Default)]
struct Counts {
    segments_learned: u64,
    compactions: u64,
    segment_lookups: u64,
    approximate_lookups: u64,
    levels_visited: u64,
    mispredictions: u64,
    extra_reads: u64,
    verify_reads: u64,
    buffer_hits: u64,
    buffer_overwrites: u64,
    /// Pages that the host wrote to the buffer, and pages programmed out of it.
    into_buffer: u64,
    out_of_buffer: u64,
    /// Pages of the host's requests and pages moved: each is translated once.
    translated: u64,
}

state!(Counts {
    segments_learned,
    compactions,
    segment_lookups,
    approximate_lookups,
    levels_visited,
    mispredictions,
    extra_reads,
    verify_reads,
    buffer_hits,
    buffer_overwrites,
    into_buffer,
    out_of_buffer,
    translated,
});

/// One instance of LeaFTL. Its physical pages and blocks are numbered from the first of its die.
#[derive(Debug)]
pub struct LeaFtl {
    space: Space,
    options: LeaFtlOptions,
    by_group: Divisor,
    /// The open table: by logical page its place, if that is in an open block.
    open: Vec<Ppn>,
    open_entries: u32,
    mapped: PageBits,
    places: Places,
    levels: Levels,
    /// By group: whether anything has changed since its last compaction.
    is_changed: Vec<bool>,
    victims: Victims,
    pool: Pool,
    host: Append,
    gc: Append,
    /// Programs so far, and those since the last compaction.
    clock: u64,
    since: u64,
    /// The write buffer: its pages, ascending.
    buffer: Vec<DieLpn>,
    counts: Counts,
    /// Scratch: pages being learned, pages being moved, points and segments of one group, groups of a victim.
    learning: Vec<(DieLpn, Ppn)>,
    moving: Vec<(DieLpn, Ppn)>,
    points: Vec<Point>,
    pieces: Vec<Piece>,
    groups: Vec<u32>,
}

state!(LeaFtl {
    open, open_entries, mapped, places, levels, is_changed, victims, pool, host, gc, clock, since, counts,
} grows { buffer } fixed { space, options, by_group, learning, moving, points, pieces, groups });

impl LeaFtl {
    /// Tables of an instance whose blocks are all taken.
    fn blank<F: Flash>(space: &Space, options: &LeaFtlOptions, flash: &F) -> Result<Self, Refusal> {
        Self::check(space, options)?;
        check_flash(options, flash)?;
        let geometry = &space.geometry;
        let (blocks, pages) = (geometry.blocks_per_die, geometry.pages_per_block);
        let logical = space.logical_pages();
        let of_die = Geometry::new(1, blocks, pages, logical.into(), geometry.program_order)?;
        let groups = logical.div_ceil(options.group_pages);
        let (gc, die) = (&options.gc, u64::from(space.first_die));
        let seed = gc.gc_seed.wrapping_add(die);
        Ok(Self {
            by_group: Divisor::new(options.group_pages),
            open: large_table(Ppn::NONE, logical as usize),
            open_entries: 0,
            mapped: PageBits::new(logical),
            places: Places::new(blocks, pages),
            levels: Levels::new(groups),
            is_changed: vec![false; groups as usize],
            victims: Victims::new(&of_die, gc.gc_policy, gc.gc_d, seed),
            pool: Pool::new(std::iter::empty(), blocks),
            host: Append::NONE,
            gc: Append::NONE,
            clock: 0,
            since: 0,
            buffer: Vec::new(),
            counts: Counts::default(),
            learning: Vec::with_capacity(pages as usize),
            moving: Vec::with_capacity(pages as usize),
            points: Vec::with_capacity(GROUP_PAGES_MAX as usize),
            pieces: Vec::with_capacity(GROUP_PAGES_MAX as usize),
            groups: Vec::with_capacity(pages as usize),
            options: options.clone(),
            space: space.clone(),
        })
    }

    #[inline(always)]
    fn pages(&self) -> u32 {
        self.space.geometry.pages_per_block
    }

    /// The block of a place, and the page of the block.
    #[inline(always)]
    fn split(&self, at: Ppn) -> (Pbn, u32) {
        self.space.geometry.split(at)
    }

    /// A place of this instance as the flash numbers it.
    #[inline(always)]
    fn on_flash(&self, at: Ppn) -> Ppn {
        self.space.ppn(at.index())
    }

    /// A block of this instance as the flash numbers it.
    #[inline(always)]
    fn block_on_flash(&self, block: Pbn) -> Pbn {
        self.space.geometry.pbn(self.space.first_die, block.0)
    }

    /// The group of a page, and the page in the group.
    #[inline(always)]
    fn group_of(&self, lpn: DieLpn) -> (u32, u32) {
        self.by_group.div_rem(lpn.0)
    }

    /// Every logical page at the physical page of its number, all blocks learned.
    fn fill<F: Preload>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let pages = self.pages();
        for block in (0..self.space.logical_blocks()).map(Pbn) {
            self.victims.taken(block);
            for at in block.0 * pages..(block.0 + 1) * pages {
                self.places.program(Ppn(at), DieLpn(at));
                self.mapped.set(at);
            }
            self.clock += u64::from(pages);
            self.victims.filled(block, self.clock);
            let to = self.block_on_flash(block);
            flash.preload(to, pages, |o| {
                let at = Ppn(block.0 * pages + o);
                self.spare(at, DieLpn(at.0), 0)
            })?;
            self.learn(block);
        }
        self.counts = Counts::default();
        Ok(())
    }

    /// A page of the host goes to the buffer, which is written once it is full.
    fn write_to_buffer<F: Flash>(&mut self, flash: &mut F, lpn: DieLpn, slot: Slot) -> Done<F> {
        self.counts.into_buffer += 1;
        match self.buffer.binary_search(&lpn) {
            Ok(_) => self.counts.buffer_overwrites += 1,
            Err(place) => self.buffer.insert(place, lpn),
        }
        if self.buffer.len() < self.options.buffer_pages as usize {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        for lpn in buffer.drain(..) {
            self.counts.out_of_buffer += 1;
            self.append(flash, lpn, slot)?;
        }
        self.buffer = buffer;
        Ok(())
    }

    #[inline]
    fn is_buffered(&self, lpn: DieLpn) -> bool {
        !self.buffer.is_empty() && self.buffer.binary_search(&lpn).is_ok()
    }

    /// Bytes of the map.
    fn map_bytes(&self, sizes: &Sizes) -> u64 {
        let tables = self.tables_of(sizes);
        tables.iter().map(Table::bits).sum::<u64>() / 8
    }

    /// What the map consists of.
    fn tables_of(&self, sizes: &Sizes) -> [Table; 5] {
        let mapped = u64::from(self.space.logical_pages().div_ceil(8));
        [
            Table::dram("segments", sizes.segments, 64),
            Table::dram("members of segments", sizes.crb_bytes, 8),
            Table::dram("groups", self.levels.groups().into(), 32),
            Table::dram("open table", self.open_entries.into(), 64),
            Table::dram("mapped bits", mapped, 8),
        ]
    }
}

/// Refuses options that are out of range.
fn check_ranges(options: &LeaFtlOptions) -> Result<(), Refusal> {
    let refuse = |key, text: String| Err(Refusal::new(key, format!("{key} = {text}")));
    if options.gc_low < 2 {
        let text = format!("{}: at least 2 erased blocks a die", options.gc_low);
        return refuse("gc_low", text);
    }
    if options.gc.gc_d == 0 {
        return refuse("gc_d", "0: at least 1 draw".into());
    }
    if options.gamma > GAMMA_MAX {
        let text = format!("{}: at most {GAMMA_MAX} pages", options.gamma);
        return refuse("gamma", text);
    }
    if !(2..=GROUP_PAGES_MAX).contains(&options.group_pages) {
        let text = format!("{}: 2 to {GROUP_PAGES_MAX} pages", options.group_pages);
        return refuse("group_pages", text);
    }
    Ok(())
}

/// Refuses what only the flash can tell: one that stores bytes has spare areas of a size, and loses its power.
fn check_flash<F: Flash>(options: &LeaFtlOptions, flash: &F) -> Result<(), Refusal> {
    let spare = flash.ledger().oob_bytes();
    if spare == usize::MAX {
        return Ok(());
    }
    if options.buffer_pages > 0 {
        let text = format!(
            "buffer_pages = {}: a flash that stores bytes has no capacitor, and a power cut would lose what was \
             acknowledged",
            options.buffer_pages
        );
        return Err(Refusal::new("buffer_pages", text));
    }
    let needed = 4 * options.gamma as usize;
    if needed > spare.min(SCHEME_OOB_BYTES) {
        let text = format!(
            "gamma = {}: the pages before take {needed} bytes of a spare area, a flash that stores bytes has {spare}",
            options.gamma
        );
        return Err(Refusal::new("gamma", text));
    }
    Ok(())
}

impl Described for LeaFtl {
    const KEY: &'static str = "leaftl";
    const TITLE: &'static str = "LeaFTL";
    const SUMMARY: &'static str = "page mapping by learned line segments with an error bound";
    const SOURCE: &'static str = "Sun et al., ASPLOS 2023";
    const TEXT: &'static str = include_str!("leaftl.rs");
    type Options = LeaFtlOptions;

    fn check(space: &Space, options: &LeaFtlOptions) -> Result<(), Refusal> {
        check_ranges(options)?;
        space.need_blocks(&[
            ("data blocks", space.logical_blocks()),
            ("blocks for gc_low", options.gc_low),
            ("open block", 1),
        ])
    }

    /// The page wants static levelling refused: it knows moved blocks whose gaps have no OOB.
    fn check_levelling(options: &LeaFtlOptions, leveling: WearLeveling) -> Result<(), Refusal> {
        if leveling == WearLeveling::Static && options.gamma > 0 {
            let text = format!(
                "wear_leveling = static: not with gamma = {}, for blocks that it moves may have gaps without OOB; gamma = 0 \
                 can have it",
                options.gamma
            );
            return Err(Refusal::new("wear_leveling", text));
        }
        Ok(())
    }

    /// The tables of a device that was written in order. A run counts its own (`map_bytes`).
    fn tables(geometry: &Geometry, options: &LeaFtlOptions) -> Vec<Table> {
        let (dies, pages) = (u64::from(geometry.dies), geometry.pages_per_block);
        let logical = geometry.logical_pages_per_die();
        // A segment ends with its block or its group.
        let group = options.group_pages.max(1);
        let shared = u64::from(pages) * u64::from(group) / u64::from(common_divisor(pages, group));
        let segments = u64::from(logical / pages) + u64::from(logical.div_ceil(group))
            - u64::from(logical).div_ceil(shared);
        vec![
            Table::dram("segments", dies * segments, 64),
            Table::dram("groups", dies * u64::from(logical.div_ceil(group)), 32),
            Table::dram("mapped bits", dies * u64::from(logical.div_ceil(8)), 8),
        ]
    }

    fn tables_held(&self) -> Option<Vec<Table>> {
        Some(self.tables_of(&self.levels.sizes()).into())
    }

    fn ram_bytes(geometry: &Geometry, options: &LeaFtlOptions) -> u64 {
        let (logical, physical) = (
            u64::from(geometry.logical_pages),
            u64::from(geometry.pages()),
        );
        let groups = logical / u64::from(options.group_pages.max(1)) + u64::from(geometry.dies);
        // Random writes can leave a segment for every page.
        4 * logical
            + logical / 8
            + Places::ram_bytes(geometry.blocks().into(), physical)
            + Levels::ram_bytes(groups, logical)
            + 4 * u64::from(geometry.blocks())
            + Victims::ram_bytes(geometry)
    }

    fn counters(&self) -> SchemeCounters {
        let (sizes, counts) = (self.levels.sizes(), &self.counts);
        let mut counters = SchemeCounters {
            dram_accesses: Some(counts.translated),
            ..SchemeCounters::default()
        };
        counters.extra("segments", sizes.segments);
        counters.extra("segments_approximate", sizes.approximate);
        counters.extra_max("levels_max", sizes.levels.into());
        counters.extra("crb_bytes", sizes.crb_bytes);
        counters.extra("map_bytes", self.map_bytes(&sizes));
        for (name, value) in [
            ("segments_learned", counts.segments_learned),
            ("compactions", counts.compactions),
            ("segment_lookups", counts.segment_lookups),
            ("approximate_lookups", counts.approximate_lookups),
            ("levels_visited", counts.levels_visited),
            ("mispredictions", counts.mispredictions),
            ("extra_reads", counts.extra_reads),
            ("verify_reads", counts.verify_reads),
            ("buffer_hits", counts.buffer_hits),
            ("buffer_overwrites", counts.buffer_overwrites),
        ] {
            counters.extra(name, value);
        }
        counters.buffered.writes = counts.into_buffer;
        counters.buffered.programs = counts.out_of_buffer;
        counters.buffered.reads = counts.buffer_hits;
        counters
    }

    fn reset_counters(&mut self) {
        self.counts = Counts::default();
    }

    fn observe(&self, seen: &mut Observation) {
        let sizes = self.levels.sizes();
        seen.sum("erased_blocks", self.pool.len().into());
        seen.sum("segments", sizes.segments as f64);
        seen.sum("map_bytes", self.map_bytes(&sizes) as f64);
    }
}

/// The greatest common divisor.
fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl Ftl for LeaFtl {
    type Page = DieLpn;

    fn format<F: Preload>(
        space: &Space,
        options: &LeaFtlOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut scheme = Self::blank(space, options, flash)?;
        let used = match start {
            Start::Empty => 0,
            Start::Full => space.logical_blocks(),
        };
        let blocks = space.geometry.blocks_per_die;
        scheme.pool = Pool::new((used..blocks).map(Pbn), blocks);
        if start == Start::Full {
            scheme.fill(flash).map_err(MountError::Flash)?;
        }
        Ok(scheme)
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &LeaFtlOptions,
        _means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut scheme = Self::blank(space, options, flash)?;
        scheme.scan(flash)?;
        audited(scheme, flash)
    }

    fn write_page<F: Flash>(&mut self, flash: &mut F, page: DieLpn, slot: Slot) -> Done<F> {
        self.counts.translated += 1;
        if self.options.buffer_pages > 0 {
            return self.write_to_buffer(flash, page, slot);
        }
        self.append(flash, page, slot)
    }

    fn read_page<F: Flash>(&mut self, flash: &mut F, page: DieLpn, slot: Slot) -> Done<F> {
        self.counts.translated += 1;
        if self.is_buffered(page) {
            self.counts.buffer_hits += 1;
            return Ok(());
        }
        if !self.mapped.has(page.0) {
            flash.absent(slot, F::Token::default());
            return Ok(());
        }
        let (at, found) = self.place_to_read(flash, page)?;
        flash.read_host(slot, self.on_flash(at), found)?;
        Ok(())
    }

    fn trim_page<F: Flash>(&mut self, flash: &mut F, page: DieLpn, slot: Slot) -> Done<F> {
        self.counts.translated += 1;
        if let Ok(place) = self.buffer.binary_search(&page) {
            self.buffer.remove(place);
        }
        if !self.mapped.has(page.0) {
            return Ok(());
        }
        let (old, found) = self.old_place(flash, page, F::Token::default())?;
        self.invalidate(old);
        self.mapped.clear(page.0);
        self.close_entry(page);
        let group = self.group_of(page).0;
        self.is_changed[group as usize] = true;
        flash.absent(slot, found);
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, page: DieLpn) {
        prefetch(&self.open, page.index());
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.check_tables(flash)
    }
}
