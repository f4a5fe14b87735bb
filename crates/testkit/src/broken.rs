//! A scheme with a bug put in: what the kit must find, and what its lines must show again.

use floatgate_core::address::Ppn;
use floatgate_core::described::{ChipTimes, Described, RecoveryCost};
use floatgate_core::flash::{Flash, Oob, Preload, Role, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, Tick};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::pcm::PcmSetup;
use floatgate_core::report::{Observation, SchemeCounters, Table};
use floatgate_core::{Lpn, Refusal};

/// It acknowledges a write that it has not done.
pub const SKIPS_A_WRITE: u8 = 0;
/// It programs a page twice, at which the flash panics.
pub const BREAKS_THE_PROGRAM_RULE: u8 = 1;
/// Its recovery loses the first page of the device.
pub const FORGETS_A_PAGE: u8 = 2;
/// It does not say that its recovery may run out of pages, and refuse.
pub const KEEPS_QUIET: u8 = 3;

/// The first write that goes wrong, and how many there are from one to the next.
const WRITES: u64 = 6;

/// `S` with one of the bugs above. Its name is that of `S`, so that a line of the one can be replayed on the other.
#[derive(Debug)]
pub struct Broken<S, const BUG: u8> {
    scheme: S,
    writes: u64,
}

impl<S, const BUG: u8> Broken<S, BUG> {
    fn of(scheme: S) -> Self {
        Self { scheme, writes: 0 }
    }
}

impl<S: Described, const BUG: u8> Described for Broken<S, BUG> {
    const KEY: &'static str = S::KEY;
    const TITLE: &'static str = S::TITLE;
    const SUMMARY: &'static str = S::SUMMARY;
    const SOURCE: &'static str = S::SOURCE;
    type Options = S::Options;

    fn check(space: &Space, options: &S::Options) -> Result<(), Refusal> {
        S::check(space, options)
    }

    fn tables(geometry: &Geometry, options: &S::Options) -> Vec<Table> {
        S::tables(geometry, options)
    }

    fn ram_bytes(geometry: &Geometry, options: &S::Options) -> u64 {
        S::ram_bytes(geometry, options)
    }

    fn fit_to_chip(options: &mut S::Options, times: ChipTimes) {
        S::fit_to_chip(options, times);
    }

    fn recovery_costs(geometry: &Geometry, options: &S::Options) -> Vec<RecoveryCost> {
        S::recovery_costs(geometry, options)
    }

    fn pcm(options: &S::Options) -> PcmSetup {
        S::pcm(options)
    }

    fn may_run_out_of_pages(space: &Space, options: &S::Options) -> bool {
        BUG != KEEPS_QUIET && S::may_run_out_of_pages(space, options)
    }

    fn counters(&self) -> SchemeCounters {
        self.scheme.counters()
    }

    fn reset_counters(&mut self) {
        self.scheme.reset_counters();
    }

    fn observe(&self, seen: &mut Observation) {
        self.scheme.observe(seen);
    }
}

impl<S: Ftl<Page = Lpn>, const BUG: u8> Ftl for Broken<S, BUG> {
    type Page = Lpn;
    const USES_IDLE_TIME: bool = S::USES_IDLE_TIME;

    fn format<F: Preload>(
        space: &Space,
        options: &S::Options,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        S::format(space, options, start, flash).map(Self::of)
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &S::Options,
        mode: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut scheme = S::recover(space, options, mode, flash)?;
        if BUG == FORGETS_A_PAGE {
            let first = scheme.trim_page(flash, Lpn(0), Slot(0));
            first.map_err(MountError::Flash)?;
        }
        Ok(Self::of(scheme))
    }

    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.writes += 1;
        let goes_wrong = self.writes.is_multiple_of(WRITES);
        if BUG == SKIPS_A_WRITE && goes_wrong {
            return Ok(());
        }
        self.scheme.write(flash, run)?;
        if BUG == BREAKS_THE_PROGRAM_RULE && goes_wrong {
            for _ in 0..2 {
                let slot = Slot(run.first_slot);
                let oob = Oob::new(run.first, Role::Data);
                flash.program_host(slot, Ppn(0), oob, F::Token::default())?;
            }
        }
        Ok(())
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.write(flash, &Run::page_at(page, slot))
    }

    fn read<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.scheme.read(flash, run)
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.scheme.read_page(flash, page, slot)
    }

    fn trim<F: Flash>(&mut self, flash: &mut F, run: &Run) -> Result<(), F::Error> {
        self.scheme.trim(flash, run)
    }

    fn trim_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.scheme.trim_page(flash, page, slot)
    }

    fn tick<F: Flash>(&mut self, flash: &mut F, tick: &Tick) -> Result<(), F::Error> {
        self.scheme.tick(flash, tick)
    }

    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        self.scheme.shutdown(flash)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.scheme.audit(flash)
    }
}
