//! Ends and groups of ends: what a token still stands for.

use std::cmp::Reverse;

use super::super::token::{EventToken, PLACE_BITS, View};
use super::Events;

/// What remains of a token after looking at the known ends.
pub(super) struct Rest {
    /// Latest of the known ends.
    pub(super) known_ns: u64,
    /// An operation whose end is not known, and the token without what is
    /// known after it.
    pub(super) pending: Option<(u32, u64, EventToken)>,
}

/// Ends.
impl Events {
    #[inline]
    fn end_of(&self, device: u32, place: u64) -> Option<u64> {
        self.devices[device as usize].end_of(place)
    }

    /// The token with a known end in place of an operation that ended.
    #[inline]
    pub(super) fn refresh(&self, token: EventToken) -> EventToken {
        match token.view() {
            View::Op { device, place } => {
                self.end_of(device, place).map_or(token, EventToken::known)
            }
            View::Known(_) | View::Group { .. } => token,
        }
    }

    /// Splits a token into what is known and what is not.
    #[inline]
    pub(super) fn rest(&self, token: EventToken) -> Rest {
        match token.view() {
            View::Known(known_ns) => Rest {
                known_ns,
                pending: None,
            },
            View::Op { device, place } => match self.end_of(device, place) {
                Some(known_ns) => Rest {
                    known_ns,
                    pending: None,
                },
                None => Rest {
                    known_ns: 0,
                    pending: Some((device, place, token)),
                },
            },
            View::Group { first, len } => self.rest_of_group(first, len),
        }
    }

    /// Looks at the leaves from the last, which most likely ends last. What is
    /// known behind the first pending one is folded into the time, so whoever
    /// waits for a group looks at each leaf about once.
    fn rest_of_group(&self, first: u64, len: u64) -> Rest {
        let mut known_ns = 0;
        // Leaves before `leaves_base` are over.
        let kept = first.max(self.leaves_base)..first + len;
        for leaf in kept.rev() {
            let token = self.leaves[(leaf - self.leaves_base) as usize];
            let end_ns = match token.view() {
                View::Known(ns) => Some(ns),
                View::Op { device, place } => self.end_of(device, place),
                View::Group { .. } => unreachable!("a leaf is no group"),
            };
            match (end_ns, token.view()) {
                (Some(ns), _) => known_ns = known_ns.max(ns),
                (None, View::Op { device, place }) => {
                    let rest = EventToken::group(first, leaf + 1 - first);
                    return Rest {
                        known_ns,
                        pending: Some((device, place, rest)),
                    };
                }
                (None, _) => {}
            }
        }
        Rest {
            known_ns,
            pending: None,
        }
    }
}

/// Groups of ends.
impl Events {
    /// Longest group. Every operation of a die ends after those before it, so a
    /// group needs one leaf a device; beyond this length that is enforced.
    fn group_limit(&self) -> usize {
        (2 * self.devices.len()).max(64)
    }

    /// Place of the next leaf.
    pub(super) fn leaves_end(&self) -> u64 {
        self.leaves_base + self.leaves.len() as u64
    }

    /// Forgets the oldest leaves that are over.
    fn trim_leaves(&mut self) {
        while let Some(&leaf) = self.leaves.front() {
            match self.refresh(leaf).view() {
                View::Known(ns) if ns <= self.granted_ns => {
                    self.leaves.pop_front();
                    self.leaves_base += 1;
                }
                _ => break,
            }
        }
    }

    /// Appends the leaves of a token to `out`.
    pub(super) fn leaves_of(&self, token: EventToken, out: &mut Vec<EventToken>) {
        match token.view() {
            View::Group { first, len } => {
                let kept = first.max(self.leaves_base)..first + len;
                out.extend(kept.map(|leaf| self.leaves[(leaf - self.leaves_base) as usize]));
            }
            View::Known(_) | View::Op { .. } => out.push(token),
        }
    }

    /// Makes a token of several leaves; too many are reduced to one a device.
    pub(super) fn gather(&mut self, leaves: &mut Vec<EventToken>) -> EventToken {
        if leaves.len() > self.group_limit() {
            self.reduce(leaves);
        }
        match leaves[..] {
            [] => EventToken::NOTHING,
            [leaf] => leaf,
            _ => {
                self.trim_leaves();
                let first = self.leaves_end();
                self.leaves.extend(leaves.iter());
                EventToken::group(first, leaves.len() as u64)
            }
        }
    }

    /// Keeps the last operation of each device, and the latest known end.
    fn reduce(&self, leaves: &mut Vec<EventToken>) {
        let mut known_ns = 0;
        leaves.retain(|&leaf| match self.refresh(leaf).view() {
            View::Known(ns) => {
                known_ns = known_ns.max(ns);
                false
            }
            _ => true,
        });
        // Tokens of operations sort by device, then place.
        leaves.sort_unstable_by_key(|&leaf| Reverse(leaf.bits()));
        leaves.dedup_by_key(|leaf| leaf.bits() >> PLACE_BITS);
        if known_ns > self.granted_ns {
            leaves.push(EventToken::known(known_ns));
        }
    }

    /// The group of `all` and `more`, which is not a group. A group at the end
    /// of the leaves grows in place: tokens of the shorter one stay as they are.
    pub(super) fn grow(&mut self, all: EventToken, more: EventToken) -> EventToken {
        if let View::Group { first, len } = all.view()
            && first + len == self.leaves_end()
            && (len as usize) < self.group_limit()
        {
            if let (Some(last), View::Op { device, place }) = (self.leaves.back(), more.view())
                && let View::Op {
                    device: last_device,
                    place: last_place,
                } = last.view()
                && last_device == device
                && last_place >= place
            {
                return all;
            }
            self.leaves.push_back(more);
            return EventToken::group(first, len + 1);
        }
        let mut leaves = Vec::new();
        self.leaves_of(all, &mut leaves);
        self.leaves_of(more, &mut leaves);
        self.gather(&mut leaves)
    }

    /// The group of two groups: the longer one grows by the other, if it can.
    pub(super) fn grow_by_group(&mut self, a: EventToken, b: EventToken) -> EventToken {
        let mut more = Vec::new();
        let (all, other) = match b.view() {
            View::Group { first, len } if first + len == self.leaves_end() => (b, a),
            _ => (a, b),
        };
        self.leaves_of(other, &mut more);
        more.into_iter().fold(all, |all, leaf| self.grow(all, leaf))
    }
}
