//! A hybrid made from tables that were kept on flash (the snapshot of a clean shutdown) and are known to be true.

use super::{FoundLog, Hybrid, LogPage, Watch};
use crate::parts::map_area::FoundArea;
use crate::parts::pool::Pool;
use floatgate_core::address::{DieLpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Role};

/// What is known of a log block.
#[derive(Clone, Debug)]
pub struct KnownLog {
    /// Where it is.
    pub block: Pbn,
    /// Its kind.
    pub role: Role,
    /// A number that grows in the order in which log blocks were taken.
    pub first: u64,
    /// Its pages: position and local page. A page is live in the first log block that names it.
    pub pages: Vec<(u32, DieLpn)>,
    /// Host pages in it.
    pub host_pages: u32,
}

/// What is known of all blocks.
#[derive(Clone, Debug)]
pub struct KnownBlocks {
    /// Data blocks by logical block, or `NONE`.
    pub data: Vec<Pbn>,
    /// Log blocks.
    pub logs: Vec<KnownLog>,
    /// Blocks that are neither, and stay lent until they are given back.
    pub kept: Vec<Pbn>,
}

impl<W: Watch> Hybrid<W> {
    /// Takes the tables over. Every page that no log block names lies in its data block, if its position there
    /// is programmed. All log blocks are sealed. No log block and no data block is changed.
    ///
    /// # Errors
    /// Those of the flash.
    pub(super) fn claim_tables<F: Flash>(
        &mut self,
        known: KnownBlocks,
        areas: &[FoundArea],
        flash: &mut F,
    ) -> Result<Vec<FoundLog>, F::Error> {
        let voids = self.make_maps_void(areas, &[], flash)?;
        let mut is_taken = vec![false; self.space.blocks() as usize];
        let data = known.data.iter().filter(|block| block.is_some());
        let logs = known.logs.iter().map(|log| &log.block);
        for &block in data.chain(logs).chain(&known.kept) {
            is_taken[self.in_space(block)] = true;
        }
        self.data = known.data;
        self.lent = known.kept.len() as u32;
        let mut found: Vec<FoundLog> = known.logs.iter().map(|log| self.take_known(log)).collect();
        found.sort_unstable_by_key(|found| found.first);
        self.take_data_pages(flash);
        for die in 0..self.space.dies {
            let geometry = &self.space.geometry;
            let usable = self.plan.usable_blocks(geometry);
            let blocks = (0..usable).map(|i| geometry.pbn(self.space.first_die + die, i));
            let free: Vec<Pbn> = blocks
                .filter(|&block| !is_taken[self.in_space(block)])
                .collect();
            for &block in &free {
                if flash.ledger().write_pointer(block) > 0 {
                    flash.erase(block, Cause::Gc, F::Token::default())?;
                }
            }
            self.pools.push(Pool::new(free.into_iter(), usable));
        }
        self.restart_maps(&voids, flash)?;
        Ok(found)
    }

    fn take_known(&mut self, known: &KnownLog) -> FoundLog {
        let log = self.logs.add(self.die_of_block(known.block), known.block);
        self.logs[log].sealed = self.pages_per_block();
        self.logs[log].host_pages = known.host_pages;
        self.logs[log].is_sequential = known.role == Role::LogSequential;
        for &(position, lpn) in &known.pages {
            self.logs
                .note_page(LogPage { log, position }, lpn, self.split(lpn));
            if self.newest[lpn.index()].is_none() {
                self.newest[lpn.index()] = self.space.geometry.ppn(known.block, position);
                self.logs[log].valid += 1;
                let (lbn, _) = self.split(lpn);
                self.watch.gained(log, lbn);
            }
        }
        FoundLog {
            log,
            first: known.first,
            last: known.first,
            role: known.role,
        }
    }

    fn take_data_pages<F: Flash>(&mut self, flash: &F) {
        for (i, newest) in self.newest.iter_mut().enumerate() {
            let (lbn, offset) = self.space.geometry.by_pages().div_rem(i as u32);
            let block = self.data[lbn as usize];
            if newest.is_some() || block.is_none() {
                continue;
            }
            let at: Ppn = self.space.geometry.ppn(block, offset);
            if flash.ledger().is_programmed(at) {
                *newest = at;
            }
        }
    }
}
