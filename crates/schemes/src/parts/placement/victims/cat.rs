//! `cat`: cost, age, times. Like cost-benefit, but units that have been erased often wait. (Chiang, Chang, J. Systems and
//! Software 1999; one is added to the erases, as new units have none.)

use floatgate_core::address::Pbn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use super::largest;
use crate::parts::placement::separation::Plan;
use crate::parts::placement::victim::VictimRule;
use crate::parts::placement::{Books, PageOptions};

/// No state of its own.
#[derive(Debug)]
pub struct Cat;

state!(Cat {});

impl VictimRule for Cat {
    fn new(_: &PageOptions, _: &Plan, _: &Geometry) -> Self {
        Self
    }

    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn> {
        largest(group, books, |unit| {
            let unit = books.unit(unit);
            let invalid = books.unit_pages() - unit.valid;
            let gain = u128::from(books.unit_age(unit)) * u128::from(invalid);
            (gain, u128::from(unit.valid) * (u128::from(unit.erases) + 1))
        })
    }
}
