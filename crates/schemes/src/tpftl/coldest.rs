//! Which node is the coldest: a heap of the nodes by the mean of when their entries were used. Lookups only make nodes
//! warmer, so they leave the heap alone; a node stands there as cold as it was at least, and is put where it belongs when
//! it comes to the top.

use floatgate_core::state::{Passed, State, Tape};
use std::cmp::Ordering;

/// No place in the heap.
const NONE: u32 = u32::MAX;

/// The sum and number of the times at which entries were used.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Warmth {
    pub sum: u64,
    pub entries: u32,
}

impl Warmth {
    /// By the mean, exactly.
    fn cmp_mean(self, other: Self) -> Ordering {
        let product = |sum: u64, n: u32| u128::from(sum) * u128::from(n);
        product(self.sum, other.entries).cmp(&product(other.sum, self.entries))
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Node {
    now: Warmth,
    /// What it stands in the heap for.
    placed: Warmth,
    born: u64,
}

/// The nodes by hotness.
#[derive(Debug)]
pub(super) struct Coldest {
    nodes: Vec<Node>,
    /// Where each node stands in the heap.
    at: Vec<u32>,
    heap: Vec<u32>,
}

/// The heap follows from the nodes.
impl State for Coldest {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        if tape.loads() {
            self.heap.clear();
            self.at.fill(NONE);
        }
        for page in 0..self.nodes.len() {
            let node = &mut self.nodes[page];
            tape.u64(&mut node.now.sum)?;
            tape.u32(&mut node.now.entries)?;
            tape.u64(&mut node.born)?;
            if tape.loads() && node.now.entries > 0 {
                self.append(page as u32);
                self.settle(page as u32);
            }
        }
        Ok(())
    }
}

impl Coldest {
    /// Bytes of memory a translation page.
    pub const BYTES: u64 = (size_of::<Node>() + 8) as u64;

    pub fn new(pages: u32) -> Self {
        Self {
            nodes: vec![Node::default(); pages as usize],
            at: vec![NONE; pages as usize],
            heap: Vec::new(),
        }
    }

    /// The number of a node's creation.
    #[cfg(test)]
    pub fn born(&self, page: u32) -> u64 {
        self.nodes[page as usize].born
    }

    pub fn pages(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// A node without entries, to which some are added, and which then is [settled](Self::settle).
    pub fn create(&mut self, page: u32, born: u64) {
        self.nodes[page as usize] = Node {
            born,
            ..Node::default()
        };
        self.append(page);
    }

    fn append(&mut self, page: u32) {
        self.at[page as usize] = self.heap.len() as u32;
        self.heap.push(page);
    }

    /// A node has become warmer by so much, and entries as warm as any have come to it.
    #[inline]
    pub fn warmed(&mut self, page: u32, by: Warmth) {
        let now = &mut self.nodes[page as usize].now;
        now.sum += by.sum;
        now.entries += by.entries;
    }

    /// An entry last used at `hot` has left; so many are left.
    pub fn entry_left(&mut self, page: u32, hot: u64, left: u32) {
        let now = &mut self.nodes[page as usize].now;
        now.sum -= hot;
        now.entries -= 1;
        debug_assert_eq!(now.entries, left);
        if left > 0 {
            self.settle(page);
            return;
        }
        let at = std::mem::replace(&mut self.at[page as usize], NONE);
        let last = self.heap.pop().expect("the node is in it");
        if last != page {
            self.heap[at as usize] = last;
            self.at[last as usize] = at;
            self.settle(last);
        }
    }

    /// The coldest node; of equally cold ones that born last.
    pub fn first(&mut self) -> Option<u32> {
        loop {
            let first = *self.heap.first()?;
            let node = &self.nodes[first as usize];
            if node.placed == node.now {
                return Some(first);
            }
            self.settle(first);
        }
    }

    /// Puts a node where it belongs.
    pub fn settle(&mut self, page: u32) {
        let node = &mut self.nodes[page as usize];
        node.placed = node.now;
        let at = self.rise(self.at[page as usize] as usize);
        self.sink(at);
    }

    fn is_colder(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.nodes[a as usize], &self.nodes[b as usize]);
        match a.placed.cmp_mean(b.placed) {
            Ordering::Less => true,
            Ordering::Equal => a.born > b.born,
            Ordering::Greater => false,
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.at[self.heap[a] as usize] = a as u32;
        self.at[self.heap[b] as usize] = b as u32;
    }

    fn rise(&mut self, mut at: usize) -> usize {
        while at > 0 {
            let above = (at - 1) / 2;
            if !self.is_colder(self.heap[at], self.heap[above]) {
                break;
            }
            self.swap(at, above);
            at = above;
        }
        at
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let below = (2 * at + 1..2 * at + 3).take_while(|&i| i < self.heap.len());
            let coldest = below.reduce(|a, b| {
                if self.is_colder(self.heap[b], self.heap[a]) {
                    b
                } else {
                    a
                }
            });
            match coldest {
                Some(below) if self.is_colder(self.heap[below], self.heap[at]) => {
                    self.swap(at, below);
                    at = below;
                }
                _ => return,
            }
        }
    }

    /// Checks a node against its entries, and the heap around it.
    pub fn audit(&self, page: u32, entries: Warmth) -> Result<(), String> {
        let (node, at) = (&self.nodes[page as usize], self.at[page as usize]);
        let in_heap = self.heap.get(at as usize) == Some(&page);
        if node.now != entries || (entries.entries > 0) != in_heap {
            return Err(format!("node {page} is not as warm as its entries"));
        }
        if !in_heap {
            return Ok(());
        }
        let above = self.heap[(at.max(1) as usize - 1) / 2];
        if node.placed.cmp_mean(node.now) == Ordering::Greater || self.is_colder(page, above) {
            return Err(format!("node {page} is colder than its place"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::rng::SplitMix64;

    /// Against a search through all nodes.
    #[test]
    fn the_coldest_node_is_found() {
        let mut rng = SplitMix64::new(3);
        let mut heap = Coldest::new(9);
        let mut model: Vec<(u64, Vec<u64>)> = vec![(0, vec![]); 9];
        let mut ties = 0;
        for h in 1..20_000_u64 {
            let page = rng.below(9) as usize;
            let (born, hots) = &mut model[page];
            match rng.below(4) {
                0 if !hots.is_empty() => {
                    let gone = hots.swap_remove(rng.below(hots.len() as u64) as usize);
                    heap.entry_left(page as u32, gone, hots.len() as u32);
                }
                1 if !hots.is_empty() => {
                    let i = rng.below(hots.len() as u64) as usize;
                    let by = Warmth {
                        sum: h - hots[i],
                        entries: 0,
                    };
                    hots[i] = h;
                    heap.warmed(page as u32, by);
                }
                _ if hots.len() < 5 => {
                    if hots.is_empty() {
                        *born = h;
                        heap.create(page as u32, h);
                    }
                    hots.push(h / 3);
                    let by = Warmth {
                        sum: h / 3,
                        entries: 1,
                    };
                    heap.warmed(page as u32, by);
                    heap.settle(page as u32);
                }
                _ => {}
            }
            let mean = |hots: &[u64]| (hots.iter().sum::<u64>() * 60) / hots.len() as u64;
            let there = (0..9).filter(|&page| !model[page].1.is_empty());
            let coldest = there.clone().min_by_key(|&page| {
                let (born, hots) = &model[page];
                (mean(hots), std::cmp::Reverse(*born))
            });
            if let Some(coldest) = coldest {
                let least = mean(&model[coldest].1);
                ties += usize::from(there.filter(|&p| mean(&model[p].1) == least).count() > 1);
            }
            assert_eq!(heap.first(), coldest.map(|page| page as u32));
        }
        assert!(ties > 10, "{ties} ties");
    }
}
