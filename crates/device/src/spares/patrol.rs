//! Reads and time wear pages out: a read disturbs the other pages of its block a little, and charge leaks away.
//! Pages first need retries, then they are lost. A patrol reads everything in turn and moves what begins to fail while
//! it can still be read.

use floatgate_core::Pbn;

use super::{Pick, Spares};
use crate::nand::{Nand, NandError, PatrolFound};

/// Reads of a block since its content was put there after which a patrol moves it, whatever its pages look like.
pub const READS_BEFORE_REFRESH: u32 = 100_000;

/// How a virtual block has been read since its content was put where it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reads {
    count: u32,
    /// Whether a page needed a retry.
    retried: bool,
}

impl<N: Nand> Spares<N> {
    /// Reads of a block since its content was put where it is, or the mount if that was later.
    pub fn reads(&self, block: Pbn) -> u32 {
        self.reads[block.index()].count
    }

    /// Whether a read of the block needed a retry since then.
    pub fn needed_retries(&self, block: Pbn) -> bool {
        self.reads[block.index()].retried
    }

    pub(super) fn note_read(&mut self, block: Pbn, retries: u32) {
        self.stats.read_retries += u64::from(retries);
        let reads = &mut self.reads[block.index()];
        reads.count = reads.count.saturating_add(1);
        reads.retried |= retries > 0;
    }

    /// Moves the content of a block to another physical block. Nothing if it is erased.
    ///
    /// # Errors
    /// [`NandError::ReadOnly`] if the die has no free block; what is stored stays as it is. Those of the chip.
    pub fn refresh(&mut self, block: Pbn) -> Result<(), NandError> {
        if self.generation[block.index()] == 0 {
            return Ok(());
        }
        self.check_kept()?;
        let die = self.die_of(block);
        if !self.has_free(die) {
            return Err(NandError::ReadOnly { die });
        }
        let (old, _) = self.move_block(block, Pick::Next, None, &[])?;
        self.reclaim(old)
    }

    /// Reads all pages of the next `blocks` blocks, and [refreshes](Spares::refresh) each of them in which a page, now or
    /// since the last time, needed a retry or was lost, or that was read [`READS_BEFORE_REFRESH`] times. Goes round.
    ///
    /// # Errors
    /// Those of the chip. A block that cannot move because its die is read-only stays where it is.
    pub(super) fn patrol_blocks(&mut self, blocks: u32) -> Result<PatrolFound, NandError> {
        let mut found = PatrolFound::default();
        for _ in 0..blocks {
            let block = self.next_patrol;
            self.next_patrol = Pbn((block.0 + 1) % self.geometry.blocks());
            self.patrol_block(block, &mut found)?;
        }
        Ok(found)
    }

    fn patrol_block(&mut self, block: Pbn, found: &mut PatrolFound) -> Result<(), NandError> {
        if self.generation[block.index()] == 0 {
            return Ok(());
        }
        let lost_before = found.lost_pages;
        let mut data = vec![0; self.page_bytes()];
        for page in 0..self.geometry.pages_per_block {
            let page = self.geometry.ppn(block, page);
            if !self.is_programmed(page) {
                continue;
            }
            found.checked_pages += 1;
            let retries = self.stats.read_retries;
            match self.read(page, &mut data) {
                Ok(_) => found.retried_pages += u64::from(self.stats.read_retries > retries),
                Err(NandError::Unreadable { .. }) => found.lost_pages += 1,
                Err(error) => return Err(error),
            }
        }
        let reads = self.reads[block.index()];
        let is_due =
            found.lost_pages > lost_before || reads.retried || reads.count >= READS_BEFORE_REFRESH;
        if !is_due {
            return Ok(());
        }
        match self.refresh(block) {
            Ok(()) => found.rewritten_blocks += 1,
            Err(NandError::ReadOnly { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
