//! Wear levelling: which erased block is used next, and when cold content moves to a worn block.
//!
//! Only the rules; a layer that knows where blocks lie applies them. *Dynamic* uses the erased block with the fewest
//! erases next. *Static* does that too and, while the most erased free block
//! of a die is more than a gap ahead of the least erased one that holds data, has the latter's content
//! moved there, where it will rest.

use crate::address::Pbn;
use crate::choice;

choice! {
    /// How erases are spread over the blocks of a die.
    pub enum WearLeveling {
        /// Not at all: erased blocks are used in the order in which they were erased.
        Off = "off",
        /// The erased block with the fewest erases is used next.
        Dynamic = "dynamic",
        /// The same, and cold content is moved to worn blocks.
        Static = "static",
    }
}

/// Erases that the least erased block with data may lag behind before static levelling moves it.
pub const WEAR_GAP: u32 = 64;

/// Position of the erased block with the fewest erases; the first of equals.
pub fn youngest(erased: impl Iterator<Item = Pbn>, erases: impl Fn(Pbn) -> u32) -> Option<usize> {
    let aged = erased.map(erases).enumerate();
    aged.min_by_key(|&(_, erases)| erases).map(|(i, _)| i)
}

/// Position of the erased block with the most erases; the first of equals.
pub fn oldest(erased: impl Iterator<Item = Pbn>, erases: impl Fn(Pbn) -> u32) -> Option<usize> {
    // Among equals `max_by_key` returns the last, `min_by_key` the first.
    let aged = erased.map(erases).enumerate();
    aged.min_by_key(|&(_, erases)| core::cmp::Reverse(erases))
        .map(|(i, _)| i)
}

/// Whether the content of the least erased block that holds data, with `least` erases, should move to the
/// most erased free one, with `free`. The content has `rested` while that many blocks were taken, out of
/// `blocks`.
///
/// Two conditions go beyond the plain rule (most erased block of the die more than the gap above the least erased one
/// with data). A move to a block that is not itself that far ahead would wear both and level nothing. And new content
/// goes to the youngest block, so the least erased block with data may hold the hottest: moved to the most worn block it
/// would wear that one further, again and again. Content that stayed while all blocks could have been taken once is
/// not hot.
pub fn should_move(least: u32, free: u32, gap: u32, rested: u64, blocks: u32) -> bool {
    free.saturating_sub(least) > gap && rested >= u64::from(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_block_that_waited_longest() {
        let erases = [3, 1, 1, 3, 2];
        let of = |b: Pbn| erases[b.index()];
        assert_eq!(youngest((0..5).map(Pbn), of), Some(1));
        assert_eq!(oldest((0..5).map(Pbn), of), Some(0));
        assert_eq!(youngest(core::iter::empty(), of), None);
    }

    #[test]
    fn content_moves_only_above_the_gap_and_only_if_it_rests() {
        assert!(should_move(35, 100, 64, 8, 8));
        assert!(!should_move(36, 100, 64, 8, 8));
        assert!(!should_move(100, 35, 64, 8, 8));
        assert!(!should_move(35, 100, 64, 7, 8));
    }
}
