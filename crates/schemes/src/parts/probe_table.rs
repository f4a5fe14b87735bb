//! A hash table with linear probing that knows what a lookup costs without walking: memory references are
//! counted exactly as if every bucket on the way had been looked at.
//!
//! The caller names its entries by *handles* (small numbers of its own). The table keeps the bucket of each
//! handle, the distance of each bucket's key from its home, and a bit map of the occupied buckets: a hit
//! costs one load, a miss a short scan of bits. Hash = key mod buckets; probing goes upwards and around;
//! a removal closes its gap at once (Knuth, The Art of Computer Programming, vol. 3, 6.4, Algorithm R).

use floatgate_core::address::Divisor;
use floatgate_core::state;

/// Distance of an empty bucket: larger than any real one, so one comparison ends a scan or finds a key
/// to move.
const EMPTY: u32 = u32::MAX;

/// The table. See the module's text.
#[derive(Clone, Debug)]
pub struct ProbeTable {
    buckets: Divisor,
    /// One bit a bucket; the bits past the last bucket are set for good.
    occupied: Vec<u64>,
    /// Distance of a bucket's key from its home, or [`EMPTY`].
    distance: Vec<u32>,
    handle: Vec<u32>,
    /// By handle, with the distance once more: a hit is one load.
    place: Vec<Place>,
    len: u32,
}

state!(ProbeTable { occupied, distance, handle, place, len } fixed { buckets });

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    bucket: u32,
    distance: u32,
}

state!(Place { bucket, distance });

impl ProbeTable {
    /// An empty table of at least one bucket, for the handles `0 .. handles`.
    pub fn new(buckets: u32, handles: u32) -> Self {
        let words = buckets.div_ceil(64) as usize;
        let mut occupied = vec![0; words];
        if !buckets.is_multiple_of(64) {
            occupied[words - 1] = u64::MAX << (buckets % 64);
        }
        Self {
            buckets: Divisor::new(buckets),
            occupied,
            distance: vec![EMPTY; buckets as usize],
            handle: vec![0; buckets as usize],
            place: vec![Place::default(); handles as usize],
            len: 0,
        }
    }

    /// Bytes of memory for a table of that size.
    pub fn ram_bytes(buckets: u64, handles: u64) -> u64 {
        8 * buckets + buckets.div_ceil(8) + 8 * handles
    }

    /// Keys in the table.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it holds no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Buckets looked at by a lookup that finds `handle`'s key (which must be in the table).
    #[inline(always)]
    pub fn hit(&self, handle: u32) -> u32 {
        self.place[handle as usize].distance + 1
    }

    /// Buckets looked at by a lookup of a key that is not in the table: up to the empty one, or all.
    #[inline]
    pub fn miss(&self, key: u32) -> u32 {
        let home = self.buckets.rem(key);
        match self.next_empty(home) {
            Some(empty) => self.ahead(home, empty) + 1,
            None => self.buckets.get(),
        }
    }

    /// Inserts a key that is not in the table; `handle` stands for no key so far.
    ///
    /// # Panics
    /// If the table is full.
    #[inline]
    pub fn insert(&mut self, key: u32, handle: u32) {
        let home = self.buckets.rem(key);
        let at = self
            .next_empty(home)
            .expect("a bucket for every key that can be there");
        self.put(at, handle, self.ahead(home, at));
        self.len += 1;
    }

    /// The key of `from` is known as `to` from now on.
    #[inline(always)]
    pub fn rename(&mut self, from: u32, to: u32) {
        let place = self.place[from as usize];
        self.place[to as usize] = place;
        self.handle[place.bucket as usize] = to;
    }

    /// Removes the key of `handle` and closes the gap.
    pub fn remove(&mut self, handle: u32) {
        let mut hole = self.place[handle as usize].bucket;
        self.clear(hole);
        self.len -= 1;
        let (mut at, mut gap) = (hole, 0);
        loop {
            at = self.after(at);
            gap += 1;
            let distance = self.distance[at as usize];
            // A key may move back if its home is not between the hole and its bucket.
            if distance >= gap {
                if distance == EMPTY {
                    return;
                }
                let moved = self.handle[at as usize];
                self.put(hole, moved, distance - gap);
                self.clear(at);
                (hole, gap) = (at, 0);
            }
        }
    }

    #[inline(always)]
    fn put(&mut self, bucket: u32, handle: u32, distance: u32) {
        self.occupied[(bucket / 64) as usize] |= 1 << (bucket % 64);
        self.distance[bucket as usize] = distance;
        self.handle[bucket as usize] = handle;
        self.place[handle as usize] = Place { bucket, distance };
    }

    #[inline(always)]
    fn clear(&mut self, bucket: u32) {
        self.occupied[(bucket / 64) as usize] &= !(1 << (bucket % 64));
        self.distance[bucket as usize] = EMPTY;
    }

    #[inline(always)]
    fn after(&self, bucket: u32) -> u32 {
        if bucket + 1 == self.buckets.get() {
            0
        } else {
            bucket + 1
        }
    }

    /// Steps upwards and around from one bucket to another.
    #[inline(always)]
    fn ahead(&self, from: u32, to: u32) -> u32 {
        if to >= from {
            to - from
        } else {
            to + (self.buckets.get() - from)
        }
    }

    /// First empty bucket from this one on, upwards and around.
    #[inline]
    fn next_empty(&self, from: u32) -> Option<u32> {
        let (words, start) = (self.occupied.len(), (from / 64) as usize);
        let mut empty = !self.occupied[start] & (u64::MAX << (from % 64));
        let mut word = start;
        for _ in 0..=words {
            if empty != 0 {
                return Some(word as u32 * 64 + empty.trailing_zeros());
            }
            word = if word + 1 == words { 0 } else { word + 1 };
            empty = !self.occupied[word];
        }
        None
    }

    /// Checks the table; `key_of` names the key of a handle.
    ///
    /// # Errors
    /// The first bucket that is wrong.
    pub fn audit(&self, key_of: impl Fn(u32) -> u32) -> Result<(), String> {
        let mut keys = 0;
        for bucket in 0..self.buckets.get() {
            let distance = self.distance[bucket as usize];
            let occupied = self.occupied[(bucket / 64) as usize] >> (bucket % 64) & 1 == 1;
            if occupied != (distance != EMPTY) {
                return Err(format!("hash bucket {bucket} is occupied and empty"));
            }
            if !occupied {
                continue;
            }
            keys += 1;
            let handle = self.handle[bucket as usize];
            let home = self.buckets.rem(key_of(handle));
            let reached = self
                .next_empty(home)
                .is_none_or(|empty| self.ahead(home, empty) > distance);
            let place = self.place[handle as usize];
            if (place.bucket, place.distance) != (bucket, distance)
                || self.ahead(home, bucket) != distance
                || !reached
            {
                return Err(format!(
                    "hash bucket {bucket} is not where probing finds it"
                ));
            }
        }
        if keys != self.len {
            return Err(format!("hash table counts {} keys of {keys}", self.len));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::rng::SplitMix64;

    /// The table as the text books have it: keys in buckets, every lookup a walk.
    struct Plain(Vec<Option<u32>>);

    impl Plain {
        fn look_up(&self, key: u32) -> (Option<usize>, u32) {
            let n = self.0.len();
            for step in 0..n {
                let at = (key as usize + step) % n;
                match self.0[at] {
                    Some(k) if k == key => return (Some(at), step as u32 + 1),
                    None => return (None, step as u32 + 1),
                    Some(_) => {}
                }
            }
            (None, n as u32)
        }

        fn insert(&mut self, key: u32) {
            let n = self.0.len();
            let free = (0..n).map(|step| (key as usize + step) % n);
            let at = free.into_iter().find(|&at| self.0[at].is_none()).unwrap();
            self.0[at] = Some(key);
        }

        fn remove(&mut self, key: u32) {
            let n = self.0.len();
            let mut hole = self.look_up(key).0.unwrap();
            self.0[hole] = None;
            let mut at = hole;
            loop {
                at = (at + 1) % n;
                let Some(k) = self.0[at] else { return };
                let home = k as usize % n;
                let between = (home + n - hole - 1) % n < (at + n - hole) % n;
                if !between {
                    self.0[hole] = self.0[at].take();
                    hole = at;
                }
            }
        }
    }

    #[test]
    fn references_are_those_of_plain_probing() {
        let mut rng = SplitMix64::new(5);
        for buckets in [1, 2, 7, 63, 64, 65, 130, 200] {
            let keys = 3 * buckets;
            let mut table = ProbeTable::new(buckets, 2 * keys);
            let mut plain = Plain(vec![None; buckets as usize]);
            let mut handle_of = vec![None; keys as usize];
            for step in 0..4_000 {
                let key = rng.below(u64::from(keys)) as u32;
                let (found, references) = plain.look_up(key);
                let handle = handle_of[key as usize];
                assert_eq!(found.is_some(), handle.is_some());
                let counted = handle.map_or_else(|| table.miss(key), |h| table.hit(h));
                assert_eq!(counted, references, "{buckets} buckets, step {step}");
                match handle {
                    Some(h) if rng.below(3) == 0 => {
                        let other = if h < keys { h + keys } else { h - keys };
                        table.rename(h, other);
                        handle_of[key as usize] = Some(other);
                    }
                    Some(h) => {
                        table.remove(h);
                        plain.remove(key);
                        handle_of[key as usize] = None;
                    }
                    None if table.len() < buckets => {
                        table.insert(key, key);
                        plain.insert(key);
                        handle_of[key as usize] = Some(key);
                    }
                    None => {}
                }
                table.audit(|handle| handle % keys).unwrap();
            }
        }
    }

    #[test]
    fn a_full_table_is_looked_through_once() {
        let mut table = ProbeTable::new(3, 3);
        (0..3).for_each(|key| table.insert(key, key));
        assert_eq!((table.miss(5), table.hit(2)), (3, 1));
        table.remove(0);
        assert_eq!((table.miss(5), table.miss(1), table.len()), (2, 3, 2));
    }
}
