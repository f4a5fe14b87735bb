//! Summary pages of LAST++: the last page of a random log block tells what the others hold, so that a
//! start after a crash reads one page of each full block.
//!
//! Layout, little endian: 8 bytes with the sequence number of position 0 (top bit: the block is hot), then
//! 8 bytes a position: LPN, and how far its sequence number lies above that of position 0. What does not fit
//! the page, or lies too far, is left to the position's own OOB.

use crate::parts::heat::Heat;
use floatgate_core::address::Lpn;

const CELL: usize = 8;
const HOT: u64 = 1 << 63;
/// Distance that says "see the OOB".
const FAR: u32 = u32::MAX;

/// Fills a summary page (zeroed before): `pages` gives LPN and sequence number of positions 0, 1, ...
pub fn write(bytes: &mut [u8], partition: Heat, pages: impl Iterator<Item = (Lpn, u64)>) {
    let mut pages = pages.peekable();
    let first = pages.peek().map_or(0, |&(_, sequence)| sequence);
    let mut cells = bytes.chunks_exact_mut(CELL);
    let Some(head) = cells.next() else { return };
    let hot = if partition == Heat::Hot { HOT } else { 0 };
    head.copy_from_slice(&(first | hot).to_le_bytes());
    for (cell, (lpn, sequence)) in cells.zip(pages) {
        let above = u32::try_from(sequence - first).unwrap_or(FAR);
        cell[..4].copy_from_slice(&lpn.0.to_le_bytes());
        cell[4..].copy_from_slice(&above.to_le_bytes());
    }
}

/// Reads a summary page of `positions` positions: the block's partition; LPN and sequence number by
/// position, `None` where the position's own OOB has to be read.
pub fn read(bytes: &[u8], positions: u32) -> (Heat, impl Iterator<Item = Option<(Lpn, u64)>> + '_) {
    let mut cells = bytes.chunks_exact(CELL);
    let head = cells.next().map_or(0, |cell| {
        u64::from_le_bytes(cell.try_into().expect("8 bytes"))
    });
    let partition = if head & HOT != 0 {
        Heat::Hot
    } else {
        Heat::Cold
    };
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
    let pages = (0..positions).map(move |_| {
        let cell = cells.next()?;
        let above = word(&cell[4..]);
        (above != FAR).then(|| (Lpn(word(&cell[..4])), (head & !HOT) + u64::from(above)))
    });
    (partition, pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_reads_as_written() {
        let written = [(Lpn(7), 100), (Lpn(9), 103), (Lpn(7), 100 + (1 << 40))];
        let mut bytes = [0; 40];
        write(&mut bytes, Heat::Hot, written.into_iter());
        let (partition, pages) = read(&bytes, 3);
        assert_eq!(partition, Heat::Hot);
        let expected = [Some(written[0]), Some(written[1]), None];
        assert_eq!(pages.collect::<Vec<_>>(), expected);
        // A page too small for all: the rest is in the OOBs.
        write(&mut bytes[..17], Heat::Cold, written.into_iter());
        let (partition, pages) = read(&bytes[..17], 3);
        assert_eq!(partition, Heat::Cold);
        assert_eq!(pages.collect::<Vec<_>>(), [Some(written[0]), None, None]);
    }
}
