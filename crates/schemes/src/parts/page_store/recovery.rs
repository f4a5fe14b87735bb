//! Recovery of a page-mapped device: the full OOB scan, and what follows from it.

use super::{Moves, PageStore, Placement, StoreOptions};
use crate::parts::scan::{Depth, Rules, Scan};
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Role};
use floatgate_core::ftl::MountError;
use floatgate_core::geometry::Space;
use floatgate_core::pcm::Recalled;

/// What is known of the pages before the flash is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// OOBs that need not be read, each that of another page.
    pub places: &'a [Option<Recalled>],
    /// Whether they are all that count: no other page holds anything valid.
    pub is_all: bool,
}

impl PageStore {
    /// Makes the tables from what the flash holds. Every block in use is closed: the rest of an open one is
    /// lost until it is collected. OOBs that are `known` are not read.
    ///
    /// # Errors
    /// The refusal of [`PageStore::format`], or an error of the flash.
    pub fn recover<F: Flash>(
        space: &Space,
        options: &StoreOptions,
        known: &Known<'_>,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        Self::check(space, options)?;
        let mut store = Self::blank(space, options, 0)?;
        store.scan(space, known, flash)?;
        Ok(store)
    }

    fn scan<F: Flash>(
        &mut self,
        space: &Space,
        known: &Known<'_>,
        flash: &mut F,
    ) -> Result<(), MountError<F::Error>> {
        let mut scan = Scan::unread(space, 0, flash);
        known
            .places
            .iter()
            .flatten()
            .for_each(|recalled| scan.take_recalled(recalled));
        let newest = if known.is_all {
            // The tags of pages that nobody has read are missing, and there is nothing to decide.
            scan.newest(Rules::Plain)
        } else {
            let rest = scan.read_rest(Depth::UpToErased, flash);
            rest.map_err(MountError::Flash)?;
            scan.newest(Rules::Moves)
        };
        let mut places = vec![Ppn::NONE; newest.place.len()];
        for (local, at) in newest.place.into_iter().enumerate() {
            places[space.device_lpn(DieLpn(local as u32)).index()] = at;
        }
        self.mount_found(&mut scan, &places, &[], flash)?;
        self.relieve_dies(flash, &mut ()).map_err(MountError::Flash)
    }

    /// Takes what was found on a flash: where the logical pages lie, and the mapping pages. Erases every block with
    /// neither; all others are closed.
    ///
    /// # Errors
    /// A refusal if that is no state to collect garbage in, or an error of the flash.
    pub(crate) fn mount_found<F: Flash>(
        &mut self,
        scan: &mut Scan,
        places: &[Ppn],
        map_pages: &[Ppn],
        flash: &mut F,
    ) -> Result<(), MountError<F::Error>> {
        self.check_found(scan, places, map_pages)?;
        let blank = scan.erase_useless(flash).map_err(MountError::Flash)?;
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

    /// Checks, before anything is changed, what a power cut leaves as it was: that a collection finds an erased block to
    /// move pages to, that pages lie on dies on which they may, and mapping pages in blocks of their own.
    fn check_found(&self, scan: &Scan, places: &[Ppn], map_pages: &[Ppn]) -> Result<(), Refusal> {
        let geometry = &self.geometry;
        let mut in_use = vec![0; geometry.dies as usize];
        for (block, found) in scan.blocks().filter(|(_, found)| found.valid > 0) {
            in_use[geometry.die_of(block) as usize] += 1;
            let is_mixed = |at: &Ppn| at.is_some() && geometry.block_of(*at) == block;
            if found.holds_map && found.readable > 0 && places.iter().any(is_mixed) {
                let text = format!("block {} holds mapping pages and others", block.0);
                return Err(Refusal::damaged(text));
            }
        }
        if let Some(die) = in_use.iter().position(|&n| n == geometry.blocks_per_die) {
            let text = format!("die {die} has no erased block left to collect garbage in");
            return Err(Refusal::damaged(text));
        }
        let is_home = |block: Pbn, number: u32| geometry.die_of(block) == number % geometry.dies;
        let is_lost =
            |(number, &at): (u32, &Ppn)| at.is_some() && !is_home(geometry.block_of(at), number);
        let is_static = self.options.placement == Placement::Static;
        let lost = is_static.then(|| (0..).zip(places).find(|&page| is_lost(page)));
        let lost = lost
            .flatten()
            .or((0..).zip(map_pages).find(|&page| is_lost(page)));
        match lost {
            Some((number, at)) => Err(Refusal::damaged(format!(
                "page {number} lies at physical page {}, on a die that is not its own",
                at.0
            ))),
            None => Ok(()),
        }
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
            // Else the end of a collection could say that the old block is empty before the page is here.
            flash.replaced(from, done);
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
