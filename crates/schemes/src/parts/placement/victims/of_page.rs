//! The rules of docs/spec/page.md, over units: `greedy`, `cost-benefit`, `fifo`, `d-choices`.

use floatgate_core::Refusal;
use floatgate_core::address::Pbn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use crate::parts::placement::separation::Plan;
use crate::parts::placement::victim::VictimRule;
use crate::parts::placement::{Books, PageOptions};
use crate::parts::victims::Victims;

/// What page mapping uses, on units.
#[derive(Debug)]
pub struct OfPage {
    victims: Victims,
}

state!(OfPage { victims });

impl VictimRule for OfPage {
    fn check(options: &PageOptions, _: &Plan) -> Result<(), Refusal> {
        match options.gc_d {
            0 => Err(Refusal::new("gc_d", "gc_d = 0: at least 1 draw".into())),
            _ => Ok(()),
        }
    }

    fn new(options: &PageOptions, _: &Plan, shape: &Geometry) -> Self {
        let policy = options
            .page_policy()
            .expect("one of the rules of page mapping");
        Self {
            victims: Victims::new(shape, policy, options.gc_d, options.gc_seed),
        }
    }

    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn> {
        self.victims.choose(group, books.clock)
    }

    fn taken(&mut self, unit: Pbn) {
        self.victims.taken(unit);
    }

    #[inline]
    fn lost(&mut self, unit: Pbn, clock: u64) {
        self.victims.lost(unit, clock);
    }

    fn closed(&mut self, unit: Pbn, invalid: u32, clock: u64) {
        self.victims.closed(unit, invalid, clock);
    }

    fn collecting(&mut self, unit: Pbn) {
        self.victims.collecting(unit);
    }

    fn erased(&mut self, unit: Pbn) {
        self.victims.erased(unit);
    }

    fn audit(&self, books: &Books) -> Result<(), String> {
        let valid: Vec<u32> = books.units.iter().map(|unit| unit.valid).collect();
        self.victims.audit(&valid, |unit| books.unit(unit).room)
    }
}
