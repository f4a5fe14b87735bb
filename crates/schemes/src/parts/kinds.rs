//! Pages of log blocks by the kind of block they lie in: how many are programmed, how many are valid, and
//! what became of the others. For schemes whose log blocks are of several kinds.

use crate::parts::hybrid::{Log, Loss, Watch};
use floatgate_core::address::Lbn;
use floatgate_core::state;
use floatgate_core::state::{Passed, StateError};

/// What is known of the pages of `KINDS` kinds of log blocks.
#[derive(Clone, Debug)]
pub struct PagesByKind<const KINDS: usize> {
    kind: Vec<u8>,
    /// Programmed positions and valid pages of each log block.
    programmed_in: Vec<u32>,
    valid_in: Vec<u32>,
    /// Programmed positions.
    pub programmed: [u64; KINDS],
    /// Valid pages.
    pub valid: [u64; KINDS],
    /// Pages that the host overwrote or trimmed while they were there.
    pub dropped: [u64; KINDS],
    /// Pages that a merge or a move copied elsewhere.
    pub moved: [u64; KINDS],
}

state!(PagesByKind<KINDS> [const KINDS: usize] { kind, programmed_in, valid_in, programmed, valid, dropped, moved }
    check check_state);

impl<const KINDS: usize> PagesByKind<KINDS> {
    /// For a log table of that many places.
    pub fn new(slots: u32) -> Self {
        Self {
            kind: vec![0; slots as usize],
            programmed_in: vec![0; slots as usize],
            valid_in: vec![0; slots as usize],
            programmed: [0; KINDS],
            valid: [0; KINDS],
            dropped: [0; KINDS],
            moved: [0; KINDS],
        }
    }

    fn check_state(&self) -> Passed {
        match self.kind.iter().all(|&kind| usize::from(kind) < KINDS) {
            true => Ok(()),
            false => Err(StateError::damaged(
                "a log block of a kind that does not exist",
            )),
        }
    }

    /// The kind of a log block.
    #[inline(always)]
    pub fn kind(&self, log: Log) -> usize {
        self.kind[log.index()].into()
    }

    /// Says of what kind a log block is that has just been taken, or found.
    pub fn set_kind(&mut self, log: Log, kind: usize) {
        let before = self.kind(log);
        let (programmed, valid) = (
            u64::from(self.programmed_in[log.index()]),
            u64::from(self.valid_in[log.index()]),
        );
        self.programmed[before] -= programmed;
        self.valid[before] -= valid;
        self.programmed[kind] += programmed;
        self.valid[kind] += valid;
        self.kind[log.index()] = kind as u8;
    }

    /// Sets the counts of what became of pages to zero and keeps those of pages that are there.
    pub fn reset_counters(&mut self) {
        self.dropped = [0; KINDS];
        self.moved = [0; KINDS];
    }

    /// Checks the counts against the log blocks: each with its programmed positions and valid pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self, logs: impl Iterator<Item = (Log, u32, u32)>) -> Result<(), String> {
        let (mut programmed, mut valid) = ([0; KINDS], [0; KINDS]);
        for (log, written, still_valid) in logs {
            let counted = self.programmed_in[log.index()];
            if counted != written {
                return Err(format!(
                    "log {} has {written} pages, {counted} are counted",
                    log.0
                ));
            }
            programmed[self.kind(log)] += u64::from(written);
            valid[self.kind(log)] += u64::from(still_valid);
        }
        if (programmed, valid) != (self.programmed, self.valid) {
            return Err(format!(
                "log blocks hold {valid:?} valid of {programmed:?} pages, counted are {:?} of {:?}",
                self.valid, self.programmed
            ));
        }
        Ok(())
    }
}

impl<const KINDS: usize> Watch for PagesByKind<KINDS> {
    #[inline(always)]
    fn gained(&mut self, log: Log, _lbn: Lbn) {
        let kind = self.kind(log);
        self.programmed_in[log.index()] += 1;
        self.valid_in[log.index()] += 1;
        self.programmed[kind] += 1;
        self.valid[kind] += 1;
    }

    #[inline(always)]
    fn lost(&mut self, log: Log, _lbn: Lbn, why: Loss) {
        let kind = self.kind(log);
        self.valid_in[log.index()] -= 1;
        self.valid[kind] -= 1;
        match why {
            Loss::Overwritten | Loss::Trimmed => self.dropped[kind] += 1,
            Loss::Moved => self.moved[kind] += 1,
        }
    }

    fn recovered(&mut self, log: Log, other_positions: u32) {
        let kind = self.kind(log);
        self.programmed_in[log.index()] += other_positions;
        self.programmed[kind] += u64::from(other_positions);
    }

    fn released(&mut self, log: Log) {
        let kind = self.kind(log);
        let programmed = std::mem::take(&mut self.programmed_in[log.index()]);
        // A log block that becomes a data block takes its valid pages along.
        let valid = std::mem::take(&mut self.valid_in[log.index()]);
        self.programmed[kind] -= u64::from(programmed);
        self.valid[kind] -= u64::from(valid);
    }
}
