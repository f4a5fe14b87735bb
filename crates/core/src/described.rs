//! How a scheme describes itself: names, options, tables, costs, counters. Nothing here touches flash.

use alloc::vec;
use alloc::vec::Vec;

use crate::geometry::{Geometry, Space};
use crate::options::Options;
use crate::pcm::PcmSetup;
use crate::refusal::Refusal;
use crate::report::{Observation, SchemeCounters, Table};
use crate::wear::WearLeveling;

/// The most that one kind of mount costs: operations of the whole device, spread evenly over its dies. The merges that
/// finish what the cut interrupted are not included: a few blocks at most, and none after a cut between two requests,
/// unless trims left holes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveryCost {
    /// The recovery mode, as shown to users: "full scan", "map blocks", "snapshot".
    pub means: &'static str,
    /// Whether it needs a clean shutdown.
    pub is_after_shutdown: bool,
    /// OOBs read.
    pub oob_reads: u64,
    /// Whole pages read: mapping pages, summaries, snapshots.
    pub page_reads: u64,
    /// Entries read from phase-change memory.
    pub pcm_reads: u64,
    /// Pages programmed before the first request of the host.
    pub programs: u64,
    /// Blocks erased before the first request of the host.
    pub erases: u64,
}

impl RecoveryCost {
    /// The cost of reading that many OOBs and nothing else.
    pub fn scan(means: &'static str, oob_reads: u64) -> Self {
        Self {
            means,
            is_after_shutdown: false,
            oob_reads,
            page_reads: 0,
            pcm_reads: 0,
            programs: 0,
            erases: 0,
        }
    }
}

/// Times of the flash chips below a scheme, for options whose default follows from them.
#[derive(Clone, Copy, Debug)]
pub struct ChipTimes {
    /// Cell time of a page read.
    pub t_r_ns: u64,
    /// Cell time of a page program.
    pub t_prog_ns: u64,
    /// Cell time of a block erase.
    pub t_bers_ns: u64,
}

/// How a scheme describes itself. The names, [`Options`] and [`tables`](Described::tables) are required; the rest has
/// defaults.
pub trait Described: Sized {
    /// Name on the command line and in files.
    const KEY: &'static str;
    /// Name shown to users.
    const TITLE: &'static str;
    /// One sentence: what it is.
    const SUMMARY: &'static str;
    /// The paper or patent it comes from.
    const SOURCE: &'static str;
    /// The text of the scheme's file, `include_str!("...")`: `floatgate schemes` shows its head, the lines
    /// that begin with `//!`.
    const TEXT: &'static str = "";
    /// Its options.
    type Options: Options;

    /// Whether [`Ftl::format`](crate::ftl::Ftl::format) would accept a device of that shape with these options, without making
    /// one. Called many times while a device is sized; the default accepts everything and leaves the answer to `format`.
    ///
    /// # Errors
    /// The refusal that `format` would return.
    fn check(space: &Space, options: &Self::Options) -> Result<(), Refusal> {
        let _ = (space, options);
        Ok(())
    }

    /// Whether a device with these options can have its wear levelled so, which is done below the scheme.
    ///
    /// # Errors
    /// The refusal, of the key `wear_leveling`.
    fn check_levelling(options: &Self::Options, leveling: WearLeveling) -> Result<(), Refusal> {
        let _ = (options, leveling);
        Ok(())
    }

    /// The tables of the whole device as the papers count them.
    fn tables(geometry: &Geometry, options: &Self::Options) -> Vec<Table>;

    /// The tables as they are now, where their size depends on what has been written; [`Described::tables`] says then what
    /// they are at best.
    fn tables_held(&self) -> Option<Vec<Table>> {
        None
    }

    /// Bytes of host memory that the scheme's tables take on a device of that shape; by default two page maps, one by
    /// logical and one by physical page.
    fn ram_bytes(geometry: &Geometry, options: &Self::Options) -> u64 {
        let _ = options;
        8 * (u64::from(geometry.logical_pages) + u64::from(geometry.pages()))
    }

    /// Sets options that are unset to the defaults that follow from the chips.
    fn fit_to_chip(options: &mut Self::Options, times: ChipTimes) {
        let _ = (options, times);
    }

    /// The phase-change memory beside the flash, for schemes that use it.
    fn pcm(options: &Self::Options) -> PcmSetup {
        let _ = options;
        PcmSetup::default()
    }

    /// The cost of a mount, for each kind that the scheme has, the full scan first. It is that of the worst state: every
    /// block programmed to its end.
    fn recovery_costs(geometry: &Geometry, options: &Self::Options) -> Vec<RecoveryCost> {
        let _ = options;
        vec![RecoveryCost::scan("full scan", geometry.pages().into())]
    }

    /// Whether, on a device of that shape, several operations torn in a row may leave no erased page to go on with, so that
    /// the recovery refuses ([`NoRoom`](crate::refusal::RefusalKind::NoRoom)). A scheme that says so says in its text why
    /// it cannot be helped; of any other the tests of power cuts take a refusal for a failure.
    fn may_run_out_of_pages(space: &Space, options: &Self::Options) -> bool {
        let _ = (space, options);
        false
    }

    /// Whether it asks for the stream of each write request ([`Ftl::stream`](crate::ftl::Ftl::stream)).
    fn uses_streams(options: &Self::Options) -> bool {
        let _ = options;
        false
    }

    /// Whether it asks how busy dies are ([`Flash::free_at_ns`](crate::flash::Flash::free_at_ns)).
    fn weighs_dies(options: &Self::Options) -> bool {
        let _ = options;
        false
    }

    /// Whether it has a use for idle time with these options, if it [has one](crate::ftl::Ftl::USES_IDLE_TIME) at all.
    fn uses_idle_time(options: &Self::Options) -> bool {
        let _ = options;
        true
    }

    /// Whether it must know the whole run in advance ([`Ftl::foretell`](crate::ftl::Ftl::foretell)); where requests come
    /// live it cannot run. The refusal says which option is to blame.
    ///
    /// # Errors
    /// That refusal.
    fn live(options: &Self::Options) -> Result<(), Refusal> {
        let _ = options;
        Ok(())
    }

    /// How many requests ahead it wants to [know](crate::ftl::Ftl::ahead) what is written.
    fn looks_ahead(options: &Self::Options) -> usize {
        let _ = options;
        0
    }

    /// The scheme's own counters.
    fn counters(&self) -> SchemeCounters {
        SchemeCounters::default()
    }

    /// Resets counters and timers and keeps the tables (end of a warm-up).
    fn reset_counters(&mut self) {}

    /// Momentary values for a time series.
    fn observe(&self, seen: &mut Observation) {
        let _ = seen;
    }
}
