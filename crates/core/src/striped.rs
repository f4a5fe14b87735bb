//! A scheme for one die on many dies (the papers' FTL-MM): one independent instance a die, pages dealt
//! out round robin (`LPN mod C`).

use alloc::string::String;
use alloc::vec::Vec;

use crate::address::{DieLpn, Lpn};
use crate::described::{ChipTimes, Described, RecoveryCost};
use crate::flash::{Flash, Preload, Slot};
use crate::ftl::{Ftl, MountError, RecoveryMode, Run, Start, Tick};
use crate::geometry::{Geometry, Space};
use crate::pcm::PcmSetup;
use crate::refusal::Refusal;
use crate::report::{Observation, SchemeCounters, Table, combine_all};
use crate::state::{Passed, Tape};
use crate::wear::WearLeveling;

/// One instance of `S` on every die.
#[derive(Debug)]
pub struct Striped<S> {
    dies: Vec<S>,
    geometry: Geometry,
}

impl<S: Ftl<Page = DieLpn>> Striped<S> {
    /// The instances, by die.
    pub fn instances(&self) -> &[S] {
        &self.dies
    }

    /// One instance for each die of a device, made by `make`.
    fn of<E>(
        space: &Space,
        mut make: impl FnMut(&Space) -> Result<S, MountError<E>>,
    ) -> Result<Self, MountError<E>> {
        let geometry = space.geometry.clone();
        let dies = (0..geometry.dies)
            .map(|die| make(&Space::one_die(&geometry, die)))
            .collect::<Result<_, _>>()?;
        Ok(Self { dies, geometry })
    }

    /// The instance that a page belongs to, and the page there.
    #[inline(always)]
    fn home(&mut self, page: Lpn) -> (&mut S, DieLpn) {
        let (local, die) = self.geometry.home(page);
        (&mut self.dies[die as usize], local)
    }

    /// Hands each instance its share of a request, in the order in which the request first touches
    /// the dies.
    #[inline]
    fn deal<E>(
        &mut self,
        run: &Run,
        mut work: impl FnMut(&mut S, &Run<DieLpn>) -> Result<(), E>,
    ) -> Result<(), E> {
        let dies = self.geometry.dies;
        let share = |i: u32, first: DieLpn| Run {
            first,
            pages: (run.pages - i).div_ceil(dies),
            request_pages: run.request_pages,
            first_slot: run.first_slot + i * run.slot_step,
            slot_step: run.slot_step * dies,
        };
        if dies == 1 {
            return work(&mut self.dies[0], &share(0, DieLpn(run.first.0)));
        }
        for i in 0..run.pages.min(dies) {
            let (local, die) = self.geometry.home(Lpn(run.first.0 + i));
            work(&mut self.dies[die as usize], &share(i, local))?;
        }
        Ok(())
    }
}

impl<S: Ftl<Page = DieLpn>> Described for Striped<S> {
    const KEY: &'static str = S::KEY;
    const TITLE: &'static str = S::TITLE;
    const SUMMARY: &'static str = S::SUMMARY;
    const SOURCE: &'static str = S::SOURCE;
    const TEXT: &'static str = S::TEXT;
    type Options = S::Options;

    fn check(space: &Space, options: &Self::Options) -> Result<(), Refusal> {
        // All dies are alike.
        S::check(&Space::one_die(&space.geometry, 0), options)
    }

    fn check_levelling(options: &Self::Options, leveling: WearLeveling) -> Result<(), Refusal> {
        S::check_levelling(options, leveling)
    }

    fn tables(geometry: &Geometry, options: &Self::Options) -> Vec<Table> {
        S::tables(geometry, options)
    }

    fn tables_held(&self) -> Option<Vec<Table>> {
        let mut sum = self.dies[0].tables_held()?;
        for die in &self.dies[1..] {
            for (mine, theirs) in sum.iter_mut().zip(die.tables_held()?) {
                mine.entries += theirs.entries;
            }
        }
        Some(sum)
    }

    fn ram_bytes(geometry: &Geometry, options: &Self::Options) -> u64 {
        S::ram_bytes(geometry, options)
    }

    fn fit_to_chip(options: &mut Self::Options, times: ChipTimes) {
        S::fit_to_chip(options, times);
    }

    fn recovery_costs(geometry: &Geometry, options: &Self::Options) -> Vec<RecoveryCost> {
        S::recovery_costs(geometry, options)
    }

    fn uses_idle_time(options: &Self::Options) -> bool {
        S::uses_idle_time(options)
    }

    fn weighs_dies(options: &Self::Options) -> bool {
        S::weighs_dies(options)
    }

    fn pcm(options: &S::Options) -> PcmSetup {
        S::pcm(options)
    }

    fn may_run_out_of_pages(space: &Space, options: &Self::Options) -> bool {
        S::may_run_out_of_pages(&Space::one_die(&space.geometry, 0), options)
    }

    fn counters(&self) -> SchemeCounters {
        let mut sum = self.dies[0].counters();
        for (i, die) in self.dies.iter().enumerate().skip(1) {
            sum.add(&die.counters(), i as u32);
        }
        sum
    }

    fn reset_counters(&mut self) {
        self.dies.iter_mut().for_each(S::reset_counters);
    }

    fn observe(&self, seen: &mut Observation) {
        let before = seen.values.len();
        self.dies[0].observe(seen);
        for (i, die) in self.dies.iter().enumerate().skip(1) {
            let mut one = Observation::default();
            die.observe(&mut one);
            combine_all(&mut seen.values[before..], &one.values, i as u32);
        }
    }
}

impl<S: Ftl<Page = DieLpn>> Ftl for Striped<S> {
    type Page = Lpn;
    const USES_IDLE_TIME: bool = S::USES_IDLE_TIME;

    fn format<F: Preload>(
        space: &Space,
        options: &Self::Options,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Self::of(space, |die| S::format(die, options, start, flash))
    }

    /// Instance by instance: each reads and writes only its own die.
    fn recover<F: Flash>(
        space: &Space,
        options: &Self::Options,
        mode: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Self::of(space, |die| S::recover(die, options, mode, flash))
    }

    #[inline]
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let (die, local) = self.home(page);
        die.write_page(flash, local, slot)
    }

    #[inline]
    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let (die, local) = self.home(page);
        die.read_page(flash, local, slot)
    }

    fn trim_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        let (die, local) = self.home(page);
        die.trim_page(flash, local, slot)
    }

    #[inline]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.deal(run, |die, share| die.write(flash, share))
    }

    #[inline]
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.deal(run, |die, share| die.read(flash, share))
    }

    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.deal(run, |die, share| die.trim(flash, share))
    }

    #[inline(always)]
    fn prefetch(&self, page: Lpn) {
        let (local, die) = self.geometry.home(page);
        self.dies[die as usize].prefetch(local);
    }

    fn tick<F: Flash>(&mut self, flash: &mut F, tick: &Tick) -> Result<(), F::Error> {
        self.dies
            .iter_mut()
            .try_for_each(|die| die.tick(flash, tick))
    }

    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        self.dies.iter_mut().try_for_each(|die| die.shutdown(flash))
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.dies.iter_mut().try_for_each(|die| die.state(tape))
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.dies.iter().map(|die| die.audit(flash)).sum()
    }
}
