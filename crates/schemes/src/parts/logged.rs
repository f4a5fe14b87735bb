//! The shell of the log-buffer hybrids: everything about being a scheme that BAST, FAST, FASTer, FMAX, KAST and LAST do
//! alike. What a scheme adds is a [`LogPolicy`]: which log block takes a page, and which one is merged when there is
//! no room.

use crate::parts::budgets::hybrid_tables;
use crate::parts::hybrid::{FoundLog, Hybrid, HybridPlan, Watch, recovery_costs};
use floatgate_core::Refusal;
use floatgate_core::address::DieLpn;
use floatgate_core::described::{Described, RecoveryCost};
use floatgate_core::flash::{Flash, Preload, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Run, Start, audited};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::options::Options;
use floatgate_core::report::{Observation, SchemeCounters, Table};
use floatgate_core::state::{Passed, State, Tape};

/// What a log-buffer hybrid for one die decides, and what it says of itself. The constants are those of [`Described`].
///
/// What a method returns as an error is the flash's own, unless it says otherwise.
#[expect(
    clippy::missing_errors_doc,
    reason = "the errors are the flash's, as the trait's text says"
)]
pub trait LogPolicy: State + Sized + Send + 'static {
    /// [`Described::KEY`].
    const KEY: &'static str;
    /// [`Described::TITLE`].
    const TITLE: &'static str;
    /// [`Described::SUMMARY`].
    const SUMMARY: &'static str;
    /// [`Described::SOURCE`].
    const SOURCE: &'static str;
    /// [`Described::TEXT`].
    const TEXT: &'static str = "";
    /// Its options.
    type Options: Options;
    /// What it hears about pages of its log blocks; `()` if nothing.
    type Watch: Watch + State + Send + 'static;

    /// Checks the options, and the sizes that follow from them. Whether the die has the blocks is checked after it.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    fn plan(space: &Space, options: &Self::Options) -> Result<HybridPlan, Refusal>;

    /// The watch of a device without log blocks.
    fn watch(space: &Space, plan: &HybridPlan, options: &Self::Options) -> Self::Watch;

    /// The watch that follows a recovery, which can find more than there was.
    fn watch_for_recovery(
        space: &Space,
        plan: &HybridPlan,
        options: &Self::Options,
    ) -> Self::Watch {
        Self::watch(space, plan, options)
    }

    /// The policy with these tables, before any log block is taken or found.
    fn new(hybrid: Hybrid<Self::Watch>, options: &Self::Options) -> Self;

    /// Its tables.
    fn hybrid(&self) -> &Hybrid<Self::Watch>;

    /// Its tables.
    fn hybrid_mut(&mut self) -> &mut Hybrid<Self::Watch>;

    /// After a power cut: puts the log blocks that were found, in the order in which they were taken, where they
    /// belong, and merges those that the budget or the scheme has no place for.
    ///
    /// # Errors
    /// A refusal if there are not the erased blocks for it, or an error of the flash.
    fn mount_found<F: Flash>(
        &mut self,
        flash: &mut F,
        found: Vec<FoundLog>,
    ) -> Result<(), MountError<F::Error>>;

    /// [`Ftl::write_page`].
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error>;

    /// [`Ftl::write`].
    #[inline]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run<DieLpn>) -> Result<(), F::Error> {
        run.iter()
            .try_for_each(|(lpn, slot)| self.write_page(flash, lpn, slot))
    }

    /// [`Ftl::read_page`].
    #[inline]
    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.hybrid_mut().read(flash, slot, lpn)
    }

    /// The log blocks of the whole device, 0 if they are not given.
    fn log_blocks(options: &Self::Options) -> u32;

    /// [`Described::tables`]: a block map and a page map of the log blocks, unless it has others.
    fn tables(geometry: &Geometry, options: &Self::Options) -> Vec<Table> {
        hybrid_tables(geometry, Self::log_blocks(options))
    }

    /// Bytes of this program's memory beside those of the [`Hybrid`].
    fn own_ram_bytes(geometry: &Geometry, options: &Self::Options) -> u64 {
        let _ = (geometry, options);
        0
    }

    /// Adds counters of its own to those of the merges.
    fn count(&self, counters: &mut SchemeCounters) {
        let _ = counters;
    }

    /// Sets its own counters to zero.
    fn reset_own_counters(&mut self) {}

    /// [`Described::observe`].
    fn observe(&self, seen: &mut Observation) {
        let _ = seen;
    }

    /// Checks its own tables; those of the hybrid are checked before.
    ///
    /// # Errors
    /// What does not agree.
    fn audit_own<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let _ = flash;
        Ok(())
    }
}

/// A log-buffer hybrid with that policy: one instance a die.
#[derive(Debug)]
pub struct Logged<P>(pub P);

impl<P: LogPolicy> Logged<P> {
    /// The sizes, if everything fits.
    fn checked_plan(space: &Space, options: &P::Options) -> Result<HybridPlan, Refusal> {
        let plan = P::plan(space, options)?;
        plan.check(space)?;
        Ok(plan)
    }
}

impl<P: LogPolicy> Described for Logged<P> {
    const KEY: &'static str = P::KEY;
    const TITLE: &'static str = P::TITLE;
    const SUMMARY: &'static str = P::SUMMARY;
    const SOURCE: &'static str = P::SOURCE;
    const TEXT: &'static str = P::TEXT;
    type Options = P::Options;

    fn check(space: &Space, options: &P::Options) -> Result<(), Refusal> {
        Self::checked_plan(space, options).map(|_| ())
    }

    fn tables(geometry: &Geometry, options: &P::Options) -> Vec<Table> {
        P::tables(geometry, options)
    }

    fn ram_bytes(geometry: &Geometry, options: &P::Options) -> u64 {
        Hybrid::<()>::ram_bytes(geometry, P::log_blocks(options))
            + P::own_ram_bytes(geometry, options)
    }

    fn recovery_costs(geometry: &Geometry, options: &P::Options) -> Vec<RecoveryCost> {
        recovery_costs(geometry, P::plan(&Space::whole(geometry), options))
    }

    fn counters(&self) -> SchemeCounters {
        let mut counters = SchemeCounters::of(&self.0.hybrid().merges);
        self.0.count(&mut counters);
        counters
    }

    fn reset_counters(&mut self) {
        self.0.hybrid_mut().merges = Default::default();
        self.0.reset_own_counters();
    }

    fn observe(&self, seen: &mut Observation) {
        self.0.observe(seen);
    }
}

impl<P: LogPolicy> Ftl for Logged<P> {
    type Page = DieLpn;

    fn format<F: Preload>(
        space: &Space,
        options: &P::Options,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let plan = Self::checked_plan(space, options)?;
        let watch = P::watch(space, &plan, options);
        let hybrid = Hybrid::format(space, &plan, start, watch, flash)?;
        Ok(Self(P::new(hybrid, options)))
    }

    fn recover<F: Flash>(
        space: &Space,
        options: &P::Options,
        mode: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let plan = Self::checked_plan(space, options)?;
        let watch = P::watch_for_recovery(space, &plan, options);
        let (hybrid, found) = Hybrid::recover(space, &plan, mode, watch, flash)?;
        let mut logged = Self(P::new(hybrid, options));
        logged.0.mount_found(flash, found)?;
        logged.reset_counters();
        audited(logged, flash)
    }

    #[inline]
    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.0.write_page(flash, page, slot)
    }

    #[inline]
    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: DieLpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.0.read_page(flash, page, slot)
    }

    fn trim_page<F: Flash>(
        &mut self,
        _flash: &mut F,
        page: DieLpn,
        _slot: Slot,
    ) -> Result<(), F::Error> {
        self.0.hybrid_mut().trim(page);
        Ok(())
    }

    #[inline]
    fn write<F: Flash>(&mut self, flash: &mut F, run: &Run<DieLpn>) -> Result<(), F::Error> {
        self.0.write(flash, run)
    }

    #[inline(always)]
    fn prefetch(&self, page: DieLpn) {
        self.0.hybrid().prefetch(page);
    }

    fn state(&mut self, tape: &mut Tape<'_>) -> Passed {
        self.0.pass(tape)
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        let live = self.0.hybrid().audit(flash)?;
        self.0.audit_own(flash)?;
        Ok(live)
    }
}
