//! Things in buckets by a small number that changes one step at a time (blocks by valid pages, log blocks by
//! degree): the lowest bucket in use is found by a short scan from where the last one was.

use crate::parts::lists::Lists;
use floatgate_core::state;
use floatgate_core::state::{Passed, StateError};

/// The things `0 .. things` in the buckets `0 .. keys` of several groups; a thing is in one bucket or in none.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// Bucket `key` of group `g` is list `g * keys + key`.
    lists: Lists,
    keys: u32,
    /// By group: no bucket below this one holds a thing.
    lowest: Vec<u32>,
}

state!(Buckets { lists, lowest } check check_state fixed { keys });

impl Buckets {
    /// Empty buckets.
    pub fn new(things: u32, groups: u32, keys: u32) -> Self {
        Self {
            lists: Lists::new(things as usize, groups as usize * keys as usize),
            keys,
            lowest: vec![keys; groups as usize],
        }
    }

    /// Puts a thing into a bucket, out of the one it was in.
    #[inline]
    pub fn file(&mut self, group: u32, key: u32, thing: u32) {
        self.lists.move_to_back(self.list(group, key), thing);
        let lowest = &mut self.lowest[group as usize];
        *lowest = (*lowest).min(key);
    }

    /// Takes a thing out of its bucket, if it is in one.
    #[inline]
    pub fn remove(&mut self, thing: u32) {
        self.lists.remove(thing);
    }

    /// Of the things in the lowest bucket of a group that holds any, the one of the lowest rank.
    pub fn first<R: Ord>(&mut self, group: u32, rank: impl Fn(u32) -> R) -> Option<u32> {
        let mut key = self.lowest[group as usize];
        while key < self.keys && self.lists.is_empty(self.list(group, key)) {
            key += 1;
        }
        self.lowest[group as usize] = key;
        if key == self.keys {
            return None;
        }
        let bucket = self.lists.iter(self.list(group, key));
        bucket.min_by_key(|&thing| rank(thing))
    }

    /// Group and key of the bucket that a thing is in.
    pub fn bucket_of(&self, thing: u32) -> Option<(u32, u32)> {
        let list = self.lists.list_of(thing)? as u32;
        Some((list / self.keys, list % self.keys))
    }

    fn check_state(&self) -> Passed {
        match self.lowest.iter().all(|&key| key <= self.keys) {
            true => Ok(()),
            false => Err(StateError::damaged("a bucket that does not exist")),
        }
    }

    #[inline(always)]
    fn list(&self, group: u32, key: u32) -> usize {
        (group * self.keys + key) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_agrees_with_a_scan() {
        let mut rng = floatgate_core::rng::SplitMix64::new(23);
        let mut buckets = Buckets::new(12, 2, 5);
        let mut model = [None; 12];
        for _ in 0..5_000 {
            let thing = rng.below(12) as u32;
            let (group, key) = (thing % 2, rng.below(5) as u32);
            if rng.below(3) == 0 {
                buckets.remove(thing);
                model[thing as usize] = None;
            } else {
                buckets.file(group, key, thing);
                model[thing as usize] = Some((group, key));
            }
            assert_eq!(buckets.bucket_of(thing), model[thing as usize]);
            // Of equal keys the highest thing.
            let things = (0..12).filter(|&t| model[t as usize].is_some_and(|(g, _)| g == group));
            let scan = things.min_by_key(|&t| (model[t as usize], std::cmp::Reverse(t)));
            assert_eq!(buckets.first(group, std::cmp::Reverse), scan);
        }
    }
}
