//! What the kit can do with a scheme that was chosen by name.

use floatgate_core::catalog::Life;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Refusal};

use crate::suite::{self, Case};
use crate::torture::rot::{self, Kind, Rot};
use crate::torture::{self, Cuts, Effort, Finding, Script, Tally};

/// [`torture::random_cuts`] of one scheme.
type RandomCuts = fn(u64, u64, &Effort, &mut dyn FnMut() -> bool) -> Result<Tally, Finding>;

/// A scheme under test: the life of a scheme in which everything goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Tested {
    run: fn(&Case, u32) -> Result<(), Finding>,
    refusal: fn(&Case) -> Option<Refusal>,
    complete: fn(&Case) -> Result<Case, Refusal>,
    random_case: fn(&mut SplitMix64, u32) -> Case,
    cut: fn(&Case, &Effort, Option<&Cuts>) -> Result<Tally, Finding>,
    random_cuts: RandomCuts,
    rot: fn(&Case, Rot) -> Result<Tally, Finding>,
    random_rot: fn(u64, Kind, u64) -> Result<Tally, Finding>,
    play: fn(&Script) -> Result<Tally, Finding>,
}

impl Life for Tested {
    fn of<S: Ftl<Page = Lpn>>() -> Self {
        Self {
            run: suite::run_checked::<S>,
            refusal: suite::refusal_of::<S>,
            complete: suite::complete::<S>,
            random_case: torture::random_case::<S>,
            cut: torture::cut::<S>,
            random_cuts: torture::random_cuts::<S>,
            rot: rot::rot_once::<S>,
            random_rot: rot::random_rot::<S>,
            play: torture::play_script::<S>,
        }
    }
}

impl AsRef<Self> for Tested {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Tested {
    /// [`suite::run_checked`].
    ///
    /// # Errors
    /// What failed, at which request, with the line that replays it.
    pub fn run(&self, case: &Case, check_every: u32) -> Result<(), Finding> {
        (self.run)(case, check_every)
    }

    /// [`suite::refusal_of`].
    pub fn refusal(&self, case: &Case) -> Option<Refusal> {
        (self.refusal)(case)
    }

    /// [`suite::complete`].
    ///
    /// # Errors
    /// The refusal of the case.
    pub fn complete(&self, case: &Case) -> Result<Case, Refusal> {
        (self.complete)(case)
    }

    /// [`torture::random_case`].
    pub fn random_case(&self, rng: &mut SplitMix64, requests: u32) -> Case {
        (self.random_case)(rng, requests)
    }

    /// Cuts a case everywhere, or along one chain of cuts.
    ///
    /// # Errors
    /// What was lost, and a line that [`torture::replay`] takes.
    pub fn cut(&self, case: &Case, effort: &Effort, only: Option<&Cuts>) -> Result<Tally, Finding> {
        (self.cut)(case, effort, only)
    }

    /// [`torture::random_cuts`].
    ///
    /// # Errors
    /// The first failure, with a line that [`torture::replay`] takes.
    pub fn random_cuts(
        &self,
        seed: u64,
        cut_points: u64,
        effort: &Effort,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Tally, Finding> {
        (self.random_cuts)(seed, cut_points, effort, is_over)
    }

    /// [`rot::rot_once`].
    ///
    /// # Errors
    /// What broke, with a line that [`torture::replay`] takes.
    pub fn rot(&self, case: &Case, rot: Rot) -> Result<Tally, Finding> {
        (self.rot)(case, rot)
    }

    /// [`rot::random_rot`].
    ///
    /// # Errors
    /// The first failure, with a line that [`torture::replay`] takes.
    pub fn random_rot(&self, seed: u64, kind: Kind, cases: u64) -> Result<Tally, Finding> {
        (self.random_rot)(seed, kind, cases)
    }

    /// Plays the requests and cuts of [`torture::play`].
    ///
    /// # Errors
    /// What was lost.
    pub fn play(&self, script: &Script) -> Result<Tally, Finding> {
        (self.play)(script)
    }
}
