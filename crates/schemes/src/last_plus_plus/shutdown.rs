//! Clean shutdown of LAST++: writes the snapshot, and takes it back before the first change.

use std::cell::OnceCell;

use super::costs::snapshot_blocks;
use super::snapshot::{LogPages, SegmentBlocks};
use super::{LastPlusPlus, SNAPSHOT_TAG};
use crate::parts::hybrid::{Log, LogPage};
use floatgate_core::address::{Lpn, Pbn};
use floatgate_core::flash::{Cause, Flash, Oob, Role};

/// A number for how much is programmed in every block but those of the snapshot and of the maps, and for the erases of
/// those in use. The snapshot bears it and is true for no other: with several dies at work a power cut can find it
/// whole where another die has programmed more since, or less, or the same again after an erase.
pub(super) fn state_of<F: Flash>(flash: &F, map_blocks: u32, snapshot: &[Pbn]) -> u64 {
    let geometry = flash.ledger().geometry();
    let usable = geometry.blocks_per_die - map_blocks;
    let blocks = (0..geometry.blocks()).map(Pbn);
    blocks
        .filter(|block| block.0 % geometry.blocks_per_die < usable && !snapshot.contains(block))
        .flat_map(|block| {
            let ledger = flash.ledger();
            let written = ledger.write_pointer(block);
            // An erased block is a different one each time, where wear is levelled.
            let erases = if written > 0 {
                flash.erase_count(block)
            } else {
                0
            };
            [written, ledger.programmed_pages(block), erases]
        })
        // FNV-1a.
        .fold(0xCBF2_9CE4_8422_2325, |state, pages| {
            (state ^ u64::from(pages)).wrapping_mul(0x100_0000_01B3)
        })
}

impl LastPlusPlus {
    /// Blocks that each die gives for a snapshot of that many pages; `None` if one lacks them.
    pub(super) fn snapshot_blocks(&self, pages: u64) -> Option<Vec<u32>> {
        let geometry = &self.h.space().geometry;
        (0..u64::from(self.dies()))
            .map(|die| {
                let blocks = snapshot_blocks(pages, die, geometry);
                let free = u64::from(self.h.free_blocks(die as u32));
                (blocks <= free).then_some(blocks as u32)
            })
            .collect()
    }

    pub(super) fn write_snapshot<F: Flash>(
        &mut self,
        flash: &mut F,
        pages: u64,
    ) -> Result<(), F::Error> {
        let Some(blocks) = self.snapshot_blocks(pages) else {
            self.counts.snapshots_left_out += 1;
            return Ok(());
        };
        let mut first_of_die = Vec::with_capacity(blocks.len());
        for (die, n) in (0..).zip(blocks) {
            first_of_die.push(self.snapshot.len());
            for _ in 0..n {
                let block = self.h.lend_block(die);
                self.snapshot.push(block);
            }
        }
        // A page that was torn on another die counts like one that is there.
        flash.drain();
        let state = state_of(flash, self.options.map.map_blocks, &self.snapshot);
        // Worked out when the first page asks for it: a simulated flash never does.
        let content = OnceCell::new();
        let (dies, per_block) = (u64::from(self.dies()), u64::from(self.h.pages_per_block()));
        let page_bytes = flash.ledger().page_bytes() as usize;
        for i in 0..pages {
            let (row, die) = (i / dies, i % dies);
            let block = self.snapshot[first_of_die[die as usize] + (row / per_block) as usize];
            let to = flash
                .ledger()
                .geometry()
                .ppn(block, (row % per_block) as u32);
            let oob = Oob {
                lpn: Lpn(i as u32),
                role: Role::Map,
                tag: SNAPSHOT_TAG,
            };
            let state = state.to_le_bytes();
            let oob = oob.with_bytes(|bytes| bytes[..state.len()].copy_from_slice(&state));
            let fill = |bytes: &mut [u8]| {
                let content = content.get_or_init(|| self.snapshot_content());
                let rest = &content[i as usize * page_bytes..];
                let n = rest.len().min(bytes.len());
                bytes[..n].copy_from_slice(&rest[..n]);
            };
            flash.program_map(to, oob, fill, F::Token::default())?;
        }
        self.counts.snapshot_programs += pages;
        Ok(())
    }

    pub(super) fn snapshot_content(&self) -> Vec<u8> {
        let geometry = &self.h.space().geometry;
        let pages = self.h.pages_per_block();
        let block_on = |segment, die| {
            let log = self.h.owned(self.logical(segment, die))?;
            let block = self.h.log_block(log);
            // Not as the flash has it: a position that a power cut has spoilt holds no page.
            let pst = (0..pages).map(|offset| self.h.log_page(log, offset).is_some());
            Some((block.0 - geometry.pbn(die, 0).0, pst.collect()))
        };
        let segments: Vec<SegmentBlocks> = self
            .h
            .watch
            .segments
            .iter()
            .map(|segment| (0..self.dies()).map(|die| block_on(segment, die)).collect())
            .collect();
        let mut by_die: Vec<Vec<Log>> = vec![Vec::new(); self.dies() as usize];
        for log in self.h.watch.random.logs() {
            by_die[geometry.die_of(self.h.log_block(log)) as usize].push(log);
        }
        let entry = |log, position| {
            let lpn = self.h.log_page(log, position);
            let page = Some(LogPage { log, position });
            let (_, updates) = self.h.watch.random.entry(page)?;
            (lpn.is_some() && self.h.is_valid_at(log, position))
                .then(|| (self.h.space().device_lpn(lpn), updates))
        };
        let random: Vec<LogPages> = by_die
            .into_iter()
            .map(|mut logs| {
                logs.sort_unstable_by_key(|&log| self.h.log_block(log));
                let pages_of = |log| (0..pages).map(move |position| (log, position));
                let all = logs.into_iter().flat_map(pages_of);
                all.map(|(log, position)| entry(log, position)).collect()
            })
            .collect();
        self.plan.layout.write(&segments, &random)
    }

    /// The tables are about to change: the snapshot is worth nothing from now on.
    #[cold]
    pub(super) fn drop_snapshot<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        for block in std::mem::take(&mut self.snapshot) {
            flash.erase(block, Cause::Map, F::Token::default())?;
            self.h.take_back(block);
        }
        // On every die, before anything else changes.
        flash.drain();
        Ok(())
    }
}
