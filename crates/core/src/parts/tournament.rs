//! The smallest of many numbered keys while single keys change: a tournament tree. A change costs a few
//! comparisons and stops as soon as it can no longer matter; asking for the smallest is one load.

/// Which of a fixed number of things has the smallest key; things may be out of the running.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Keys of the things, padded to a power of two.
    keys: Vec<u128>,
    /// Winner below each node; node 1 is the root, the leaves are the second half.
    winners: Vec<u32>,
}

impl Tournament {
    /// Key of a thing that is out of the running.
    pub const OUT: u128 = u128::MAX;

    /// Memory in bytes for so many things.
    pub fn ram_bytes(things: u64) -> u64 {
        things.next_power_of_two() * 24
    }

    /// A tournament in which nobody runs yet.
    pub fn new(things: usize) -> Self {
        let leaves = things.next_power_of_two();
        let mut winners = vec![0; 2 * leaves];
        for node in (1..2 * leaves).rev() {
            winners[node] = if node >= leaves {
                (node - leaves) as u32
            } else {
                winners[2 * node]
            };
        }
        Self {
            keys: vec![Self::OUT; leaves],
            winners,
        }
    }

    /// Sets the key of a thing ([`Self::OUT`] takes it out).
    #[inline]
    pub fn set(&mut self, thing: u32, key: u128) {
        self.keys[thing as usize] = key;
        let mut node = (self.keys.len() + thing as usize) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let left_wins = self.keys[left as usize] <= self.keys[right as usize];
            let winner = if left_wins { left } else { right };
            // Somebody else won here before and still does: nothing changes further up.
            if winner != thing && self.winners[node] == winner {
                return;
            }
            self.winners[node] = winner;
            node /= 2;
        }
    }

    /// The thing with the smallest key, if any runs; the lowest number among equals.
    #[inline(always)]
    pub fn first(&self) -> Option<u32> {
        let winner = self.winners[1];
        (self.keys[winner as usize] != Self::OUT).then_some(winner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_is_the_smallest_key() {
        let mut rng = crate::rng::SplitMix64::new(5);
        for things in [1, 2, 3, 8, 13] {
            let mut tournament = Tournament::new(things);
            let mut keys = vec![Tournament::OUT; things];
            assert_eq!(tournament.first(), None);
            for _ in 0..2_000 {
                let thing = rng.below(things as u64) as usize;
                let key = u128::from(rng.below(20));
                keys[thing] = if key == 0 { Tournament::OUT } else { key };
                tournament.set(thing as u32, keys[thing]);
                let running = (0..things).filter(|&i| keys[i] != Tournament::OUT);
                let expected = running.min_by_key(|&i| (keys[i], i));
                assert_eq!(tournament.first(), expected.map(|i| i as u32));
            }
        }
    }
}
