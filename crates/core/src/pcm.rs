//! Phase-change memory beside the flash: map entries updated in place (HAT).

use crate::ledger::Ledger;

/// Phase-change memory. An access moves one map entry.
pub trait Pcm {
    /// That of the flash beside it.
    type Token;

    /// Reads an entry.
    fn read_entry(&mut self, after: Self::Token) -> Self::Token;

    /// Writes an entry.
    fn write_entry(&mut self, after: Self::Token) -> Self::Token;
}

/// Where there is no clock, the ledger counts the accesses.
impl Pcm for Ledger {
    type Token = ();

    fn read_entry(&mut self, _after: ()) {
        self.counters.pcm_reads += 1;
    }

    fn write_entry(&mut self, _after: ()) {
        self.counters.pcm_writes += 1;
    }
}
