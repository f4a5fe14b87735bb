//! Named recipes that age a device before it is measured: deterministic, no flags to guess.

use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::config::Recipe;
use crate::host::Kind;
use crate::session::Session;

/// Seed of the random writes of ageing.
const SEED: u64 = 0x00A6_E1D6;
/// `settle` gives up after this many device writes and says so.
const SETTLE_MAX: u32 = 30;

/// How an ageing step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Aged {
    /// The step.
    pub recipe: String,
    /// Pages it wrote.
    pub page_writes: u64,
    /// Write amplification of its last device write, for `settle`.
    pub write_amplification: Option<f64>,
    /// Whether `settle` met its criterion.
    pub settled: Option<bool>,
    /// Whether it was made in an earlier run, whose device this run began with.
    #[serde(default)]
    pub loaded: bool,
}

/// Applies a recipe (all but `replay`, which needs the trace). Counters are not reset here.
pub fn apply<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    recipe: Recipe,
    tick: &mut dyn FnMut(),
) -> Aged {
    let before = session.host.page_writes;
    let mut aged = Aged {
        recipe: recipe.to_string(),
        page_writes: 0,
        write_amplification: None,
        settled: None,
        loaded: false,
    };
    let pages = session.geometry().logical_pages;
    let mut rng = SplitMix64::new(SEED);
    match recipe {
        Recipe::Fill => fill(session, tick),
        Recipe::Overwrite(share) => {
            overwrite(session, (f64::from(pages) * share) as u64, &mut rng, tick);
        }
        Recipe::Settle => settle(session, &mut rng, &mut aged, tick),
        Recipe::Replay => {}
    }
    aged.page_writes = session.host.page_writes - before;
    aged
}

/// Requests of a whole stripe of blocks, so that block-mapped schemes fill without rebuilds.
fn fill<S: Ftl<Page = Lpn>, C: Clock>(session: &mut Session<S, C>, tick: &mut dyn FnMut()) {
    let stripe = session.geometry().pages_per_block * session.geometry().dies;
    for first in (0..session.geometry().logical_pages).step_by(stripe as usize) {
        session.page_request(Kind::Write, Lpn(first), stripe, 0);
        tick();
    }
}

fn overwrite<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    writes: u64,
    rng: &mut SplitMix64,
    tick: &mut dyn FnMut(),
) {
    let pages = u64::from(session.geometry().logical_pages);
    for i in 0..writes {
        session.page_request(Kind::Write, Lpn(rng.below(pages) as u32), 1, 0);
        if i % 4096 == 0 {
            tick();
        }
    }
}

fn settle<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    rng: &mut SplitMix64,
    aged: &mut Aged,
    tick: &mut dyn FnMut(),
) {
    let pages = u64::from(session.geometry().logical_pages);
    let mut last: Option<f64> = None;
    for _ in 0..SETTLE_MAX {
        let programs = session.flash.ledger.counters.programs.sum();
        overwrite(session, pages, rng, tick);
        let now = (session.flash.ledger.counters.programs.sum() - programs) as f64 / pages as f64;
        aged.write_amplification = Some(now);
        aged.settled = Some(last.is_some_and(|last| (now - last).abs() < 0.01 * last));
        if aged.settled == Some(true) {
            return;
        }
        last = Some(now);
    }
}
