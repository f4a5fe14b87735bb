//! `sfs`: pages of like hotness share a unit. Hotness is the number of writes over the age; the centers of the classes are
//! found anew at each collection, by three rounds of k-means over the full units. (Min et al., FAST 2012; time there is in
//! us, here in host writes.)

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn};
use floatgate_core::geometry::Geometry;
use floatgate_core::report::Table;
use floatgate_core::state;

use crate::parts::placement::separation::{Keeps, Plan, Separation, classes};
use crate::parts::placement::{Books, PageOptions};

/// Rounds in which the centers move.
const ROUNDS: u32 = 3;

/// The centers of the classes of each group.
#[derive(Debug)]
pub struct Sfs {
    classes: usize,
    /// By group and class, in units of 2^-32; none before the first collection of the group.
    centers: Vec<u64>,
    /// By group.
    has_centers: Vec<bool>,
    /// Hotness of the units of a group: scratch.
    units: Vec<u64>,
    /// By class the sum and the number of its units: scratch.
    sums: Vec<(u128, u64)>,
}

state!(Sfs { centers, has_centers } fixed { classes, units, sums });

impl Sfs {
    fn centers(&self, group: u32) -> Option<&[u64]> {
        let first = group as usize * self.classes;
        let all = &self.centers[first..first + self.classes];
        self.has_centers[group as usize].then_some(all)
    }

    fn class(&self, lpn: Lpn, group: u32, books: &Books) -> u32 {
        let Some(centers) = self.centers(group) else {
            return 0;
        };
        let hotness = (u64::from(books.count(lpn)) << 32) / books.age(lpn);
        nearest(centers, hotness) as u32
    }

    /// The hotness of all units of a group that count.
    fn look(&mut self, group: u32, books: &Books) {
        self.units.clear();
        for unit in books.full(group).map(|unit| books.unit(unit)) {
            if unit.valid > 0 {
                let hotness = (u128::from(unit.counts) << 32) / u128::from(books.ages(unit));
                self.units.push(hotness as u64);
            }
        }
    }

    /// The first centers lie evenly among the units in the order of their hotness.
    fn first_centers(&mut self, group: u32) {
        self.units.sort_unstable_by(|a, b| b.cmp(a));
        let (n, first) = (self.units.len(), group as usize * self.classes);
        for i in 0..self.classes {
            self.centers[first + i] = self.units[(2 * i + 1) * n / (2 * self.classes)];
        }
        self.has_centers[group as usize] = true;
    }

    fn round(&mut self, group: u32) {
        let first = group as usize * self.classes;
        let centers = &mut self.centers[first..first + self.classes];
        self.sums.fill((0, 0));
        for &hotness in &self.units {
            let (sum, n) = &mut self.sums[nearest(centers, hotness)];
            *sum += u128::from(hotness);
            *n += 1;
        }
        for (center, &(sum, n)) in centers.iter_mut().zip(&self.sums) {
            if n > 0 {
                *center = (sum / u128::from(n)) as u64;
            }
        }
    }
}

/// The center nearest to a hotness; the first of equals.
fn nearest(centers: &[u64], hotness: u64) -> usize {
    let distances = centers.iter().map(|&center| center.abs_diff(hotness));
    let least = distances.enumerate().min_by_key(|&(_, distance)| distance);
    least.map_or(0, |(class, _)| class)
}

impl Separation for Sfs {
    fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
        let classes = classes(options, 6)?;
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
                count: true,
                handle: false,
            },
        })
    }

    fn new(options: &PageOptions, shape: &Geometry) -> Self {
        let classes = classes(options, 6).expect("checked by the plan") as usize;
        Self {
            classes,
            centers: vec![0; classes * shape.dies as usize],
            has_centers: vec![false; shape.dies as usize],
            units: Vec::with_capacity(shape.blocks_per_die as usize),
            sums: vec![(0, 0); classes],
        }
    }

    fn of_host(&mut self, lpn: Lpn, group: u32, books: &Books) -> u32 {
        match books.place(lpn).is_some() {
            true => self.class(lpn, group, books),
            false => 0,
        }
    }

    fn of_moved(&mut self, lpn: Lpn, _: u32, group: u32, books: &Books) -> u32 {
        self.class(lpn, group, books)
    }

    fn collects(&mut self, _: Pbn, group: u32, books: &Books) {
        self.look(group, books);
        if self.units.is_empty() {
            return;
        }
        if !self.has_centers[group as usize] {
            self.first_centers(group);
        }
        for _ in 0..ROUNDS {
            self.round(group);
        }
        let first = group as usize * self.classes;
        self.centers[first..first + self.classes].sort_unstable_by(|a, b| b.cmp(a));
    }

    fn tables(options: &PageOptions, shape: &Geometry) -> Vec<Table> {
        let classes = u64::from(classes(options, 6).unwrap_or(6));
        vec![
            Table::dram("last writes and counts", shape.logical_pages.into(), 64),
            Table::sram("sums by unit", shape.blocks().into(), 128),
            Table::sram("centers", classes * u64::from(shape.dies), 64),
        ]
    }
}
