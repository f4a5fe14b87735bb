//! Pages are appended, and blocks won back.

use super::LeaFtl;
use crate::parts::page_store::{Append, Streams};
use crate::parts::scan::move_tag;
use floatgate_core::address::{DieLpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Done, Flash, Oob, Role, Slot, SpareArea};

impl LeaFtl {
    /// The spare area of a page: its LPN, and those of the pages before it in its block.
    #[inline]
    pub(super) fn spare(&self, at: Ppn, lpn: DieLpn, tag: u32) -> impl SpareArea + '_ {
        let oob = Oob::new(self.space.device_lpn(lpn), Role::Data).tagged(tag);
        let before = self.places.before(at, self.options.gamma);
        oob.with_bytes(move |bytes: &mut [u8]| {
            for (name, lpn) in bytes.chunks_exact_mut(4).zip(before) {
                name.copy_from_slice(&self.space.device_lpn(lpn).0.to_le_bytes());
            }
        })
    }

    /// Writes a page of the host: room, program, then the old copy becomes invalid.
    #[inline]
    pub(super) fn append<F: Flash>(&mut self, flash: &mut F, lpn: DieLpn, slot: Slot) -> Done<F> {
        if !self.host.has_room() {
            self.make_room(flash)?;
        }
        let (to, full) = self.host.take();
        let spare = self.spare(to, lpn, 0);
        let done = flash.program_host(slot, self.on_flash(to), spare, F::Token::default())?;
        self.programmed(to, full);
        if self.mapped.has(lpn.0) {
            let (old, _) = self.old_place(flash, lpn, done)?;
            self.invalidate(old);
        }
        self.mapped.set(lpn.0);
        self.now_at(lpn, to, full);
        Ok(())
    }

    /// A page was programmed, the last of its block if `full`.
    fn programmed(&mut self, to: Ppn, full: bool) {
        self.clock += 1;
        self.since += 1;
        if full {
            self.victims.filled(self.split(to).0, self.clock);
        }
    }

    /// The page in hand is at its new place, the last of the block if `full`.
    fn now_at(&mut self, lpn: DieLpn, to: Ppn, full: bool) {
        self.places.program(to, lpn);
        let entry = &mut self.open[lpn.index()];
        self.open_entries += u32::from(entry.is_none());
        *entry = to;
        let group = self.group_of(lpn).0;
        self.is_changed[group as usize] = true;
        if full {
            self.close(self.split(to).0);
        }
    }

    /// The copy of a page at that place is out of date.
    pub(super) fn invalidate(&mut self, old: Ppn) {
        self.places.invalidate(old);
        self.victims.lost(self.split(old).0, self.clock);
    }

    #[cold]
    #[inline(never)]
    fn make_room<F: Flash>(&mut self, flash: &mut F) -> Done<F> {
        while self.pool.len() < self.options.gc_low {
            self.collect(flash)?;
        }
        if !self.host.has_room() {
            self.host = self.take_block();
        }
        Ok(())
    }

    fn take_block(&mut self) -> Append {
        let block = self.pool.take();
        self.victims.taken(block);
        Append::in_block(self.space.geometry.first_page(block), self.pages())
    }

    /// Collects one block: its valid pages move in order of LPN, its segments go, it is erased.
    fn collect<F: Flash>(&mut self, flash: &mut F) -> Done<F> {
        let victim = self.victims.choose(0, self.clock);
        let victim = victim.expect("the reserve leaves a block with an invalid page");
        self.victims.collecting(victim);
        let mut moving = std::mem::take(&mut self.moving);
        self.valid_pages_of(victim, &mut moving);
        moving.sort_unstable_by_key(|&(lpn, _)| lpn);
        let emptied = self.block_on_flash(victim);
        for (i, &page) in moving.iter().enumerate() {
            let tag = move_tag(i + 1 == moving.len(), emptied);
            self.move_page(flash, page, tag)?;
        }
        self.moving = moving;
        self.forget(victim);
        flash.erase(emptied, Cause::Gc, F::Token::default())?;
        self.places.set_end(victim.0, self.pages());
        self.victims.erased(victim);
        self.pool.give(victim);
        Ok(())
    }

    fn move_page<F: Flash>(
        &mut self,
        flash: &mut F,
        (lpn, from): (DieLpn, Ppn),
        tag: u32,
    ) -> Done<F> {
        let shared = self.options.streams == Streams::Shared;
        let mut point = if shared { self.host } else { self.gc };
        if !point.has_room() {
            point = self.take_block();
        }
        let (to, full) = point.take();
        *(if shared { &mut self.host } else { &mut self.gc }) = point;
        let spare = self.spare(to, lpn, tag);
        let (from_flash, to_flash) = (self.on_flash(from), self.on_flash(to));
        flash.copy(from_flash, to_flash, spare, Cause::Gc, F::Token::default())?;
        self.counts.translated += 1;
        self.programmed(to, full);
        // Nobody needs to hear of a page that leaves a victim but the table of places.
        self.places.invalidate(from);
        self.now_at(lpn, to, full);
        Ok(())
    }

    /// Removes the segments of a block whose pages have all moved: all their members are stale.
    fn forget(&mut self, block: Pbn) {
        let first = block.0 * self.pages();
        let places = (first..first + self.pages()).map(Ppn);
        let named = places.map(|at| self.places.named(at));
        let by_group = self.by_group;
        self.groups.clear();
        self.groups.extend(
            named
                .filter(|lpn| lpn.is_some())
                .map(|lpn| by_group.div(lpn.0)),
        );
        self.groups.sort_unstable();
        self.groups.dedup();
        for &group in &self.groups {
            self.levels.forget(group, block);
            self.is_changed[group as usize] = true;
        }
    }
}
