//! Checks of the laboratory's tables.

use floatgate_core::address::{Lpn, Pbn};
use floatgate_core::flash::Flash;

use super::{Books, Laboratory, Rules, Separation, Unit, VictimRule};

impl<R: Rules> Laboratory<R> {
    /// Checks the tables; returns the live pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        self.books.audit_pages(flash)?;
        for unit in (0..self.books.shape().blocks()).map(Pbn) {
            self.audit_unit(unit)?;
        }
        for group in 0..self.books.shape().dies {
            self.audit_group(group, flash)?;
        }
        self.separation.audit(&self.books)?;
        self.victims.audit(&self.books)?;
        Ok(self.books.live())
    }

    fn audit_unit(&self, unit: Pbn) -> Result<(), String> {
        let found = self.books.unit(unit);
        let bad = |what: &str| Err(format!("unit {} {what}", unit.0));
        if found.class >= self.plan.classes {
            return bad("has a class that does not exist");
        }
        if found.stamp > self.books.clock || found.born > self.books.written {
            return bad("comes from the future");
        }
        let group = self.books.shape().die_of(unit);
        let here = &self.books.groups[group as usize];
        if found.is_taken && found.alloc_no >= here.next_alloc {
            return bad("has a number that has not been given");
        }
        let listed = self.books.order.list_of(unit.0);
        if listed != found.is_taken.then_some(group as usize) {
            return bad("is not in the list that it belongs to");
        }
        if found.room == 0 || !found.is_taken {
            return Ok(());
        }
        // A unit with room is the open one of its class, from its next page to its end.
        let point = here.points[found.class as usize];
        let end = self.books.shape().first_page(unit).0 + self.books.unit_pages();
        match point.range() == (end.saturating_sub(found.room), end) {
            true => Ok(()),
            false => bad("has room but no append point"),
        }
    }

    fn audit_group<F: Flash>(&self, group: u32, flash: &F) -> Result<(), String> {
        let here = &self.books.groups[group as usize];
        if !self.books.order_rises(group) {
            return Err(format!("the units of group {group} are out of order"));
        }
        let mut points = here.points.iter().filter(|point| point.has_room());
        let is_open = |next: u32| {
            let unit = self
                .books
                .shape()
                .block_of(floatgate_core::address::Ppn(next));
            let found = self.books.unit(unit);
            self.books.shape().die_of(unit) == group && found.is_taken && found.room > 0
        };
        if !points.all(|point| is_open(point.range().0)) {
            return Err(format!(
                "an append point of group {group} is in no open unit"
            ));
        }
        let mut listed = vec![false; self.books.shape().blocks_per_die as usize];
        for unit in here.pool.iter() {
            let is_here =
                unit.0 < self.books.shape().blocks() && self.books.shape().die_of(unit) == group;
            if !is_here || self.books.unit(unit).is_taken {
                return Err(format!("unit {} is not erased in group {group}", unit.0));
            }
            let index = unit.0 - group * self.books.shape().blocks_per_die;
            if std::mem::replace(&mut listed[index as usize], true) {
                return Err(format!("unit {} is erased twice", unit.0));
            }
            let blank = |block| flash.ledger().write_pointer(block) == 0;
            if !self.books.flash_blocks(unit).all(blank) {
                return Err(format!("an erased unit of group {group} is not erased"));
            }
        }
        Ok(())
    }
}

impl Books {
    /// Whether the taken units of a group are in the order of their numbers.
    fn order_rises(&self, group: u32) -> bool {
        let numbers = self.order.iter(group as usize);
        numbers
            .map(|unit| self.units[unit as usize].alloc_no)
            .is_sorted_by(|a, b| a < b)
    }

    /// Counts every mapped page again and compares the sums of units and groups.
    fn audit_pages<F: Flash>(&self, flash: &F) -> Result<(), String> {
        let mut sums = vec![Unit::default(); self.units.len()];
        let mut live = 0;
        for (i, &at) in self.map.iter().enumerate() {
            let (lpn, last) = (Lpn(i as u32), self.last[i]);
            if at.is_none() {
                continue;
            }
            let programmed = flash.ledger().is_programmed(self.flash_page(at));
            if !programmed || self.page_at[at.index()] != lpn || last > self.written {
                return Err(format!("live page {i} is not at place {}", at.0));
            }
            let sum = &mut sums[self.shape().block_of(at).index()];
            sum.valid += 1;
            sum.lasts += last;
            sum.counts += u64::from(self.count[i]);
            live += 1;
        }
        let of = |unit: &Unit| (unit.valid, unit.lasts, unit.counts);
        if let Some(unit) = (0..sums.len()).find(|&i| of(&sums[i]) != of(&self.units[i])) {
            return Err(format!("unit {unit} does not count its valid pages"));
        }
        let group_sums = sums.chunks(self.shape().blocks_per_die as usize);
        let counted = self.groups.iter().map(|group| group.valid);
        let agree = group_sums
            .map(|units| units.iter().map(|unit| unit.valid).sum::<u32>())
            .eq(counted);
        match agree && live == self.live {
            true => Ok(()),
            false => Err("groups do not count their valid pages".into()),
        }
    }
}
