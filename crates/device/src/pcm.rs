//! The phase-change memory of a device: map entries that its chip keeps beside the flash.
//!
//! An entry says where a logical page lies, and what the spare area there says, so that a start need not read it. The
//! flash is what counts: an entry may be older than it, and after a crash of the machine it may be of a program that is
//! not there. So it names the *era* of the block too, the erases that the scheme's block had, and is believed only where
//! that is still its number and the page is programmed. While a device is in use a block's erases only grow. They
//! may begin anew at a mount, for a block that was erased then: so a mount drops every entry that is not to be believed,
//! and has that on the disk before it programs anything.

use floatgate_core::Lpn;

use crate::entry::PcmEntry;
use crate::nand::{Nand, NandError};

/// Whether the page that an entry names is still the one it was written for.
pub(crate) fn is_there<N: Nand>(entry: &PcmEntry, nand: &N) -> bool {
    let geometry = nand.geometry();
    entry.place.0 < geometry.pages()
        && nand.is_programmed(entry.place)
        && nand.erase_count(geometry.block_of(entry.place)) == entry.era
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
            && !is_there(&entry, nand)
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
