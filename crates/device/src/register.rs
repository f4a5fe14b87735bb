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
//! flush follows a trim. After a shutdown all of it counts; after a crash only the trims do: a page that was trimmed
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
    /// By page of the register: whether it differs from what the chip keeps.
    changed: Vec<bool>,
    /// A trim is among the changes.
    has_trims: bool,
    /// Changes by the request in work.
    pending: Vec<(Lpn, u64)>,
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
        let mut changed = Vec::new();
        for (page, entries) in entries.chunks_mut(PAGE_ENTRIES).enumerate() {
            nand.load_register(page, entries)?;
            if !nand.has_exact_register() {
                let writes = entries.iter_mut().filter(|entry| **entry & TRIMMED == 0);
                writes.for_each(|entry| *entry = 0);
            }
            changed.push(false);
        }
        Ok(Self {
            entries,
            changed,
            ..Self::default()
        })
    }

    /// Keeps what has changed; the chip must have been flushed before, and must be flushed after it.
    ///
    /// # Errors
    /// As [`Nand::save_register`].
    pub fn save<N: Nand>(&mut self, nand: &mut N) -> Result<(), NandError> {
        let pages = self.entries.chunks(PAGE_ENTRIES).zip(&mut self.changed);
        for (page, (entries, changed)) in pages.enumerate() {
            if std::mem::take(changed) {
                nand.save_register(page, entries)?;
            }
        }
        self.has_trims = false;
        Ok(())
    }

    /// Whether there is a trim that the chip does not know of.
    pub fn has_trims(&self) -> bool {
        self.has_trims
    }

    /// Whether the chip keeps an older register.
    pub fn has_changes(&self) -> bool {
        self.changed.contains(&true)
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
        self.changed[lpn.index() / PAGE_ENTRIES] = true;
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
