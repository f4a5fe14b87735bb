//! What a scheme tells of itself: names, options, tables, costs, counters. Nothing here touches flash.

use alloc::vec;
use alloc::vec::Vec;

use crate::geometry::{Geometry, Space};
use crate::options::Options;
use crate::refusal::Refusal;
use crate::report::{Observation, SchemeCounters, Table};

/// What one way of bringing a device back takes at most: operations of the whole device, spread evenly over its
/// dies. The merges that end what the cut interrupted are not among them: a few blocks at most, and none after a cut
/// between two requests, unless trims left holes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveryCost {
    /// What it relies on, for people: "full scan", "map blocks", "snapshot".
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
    /// The OOBs of so many pages, and nothing else.
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

/// What a scheme tells of itself. The names, [`Options`] and [`tables`](Described::tables) are what a newcomer fills in;
/// the rest has defaults.
pub trait Described: Sized {
    /// Name on the command line and in files.
    const KEY: &'static str;
    /// Name for people.
    const TITLE: &'static str;
    /// One sentence: what it is.
    const SUMMARY: &'static str;
    /// The paper or patent it comes from.
    const SOURCE: &'static str;
    /// The text of the scheme's file, `include_str!("...")`: its head, the lines of `//!`, is what `floatgate schemes`
    /// shows of it.
    const TEXT: &'static str = "";
    /// Its options.
    type Options: Options;

    /// Whether a device of that shape can have these options, as [`Ftl::format`](crate::ftl::Ftl::format) would find, without
    /// making anything. Sizing a device asks this many times; by default it learns the answer from `format`.
    ///
    /// # Errors
    /// The refusal of the format.
    fn check(space: &Space, options: &Self::Options) -> Result<(), Refusal> {
        let _ = (space, options);
        Ok(())
    }

    /// The tables of the whole device as the papers count them.
    fn tables(geometry: &Geometry, options: &Self::Options) -> Vec<Table>;

    /// Bytes of this program's memory that a device of that shape needs for the scheme's tables; by default those of two
    /// page maps, one by logical and one by physical page.
    fn ram_bytes(geometry: &Geometry, options: &Self::Options) -> u64 {
        let _ = options;
        8 * (u64::from(geometry.logical_pages) + u64::from(geometry.pages()))
    }

    /// Gives options that nobody has set the default that follows from the chips.
    fn fit_to_chip(options: &mut Self::Options, times: ChipTimes) {
        let _ = (options, times);
    }

    /// What bringing the device back takes, for each way the scheme has, the full scan first. The state is
    /// the one that takes most: every block programmed to its end.
    fn recovery_costs(geometry: &Geometry, options: &Self::Options) -> Vec<RecoveryCost> {
        let _ = options;
        vec![RecoveryCost::scan("full scan", geometry.pages().into())]
    }

    /// Counters of the scheme's own.
    fn counters(&self) -> SchemeCounters {
        SchemeCounters::default()
    }

    /// Sets the counters to zero and timers to their start, and keeps the tables (end of a warm-up).
    fn reset_counters(&mut self) {}

    /// Momentary values for a time series.
    fn observe(&self, seen: &mut Observation) {
        let _ = seen;
    }
}
