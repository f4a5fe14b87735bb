//! The largest of many keys that change one at a time: a tree of winners. A change costs at most
//! `log2 n` comparisons, and stops where a winner stays the same; nothing is allocated after the start.

use floatgate_core::state::{Passed, State, Tape};
/// One key for each of the things `0 .. things`; the default key, 0, stands for "not a candidate".
#[derive(Clone, Debug)]
pub struct Tournament<K = u64> {
    /// Node `i` holds the larger key of nodes `2 i` and `2 i + 1`; the leaves come last.
    keys: Vec<K>,
    leaves: usize,
}

/// By the keys of the things: all others follow from them.
impl<K: State + Copy + Ord> State for Tournament<K> {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        let leaves = &mut self.keys[self.leaves..];
        leaves.iter_mut().try_for_each(|key| key.pass(tape))?;
        for node in (1..self.leaves).rev() {
            self.keys[node] = self.keys[2 * node].max(self.keys[2 * node + 1]);
        }
        Ok(())
    }
}

impl<K: Copy + Ord + Default> Tournament<K> {
    /// Memory in bytes for so many things.
    pub fn ram_bytes(things: u64) -> u64 {
        2 * things.next_power_of_two() * size_of::<K>() as u64
    }

    /// No candidates yet.
    pub fn new(things: usize) -> Self {
        let leaves = things.next_power_of_two();
        Self {
            keys: vec![K::default(); 2 * leaves],
            leaves,
        }
    }

    /// Gives a thing another key.
    #[inline]
    pub fn set(&mut self, thing: u32, key: K) {
        let mut node = self.leaves + thing as usize;
        self.keys[node] = key;
        while node > 1 {
            node /= 2;
            let winner = self.keys[2 * node].max(self.keys[2 * node + 1]);
            if self.keys[node] == winner {
                return;
            }
            self.keys[node] = winner;
        }
    }

    /// The thing with the largest key, if there is a candidate; of equal keys the lowest thing.
    pub fn first(&self) -> Option<u32> {
        let key = self.keys[1];
        if key == K::default() {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node = 2 * node + usize::from(self.keys[2 * node] != key);
        }
        Some((node - self.leaves) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_agrees_with_a_scan() {
        let mut rng = floatgate_core::rng::SplitMix64::new(5);
        for things in [1, 2, 7, 16] {
            let mut tree = Tournament::new(things);
            let mut keys = vec![0; things];
            for _ in 0..2_000 {
                let thing = rng.below(things as u64) as usize;
                keys[thing] = rng.below(12).saturating_sub(3);
                tree.set(thing as u32, keys[thing]);
                let scan = (0..things).filter(|&i| keys[i] > 0);
                let scan = scan.min_by_key(|&i| (std::cmp::Reverse(keys[i]), i));
                assert_eq!(tree.first(), scan.map(|i| i as u32));
            }
        }
    }
}
