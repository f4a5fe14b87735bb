//! The phase-change memory of a device: map entries that its chip keeps beside the flash.
//!
//! An entry says where a logical page lies, and what the spare area there says, so that a start need not read it. The
//! flash is what counts: an entry may be older than it, and after a crash of the machine it may be of a program that is
//! not there. So it names the *era* of the block too, the erases that the scheme's block had, and is believed only where
//! that is still its number and the page is programmed. While a device is in use a block's erases only grow. They
//! may begin anew at a mount, for a block that was erased then: so a mount drops every entry that is not to be believed,
//! and has that on the disk before it programs anything.

use floatgate_core::flash::{Flash, Oob, OobRead, Role};
use floatgate_core::pcm::{Pcm, Recalled};
use floatgate_core::{Lpn, Ppn};

use crate::flash::NandFlash;
use crate::nand::{Nand, NandError};

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

    /// Whether the page that it names is still the one it was written for.
    fn holds<N: Nand>(&self, nand: &N) -> bool {
        let geometry = nand.geometry();
        self.place.0 < geometry.pages()
            && nand.is_programmed(self.place)
            && nand.erase_count(geometry.block_of(self.place)) == self.era
    }
}

/// Drops what is not to be believed, for good.
///
/// # Errors
/// As [`Nand::load_entry`], [`Nand::save_entry`], [`Nand::flush`].
pub(crate) fn drop_stale<N: Nand>(nand: &mut N) -> Result<(), NandError> {
    if !nand.keeps_entries() {
        return Ok(());
    }
    let mut is_changed = false;
    for lpn in (0..nand.geometry().logical_pages).map(Lpn) {
        if let Some(entry) = nand.load_entry(lpn)?
            && !entry.holds(nand)
        {
            nand.save_entry(lpn, None)?;
            is_changed = true;
        }
    }
    match is_changed {
        true => nand.flush(),
        false => Ok(()),
    }
}

impl<N: Nand> NandFlash<N> {
    /// The entry of a page at that place; none where something else lies there, or nothing that can be read.
    fn entry_for(&mut self, lpn: Lpn, place: Ppn) -> Option<PcmEntry> {
        if place.is_none() {
            return None;
        }
        let spare = self.nand_mut().read_spare(place).ok()?;
        let is_page = spare.oob.lpn == lpn && spare.oob.role == Role::Data;
        is_page.then(|| PcmEntry {
            place,
            era: self
                .nand()
                .erase_count(self.ledger().geometry().block_of(place)),
            sequence: spare.sequence,
            tag: spare.oob.tag,
        })
    }
}

/// Time has no meaning here; the ledger counts.
impl<N: Nand> Pcm for NandFlash<N> {
    type Token = ();

    fn read_entry(&mut self, lpn: Lpn) {
        self.ledger.read_entry(lpn);
    }

    /// A failure of the file shows at the next operation, and at the end of the request: nothing that was acknowledged
    /// depends on an entry.
    fn write_entry(&mut self, lpn: Lpn, place: Ppn, _after: ()) {
        self.ledger.write_entry(lpn, place, ());
        if self.nand().keeps_entries() {
            let entry = self.entry_for(lpn, place);
            let _ = self.nand_mut().save_entry(lpn, entry.as_ref());
        }
    }

    fn recall(&mut self, lpn: Lpn) -> Option<Recalled> {
        self.ledger.read_entry(lpn);
        let entry = self.nand_mut().load_entry(lpn).ok()??;
        let oob = Oob {
            lpn,
            role: Role::Data,
            tag: entry.tag,
        };
        let read = OobRead {
            oob,
            sequence: entry.sequence,
        };
        let place = entry.place;
        entry.holds(self.nand()).then_some(Recalled { place, read })
    }

    fn seal(&mut self) {
        self.is_sealed = true;
    }

    fn is_sealed(&self) -> bool {
        self.nand().has_complete_entries()
    }
}
