//! The options of `page` and `hat`: those of page mapping, and where pages go.

use floatgate_core::Refusal;
use floatgate_core::described::ChipTimes;
use floatgate_core::geometry::Geometry;
use floatgate_core::{choice, options};

use super::{Rules, Separation, SeparationKey, VictimKey};
use crate::parts::page_store::{self, GcOptions, IdleOptions, StoreOptions, Streams};
use crate::parts::victims::GcPolicy;

choice! {
    /// In which group a page is written.
    pub enum Placement {
        /// `lpn mod G`.
        Static = "static",
        /// Round robin, as long as the group has room.
        RoundRobin = "rr",
        /// The die with the least left to do, as long as it has room.
        Free = "free",
        /// The request names it.
        Hint = "hint",
    }
}

choice! {
    /// How `sepbit` knows that a page was written recently.
    pub enum Recency {
        /// It stands in a queue of the pages written last.
        Fifo = "fifo",
        /// Its last write is known for every page.
        Table = "table",
    }
}

choice! {
    /// Width of the classes of `fk`.
    pub enum FkScale {
        /// A unit's worth of writes each.
        Linear = "linear",
        /// Each twice as wide as the one before.
        Double = "double",
    }
}

options! {
    /// Options of page mapping.
    pub struct PageOptions {
        /// A die (group) collects garbage until it has this many erased blocks (units).
        gc_low: Option<u32> ["blocks, die"] = None, shown "2, or what the separation needs", samples [2, 3, 5, 6, 8];
        /// Whether pages moved by collections get an append point of their own.
        streams: Streams [""] = Streams::Split;
        /// In which group (by default: on which die) a page is written.
        placement: Placement [""] = Placement::Static;
        /// Which block a collection takes.
        gc_policy: VictimKey [""] = VictimKey::Greedy;
        /// Draws of d-choices.
        gc_d: u64 ["draws"] = 10, samples [1, 5];
        /// Seed of d-choices; die i draws from gc_seed + i.
        gc_seed: u64 [""] = 1, samples [7];
        /// Part of the candidates, the oldest, among which windowed-greedy chooses.
        gc_window: u32 ["percent"] = 90, samples [1, 50, 100];
        /// Valid pages below which 2r-fifo takes a unit: a group's first choice.
        region_util_first: u32 ["percent"] = 50, samples [10, 90];
        /// The same for its later choices.
        region_util: u32 ["percent"] = 70, samples [20, 100];
        /// Part of the full units that 2r-fifo looks at before it asks for less.
        region_depth: u32 ["percent"] = 70, samples [1, 100];
        /// Which append point a page takes; streams: split or none, as the option streams says.
        separation: SeparationKey [""] = SeparationKey::Streams;
        /// Classes of dac, sfs and fk; 0: 6, for fk 12.
        classes: u32 ["classes"] = 0, samples [2, 3, 4];
        /// How sepbit knows that a page was written recently.
        recency: Recency [""] = Recency::Fifo;
        /// Units whose lifespans sepbit averages.
        lifespan_blocks: u32 ["units"] = 16, samples [1, 2, 4];
        /// Width of the classes of fk.
        fk_scale: FkScale [""] = FkScale::Double;
        /// Reclaim unit handles of hint.
        hint_handles: u32 ["handles"] = 8, samples [1, 2, 3];
        /// Of these, the first, whose pages never share a unit with others.
        hint_persistent: u32 ["handles"] = 0, samples [1, 2];
        /// Groups of dies; 0: one a die.
        groups: u32 ["groups"] = 0, samples [1, 2];
        /// Rows of blocks, over all dies of the group, that make a unit.
        ru_rows: u32 ["blocks"] = 1, samples [2];
        ..idle: IdleOptions;
    }
}

/// The shape of a device in groups and units.
#[derive(Clone, Debug)]
pub struct Units {
    /// The groups as dies, the units as their blocks.
    pub virtual_geometry: Geometry,
    /// The device itself.
    pub geometry: Geometry,
    /// Dies of a group.
    pub dies: u32,
    /// Rows of a unit.
    pub rows: u32,
}

impl Units {
    /// The units of a device.
    ///
    /// # Errors
    /// A refusal if groups or rows do not divide it.
    pub fn of(geometry: &Geometry, options: &PageOptions) -> Result<Self, Refusal> {
        let groups = match options.groups {
            0 => geometry.dies,
            groups => groups,
        };
        Ok(Self {
            virtual_geometry: geometry.in_units(groups, options.ru_rows)?,
            geometry: geometry.clone(),
            dies: geometry.dies / groups,
            rows: options.ru_rows,
        })
    }

    /// Whether a unit is a block.
    pub fn are_blocks(&self) -> bool {
        self.dies == 1 && self.rows == 1
    }

    /// Flash blocks of a unit.
    pub fn blocks_each(&self) -> u32 {
        self.dies * self.rows
    }
}

impl PageOptions {
    /// Gives what is unset the value that follows from the rest.
    pub fn fit<R: Rules>(&mut self, chip: ChipTimes) {
        self.idle.fit(chip);
        if let (None, Ok(plan)) = (self.gc_low, R::Separation::plan(self)) {
            self.gc_low = Some(plan.least_low);
        }
    }

    /// The separation with `streams` spelt out.
    pub fn separation(&self) -> SeparationKey {
        match (self.separation, self.streams) {
            (SeparationKey::Streams, Streams::Split) => SeparationKey::Split,
            (SeparationKey::Streams, Streams::Shared) => SeparationKey::None,
            (key, _) => key,
        }
    }

    /// What plain page mapping makes of the options, if there is nothing else in them.
    pub fn plain(&self, geometry: &Geometry) -> Option<StoreOptions> {
        let streams = match self.separation() {
            SeparationKey::None => Streams::Shared,
            SeparationKey::Split => Streams::Split,
            _ => return None,
        };
        let gc_policy = self.page_policy()?;
        let placement = match self.placement {
            Placement::Static => page_store::Placement::Static,
            Placement::RoundRobin => page_store::Placement::RoundRobin,
            Placement::Free => page_store::Placement::Free,
            Placement::Hint => return None,
        };
        let blocks = (self.groups == 0 || self.groups == geometry.dies) && self.ru_rows == 1;
        let (gc_d, gc_seed) = (self.gc_d, self.gc_seed);
        blocks.then_some(StoreOptions {
            gc_low: self.gc_low.unwrap_or(2),
            streams,
            placement,
            gc: GcOptions {
                gc_policy,
                gc_d,
                gc_seed,
            },
            idle: self.idle.clone(),
        })
    }

    /// The victim rule, if it is one of docs/spec/page.md.
    pub fn page_policy(&self) -> Option<GcPolicy> {
        Some(match self.gc_policy {
            VictimKey::Greedy => GcPolicy::Greedy,
            VictimKey::CostBenefit => GcPolicy::CostBenefit,
            VictimKey::Fifo => GcPolicy::Fifo,
            VictimKey::DChoices => GcPolicy::DChoices,
            _ => return None,
        })
    }
}

/// Refuses a value that is not within its limits.
///
/// # Errors
/// The refusal, which names the key.
pub fn within(key: &str, value: u32, least: u32, most: u32) -> Result<(), Refusal> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(Refusal::new(
            key,
            format!("{key} = {value}: from {least} to {most}"),
        )),
    }
}
