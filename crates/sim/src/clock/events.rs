//! The exact machinery for any machine (timing.md section 11, "Least exact
//! machinery").
//!
//! # How it works
//! Each die, and the PCM device, is a queue of operations; only its first
//! unfinished operation (the *head*) can ask for a bus, so there is at most one
//! ask a die. Asks are granted in order of (time, number). Granting the last
//! ask of an operation makes its end known ("it ends", whenever that is), which
//! lets the next one of its die ask, and those on other dies that wait for it.
//!
//! # What is kept
//! An operation is identified by its die and its place in the die's queue. When
//! all asks up to a time `granted` are granted, every operation whose end is not
//! known ends later than `granted`, and whatever is issued later is released at
//! `granted` or later. So an end that is known and not above `granted` delays
//! nobody any more: its record is dropped, and a token that still names it
//! counts as time 0. No token can dangle, and memory holds just the backlog.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::asks::Asks;
use super::device::{Device, IS_REQUEST, NONE, Record, Stage};
use super::machine::add_ns;
use super::token::{EventToken, PLACE_BITS, View};
use super::{Clock, Completion, FlashOp, MAX_DIES, Machine, OpKind, Phases, TIME_MAX_NS};

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

/// What remains of a token after looking at the known ends.
struct Rest {
    /// Latest of the known ends.
    known_ns: u64,
    /// An operation whose end is not known, and the token without what is
    /// known after it.
    pending: Option<(u32, u64, EventToken)>,
}

/// Clock of any machine. Ends become known as the bus is granted.
#[derive(Clone, Debug)]
pub struct Events {
    machine: Machine,
    /// Phases that occur; the ordinary ones of each kind come first.
    shapes: Vec<Phases>,
    shape_of: HashMap<(OpKind, u32, u32), u32>,
    /// The dies, then the PCM device.
    devices: Vec<Device>,
    /// End of the last grant on each channel.
    bus_ns: Vec<u64>,
    asks: Asks,
    /// Joined ends, from place `leaves_base` on.
    leaves: VecDeque<EventToken>,
    leaves_base: u64,
    /// Devices whose head may be released.
    woken: Vec<u32>,
    /// Number of operations issued.
    issued: u64,
    at_ns: u64,
    /// Every ask up to this time is granted, and none will come.
    granted_ns: u64,
    /// Time of the last ask granted: `at` may not go below it.
    last_ask_ns: u64,

    requests: Vec<Request>,
    free_request: u32,
    /// Slot of the open request.
    open: u32,
    /// Its own operations whose ends are not known.
    open_own: Vec<EventToken>,
    /// Earliest known start of its operations after the last own one.
    later_start_ns: u64,
    /// Closed requests whose completion is not known.
    incomplete: usize,
    /// Latest known completion.
    latest_ns: Option<u64>,
    /// Known completions: end, request, slot.
    ready: BinaryHeap<Reverse<(u64, u64, u32)>>,

    die_busy_ns: Vec<u64>,
    channel_busy_ns: Vec<u64>,
}

/// Ends: who waits for what.
impl Events {
    #[inline]
    fn device_of(&self, op: FlashOp) -> u32 {
        let pcm = self.devices.len() as u32 - 1;
        if op.kind.is_pcm() {
            return pcm;
        }
        assert!(op.die < pcm, "die {} does not exist", op.die);
        op.die
    }

    #[inline]
    fn shape(&mut self, op: FlashOp) -> u32 {
        if op.is_ordinary() {
            return op.kind as u32;
        }
        *self
            .shape_of
            .entry((op.kind, op.planes, op.bytes))
            .or_insert_with(|| {
                self.shapes.push(self.machine.phases(op));
                self.shapes.len() as u32 - 1
            })
    }

    #[inline]
    fn end_of(&self, device: u32, place: u64) -> Option<u64> {
        self.devices[device as usize].end_of(place)
    }

    /// The token with a known end in place of an operation that ended.
    #[inline]
    fn refresh(&self, token: EventToken) -> EventToken {
        match token.view() {
            View::Op { device, place } => {
                self.end_of(device, place).map_or(token, EventToken::known)
            }
            View::Known(_) | View::Group { .. } => token,
        }
    }

    /// Splits a token into what is known and what is not.
    #[inline]
    fn rest(&self, token: EventToken) -> Rest {
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

    /// Puts a waiter into the list of an operation; returns what came first.
    fn wait(&mut self, waiter: u32, device: u32, place: u64) -> u32 {
        let record = self.devices[device as usize].record(place);
        std::mem::replace(&mut record.waiters, waiter)
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
    fn leaves_end(&self) -> u64 {
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
    fn leaves_of(&self, token: EventToken, out: &mut Vec<EventToken>) {
        match token.view() {
            View::Group { first, len } => {
                let kept = first.max(self.leaves_base)..first + len;
                out.extend(kept.map(|leaf| self.leaves[(leaf - self.leaves_base) as usize]));
            }
            View::Known(_) | View::Op { .. } => out.push(token),
        }
    }

    /// Makes a token of several leaves; too many are reduced to one a device.
    fn gather(&mut self, leaves: &mut Vec<EventToken>) -> EventToken {
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
    fn grow(&mut self, all: EventToken, more: EventToken) -> EventToken {
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
}

/// The course of operations.
impl Events {
    /// Releases the heads of all woken devices.
    fn run_woken(&mut self) {
        while let Some(device) = self.woken.pop() {
            self.release(device);
        }
    }

    /// Releases the head of a device, if there is one and it waits for nothing:
    /// it asks for the bus, or is on its way without.
    fn release(&mut self, device: u32) {
        let place = self.devices[device as usize].head;
        let queue = &mut self.devices[device as usize];
        if place - queue.base >= queue.queue.len() as u64 {
            return;
        }
        let after = queue.record(place).after;
        if after != EventToken::NOTHING {
            let rest = self.rest(after);
            let record = self.devices[device as usize].record(place);
            record.time_ns = record.time_ns.max(rest.known_ns);
            if let Some((other, other_place, token)) = rest.pending {
                record.after = token;
                let next = self.wait(device, other, other_place);
                self.devices[device as usize].next_waiter = next;
                return;
            }
        }
        let queue = &mut self.devices[device as usize];
        let free_ns = queue.free_ns;
        let record = queue.record(place);
        let release_ns = record.time_ns.max(free_ns);
        let shape = &self.shapes[record.shape as usize];
        if shape.bus_1_ns > 0 {
            let number = record.number;
            queue.stage = Stage::FirstBus;
            self.asks.push(release_ns, number, device);
        } else {
            let after_cell_ns = add_ns(release_ns, shape.cell_1_ns);
            self.start(device, release_ns);
            self.after_first_cell(device, after_cell_ns);
        }
    }

    /// Grants the least ask.
    #[inline]
    fn grant_next(&mut self) {
        let Some((ask_ns, device)) = self.asks.pop() else {
            return;
        };
        self.last_ask_ns = ask_ns;
        let queue = &mut self.devices[device as usize];
        let stage = queue.stage;
        let bus = &mut self.bus_ns[queue.channel as usize];
        let start_ns = ask_ns.max(*bus);
        let head = queue.head;
        let shape = self.shapes[queue.record(head).shape as usize];
        match stage {
            Stage::FirstBus => {
                *bus = add_ns(start_ns, shape.bus_1_ns);
                let after_cell_ns = add_ns(*bus, shape.cell_1_ns);
                self.start(device, start_ns);
                self.after_first_cell(device, after_cell_ns);
            }
            Stage::SecondBus => {
                *bus = add_ns(start_ns, shape.bus_2_ns);
                let end_ns = add_ns(*bus, shape.cell_2_ns);
                self.end(device, end_ns);
            }
        }
        self.run_woken();
    }

    /// The first cell phase of a device's head is over at `now_ns`.
    #[inline]
    fn after_first_cell(&mut self, device: u32, now_ns: u64) {
        let queue = &mut self.devices[device as usize];
        let head = queue.head;
        let record = queue.record(head);
        let shape = &self.shapes[record.shape as usize];
        if shape.bus_2_ns > 0 {
            let number = record.number;
            queue.stage = Stage::SecondBus;
            self.asks.push(now_ns, number, device);
        } else {
            let end_ns = add_ns(now_ns, shape.cell_2_ns);
            self.end(device, end_ns);
        }
    }

    /// The end of a device's head is known. Leaves the device and those that
    /// wait for it to `run_woken`.
    #[inline]
    fn end(&mut self, device: u32, end_ns: u64) {
        let queue = &mut self.devices[device as usize];
        let head = queue.head;
        let record = queue.record(head);
        record.time_ns = end_ns;
        let mut waiter = std::mem::replace(&mut record.waiters, NONE);
        queue.head += 1;
        queue.free_ns = end_ns;
        self.woken.push(device);
        while waiter != NONE {
            let next;
            if waiter & IS_REQUEST == 0 {
                next = self.devices[waiter as usize].next_waiter;
                self.woken.push(waiter);
            } else {
                let slot = waiter & !IS_REQUEST;
                next = self.requests[slot as usize].next_waiter;
                self.watch(slot);
            }
            waiter = next;
        }
    }

    /// The head of a device starts.
    #[inline]
    fn start(&mut self, device: u32, start_ns: u64) {
        let queue = &mut self.devices[device as usize];
        let head = queue.head;
        let record = queue.record(head);
        let (slot, number) = (record.request, record.number);
        if slot == NONE {
            return;
        }
        let request = &mut self.requests[slot as usize];
        request.unstarted -= 1;
        if number <= request.last_own {
            request.first_start_ns = request.first_start_ns.min(start_ns);
        } else if slot == self.open {
            self.later_start_ns = self.later_start_ns.min(start_ns);
        }
        if request.unstarted == 0 && request.handed_out {
            self.free_slot(slot);
        }
    }

    /// Grants every ask up to `until_ns`.
    fn grant_until(&mut self, until_ns: u64) {
        while self
            .asks
            .least_ns()
            .is_some_and(|ask_ns| ask_ns <= until_ns)
        {
            self.grant_next();
        }
        self.granted_ns = self.granted_ns.max(until_ns);
    }
}

/// Host requests.
impl Events {
    /// Completes a closed request, or lets it wait for one of its own
    /// operations.
    fn watch(&mut self, slot: u32) {
        let rest = self.rest(self.requests[slot as usize].own);
        let request = &mut self.requests[slot as usize];
        request.end_ns = request.end_ns.max(rest.known_ns);
        if let Some((device, place, token)) = rest.pending {
            request.own = token;
            let next = self.wait(slot | IS_REQUEST, device, place);
            self.requests[slot as usize].next_waiter = next;
            return;
        }
        self.incomplete -= 1;
        self.latest_ns = self.latest_ns.max(Some(request.end_ns));
        self.ready
            .push(Reverse((request.end_ns, request.request, slot)));
    }

    /// Makes a completion of a request that was taken out of `ready`.
    fn hand_out(&mut self, slot: u32) -> Completion {
        let request = &mut self.requests[slot as usize];
        request.handed_out = true;
        let completion = Completion {
            end_ns: request.end_ns,
            request: request.request,
            first_start_ns: match request.first_start_ns {
                u64::MAX => request.issue_ns,
                start_ns => start_ns,
            },
        };
        if request.unstarted == 0 {
            self.free_slot(slot);
        }
        completion
    }

    fn free_slot(&mut self, slot: u32) {
        self.requests[slot as usize].next_waiter = self.free_request;
        self.free_request = slot;
    }

    /// A slot for a new request.
    fn new_slot(&mut self, request: Request) -> u32 {
        let slot = self.free_request;
        if slot == NONE {
            self.requests.push(request);
            return self.requests.len() as u32 - 1;
        }
        let old = std::mem::replace(&mut self.requests[slot as usize], request);
        self.free_request = old.next_waiter;
        slot
    }
}

impl Clock for Events {
    type Token = EventToken;
    const EXACT_AT_ISSUE: bool = false;

    fn new(machine: &Machine) -> Self {
        let dies = machine.dies.clamp(1, MAX_DIES);
        // Channels without a die carry nothing, but are reported.
        let channels = machine.channels.max(1) as usize;
        let die_channels = (0..dies).map(|die| machine.channel_of(die));
        Self {
            shapes: machine.ordinary_phases().to_vec(),
            shape_of: HashMap::new(),
            // The PCM device never asks, so its channel is never looked at.
            devices: die_channels.chain([0]).map(Device::new).collect(),
            bus_ns: vec![0; channels.min(dies as usize)],
            asks: Asks::new(dies),
            leaves: VecDeque::new(),
            leaves_base: 0,
            woken: Vec::new(),
            issued: 0,
            at_ns: 0,
            granted_ns: 0,
            last_ask_ns: 0,
            requests: Vec::new(),
            free_request: NONE,
            open: NONE,
            open_own: Vec::new(),
            later_start_ns: u64::MAX,
            incomplete: 0,
            latest_ns: None,
            ready: BinaryHeap::new(),
            die_busy_ns: vec![0; dies as usize + 1],
            channel_busy_ns: vec![0; channels],
            machine: machine.clone(),
        }
    }

    #[inline]
    fn set_time(&mut self, at_ns: u64) {
        self.at_ns = at_ns.min(TIME_MAX_NS);
    }

    fn issue(&mut self, op: FlashOp, after: EventToken) -> EventToken {
        let floor_ns = self.granted_ns.max(self.last_ask_ns);
        debug_assert!(
            self.at_ns >= floor_ns,
            "an operation at {} ns, but asks are granted up to {floor_ns} ns",
            self.at_ns
        );
        // Against the protocol, the past stays as it is.
        let at_ns = self.at_ns.max(floor_ns);
        if at_ns > self.granted_ns {
            self.grant_until(at_ns);
        }
        let device = self.device_of(op);
        let shape = self.shape(op);
        let phases = &self.shapes[shape as usize];
        let busy = &mut self.die_busy_ns[device as usize];
        *busy = busy.saturating_add(phases.total_ns());
        let bus_ns = phases.bus_ns();
        if bus_ns > 0 {
            let channel = self.devices[device as usize].channel as usize;
            let busy = &mut self.channel_busy_ns[channel];
            *busy = busy.saturating_add(bus_ns);
        }
        let (known_ns, after) = match self.refresh(after).view() {
            View::Known(ns) => (ns, EventToken::NOTHING),
            // The die's order says as much.
            View::Op { device: other, .. } if other == device => (0, EventToken::NOTHING),
            View::Op { .. } | View::Group { .. } => (0, after),
        };
        self.issued += 1;
        if self.open != NONE {
            self.requests[self.open as usize].unstarted += 1;
        }
        let record = Record {
            number: self.issued,
            time_ns: at_ns.max(known_ns),
            after,
            shape,
            request: self.open,
            waiters: NONE,
        };
        self.enqueue(device, record)
    }

    fn join(&mut self, a: EventToken, b: EventToken) -> EventToken {
        let (a, b) = (self.refresh(a), self.refresh(b));
        match (a.view(), b.view()) {
            (View::Known(x), View::Known(y)) => EventToken::known(x.max(y)),
            // What is over delays nobody.
            (View::Known(x), _) if x <= self.granted_ns => b,
            (_, View::Known(y)) if y <= self.granted_ns => a,
            (View::Op { device: x, .. }, View::Op { device: y, .. }) if x == y => {
                a.later_of_one_device(b)
            }
            (_, View::Known(_) | View::Op { .. }) => self.grow(a, b),
            (View::Known(_) | View::Op { .. }, _) => self.grow(b, a),
            (View::Group { .. }, View::Group { .. }) => self.grow_by_group(a, b),
        }
    }

    fn begin_request(&mut self, request: u64) {
        debug_assert!(self.open == NONE, "a request is open already");
        self.open = self.new_slot(Request {
            request,
            issue_ns: self.at_ns,
            end_ns: self.at_ns,
            own: EventToken::NOTHING,
            first_start_ns: u64::MAX,
            last_own: 0,
            unstarted: 0,
            next_waiter: NONE,
            handed_out: false,
        });
        self.open_own.clear();
        self.later_start_ns = u64::MAX;
    }

    fn own(&mut self, token: EventToken) {
        debug_assert!(self.open != NONE, "no request is open");
        let token = self.refresh(token);
        let Some(request) = self.requests.get_mut(self.open as usize) else {
            return;
        };
        request.last_own = self.issued;
        request.first_start_ns = request.first_start_ns.min(self.later_start_ns);
        self.later_start_ns = u64::MAX;
        if let View::Known(ns) = token.view() {
            request.end_ns = request.end_ns.max(ns);
        } else {
            let mut own = std::mem::take(&mut self.open_own);
            self.leaves_of(token, &mut own);
            self.open_own = own;
        }
    }

    fn end_request(&mut self) {
        debug_assert!(self.open != NONE, "no request is open");
        if self.open == NONE {
            return;
        }
        let mut own = std::mem::take(&mut self.open_own);
        let slot = std::mem::replace(&mut self.open, NONE);
        self.requests[slot as usize].own = self.gather(&mut own);
        self.open_own = own;
        self.incomplete += 1;
        self.watch(slot);
    }

    fn drain(&mut self, out: &mut Vec<Completion>) {
        while let Some(&Reverse((end_ns, _, slot))) = self.ready.peek() {
            // An operation that did not start could still be the first one;
            // not so if it can only start after the end.
            if end_ns > self.granted_ns && self.requests[slot as usize].unstarted > 0 {
                break;
            }
            self.ready.pop();
            out.push(self.hand_out(slot));
        }
    }

    fn next_completion(&mut self) -> Option<Completion> {
        debug_assert!(self.open == NONE, "a request is open");
        loop {
            let ask_ns = self.asks.least_ns().unwrap_or(u64::MAX);
            match self.ready.peek() {
                Some(&Reverse((end_ns, _, slot))) if end_ns <= ask_ns => {
                    self.ready.pop();
                    return Some(self.hand_out(slot));
                }
                None if ask_ns == u64::MAX => return None,
                _ => self.grant_next(),
            }
        }
    }

    fn idle_since(&mut self, until_ns: u64) -> Option<u64> {
        // While a completion is unknown, it lies behind the least ask.
        while self.incomplete > 0 && self.asks.least_ns().is_some_and(|ask_ns| ask_ns < until_ns) {
            self.grant_next();
        }
        if self.incomplete > 0 {
            return None;
        }
        self.latest_ns.filter(|&latest_ns| latest_ns < until_ns)
    }

    fn advance(&mut self, until_ns: u64) {
        self.grant_until(until_ns.min(TIME_MAX_NS));
    }

    fn finish(&mut self) {
        self.grant_until(TIME_MAX_NS);
    }

    fn known_end(&self, token: EventToken) -> Option<u64> {
        let rest = self.rest(token);
        rest.pending.is_none().then_some(rest.known_ns)
    }

    fn die_busy_ns(&self) -> &[u64] {
        &self.die_busy_ns[..self.die_busy_ns.len() - 1]
    }

    fn channel_busy_ns(&self) -> &[u64] {
        &self.channel_busy_ns
    }

    fn pcm_busy_ns(&self) -> u64 {
        self.die_busy_ns[self.die_busy_ns.len() - 1]
    }

    fn last_end_ns(&self) -> u64 {
        self.devices.iter().map(|d| d.free_ns).max().unwrap_or(0)
    }

    fn reset(&mut self) {
        // Leaves and places in queues go on: see `Device::clear`.
        self.devices.iter_mut().for_each(Device::clear);
        self.bus_ns.fill(0);
        self.asks.clear();
        self.leaves_base = self.leaves_end();
        self.leaves.clear();
        self.at_ns = 0;
        self.granted_ns = 0;
        self.last_ask_ns = 0;
        self.requests.clear();
        self.free_request = NONE;
        self.open = NONE;
        self.open_own.clear();
        self.incomplete = 0;
        self.latest_ns = None;
        self.ready.clear();
        self.die_busy_ns.fill(0);
        self.channel_busy_ns.fill(0);
    }
}

impl Events {
    /// Appends an operation to its device; if that is idle, it is released.
    fn enqueue(&mut self, device: u32, record: Record) -> EventToken {
        let queue = &mut self.devices[device as usize];
        queue.trim(self.granted_ns);
        let place = queue.base + queue.queue.len() as u64;
        queue.queue.push_back(record);
        if place == queue.head {
            self.release(device);
            self.run_woken();
        }
        self.refresh(EventToken::op(device, place))
    }

    /// The group of two groups: the longer one grows by the other, if it can.
    fn grow_by_group(&mut self, a: EventToken, b: EventToken) -> EventToken {
        let mut more = Vec::new();
        let (all, other) = match b.view() {
            View::Group { first, len } if first + len == self.leaves_end() => (b, a),
            _ => (a, b),
        };
        self.leaves_of(other, &mut more);
        more.into_iter().fold(all, |all, leaf| self.grow(all, leaf))
    }
}

#[cfg(test)]
impl Events {
    /// Records kept: operations, leaves, requests, completions.
    pub(super) fn footprint(&self) -> usize {
        let operations: usize = self.devices.iter().map(|d| d.queue.len()).sum();
        operations + self.leaves.len() + self.requests.len() + self.ready.len()
    }
}
