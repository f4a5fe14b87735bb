//! The exact machinery for any machine (docs/spec/timing.md, section 11, "Least exact
//! machinery").
//!
//! # How it works
//! Each die, and the PCM device, is a queue of operations; only its first
//! unfinished operation (the *head*) can ask for a bus, so there is at most one
//! ask a die. Asks of a channel are granted in order of (time, number). Granting the last
//! ask of an operation makes its end known ("it ends", whenever that is), which
//! lets the next one of its die ask, and those on other dies that wait for it.
//! A run of copies is one operation here; as long as nobody else asks for its channel, its copies follow each
//! other in closed form.
//!
//! # Channels on their own
//! Channels meet only where an operation waits for one of another channel. While none does, a channel is granted
//! its asks not before something is issued to it, and an operation whose asks all come at once gets its end
//! without a record. While one does, all channels go on in common order.
//!
//! # What is kept
//! An operation is identified by its die and its place in the die's queue. When
//! all asks up to `granted_ns` are granted on all channels, every operation whose end is not
//! known ends later, and so does whatever is issued later. So an end that is known and not above `granted_ns` delays
//! nobody any more, neither an operation nor the completion of a request: its record is dropped, and a token that
//! still names it counts as time 0. No token can dangle, and memory holds just the backlog.

mod cached;
mod course;
mod groups;
mod pcm;
mod requests;

use std::collections::VecDeque;

use floatgate_core::report::Cause;
use rustc_hash::FxHashMap;

use super::channel::{Channel, NEVER_NS};
use super::device::{Device, NONE, Record};
use super::machine::add_ns;
use super::pcm::ReadFirst;
use super::shape::{Shape, copy_shape, ordinary_shapes};
use super::token::{EventToken, View};
use super::watch::{Does, Note, Operation, Watch};
use super::{
    Clock, Completion, FlashOp, MAX_DIES, Machine, OpKind, Programming, Sensing, TIME_MAX_NS,
};
use requests::Requests;

/// Calls of `drain` after which all channels are looked at: completions on a channel that nobody asks for any
/// more must come out some time.
const DRAINS_EACH: u32 = 32;

/// In `no_end_ns`: something has changed.
const UNKNOWN_NS: u64 = 0;

/// Clock of any machine. Ends become known as the bus is granted.
#[derive(Clone, Debug)]
pub struct Events {
    machine: Machine,
    /// What occurs; the ordinary operations and copies come first.
    shapes: Vec<Shape>,
    shape_of: FxHashMap<(OpKind, u32, u32, Sensing, Programming), u32>,
    /// The dies, then the PCM chips.
    devices: Vec<Device>,
    channels: Vec<Channel>,
    /// The least ask of each channel.
    asks_ns: Vec<u64>,
    /// By channel: no operation on it ends before that time; `UNKNOWN_NS` until somebody asks.
    no_end_ns: Vec<u64>,
    /// Operations that were issued after one whose end was not known, and are not released.
    coupled: u32,
    /// Joined ends, from place `leaves_base` on.
    leaves: VecDeque<EventToken>,
    leaves_base: u64,
    /// Devices whose head may be released.
    woken: Vec<u32>,
    /// Number of operations issued.
    issued: u64,
    at_ns: u64,
    /// No operation will be issued with `at` below it.
    floor_ns: u64,
    /// All asks up to that time are granted on all channels: an operation whose end is not known ends later.
    /// It may lag behind `floor_ns`.
    granted_ns: u64,
    drains: u32,
    requests: Requests,
    die_busy_ns: Vec<u64>,
    channel_busy_ns: Vec<u64>,
    /// The PCM chips, if they read first.
    pcm: Vec<ReadFirst>,
    /// Then: the shape of a write on its way to one of them; else `NONE`.
    gate: u32,
    /// For those who record requests.
    watch: Option<Box<Watch>>,
    no_notes: Vec<Note>,
    /// Why the newest operation is done, for them.
    cause: Cause,
}

impl Events {
    #[inline(always)]
    fn device_of(&self, op: FlashOp) -> u32 {
        let dies = self.dies();
        if op.kind.is_pcm() {
            return dies + op.die;
        }
        assert!(op.die < dies, "die {} does not exist", op.die);
        op.die
    }

    #[inline(always)]
    fn shape(&mut self, op: FlashOp) -> u32 {
        if op.is_ordinary() {
            return op.kind as u32;
        }
        self.unusual_shape(op)
    }

    #[inline(never)]
    fn unusual_shape(&mut self, op: FlashOp) -> u32 {
        *self
            .shape_of
            .entry((op.kind, op.planes, op.bytes, op.sensing, op.programming))
            .or_insert_with(|| {
                self.shapes.push(self.machine.phases(op).into());
                self.shapes.len() as u32 - 1
            })
    }

    /// Issues an operation, or `copies` copies in a run.
    fn issue_row(&mut self, device: u32, shape: u32, copies: u32, after: EventToken) -> EventToken {
        debug_assert!(
            self.at_ns >= self.floor_ns,
            "an operation at {} ns, but asks are granted up to {} ns",
            self.at_ns,
            self.floor_ns
        );
        // Against the protocol, the past stays as it is.
        let at_ns = self.at_ns.max(self.floor_ns);
        self.floor_ns = at_ns;
        let channel = self.devices[device as usize].channel;
        if self.coupled > 0 {
            self.grant_all(at_ns);
        } else if channel != NONE && self.asks_ns[channel as usize] <= at_ns {
            self.grant_channel(channel, at_ns);
        }
        self.issued += 1;
        self.count_busy(device, shape, copies);
        let (known_ns, after) = if after == EventToken::NOTHING {
            (0, after)
        } else {
            self.what_is_left(device, after)
        };
        let queue = &mut self.devices[device as usize];
        let free_ns = queue.free_ns;
        let release_ns = at_ns.max(known_ns).max(free_ns);
        let settled = queue.is_settled() && after == EventToken::NOTHING;
        if settled
            && let Some((start_ns, end_ns)) = self.end_at_once(device, shape, copies, release_ns)
        {
            if self.watch.is_some() {
                self.tell(device, shape, copies, Some((free_ns, start_ns, end_ns)));
            }
            return EventToken::known(end_ns);
        }
        if self.watch.is_some() {
            self.tell(device, shape, copies, None);
        }
        // When a PCM write that can be put off starts, its request may be long over.
        let request = match shape == self.gate {
            true => NONE,
            false => self.requests.slot_of_open(),
        };
        let record = Record {
            number: self.issued,
            time_ns: at_ns.max(known_ns),
            after,
            shape,
            copies,
            request,
            waiters: NONE,
        };
        self.enqueue(device, record)
    }

    /// Tells of an operation that is issued; of one whose end is known at once since when its device was free, its start
    /// and its end.
    #[cold]
    fn tell(&mut self, device: u32, shape: u32, copies: u32, known_ns: Option<(u64, u64, u64)>) {
        let does = match OpKind::ALL.get(shape as usize) {
            Some(&kind) => Does::One(kind),
            None if shape == copy_shape(false) || shape == copy_shape(true) => Does::Copies {
                pages: copies,
                inside: shape == copy_shape(true),
            },
            None if shape == self.gate => Does::One(OpKind::PcmWrite),
            None => Does::One(self.unusual_kind(shape)),
        };
        let (free_ns, start_ns, end_ns) = known_ns.unwrap_or_default();
        let operation = Operation {
            die: device,
            does,
            cause: self.cause,
            request: self.requests.open(),
            start_ns,
            end_ns,
        };
        match (&mut self.watch, known_ns) {
            (Some(watch), Some(_)) => watch.at_once(operation, free_ns),
            (Some(watch), None) => watch.queued(operation),
            (None, _) => {}
        }
    }

    /// The kind of an operation of an unusual length.
    fn unusual_kind(&self, shape: u32) -> OpKind {
        let mut known = self.shape_of.iter();
        let found = known.find(|&(_, &of)| of == shape);
        found.map_or(OpKind::Read, |(&(kind, ..), _)| kind)
    }

    #[inline]
    fn count_busy(&mut self, device: u32, shape: u32, copies: u32) {
        let shape = &self.shapes[shape as usize];
        let (mut total_ns, mut bus_ns) = (shape.total_ns, shape.bus_ns);
        if copies > 1 {
            total_ns = shape.times_ns(copies);
            bus_ns = bus_ns.saturating_mul(copies.into());
        }
        let busy = &mut self.die_busy_ns[device as usize];
        *busy = busy.saturating_add(total_ns);
        if bus_ns > 0 {
            let channel = self.devices[device as usize].channel as usize;
            let busy = &mut self.channel_busy_ns[channel];
            *busy = busy.saturating_add(bus_ns);
        }
    }

    /// Start and end of an operation of a device without a backlog, if nothing issued later can change it: none
    /// of its bus holds is asked for after `floor_ns`, or it has none.
    #[inline]
    fn end_at_once(
        &mut self,
        device: u32,
        shape: u32,
        copies: u32,
        release_ns: u64,
    ) -> Option<(u64, u64)> {
        if shape == self.gate {
            self.devices[device as usize].free_ns = release_ns;
            self.passed_gate(device, shape, release_ns);
            return Some((release_ns, release_ns));
        }
        if self.machine.cache_commands {
            return None;
        }
        let shape = &self.shapes[shape as usize];
        let queue = &mut self.devices[device as usize];
        let (start_ns, end_ns) = match shape.len {
            0 => (release_ns, add_ns(release_ns, shape.times_ns(copies))),
            1 if copies == 1 && add_ns(release_ns, shape.before_ns) <= self.floor_ns => {
                let ask_ns = add_ns(release_ns, shape.before_ns);
                let channel = &mut self.channels[queue.channel as usize];
                channel.disturb();
                let bus = &mut channel.bus_ns;
                let granted_ns = ask_ns.max(*bus);
                *bus = add_ns(granted_ns, shape.steps[0].bus_ns);
                let start_ns = if shape.starts_on_bus {
                    granted_ns
                } else {
                    release_ns
                };
                (start_ns, add_ns(*bus, shape.steps[0].cell_ns))
            }
            _ => return None,
        };
        queue.free_ns = end_ns;
        self.requests.started(start_ns);
        Some((start_ns, end_ns))
    }

    /// What an operation of `device` must still wait for: a time, and ends that are not known.
    fn what_is_left(&mut self, device: u32, after: EventToken) -> (u64, EventToken) {
        match self.refresh(after).view() {
            View::Known(ns) => return (ns, EventToken::NOTHING),
            // The die's order says as much.
            View::Op { device: other, .. } if other == device => return (0, EventToken::NOTHING),
            View::Op { .. } | View::Group { .. } => {}
        }
        // Some channels may not have been looked at for long.
        self.grant_all(self.floor_ns);
        let rest = self.rest(after);
        match rest.pending {
            None => (rest.known_ns, EventToken::NOTHING),
            Some((other, _, token)) if other == device && !token.is_group() => {
                (rest.known_ns, EventToken::NOTHING)
            }
            Some((.., token)) => (rest.known_ns, token),
        }
    }
}

impl Clock for Events {
    type Token = EventToken;
    const EXACT_AT_ISSUE: bool = false;

    fn new(machine: &Machine) -> Self {
        let dies = machine.dies.clamp(1, MAX_DIES);
        let pcm_chips = machine.pcm.chips.max(1);
        // Channels without a die carry nothing, but are reported.
        let reported = machine.channels.max(1);
        let channels = machine.used_channels();
        let mut dies_of = vec![Vec::new(); channels as usize];
        let mut devices: Vec<_> = (0..dies)
            .map(|die| {
                let channel = machine.channel_of(die);
                let lanes = &mut dies_of[channel as usize];
                lanes.push(die);
                Device::new(channel, lanes.len() as u32 - 1)
            })
            .collect();
        devices.extend((0..pcm_chips).map(|_| Device::new(NONE, NONE)));
        let mut events = Self {
            shapes: ordinary_shapes(machine.ordinary_phases()),
            shape_of: FxHashMap::default(),
            devices,
            channels: dies_of.into_iter().map(Channel::new).collect(),
            asks_ns: vec![NEVER_NS; channels as usize],
            no_end_ns: vec![NEVER_NS; channels as usize],
            coupled: 0,
            leaves: VecDeque::new(),
            leaves_base: 0,
            woken: Vec::new(),
            issued: 0,
            at_ns: 0,
            floor_ns: 0,
            granted_ns: 0,
            drains: 0,
            requests: Requests::default(),
            die_busy_ns: vec![0; (dies + pcm_chips) as usize],
            channel_busy_ns: vec![0; reported as usize],
            machine: machine.clone(),
            pcm: Vec::new(),
            gate: NONE,
            watch: None,
            no_notes: Vec::new(),
            cause: Cause::Host,
        };
        events.open_gates();
        events
    }

    #[inline]
    fn set_time(&mut self, at_ns: u64) {
        self.at_ns = at_ns.min(TIME_MAX_NS);
    }

    #[inline(always)]
    fn issue(&mut self, op: FlashOp, after: EventToken) -> EventToken {
        if op.kind.is_pcm() && self.gate != NONE {
            return self.issue_read_first(op, after);
        }
        let device = self.device_of(op);
        let shape = self.shape(op);
        self.cause = op.cause;
        self.issue_row(device, shape, 1, after)
    }

    fn copies(
        &mut self,
        die: u32,
        pages: u32,
        copyback: bool,
        cause: Cause,
        after: EventToken,
    ) -> EventToken {
        if pages == 0 {
            return after;
        }
        let device = self.device_of(FlashOp::new(OpKind::CopyBack, die));
        self.cause = cause;
        self.issue_row(device, copy_shape(copyback), pages, after)
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

    #[inline]
    fn begin_request(&mut self, request: u64) {
        self.requests.begin(request, self.at_ns);
    }

    #[inline]
    fn own(&mut self, token: EventToken) {
        let token = self.refresh(token);
        if let View::Known(ns) = token.view() {
            self.requests.own(self.issued, ns);
        } else {
            self.requests.own(self.issued, 0);
            let mut pending = std::mem::take(&mut self.requests.open_own);
            self.leaves_of(token, &mut pending);
            self.requests.open_own = pending;
        }
    }

    fn own_beside(&mut self, end_ns: u64) {
        self.requests.own_beside(end_ns.min(TIME_MAX_NS));
    }

    fn end_request(&mut self) {
        let mut own = std::mem::take(&mut self.requests.open_own);
        let token = self.gather(&mut own);
        own.clear();
        self.requests.open_own = own;
        if let Some(slot) = self.requests.close(token) {
            self.watch(slot);
        }
    }

    #[inline]
    fn end_request_known(&mut self) -> Option<Completion> {
        let completion = self.requests.close_known();
        if completion.is_none() {
            self.end_request();
        }
        completion
    }

    fn drain(&mut self, out: &mut Vec<Completion>) {
        self.drains += 1;
        if self.drains >= DRAINS_EACH {
            self.drains = 0;
            self.grant_all(self.floor_ns);
        }
        while let Some((end_ns, unstarted)) = self.requests.first_ready() {
            // An operation that did not start could still be the first one;
            // not so if it can only start after the end.
            if unstarted {
                if end_ns > self.floor_ns {
                    break;
                }
                self.grant_all(self.floor_ns);
            }
            out.extend(self.requests.hand_out());
        }
    }

    fn next_completion_by(&mut self, by_ns: u64) -> Option<Completion> {
        loop {
            let (_, ask_ns, _) = self.least_ask();
            match self.requests.first_ready() {
                // What is not known lies behind the least ask.
                Some((end_ns, _)) if end_ns > by_ns && ask_ns > by_ns => return None,
                Some((end_ns, _)) if end_ns <= ask_ns => return self.requests.hand_out(),
                // All others are later, whatever is granted before.
                Some((end_ns, false)) if end_ns <= by_ns && end_ns < self.no_end_ns() => {
                    return self.requests.hand_out();
                }
                Some((end_ns, _)) => self.grant_ahead((end_ns - 1).min(by_ns)),
                None if ask_ns > by_ns || self.requests.incomplete == 0 => return None,
                None => self.grant_ahead(by_ns),
            }
        }
    }

    fn settle(&mut self, at_ns: u64) {
        // While a completion is unknown, it lies behind the least ask.
        while self.requests.incomplete > 0 && self.least_ask().1 <= at_ns {
            self.grant_ahead(at_ns);
        }
    }

    fn complete_by(&self, at_ns: u64) -> u64 {
        self.requests.complete_by(at_ns)
    }

    fn idle_since(&mut self, until_ns: u64) -> Option<u64> {
        if until_ns > 0 {
            self.settle(until_ns - 1);
        }
        if self.requests.incomplete > 0 {
            return None;
        }
        self.requests
            .latest_ns
            .filter(|&latest_ns| latest_ns < until_ns)
    }

    fn catch_up(&mut self) {
        self.grant_all(self.floor_ns);
    }

    fn advance(&mut self, until_ns: u64) {
        self.floor_ns = self.floor_ns.max(until_ns.min(TIME_MAX_NS));
        self.grant_all(self.floor_ns);
    }

    fn finish(&mut self) {
        self.advance(TIME_MAX_NS);
        self.begin_all_writes();
    }

    fn known_end(&self, token: EventToken) -> Option<u64> {
        let rest = self.rest(token);
        rest.pending.is_none().then_some(rest.known_ns)
    }

    fn die_busy_ns(&self) -> Vec<u64> {
        self.die_busy_ns[..self.dies() as usize].to_vec()
    }

    fn channel_busy_ns(&self) -> Vec<u64> {
        self.channel_busy_ns.clone()
    }

    fn pcm_busy_ns(&self) -> u64 {
        let chips = self.die_busy_ns[self.dies() as usize..].iter();
        chips.fold(0, |sum, &busy_ns| sum.saturating_add(busy_ns))
    }

    fn last_end_ns(&self) -> u64 {
        let devices = self.devices.iter().map(|d| d.free_ns);
        let chips = self.pcm.iter().map(ReadFirst::free_ns);
        devices.chain(chips).max().unwrap_or(0)
    }

    fn watch(&mut self, operations: bool) {
        self.watch = Some(Box::new(Watch::new(self.devices.len(), operations)));
    }

    fn watched(&mut self, _request: Option<u64>) {}

    fn notes(&mut self) -> &mut Vec<Note> {
        match &mut self.watch {
            Some(watch) => &mut watch.notes,
            None => &mut self.no_notes,
        }
    }

    fn operations(&mut self) -> Option<&mut Vec<Operation>> {
        Some(&mut self.watch.as_mut()?.operations)
    }

    fn reset(&mut self) {
        // Leaves and places in queues go on: see `Device::clear`.
        self.devices.iter_mut().for_each(Device::clear);
        self.pcm.fill(ReadFirst::default());
        self.channels.iter_mut().for_each(Channel::clear);
        self.asks_ns.fill(NEVER_NS);
        self.no_end_ns.fill(NEVER_NS);
        self.coupled = 0;
        self.leaves_base = self.leaves_end();
        self.leaves.clear();
        self.at_ns = 0;
        self.floor_ns = 0;
        self.granted_ns = 0;
        self.requests = Requests::default();
        self.die_busy_ns.fill(0);
        self.channel_busy_ns.fill(0);
    }
}

#[cfg(test)]
impl Events {
    /// Records kept: operations, leaves, requests, completions.
    pub(super) fn footprint(&self) -> usize {
        let operations: usize = self.devices.iter().map(|d| d.queue.len()).sum();
        operations + self.leaves.len() + self.requests.footprint()
    }
}
