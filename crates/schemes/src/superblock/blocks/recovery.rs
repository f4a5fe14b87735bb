//! The tables made from what a scan found.

use super::{Block, Superblocks};
use crate::parts::pool::Pool;
use crate::parts::scan::{Newest, Scan, SpareBytes};
use floatgate_core::address::{Lbn, Pbn};
use floatgate_core::flash::Flash;

impl Superblocks {
    /// Gives every block in use to the superblock of its pages, in the order of the blocks' first pages, and takes
    /// the tables in the OOBs. No block is open.
    pub fn mount_found<F: Flash>(
        &mut self,
        scan: &Scan,
        newest: Newest,
        bytes: &SpareBytes,
        blank: Vec<Pbn>,
        flash: &F,
    ) {
        self.pool = Pool::new(blank.into_iter(), self.space.geometry.blocks_per_die);
        let mut in_use: Vec<_> = scan.blocks().filter(|(_, found)| found.valid > 0).collect();
        in_use.sort_unstable_by_key(|(_, found)| found.first);
        let mut last_write = vec![0; self.supers.len()];
        for (block, found) in in_use {
            let (_, lpn, _) = scan.pages_of(block).next().expect("it has valid pages");
            let s = self.superblock_of(lpn);
            let at = self.index(block);
            self.blocks[at] = Block {
                valid: found.valid,
                programmed: flash.ledger().programmed_pages(block),
                ..Block::default()
            };
            self.lists.push_back(s as usize, at as u32);
            last_write[s as usize] = found.last.max(last_write[s as usize]);
        }
        let mut in_turn: Vec<u32> = (0..self.supers.len() as u32).collect();
        in_turn.sort_by_key(|&s| last_write[s as usize]);
        in_turn.into_iter().for_each(|s| self.assign_roles(s));
        let pages = self.pages_per_block() as usize;
        let places = newest
            .place
            .chunks(pages)
            .zip(newest.sequence.chunks(pages));
        for (lbn, (places, sequence)) in (0..).map(Lbn).zip(places) {
            self.tables.recover(lbn, places, sequence, bytes);
        }
        self.newest = newest.place;
    }
}
