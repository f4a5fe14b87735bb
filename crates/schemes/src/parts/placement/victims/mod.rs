//! The victim rules, one a file. A new one is its file and its line in the list below.

pub mod cat;
pub mod cost_hotness;
pub mod of_page;
pub mod two_region;
pub mod windowed_greedy;

use std::cmp::Ordering;

use floatgate_core::Refusal;
use floatgate_core::address::Pbn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state::{Passed, State, Tape};

use super::separation::Plan;
use super::victim::VictimRule;
use super::{Books, PageOptions};

/// Makes the option's words and the type that stands for any of the rules.
macro_rules! victims {
    ($($(#[doc = $doc:literal])+ $name:ident($rule:ty) = $word:literal;)+) => {
        floatgate_core::choice! {
            /// Which unit a collection takes.
            pub enum VictimKey { $($(#[doc = $doc])+ $name = $word,)+ }
        }

        /// Any of the victim rules.
        #[derive(Debug)]
        pub enum AnyVictims { $($(#[doc = $doc])+ $name($rule),)+ }

        macro_rules! rule {
            ($any:expr, $r:ident => $call:expr) => { match $any { $(AnyVictims::$name($r) => $call,)+ } };
        }

        impl AnyVictims {
            fn make(options: &PageOptions, plan: &Plan, shape: &Geometry) -> Self {
                match options.gc_policy {
                    $(VictimKey::$name => Self::$name(<$rule>::new(options, plan, shape)),)+
                }
            }

            fn check_named(options: &PageOptions, plan: &Plan) -> Result<(), Refusal> {
                match options.gc_policy {
                    $(VictimKey::$name => <$rule>::check(options, plan),)+
                }
            }

            fn weighs_writes_named(options: &PageOptions) -> bool {
                match options.gc_policy {
                    $(VictimKey::$name => <$rule>::weighs_writes(options),)+
                }
            }
        }
    };
}

victims! {
    /// Fewest valid pages.
    Greedy(of_page::OfPage) = "greedy";
    /// Largest `age * (1 - u) / 2u` (Kawaguchi et al. 1995).
    CostBenefit(of_page::OfPage) = "cost-benefit";
    /// Oldest allocation.
    Fifo(of_page::OfPage) = "fifo";
    /// Fewest valid pages among a few random ones (Van Houdt 2013).
    DChoices(of_page::OfPage) = "d-choices";
    /// Fewest valid pages among the oldest (Hu et al. 2009).
    WindowedGreedy(windowed_greedy::WindowedGreedy) = "windowed-greedy";
    /// Cost, age, times erased (Chiang, Chang 1999).
    Cat(cat::Cat) = "cat";
    /// Cost and hotness (Min et al. 2012).
    CostHotness(cost_hotness::CostHotness) = "cost-hotness";
    /// The region with more to gain, then greedy (Kang et al. 2020).
    TwoRegionGreedy(two_region::Greedy) = "2r-greedy";
    /// In the order of allocation, past units that are too full (Kang et al. 2020).
    TwoRegionFifo(two_region::Fifo) = "2r-fifo";
}

impl State for AnyVictims {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        rule!(self, r => r.pass(tape))
    }
}

impl VictimRule for AnyVictims {
    fn check(options: &PageOptions, plan: &Plan) -> Result<(), Refusal> {
        Self::check_named(options, plan)
    }

    fn new(options: &PageOptions, plan: &Plan, shape: &Geometry) -> Self {
        Self::make(options, plan, shape)
    }

    fn weighs_writes(options: &PageOptions) -> bool {
        Self::weighs_writes_named(options)
    }

    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn> {
        rule!(self, r => r.choose(group, books))
    }

    fn taken(&mut self, unit: Pbn) {
        rule!(self, r => r.taken(unit));
    }

    #[inline]
    fn lost(&mut self, unit: Pbn, clock: u64) {
        rule!(self, r => r.lost(unit, clock));
    }

    fn closed(&mut self, unit: Pbn, invalid: u32, clock: u64) {
        rule!(self, r => r.closed(unit, invalid, clock));
    }

    fn collecting(&mut self, unit: Pbn) {
        rule!(self, r => r.collecting(unit));
    }

    fn erased(&mut self, unit: Pbn) {
        rule!(self, r => r.erased(unit));
    }

    fn audit(&self, books: &Books) -> Result<(), String> {
        rule!(self, r => r.audit(books))
    }
}

/// The candidate with the largest fraction `gain / cost`; one without valid pages wins at once. The first of equals in
/// the order of allocation.
fn largest(group: u32, books: &Books, fraction: impl Fn(Pbn) -> (u128, u128)) -> Option<Pbn> {
    let mut best: Option<(Pbn, (u128, u128))> = None;
    for unit in books.candidates(group) {
        if books.unit(unit).valid == 0 {
            return Some(unit);
        }
        let found = fraction(unit);
        if best.is_none_or(|(_, known)| compare(found, known) == Ordering::Greater) {
            best = Some((unit, found));
        }
    }
    best.map(|(unit, _)| unit)
}

/// Compares two fractions exactly, whatever their size.
fn compare((a, b): (u128, u128), (c, d): (u128, u128)) -> Ordering {
    if let (Some(ad), Some(cb)) = (a.checked_mul(d), c.checked_mul(b)) {
        return ad.cmp(&cb);
    }
    // The whole parts decide, or else the fractions that are left, upside down.
    match (a / b).cmp(&(c / d)) {
        Ordering::Equal => match (a % b, c % d) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            (left, right) => compare((d, right), (b, left)),
        },
        decided => decided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_too_large_to_multiply_are_compared_exactly() {
        let large = u128::MAX;
        assert_eq!(
            compare((large, large - 1), (large - 1, large - 2)),
            Ordering::Less
        );
        assert_eq!(
            compare((large - 1, large - 2), (large, large - 1)),
            Ordering::Greater
        );
        assert_eq!(
            compare((large, large), (large - 1, large - 1)),
            Ordering::Equal
        );
        assert_eq!(compare((large, 2), (large - 1, 2)), Ordering::Greater);
        for (a, b, c, d) in [(1, 3, 1, 4), (3, 4, 6, 8), (7, 9, 4, 5)] {
            let wide = large / 10;
            let (small, scaled) = ((a, b), (c * wide, d * wide));
            assert_eq!(
                compare(small, scaled),
                (a * d).cmp(&(c * b)),
                "{a}/{b} {c}/{d}"
            );
        }
    }
}
