//! `2r-greedy` and `2r-fifo`: two regions, one for pages of the host and one for moved pages. (Kang et al., "2R", PVLDB
//! 2020. It places like `split`; it fills a unit's worth of garbage in one go, here one unit is collected at a time.)

use floatgate_core::Refusal;
use floatgate_core::address::Pbn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use crate::parts::placement::options::within;
use crate::parts::placement::separation::Plan;
use crate::parts::placement::victim::VictimRule;
use crate::parts::placement::{Books, PageOptions};

fn check_apart(plan: &Plan) -> Result<(), Refusal> {
    if plan.is_apart {
        return Ok(());
    }
    let text = "the rules 2r-* need a separation in which moved pages have classes of their own: split, sepbit or hint";
    Err(Refusal::new("gc_policy", text.into()))
}

/// The region with more to gain, then fewest valid pages.
#[derive(Debug)]
pub struct Greedy {
    first_cold: u32,
}

state!(Greedy {} fixed { first_cold });

/// The candidates of a region.
#[derive(Clone, Copy, Default)]
struct Region {
    invalid: u64,
    /// The candidate with the fewest valid pages, and these.
    best: Option<(u32, Pbn)>,
}

impl VictimRule for Greedy {
    fn check(_: &PageOptions, plan: &Plan) -> Result<(), Refusal> {
        check_apart(plan)
    }

    fn new(_: &PageOptions, plan: &Plan, _: &Geometry) -> Self {
        Self {
            first_cold: plan.first_moved,
        }
    }

    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn> {
        let mut regions = [Region::default(); 2];
        for unit in books.candidates(group) {
            let found = books.unit(unit);
            let region = &mut regions[usize::from(found.class >= self.first_cold)];
            region.invalid += u64::from(books.unit_pages() - found.valid);
            if region.best.is_none_or(|(valid, _)| found.valid < valid) {
                region.best = Some((found.valid, unit));
            }
        }
        let [normal, cold] = regions;
        let (Some((normal_valid, of_normal)), Some((cold_valid, of_cold))) =
            (normal.best, cold.best)
        else {
            return normal.best.or(cold.best).map(|(_, unit)| unit);
        };
        let unit_pages = u64::from(books.unit_pages());
        let is_cold = cold.invalid >= unit_pages
            && (normal.invalid < unit_pages || cold_valid <= normal_valid);
        Some(if is_cold { of_cold } else { of_normal })
    }
}

/// How far `2r-fifo` has come in a group.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// It looks at no unit taken before this number.
    alloc_no: u64,
    steps: u64,
    has_chosen: bool,
}

state!(Position {
    alloc_no,
    steps,
    has_chosen
});

/// In the order of allocation, past units that are too full; the bound rises as it goes round.
#[derive(Debug)]
pub struct Fifo {
    first_bound: u64,
    bound: u64,
    depth: u64,
    /// By group.
    positions: Vec<Position>,
    /// The full units of the group: scratch.
    full: Vec<Pbn>,
}

state!(Fifo { positions } fixed { first_bound, bound, depth, full });

impl VictimRule for Fifo {
    fn check(options: &PageOptions, plan: &Plan) -> Result<(), Refusal> {
        within("region_depth", options.region_depth, 1, 100)?;
        check_apart(plan)
    }

    fn new(options: &PageOptions, _: &Plan, shape: &Geometry) -> Self {
        Self {
            first_bound: options.region_util_first.into(),
            bound: options.region_util.into(),
            depth: options.region_depth.into(),
            positions: vec![Position::default(); shape.dies as usize],
            full: Vec::with_capacity(shape.blocks_per_die as usize),
        }
    }

    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn> {
        books.candidates(group).next()?;
        self.full.clear();
        self.full.extend(books.full(group));
        let n = self.full.len() as u64;
        let at = &mut self.positions[group as usize];
        let mut bound = if at.has_chosen {
            self.bound
        } else {
            self.first_bound
        };
        at.has_chosen = true;
        loop {
            let mut next = self
                .full
                .partition_point(|&unit| books.unit(unit).alloc_no < at.alloc_no);
            if next == self.full.len() {
                (at.alloc_no, at.steps) = (0, 0);
                next = 0;
            }
            let unit = self.full[next];
            at.alloc_no = books.unit(unit).alloc_no + 1;
            at.steps += 1;
            let valid = 100 * u64::from(books.unit(unit).valid);
            let is_victim =
                books.is_candidate(unit) && valid < bound * u64::from(books.unit_pages());
            let depth = if bound > 100 {
                n
            } else {
                (n * self.depth / 100).max(1)
            };
            if at.steps >= depth {
                (at.alloc_no, at.steps) = (0, 0);
                bound += 5;
            }
            if is_victim {
                return Some(unit);
            }
        }
    }
}
