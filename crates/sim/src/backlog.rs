//! How many requests have arrived and are not complete, at instants that never go back.
//!
//! A clock may know the end of a request long before that end comes. So ends are only noted as they become known,
//! which costs a few instructions a request, and sorted at the next look: in a radix heap, of which whole classes are over
//! at a time.

/// Ends of requests, for counting how many are over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    /// Ends that became known since the last look.
    fresh: Vec<u64>,
    /// Ends that lie after the last look, by the highest bit in which they differ from its time.
    later: Vec<Vec<u64>>,
    /// Time of the last look.
    at_ns: u64,
    /// Ends up to then.
    over: u64,
}

impl Backlog {
    /// A request ends then.
    #[inline(always)]
    pub(crate) fn ends(&mut self, end_ns: u64) {
        self.fresh.push(end_ns);
    }

    /// How many of the ends come not after `at_ns`, or the time of an earlier look if that was later; `latest_ns` is the
    /// latest of them all.
    pub(crate) fn over_at(&mut self, at_ns: u64, latest_ns: u64) -> u64 {
        self.advance(at_ns);
        if latest_ns <= self.at_ns {
            self.over += self.fresh.len() as u64;
            self.fresh.clear();
            return self.over;
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.drain(..).for_each(|end_ns| self.file(end_ns));
        self.fresh = fresh;
        self.over
    }

    fn file(&mut self, end_ns: u64) {
        if end_ns <= self.at_ns {
            self.over += 1;
            return;
        }
        let class = highest_difference(end_ns, self.at_ns);
        if self.later.len() <= class {
            self.later.resize(class + 1, Vec::new());
        }
        self.later[class].push(end_ns);
    }

    fn advance(&mut self, at_ns: u64) {
        if at_ns <= self.at_ns {
            return;
        }
        let class = highest_difference(at_ns, self.at_ns);
        self.at_ns = at_ns;
        // Those that differ from the old time in a lower bit lie before the new one, those in a higher bit stay.
        for earlier in self.later.iter_mut().take(class) {
            self.over += earlier.len() as u64;
            earlier.clear();
        }
        if let Some(same) = self.later.get_mut(class) {
            let ends = std::mem::take(same);
            ends.into_iter().for_each(|end_ns| self.file(end_ns));
        }
    }
}

/// Number of the highest bit in which two different times differ.
fn highest_difference(a_ns: u64, b_ns: u64) -> usize {
    63 - (a_ns ^ b_ns).leading_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::rng::SplitMix64;

    #[test]
    fn as_many_are_over_as_a_plain_list_says() {
        let mut rng = SplitMix64::new(3);
        let (mut backlog, mut list, mut at_ns, mut ahead) = (Backlog::default(), Vec::new(), 0, 0);
        for round in 0..2_000 {
            for _ in 0..rng.below(20) {
                let scale = 1 << rng.below(40);
                list.push(at_ns + rng.below(scale));
                backlog.ends(list[list.len() - 1]);
            }
            if rng.below(10) > 0 {
                let scale = 1 << rng.below(if round < 1_000 { 12 } else { 34 });
                at_ns += rng.below(scale);
            }
            let latest_ns = list.iter().copied().max().unwrap_or(0);
            let over = list.iter().filter(|&&end_ns| end_ns <= at_ns).count();
            assert_eq!(backlog.over_at(at_ns, latest_ns), over as u64);
            ahead += list.len() - over;
        }
        assert!(ahead > 10_000, "{ahead} lay ahead");
    }
}
