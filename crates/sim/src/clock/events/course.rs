//! The course of operations: releases, grants, ends.

use super::super::channel::{FirstAsk, NEVER_NS};
use super::super::device::{IS_REQUEST, NONE, Record};
use super::super::machine::add_ns;
use super::super::token::EventToken;
use super::{Events, UNKNOWN_NS};

impl Events {
    /// Appends an operation to its device; if that is idle, it is released.
    pub(super) fn enqueue(&mut self, device: u32, record: Record) -> EventToken {
        self.coupled += u32::from(record.after != EventToken::NOTHING);
        let granted_ns = self.granted_ns;
        let queue = &mut self.devices[device as usize];
        queue.trim(granted_ns);
        let place = queue.base + queue.queue.len() as u64;
        queue.queue.push_back(record);
        if place == queue.head {
            self.release(device);
            self.run_woken();
        }
        self.refresh(EventToken::op(device, place))
    }

    /// Releases the heads of all woken devices.
    fn run_woken(&mut self) {
        while let Some(device) = self.woken.pop() {
            self.release(device);
        }
    }

    /// Releases the head of a device, if there is one and it waits for nothing:
    /// it asks for the bus, or is on its way without.
    fn release(&mut self, device: u32) {
        let queue = &mut self.devices[device as usize];
        let place = queue.head;
        if queue.is_settled() {
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
            record.after = EventToken::NOTHING;
            self.coupled -= 1;
        }
        if self.machine.cache_commands && self.release_cached(device) {
            return;
        }
        let queue = &mut self.devices[device as usize];
        let (free_ns, channel, lane) = (queue.free_ns, queue.channel, queue.lane);
        let &mut Record {
            number,
            time_ns,
            shape: index,
            copies,
            ..
        } = queue.record(place);
        let release_ns = time_ns.max(free_ns);
        let shape = &self.shapes[index as usize];
        let (on_bus, is_bus_free) = (shape.starts_on_bus, shape.len == 0);
        let before_ns = shape.before_ns;
        if is_bus_free {
            let end_ns = add_ns(release_ns, shape.times_ns(copies));
            self.start(device, release_ns);
            self.end(device, end_ns);
            self.passed_gate(device, index, end_ns);
            return;
        }
        if !on_bus {
            self.start(device, release_ns);
        }
        let first = FirstAsk {
            step: 0,
            ask_ns: add_ns(release_ns, before_ns),
            started: !on_bus,
            cells_ns: 0,
        };
        self.ask((channel, lane), number, (index, copies), first);
    }

    /// An operation asks for the bus of its channel for the first time.
    #[inline(always)]
    pub(super) fn ask(
        &mut self,
        (channel, lane): (u32, u32),
        number: u64,
        shape_and_copies: (u32, u32),
        first: FirstAsk,
    ) {
        let on = &mut self.channels[channel as usize];
        on.ask(lane, number, shape_and_copies, first);
        self.asks_ns[channel as usize] = on.least_ask_ns();
        self.no_end_ns[channel as usize] = UNKNOWN_NS;
    }

    /// Puts a waiter into the list of an operation; returns what came first.
    pub(super) fn wait(&mut self, waiter: u32, device: u32, place: u64) -> u32 {
        let record = self.devices[device as usize].record(place);
        std::mem::replace(&mut record.waiters, waiter)
    }

    /// The end of a device's head is known. Leaves the device and those that
    /// wait for it to `run_woken`.
    fn end(&mut self, device: u32, end_ns: u64) {
        let queue = &mut self.devices[device as usize];
        let head = queue.head;
        let record = queue.record(head);
        record.time_ns = end_ns;
        let mut waiter = std::mem::replace(&mut record.waiters, NONE);
        queue.head += 1;
        queue.free_ns = end_ns;
        if let Some(watch) = &mut self.watch {
            watch.ended(device, end_ns);
        }
        if !queue.is_settled() {
            self.woken.push(device);
        }
        while waiter != NONE {
            let next;
            if waiter & IS_REQUEST == 0 {
                next = self.devices[waiter as usize].next_waiter;
                self.woken.push(waiter);
            } else {
                let slot = waiter & !IS_REQUEST;
                next = self.requests.next_waiter(slot);
                self.watch(slot);
            }
            waiter = next;
        }
    }

    /// The head of a device starts.
    pub(super) fn start(&mut self, device: u32, start_ns: u64) {
        let queue = &mut self.devices[device as usize];
        let head = queue.head;
        let record = queue.record(head);
        let (slot, number) = (record.request, record.number);
        if let Some(watch) = &mut self.watch {
            watch.started(device, queue.free_ns.min(start_ns), start_ns);
        }
        if slot != NONE {
            self.requests.started_in(slot, number, start_ns);
        }
    }

    /// Completes a closed request, or lets it wait for one of its own
    /// operations.
    pub(super) fn watch(&mut self, slot: u32) {
        let rest = self.rest(self.requests.own_of(slot));
        let next = rest
            .pending
            .map(|(device, place, token)| (token, self.wait(slot | IS_REQUEST, device, place)));
        self.requests.watched(slot, rest.known_ns, next);
    }
}

/// Grants.
impl Events {
    /// Grants every ask up to `until_ns`.
    #[inline]
    pub(super) fn grant_all(&mut self, until_ns: u64) {
        self.granted_ns = self.granted_ns.max(until_ns);
        if self.coupled > 0 {
            self.grant_in_order(until_ns);
            return;
        }
        for channel in 0..self.asks_ns.len() {
            if self.asks_ns[channel] <= until_ns {
                self.grant_channel(channel as u32, until_ns);
            }
        }
    }

    /// Grants every ask up to `until_ns`, in order over all channels.
    fn grant_in_order(&mut self, until_ns: u64) {
        loop {
            let (channel, ask_ns, others_ns) = self.least_ask();
            if ask_ns > until_ns {
                return;
            }
            self.grant(channel, until_ns.min(others_ns));
        }
    }

    /// Grants every ask of a channel up to `until_ns`; no operation waits for one of another channel.
    pub(super) fn grant_channel(&mut self, channel: u32, until_ns: u64) {
        while self.asks_ns[channel as usize] <= until_ns {
            self.grant(channel, until_ns);
        }
    }

    /// Grants the least ask, and others that come before any completion that is not known, all of them up to
    /// `until_ns`, which is at least the least ask.
    pub(super) fn grant_ahead(&mut self, until_ns: u64) {
        // No request completes before one of its operations ends.
        let (_, ask_ns, _) = self.least_ask();
        let until_ns = until_ns.min(ask_ns.max(self.no_end_ns() - 1));
        self.grant_all(until_ns);
        self.floor_ns = self.floor_ns.max(until_ns);
    }

    /// A time before which no operation ends whose end is not known: those that wait for others end after them.
    #[inline]
    pub(super) fn no_end_ns(&mut self) -> u64 {
        let mut least_ns = NEVER_NS;
        for (no_end_ns, channel) in self.no_end_ns.iter_mut().zip(&self.channels) {
            if *no_end_ns == UNKNOWN_NS {
                *no_end_ns = channel.no_end_ns(&self.shapes);
            }
            least_ns = least_ns.min(*no_end_ns);
        }
        least_ns
    }

    /// The channel with the least ask, that ask, and the least one of the other channels.
    #[inline]
    pub(super) fn least_ask(&self) -> (u32, u64, u64) {
        let (mut channel, mut least_ns, mut others_ns) = (0, NEVER_NS, NEVER_NS);
        for (i, &ask_ns) in self.asks_ns.iter().enumerate() {
            if ask_ns < least_ns {
                others_ns = least_ns;
                (channel, least_ns) = (i as u32, ask_ns);
            } else {
                others_ns = others_ns.min(ask_ns);
            }
        }
        (channel, least_ns, others_ns)
    }

    /// Grants asks of a channel up to `until_ns` until an operation starts or ends, and what follows from its end.
    fn grant(&mut self, channel: u32, until_ns: u64) {
        let on = &mut self.channels[channel as usize];
        let granted = on.grant(&self.shapes, until_ns);
        self.asks_ns[channel as usize] = on.least_ask_ns();
        self.no_end_ns[channel as usize] = UNKNOWN_NS;
        let Some(granted) = granted else {
            return;
        };
        let device = on.die_at(granted.lane);
        if let Some(start_ns) = granted.start_ns {
            let free_ns = self.devices[device as usize].free_ns;
            if start_ns < free_ns {
                self.overlaps(device, free_ns - start_ns);
            }
            self.start(device, start_ns);
        }
        if let Some(end_ns) = granted.end_ns {
            if self.machine.cache_commands {
                self.leave_open(device, granted.ask_ns, end_ns);
            }
            self.end(device, end_ns);
            self.run_woken();
        }
    }
}
