//! Page mapping over groups and units with any separation and any victim rule.

use std::sync::Arc;

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, OobWithBytes, Preload, Role, Slot};
use floatgate_core::ftl::{Coming, MountError, Start};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::state;

use super::books::Group;
use super::counted::Counted;
use super::spare::Spare;
use super::{Books, PageOptions, Placement, Plan, Rules, Separation, Units, VictimRule};
use crate::parts::page_store::{Append, IdleOptions, Moves};
use crate::parts::pool::Pool;
use crate::parts::scan::move_tag;

/// No unit is open.
pub(super) const NO_POINT: Append = Append::NONE;

/// A device whose pages go where rules say.
#[derive(Debug)]
pub struct Laboratory<R: Rules> {
    pub(super) books: Books,
    pub(super) separation: R::Separation,
    pub(super) victims: R::Victims,
    pub(super) plan: Plan,
    pub(super) placement: Placement,
    pub(super) gc_low: u32,
    pub(super) idle: IdleOptions,
    pub(super) reserve: u32,
    pub(super) next_group: u32,
    pub(super) counted: Counted,
    /// Pages that collections have moved.
    pub(super) moved: u64,
    /// While a recovery makes room: the one class of all moved pages.
    pub(super) only_class: Option<u32>,
}

state!(Laboratory<R> [R: Rules] { books, separation, victims, next_group, counted, moved }
    fixed { plan, placement, gc_low, idle, reserve, only_class });

/// Checks options and shape; gives the plan, the units, `gc_low` and the reserve.
///
/// # Errors
/// A refusal that names the option at fault, or the sum of units that there would have to be.
pub(super) fn checked<R: Rules>(
    geometry: &Geometry,
    options: &PageOptions,
) -> Result<(Plan, Units, u32, u32), Refusal> {
    let plan = R::Separation::plan(options)?;
    R::Victims::check(options, &plan)?;
    if options.placement == Placement::Hint && !R::Separation::uses_streams(options) {
        let text = "placement = hint: only with separation = hint, as the request names the group";
        return Err(Refusal::new("placement", text.into()));
    }
    if options.placement == Placement::Free {
        let text = "placement = free: only with the rules of plain page mapping, one group a die";
        return Err(Refusal::new("placement", text.into()));
    }
    options.idle.check()?;
    let low = options.gc_low.unwrap_or(plan.least_low);
    if low < plan.least_low {
        let text = format!(
            "gc_low = {low}: this separation needs at least {} erased units a group",
            plan.least_low
        );
        return Err(Refusal::new("gc_low", text));
    }
    let units = Units::of(geometry, options)?;
    let shape = &units.virtual_geometry;
    let data = shape.logical_blocks_per_die();
    let reserve = low.saturating_add(plan.beside_low);
    if u64::from(data) + u64::from(reserve) > u64::from(shape.blocks_per_die) {
        let text = format!(
            "a group has {} units, but {data} of data + {low} for gc_low + {} for open units = {} are needed: give the \
             dies more blocks, or take fewer logical pages, classes or a smaller gc_low",
            shape.blocks_per_die,
            plan.beside_low,
            u64::from(data) + u64::from(reserve)
        );
        return Err(Refusal::new("blocks", text));
    }
    Ok((plan, units, low, reserve))
}

impl<R: Rules> Laboratory<R> {
    /// Checks the options and makes the start state.
    ///
    /// # Errors
    /// The refusal of an option, or an error of the flash.
    pub fn format<F: Preload>(
        space: &Space,
        options: &PageOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let mut lab = Self::blank(space, options)?;
        let shape = lab.books.shape().clone();
        let per_group = shape.logical_blocks_per_die();
        let used = if start == Start::Full { per_group } else { 0 };
        for group in 0..shape.dies {
            let first = shape.pbn(group, 0).0;
            lab.add_group((first + used..first + shape.blocks_per_die).map(Pbn));
        }
        if start == Start::Full {
            lab.fill(flash, per_group).map_err(MountError::Flash)?;
        }
        Ok(lab)
    }

    /// Empty tables without groups.
    pub(super) fn blank(space: &Space, options: &PageOptions) -> Result<Self, Refusal> {
        let (mut plan, units, gc_low, reserve) = checked::<R>(&space.geometry, options)?;
        if R::Victims::weighs_writes(options) {
            (plan.keeps.last, plan.keeps.count) = (true, true);
        }
        let shape = &units.virtual_geometry;
        Ok(Self {
            separation: R::Separation::new(options, shape),
            victims: R::Victims::new(options, &plan, shape),
            counted: Counted::new(plan.classes),
            books: Books::new(units),
            plan,
            placement: options.placement,
            gc_low,
            idle: options.idle.clone(),
            reserve,
            next_group: 0,
            moved: 0,
            only_class: None,
        })
    }

    pub(super) fn add_group(&mut self, erased: impl Iterator<Item = Pbn>) {
        let units = self.books.shape().blocks_per_die;
        self.books.groups.push(Group {
            pool: Pool::new(erased, units),
            points: vec![NO_POINT; self.plan.classes as usize],
            valid: 0,
            next_alloc: 0,
        });
    }

    /// Local page `p` of every group at its local place `p`, in ascending order.
    fn fill<F: Preload>(&mut self, flash: &mut F, per_group: u32) -> Result<(), F::Error> {
        let (groups, pages) = (self.books.shape().dies, self.books.unit_pages());
        for group in 0..groups {
            for index in 0..per_group {
                let unit = self.books.shape().pbn(group, index);
                self.books.note_taken(group, unit, self.plan.class_of_full);
                self.victims.taken(unit);
                for offset in 0..pages {
                    let lpn = Lpn((index * pages + offset) * groups + group);
                    let at = self.books.shape().ppn(unit, offset);
                    (self.books.map[lpn.index()], self.books.page_at[at.index()]) = (at, lpn);
                    self.books.last[lpn.index()] = u64::from(lpn.0) + 1;
                    self.books.count[lpn.index()] = 1;
                    self.books.count_valid(lpn, unit, group);
                }
                let last = u64::from(((index + 1) * pages - 1) * groups + group) + 1;
                self.books.units[unit.index()].room = 0;
                self.books.units[unit.index()].stamp = last;
                self.victims.closed(unit, 0, last);
                self.preload(flash, unit)?;
            }
        }
        let pages = self.books.shape().logical_pages;
        self.books.clock = pages.into();
        self.books.written = pages.into();
        self.separation.starts_full(pages);
        Ok(())
    }

    fn preload<F: Preload>(&self, flash: &mut F, unit: Pbn) -> Result<(), F::Error> {
        let units = &self.books.units_of;
        let pages = units.geometry.pages_per_block;
        for row in 0..units.rows {
            for die in 0..units.dies {
                let block = self.books.flash_block(unit, row, die);
                flash.preload(block, pages, |page| {
                    let offset = (row * pages + page) * units.dies + die;
                    let at = self.books.shape().ppn(unit, offset);
                    self.oob(
                        self.books.page_at[at.index()],
                        self.plan.class_of_full,
                        Ppn::NONE,
                        0,
                    )
                })?;
            }
        }
        Ok(())
    }

    /// The OOB of a page as it is known now, moved from `from` if that is a place.
    pub(super) fn oob(
        &self,
        lpn: Lpn,
        class: u32,
        from: Ppn,
        tag: u32,
    ) -> OobWithBytes<impl FnOnce(&mut [u8]) + use<R>> {
        let keeps = self.plan.keeps;
        let spare = Spare {
            class,
            from,
            last: if keeps.last { self.books.last(lpn) } else { 0 },
            count: if keeps.count {
                self.books.count(lpn)
            } else {
                0
            },
            handle: if keeps.handle {
                self.separation.handle(lpn)
            } else {
                0
            },
        };
        let role = Role::Data;
        Oob { lpn, role, tag }.with_bytes(move |bytes| spare.write(bytes))
    }

    /// The tables behind the rules.
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// The stream of the writes to come.
    pub fn stream(&mut self, stream: Option<u32>) {
        self.separation.stream(stream);
    }

    /// With which write each write ends, by number.
    pub fn foretell(&mut self, deaths: Arc<[u64]>) {
        self.separation.foretell(deaths);
    }

    /// The writes of the next requests.
    pub fn ahead(&mut self, writes: &[Coming]) {
        self.separation.ahead(writes);
    }

    /// Writes a page: group, class, room, program; then the old copy is invalid. Returns when it is programmed.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn write<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        after: F::Token,
        moves: &mut impl Moves<F>,
    ) -> Result<F::Token, F::Error> {
        let group = self.group_for(lpn);
        let class = self.separation.of_host(lpn, group, &self.books);
        if !self.point(group, class).has_room() {
            self.make_room(flash, group, class, moves)?;
        }
        let (to, _) = self.point_mut(group, class).take();
        let old = self.books.flash_page(self.books.place(lpn));
        let number = self.books.now();
        let writes = self.books.count(lpn).saturating_add(1);
        let handle = self.separation.handle_in_work();
        let oob = self.host_oob(lpn, class, (number, writes, handle));
        let place = self.books.flash_page(to);
        let done = flash.program_host(slot, place, oob, after)?;
        self.replace(flash, old, place, done);
        self.program(lpn, to);
        self.books.host_wrote(lpn);
        self.separation.wrote(lpn, &self.books);
        self.counted.host(class);
        Ok(done)
    }

    /// The OOB of a page that the host is writing, with the number of the write, the writes of the page, its handle.
    fn host_oob(
        &self,
        lpn: Lpn,
        class: u32,
        (number, writes, handle): (u64, u32, u32),
    ) -> OobWithBytes<impl FnOnce(&mut [u8]) + use<R>> {
        let keeps = self.plan.keeps;
        let spare = Spare {
            class,
            from: Ppn::NONE,
            last: if keeps.last { number } else { 0 },
            count: if keeps.count { writes } else { 0 },
            handle: if keeps.handle { handle } else { 0 },
        };
        Oob::new(lpn, Role::Data).with_bytes(move |bytes| spare.write(bytes))
    }

    #[inline]
    pub(super) fn point(&self, group: u32, class: u32) -> Append {
        self.books.groups[group as usize].points[class as usize]
    }

    #[inline]
    pub(super) fn point_mut(&mut self, group: u32, class: u32) -> &mut Append {
        &mut self.books.groups[group as usize].points[class as usize]
    }

    /// An old copy on another die must stay until the new one is programmed.
    fn replace<F: Flash>(&self, flash: &mut F, old: Ppn, new: Ppn, done: F::Token) {
        let geometry = &self.books.units_of.geometry;
        let die = |at: Ppn| geometry.die_of(geometry.block_of(at));
        if old.is_some() && die(old) != die(new) {
            flash.replaced(old, done);
        }
    }

    /// Notes a program, and that the old copy is invalid.
    pub(super) fn program(&mut self, lpn: Lpn, to: Ppn) {
        let old = self.books.place(lpn);
        self.books.programmed(lpn, to);
        let unit = self.books.shape().block_of(to);
        if self.books.unit(unit).room == 0 {
            self.victims.closed(unit, 0, self.books.clock);
        }
        if old.is_some() {
            let unit = self.books.shape().block_of(old);
            self.victims.lost(unit, self.books.clock);
        }
    }

    /// Drops a page. Returns where it was on the flash.
    pub fn trim(&mut self, lpn: Lpn) -> Ppn {
        let old = self.books.unmap(lpn);
        if old.is_some() {
            let unit = self.books.shape().block_of(old);
            self.victims.lost(unit, self.books.clock);
            self.books.forget(lpn);
            self.separation.trims(lpn);
        }
        self.books.flash_page(old)
    }

    fn group_for(&mut self, lpn: Lpn) -> u32 {
        let groups = self.books.shape().dies;
        let first = match self.placement {
            Placement::Static => return lpn.0 % groups,
            Placement::RoundRobin | Placement::Free => self.next_group,
            Placement::Hint => self.separation.group(),
        };
        let limit = self.pages_limit();
        let home = self.books.unit_of(lpn);
        let home = home.map(|unit| self.books.shape().die_of(unit));
        let fits =
            |group: u32| self.books.groups[group as usize].valid < limit || home == Some(group);
        let group = (0..groups)
            .map(|i| (first + i) % groups)
            .find(|&group| fits(group))
            .expect("all pages fit, so some group has room");
        if self.placement == Placement::RoundRobin {
            self.next_group = (group + 1) % groups;
        } else if group != first {
            self.separation.missed_group();
        }
        group
    }

    /// Most valid pages that round robin and hints put into a group.
    pub(super) fn pages_limit(&self) -> u32 {
        (self.books.shape().blocks_per_die - self.reserve) * self.books.unit_pages()
    }

    /// Collects until the group has enough erased units, then opens one for the class if it still needs it.
    #[inline(never)]
    pub(super) fn make_room<F: Flash>(
        &mut self,
        flash: &mut F,
        group: u32,
        class: u32,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        while self.books.erased(group) < self.gc_low {
            self.collect(flash, group, moves)?;
        }
        if !self.point(group, class).has_room() {
            self.open(group, class);
        }
        Ok(())
    }

    pub(super) fn open(&mut self, group: u32, class: u32) {
        let unit = self.books.take(group, class);
        self.victims.taken(unit);
        self.counted.taken(class);
    }

    /// Collects one unit: its valid pages move to the append points of their classes, and it is erased.
    pub(super) fn collect<F: Flash>(
        &mut self,
        flash: &mut F,
        group: u32,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let victim = self
            .victims
            .choose(group, &self.books)
            .expect("the reserve leaves a unit with an invalid page");
        self.collect_unit(flash, (group, victim), moves)
    }

    /// Collects that unit of a group.
    pub(super) fn collect_unit<F: Flash>(
        &mut self,
        flash: &mut F,
        (group, victim): (u32, Pbn),
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        self.separation.collects(victim, group, &self.books);
        self.victims.collecting(victim);
        let class = self.books.unit(victim).class;
        let unit_pages = self.books.unit_pages();
        self.counted.collected(class, self.books.unit(victim).valid);
        let first = self.books.shape().first_page(victim).0;
        let places = first..first + unit_pages;
        let mut left = self.books.unit(victim).valid;
        for from in places.map(Ppn) {
            let lpn = self.books.page_at[from.index()];
            if left > 0 && lpn.is_some() && self.books.place(lpn) == from {
                left -= 1;
                self.move_page(flash, (group, victim, class), lpn, left == 0, moves)?;
            }
        }
        assert_eq!(left, 0, "valid pages of a unit");
        self.erase(flash, victim)?;
        self.victims.erased(victim);
        self.books.reclaimed(group, victim);
        Ok(())
    }

    fn move_page<F: Flash>(
        &mut self,
        flash: &mut F,
        (group, victim, from_class): (u32, Pbn, u32),
        lpn: Lpn,
        is_last: bool,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let class = match self.only_class {
            Some(class) => class,
            None => self
                .separation
                .of_moved(lpn, from_class, group, &self.books),
        };
        if !self.point(group, class).has_room() {
            self.open(group, class);
        }
        let (to, _) = self.point_mut(group, class).take();
        let at = self.books.place(lpn);
        let (from, place) = (self.books.flash_page(at), self.books.flash_page(to));
        if is_last && self.books.units_of.blocks_each() > 1 {
            // The last page says that the unit is empty: by then all others must be where they go, on every die, and so must
            // the host's pages that have replaced some of it. Of a single block the flash sees to that.
            flash.drain();
        }
        let oob = self.oob(lpn, class, at, move_tag(is_last, victim));
        let done = flash.copy(from, place, oob, Cause::Gc, F::Token::default())?;
        self.replace(flash, from, place, done);
        self.program(lpn, to);
        self.separation.moved(lpn);
        self.counted.moved(class);
        self.moved += 1;
        moves.moved(flash, lpn, place, done);
        Ok(())
    }

    /// Erases all blocks of a unit.
    pub(super) fn erase<F: Flash>(&self, flash: &mut F, unit: Pbn) -> Result<(), F::Error> {
        let is_one = self.books.units_of.blocks_each() == 1;
        if !is_one {
            // No block of it may go while a page that another one held is under way.
            flash.drain();
        }
        for block in self.books.flash_blocks(unit) {
            flash.erase(block, Cause::Gc, F::Token::default())?;
        }
        if !is_one {
            // None may be written while another one still has what it held: it would look like one unit.
            flash.drain();
        }
        Ok(())
    }
}
