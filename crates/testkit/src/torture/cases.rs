//! Random cases.

use crate::bench::refusal_of;
use crate::case::Case;
use floatgate_core::ftl::{Ftl, Start};
use floatgate_core::geometry::ProgramOrder;
use floatgate_core::options::{Options, Scope};
use floatgate_core::rng::SplitMix64;

/// A scheme that has refused so many random cases refuses them all.
const TRIES_MAX: u32 = 2000;

/// A random small case of a scheme: its shape, its options, and as few blocks as it accepts, or a few more.
///
/// # Panics
/// If the scheme refuses every small device.
pub fn random_case<S: Ftl>(rng: &mut SplitMix64, requests: u32) -> Case {
    random_case_on::<S>(rng, &[1, 1, 1, 2], requests)
}

/// The same on one of these numbers of dies.
pub(super) fn random_case_on<S: Ftl>(rng: &mut SplitMix64, dies: &[u32], requests: u32) -> Case {
    for _ in 0..TRIES_MAX {
        let pages = [2, 3, 4, 4, 4, 5, 6, 1][rng.below(8) as usize];
        let dies = dies[rng.below(dies.len() as u64) as usize];
        let logical = 2 + rng.below(4) as u32;
        let mut case = Case {
            order: [ProgramOrder::Ascending, ProgramOrder::Any][rng.below(2) as usize],
            start: [Start::Empty, Start::Full][rng.below(2) as usize],
            requests,
            seed: rng.next() >> 40,
            ..Case::small(dies, 1, pages, logical)
        };
        for option in S::Options::schema() {
            let words = option.words(dies);
            let is_device_wide = option.scope == Scope::Device;
            if words.is_empty() || !is_device_wide && rng.below(3) == 0 {
                continue;
            }
            let word = &words[rng.below(words.len() as u64) as usize];
            case = case.with(option.key, word);
        }
        case = case.completed(&S::Options::schema());
        // Power goes only where requests come live.
        if !case
            .options_of::<S>()
            .is_ok_and(|options| S::live(&options).is_ok())
        {
            continue;
        }
        // As few blocks as the scheme accepts: the tightest devices break first.
        let fits = |blocks: &u32| {
            let case = Case {
                blocks: *blocks,
                ..case.clone()
            };
            refusal_of::<S>(&case).is_none()
        };
        if let Some(least) = (logical + 1..logical + 24).find(fits) {
            case.blocks = least + [0, 0, 0, 1, 3][rng.below(5) as usize];
            if refusal_of::<S>(&case).is_none() {
                return case;
            }
        }
    }
    panic!("{} refuses every small device", S::KEY)
}
