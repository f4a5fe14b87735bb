//! Host requests of the scheduling engine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::Completion;
use super::nodes::NONE;

/// A request that is not complete.
#[derive(Clone, Debug)]
struct Request {
    number: u64,
    issue_ns: u64,
    /// Latest known end of its own operations.
    end_ns: u64,
    /// Own operations that are not over.
    waits: u32,
    /// Operations issued for it, and of these those up to the last own one.
    issued: u32,
    last_own: u32,
    /// Earliest start of these.
    first_start_ns: u64,
    closed: bool,
}

/// The open request and those closed.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    slots: Vec<Request>,
    free: Vec<u32>,
    open: u32,
    /// Closed requests that are not complete.
    pub(super) incomplete: usize,
    /// Latest completion.
    pub(super) latest_ns: Option<u64>,
    /// Completions that were not handed out: end, number, first start.
    ready: BinaryHeap<Reverse<(u64, u64, u64)>>,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            open: NONE,
            incomplete: 0,
            latest_ns: None,
            ready: BinaryHeap::new(),
        }
    }
}

impl Requests {
    pub(super) fn begin(&mut self, number: u64, issue_ns: u64) {
        debug_assert_eq!(self.open, NONE, "a request is open already");
        let request = Request {
            number,
            issue_ns,
            end_ns: issue_ns,
            waits: 0,
            issued: 0,
            last_own: 0,
            first_start_ns: u64::MAX,
            closed: false,
        };
        self.open = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = request;
                slot
            }
            None => {
                self.slots.push(request);
                self.slots.len() as u32 - 1
            }
        };
    }

    /// One more operation is issued: for which request, and which of its operations it is.
    pub(super) fn issues(&mut self) -> ((u32, u64), u32) {
        let Some(open) = self.slots.get_mut(self.open as usize) else {
            return ((NONE, 0), 0);
        };
        open.issued += 1;
        ((self.open, open.number), open.issued)
    }

    /// The open request is not complete before `ns`.
    pub(super) fn own_known(&mut self, ns: u64) {
        if let Some(open) = self.slots.get_mut(self.open as usize) {
            open.last_own = open.issued;
            open.end_ns = open.end_ns.max(ns);
        }
    }

    /// The open request has work beside the flash, from its issue to then.
    pub(super) fn own_beside(&mut self, end_ns: u64) {
        if let Some(open) = self.slots.get_mut(self.open as usize) {
            open.first_start_ns = open.issue_ns;
            open.end_ns = open.end_ns.max(end_ns);
        }
    }

    /// The open request waits for one more end; its place.
    pub(super) fn own_pending(&mut self) -> Option<u32> {
        let open = self.slots.get_mut(self.open as usize)?;
        open.last_own = open.issued;
        open.waits += 1;
        Some(self.open)
    }

    /// An operation of a request starts.
    pub(super) fn started(&mut self, (slot, number): (u32, u64), ordinal: u32, start_ns: u64) {
        if let Some(request) = self.slots.get_mut(slot as usize)
            && request.number == number
            && ordinal <= request.last_own
        {
            request.first_start_ns = request.first_start_ns.min(start_ns);
        }
    }

    pub(super) fn close(&mut self) {
        let slot = std::mem::replace(&mut self.open, NONE);
        if let Some(request) = self.slots.get_mut(slot as usize) {
            request.closed = true;
            self.incomplete += 1;
            self.complete_if_done(slot);
        }
    }

    /// An end that a request waits for has come.
    pub(super) fn ended(&mut self, slot: u32, end_ns: u64) {
        let request = &mut self.slots[slot as usize];
        request.waits -= 1;
        request.end_ns = request.end_ns.max(end_ns);
        self.complete_if_done(slot);
    }

    fn complete_if_done(&mut self, slot: u32) {
        let request = &self.slots[slot as usize];
        if !request.closed || request.waits > 0 {
            return;
        }
        // What has not started by now was not the first to.
        let start_ns = match request.first_start_ns {
            u64::MAX => request.issue_ns,
            ns => ns,
        };
        let (end_ns, number) = (request.end_ns, request.number);
        self.ready.push(Reverse((end_ns, number, start_ns)));
        self.latest_ns = self.latest_ns.max(Some(end_ns));
        self.incomplete -= 1;
        // The number would still name it.
        self.slots[slot as usize].number = u64::MAX;
        self.free.push(slot);
    }

    /// End of the earliest completion that was not handed out.
    pub(super) fn first_ready_ns(&self) -> Option<u64> {
        self.ready.peek().map(|Reverse(first)| first.0)
    }

    pub(super) fn hand_out(&mut self) -> Option<Completion> {
        let Reverse((end_ns, request, first_start_ns)) = self.ready.pop()?;
        Some(Completion {
            end_ns,
            request,
            first_start_ns,
        })
    }

    pub(super) fn complete_by(&self, at_ns: u64) -> u64 {
        let by = self.ready.iter().filter(|Reverse(done)| done.0 <= at_ns);
        by.count() as u64
    }
}
