//! The laboratory after a power cut (docs/spec/placement.md, section 10).
//!
//! The newest copy of a page wins, with two exceptions that keep units on their way out from looking like units in use:
//!
//! 1. **Emptied units.** The last page of a collection names its victim. What is older in there counts no more: its erase
//!    was about to come, or had begun. This matters because trims are not recorded.
//! 2. **Cut collections.** A unit that holds nothing but pages moved out of one unit which still has their older copies
//!    counts no more: the collection begins anew. Each moved page says where it came from.

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Role, SEQUENCE_MAX};
use floatgate_core::ftl::MountError;
use floatgate_core::geometry::Space;

use super::spare::Spare;
use super::{Laboratory, PageOptions, Placement, Rules, Separation, VictimRule};
use crate::parts::page_store::Moves;
use crate::parts::scan::emptied_by;

/// A page that could be read.
#[derive(Clone, Copy, Debug)]
struct Page {
    lpn: Lpn,
    sequence: u64,
    tag: u32,
    spare: Spare,
}

/// What was found in a unit.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Whether any page of it is programmed.
    is_used: bool,
    readable: u32,
    /// Sequence numbers of its oldest and its youngest page.
    first: u64,
    last: u64,
    /// Newest copies.
    valid: u32,
    class: u32,
    /// The host write of its first page, or of the first one that can be read.
    born: u64,
}

/// All that was read.
struct Scanned {
    /// By place.
    pages: Vec<Option<Page>>,
    units: Vec<Found>,
}

impl<R: Rules> Laboratory<R> {
    /// Makes the tables from what the flash holds; every open unit is closed.
    ///
    /// # Errors
    /// The refusal of an option, or of what no power cut leaves behind; an error of the flash.
    pub fn recover<F: Flash>(
        space: &Space,
        options: &PageOptions,
        flash: &mut F,
        moves: &mut impl Moves<F>,
    ) -> Result<Self, MountError<F::Error>> {
        let mut lab = Self::blank(space, options)?;
        let mut scanned = lab.scan(flash).map_err(MountError::Flash)?;
        lab.books.written = scanned
            .pages
            .iter()
            .flatten()
            .map(|page| page.spare.last)
            .max()
            .unwrap_or(0);
        scanned.void_emptied(&lab);
        scanned.void_targets(&lab);
        let newest = scanned.newest(&lab);
        scanned.look_at_units(&lab, &newest);
        lab.check_found(&scanned, &newest)?;
        lab.take_in(&mut scanned, &newest, flash)?;
        lab.relieve(flash, moves).map_err(MountError::Flash)?;
        Ok(lab)
    }

    fn scan<F: Flash>(&self, flash: &mut F) -> Result<Scanned, F::Error> {
        let (units, geometry) = (&self.books.units_of, &self.books.units_of.geometry);
        let mut scanned = Scanned {
            pages: vec![None; geometry.pages() as usize],
            units: vec![Found::default(); self.books.units.len()],
        };
        for unit in (0..self.books.shape().blocks()).map(Pbn) {
            for (row, die) in
                (0..units.rows).flat_map(|row| (0..units.dies).map(move |die| (row, die)))
            {
                let block = self.books.flash_block(unit, row, die);
                let pointer = flash.ledger().write_pointer(block);
                scanned.units[unit.index()].is_used |= pointer > 0;
                for page in 0..geometry.pages_per_block.min(pointer + 1) {
                    let (found, _) = flash.read_oob(
                        geometry.ppn(block, page),
                        Cause::Map,
                        F::Token::default(),
                    )?;
                    let offset = (row * geometry.pages_per_block + page) * units.dies + die;
                    let at = self.books.shape().ppn(unit, offset);
                    let found = found.filter(|found| {
                        found.read.sequence <= SEQUENCE_MAX
                            && found.read.oob.role == Role::Data
                            && found.read.oob.lpn.0 < geometry.logical_pages
                    });
                    scanned.pages[at.index()] = found.map(|found| Page {
                        lpn: found.read.oob.lpn,
                        sequence: found.read.sequence,
                        tag: found.read.oob.tag,
                        spare: Spare::read(&found.bytes),
                    });
                }
            }
        }
        Ok(scanned)
    }

    /// Checks, before anything is changed, what a power cut leaves as it was.
    fn check_found(&self, scanned: &Scanned, newest: &[Ppn]) -> Result<(), Refusal> {
        let shape = self.books.shape();
        let mut in_use = vec![0; shape.dies as usize];
        for (unit, found) in (0..)
            .map(Pbn)
            .zip(&scanned.units)
            .filter(|(_, found)| found.valid > 0)
        {
            in_use[shape.die_of(unit) as usize] += 1;
            if found.class >= self.plan.classes {
                let text = format!("unit {} is of class {}", unit.0, found.class);
                return Err(Refusal::damaged(text));
            }
        }
        if let Some(group) = in_use.iter().position(|&n| n == shape.blocks_per_die) {
            let text = format!("group {group} has no erased unit left to collect garbage in");
            return Err(Refusal::damaged(text));
        }
        let group_of = |at: Ppn| shape.die_of(shape.block_of(at));
        let lost = (0..).zip(newest).find(|&(number, &at): &(u32, &Ppn)| {
            at.is_some() && group_of(at) != number % shape.dies
        });
        match lost.filter(|_| self.placement == Placement::Static) {
            Some((number, at)) => Err(Refusal::damaged(format!(
                "page {number} lies at place {}, in a group that is not its own",
                at.0
            ))),
            None => Ok(()),
        }
    }

    /// Erases every unit without a page that counts; all others are closed, in the order of their oldest pages.
    fn take_in<F: Flash>(
        &mut self,
        scanned: &mut Scanned,
        newest: &[Ppn],
        flash: &mut F,
    ) -> Result<(), MountError<F::Error>> {
        for i in 0..scanned.units.len() {
            if scanned.units[i].is_used && scanned.units[i].valid == 0 {
                self.erase_used(flash, Pbn(i as u32))
                    .map_err(MountError::Flash)?;
            }
        }
        // On every die, before anything is written.
        flash.drain();
        let shape = self.books.shape().clone();
        for group in 0..shape.dies {
            let all = (0..shape.blocks_per_die).map(|index| shape.pbn(group, index));
            let (mut used, erased): (Vec<Pbn>, Vec<Pbn>) =
                all.partition(|unit| scanned.units[unit.index()].valid > 0);
            self.add_group(erased.into_iter());
            used.sort_unstable_by_key(|unit| scanned.units[unit.index()].first);
            for unit in used {
                let found = scanned.units[unit.index()];
                self.books.note_taken(group, unit, found.class);
                self.victims.taken(unit);
                self.books.clock = self.books.clock.max(found.last);
                let here = &mut self.books.units[unit.index()];
                (here.room, here.stamp, here.born) = (0, found.last, found.born);
                self.victims
                    .closed(unit, shape.pages_per_block - found.valid, found.last);
            }
        }
        for (lpn, &at) in (0..).map(Lpn).zip(newest).filter(|(_, at)| at.is_some()) {
            let spare = scanned.pages[at.index()]
                .expect("a newest copy was read")
                .spare;
            (self.books.map[lpn.index()], self.books.page_at[at.index()]) = (at, lpn);
            self.books.last[lpn.index()] = spare.last;
            self.books.count[lpn.index()] = spare.count;
            if self.plan.keeps.handle {
                self.separation.found(lpn, spare.handle)?;
            }
            let unit = shape.block_of(at);
            self.books.count_valid(lpn, unit, shape.die_of(unit));
        }
        Ok(())
    }

    /// Erases the blocks of a unit that hold anything.
    fn erase_used<F: Flash>(&self, flash: &mut F, unit: Pbn) -> Result<(), F::Error> {
        for block in self.books.flash_blocks(unit) {
            if flash.ledger().write_pointer(block) > 0 {
                flash.erase(block, Cause::Gc, F::Token::default())?;
            }
        }
        Ok(())
    }

    /// Makes room where a victim can feed several classes, which takes more erased units than a cut may have left; then
    /// puts groups that trimmed pages have filled above the limit right.
    fn relieve<F: Flash>(
        &mut self,
        flash: &mut F,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let class = self.plan.first_moved;
        if !self.plan.feeds_one {
            self.only_class = Some(class);
            for group in 0..self.books.shape().dies {
                while self.books.erased(group) < self.gc_low {
                    self.collect(flash, group, moves)?;
                }
            }
        }
        if self.placement != Placement::Static {
            self.relieve_groups(flash, class, moves)?;
        }
        if self.only_class.take().is_some() || self.placement != Placement::Static {
            for group in 0..self.books.shape().dies {
                self.close(group, class);
            }
        }
        self.counted.reset();
        self.moved = 0;
        self.separation.reset_counters();
        Ok(())
    }

    /// Closes the unit of an append point: what is left of it is lost until it is collected.
    fn close(&mut self, group: u32, class: u32) {
        let point = self.point(group, class);
        if !point.has_room() {
            return;
        }
        let unit = self.books.shape().block_of(Ppn(point.range().0));
        let room = self.books.units[unit.index()].room;
        self.books.units[unit.index()].room = 0;
        self.books.groups[group as usize].points[class as usize] = super::laboratory::NO_POINT;
        self.victims.closed(unit, room, self.books.clock);
    }

    /// Moves pages out of groups that hold more than placement would put there.
    fn relieve_groups<F: Flash>(
        &mut self,
        flash: &mut F,
        class: u32,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let limit = self.pages_limit();
        self.only_class = Some(class);
        for lpn in (0..self.books.map.len() as u32).map(Lpn) {
            let Some(unit) = self.books.unit_of(lpn) else {
                continue;
            };
            let held = |group: u32| self.books.groups[group as usize].valid;
            if held(self.books.shape().die_of(unit)) <= limit {
                continue;
            }
            let roomy = (0..self.books.shape().dies).find(|&group| held(group) < limit);
            let group = roomy.expect("all pages fit, so some group has room");
            if !self.point(group, class).has_room() {
                self.make_room(flash, group, class, moves)?;
            }
            self.move_elsewhere(flash, lpn, group, class, moves)?;
        }
        Ok(())
    }
}

impl Scanned {
    fn in_unit<R: Rules>(&self, lab: &Laboratory<R>, unit: Pbn) -> std::ops::Range<usize> {
        let first = lab.books.shape().first_page(unit).index();
        first..first + lab.books.unit_pages() as usize
    }

    /// The first exception: see the text of the module.
    fn void_emptied<R: Rules>(&mut self, lab: &Laboratory<R>) {
        let ends: Vec<(Pbn, u64)> = self
            .pages
            .iter()
            .flatten()
            .filter_map(|page| emptied_by(page.tag).map(|unit| (unit, page.sequence)))
            .filter(|(unit, _)| unit.index() < self.units.len())
            .collect();
        for (unit, end) in ends {
            let places = self.in_unit(lab, unit);
            for page in &mut self.pages[places] {
                *page = page.filter(|page| page.sequence > end);
            }
        }
    }

    /// The second one.
    fn void_targets<R: Rules>(&mut self, lab: &Laboratory<R>) {
        let units = (0..self.units.len() as u32).map(Pbn);
        let void: Vec<Pbn> = units.filter(|&unit| self.is_target(lab, unit)).collect();
        for unit in void {
            let places = self.in_unit(lab, unit);
            self.pages[places].fill(None);
        }
    }

    /// Whether a unit holds copies of pages of one other unit and nothing else.
    fn is_target<R: Rules>(&self, lab: &Laboratory<R>, unit: Pbn) -> bool {
        let mut source = None;
        for page in self.pages[self.in_unit(lab, unit)].iter().flatten() {
            let from = page.spare.from;
            let Some(Some(old)) = self.pages.get(from.index()) else {
                return false;
            };
            let of = lab.books.shape().block_of(from);
            let is_copy = old.lpn == page.lpn && old.sequence < page.sequence;
            if !is_copy || *source.get_or_insert(of) != of {
                return false;
            }
        }
        source.is_some_and(|source| source != unit)
    }

    /// Where the newest copy of each page lies.
    fn newest<R: Rules>(&self, lab: &Laboratory<R>) -> Vec<Ppn> {
        let mut newest = vec![(0, Ppn::NONE); lab.books.map.len()];
        for (at, page) in (0..).map(Ppn).zip(&self.pages) {
            if let Some(page) = page {
                let known = &mut newest[page.lpn.index()];
                if known.1.is_none() || page.sequence >= known.0 {
                    *known = (page.sequence, at);
                }
            }
        }
        newest.into_iter().map(|(_, at)| at).collect()
    }

    fn look_at_units<R: Rules>(&mut self, lab: &Laboratory<R>, newest: &[Ppn]) {
        for &at in newest.iter().filter(|at| at.is_some()) {
            self.units[lab.books.shape().block_of(at).index()].valid += 1;
        }
        for i in 0..self.units.len() {
            let places = self.in_unit(lab, Pbn(i as u32));
            let found = &mut self.units[i];
            for page in self.pages[places].iter().flatten() {
                if found.readable == 0 {
                    found.born = page.spare.last.saturating_sub(1);
                    found.first = page.sequence;
                }
                found.first = found.first.min(page.sequence);
                if found.readable == 0 || page.sequence > found.last {
                    // What an erase that was cut has left over may be of another class.
                    (found.last, found.class) = (page.sequence, page.spare.class);
                }
                found.readable += 1;
            }
        }
    }
}

impl<R: Rules> Laboratory<R> {
    fn move_elsewhere<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: Lpn,
        group: u32,
        class: u32,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        let (to, _) = self.point_mut(group, class).take();
        let from = self.books.flash_page(self.books.place(lpn));
        let place = self.books.flash_page(to);
        let oob = self.oob(lpn, class, Ppn::NONE, 0);
        let done = flash.copy(from, place, oob, Cause::Gc, F::Token::default())?;
        // Else the end of a collection could say that the old unit is empty before the page is here.
        flash.replaced(from, done);
        self.program(lpn, to);
        moves.moved(flash, lpn, place, done);
        Ok(())
    }
}
