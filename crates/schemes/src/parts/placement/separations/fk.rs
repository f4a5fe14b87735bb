//! `fk`: future knowledge. A page goes with those that die when it does, as the whole run is known in advance: the oracle
//! of SepBIT's evaluation (there `linear` with 6 classes). It is no lower bound: the classes are few, and the victim rule
//! does not know the deaths.

use std::sync::Arc;

use floatgate_core::Refusal;
use floatgate_core::address::Lpn;
use floatgate_core::geometry::Geometry;
use floatgate_core::state::{Passed, State, StateError, Tape};

use crate::parts::placement::options::FkScale;
use crate::parts::placement::separation::{Keeps, Plan, Separation, classes};
use crate::parts::placement::{Books, PageOptions};

/// Knows with which write each write ends.
#[derive(Debug)]
pub struct FutureKnowledge {
    scale: FkScale,
    classes: u32,
    /// Pages of a unit in each group: the width of the first class.
    width: u64,
    /// By number of the write; a write beyond the end lives for ever.
    deaths: Arc<[u64]>,
}

/// What is known of one run is of no use in another.
impl State for FutureKnowledge {
    fn pass(&mut self, _: &mut Tape<'_>) -> Passed {
        Err(StateError::NotSupported)
    }
}

impl FutureKnowledge {
    fn class(&self, number: u64, books: &Books) -> u32 {
        let death = self.deaths.get(number as usize).copied();
        let Some(death) = death.filter(|&death| death != u64::MAX) else {
            return self.classes - 1;
        };
        let units = death.saturating_sub(books.now()) / self.width;
        let class = match self.scale {
            FkScale::Linear => units,
            FkScale::Double => u64::from(64 - units.leading_zeros()),
        };
        class.min(u64::from(self.classes) - 1) as u32
    }
}

impl Separation for FutureKnowledge {
    fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
        let classes = classes(options, 12)?;
        Ok(Plan {
            classes,
            least_low: classes + 1,
            beside_low: classes,
            class_of_full: classes - 1,
            first_moved: 0,
            is_apart: false,
            feeds_one: false,
            is_counted: true,
            keeps: Keeps {
                last: true,
                ..Keeps::default()
            },
        })
    }

    fn new(options: &PageOptions, shape: &Geometry) -> Self {
        Self {
            scale: options.fk_scale,
            classes: classes(options, 12).expect("checked by the plan"),
            width: u64::from(shape.dies) * u64::from(shape.pages_per_block),
            deaths: Arc::new([]),
        }
    }

    fn of_host(&mut self, _: Lpn, _: u32, books: &Books) -> u32 {
        self.class(books.now(), books)
    }

    fn of_moved(&mut self, lpn: Lpn, _: u32, _: u32, books: &Books) -> u32 {
        self.class(books.last(lpn), books)
    }

    fn needs_future(_: &PageOptions) -> bool {
        true
    }

    fn foretell(&mut self, deaths: Arc<[u64]>) {
        self.deaths = deaths;
    }
}
