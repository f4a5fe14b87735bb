//! A die, or the PCM device, as the event engine sees it: a queue.

use std::collections::VecDeque;

use super::token::EventToken;

/// A link to nothing: no request, end of a list of waiters, no channel.
pub(super) const NONE: u32 = u32::MAX;
/// Marks a waiter that is a request; the others are devices.
pub(super) const IS_REQUEST: u32 = 1 << 31;

/// An operation, or a run of copies, that is not over yet.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Number in the order of issue, from 1.
    pub(super) number: u64,
    /// Until the operation ends: latest of `at` and the known ends that it
    /// waits for. Then: its end.
    pub(super) time_ns: u64,
    /// What else it waits for.
    pub(super) after: EventToken,
    /// Index of its phases in `shapes`.
    pub(super) shape: u32,
    /// Copies of a run; 1 for anything else.
    pub(super) copies: u32,
    /// Slot of the request that issued it.
    pub(super) request: u32,
    /// First of those who wait for its end.
    pub(super) waiters: u32,
}

/// What the operation before leaves open for the next one, where there are [cache commands](super::Machine::cache_commands).
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Former {
    /// Nothing.
    #[default]
    Other,
    /// A page was read; the cells were free from that time on.
    Read(u64),
    /// A page is being programmed; its data was in the cells' own register from that time on.
    Program(u64),
}

/// A die, or the PCM device.
#[derive(Clone, Debug)]
pub(super) struct Device {
    /// Operations from place `base` on.
    pub(super) queue: VecDeque<Record>,
    /// Place of the first one kept.
    pub(super) base: u64,
    /// Place of the first one whose end is not known.
    pub(super) head: u64,
    /// Latest known end of an operation of this device.
    pub(super) free_ns: u64,
    /// Its channel, or `NONE` (PCM), and its place there.
    pub(super) channel: u32,
    pub(super) lane: u32,
    /// Next in the list of waiters that this device's head is in.
    pub(super) next_waiter: u32,
    /// What its latest operation leaves open.
    pub(super) former: Former,
}

impl Device {
    pub(super) fn new(channel: u32, lane: u32) -> Self {
        Self {
            queue: VecDeque::new(),
            base: 0,
            head: 0,
            free_ns: 0,
            channel,
            lane,
            next_waiter: NONE,
            former: Former::Other,
        }
    }

    /// Whether the end of every operation is known.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.head - self.base == self.queue.len() as u64
    }

    /// The record at a place that is still kept.
    #[inline]
    pub(super) fn record(&mut self, place: u64) -> &mut Record {
        &mut self.queue[(place - self.base) as usize]
    }

    /// End of the operation at `place`, if known; 0 if it is forgotten.
    #[inline]
    pub(super) fn end_of(&self, place: u64) -> Option<u64> {
        if place >= self.head {
            return None;
        }
        let kept = place.checked_sub(self.base);
        Some(kept.map_or(0, |index| self.queue[index as usize].time_ns))
    }

    /// Forgets what is over at `granted_ns`.
    #[inline]
    pub(super) fn trim(&mut self, granted_ns: u64) {
        while self.base < self.head && self.queue[0].time_ns <= granted_ns {
            self.queue.pop_front();
            self.base += 1;
        }
    }

    pub(super) fn clear(&mut self) {
        // Places go on: a token from before must not name a new operation.
        self.base += self.queue.len() as u64;
        self.head = self.base;
        self.queue.clear();
        self.free_ns = 0;
        self.former = Former::Other;
    }
}
