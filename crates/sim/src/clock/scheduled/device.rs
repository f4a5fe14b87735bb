//! A die, or a PCM chip, and the operations that wait for it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::super::schedule::Schedule;
use super::nodes::{NONE, NodeToken};

/// Classes of operations.
pub(super) const CLASSES: usize = 3;

/// A whole operation of collection that goes before one of the host.
const WHOLE: u64 = 1 << 16;

/// Operations in the order of their numbers, each with its place among the nodes.
type Queue = BinaryHeap<Reverse<(u64, u32)>>;

#[derive(Clone, Debug)]
pub(super) struct Device {
    /// `NONE` of a PCM chip.
    pub(super) channel: u32,
    /// The operation in work.
    pub(super) current: u32,
    /// The one that is interrupted, and what it has left of its cell time.
    pub(super) suspended: Option<(u32, u64)>,
    /// Reads done since it was interrupted.
    pub(super) reads_between: u32,
    /// Before that it can begin nothing.
    pub(super) awake_ns: u64,
    /// End of the operation before.
    pub(super) free_ns: u64,
    /// In the order of issue: the operation before.
    pub(super) last: NodeToken,
    /// Highest number of those that have ended.
    pub(super) newest_ended: u64,
    /// Whether it is in the list of those to be looked at.
    pub(super) is_dirty: bool,
    /// What could begin now, by class; erases apart, since they must not overtake programs.
    ready: [Queue; CLASSES],
    erases: Queue,
    erase_class: usize,
    /// Numbers of the programs that are not over.
    pub(super) programs: BTreeSet<u64>,
    /// By class: how many have overtaken the first in it.
    passed: [u32; CLASSES],
    /// Operations of the last class that have not begun, ready or not.
    pub(super) last_class_waits: u32,
    /// What collection has earned towards going before the host, in parts of `WHOLE`.
    earned: u64,
}

impl Device {
    pub(super) fn new(channel: u32, erase_class: usize) -> Self {
        Self {
            channel,
            current: NONE,
            suspended: None,
            reads_between: 0,
            awake_ns: 0,
            free_ns: 0,
            last: NodeToken::NOTHING,
            newest_ended: 0,
            is_dirty: false,
            ready: Default::default(),
            erases: Queue::default(),
            erase_class,
            programs: BTreeSet::new(),
            passed: [0; CLASSES],
            last_class_waits: 0,
            earned: 0,
        }
    }

    /// An operation waits for nothing but the device.
    pub(super) fn is_ready(&mut self, class: u8, is_erase: bool, number: u64, place: u32) {
        let queue = match is_erase {
            true => &mut self.erases,
            false => &mut self.ready[class as usize],
        };
        queue.push(Reverse((number, place)));
    }

    /// Whether a read waits that may interrupt.
    pub(super) fn has_reads(&self) -> bool {
        !self.ready[0].is_empty()
    }

    /// Number of the first in a class that could begin, and whether it is an erase.
    fn first(&self, class: usize) -> Option<(u64, bool)> {
        let other = self.ready[class]
            .peek()
            .map(|Reverse(first)| (first.0, false));
        if class != self.erase_class {
            return other;
        }
        let oldest_program = self.programs.first().copied().unwrap_or(u64::MAX);
        let erase = self.erases.peek().map(|Reverse(first)| first.0);
        let erase = erase.filter(|&number| number < oldest_program);
        match (other, erase) {
            (Some((number, _)), Some(erase)) if number < erase => other,
            (_, Some(erase)) => Some((erase, true)),
            (_, None) => other,
        }
    }

    /// Takes the operation that goes next.
    pub(super) fn take_next(&mut self, schedule: &Schedule) -> Option<u32> {
        let mut firsts: [Option<(u64, bool)>; CLASSES] = [None; CLASSES];
        for (class, first) in firsts.iter_mut().enumerate() {
            *first = self.first(class);
        }
        let mut class = firsts.iter().position(Option::is_some)?;
        let tired = |&c: &usize| firsts[c].is_some() && self.passed[c] >= schedule.overtakes;
        if schedule.overtakes > 0
            && let Some(waits_longest) = (class + 1..CLASSES).find(tired)
        {
            class = waits_longest;
        } else if class == 1 && firsts[2].is_some() && self.collection_first(schedule) {
            class = 2;
        }
        let (number, is_erase) = firsts[class]?;
        self.passed[class] = 0;
        let others = self.passed.iter_mut().zip(firsts).skip(class + 1);
        for (passed, first) in others {
            *passed += u32::from(first.is_some_and(|first| first.0 < number));
        }
        let queue = match is_erase {
            true => &mut self.erases,
            false => &mut self.ready[class],
        };
        queue.pop().map(|Reverse((_, place))| place)
    }

    /// Takes the next read of the first class.
    pub(super) fn take_read(&mut self) -> Option<u32> {
        self.ready[0].pop().map(|Reverse((_, place))| place)
    }

    /// Whether an operation of collection goes before one for the host, so that it does not fall behind.
    fn collection_first(&mut self, schedule: &Schedule) -> bool {
        let (low, high) = (u64::from(schedule.gc_low), u64::from(schedule.gc_high));
        let waits = u64::from(self.last_class_waits);
        if high == 0 || waits < low {
            return false;
        }
        let share = match high - low {
            0 => WHOLE,
            room => ((waits - low) * WHOLE / room).min(WHOLE),
        };
        self.earned += share;
        let goes_first = self.earned >= WHOLE;
        if goes_first {
            self.earned -= WHOLE;
        }
        goes_first
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.channel, self.erase_class);
    }
}
