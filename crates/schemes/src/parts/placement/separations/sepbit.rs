//! `sepbit`: by the time until a page is invalid, as its last life and the mean lifespan of units tell it. (Wang et al.,
//! FAST 2022; sums and queue are those of the whole device.)

use std::collections::VecDeque;

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn};
use floatgate_core::geometry::Geometry;
use floatgate_core::report::{Table, bits_for};
use floatgate_core::state;

use crate::parts::placement::options::Recency;
use crate::parts::placement::separation::{Keeps, Plan, Separation};
use crate::parts::placement::{Books, PageOptions};

/// Class of the host's pages that were written recently, and of those that were not.
const SHORT: u32 = 0;
const LONG: u32 = 1;

/// Six classes: two for the host, four for moved pages.
#[derive(Debug)]
pub struct SepBit {
    recency: Recency,
    /// Units averaged.
    units: u64,
    /// The lifespans of that many units of the first class; none at the start.
    mean: Option<u64>,
    /// The same for those collected since, and their number.
    sum: u64,
    collected: u64,
    /// The pages written last, the oldest first, each with the number of its write.
    queue: VecDeque<(Lpn, u64)>,
    /// By page: the number of its newest entry in the queue; 0 if it is not in it.
    newest: Vec<u64>,
}

state!(SepBit { mean, sum, collected, queue, newest } fixed { recency, units });

impl SepBit {
    /// Whether so many host writes are less than `times` the mean lifespan.
    fn is_within(&self, writes: u64, times: u128) -> bool {
        let mean = |s| u128::from(self.units) * u128::from(writes) < times * u128::from(s);
        self.mean.is_none_or(mean)
    }

    fn is_long(&self) -> bool {
        let length = self.queue.len() as u128;
        self.mean
            .is_some_and(|s| u128::from(self.units) * length > u128::from(s))
    }

    fn drop_oldest(&mut self) {
        if let Some((lpn, number)) = self.queue.pop_front() {
            let newest = &mut self.newest[lpn.index()];
            if *newest == number {
                *newest = 0;
            }
        }
    }
}

impl Separation for SepBit {
    fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
        if options.lifespan_blocks == 0 {
            let text = "lifespan_blocks = 0: at least 1 unit".into();
            return Err(Refusal::new("lifespan_blocks", text));
        }
        Ok(Plan {
            classes: 6,
            least_low: 5,
            beside_low: 5,
            class_of_full: LONG,
            first_moved: 2,
            is_apart: true,
            feeds_one: false,
            is_counted: true,
            keeps: Keeps {
                last: true,
                ..Keeps::default()
            },
        })
    }

    fn new(options: &PageOptions, shape: &Geometry) -> Self {
        let pages = match options.recency {
            Recency::Fifo => shape.logical_pages as usize,
            Recency::Table => 0,
        };
        Self {
            recency: options.recency,
            units: options.lifespan_blocks.into(),
            mean: None,
            sum: 0,
            collected: 0,
            queue: VecDeque::with_capacity(pages + usize::from(pages > 0)),
            newest: vec![0; pages],
        }
    }

    fn starts_full(&mut self, pages: u32) {
        if self.recency == Recency::Fifo {
            self.queue
                .extend((0..pages).map(|lpn| (Lpn(lpn), u64::from(lpn) + 1)));
            self.newest = (1..=u64::from(pages)).collect();
        }
    }

    fn of_host(&mut self, lpn: Lpn, _: u32, books: &Books) -> u32 {
        let is_recent = match self.recency {
            Recency::Table => books.place(lpn).is_some() && self.is_within(books.age(lpn), 1),
            Recency::Fifo => {
                let newest = self.newest[lpn.index()];
                newest != 0 && self.is_within(books.now() - newest, 1)
            }
        };
        if is_recent { SHORT } else { LONG }
    }

    fn of_moved(&mut self, lpn: Lpn, from_class: u32, _: u32, books: &Books) -> u32 {
        let age = books.age(lpn);
        match from_class {
            SHORT => 2,
            _ if self.is_within(age, 4) => 3,
            _ if self.is_within(age, 16) => 4,
            _ => 5,
        }
    }

    fn collects(&mut self, victim: Pbn, _: u32, books: &Books) {
        let victim = books.unit(victim);
        if victim.class != SHORT {
            return;
        }
        self.sum += books.written() - victim.born;
        self.collected += 1;
        if self.collected == self.units {
            self.mean = Some(self.sum);
            (self.sum, self.collected) = (0, 0);
        }
    }

    fn wrote(&mut self, lpn: Lpn, books: &Books) {
        if self.recency == Recency::Table {
            return;
        }
        self.queue.push_back((lpn, books.written()));
        self.newest[lpn.index()] = books.written();
        if self.queue.len() as u64 > books.live() || self.is_long() {
            self.drop_oldest();
            if self.is_long() {
                self.drop_oldest();
            }
        }
    }

    fn trims(&mut self, lpn: Lpn) {
        if self.recency == Recency::Fifo {
            self.newest[lpn.index()] = 0;
        }
    }

    fn audit(&self, books: &Books) -> Result<(), String> {
        let written = books.written();
        let mut before = 0;
        for &(lpn, number) in &self.queue {
            if lpn.index() >= self.newest.len() || number <= before || number > written {
                return Err(format!("write {number} of page {} in the queue", lpn.0));
            }
            before = number;
        }
        let beyond = self.newest.iter().any(|&number| number > written);
        match beyond
            || self.sum > written.saturating_mul(self.units)
            || self.collected >= self.units
        {
            true => Err("lifespans or writes that have not been".into()),
            false => Ok(()),
        }
    }

    fn tables(options: &PageOptions, shape: &Geometry) -> Vec<Table> {
        let pages = u64::from(shape.logical_pages);
        let recency = match options.recency {
            Recency::Table => Table::dram("last writes", pages, 32),
            Recency::Fifo => Table::dram("recent writes, at most", pages, bits_for(pages) + 32),
        };
        vec![
            recency,
            Table::sram("births of units", shape.blocks().into(), 32),
        ]
    }
}
