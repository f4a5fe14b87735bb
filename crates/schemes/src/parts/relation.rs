//! Who belongs to whom, both ways and in order: each *owner* has an ordered list of *things*, and each
//! thing knows its owners in the order in which they came. Owners leave whole, or one thing. Each pair has two
//! numbers of the user's.

use floatgate_core::state;
use floatgate_core::state::{Passed, StateError};
const NONE: u32 = u32::MAX;

/// One pair; it hangs in the list of its owner and in that of its thing.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    owner: u32,
    thing: u32,
    position: u32,
    weight: u32,
    next_of_owner: u32,
    next_of_thing: u32,
    prev_of_thing: u32,
}

state!(Pair {
    owner,
    thing,
    position,
    weight,
    next_of_owner,
    next_of_thing,
    prev_of_thing,
});

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    len: u32,
}

state!(List { first, last, len });

const EMPTY: List = List {
    first: NONE,
    last: NONE,
    len: 0,
};

/// Ordered pairs of owners and things, all numbered from 0.
#[derive(Clone, Debug)]
pub struct Relation {
    pairs: Vec<Pair>,
    /// First of the unused pairs, chained by `next_of_owner`.
    unused: u32,
    len: u32,
    of_owner: Vec<List>,
    of_thing: Vec<List>,
}

state!(Relation { unused, len, of_owner, of_thing } grows { pairs } check check_state);

impl Relation {
    /// Memory in bytes if there are never more than `pairs` pairs.
    pub fn ram_bytes(owners: u64, things: u64, pairs: u64) -> u64 {
        12 * (owners + things) + 28 * pairs
    }

    /// A relation without pairs. Its memory grows to the most pairs that ever exist at once.
    pub fn new(owners: usize, things: usize) -> Self {
        Self {
            pairs: Vec::new(),
            unused: NONE,
            len: 0,
            of_owner: vec![EMPTY; owners],
            of_thing: vec![EMPTY; things],
        }
    }

    /// The lists of both sides are whole, and no pair hangs in two of one side, or a walk might not end.
    fn check_state(&self) -> Passed {
        let things = self.is_side_whole(&self.of_owner, |pair| (pair.owner, pair.next_of_owner));
        let owners = self.is_side_whole(&self.of_thing, |pair| (pair.thing, pair.next_of_thing));
        let unused = (self.pairs.len() as u64).checked_sub(self.len.into());
        let end = unused.and_then(|unused| {
            (0..unused).try_fold(self.unused, |at, _| {
                Some(self.pairs.get(at as usize)?.next_of_owner)
            })
        });
        match things && owners && end == Some(NONE) {
            true => Ok(()),
            false => Err(StateError::damaged(
                "the pairs of a relation do not hang together",
            )),
        }
    }

    /// Whether the lists of one side hold all pairs; `side` gives whose list a pair belongs to, and the pair after it.
    fn is_side_whole(&self, lists: &[List], side: impl Fn(&Pair) -> (u32, u32)) -> bool {
        let is_whole = |(mine, list): (u32, &List)| {
            let (mut at, mut last) = (list.first, NONE);
            for _ in 0..list.len {
                let Some((of, next)) = self.pairs.get(at as usize).map(&side) else {
                    return false;
                };
                if of != mine {
                    return false;
                }
                (at, last) = (next, at);
            }
            at == NONE && last == list.last
        };
        let pairs: u64 = lists.iter().map(|list| u64::from(list.len)).sum();
        pairs == u64::from(self.len) && (0..).zip(lists).all(is_whole)
    }

    /// Pairs.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `thing` to the things of `owner` and `owner` to the owners of `thing`. The pair must be new; it keeps
    /// `position`, and has a weight of 0.
    #[inline]
    pub fn add(&mut self, owner: u32, thing: u32, position: u32) {
        debug_assert!(self.things(owner).all(|t| t != thing), "the pair exists");
        let (mine, its) = (self.of_owner[owner as usize], self.of_thing[thing as usize]);
        let pair = Pair {
            owner,
            thing,
            position,
            weight: 0,
            next_of_owner: NONE,
            next_of_thing: NONE,
            prev_of_thing: its.last,
        };
        let at = self.unused;
        let at = if at == NONE {
            self.pairs.push(pair);
            self.pairs.len() as u32 - 1
        } else {
            self.unused = self.pairs[at as usize].next_of_owner;
            self.pairs[at as usize] = pair;
            at
        };
        if mine.last != NONE {
            self.pairs[mine.last as usize].next_of_owner = at;
        }
        if its.last != NONE {
            self.pairs[its.last as usize].next_of_thing = at;
        }
        self.of_owner[owner as usize] = mine.with_last(at);
        self.of_thing[thing as usize] = its.with_last(at);
        self.len += 1;
    }

    /// Ends the first pair of `owner`: its thing forgets it. Called until `None`, it empties the list. Returns the thing
    /// and the weight.
    #[inline]
    pub fn pop(&mut self, owner: u32) -> Option<(u32, u32)> {
        let list = &mut self.of_owner[owner as usize];
        let at = list.first;
        if at == NONE {
            return None;
        }
        list.first = self.pairs[at as usize].next_of_owner;
        list.len -= 1;
        if list.first == NONE {
            list.last = NONE;
        }
        Some(self.end(at))
    }

    /// Ends one pair, which must be one.
    pub fn remove(&mut self, owner: u32, thing: u32) {
        let (mut before, mut at) = (NONE, self.of_owner[owner as usize].first);
        while self.pairs[at as usize].thing != thing {
            (before, at) = (at, self.pairs[at as usize].next_of_owner);
        }
        let after = self.pairs[at as usize].next_of_owner;
        let list = &mut self.of_owner[owner as usize];
        list.len -= 1;
        if before == NONE {
            list.first = after;
        } else {
            self.pairs[before as usize].next_of_owner = after;
        }
        if after == NONE {
            list.last = before;
        }
        self.end(at);
    }

    /// Takes a pair, which its owner has left, from its thing.
    fn end(&mut self, at: u32) -> (u32, u32) {
        let pair = self.pairs[at as usize];
        let its = &mut self.of_thing[pair.thing as usize];
        its.len -= 1;
        if pair.prev_of_thing == NONE {
            its.first = pair.next_of_thing;
        } else {
            self.pairs[pair.prev_of_thing as usize].next_of_thing = pair.next_of_thing;
        }
        if pair.next_of_thing == NONE {
            its.last = pair.prev_of_thing;
        } else {
            self.pairs[pair.next_of_thing as usize].prev_of_thing = pair.prev_of_thing;
        }
        self.pairs[at as usize].next_of_owner = self.unused;
        self.unused = at;
        self.len -= 1;
        (pair.thing, pair.weight)
    }

    fn pairs_of(&self, owner: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.of_owner[owner as usize].first;
        std::iter::from_fn(move || {
            let here = at;
            at = self.pairs.get(here as usize)?.next_of_owner;
            Some(here)
        })
    }

    /// The things of an owner in order, each with its position.
    #[inline]
    pub fn positions(&self, owner: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pairs = self.pairs_of(owner).map(|at| self.pairs[at as usize]);
        pairs.map(|pair| (pair.thing, pair.position))
    }

    /// The position of the thing that came last to an owner.
    #[inline(always)]
    pub fn last_position(&self, owner: u32) -> Option<u32> {
        let last = self.pairs.get(self.of_owner[owner as usize].last as usize);
        last.map(|pair| pair.position)
    }

    /// The weight of a pair, 0 if there is none.
    pub fn weight(&self, owner: u32, thing: u32) -> u32 {
        let mut pairs = self.pairs_of(owner).map(|at| self.pairs[at as usize]);
        let pair = pairs.find(|pair| pair.thing == thing);
        pair.map_or(0, |pair| pair.weight)
    }

    /// The same, to be changed; `None` if there is no such pair.
    pub fn weight_mut(&mut self, owner: u32, thing: u32) -> Option<&mut u32> {
        let at = self
            .pairs_of(owner)
            .find(|&at| self.pairs[at as usize].thing == thing)?;
        Some(&mut self.pairs[at as usize].weight)
    }

    /// How many things an owner has.
    #[inline(always)]
    pub fn things_len(&self, owner: u32) -> u32 {
        self.of_owner[owner as usize].len
    }

    /// How many owners a thing has.
    #[inline(always)]
    pub fn owners_len(&self, thing: u32) -> u32 {
        self.of_thing[thing as usize].len
    }

    /// The thing that came last to an owner.
    #[inline(always)]
    pub fn last_thing(&self, owner: u32) -> Option<u32> {
        let last = self.of_owner[owner as usize].last;
        (last != NONE).then(|| self.pairs[last as usize].thing)
    }

    /// The owner that came first to a thing.
    #[inline(always)]
    pub fn first_owner(&self, thing: u32) -> Option<u32> {
        self.owners(thing).next()
    }

    /// The things of an owner in order.
    #[inline]
    pub fn things(&self, owner: u32) -> impl Iterator<Item = u32> + '_ {
        self.pairs_of(owner).map(|at| self.pairs[at as usize].thing)
    }

    /// The owners of a thing in order.
    #[inline]
    pub fn owners(&self, thing: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.of_thing[thing as usize].first;
        std::iter::from_fn(move || {
            let pair = self.pairs.get(at as usize)?;
            at = pair.next_of_thing;
            Some(pair.owner)
        })
    }
}

impl List {
    fn with_last(self, last: u32) -> Self {
        Self {
            first: if self.first == NONE { last } else { self.first },
            last,
            len: self.len + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_with_vectors() {
        let mut rng = floatgate_core::rng::SplitMix64::new(17);
        let mut relation = Relation::new(6, 5);
        // Owner, thing, position, weight.
        let mut model: Vec<(u32, u32, u32, u32)> = Vec::new();
        for step in 0..5_000 {
            let (owner, thing) = (rng.below(6) as u32, rng.below(5) as u32);
            let is_it = |pair: &(u32, u32, u32, u32)| (pair.0, pair.1) == (owner, thing);
            if rng.below(4) == 0 {
                let left: Vec<_> = std::iter::from_fn(|| relation.pop(owner)).collect();
                let expected = model.iter().filter(|pair| pair.0 == owner);
                let expected: Vec<_> = expected.map(|pair| (pair.1, pair.3)).collect();
                assert_eq!(left, expected);
                model.retain(|pair| pair.0 != owner);
            } else if let Some(at) = model.iter().position(is_it) {
                if rng.below(2) == 0 {
                    relation.remove(owner, thing);
                    model.remove(at);
                } else {
                    *relation.weight_mut(owner, thing).unwrap() += step;
                    model[at].3 += step;
                }
            } else {
                assert!(relation.weight_mut(owner, thing).is_none());
                relation.add(owner, thing, step);
                model.push((owner, thing, step, 0));
            }
            relation.check_state().unwrap();
            let expected = model.iter().find(|pair| is_it(pair));
            assert_eq!(
                relation.weight(owner, thing),
                expected.map_or(0, |pair| pair.3)
            );
            assert_eq!(relation.len() as usize, model.len());
            for owner in 0..6 {
                let mine = model.iter().filter(|pair| pair.0 == owner);
                let mine: Vec<u32> = mine.map(|pair| pair.1).collect();
                assert_eq!(relation.things(owner).collect::<Vec<_>>(), mine);
                assert_eq!(relation.things_len(owner) as usize, mine.len());
                let positions = model.iter().filter(|pair| pair.0 == owner);
                let positions: Vec<_> = positions.map(|pair| (pair.1, pair.2)).collect();
                assert_eq!(relation.positions(owner).collect::<Vec<_>>(), positions);
                let last = positions.last().map(|&(_, position)| position);
                assert_eq!(relation.last_position(owner), last);
                assert_eq!(relation.last_thing(owner), mine.last().copied());
            }
            for thing in 0..5 {
                let its = model.iter().filter(|pair| pair.1 == thing);
                let its: Vec<u32> = its.map(|pair| pair.0).collect();
                assert_eq!(relation.owners(thing).collect::<Vec<_>>(), its);
                assert_eq!(relation.owners_len(thing) as usize, its.len());
                assert_eq!(relation.first_owner(thing), its.first().copied());
            }
        }
        assert!(relation.pairs.len() <= 30, "ended pairs are used again");
    }
}
