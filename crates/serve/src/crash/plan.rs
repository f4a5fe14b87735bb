//! Which states are looked at: likely killers first, equal ones once, the rest drawn by a seed.

use std::collections::{BTreeSet, HashSet};

use floatgate_core::rng::SplitMix64;

use super::history::{History, Interval};
use super::state::State;

/// What is wanted of a plan.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// States at most.
    pub states: usize,
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Whether a write may be kept in part.
    pub torn: bool,
    /// Whether nothing but the end is lost.
    pub prefixes_only: bool,
    /// First interval.
    pub first: usize,
    /// Last interval.
    pub last: usize,
    /// Only states in which so many marks had been said.
    pub marks: usize,
}

/// States to look at, in their order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The states.
    pub states: Vec<State>,
    /// States that were thought of and found equal to another.
    pub equal: usize,
    /// Whether every state of the intervals is there. A torn write is one of the states only if they are wanted.
    pub is_exhaustive: bool,
}

/// Kinds of states, the likely killers first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tier {
    /// Nothing that was not flushed is kept: what a missing flush costs.
    Nothing,
    /// All is kept but one.
    DropOne,
    /// Only the last one is kept: the commit record without what it commits.
    KeepLast,
    /// New content without what points to it, and the other way round; small ones without large ones.
    Classes,
    /// Nothing is lost but the end.
    Prefixes,
    /// All but the first ones; one alone.
    Runs,
    /// A write in part.
    Torn,
    /// All others.
    Rest,
}

const TIERS: [Tier; 8] = [
    Tier::Nothing,
    Tier::DropOne,
    Tier::KeepLast,
    Tier::Classes,
    Tier::Prefixes,
    Tier::Runs,
    Tier::Torn,
    Tier::Rest,
];

/// Up to so many changes that may be lost, all subsets of them are thought of.
const EXHAUSTIVE_MAX: usize = 12;
/// Where an interval is cut at most, in kinds of states that are lists of losses.
const CUTS_MAX: usize = 16;
/// States of one kind in an interval; for long intervals, whose states are long, a quarter of it.
const KIND_MAX: usize = 256;

impl Plan {
    /// Thinks of states.
    pub fn new(history: &History, wanted: &Wanted) -> Self {
        let mut maker = Maker {
            history,
            wanted,
            rng: SplitMix64::new(wanted.seed),
            seen: HashSet::new(),
            scratch: Vec::new(),
            plan: Self::default(),
            is_whole: true,
        };
        let tiers: &[Tier] = match wanted.prefixes_only {
            true => &[Tier::Prefixes],
            false => &TIERS,
        };
        let mut spared = Vec::new();
        for (n, &tier) in tiers.iter().enumerate() {
            let left = wanted.states - maker.plan.states.len();
            // No kind takes all there is, so that the later ones come to something too.
            let share = match tiers.len() - n {
                1 => left,
                more => left * 2 / (more + 1),
            };
            let found = maker.tier(tier, left);
            spared.extend(maker.draw(found, share));
        }
        let left = wanted.states - maker.plan.states.len();
        let unused = maker.draw(spared, left);
        maker.plan.is_exhaustive = maker.is_whole && unused.is_empty() && !wanted.prefixes_only;
        maker.plan
    }
}

struct Maker<'a> {
    history: &'a History,
    wanted: &'a Wanted,
    rng: SplitMix64,
    /// States that are in the plan or were drawn against.
    seen: HashSet<(u128, usize)>,
    scratch: Vec<u128>,
    plan: Plan,
    /// Whether all subsets were thought of so far.
    is_whole: bool,
}

impl Maker<'_> {
    fn intervals(&self) -> std::ops::Range<usize> {
        let end = (self.wanted.last.saturating_add(1)).min(self.history.intervals.len());
        self.wanted.first.min(end)..end
    }

    /// All states of a kind that are none that were seen before.
    fn tier(&mut self, tier: Tier, left: usize) -> Vec<State> {
        let mut found = Vec::new();
        if tier == Tier::Torn && !self.wanted.torn {
            return found;
        }
        for number in self.intervals() {
            let interval = &self.history.intervals[number];
            match tier {
                Tier::Rest => self.rest(number, interval, left, &mut found),
                _ => {
                    let mut states = self.candidates(tier, number, interval);
                    let most = match interval.changes.len() {
                        0..=256 => KIND_MAX,
                        _ => KIND_MAX / 4,
                    };
                    if states.len() > most && !matches!(tier, Tier::Prefixes | Tier::Nothing) {
                        shuffle(&mut states, &mut self.rng);
                        states.truncate(most);
                        self.is_whole &=
                            volatile(interval, interval.changes.len()).len() <= EXHAUSTIVE_MAX;
                    }
                    for state in states {
                        self.keep_new(interval, state, &mut found);
                    }
                }
            }
        }
        found
    }

    /// Adds a state if it is a new one; tells whether it was.
    fn keep_new(&mut self, interval: &Interval, state: State, found: &mut Vec<State>) -> bool {
        let identity = state.identity(interval, &mut self.scratch);
        if identity.1 < self.wanted.marks {
            return false;
        }
        let is_new = self.seen.insert(identity);
        match is_new {
            true => found.push(state.shortened(interval)),
            false => self.plan.equal += 1,
        }
        is_new
    }

    /// Takes so many of the states into the plan, in their order, and gives the others back.
    fn draw(&mut self, mut states: Vec<State>, most: usize) -> Vec<State> {
        if states.len() <= most {
            self.plan.states.append(&mut states);
            return states;
        }
        let mut taken: Vec<usize> = (0..states.len()).collect();
        shuffle(&mut taken, &mut self.rng);
        taken.truncate(most);
        let taken: BTreeSet<usize> = taken.into_iter().collect();
        let mut others = Vec::new();
        for (n, state) in states.into_iter().enumerate() {
            match taken.contains(&n) {
                true => self.plan.states.push(state),
                false => others.push(state),
            }
        }
        others
    }

    /// Where a cut makes a difference that losses do not: before a write with FUA, where something is said after a
    /// change, and at the end.
    fn cuts(&mut self, interval: &Interval) -> Vec<usize> {
        let mut cuts = cuts_of(interval);
        if cuts.len() > CUTS_MAX {
            let end = cuts.pop();
            shuffle(&mut cuts, &mut self.rng);
            cuts.truncate(CUTS_MAX - 1);
            cuts.extend(end);
            cuts.sort_unstable();
            self.is_whole = false;
        }
        cuts
    }

    fn candidates(&mut self, tier: Tier, number: usize, interval: &Interval) -> Vec<State> {
        let mut states = Vec::new();
        if tier == Tier::Prefixes {
            states.extend((0..=interval.changes.len()).map(|cut| State::prefix(number, cut)));
            return states;
        }
        let cuts = match tier {
            Tier::Nothing => cuts_of(interval),
            _ => self.cuts(interval),
        };
        for cut in cuts {
            let volatile = volatile(interval, cut);
            let mut push = |keep: &dyn Fn(u32) -> bool| {
                let dropped = volatile.iter().copied().filter(|&at| !keep(at)).collect();
                states.push(State {
                    dropped,
                    ..State::prefix(number, cut)
                });
            };
            let change = |at: u32| &interval.changes[at as usize - 1];
            match tier {
                Tier::Nothing => push(&|_| false),
                Tier::DropOne => volatile.iter().for_each(|&one| push(&|at| at != one)),
                Tier::KeepLast => push(&|at| Some(&at) == volatile.last()),
                Tier::Classes => {
                    let page = u64::from(self.history.header.page_bytes).max(4096);
                    push(&|at| change(at).is_overwrite);
                    push(&|at| !change(at).is_overwrite);
                    push(&|at| change(at).bytes <= page);
                    push(&|at| change(at).bytes > page);
                    push(&|at| change(at).place.is_some());
                    push(&|at| change(at).place.is_none());
                }
                Tier::Runs if volatile.len() <= KIND_MAX => {
                    for &one in &volatile {
                        push(&|at| at > one);
                        push(&|at| at == one);
                    }
                }
                Tier::Torn => self.tear(number, interval, cut, &mut states),
                _ => {}
            }
        }
        states
    }

    /// Each write torn as the last one, and in the middle of others.
    fn tear(&self, number: usize, interval: &Interval, cut: usize, states: &mut Vec<State>) {
        for (change, at) in interval.changes[..cut].iter().zip(1u32..) {
            let sectors = (change.bytes / u64::from(self.history.header.sector_bytes)) as u32;
            if change.place.is_none() || sectors < 2 {
                continue;
            }
            for kept in BTreeSet::from([1, sectors / 2, sectors - 1]) {
                let torn = Some((at, kept));
                let last = State::prefix(number, at as usize);
                states.push(State { torn, ..last });
                if !change.fua {
                    let inside = State::prefix(number, cut);
                    states.push(State { torn, ..inside });
                }
            }
        }
    }

    /// All subsets of a short interval; of a long one some, drawn.
    fn rest(&mut self, number: usize, interval: &Interval, left: usize, found: &mut Vec<State>) {
        if left == 0 {
            self.is_whole = false;
            return;
        }
        let cuts = self.cuts(interval);
        let share = left.div_ceil(self.intervals().len().max(1));
        for &cut in &cuts {
            let volatile = volatile(interval, cut);
            if volatile.len() > EXHAUSTIVE_MAX || 1 << volatile.len() > 4 * share + 16 {
                self.is_whole = false;
                self.draw_subsets(number, interval, cut, share / cuts.len() + 1, found);
                continue;
            }
            for mask in 0..1u32 << volatile.len() {
                let lost = volatile.iter().enumerate();
                let lost = lost.filter(|(n, _)| mask >> n & 1 == 1).map(|(_, at)| *at);
                let state = State {
                    dropped: lost.collect(),
                    ..State::prefix(number, cut)
                };
                self.keep_new(interval, state, found);
            }
        }
    }

    fn draw_subsets(
        &mut self,
        number: usize,
        interval: &Interval,
        cut: usize,
        draws: usize,
        found: &mut Vec<State>,
    ) {
        for _ in 0..draws {
            // Few losses, half of all, or nearly all.
            let of_16 = [1, 4, 8, 12, 15][self.rng.below(5) as usize];
            let mut state = State::prefix(number, cut);
            for at in volatile(interval, cut) {
                if self.rng.below(16) < of_16 {
                    state.dropped.push(at);
                }
            }
            self.keep_new(interval, state, found);
        }
    }
}

fn cuts_of(interval: &Interval) -> Vec<usize> {
    let end = interval.changes.len();
    let differs = |&cut: &usize| {
        cut == end
            || interval.changes[cut].fua
            || interval.marks_at(cut) != interval.marks_at(cut.saturating_sub(1))
    };
    (0..=end).filter(differs).collect()
}

/// The changes before a cut that may be lost.
fn volatile(interval: &Interval, cut: usize) -> Vec<u32> {
    let changes = interval.changes[..cut].iter().zip(1u32..);
    changes
        .filter(|(change, _)| change.is_volatile())
        .map(|(_, at)| at)
        .collect()
}

fn shuffle<T>(list: &mut [T], rng: &mut SplitMix64) {
    for n in (1..list.len()).rev() {
        list.swap(n, rng.below(n as u64 + 1) as usize);
    }
}
