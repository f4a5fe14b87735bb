//! Host requests of the event engine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::Completion;
use super::super::device::NONE;
use super::super::token::EventToken;

/// A host request that was not handed out, or has operations that did not start.
#[derive(Clone, Debug)]
struct Request {
    request: u64,
    issue_ns: u64,
    /// Latest known end of its own operations; the issue at first.
    end_ns: u64,
    /// Its other own operations.
    own: EventToken,
    /// Earliest known start of the operations up to the last own one.
    first_start_ns: u64,
    /// Number of the newest operation at the last call of `own`.
    last_own: u64,
    /// Operations of this request that did not start.
    unstarted: u32,
    /// Next waiter in the list that it is in, or next free slot.
    next_waiter: u32,
    /// Handed out: the slot only waits for `unstarted`.
    handed_out: bool,
}

impl Request {
    fn new(request: u64, issue_ns: u64) -> Self {
        Self {
            request,
            issue_ns,
            end_ns: issue_ns,
            own: EventToken::NOTHING,
            first_start_ns: u64::MAX,
            last_own: 0,
            unstarted: 0,
            next_waiter: NONE,
            handed_out: false,
        }
    }

    #[inline]
    fn completion(&self) -> Completion {
        Completion::of(
            self.request,
            self.issue_ns,
            self.first_start_ns,
            self.end_ns,
        )
    }
}

/// The open request and those closed.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    /// The open request. It gets a slot when the first of its operations gets a record.
    open: Option<Request>,
    open_slot: u32,
    /// Its own operations whose ends are not known.
    pub(super) open_own: Vec<EventToken>,
    /// Earliest known start of its operations after the last own one.
    later_start_ns: u64,
    slots: Vec<Request>,
    free_slot: u32,
    /// Closed requests whose completion is not known.
    pub(super) incomplete: usize,
    /// Latest known completion.
    pub(super) latest_ns: Option<u64>,
    /// Known completions: end, request, slot.
    ready: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            open: None,
            open_slot: NONE,
            open_own: Vec::new(),
            later_start_ns: u64::MAX,
            slots: Vec::new(),
            free_slot: NONE,
            incomplete: 0,
            latest_ns: None,
            ready: BinaryHeap::new(),
        }
    }
}

/// The open request.
impl Requests {
    #[inline]
    pub(super) fn begin(&mut self, request: u64, issue_ns: u64) {
        debug_assert!(self.open.is_none(), "a request is open already");
        self.open = Some(Request::new(request, issue_ns));
        self.open_slot = NONE;
        self.open_own.clear();
        self.later_start_ns = u64::MAX;
    }

    /// Its number.
    pub(super) fn open(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.request)
    }

    /// One of its operations starts then; it has no record.
    #[inline]
    pub(super) fn started(&mut self, start_ns: u64) {
        self.later_start_ns = self.later_start_ns.min(start_ns);
    }

    /// The slot of the open request for the record of one more of its operations; `NONE` without a request.
    #[inline]
    pub(super) fn slot_of_open(&mut self) -> u32 {
        let Some(open) = &mut self.open else {
            return NONE;
        };
        open.unstarted += 1;
        if self.open_slot == NONE {
            let place = Request::new(open.request, open.issue_ns);
            self.open_slot = self.new_slot(place);
        }
        self.open_slot
    }

    /// It has an own operation, the newest being number `issued`, whose end is at `known_ns` or unknown (0).
    #[inline]
    pub(super) fn own(&mut self, issued: u64, known_ns: u64) {
        debug_assert!(self.open.is_some(), "no request is open");
        if let Some(open) = &mut self.open {
            open.last_own = issued;
            open.first_start_ns = open.first_start_ns.min(self.later_start_ns);
            open.end_ns = open.end_ns.max(known_ns);
            self.later_start_ns = u64::MAX;
        }
    }

    /// It has work beside the flash, from its issue to then.
    pub(super) fn own_beside(&mut self, end_ns: u64) {
        debug_assert!(self.open.is_some(), "no request is open");
        if let Some(open) = &mut self.open {
            open.first_start_ns = open.issue_ns;
            open.end_ns = open.end_ns.max(end_ns);
        }
    }

    /// Closes the open request if its completion is known for good.
    #[inline]
    pub(super) fn close_known(&mut self) -> Option<Completion> {
        if self.open_slot != NONE || !self.open_own.is_empty() {
            return None;
        }
        let completion = self.open.take()?.completion();
        self.latest_ns = self.latest_ns.max(Some(completion.end_ns));
        Some(completion)
    }

    /// Closes the open request, which also waits for `own`. Returns its slot, to be watched.
    pub(super) fn close(&mut self, own: EventToken) -> Option<u32> {
        debug_assert!(self.open.is_some(), "no request is open");
        let request = Request {
            own,
            ..self.open.take()?
        };
        let slot = std::mem::replace(&mut self.open_slot, NONE);
        self.incomplete += 1;
        Some(if slot == NONE {
            self.new_slot(request)
        } else {
            self.slots[slot as usize] = request;
            slot
        })
    }
}

/// Closed requests.
impl Requests {
    /// What a closed request still waits for.
    #[inline]
    pub(super) fn own_of(&self, slot: u32) -> EventToken {
        self.slots[slot as usize].own
    }

    #[inline]
    pub(super) fn next_waiter(&self, slot: u32) -> u32 {
        self.slots[slot as usize].next_waiter
    }

    /// Own operations end at `known_ns`; `rest`: the others, and the next in the list where the request waits
    /// for one of them.
    pub(super) fn watched(&mut self, slot: u32, known_ns: u64, rest: Option<(EventToken, u32)>) {
        let request = &mut self.slots[slot as usize];
        request.end_ns = request.end_ns.max(known_ns);
        if let Some((own, next_waiter)) = rest {
            request.own = own;
            request.next_waiter = next_waiter;
            return;
        }
        self.incomplete -= 1;
        self.latest_ns = self.latest_ns.max(Some(request.end_ns));
        self.ready
            .push(Reverse((request.end_ns, request.request, slot)));
    }

    /// Operation `number`, which has a record, starts.
    pub(super) fn started_in(&mut self, slot: u32, number: u64, start_ns: u64) {
        if slot == self.open_slot {
            let open = self.open.as_mut().expect("its slot is in use");
            open.unstarted -= 1;
            if number <= open.last_own {
                open.first_start_ns = open.first_start_ns.min(start_ns);
            } else {
                self.later_start_ns = self.later_start_ns.min(start_ns);
            }
            return;
        }
        let request = &mut self.slots[slot as usize];
        request.unstarted -= 1;
        if number <= request.last_own {
            request.first_start_ns = request.first_start_ns.min(start_ns);
        }
        if request.unstarted == 0 && request.handed_out {
            self.give_back(slot);
        }
    }

    /// Completion of the request that is complete first of those known, and whether one of its operations did not start.
    #[inline]
    pub(super) fn first_ready(&self) -> Option<(u64, bool)> {
        let &Reverse((end_ns, _, slot)) = self.ready.peek()?;
        Some((end_ns, self.slots[slot as usize].unstarted > 0))
    }

    /// Known completions up to `at_ns` that were not handed out.
    pub(super) fn complete_by(&self, at_ns: u64) -> u64 {
        let over = |ready: &&Reverse<(u64, u64, u32)>| ready.0.0 <= at_ns;
        self.ready.iter().filter(over).count() as u64
    }

    /// Hands out that completion.
    pub(super) fn hand_out(&mut self) -> Option<Completion> {
        debug_assert!(self.open.is_none(), "a request is open");
        let Reverse((.., slot)) = self.ready.pop()?;
        let request = &mut self.slots[slot as usize];
        request.handed_out = true;
        let completion = request.completion();
        if request.unstarted == 0 {
            self.give_back(slot);
        }
        Some(completion)
    }

    fn give_back(&mut self, slot: u32) {
        self.slots[slot as usize].next_waiter = self.free_slot;
        self.free_slot = slot;
    }

    fn new_slot(&mut self, request: Request) -> u32 {
        let slot = self.free_slot;
        if slot == NONE {
            self.slots.push(request);
            return self.slots.len() as u32 - 1;
        }
        let old = std::mem::replace(&mut self.slots[slot as usize], request);
        self.free_slot = old.next_waiter;
        slot
    }

    #[cfg(test)]
    pub(super) fn footprint(&self) -> usize {
        self.slots.len() + self.ready.len()
    }
}
