//! What is known of pages and units: the tables behind every separation and every victim rule.

use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::geometry::Geometry;
use floatgate_core::state;

use super::Units;
use crate::parts::lists::Lists;
use crate::parts::page_store::Append;
use crate::parts::pool::Pool;

/// One unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unit {
    /// Valid pages.
    pub valid: u32,
    /// Pages that can still be programmed; 0 if it is full, or closed.
    pub room: u32,
    /// Running number of its take from the erased ones of its group.
    pub alloc_no: u64,
    /// Clock of the last program into it or invalidation in it.
    pub stamp: u64,
    /// Host pages written when it was taken.
    pub born: u64,
    /// Erases so far.
    pub erases: u64,
    /// Over its valid pages: the numbers of their last host writes.
    pub lasts: u64,
    /// Over its valid pages: their host writes.
    pub counts: u64,
    /// The class of the append point that it was taken for.
    pub class: u32,
    /// Whether it is taken, and not erased since.
    pub is_taken: bool,
}

state!(Unit {
    valid,
    room,
    alloc_no,
    stamp,
    born,
    erases,
    lasts,
    counts,
    class,
    is_taken
});

/// One group of dies.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) pool: Pool,
    /// By class.
    pub(super) points: Vec<Append>,
    pub(super) valid: u32,
    pub(super) next_alloc: u64,
}

state!(Group {
    pool,
    points,
    valid,
    next_alloc
});

/// The tables: pages by number, units, groups. Places are those of the [virtual](Units) device.
#[derive(Debug)]
pub struct Books {
    pub(super) units_of: Units,
    /// Where each page lies.
    pub(super) map: Vec<Ppn>,
    /// Page programmed at each place; valid only while the map agrees.
    pub(super) page_at: Vec<Lpn>,
    /// By page: number of its last host write; 0 if it is not mapped.
    pub(super) last: Vec<u64>,
    /// By page: host writes since it was last unmapped.
    pub(super) count: Vec<u32>,
    pub(super) units: Vec<Unit>,
    pub(super) groups: Vec<Group>,
    /// Taken units by group, in the order of their takes.
    pub(super) order: Lists,
    /// Programs so far.
    pub(super) clock: u64,
    /// Host pages written so far.
    pub(super) written: u64,
    /// Mapped pages.
    pub(super) live: u64,
}

state!(Books { map, page_at, last, count, units, groups, order, clock, written, live } fixed { units_of });

impl Books {
    pub(super) fn new(units_of: Units) -> Self {
        let shape = &units_of.virtual_geometry;
        let (logical, units) = (shape.logical_pages as usize, shape.blocks() as usize);
        Self {
            map: crate::hints::large_table(Ppn::NONE, logical),
            page_at: crate::hints::large_table(Lpn::NONE, shape.pages() as usize),
            last: vec![0; logical],
            count: vec![0; logical],
            units: vec![Unit::default(); units],
            groups: Vec::with_capacity(shape.dies as usize),
            order: Lists::new(units, shape.dies as usize),
            clock: 0,
            written: 0,
            live: 0,
            units_of,
        }
    }

    /// Groups as dies, units as blocks.
    #[inline(always)]
    pub fn shape(&self) -> &Geometry {
        &self.units_of.virtual_geometry
    }

    /// Pages of a unit.
    #[inline(always)]
    pub fn unit_pages(&self) -> u32 {
        self.shape().pages_per_block
    }

    /// A unit.
    #[inline(always)]
    pub fn unit(&self, unit: Pbn) -> &Unit {
        &self.units[unit.index()]
    }

    /// Where a page lies, or `NONE`.
    #[inline(always)]
    pub fn place(&self, lpn: Lpn) -> Ppn {
        self.map[lpn.index()]
    }

    /// The unit in which a page lies.
    #[inline(always)]
    pub fn unit_of(&self, lpn: Lpn) -> Option<Pbn> {
        let at = self.place(lpn);
        at.is_some().then(|| self.shape().block_of(at))
    }

    /// The number of the host page that is being written, or would be next.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.written + 1
    }

    /// Number of the last host write of a page; 0 if it is not mapped.
    #[inline(always)]
    pub fn last(&self, lpn: Lpn) -> u64 {
        self.last[lpn.index()]
    }

    /// Host pages written since the last write of a mapped page, the one in progress among them.
    #[inline(always)]
    pub fn age(&self, lpn: Lpn) -> u64 {
        self.now() - self.last(lpn)
    }

    /// Host writes of a page since it was last unmapped.
    #[inline(always)]
    pub fn count(&self, lpn: Lpn) -> u32 {
        self.count[lpn.index()]
    }

    /// Mapped pages of the device.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Host pages written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The sum of the ages of the valid pages of a unit.
    pub fn ages(&self, unit: &Unit) -> u64 {
        u64::from(unit.valid) * self.now() - unit.lasts
    }

    /// Programs since the last change of a unit, and one more.
    pub fn unit_age(&self, unit: &Unit) -> u64 {
        self.clock - unit.stamp + 1
    }

    /// The full units of a group in the order of their takes.
    pub fn full(&self, group: u32) -> impl Iterator<Item = Pbn> + '_ {
        let taken = self.order.iter(group as usize);
        taken
            .filter(|&unit| self.units[unit as usize].room == 0)
            .map(Pbn)
    }

    /// Whether a full unit has an invalid page.
    #[inline(always)]
    pub fn is_candidate(&self, unit: Pbn) -> bool {
        let found = self.unit(unit);
        found.is_taken && found.room == 0 && found.valid < self.unit_pages()
    }

    /// The candidates of a group in the order of their takes.
    pub fn candidates(&self, group: u32) -> impl Iterator<Item = Pbn> + '_ {
        self.full(group).filter(|&unit| self.is_candidate(unit))
    }

    /// The valid pages of a unit in the order of their places, in which a collection moves them.
    pub fn valid_pages(&self, unit: Pbn) -> impl Iterator<Item = Lpn> + '_ {
        let first = self.shape().first_page(unit).0;
        let places = (first..first + self.unit_pages()).map(Ppn);
        let pages = places.map(|at| (at, self.page_at[at.index()]));
        let valid = pages.filter(|&(at, lpn)| lpn.is_some() && self.place(lpn) == at);
        valid.map(|(_, lpn)| lpn)
    }

    /// Erased units of a group.
    #[inline(always)]
    pub fn erased(&self, group: u32) -> u32 {
        self.groups[group as usize].pool.len()
    }

    /// The flash page at a place.
    #[inline]
    pub fn flash_page(&self, at: Ppn) -> Ppn {
        if self.units_of.are_blocks() || at.is_none() {
            return at;
        }
        let (unit, page) = self.shape().split(at);
        let (dies, geometry) = (self.units_of.dies, &self.units_of.geometry);
        let stripe = page / dies;
        let block = self.flash_block(unit, stripe / geometry.pages_per_block, page % dies);
        geometry.ppn(block, stripe % geometry.pages_per_block)
    }

    /// The block of a unit in a row on a die of the group.
    pub(super) fn flash_block(&self, unit: Pbn, row: u32, die: u32) -> Pbn {
        let units_each = self.shape().blocks_per_die;
        let (group, index) = (unit.0 / units_each, unit.0 % units_each);
        let (dies, rows) = (self.units_of.dies, self.units_of.rows);
        let geometry = &self.units_of.geometry;
        geometry.pbn(group * dies + die, index * rows + row)
    }

    /// The flash blocks of a unit.
    pub(super) fn flash_blocks(&self, unit: Pbn) -> impl Iterator<Item = Pbn> + '_ {
        let each_row = move |row| (0..self.units_of.dies).map(move |die| (row, die));
        let places = (0..self.units_of.rows).flat_map(each_row);
        places.map(move |(row, die)| self.flash_block(unit, row, die))
    }

    /// Takes the erased unit that has waited longest for an append point.
    pub(super) fn take(&mut self, group: u32, class: u32) -> Pbn {
        let unit = self.groups[group as usize].pool.take();
        self.note_taken(group, unit, class);
        let next = self.shape().first_page(unit).0;
        let end = next + self.unit_pages();
        self.groups[group as usize].points[class as usize] = Append::new(next, end);
        unit
    }

    pub(super) fn note_taken(&mut self, group: u32, unit: Pbn, class: u32) {
        let here = &mut self.groups[group as usize];
        let alloc_no = here.next_alloc;
        here.next_alloc += 1;
        self.units[unit.index()] = Unit {
            room: self.units_of.virtual_geometry.pages_per_block,
            alloc_no,
            born: self.written,
            class,
            is_taken: true,
            erases: self.units[unit.index()].erases,
            ..Unit::default()
        };
        self.order.push_back(group as usize, unit.0);
    }

    /// A page has been programmed at `to`; its old copy becomes invalid.
    #[inline]
    pub(super) fn programmed(&mut self, lpn: Lpn, to: Ppn) {
        self.clock += 1;
        let unit = self.shape().block_of(to);
        let group = self.shape().die_of(unit);
        self.units[unit.index()].room -= 1;
        self.unmap(lpn);
        self.map[lpn.index()] = to;
        self.page_at[to.index()] = lpn;
        self.count_valid(lpn, unit, group);
        self.units[unit.index()].stamp = self.clock;
    }

    /// A mapped page lies in a unit.
    pub(super) fn count_valid(&mut self, lpn: Lpn, unit: Pbn, group: u32) {
        let (last, count) = (self.last(lpn), u64::from(self.count(lpn)));
        let here = &mut self.units[unit.index()];
        here.valid += 1;
        here.lasts += last;
        here.counts += count;
        self.groups[group as usize].valid += 1;
        self.live += 1;
    }

    /// Takes the page out of the map; what is known of its writes stays. Returns where it was.
    pub(super) fn unmap(&mut self, lpn: Lpn) -> Ppn {
        let old = std::mem::replace(&mut self.map[lpn.index()], Ppn::NONE);
        if old.is_some() {
            let unit = self.shape().block_of(old);
            let group = self.shape().die_of(unit);
            let (last, count) = (self.last(lpn), u64::from(self.count(lpn)));
            let here = &mut self.units[unit.index()];
            here.valid -= 1;
            here.lasts -= last;
            here.counts -= count;
            here.stamp = self.clock;
            self.groups[group as usize].valid -= 1;
            self.live -= 1;
        }
        old
    }

    /// The host page just programmed was this one.
    #[inline]
    pub(super) fn host_wrote(&mut self, lpn: Lpn) {
        self.written += 1;
        let unit = self.shape().block_of(self.map[lpn.index()]);
        let (last, count) = (self.last(lpn), self.count(lpn));
        let counted = count.saturating_add(1);
        self.last[lpn.index()] = self.written;
        self.count[lpn.index()] = counted;
        let here = &mut self.units[unit.index()];
        here.lasts += self.written - last;
        here.counts += u64::from(counted - count);
    }

    /// Forgets the writes of a page that is not mapped any more.
    pub(super) fn forget(&mut self, lpn: Lpn) {
        (self.last[lpn.index()], self.count[lpn.index()]) = (0, 0);
    }

    /// A collected unit has been erased.
    pub(super) fn reclaimed(&mut self, group: u32, unit: Pbn) {
        self.order.remove(unit.0);
        let here = &mut self.units[unit.index()];
        *here = Unit {
            erases: here.erases + 1,
            ..Unit::default()
        };
        self.groups[group as usize].pool.give(unit);
    }
}
