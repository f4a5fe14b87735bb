//! `none` and `split`: one append point, or one for the host and one for moved pages (docs/spec/page.md). SepBIT calls
//! them NoSep and SepGC.

use floatgate_core::Refusal;
use floatgate_core::address::Lpn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use crate::parts::placement::separation::{Keeps, Plan, Separation};
use crate::parts::placement::{Books, PageOptions};

/// One append point for all pages.
#[derive(Debug)]
pub struct Together;

state!(Together {});

impl Separation for Together {
    fn plan(_: &PageOptions) -> Result<Plan, Refusal> {
        Ok(plan(1))
    }

    fn new(_: &PageOptions, _: &Geometry) -> Self {
        Self
    }

    fn of_host(&mut self, _: Lpn, _: u32, _: &Books) -> u32 {
        0
    }

    fn of_moved(&mut self, _: Lpn, _: u32, _: u32, _: &Books) -> u32 {
        0
    }
}

/// Moved pages have an append point of their own.
#[derive(Debug)]
pub struct Apart;

state!(Apart {});

impl Separation for Apart {
    fn plan(_: &PageOptions) -> Result<Plan, Refusal> {
        Ok(plan(2))
    }

    fn new(_: &PageOptions, _: &Geometry) -> Self {
        Self
    }

    fn of_host(&mut self, _: Lpn, _: u32, _: &Books) -> u32 {
        0
    }

    fn of_moved(&mut self, _: Lpn, _: u32, _: u32, _: &Books) -> u32 {
        1
    }
}

fn plan(classes: u32) -> Plan {
    Plan {
        classes,
        least_low: 2,
        beside_low: 1,
        class_of_full: 0,
        first_moved: classes - 1,
        is_apart: classes == 2,
        feeds_one: true,
        is_counted: false,
        keeps: Keeps::default(),
    }
}
