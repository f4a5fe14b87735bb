//! The asks for buses, at most one a die, in order of (time, number).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of a die's number; `MAX_DIES` fits.
const DIE_BITS: u32 = 20;

/// The asks that are not granted.
#[derive(Clone, Debug)]
pub(super) struct Asks {
    /// An ask is one number, which compares faster than a tuple: 64 bits of
    /// time, 44 of the operation's number, 20 of the die.
    heap: BinaryHeap<Reverse<u128>>,
}

impl Asks {
    pub(super) fn new(dies: u32) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(dies as usize),
        }
    }

    /// Time of the least ask.
    #[inline]
    pub(super) fn least_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(ask)| (ask >> 64) as u64)
    }

    /// Die `die`, which asks for nothing yet, asks at `ns` for operation
    /// `number`.
    #[inline]
    pub(super) fn push(&mut self, ns: u64, number: u64, die: u32) {
        let low = (number << DIE_BITS) | u64::from(die);
        self.heap
            .push(Reverse((u128::from(ns) << 64) | u128::from(low)));
    }

    /// Takes the least ask out: its time and its die.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, u32)> {
        let Reverse(ask) = self.heap.pop()?;
        Some(((ask >> 64) as u64, ask as u32 & ((1 << DIE_BITS) - 1)))
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }
}
