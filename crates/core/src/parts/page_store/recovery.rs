//! Recovery of a page-mapped device: the full OOB scan, and what follows from it.

use super::{Moves, PageOptions, PageStore, Placement};
use crate::address::{Lpn, Pbn, Ppn};
use crate::flash::{Cause, Flash, Oob, Role};
use crate::ftl::NoRecovery;
use crate::geometry::Space;
use crate::parts::scan::{Depth, Rules, Scan};

impl PageStore {
    /// Makes the tables from what the flash holds. Every block in use is closed: the rest of an open one is
    /// lost until it is collected.
    ///
    /// # Errors
    /// The refusal of [`PageStore::format`], or an error of the flash.
    pub fn recover<F: Flash>(
        space: &Space,
        options: &PageOptions,
        flash: &mut F,
    ) -> Result<Self, NoRecovery<F::Error>> {
        Self::check(options)?;
        let mut store = Self::blank(space, options, 0)?;
        store.scan(space, flash).map_err(NoRecovery::Flash)?;
        Ok(store)
    }

    fn scan<F: Flash>(&mut self, space: &Space, flash: &mut F) -> Result<(), F::Error> {
        let mut scan = Scan::read(space, 0, Depth::UpToErased, flash)?;
        let newest = scan.newest(Rules::Moves);
        let mut places = vec![Ppn::NONE; newest.place.len()];
        for (local, at) in newest.place.into_iter().enumerate() {
            places[space.device_lpn(Lpn(local as u32)).index()] = at;
        }
        self.take_found(&mut scan, &places, &[], flash)?;
        self.relieve_dies(flash, &mut ())
    }

    /// Takes what was found on a flash: where the logical pages lie, and the mapping pages. Erases every block with
    /// neither; all others are closed.
    ///
    /// # Errors
    /// Those of the flash.
    pub(crate) fn take_found<F: Flash>(
        &mut self,
        scan: &mut Scan,
        places: &[Ppn],
        map_pages: &[Ppn],
        flash: &mut F,
    ) -> Result<(), F::Error> {
        let blank = scan.erase_useless(flash)?;
        for die in 0..self.geometry.dies {
            let on_die = |block: &&Pbn| self.geometry.die_of(**block) == die;
            let free: Vec<Pbn> = blank.iter().filter(on_die).copied().collect();
            self.add_die(free.into_iter(), 0);
        }
        let mut in_use: Vec<_> = scan.blocks().filter(|(_, found)| found.valid > 0).collect();
        in_use.sort_unstable_by_key(|(_, found)| found.first);
        for &(block, found) in &in_use {
            self.victims.taken(block);
            if found.holds_map && self.has_map_blocks {
                self.victims.set_second(block);
            }
            let positions = self.geometry.first_page(block).index();
            // A page that cannot be read is nobody's newest, whatever number stands for it.
            self.page_at[positions..positions + self.geometry.pages_per_block as usize]
                .fill(Lpn(0));
            self.clock = self.clock.max(found.last);
        }
        self.map.copy_from_slice(places);
        let numbered = places.iter().enumerate();
        for (number, &at) in numbered.chain(map_pages.iter().enumerate()) {
            if at.is_some() {
                self.page_at[at.index()] = Lpn(number as u32);
            }
        }
        for (block, found) in in_use {
            let invalid = self.geometry.pages_per_block - found.valid;
            self.victims.closed(block, invalid, found.last);
        }
        for at in places.iter().filter(|at| at.is_some()) {
            let die = self.geometry.die_of(self.geometry.block_of(*at));
            self.dies[die as usize].valid += 1;
        }
        Ok(())
    }

    /// Trimmed pages that came back can fill a die above the limit of round-robin placement: moves pages to
    /// other dies until all are within it.
    ///
    /// # Errors
    /// Those of the flash.
    pub(crate) fn relieve_dies<F: Flash>(
        &mut self,
        flash: &mut F,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        if self.options.placement == Placement::Static {
            return Ok(());
        }
        let limit = self.pages_limit();
        for lpn in (0..self.map.len() as u32).map(Lpn) {
            let from = self.map[lpn.index()];
            let is_crowded = |die: u32| self.dies[die as usize].valid > limit;
            if from.is_none() || !is_crowded(self.geometry.die_of(self.geometry.block_of(from))) {
                continue;
            }
            let roomy = (0..self.geometry.dies).find(|&die| self.dies[die as usize].valid < limit);
            let die = roomy.expect("all pages fit, so some die has room");
            if !self.dies[die as usize].host.has_room() {
                self.make_room(flash, die, moves)?;
            }
            let (to, done) = self.move_to_host_block(flash, die, lpn)?;
            moves.moved(flash, lpn, to, done);
        }
        Ok(())
    }

    fn move_to_host_block<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        lpn: Lpn,
    ) -> Result<(Ppn, F::Token), F::Error> {
        let (to, full) = self.dies[die as usize].host.take();
        let (from, oob) = (self.map[lpn.index()], Oob::new(lpn, Role::Data));
        let done = flash.copy(from, to, oob, Cause::Gc, F::Token::default())?;
        self.now_at(lpn, to, die, full);
        Ok((to, done))
    }
}
