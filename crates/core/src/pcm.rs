//! Phase-change memory beside the flash: map entries updated in place (HAT).

use crate::address::Lpn;
use crate::ledger::Ledger;

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

/// Phase-change memory. An access moves one map entry.
///
/// What an entry is read for can wait for the read. A read itself waits for no flash, and nothing can wait for a write:
/// so a chip may put writes off without anybody having to ask when they end.
pub trait Pcm {
    /// That of the flash beside it.
    type Token;

    /// Reads the entry of a page.
    fn read_entry(&mut self, lpn: Lpn) -> Self::Token;

    /// Writes the entry of a page.
    fn write_entry(&mut self, lpn: Lpn, after: Self::Token);
}

/// Where there is no clock, the ledger counts the accesses.
impl Pcm for Ledger {
    type Token = ();

    fn read_entry(&mut self, _lpn: Lpn) {
        self.counters.pcm_reads += 1;
    }

    fn write_entry(&mut self, _lpn: Lpn, _after: ()) {
        self.counters.pcm_writes += 1;
    }
}
