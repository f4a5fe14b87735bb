//! Phase-change memory beside the flash: map entries updated in place (HAT).

use crate::address::{Lpn, Ppn};
use crate::ledger::Ledger;
use crate::oob::OobRead;

/// The most chips of a device.
pub const MAX_CHIPS: u32 = 1024;

/// How the memory is built and driven. It changes times only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PcmSetup {
    /// Chips that work independently, 1 to [`MAX_CHIPS`]; the entry of page `l` lies in chip `l mod chips`.
    pub chips: u32,
    /// Whether a read goes before all writes of its chip that have not begun.
    pub read_first: bool,
}

impl Default for PcmSetup {
    fn default() -> Self {
        Self {
            chips: 1,
            read_first: false,
        }
    }
}

/// What an entry says after a start: where a page lies, and the OOB that was programmed there with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recalled {
    /// The physical page.
    pub place: Ppn,
    /// What its OOB reads as.
    pub read: OobRead,
}

/// Phase-change memory. An access moves one map entry.
///
/// What an entry is read for can wait for the read. A read itself waits for no flash, and nothing can wait for a write:
/// so a chip may put writes off without anybody having to ask when they end.
///
/// **What survives.** A memory beside a flash that stores bytes may keep its entries; a simulated one, or one of a chip
/// that has none, recalls nothing, and the flash alone has to do. Writes take effect in the order in which they are
/// issued, each after the program of the page that it names; the one that a power cut interrupts is done or not. An
/// entry may be older than the flash, for nobody waits for its write, but what is recalled is never wrong about its
/// place: **the memory recalls an entry only if the page at its place is programmed, and no erase of that block has
/// begun since**. So an entry that is recalled stands for a read of that OOB, and what it does not name must be read.
pub trait Pcm {
    /// That of the flash beside it.
    type Token;

    /// Reads the entry of a page.
    fn read_entry(&mut self, lpn: Lpn) -> Self::Token;

    /// Writes the entry of a page: where it lies, or `NONE`.
    fn write_entry(&mut self, lpn: Lpn, place: Ppn, after: Self::Token);

    /// Reads the entry of a page at a start, when nobody knows what it says.
    fn recall(&mut self, lpn: Lpn) -> Option<Recalled> {
        self.read_entry(lpn);
        None
    }

    /// Every entry is as it should be: a shutdown has written the last of them. It holds until anything changes.
    fn seal(&mut self) {}

    /// Whether every entry is as it should be, pages without one hold nothing, and nothing has changed since.
    fn is_sealed(&self) -> bool {
        false
    }
}

/// Where there is no clock and nothing is kept, the ledger counts the accesses.
impl Pcm for Ledger {
    type Token = ();

    fn read_entry(&mut self, _lpn: Lpn) {
        self.counters.pcm_reads += 1;
    }

    fn write_entry(&mut self, _lpn: Lpn, _place: Ppn, _after: ()) {
        self.counters.pcm_writes += 1;
    }
}
