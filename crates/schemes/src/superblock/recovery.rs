//! Recovery of Superblock FTL: the full OOB scan, and the end of a collection that was cut.
//!
//! Blocks need no role: a block belongs to the superblock of its pages, and any page may lie anywhere in it. What has
//! to be decided is which side of a collection counts. A full merge fills blocks from the reserve, so for a while
//! there are more blocks than the budget has, and trimmed pages in those that it takes apart look alive. Its copies
//! name the blocks of their sources. Before the host's next page is programmed all of these are erased, so
//! only the copies that nothing follows on the die can be of a merge that is not over:
//!
//! - not all copied, so nothing erased yet: the filled blocks are given up, and every source stands;
//! - all copied: the blocks of the sources are void, whatever in them looks alive.
//!
//! A partial merge takes no block; its last copy names the block that it empties. So the blocks in use are never
//! more than before the cut or after the collection, and both are within the budgets.
//!
//! No block is open after a recovery, for one that is half full may have been half erased.

use super::Superblock;
use crate::parts::scan::{Depth, Rules, Scan, SpareBytes};
use floatgate_core::address::{DieLpn, Lbn, Pbn};
use floatgate_core::flash::{Flash, OobRead};

/// Tag of a copy of a full merge: more will follow.
const MORE: u32 = 1;
/// Tag of the last copy of a collection.
const LAST: u32 = 2;
/// Block numbers above this one do not fit the tag and are not named.
const NAMED_MAX: u32 = (1 << 30) - 2;

/// The tag of a copy: whether it is the last one of its collection, and the block of its source.
pub(super) fn copy_tag(is_last: bool, source: Pbn) -> u32 {
    let named = if source.0 > NAMED_MAX {
        0
    } else {
        source.0 + 1
    };
    (if is_last { LAST } else { MORE }) | named << 2
}

/// The block that a copy names as that of its source, if it is one of the scan.
fn source_of(scan: &Scan, copy: &OobRead) -> Option<Pbn> {
    let named = (copy.oob.tag >> 2).checked_sub(1).map(Pbn);
    named.filter(|&block| scan.contains(block))
}

/// Declares void what the collection has given up or emptied that was in work when the power went.
fn decide_last_collection(scan: &mut Scan) {
    let Some((_, _, end)) = scan.pages().max_by_key(|(.., read)| read.sequence) else {
        return;
    };
    let is_inside = |read: &OobRead| read.oob.tag & MORE != 0 || read.sequence == end.sequence;
    let outside = scan.pages().filter(|(.., read)| !is_inside(read));
    let before = outside.map(|(.., read)| read.sequence).max().unwrap_or(0);
    let copies = scan
        .pages()
        .filter(|(.., read)| read.sequence > before && read.oob.tag & (MORE | LAST) != 0);
    let copies: Vec<_> = copies.collect();
    let stands = |&(_, lpn, copy): &(Pbn, DieLpn, OobRead)| {
        source_of(scan, &copy).is_some_and(|source| {
            let mut pages = scan.pages_of(source);
            pages.any(|(_, page, read)| page == lpn && read.sequence < copy.sequence)
        })
    };
    // The last copy can be gone with its block, trimmed and erased since; then so are the sources.
    let is_cut = end.oob.tag & LAST == 0 && copies.iter().all(stands);
    for (block, _, copy) in copies {
        if is_cut {
            scan.set_void(block);
        } else if let Some(source) = source_of(scan, &copy)
            && scan.found(source).last < copy.sequence
        {
            scan.set_void(source);
        }
    }
}

impl Superblock {
    pub(super) fn scan<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let space = self.b.space().clone();
        let tables = &self.b.tables;
        let mut bytes = SpareBytes::new(tables.groups());
        let group_of = |lpn: DieLpn| {
            let (lbn, offset) = space.geometry.by_pages().div_rem(lpn.0);
            tables.group_of(Lbn(lbn), offset)
        };
        let depth = Depth::UpToErased;
        let mut scan = Scan::read_with_bytes(&space, depth, flash, &mut bytes, group_of)?;
        decide_last_collection(&mut scan);
        let newest = scan.newest(Rules::Plain);
        let blank = scan.erase_useless(flash)?;
        self.b.mount_found(&scan, newest, &bytes, blank, flash);
        Ok(())
    }
}
