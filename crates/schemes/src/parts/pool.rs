//! The erased blocks of a die: a FIFO.

use floatgate_core::address::Pbn;
use floatgate_core::state::{Passed, State, StateError, Tape};

/// FIFO of erased blocks of one die, at the start in ascending order.
#[derive(Clone, Debug)]
pub struct Pool {
    ring: Vec<Pbn>,
    head: u32,
    len: u32,
}

/// By the order of the blocks; where they lie in the ring makes no difference.
impl State for Pool {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let mut blocks: Vec<Pbn> = self.iter().collect();
        tape.grows(&mut blocks)?;
        if tape.loads() {
            if blocks.len() > self.ring.len() || blocks.iter().any(|block| block.is_none()) {
                return Err(StateError::damaged("erased blocks that do not exist"));
            }
            *self = Self::new(blocks.into_iter(), self.ring.len() as u32);
        }
        Ok(())
    }
}

impl Pool {
    /// A pool that holds `blocks` and never more than `capacity`.
    pub fn new(blocks: impl Iterator<Item = Pbn>, capacity: u32) -> Self {
        let mut ring = vec![Pbn::NONE; capacity.max(1) as usize];
        let mut len = 0;
        for block in blocks {
            ring[len as usize] = block;
            len += 1;
        }
        Self { ring, head: 0, len }
    }

    /// Erased blocks.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no block is erased.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the block that has waited longest.
    ///
    /// # Panics
    /// If there is none: every scheme proves its reserve before it runs.
    #[inline]
    pub fn take(&mut self) -> Pbn {
        assert!(
            self.len > 0,
            "no erased block left: the reserve was sized wrongly"
        );
        let block = self.ring[self.head as usize];
        self.head = if self.head as usize + 1 == self.ring.len() {
            0
        } else {
            self.head + 1
        };
        self.len -= 1;
        block
    }

    /// Gives back a block that was just erased.
    #[inline]
    pub fn give(&mut self, block: Pbn) {
        let mut at = self.head as usize + self.len as usize;
        if at >= self.ring.len() {
            at -= self.ring.len();
        }
        self.ring[at] = block;
        self.len += 1;
    }

    /// The erased blocks in order.
    pub fn iter(&self) -> impl Iterator<Item = Pbn> + '_ {
        (0..self.len as usize).map(move |i| self.ring[(self.head as usize + i) % self.ring.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_round_the_ring() {
        let mut pool = Pool::new((0..3).map(Pbn), 3);
        assert_eq!((pool.take(), pool.take()), (Pbn(0), Pbn(1)));
        pool.give(Pbn(1));
        pool.give(Pbn(0));
        assert_eq!(pool.iter().collect::<Vec<_>>(), [Pbn(2), Pbn(1), Pbn(0)]);
        assert_eq!(
            (pool.take(), pool.take(), pool.take(), pool.len()),
            (Pbn(2), Pbn(1), Pbn(0), 0)
        );
    }
}
