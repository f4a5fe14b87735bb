//! `windowed-greedy`: fewest valid pages among the oldest candidates. (Hu et al., SYSTOR 2009; SepBIT's simulator has a
//! window of 90 %.)

use floatgate_core::Refusal;
use floatgate_core::address::Pbn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use crate::parts::placement::options::within;
use crate::parts::placement::separation::Plan;
use crate::parts::placement::victim::VictimRule;
use crate::parts::placement::{Books, PageOptions};

/// A share of the candidates.
#[derive(Debug)]
pub struct WindowedGreedy {
    percent: u64,
}

state!(WindowedGreedy {} fixed { percent });

impl VictimRule for WindowedGreedy {
    fn check(options: &PageOptions, _: &Plan) -> Result<(), Refusal> {
        within("gc_window", options.gc_window, 1, 100)
    }

    fn new(options: &PageOptions, _: &Plan, _: &Geometry) -> Self {
        Self {
            percent: options.gc_window.into(),
        }
    }

    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn> {
        let all = books.candidates(group).count() as u64;
        let window = (all * self.percent).div_ceil(100) as usize;
        let window = books.candidates(group).take(window);
        // The first of equals is the oldest.
        window.min_by_key(|&unit| books.unit(unit).valid)
    }
}
