//! `cost-hotness`: like cost-benefit, with the hotness of a unit's pages for its age. (Min et al., FAST 2012.)

use floatgate_core::address::Pbn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use super::largest;
use crate::parts::placement::separation::Plan;
use crate::parts::placement::victim::VictimRule;
use crate::parts::placement::{Books, PageOptions};

/// No state of its own.
#[derive(Debug)]
pub struct CostHotness;

state!(CostHotness {});

impl VictimRule for CostHotness {
    fn new(_: &PageOptions, _: &Plan, _: &Geometry) -> Self {
        Self
    }

    fn weighs_writes(_: &PageOptions) -> bool {
        true
    }

    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn> {
        largest(group, books, |unit| {
            let unit = books.unit(unit);
            let invalid = books.unit_pages() - unit.valid;
            let gain = u128::from(invalid) * u128::from(books.ages(unit));
            (gain, u128::from(unit.valid) * u128::from(unit.counts))
        })
    }
}
