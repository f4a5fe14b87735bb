//! `dac`: dynamic data clustering. A page goes up one level with every write of the host and down one with every move;
//! level 0 is the coldest. (Chiang, Lee, Chang, Software: Practice and Experience 1999, without its limits in time.)

use floatgate_core::Refusal;
use floatgate_core::address::Lpn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use crate::parts::placement::separation::{Keeps, Plan, Separation, classes};
use crate::parts::placement::{Books, PageOptions};

/// The level of a page is the class of the unit it lies in.
#[derive(Debug)]
pub struct Dac {
    top: u32,
}

state!(Dac {} fixed { top });

impl Separation for Dac {
    fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
        let classes = classes(options, 6)?;
        Ok(Plan {
            classes,
            least_low: 2,
            beside_low: classes,
            class_of_full: 0,
            first_moved: 0,
            is_apart: false,
            feeds_one: true,
            is_counted: true,
            keeps: Keeps::default(),
        })
    }

    fn new(options: &PageOptions, _: &Geometry) -> Self {
        let classes = classes(options, 6).expect("checked by the plan");
        Self { top: classes - 1 }
    }

    fn of_host(&mut self, lpn: Lpn, _: u32, books: &Books) -> u32 {
        match books.unit_of(lpn) {
            Some(unit) => self.top.min(books.unit(unit).class + 1),
            None => 0,
        }
    }

    fn of_moved(&mut self, _: Lpn, from_class: u32, _: u32, _: &Books) -> u32 {
        from_class.saturating_sub(1)
    }
}
