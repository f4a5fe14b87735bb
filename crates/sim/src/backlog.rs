//! How many requests have arrived and are not complete, at instants that never go back.
//!
//! A clock may know the end of a request long before that end comes. So ends are only noted as they become known, which
//! costs a few instructions a request, and sorted at the next look: in a radix heap, of which whole classes are over at a time.

/// Ends of requests that may lie ahead of the next look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    /// End of the last request that came when all others known were over: on an idle device nothing else is noted.
    alone_ns: u64,
    /// Ends that came not before any that was known: so it is with one die, or where the device is far behind. Those before
    /// `first` are over.
    ordered: Vec<u64>,
    first: usize,
    /// Other ends that became known since the last look.
    fresh: Vec<u64>,
    /// Those of them that lay after it, by the highest bit in which they differ from its time.
    later: Vec<Vec<u64>>,
    /// How many are in `later`.
    kept: u64,
    /// Time of the last look.
    at_ns: u64,
    spare: Vec<u64>,
}

impl Backlog {
    /// A request ends at `end_ns`; of all ends before, `latest_ns` is the latest. No look comes before its arrival.
    #[inline(always)]
    pub(crate) fn ends(&mut self, arrival_ns: u64, latest_ns: u64, end_ns: u64) {
        if latest_ns <= arrival_ns {
            self.alone_ns = end_ns;
        } else if end_ns >= latest_ns {
            self.ordered.push(end_ns);
        } else {
            self.fresh.push(end_ns);
        }
    }

    /// How many of the ends come after `at_ns`, which is not before the time of an earlier look.
    pub(crate) fn ahead_of(&mut self, at_ns: u64) -> u64 {
        let waiting = &self.ordered[self.first..];
        self.first += waiting
            .iter()
            .take_while(|&&end_ns| end_ns <= at_ns)
            .count();
        if self.first > self.ordered.len() / 2 {
            self.ordered.drain(..self.first);
            self.first = 0;
        }
        self.advance(at_ns);
        let mut fresh = std::mem::take(&mut self.fresh);
        for &end_ns in &fresh {
            if end_ns > at_ns {
                self.keep(end_ns);
            }
        }
        fresh.clear();
        self.fresh = fresh;
        let waiting = (self.ordered.len() - self.first) as u64;
        waiting + self.kept + u64::from(self.alone_ns > at_ns)
    }

    fn keep(&mut self, end_ns: u64) {
        let class = highest_difference(end_ns, self.at_ns);
        if self.later.len() <= class {
            self.later.resize(class + 1, Vec::new());
        }
        self.later[class].push(end_ns);
        self.kept += 1;
    }

    fn advance(&mut self, at_ns: u64) {
        let before_ns = std::mem::replace(&mut self.at_ns, at_ns);
        if at_ns <= before_ns || self.kept == 0 {
            return;
        }
        let class = highest_difference(at_ns, before_ns);
        // Those that differ from the old time in a lower bit lie before the new one, those in a higher bit stay.
        for earlier in self.later.iter_mut().take(class) {
            self.kept -= earlier.len() as u64;
            earlier.clear();
        }
        if class < self.later.len() {
            let empty = std::mem::take(&mut self.spare);
            let mut same = std::mem::replace(&mut self.later[class], empty);
            self.kept -= same.len() as u64;
            for end_ns in same.drain(..).filter(|&end_ns| end_ns > at_ns) {
                self.keep(end_ns);
            }
            self.spare = same;
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
    fn as_many_lie_ahead_as_a_plain_list_says() {
        let mut rng = SplitMix64::new(3);
        let (mut backlog, mut list, mut at_ns) = (Backlog::default(), Vec::new(), 0);
        let (mut ahead, mut alone, mut latest_ns) = (0, 0, 0);
        for round in 0..4_000 {
            for _ in 0..rng.below(20) {
                let scale = 1 << rng.below(if round % 100 < 50 { 10 } else { 40 });
                at_ns += rng.below(64);
                let end_ns = at_ns + rng.below(scale);
                alone += u32::from(latest_ns <= at_ns);
                backlog.ends(at_ns, latest_ns, end_ns);
                latest_ns = latest_ns.max(end_ns);
                list.push(end_ns);
            }
            if rng.below(10) > 0 {
                let scale = 1 << rng.below(if round % 100 < 90 { 12 } else { 40 });
                at_ns += rng.below(scale);
            }
            list.retain(|&end_ns| end_ns > at_ns);
            assert_eq!(backlog.ahead_of(at_ns), list.len() as u64);
            ahead += list.len();
        }
        assert!(ahead > 10_000 && alone > 100, "{ahead} {alone}");
    }
}
