//! Wear levelling: which erased block is taken, and when cold content moves to a worn block.
//!
//! The rules alone, without a place of their own: a layer that knows where blocks lie asks them. *Dynamic*
//! takes the erased block with the fewest erases. *Static* does that too and, while the most erased block
//! of a die is more than a gap ahead of the least erased one that holds data, has the latter's content
//! moved to the most erased free block, where it will rest.

use crate::address::Pbn;
use crate::choice;

choice! {
    /// How erases are spread over the blocks of a die.
    pub enum WearLeveling {
        /// Not at all: erased blocks are used in the order in which they come.
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
    // Of equals `max_by_key` gives the last, `min_by_key` the first.
    let aged = erased.map(erases).enumerate();
    aged.min_by_key(|&(_, erases)| std::cmp::Reverse(erases))
        .map(|(i, _)| i)
}

/// Whether the content of a block with `least` erases should move to a free one with `free` erases, in a
/// die whose most erased block has `most`.
///
/// A move to a block that is no older would wear both and level nothing.
pub fn should_move(most: u32, least: u32, free: u32, gap: u32) -> bool {
    most - least > gap && free > least
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
        assert_eq!(youngest(std::iter::empty(), of), None);
    }

    #[test]
    fn content_moves_only_above_the_gap_and_only_to_an_older_block() {
        assert!(should_move(100, 35, 90, 64));
        assert!(!should_move(100, 36, 90, 64));
        assert!(!should_move(100, 3, 3, 64));
    }
}
