//! A scheme for one die on many dies (the papers' FTL-MM): one independent instance a die, pages dealt
//! out round robin (`LPN mod C`).

use crate::address::Lpn;
use crate::flash::Flash;
use crate::ftl::{Ftl, Means, NoRecovery, PartTimes, RecoveryCost, Refusal, Run, Start};
use crate::geometry::{Geometry, Space};
use crate::report::{Observation, SchemeCounters, Table, combine_all};

/// One instance of `S` on every die.
#[derive(Debug)]
pub struct Striped<S> {
    dies: Vec<S>,
    geometry: Geometry,
}

impl<S: Ftl> Striped<S> {
    /// The instances, by die.
    pub fn instances(&self) -> &[S] {
        &self.dies
    }

    /// Hands each instance its part of a request, in the order in which the request first touches
    /// the dies.
    #[inline]
    fn deal<E>(
        &mut self,
        run: &Run,
        mut work: impl FnMut(&mut S, &Run) -> Result<(), E>,
    ) -> Result<(), E> {
        let dies = self.geometry.dies;
        if dies == 1 {
            return work(&mut self.dies[0], run);
        }
        for i in 0..run.pages.min(dies) {
            let (local, die) = self.geometry.home(Lpn(run.first.0 + i));
            let part = Run {
                first: Lpn(local),
                pages: (run.pages - i).div_ceil(dies),
                request_pages: run.request_pages,
                first_slot: run.first_slot + i,
                slot_step: dies,
            };
            work(&mut self.dies[die as usize], &part)?;
        }
        Ok(())
    }
}

impl<S: Ftl> Ftl for Striped<S> {
    const KEY: &'static str = S::KEY;
    const TITLE: &'static str = S::TITLE;
    const SUMMARY: &'static str = S::SUMMARY;
    const SOURCE: &'static str = S::SOURCE;
    const USES_IDLE_TIME: bool = S::USES_IDLE_TIME;
    type Options = S::Options;

    fn fit_to_part(options: &mut Self::Options, times: PartTimes) {
        S::fit_to_part(options, times);
    }

    fn ram_bytes(geometry: &Geometry, options: &Self::Options) -> u64 {
        S::ram_bytes(geometry, options)
    }

    fn tables(geometry: &Geometry, options: &Self::Options) -> Vec<Table> {
        S::tables(geometry, options)
    }

    fn format<F: Flash>(
        space: &Space,
        options: &Self::Options,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, Refusal> {
        let geometry = space.geometry.clone();
        let dies = (0..geometry.dies)
            .map(|die| S::format(&Space::one_die(&geometry, die), options, start, flash))
            .collect::<Result<_, _>>()?;
        Ok(Self { dies, geometry })
    }

    /// Instance by instance: each reads and writes only its own die.
    fn recover<F: Flash>(
        space: &Space,
        options: &Self::Options,
        means: Means,
        flash: &mut F,
    ) -> Result<Self, NoRecovery<F::Error>> {
        let geometry = space.geometry.clone();
        let dies = (0..geometry.dies)
            .map(|die| S::recover(&Space::one_die(&geometry, die), options, means, flash))
            .collect::<Result<_, _>>()?;
        Ok(Self { dies, geometry })
    }

    fn recovery_costs(geometry: &Geometry, options: &Self::Options) -> Vec<RecoveryCost> {
        S::recovery_costs(geometry, options)
    }

    #[inline]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.deal(run, |die, part| die.write(flash, part))
    }

    #[inline]
    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.deal(run, |die, part| die.read(flash, part))
    }

    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.deal(run, |die, part| die.trim(flash, part))
    }

    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        let (local, die) = self.geometry.home(lpn);
        self.dies[die as usize].prefetch(Lpn(local));
    }

    fn idle<F: Flash>(
        &mut self,
        flash: &mut F,
        start_ns: u64,
        end_ns: u64,
    ) -> Result<(), F::Error> {
        self.dies
            .iter_mut()
            .try_for_each(|die| die.idle(flash, start_ns, end_ns))
    }

    fn arrival<F: Flash>(&mut self, flash: &mut F, arrival_ns: u64) -> Result<(), F::Error> {
        self.dies
            .iter_mut()
            .try_for_each(|die| die.arrival(flash, arrival_ns))
    }

    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        self.dies.iter_mut().try_for_each(|die| die.shutdown(flash))
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

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.dies.iter().map(|die| die.audit(flash)).sum()
    }
}
