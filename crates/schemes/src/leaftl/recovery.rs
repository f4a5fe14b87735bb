//! Recovery: the full scan of the OOBs, then every block in use is closed and learned.

use super::LeaFtl;
use crate::parts::pool::Pool;
use crate::parts::scan::{Depth, Found, Rules, Scan};
use floatgate_core::Refusal;
use floatgate_core::address::{DieLpn, Pbn, Ppn};
use floatgate_core::flash::Flash;
use floatgate_core::ftl::MountError;

impl LeaFtl {
    pub(super) fn scan<F: Flash>(&mut self, flash: &mut F) -> Result<(), MountError<F::Error>> {
        let space = self.space.clone();
        let scan = Scan::read(&space, 0, Depth::UpToErased, flash);
        let mut scan = scan.map_err(MountError::Flash)?;
        let newest = scan.newest(Rules::Moves);
        let in_use = scan.blocks().filter(|(_, found)| found.valid > 0).count();
        if in_use == space.geometry.blocks_per_die as usize {
            let text = format!(
                "die {} has no erased block left to collect garbage in",
                space.first_die
            );
            return Err(Refusal::damaged(text).into());
        }
        let blank = scan.erase_useless(flash).map_err(MountError::Flash)?;
        let base = self.block_on_flash(Pbn(0)).0;
        let blank: Vec<Pbn> = blank.into_iter().map(|b| Pbn(b.0 - base)).collect();
        self.pool = Pool::new(blank.into_iter(), space.geometry.blocks_per_die);
        for (local, at) in newest.place.into_iter().enumerate() {
            if at.is_some() {
                let lpn = DieLpn(local as u32);
                self.places.program(Ppn(space.index_of(at) as u32), lpn);
                self.mapped.set(lpn.0);
            }
        }
        self.learn_found(&scan, base);
        Ok(())
    }

    /// Closes and learns the blocks with valid pages, the oldest first.
    fn learn_found(&mut self, scan: &Scan, base: u32) {
        let mut in_use: Vec<(Pbn, Found)> = scan
            .blocks()
            .filter(|(_, found)| found.valid > 0)
            .map(|(block, found)| (block, *found))
            .collect();
        in_use.sort_unstable_by_key(|(_, found)| found.first);
        for (block, found) in in_use {
            let local = Pbn(block.0 - base);
            self.victims.taken(local);
            self.clock = self.clock.max(found.last);
            self.victims
                .closed(local, self.pages() - found.valid, found.last);
            let last = scan.pages_of(block).map(|(position, ..)| position).max();
            self.places
                .set_end(local.0, last.map_or(0, |last| last + 1));
            self.learn(local);
        }
        self.counts = super::Counts::default();
    }
}
