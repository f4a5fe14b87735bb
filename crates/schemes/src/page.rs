//! `page`: ideal page mapping.
//!
//! **Paper.** The yardstick of all five: HAT section II.B.1, LAST++ section 2.1 and Table II, FASTer Table II,
//! BLogFTL Table 2. Victim rules: greedy and cost-benefit (Kawaguchi et al., USENIX 1995), FIFO and
//! d-choices (Van Houdt, SIGMETRICS 2013).
//!
//! **Rules.** docs/spec/page.md has every one of them, to the last counter.
//!
//! **RAM state.** The whole page table; per block the valid pages, the order of allocation, an age.
//!
//! **Flash state.** Data blocks filled in order. OOB: LPN, sequence number, role data.
//!
//! **How it writes, reads, reclaims.** A page is appended to the open block of its die; the old copy becomes
//! invalid. When the open block is full and the die has fewer than `gc_low` erased blocks, blocks are
//! collected: valid pages move to an append point of their own (or the common one), the block is erased.
//! A read is one page read.
//!
//! **Recovery.** Full OOB scan: the newest number of an LPN wins. The tag of a moved page tells the block that a
//! cut collection was filling, and the one it had emptied. Blocks found in use are closed.
//!
//! **Deviations and why.** The papers give the scheme in a paragraph. HAT's GC threshold of 0.2 is read as a
//! share of the spare blocks (a fifth of the device cannot stay erased when a tenth is spare). Blocks
//! without an invalid page are never taken, whatever the policy: moving them gains nothing. Age counts
//! programs, not time.

use std::sync::Arc;

use crate::parts::page_store::Known;
use crate::parts::placement::{House, PageOptions, Placement, Rules, Store};
use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Ppn};
use floatgate_core::described::{ChipTimes, Described};
use floatgate_core::flash::{Flash, Preload, Slot};
use floatgate_core::ftl::{Coming, Ftl, MountError, RecoveryMode, Start, Tick, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::{Observation, SchemeCounters, Table, bits_for};
use floatgate_core::state;
use floatgate_core::state::{Passed, State, Tape};

/// Ideal page mapping on all dies, with the rules of this crate.
pub type Page = PageBy<House>;

/// Page mapping whose append points and victims follow any rules.
#[derive(Debug)]
pub struct PageBy<R: Rules> {
    store: Store<R>,
    /// Pages of the host's requests: each touches one entry of the table, as does each page moved.
    host_pages: u64,
}

state!(PageBy<R> [R: Rules] { store, host_pages });

impl<R: Rules> PageBy<R> {
    /// Where a page lies on the flash, or `NONE`.
    pub fn place(&self, page: Lpn) -> Ppn {
        self.store.place(page)
    }
}

impl<R: Rules> Described for PageBy<R> {
    const KEY: &'static str = R::KEY;
    const TITLE: &'static str = R::TITLE;
    const SUMMARY: &'static str = R::SUMMARY;
    const SOURCE: &'static str = R::SOURCE;
    const TEXT: &'static str = R::TEXT;
    type Options = PageOptions;

    fn check(space: &Space, options: &PageOptions) -> Result<(), Refusal> {
        Store::<R>::check(space, options)
    }

    fn tables(geometry: &Geometry, options: &PageOptions) -> Vec<Table> {
        let pages = u64::from(geometry.logical_pages);
        let mut tables = vec![Table::dram("page map", pages, bits_for(pages))];
        tables.extend(Store::<R>::tables(geometry, options));
        tables
    }

    fn ram_bytes(geometry: &Geometry, options: &PageOptions) -> u64 {
        Store::<R>::ram_bytes(geometry, options)
    }

    fn fit_to_chip(options: &mut PageOptions, chip: ChipTimes) {
        options.fit::<R>(chip);
    }

    fn weighs_dies(options: &PageOptions) -> bool {
        options.placement == Placement::Free
    }

    fn uses_idle_time(options: &PageOptions) -> bool {
        options.idle.is_on()
    }

    fn uses_streams(options: &PageOptions) -> bool {
        Store::<R>::uses_streams(options)
    }

    fn live(options: &PageOptions) -> Result<(), Refusal> {
        Store::<R>::live(options)
    }

    fn looks_ahead(options: &PageOptions) -> usize {
        Store::<R>::looks_ahead(options)
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters {
            dram_accesses: Some(self.host_pages + self.store.moved()),
            ..SchemeCounters::default()
        };
        self.store.count(&mut counters);
        counters
    }

    fn reset_counters(&mut self) {
        self.host_pages = 0;
        self.store.reset_counters();
    }

    fn observe(&self, seen: &mut Observation) {
        seen.sum("erased_blocks", self.store.erased_blocks().into());
    }
}

impl<R: Rules> Ftl for PageBy<R> {
    type Page = Lpn;
    const USES_IDLE_TIME: bool = true;

    fn format<F: Preload>(
        space: &Space,
        options: &PageOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Ok(Self {
            store: Store::format(space, options, start, flash)?,
            host_pages: 0,
        })
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &PageOptions,
        _means: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let store = Store::recover(space, options, &Known::default(), flash)?;
        let page = Self {
            store,
            host_pages: 0,
        };
        audited(page, flash)
    }

    #[inline(always)]
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.host_pages += 1;
        self.store
            .write(flash, slot, page, F::Token::default(), &mut ())?;
        Ok(())
    }

    #[inline(always)]
    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.host_pages += 1;
        let at = self.store.place(page);
        if at.is_none() {
            flash.absent(slot, F::Token::default());
        } else {
            flash.read_host(slot, at, F::Token::default())?;
        }
        Ok(())
    }

    fn trim_page<F: Flash>(
        &mut self,
        _flash: &mut F,
        page: Lpn,
        _slot: Slot,
    ) -> Result<(), F::Error> {
        self.host_pages += 1;
        self.store.trim(page);
        Ok(())
    }

    #[inline(always)]
    fn tick<F: Flash>(&mut self, flash: &mut F, tick: &Tick) -> Result<(), F::Error> {
        match &tick.idle_ns {
            Some(idle_ns) => self.store.idle(flash, idle_ns, &mut ()),
            None => Ok(()),
        }
    }

    fn stream(&mut self, stream: Option<u32>) {
        self.store.stream(stream);
    }

    fn foretell(&mut self, deaths: Arc<[u64]>) {
        self.store.foretell(deaths);
    }

    fn ahead(&mut self, writes: &[Coming]) {
        self.store.ahead(writes);
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.store.prefetch(lpn);
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.store.audit(flash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_testkit::suite::{Bench, Case};

    #[test]
    fn the_table_is_touched_once_a_page_translated_or_moved() {
        let mut bench = Bench::<Page>::new(&Case::small(1, 5, 4, 2)).unwrap();
        bench.play(
            "W 0 2, W 4 2, W 0 1, W 1 1, W 6 1, R 4 1, W 0 1, T 7 1, R 7 1, W 2 1, W 5 1, W 0 4",
        );
        assert_eq!(bench.counters().programs.gc, 2);
        assert_eq!(bench.scheme().dram_accesses, Some(14 + 2 + 1 + 2));
        bench.ftl.reset_counters();
        assert_eq!(bench.scheme().dram_accesses, Some(0));
    }
}

#[cfg(test)]
mod idle_time {
    use super::*;
    use floatgate_testkit::suite::{Bench, Case};

    /// Of the first two blocks one page and two are left.
    fn bench(options: &[(&str, i64)]) -> Bench<Page> {
        let mut case = Case::small(1, 6, 4, 2);
        for (key, value) in options {
            case = case.with(key, *value);
        }
        let mut bench = Bench::<Page>::new(&case).unwrap();
        bench.play("W 0 3, W 4 2, W 0 1, W 1 1, W 2 1");
        bench
    }

    fn idle(bench: &mut Bench<Page>, ns: u64) -> [u64; 2] {
        let tick = Tick {
            now_ns: ns,
            idle_ns: Some(0..ns),
        };
        let before = bench.counters();
        let Ok(()) = bench.ftl.tick(&mut bench.flash, &tick);
        bench.ftl.audit(&bench.flash).unwrap();
        let after = bench.counters();
        [
            after.programs.gc - before.programs.gc,
            after.erases.gc - before.erases.gc,
        ]
    }

    #[test]
    fn an_idle_die_moves_a_slice_at_a_time_until_it_has_enough_erased_blocks() {
        let mut bench = bench(&[
            ("gc_idle", 4),
            ("gc_idle_after_ns", 500),
            ("gc_idle_valid", 50),
            ("gc_slice", 1),
            ("gc_move_ns", 1000),
        ]);
        assert_eq!(bench.ftl.store.erased_blocks(), 2);
        assert_eq!(idle(&mut bench, 500), [0, 0], "too short");
        // Blocks 2 and 0 have one valid page each at most, so each is a slice; the erase of the first belongs to it.
        let first = idle(&mut bench, 501);
        assert_eq!(first[1], 1, "one block is erased with its slice");
        let rest = idle(&mut bench, 1 << 40);
        assert!(rest[1] >= 1);
        assert_eq!(bench.ftl.store.erased_blocks(), 4);
        assert_eq!(idle(&mut bench, 1 << 40), [0, 0], "that is enough");
    }

    #[test]
    fn a_block_can_be_left_half_empty() {
        let mut bench = bench(&[
            ("gc_idle", 6),
            ("gc_idle_after_ns", 0),
            ("gc_idle_valid", 50),
            ("gc_slice", 1),
            ("gc_move_ns", 1000),
        ]);
        let mut moved = 0;
        let mut is_half_empty = false;
        for _ in 0..8 {
            let [programs, erases] = idle(&mut bench, 1);
            assert!(programs <= 1, "one page a slice");
            is_half_empty |= programs == 1 && erases == 0;
            moved += programs;
        }
        assert!(is_half_empty && moved > 0);
    }

    /// The rest of the block is trimmed, so nothing says that the move is over when the block is erased; and an old copy of
    /// what was moved stands somewhere else, so a recovery could do without the new one.
    #[test]
    fn what_was_moved_out_of_a_block_that_was_left_half_empty_survives_its_erase() {
        let options = [
            ("gc_idle", 6),
            ("gc_idle_after_ns", 0),
            ("gc_slice", 1),
            ("gc_move_ns", 1000),
        ];
        let small = Case::small(1, 6, 4, 2);
        let case = options
            .iter()
            .fold(small, |case, &(key, value)| case.with(key, value));
        let mut bench = Bench::<Page>::new(&case).unwrap();
        bench.play("W 2 1, W 4 1, W 4 1, W 4 1");
        assert_eq!(idle(&mut bench, 1), [1, 0], "page 2 moves, page 4 stays");
        bench.play("T 4 1");
        assert_eq!(idle(&mut bench, 1), [0, 1], "nothing is left to move");
        let mut flash = bench.flash.clone();
        let space = Space::whole(flash.ledger.geometry());
        let options = case.options_of::<Page>().unwrap();
        let means = RecoveryMode::FullScan;
        let recovered = Page::recover(&space, &options, means, &mut flash).unwrap();
        assert!(recovered.place(Lpn(2)).is_some());
        assert_eq!(recovered.place(Lpn(2)), bench.ftl.place(Lpn(2)));
    }

    #[test]
    fn blocks_that_are_too_full_stay() {
        let options = [
            ("gc_idle", 6),
            ("gc_idle_after_ns", 0),
            ("gc_idle_valid", 0),
        ];
        let mut bench = bench(&options);
        assert_eq!(idle(&mut bench, 1 << 40)[0], 0);
    }
}

#[cfg(test)]
mod worked_example {
    use super::*;
    use floatgate_core::ProgramOrder;
    use floatgate_testkit::suite::{Bench, Case};

    /// Host programs, gc programs, erases, host reads.
    #[test]
    fn worked_example() {
        let mut bench = Bench::<Page>::new(&Case::small(1, 5, 4, 2)).unwrap();
        for (step, expected) in [
            ("W 0 2", [2, 0, 0, 0]),
            ("W 4 2", [4, 0, 0, 0]),
            ("W 0 1", [5, 0, 0, 0]),
            ("W 1 1", [6, 0, 0, 0]),
            ("W 6 1", [7, 0, 0, 0]),
            ("R 4 1", [7, 0, 0, 1]),
            ("W 0 1", [8, 0, 0, 1]),
            ("T 7 1", [8, 0, 0, 1]),
            ("R 7 1", [8, 0, 0, 1]),
            ("W 2 1", [9, 0, 1, 1]),
            ("W 5 1", [10, 0, 1, 1]),
            ("W 0 4", [14, 2, 3, 1]),
        ] {
            let c = bench.play(step).counters();
            let got = [c.programs.host, c.programs.gc, c.erases.gc, c.reads.host];
            assert_eq!(got, expected, "{step}");
        }
    }

    /// LAST++ Table II: 208 MB for 256 GB of 4 KB pages.
    #[test]
    fn memory_of_the_papers_device() {
        let geometry = Geometry::new(8, 70_000, 128, 1 << 26, ProgramOrder::Ascending).unwrap();
        let bits: u64 = Page::tables(&geometry, &PageOptions::default())
            .iter()
            .map(Table::bits)
            .sum();
        assert_eq!(bits / 8, 208 << 20);
    }
}
