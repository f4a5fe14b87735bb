//! What a victim rule is: which unit a collection takes.

use std::fmt::Debug;

use floatgate_core::Refusal;
use floatgate_core::address::Pbn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state::State;

use super::separation::Plan;
use super::{Books, PageOptions};

/// A rule that chooses among the [candidates](Books::candidates) of a group. It sees the [`Books`]; rules that keep an
/// order of their own hear of every change.
pub trait VictimRule: State + Debug + Send + Sized + 'static {
    /// Whether it works with these options and a separation of that plan.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    fn check(options: &PageOptions, plan: &Plan) -> Result<(), Refusal> {
        let _ = (options, plan);
        Ok(())
    }

    /// The rule at the start; `shape` has groups as dies and units as blocks.
    fn new(options: &PageOptions, plan: &Plan, shape: &Geometry) -> Self;

    /// Whether it weighs the number and age of each page's host writes, which must outlive a power cut then.
    fn weighs_writes(options: &PageOptions) -> bool {
        let _ = options;
        false
    }

    /// The unit to collect in a group, if it has a candidate.
    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn>;

    /// A unit has been taken for an append point.
    fn taken(&mut self, unit: Pbn) {
        let _ = unit;
    }

    /// A page of a unit has become invalid.
    fn lost(&mut self, unit: Pbn, clock: u64) {
        let _ = (unit, clock);
    }

    /// A unit takes no more pages; `invalid` of them count as invalid although nobody has lost them.
    fn closed(&mut self, unit: Pbn, invalid: u32, clock: u64) {
        let _ = (unit, invalid, clock);
    }

    /// A unit is being collected.
    fn collecting(&mut self, unit: Pbn) {
        let _ = unit;
    }

    /// A unit has been erased.
    fn erased(&mut self, unit: Pbn) {
        let _ = unit;
    }

    /// Checks its state against the books.
    ///
    /// # Errors
    /// What does not agree.
    fn audit(&self, books: &Books) -> Result<(), String> {
        let _ = books;
        Ok(())
    }
}
