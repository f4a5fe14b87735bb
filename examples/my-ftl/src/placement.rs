//! `often`: page mapping with a separation of one's own. Pages that the host has written three times or more have units of
//! their own; what a collection moves goes to a third kind of unit.
//!
//! **RAM state.** That of `page`, and the writes of each page since it was last unmapped.
//!
//! **Flash state.** That of `page`; the OOB holds those writes.

use floatgate_core::state;
use floatgate_core::{Geometry, Lpn, Refusal};
use floatgate_schemes::parts::placement::{
    AnyVictims, Books, Keeps, PageOptions, Plan, Rules, Separation,
};

/// Host writes that make a page a hot one.
const OFTEN: u32 = 3;

/// The rule.
#[derive(Debug)]
pub struct ByWrites;

state!(ByWrites {});

impl Separation for ByWrites {
    fn plan(_: &PageOptions) -> Result<Plan, Refusal> {
        Ok(Plan {
            classes: 3,
            least_low: 2,
            // One unit may be open for each class but the one that needs room.
            beside_low: 2,
            class_of_full: 0,
            first_moved: 2,
            is_apart: true,
            feeds_one: true,
            is_counted: true,
            keeps: Keeps {
                count: true,
                ..Keeps::default()
            },
        })
    }

    fn new(_: &PageOptions, _: &Geometry) -> Self {
        Self
    }

    fn of_host(&mut self, lpn: Lpn, _: u32, books: &Books) -> u32 {
        u32::from(books.count(lpn) + 1 >= OFTEN)
    }

    fn of_moved(&mut self, _: Lpn, _: u32, _: u32, _: &Books) -> u32 {
        2
    }
}

/// The scheme: this separation, and any of the victim rules that there are.
#[derive(Debug)]
pub struct Often;

impl Rules for Often {
    const KEY: &'static str = "often";
    const TITLE: &'static str = "Often";
    const SUMMARY: &'static str = "page mapping that keeps apart what is written often";
    const SOURCE: &'static str = "an example";
    const TEXT: &'static str = include_str!("placement.rs");
    type Separation = ByWrites;
    type Victims = AnyVictims;
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_schemes::page::PageBy;
    use floatgate_testkit::suite::{Bench, Case};

    #[test]
    fn the_third_write_of_a_page_goes_elsewhere() {
        let mut bench = Bench::<PageBy<Often>>::new(&Case::small(1, 10, 4, 2)).unwrap();
        // The start state is the first write.
        bench.play("W 0 1, W 0 1, W 1 1");
        assert_eq!(
            (bench.extra("class_host_0"), bench.extra("class_host_1")),
            (2, 1)
        );
        bench.play("W 2 1, W 0 1");
        assert_eq!(
            (bench.extra("class_host_0"), bench.extra("class_host_1")),
            (3, 2)
        );
    }
}
