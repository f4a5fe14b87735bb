//! Several ordered lists over one set of numbered things, each thing in at most one list. Taking out of
//! the middle and moving to the end cost a few stores: FIFO and LRU orders of log blocks, blocks by
//! number of valid pages.

use alloc::vec;
use alloc::vec::Vec;

use crate::state::{Passed, State, StateError, Tape};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
    /// The list it is in, or `NONE`.
    list: u32,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    first: u32,
    last: u32,
    len: u32,
}

/// A fixed number of lists over the things `0 .. things`.
#[derive(Clone, Debug)]
pub struct Lists {
    links: Vec<Link>,
    heads: Vec<Head>,
}

/// By the order of the things: a list that is made of it anew cannot be wrong in itself.
impl State for Lists {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        if tape.loads() {
            *self = Self::new(self.links.len(), self.heads.len());
        }
        for list in 0..self.heads.len() {
            let mut order: Vec<u32> = self.iter(list).collect();
            tape.grows(&mut order)?;
            if tape.loads() {
                order
                    .into_iter()
                    .try_for_each(|thing| self.append_loaded(list, thing))?;
            }
        }
        Ok(())
    }
}

impl Lists {
    /// Empty lists.
    pub fn new(things: usize, lists: usize) -> Self {
        Self {
            links: vec![
                Link {
                    prev: NONE,
                    next: NONE,
                    list: NONE
                };
                things
            ],
            heads: vec![
                Head {
                    first: NONE,
                    last: NONE,
                    len: 0
                };
                lists
            ],
        }
    }

    /// Appends a thing that is in no list.
    #[inline]
    pub fn push_back(&mut self, list: usize, thing: u32) {
        self.link(list, thing, self.heads[list].last, NONE);
    }

    fn append_loaded(&mut self, list: usize, thing: u32) -> Passed {
        match self.links.get(thing as usize) {
            Some(link) if link.list == NONE => self.push_back(list, thing),
            Some(_) => return Err(StateError::damaged("a thing is in two lists")),
            None => return Err(StateError::damaged("a list of things that do not exist")),
        }
        Ok(())
    }

    /// Puts a thing that is in no list before all others of one.
    #[inline]
    pub fn push_front(&mut self, list: usize, thing: u32) {
        self.link(list, thing, NONE, self.heads[list].first);
    }

    /// Puts a thing that is in no list between two neighbours of one, or `NONE` at its end.
    #[inline(always)]
    fn link(&mut self, list: usize, thing: u32, prev: u32, next: u32) {
        debug_assert_eq!(
            self.links[thing as usize].list, NONE,
            "{thing} is in a list already"
        );
        let head = &mut self.heads[list];
        head.len += 1;
        if prev == NONE {
            head.first = thing;
        } else {
            self.links[prev as usize].next = thing;
        }
        if next == NONE {
            head.last = thing;
        } else {
            self.links[next as usize].prev = thing;
        }
        self.links[thing as usize] = Link {
            prev,
            next,
            list: list as u32,
        };
    }

    /// Takes a thing out of its list, if it is in one.
    #[inline]
    pub fn remove(&mut self, thing: u32) {
        let Link { prev, next, list } = self.links[thing as usize];
        if list == NONE {
            return;
        }
        let head = &mut self.heads[list as usize];
        head.len -= 1;
        if prev == NONE {
            head.first = next;
        } else {
            self.links[prev as usize].next = next;
        }
        if next == NONE {
            head.last = prev;
        } else {
            self.links[next as usize].prev = prev;
        }
        self.links[thing as usize] = Link {
            prev: NONE,
            next: NONE,
            list: NONE,
        };
    }

    /// Moves a thing to the end of a list (its own or another).
    #[inline]
    pub fn move_to_back(&mut self, list: usize, thing: u32) {
        if self.heads[list].last == thing {
            return;
        }
        self.remove(thing);
        self.push_back(list, thing);
    }

    /// First thing of a list.
    #[inline(always)]
    pub fn first(&self, list: usize) -> Option<u32> {
        let first = self.heads[list].first;
        (first != NONE).then_some(first)
    }

    /// Last thing of a list.
    #[inline(always)]
    pub fn last(&self, list: usize) -> Option<u32> {
        let last = self.heads[list].last;
        (last != NONE).then_some(last)
    }

    /// The thing after this one in its list.
    #[inline(always)]
    pub fn next(&self, thing: u32) -> Option<u32> {
        let next = self.links[thing as usize].next;
        (next != NONE).then_some(next)
    }

    /// The list a thing is in.
    #[inline(always)]
    pub fn list_of(&self, thing: u32) -> Option<usize> {
        let list = self.links[thing as usize].list;
        (list != NONE).then_some(list as usize)
    }

    /// Whether there are things at all.
    #[inline(always)]
    pub fn has_things(&self) -> bool {
        !self.links.is_empty()
    }

    /// Number of things in a list.
    #[inline(always)]
    pub fn len(&self, list: usize) -> u32 {
        self.heads[list].len
    }

    /// Whether a list is empty.
    #[inline(always)]
    pub fn is_empty(&self, list: usize) -> bool {
        self.heads[list].len == 0
    }

    /// The things of a list in order.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.heads[list].first;
        core::iter::from_fn(move || {
            let thing = at;
            if thing == NONE {
                return None;
            }
            at = self.links[thing as usize].next;
            Some(thing)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_agree_with_vectors() {
        let mut rng = crate::rng::SplitMix64::new(11);
        let mut lists = Lists::new(9, 3);
        let mut model: Vec<Vec<u32>> = vec![vec![]; 3];
        for _ in 0..5_000 {
            let thing = rng.below(9) as u32;
            let list = rng.below(3) as usize;
            model.iter_mut().for_each(|l| l.retain(|&t| t != thing));
            if rng.below(3) == 0 {
                lists.remove(thing);
                if rng.below(2) == 0 {
                    lists.push_front(list, thing);
                    model[list].insert(0, thing);
                }
            } else {
                lists.move_to_back(list, thing);
                model[list].push(thing);
            }
            for (i, expected) in model.iter().enumerate() {
                assert_eq!(&lists.iter(i).collect::<Vec<_>>(), expected);
                assert_eq!(lists.len(i) as usize, expected.len());
                assert_eq!(
                    (lists.first(i), lists.last(i)),
                    (expected.first().copied(), expected.last().copied())
                );
            }
        }
    }
}
