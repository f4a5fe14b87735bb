//! What the kit can do with a scheme that was chosen by name.

use floatgate_core::Catalog;
use floatgate_core::catalog::Life;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Refusal};

use crate::suite::{self, Case};
use crate::torture::rot::{self, Kind, Rot};
use crate::torture::{self, Cuts, Effort, Finding, Flights, Line, Script, Tally, Trial};

/// [`torture::random_cuts`] of one scheme.
type RandomCuts = fn(u64, u64, &Effort, &mut dyn FnMut() -> bool) -> Result<Tally, Finding>;

/// [`torture::random_flights`] of one scheme.
type RandomFlights = fn(u64, u64, &mut dyn FnMut() -> bool) -> Result<Tally, Finding>;

/// A scheme under test: the life of a scheme in which everything goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Tested {
    run: fn(&Case, u32) -> Result<(), Finding>,
    refusal: fn(&Case) -> Option<Refusal>,
    complete: fn(&Case) -> Result<Case, Refusal>,
    random_case: fn(&mut SplitMix64, u32) -> Case,
    cut: fn(&Case, &Effort, Option<&Cuts>) -> Result<Tally, Finding>,
    random_cuts: RandomCuts,
    fly: fn(&Case, Option<&Flights>) -> Result<Tally, Finding>,
    random_flights: RandomFlights,
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
            fly: torture::fly::<S>,
            random_flights: torture::random_flights::<S>,
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
    /// What was lost, and a line that [`replay`] takes.
    pub fn cut(&self, case: &Case, effort: &Effort, only: Option<&Cuts>) -> Result<Tally, Finding> {
        (self.cut)(case, effort, only)
    }

    /// [`torture::random_cuts`].
    ///
    /// # Errors
    /// The first failure, with a line that [`replay`] takes.
    pub fn random_cuts(
        &self,
        seed: u64,
        cut_points: u64,
        effort: &Effort,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Tally, Finding> {
        (self.random_cuts)(seed, cut_points, effort, is_over)
    }

    /// Cuts a case with several dies in flight, often, or along one chain of cuts.
    ///
    /// # Errors
    /// What was lost, and a line that [`replay`] takes.
    pub fn fly(&self, case: &Case, only: Option<&Flights>) -> Result<Tally, Finding> {
        (self.fly)(case, only)
    }

    /// [`torture::random_flights`].
    ///
    /// # Errors
    /// The first failure, with a line that [`replay`] takes.
    pub fn random_flights(
        &self,
        seed: u64,
        cuts: u64,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Tally, Finding> {
        (self.random_flights)(seed, cuts, is_over)
    }

    /// [`rot::rot_once`].
    ///
    /// # Errors
    /// What broke, with a line that [`replay`] takes.
    pub fn rot(&self, case: &Case, rot: Rot) -> Result<Tally, Finding> {
        (self.rot)(case, rot)
    }

    /// [`rot::random_rot`].
    ///
    /// # Errors
    /// The first failure, with a line that [`replay`] takes.
    pub fn random_rot(&self, seed: u64, kind: Kind, cases: u64) -> Result<Tally, Finding> {
        (self.random_rot)(seed, kind, cases)
    }

    /// Plays the requests and cuts of [`play`].
    ///
    /// # Errors
    /// What was lost.
    pub fn play(&self, script: &Script) -> Result<Tally, Finding> {
        (self.play)(script)
    }

    /// Does it.
    ///
    /// # Errors
    /// What breaks.
    pub fn replay(&self, trial: &Trial) -> Result<Tally, Finding> {
        match trial {
            Trial::Suite(case, every) => self.run(case, *every).map(|()| Tally::default()),
            Trial::Cuts(case, cuts) => self.cut(case, &Effort::default(), Some(cuts)),
            Trial::Flight(case, flights) => self.fly(case, Some(flights)),
            Trial::Rot(case, rot) => self.rot(case, *rot),
            Trial::Script(script) => self.play(script),
        }
    }
}

/// Plays what the bytes say: the first a scheme of the catalog, the others a [`Script`]. Any bytes are an input, so this is
/// what a fuzzer calls.
///
/// # Errors
/// What was lost.
pub fn play<L: AsRef<Tested>>(bytes: &[u8], catalog: &Catalog<L>) -> Result<Tally, Finding> {
    let Some((&scheme, rest)) = bytes.split_first() else {
        return Ok(Tally::default());
    };
    let scheme = &catalog[usize::from(scheme) % catalog.len()];
    let script = Script::of(rest);
    script.map_or(Ok(Tally::default()), |script| {
        scheme.life.as_ref().play(&script)
    })
}

/// Replays one line on a scheme of the catalog.
///
/// # Errors
/// What is still broken, or what cannot be read in the line.
pub fn replay<L: AsRef<Tested>>(line: &str, catalog: &Catalog<L>) -> Result<Tally, String> {
    let line = Line::parse(line)?;
    let scheme = catalog
        .get(&line.scheme)
        .map_err(|refusal| refusal.message)?;
    let done = scheme.life.as_ref().replay(&line.trial);
    done.map_err(|finding| finding.to_string())
}
