//! The clock of a device that chooses which operation a die does next ([`Schedule`]).
//!
//! A scheme decides what happens in the order of its calls, and this clock when: so it can let a read overtake the
//! collection that was issued before it, as long as [no page or block](hazards) notices. It goes through time event by
//! event: at one instant first everything that ends then, then each free die takes its next operation, then each free bus
//! goes to who asked first.
//!
//! With [`Policy::Fifo`](super::Policy::Fifo) it gives the times of the other engines, more slowly; tests hold it to that.

mod device;
mod hazards;
mod nodes;
mod requests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use floatgate_core::report::Cause;

use super::machine::add_ns;
use super::schedule::{Policy, Schedule, ScheduleStats};
use super::watch::{Does, Note, Operation};
use super::{Clock, Completion, FlashOp, MAX_DIES, Machine, OpKind, TIME_MAX_NS};
use device::Device;
use hazards::Hazards;
pub use nodes::NodeToken;
use nodes::{End, Follower, NONE, Nodes, Op};
use requests::Requests;

/// The phase of an operation that waits for a known time before it is ready.
const RELEASE: u8 = u8::MAX;

/// A bus.
#[derive(Clone, Debug, Default)]
struct Bus {
    busy_until_ns: u64,
    busy_ns: u64,
    /// Time, number, place.
    asks: BTreeSet<(u64, u64, u32)>,
}

/// What is looked at when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Node(u32),
    Device(u32),
}

/// What is told to those who record requests.
#[derive(Clone, Debug, Default)]
struct Told {
    notes: Vec<Note>,
    operations: Vec<Operation>,
    keeps_operations: bool,
}

/// Clock of a device with a schedule.
#[derive(Clone, Debug)]
pub struct Scheduled {
    machine: Machine,
    schedule: Schedule,
    nodes: Nodes,
    hazards: Hazards,
    /// The dies, then the PCM chips.
    devices: Vec<Device>,
    buses: Vec<Bus>,
    events: BinaryHeap<Reverse<(u64, Due)>>,
    /// Devices that may begin something now.
    dirty: Vec<u32>,
    /// Whether a bus may be granted now.
    asks_are_new: bool,
    /// Nodes that are over, whose followers have not heard of it.
    ended: Vec<(u32, u64)>,
    requests: Requests,
    stats: ScheduleStats,
    issued: u64,
    /// Everything before it has happened, and what ends then.
    now_ns: u64,
    at_ns: u64,
    die_busy_ns: Vec<u64>,
    last_end_ns: u64,
    told: Option<Box<Told>>,
    no_notes: Vec<Note>,
}

/// Work.
impl Scheduled {
    fn dies(&self) -> u32 {
        self.devices.len() as u32 - self.machine.pcm.chips.max(1)
    }

    /// Class of an operation: 0 goes first.
    fn class(&self, op: FlashOp) -> u8 {
        if op.kind.is_pcm() {
            return u8::from(op.kind == OpKind::PcmWrite);
        }
        let is_read = matches!(op.kind, OpKind::Read | OpKind::OobRead) && op.cause != Cause::Gc;
        match self.schedule.policy {
            Policy::Fifo | Policy::Ready => 0,
            Policy::ReadFirst => u8::from(!is_read),
            Policy::HostFirst if is_read => 0,
            Policy::HostFirst if op.cause == Cause::Gc || op.kind == OpKind::Erase => 2,
            Policy::HostFirst => 1,
        }
    }

    /// Whether operations of a kind keep the order of issue: of PCM chips that read first, the writes do.
    fn keeps_order(&self, kind: OpKind) -> bool {
        match kind {
            OpKind::PcmRead => !self.machine.pcm.read_first,
            OpKind::PcmWrite => true,
            _ => self.schedule.policy == Policy::Fifo,
        }
    }

    /// Whether nothing can wait for an operation of that kind.
    fn is_put_off(&self, kind: OpKind) -> bool {
        kind == OpKind::PcmWrite && self.machine.pcm.read_first
    }

    /// Issues an operation.
    fn add(&mut self, op: FlashOp, after: NodeToken) -> NodeToken {
        let dies = self.dies();
        let device = match op.kind.is_pcm() {
            true => dies + op.die,
            false => {
                assert!(op.die < dies, "die {} does not exist", op.die);
                op.die
            }
        };
        let at_ns = self.at_ns.max(self.now_ns);
        self.run_to(at_ns);
        self.issued += 1;
        if self.schedule.policy != Policy::Fifo && self.hazards.is_held(&self.nodes, op) {
            self.stats.reads_from_controller += 1;
            return self.join(after, NodeToken::known(at_ns));
        }
        let phases = self.machine.phases(op);
        self.count_busy(device, phases.total_ns(), phases.bus_ns());
        let class = self.class(op);
        // A write that can be put off begins when its request may be long over.
        let (request, ordinal) = match self.is_put_off(op.kind) {
            true => ((NONE, 0), 0),
            false => self.requests.issues(),
        };
        let place = self.nodes.add(
            self.issued,
            at_ns,
            Some(Op {
                kind: op.kind,
                cause: op.cause,
                device,
                page: op.page,
                class,
                phases_ns: [
                    phases.bus_1_ns,
                    phases.cell_1_ns,
                    phases.bus_2_ns,
                    phases.cell_2_ns,
                ],
                phase: 0,
                suspended: 0,
                holds_block: false,
                request,
                ordinal,
                start_ns: u64::MAX,
            }),
        );
        self.nodes.wait(place, after);
        let keeps_order = self.keeps_order(op.kind);
        let token = self.nodes.token(place);
        let queue = &mut self.devices[device as usize];
        if keeps_order {
            let before = std::mem::replace(&mut queue.last, token);
            self.nodes.wait(place, before);
        } else if !op.kind.is_pcm() {
            if matches!(op.kind, OpKind::Program | OpKind::CopyBack) {
                queue.programs.insert(self.issued);
            }
            queue.last_class_waits += u32::from(class as usize + 1 == device::CLASSES);
            self.hazards.issued(&mut self.nodes, place, op);
        }
        if self.nodes.get(place).waits == 0 {
            self.waits_for_nothing(place);
        }
        token
    }

    fn count_busy(&mut self, device: u32, total_ns: u64, bus_ns: u64) {
        let busy = &mut self.die_busy_ns[device as usize];
        *busy = busy.saturating_add(total_ns);
        if let Some(bus) = self
            .buses
            .get_mut(self.devices[device as usize].channel as usize)
        {
            bus.busy_ns = bus.busy_ns.saturating_add(bus_ns);
        }
    }

    /// All that a node waited for is over.
    fn waits_for_nothing(&mut self, place: u32) {
        let node = self.nodes.get_mut(place);
        let release_ns = node.release_ns;
        let Some(op) = &mut node.op else {
            self.ended.push((place, release_ns));
            return;
        };
        if release_ns > self.now_ns {
            op.phase = RELEASE;
            node.due_ns = release_ns;
            self.events.push(Reverse((release_ns, Due::Node(place))));
            return;
        }
        op.phase = 0;
        let (class, device, is_erase) = (op.class, op.device, op.kind == OpKind::Erase);
        // In the order of issue an erase is like any other.
        let is_erase = is_erase && self.schedule.policy != Policy::Fifo;
        let number = node.number;
        self.devices[device as usize].is_ready(class, is_erase, number, place);
        self.look_at(device);
    }

    fn look_at(&mut self, device: u32) {
        let queue = &mut self.devices[device as usize];
        if !std::mem::replace(&mut queue.is_dirty, true) {
            self.dirty.push(device);
        }
    }

    /// A device begins its next operation, if it can.
    fn begin_next(&mut self, device: u32) {
        let now_ns = self.now_ns;
        let queue = &mut self.devices[device as usize];
        queue.is_dirty = false;
        if now_ns < queue.awake_ns {
            return;
        }
        if queue.current != NONE {
            self.interrupt(device);
            return;
        }
        if let Some((suspended, left_ns)) = queue.suspended {
            let most = self.schedule.overtakes;
            let is_patient = most == 0 || queue.reads_between < most;
            match is_patient.then(|| queue.take_read()).flatten() {
                Some(read) => {
                    queue.reads_between += 1;
                    self.begin(device, read);
                }
                None => self.resume(device, suspended, left_ns),
            }
            return;
        }
        if let Some(place) = queue.take_next(&self.schedule) {
            let last_class = device::CLASSES - 1;
            if self.nodes.op(place).class as usize == last_class {
                queue.last_class_waits = queue.last_class_waits.saturating_sub(1);
            }
            self.begin(device, place);
        }
    }

    fn begin(&mut self, device: u32, place: u32) {
        self.devices[device as usize].current = place;
        self.next_phase(place);
    }

    /// A read that waits interrupts the cell time of the operation in work, if the schedule lets it.
    fn interrupt(&mut self, device: u32) {
        let queue = &self.devices[device as usize];
        let (place, schedule) = (queue.current, self.schedule);
        let node = self.nodes.get(place);
        let Some(op) = &node.op else { return };
        let may = match op.kind {
            OpKind::Erase => schedule.suspend.of_erases(),
            OpKind::Program => schedule.suspend.of_programs(),
            OpKind::CopyBack => schedule.suspend.of_programs() && op.phase == 3,
            _ => false,
        };
        let in_cell = !op.is_on_bus() && node.due_ns != u64::MAX;
        let left_ns = node.due_ns.saturating_sub(self.now_ns);
        if !may
            || !in_cell
            || op.class == 0
            || op.suspended >= schedule.suspend_limit
            || left_ns <= schedule.suspend_ns
            || !queue.has_reads()
        {
            return;
        }
        self.nodes.get_mut(place).due_ns = u64::MAX;
        let op = self.nodes.op_mut(place);
        op.suspended += 1;
        match op.kind {
            OpKind::Erase => self.stats.suspended_erases += 1,
            _ => self.stats.suspended_programs += 1,
        }
        self.count_busy(device, add_ns(schedule.suspend_ns, schedule.resume_ns), 0);
        let queue = &mut self.devices[device as usize];
        queue.suspended = Some((place, left_ns));
        queue.current = NONE;
        queue.reads_between = 0;
        queue.awake_ns = add_ns(self.now_ns, schedule.suspend_ns);
        self.events
            .push(Reverse((queue.awake_ns, Due::Device(device))));
    }

    fn resume(&mut self, device: u32, place: u32, left_ns: u64) {
        let queue = &mut self.devices[device as usize];
        queue.suspended = None;
        queue.current = place;
        let due_ns = add_ns(self.now_ns, add_ns(self.schedule.resume_ns, left_ns));
        self.nodes.get_mut(place).due_ns = due_ns;
        self.events.push(Reverse((due_ns, Due::Node(place))));
    }

    /// An operation goes on to its next phase, or ends.
    fn next_phase(&mut self, place: u32) {
        let now_ns = self.now_ns;
        loop {
            let node = self.nodes.get_mut(place);
            let number = node.number;
            let op = node.op.as_mut().expect("the node of an operation");
            let Some(&length_ns) = op.phases_ns.get(op.phase as usize) else {
                self.started(place);
                self.end(place);
                return;
            };
            if length_ns == 0 {
                op.phase += 1;
                self.started(place);
                continue;
            }
            let channel = self.devices[op.device as usize].channel as usize;
            if op.is_on_bus()
                && let Some(bus) = self.buses.get_mut(channel)
            {
                bus.asks.insert((now_ns, number, place));
                self.asks_are_new = true;
                return;
            }
            self.last_for(place, length_ns);
            return;
        }
    }

    /// A phase begins that lasts so long.
    fn last_for(&mut self, place: u32, length_ns: u64) {
        self.started(place);
        let due_ns = add_ns(self.now_ns, length_ns);
        self.nodes.get_mut(place).due_ns = due_ns;
        self.events.push(Reverse((due_ns, Due::Node(place))));
    }

    /// Notes the start of an operation, once.
    fn started(&mut self, place: u32) {
        let now_ns = self.now_ns;
        let op = self.nodes.op_mut(place);
        if op.start_ns != u64::MAX {
            return;
        }
        op.start_ns = now_ns;
        let (request, ordinal, die) = (op.request, op.ordinal, op.device);
        self.requests.started(request, ordinal, now_ns);
        if let Some(told) = &mut self.told {
            let free_ns = self.devices[die as usize].free_ns;
            told.started((request.0 != NONE).then_some(request.1), die, free_ns);
        }
    }

    fn end(&mut self, place: u32) {
        let now_ns = self.now_ns;
        let number = self.nodes.get(place).number;
        let op = *self.nodes.op(place);
        self.last_end_ns = self.last_end_ns.max(now_ns);
        let queue = &mut self.devices[op.device as usize];
        (queue.current, queue.free_ns) = (NONE, now_ns);
        queue.programs.remove(&number);
        self.look_at(op.device);
        if op.holds_block
            && let Some(erase) = self.hazards.read_is_over(op.page)
        {
            self.one_less(erase, 0);
        }
        let newest = &mut self.devices[op.device as usize].newest_ended;
        self.stats.overtaken += u64::from(number < *newest);
        *newest = number.max(*newest);
        if let Some(told) = &mut self.told {
            told.ended(&op, now_ns);
        }
        self.ended.push((place, now_ns));
    }

    /// Tells all followers of what is over.
    fn tell_followers(&mut self) {
        while let Some((place, end_ns)) = self.ended.pop() {
            let followers = self.nodes.over(place);
            for &follower in &followers {
                match follower {
                    Follower::Node(other) => self.one_less(other, end_ns),
                    Follower::Request(slot) => self.requests.ended(slot, end_ns),
                }
            }
            self.nodes.give_back(place, followers);
        }
    }

    /// One of the ends that a node waits for has come.
    fn one_less(&mut self, place: u32, end_ns: u64) {
        let node = self.nodes.get_mut(place);
        node.waits -= 1;
        node.release_ns = node.release_ns.max(end_ns);
        if node.waits == 0 {
            self.waits_for_nothing(place);
        }
    }
}

/// Time.
impl Scheduled {
    /// Everything that begins now.
    fn settle_now(&mut self) {
        loop {
            self.tell_followers();
            if let Some(device) = self.dirty.pop() {
                self.begin_next(device);
            } else if std::mem::take(&mut self.asks_are_new) {
                self.grant();
            } else {
                return;
            }
        }
    }

    /// Each free bus goes to who asked first.
    fn grant(&mut self) {
        for bus in 0..self.buses.len() {
            let bus = &mut self.buses[bus];
            if bus.busy_until_ns > self.now_ns {
                continue;
            }
            if let Some((_, _, place)) = bus.asks.pop_first() {
                let op = self.nodes.op(place);
                let length_ns = op.phases_ns[op.phase as usize];
                bus.busy_until_ns = add_ns(self.now_ns, length_ns);
                self.last_for(place, length_ns);
            }
        }
    }

    /// Whether anything may begin now.
    fn is_unsettled(&self) -> bool {
        !self.dirty.is_empty() || self.asks_are_new || !self.ended.is_empty()
    }

    /// The next instant at which anything happens.
    fn next_ns(&self) -> Option<u64> {
        if self.is_unsettled() {
            return Some(self.now_ns);
        }
        self.events.peek().map(|Reverse(first)| first.0)
    }

    /// What begins now; if nothing does, to the next instant that is not beyond `until_ns`.
    fn step_towards(&mut self, until_ns: u64) {
        if self.is_unsettled() {
            self.settle_now();
            return;
        }
        self.now_ns = match self.events.peek() {
            Some(&Reverse((time_ns, _))) => time_ns.clamp(self.now_ns, until_ns),
            None => until_ns,
        };
        self.end_now();
    }

    /// Everything that ends now.
    fn end_now(&mut self) {
        while let Some(&Reverse((time_ns, due))) = self.events.peek() {
            if time_ns > self.now_ns {
                break;
            }
            self.events.pop();
            match due {
                Due::Device(device) => self.look_at(device),
                Due::Node(place) => self.phase_is_over(place, time_ns),
            }
        }
        self.tell_followers();
    }

    fn phase_is_over(&mut self, place: u32, time_ns: u64) {
        let node = self.nodes.get_mut(place);
        // One that was interrupted is due at another time.
        if node.due_ns != time_ns {
            return;
        }
        node.due_ns = u64::MAX;
        let Some(op) = &mut node.op else { return };
        if op.phase == RELEASE {
            self.waits_for_nothing(place);
            return;
        }
        // A bus is free.
        self.asks_are_new |= op.is_on_bus();
        op.phase += 1;
        self.next_phase(place);
    }

    /// Everything before `until_ns`, and what ends then.
    fn run_to(&mut self, until_ns: u64) {
        while self.now_ns < until_ns {
            self.step_towards(until_ns);
        }
    }
}

impl Told {
    /// A die turns to an operation. What it waited for is what the die did before, whenever that was issued: so it counts as
    /// issued only now.
    fn started(&mut self, request: Option<u64>, die: u32, free_ns: u64) {
        self.notes.push(Note::Issued { request, die });
        if let Some(request) = request {
            self.notes.push(Note::Started {
                request,
                die,
                free_ns,
            });
        }
    }

    fn ended(&mut self, op: &Op, end_ns: u64) {
        let request = (op.request.0 != NONE).then_some(op.request.1);
        if self.keeps_operations {
            self.operations.push(Operation {
                die: op.device,
                does: Does::One(op.kind),
                cause: op.cause,
                request,
                start_ns: op.start_ns,
                end_ns,
            });
        }
        if let Some(request) = request {
            self.notes.push(Note::Ended {
                request,
                die: op.device,
                end_ns,
            });
        }
    }
}

impl Clock for Scheduled {
    type Token = NodeToken;
    const EXACT_AT_ISSUE: bool = false;
    const REORDERS: bool = true;

    fn new(machine: &Machine) -> Self {
        let dies = machine.dies.clamp(1, MAX_DIES);
        let chips = machine.pcm.chips.max(1);
        let erase_class = match machine.schedule.policy {
            Policy::Fifo | Policy::Ready => 0,
            Policy::ReadFirst => 1,
            Policy::HostFirst => 2,
        };
        let die = |die| Device::new(machine.channel_of(die), erase_class);
        let chip = |_| Device::new(NONE, 0);
        Self {
            schedule: machine.schedule,
            nodes: Nodes::default(),
            hazards: Hazards::new(machine.pages_per_block, machine.one_shot),
            devices: (0..dies).map(die).chain((0..chips).map(chip)).collect(),
            buses: vec![Bus::default(); machine.channels.max(1) as usize],
            events: BinaryHeap::new(),
            dirty: Vec::new(),
            asks_are_new: false,
            ended: Vec::new(),
            requests: Requests::default(),
            stats: ScheduleStats::default(),
            issued: 0,
            now_ns: 0,
            at_ns: 0,
            die_busy_ns: vec![0; (dies + chips) as usize],
            last_end_ns: 0,
            told: None,
            no_notes: Vec::new(),
            machine: machine.clone(),
        }
    }

    fn set_time(&mut self, at_ns: u64) {
        self.at_ns = at_ns.min(TIME_MAX_NS);
    }

    fn issue(&mut self, op: FlashOp, after: NodeToken) -> NodeToken {
        let token = self.add(op, after);
        match self.is_put_off(op.kind) {
            true => NodeToken::NOTHING,
            false => token,
        }
    }

    fn join(&mut self, a: NodeToken, b: NodeToken) -> NodeToken {
        match (self.nodes.end(a), self.nodes.end(b)) {
            (End::Known(x), End::Known(y)) => NodeToken::known(x.max(y)),
            (End::Known(x), End::Of(_)) if x <= self.now_ns => b,
            (End::Of(_), End::Known(y)) if y <= self.now_ns => a,
            _ if a == b => a,
            _ => {
                let join = self.nodes.add(0, 0, None);
                self.nodes.wait(join, a);
                self.nodes.wait(join, b);
                self.nodes.token(join)
            }
        }
    }

    fn begin_request(&mut self, request: u64) {
        self.requests.begin(request, self.at_ns.max(self.now_ns));
    }

    fn own(&mut self, token: NodeToken) {
        match self.nodes.end(token) {
            End::Known(ns) => self.requests.own_known(ns),
            End::Of(place) => {
                if let Some(slot) = self.requests.own_pending() {
                    self.nodes.follow(place, Follower::Request(slot));
                }
            }
        }
    }

    fn own_beside(&mut self, end_ns: u64) {
        self.requests.own_beside(end_ns.min(TIME_MAX_NS));
    }

    fn end_request(&mut self) {
        self.requests.close();
    }

    fn drain(&mut self, out: &mut Vec<Completion>) {
        out.extend(std::iter::from_fn(|| self.requests.hand_out()));
    }

    fn next_completion_by(&mut self, by_ns: u64) -> Option<Completion> {
        loop {
            let ready_ns = self.requests.first_ready_ns();
            let next_ns = self.next_ns().unwrap_or(u64::MAX);
            match ready_ns {
                Some(ready_ns) if ready_ns <= self.now_ns || ready_ns < next_ns => {
                    return (ready_ns <= by_ns)
                        .then(|| self.requests.hand_out())
                        .flatten();
                }
                None if self.requests.incomplete == 0 => return None,
                // What would begin at `by_ns` itself waits for what the host issues then.
                _ if next_ns > by_ns || self.now_ns >= by_ns => return None,
                _ => self.step_towards(by_ns),
            }
        }
    }

    fn settle(&mut self, at_ns: u64) {
        // What comes at that instant may still have a say in what begins then.
        while self.requests.incomplete > 0 && self.now_ns < at_ns {
            self.step_towards(at_ns);
        }
    }

    fn complete_by(&self, at_ns: u64) -> u64 {
        self.requests.complete_by(at_ns)
    }

    fn idle_since(&mut self, until_ns: u64) -> Option<u64> {
        let last_ns = until_ns.saturating_sub(1);
        while self.requests.incomplete > 0
            && (self.now_ns < last_ns || self.now_ns == last_ns && self.is_unsettled())
        {
            self.step_towards(last_ns);
        }
        if self.requests.incomplete > 0 {
            return None;
        }
        self.requests
            .latest_ns
            .filter(|&latest_ns| latest_ns < until_ns)
    }

    fn catch_up(&mut self) {
        self.run_to(self.at_ns);
    }

    fn advance(&mut self, until_ns: u64) {
        self.run_to(until_ns.min(TIME_MAX_NS));
    }

    fn finish(&mut self) {
        while self.next_ns().is_some() {
            self.step_towards(TIME_MAX_NS);
        }
    }

    fn known_end(&self, token: NodeToken) -> Option<u64> {
        match self.nodes.end(token) {
            End::Known(ns) => Some(ns),
            End::Of(_) => None,
        }
    }

    fn die_busy_ns(&self) -> Vec<u64> {
        self.die_busy_ns[..self.dies() as usize].to_vec()
    }

    fn channel_busy_ns(&self) -> Vec<u64> {
        self.buses.iter().map(|bus| bus.busy_ns).collect()
    }

    fn pcm_busy_ns(&self) -> u64 {
        let chips = self.die_busy_ns[self.dies() as usize..].iter();
        chips.fold(0, |sum, &busy_ns| sum.saturating_add(busy_ns))
    }

    fn last_end_ns(&self) -> u64 {
        self.last_end_ns
    }

    fn schedule_stats(&self) -> Option<ScheduleStats> {
        Some(self.stats)
    }

    fn watch(&mut self, operations: bool) {
        self.told = Some(Box::new(Told {
            keeps_operations: operations,
            ..Told::default()
        }));
    }

    fn watched(&mut self, _request: Option<u64>) {}

    fn notes(&mut self) -> &mut Vec<Note> {
        match &mut self.told {
            Some(told) => &mut told.notes,
            None => &mut self.no_notes,
        }
    }

    fn operations(&mut self) -> Option<&mut Vec<Operation>> {
        Some(&mut self.told.as_mut()?.operations)
    }

    fn reset(&mut self) {
        self.nodes.clear();
        self.hazards.clear();
        self.devices.iter_mut().for_each(Device::clear);
        self.buses.fill(Bus::default());
        self.events.clear();
        self.dirty.clear();
        self.ended.clear();
        self.asks_are_new = false;
        self.requests = Requests::default();
        self.stats = ScheduleStats::default();
        (self.now_ns, self.at_ns, self.last_end_ns) = (0, 0, 0);
        self.die_busy_ns.fill(0);
    }
}

#[cfg(test)]
impl Scheduled {
    /// Operations, joins and events that are not over.
    pub(super) fn footprint(&self) -> usize {
        self.nodes.used() + self.events.len()
    }
}
