//! An entry of phase-change memory, as a chip keeps it beside its flash.

use floatgate_core::Ppn;

/// An entry as a chip keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PcmEntry {
    /// Where the page lies.
    pub place: Ppn,
    /// Erases of that block when it was programmed.
    pub era: u32,
    /// Number of the program.
    pub sequence: u64,
    /// The scheme's tag in its spare area.
    pub tag: u32,
}

impl PcmEntry {
    /// What stands for an entry that cannot be read.
    pub const DAMAGED: Self = Self {
        place: Ppn::NONE,
        era: 0,
        sequence: 0,
        tag: 0,
    };
}
