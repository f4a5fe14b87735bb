//! What the device knows of each logical page beside the scheme: the number of its newest write, or that it was trimmed.
//!
//! A scheme finds its pages by what is on the flash. It cannot know what is *not* there any more: a trim leaves nothing
//! on flash, and a page that has rotted leaves the version before it. So the device keeps a number for each
//! logical page, and compares it with the *stamp* of what it reads: the number of the program with which the host wrote
//! that content, which copies keep.
//!
//! - A stamp that is lower: the newest content is lost. The read is an error, never the older content.
//! - Content from before the last trim reads as zeroes.
//! - Nothing where something was written is an error too.
//!
//! While the device is in use the register is exact. It is kept on the chip when the device is shut down, and when a
//! flush follows a trim; after a shutdown in two copies, so that one may rot. After a shutdown all of it counts; after a crash only the trims do: a page that was trimmed
//! after the register was kept, but not flushed, may have left older content or none, and that is no loss.

use floatgate_core::Lpn;

use crate::nand::{Nand, NandError};

/// Entries in a page of the register, as a chip keeps it.
pub const PAGE_ENTRIES: usize = 510;

/// The page was trimmed after the program of that number.
const TRIMMED: u64 = 1 << 63;

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Register {
    /// By logical page: 0 if nothing is known, else the number of a program.
    entries: Vec<u64>,
    /// By page of the register: how many of the chip's two copies are up to date.
    kept: Vec<u8>,
    /// A trim is among the changes.
    has_trims: bool,
    /// Changes by the request in work.
    pending: Vec<(Lpn, u64)>,
    /// The highest number when the chip was mounted: trims of this life have at least that.
    mounted_at: u64,
}

/// What to make of content that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is the newest, as far as is known.
    Current,
    /// The page was trimmed since: it reads as zeroes.
    Trimmed,
    /// There was newer content, which is lost.
    Stale,
}

impl Register {
    /// What counts of the register that a chip keeps.
    ///
    /// # Errors
    /// As [`Nand::load_register`].
    pub fn load<N: Nand>(nand: &mut N) -> Result<Self, NandError> {
        let mut entries = vec![0; nand.geometry().logical_pages as usize];
        let mut kept = Vec::new();
        for (page, entries) in entries.chunks_mut(PAGE_ENTRIES).enumerate() {
            kept.push(nand.load_register(page, entries)?);
            if !nand.has_exact_register() {
                let is_write = |entry: &&mut u64| **entry != 0 && **entry & TRIMMED == 0;
                for entry in entries.iter_mut().filter(is_write) {
                    *entry = 0;
                    kept[page] = 0;
                }
            }
        }
        Ok(Self {
            entries,
            kept,
            ..Self::default()
        })
    }

    /// Brings that many of the chip's copies up to date, one at a time; everything noted is on the disk then.
    ///
    /// # Errors
    /// As [`Nand::flush`].
    pub fn keep<N: Nand>(&mut self, copies: u8, nand: &mut N) -> Result<(), NandError> {
        for copy in 1..=copies {
            if self.kept.iter().all(|&kept| kept >= copy) {
                continue;
            }
            // What is noted must be there first, and so must the copy before.
            nand.flush()?;
            let pages = self.entries.chunks(PAGE_ENTRIES).zip(&mut self.kept);
            for (page, (entries, kept)) in pages.enumerate().filter(|(_, (_, kept))| **kept < copy)
            {
                nand.save_register(page, entries)?;
                *kept = copy;
            }
        }
        self.has_trims = false;
        nand.flush()?;
        if copies > 1 {
            nand.complete_register();
        }
        Ok(())
    }

    /// The chip was mounted, and that was its highest number.
    pub fn note_mount(&mut self, sequence: u64) {
        self.mounted_at = sequence;
    }

    /// Whether a page holds nothing, for certain: it was trimmed in this life, or never written on a chip that was
    /// erased when this life began. What an earlier life left is not told: after a crash the register does not know
    /// what was written since it was kept.
    pub fn is_empty_for_certain(&self, lpn: Lpn) -> bool {
        let entry = self.entries[lpn.index()];
        let is_trimmed = entry & TRIMMED != 0;
        match self.mounted_at {
            0 => entry == 0 || is_trimmed,
            since => is_trimmed && entry & !TRIMMED >= since,
        }
    }

    /// Whether there is a trim that the chip does not know of.
    pub fn has_trims(&self) -> bool {
        self.has_trims
    }

    /// The highest number of a program in it: later programs need higher ones.
    pub fn last_sequence(&self) -> u64 {
        let numbers = self.entries.iter().map(|entry| entry & !TRIMMED);
        numbers.max().unwrap_or(0)
    }

    /// The host's content of a page was programmed under that number. It counts once the request is done.
    pub fn note_write(&mut self, lpn: Lpn, sequence: u64) {
        self.pending.push((lpn, sequence));
    }

    /// Forgets what the request in work has noted.
    pub fn drop_request(&mut self) {
        self.pending.clear();
    }

    /// The request is done: its writes count.
    pub fn finish_request(&mut self) {
        while let Some((lpn, sequence)) = self.pending.pop() {
            let newer = self.entries[lpn.index()] & !TRIMMED < sequence;
            if newer {
                self.set(lpn, sequence);
            }
        }
    }

    /// A page was trimmed after the program of that number.
    pub fn trim(&mut self, lpn: Lpn, sequence: u64) {
        if self.entries[lpn.index()] == 0 && sequence == 0 {
            return;
        }
        self.set(lpn, sequence | TRIMMED);
        self.has_trims = true;
    }

    fn set(&mut self, lpn: Lpn, entry: u64) {
        self.entries[lpn.index()] = entry;
        self.kept[lpn.index() / PAGE_ENTRIES] = 0;
    }

    /// What to make of content with that stamp.
    pub fn judge(&self, lpn: Lpn, stamp: u64) -> Verdict {
        let entry = self.entries[lpn.index()];
        let is_trimmed = entry & TRIMMED != 0;
        if is_trimmed && stamp <= entry & !TRIMMED {
            Verdict::Trimmed
        } else if !is_trimmed && stamp < entry {
            Verdict::Stale
        } else {
            Verdict::Current
        }
    }

    /// Whether a page has content, so that nothing in its place is a loss.
    pub fn has_content(&self, lpn: Lpn) -> bool {
        let entry = self.entries[lpn.index()];
        entry != 0 && entry & TRIMMED == 0
    }
}
