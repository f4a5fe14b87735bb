//! The asks for buses, at most one a die, in order of (time, number).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The asks that are not granted.
#[derive(Clone, Debug)]
pub(super) struct Asks {
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
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
        self.heap.peek().map(|Reverse(ask)| ask.0)
    }

    /// Die `die`, which asks for nothing yet, asks at `ns` for operation
    /// `number`.
    #[inline]
    pub(super) fn push(&mut self, ns: u64, number: u64, die: u32) {
        self.heap.push(Reverse((ns, number, die)));
    }

    /// Takes the least ask out: its time and its die.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, u32)> {
        self.heap.pop().map(|Reverse((ns, _, die))| (ns, die))
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }
}
