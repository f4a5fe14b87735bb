//! Power cuts, exhaustively: a run on a small device is cut at every operation that changes its flash, in every
//! way an operation can end; then the recovery is cut at every operation of its own; then the device goes on. Now
//! and then it is shut down cleanly and started again, with the same cuts.
//!
//! The contract that is checked: every acknowledged write reads back byte for byte; a page of the request
//! that was cut is old or new; a trimmed page holds something it once held, or zeroes; the tables agree
//! with the flash and keep their budgets; the device goes on working. A request is acknowledged when the
//! scheme's `write` has returned.
//!
//! A failure prints one line, and [`replay`](crate::replay) takes that line.
//!
//! | module | what it holds |
//! |---|---|
//! | `model` | the host's requests, and what it knows of every page |
//! | `cuts` | the engine that cuts |
//! | `flight` | cuts that find each die at a point of its own |
//! | [`rot`] | rotten flash |
//! | `play` | one sequence of requests and cuts, chosen by a fuzzer |
//! | `cases` | random cases |
//! | `line` | replay lines |

use crate::cut::{Change, Tear};
use floatgate_core::ftl::RecoveryMode;

mod cases;
mod cuts;
mod flight;
mod line;
mod model;
mod play;
pub mod rot;

pub(crate) use crate::catch::catch;
pub use cases::random_case;
pub(crate) use cuts::cut;
pub use cuts::{cut_everywhere, random_cuts};
pub(crate) use flight::fly;
pub use flight::{Flights, random_flights};
pub use line::{Finding, Line, Trial};
pub use play::Script;
pub(crate) use play::play_script;

/// How thorough a run is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Different outcomes tried of an erase that is cut.
    pub torn_erases: u64,
    /// Of so many cut points one has its recovery cut at every operation too.
    pub recovery_one_in: u64,
    /// Of so many cut recoveries one has its own recovery cut at every operation.
    pub third_one_in: u64,
    /// Requests after a recovery.
    pub requests_after: u32,
    /// After so many requests the run itself is cut and goes on with the recovered device.
    pub cut_run_every: u32,
    /// After so many requests, and at its end, the run is shut down and started again.
    pub shutdown_every: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            torn_erases: 3,
            recovery_one_in: 7,
            third_one_in: 40,
            requests_after: 12,
            cut_run_every: 9,
            shutdown_every: 16,
        }
    }
}

/// Where the power went, and again during the recoveries that followed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Cuts(Vec<(u64, Tear)>);

impl Cuts {
    fn torn(&self) -> usize {
        let torn = |(_, tear): &&(u64, Tear)| *tear != Tear::Clean;
        self.0.iter().filter(torn).count()
    }

    /// What the recovery that follows relies on.
    fn means(&self) -> RecoveryMode {
        means_for(self.0.iter().map(|(at, _)| at).sum())
    }

    fn then(&self, at: u64, tear: Tear) -> Self {
        let mut cuts = self.0.clone();
        cuts.push((at, tear));
        Self(cuts)
    }
}

/// Every other recovery does without what the scheme keeps to be faster.
fn means_for(number: u64) -> RecoveryMode {
    if number.is_multiple_of(2) {
        RecoveryMode::Fastest
    } else {
        RecoveryMode::FullScan
    }
}

/// What a run of cuts comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cut points tried.
    pub tried: u64,
    /// Of these, those after which the scheme refused to come up, as it said it may
    /// ([`may_run_out_of_pages`](floatgate_core::Described::may_run_out_of_pages)): the recovery itself was torn, and no
    /// erased page was left. Nothing else refuses, unless the flash is [rotten](rot).
    pub refused: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.tried += other.tried;
        self.refused += other.refused;
    }
}

/// The ways in which a change can be cut.
fn tears(change: Change, seed: u64, torn_erases: u64) -> Vec<Tear> {
    let torn = match change {
        Change::Entry(_) => 0,
        Change::Program(_) => 1,
        Change::Erase(_) => torn_erases.max(1),
    };
    let seeds = (0..torn).map(|i| Tear::Torn(seed.wrapping_mul(31).wrapping_add(i)));
    std::iter::once(Tear::Clean).chain(seeds).collect()
}
