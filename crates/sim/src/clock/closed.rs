//! The closed forms of docs/spec/timing.md, section 11.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use floatgate_core::report::Cause;

use super::machine::{add_ns, mul_ns};
use super::pcm::ReadFirst;
use super::{Clock, Completion, FlashOp, Machine, Note, OpKind, Phases, TIME_MAX_NS};

/// The end of an operation, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KnownEnd(pub u64);

/// How long an operation takes, and how much of it on the bus.
#[derive(Clone, Copy, Debug)]
struct Cost {
    total_ns: u64,
    bus_ns: u64,
}

impl From<Phases> for Cost {
    fn from(phases: Phases) -> Self {
        Self {
            total_ns: phases.total_ns(),
            bus_ns: phases.bus_ns(),
        }
    }
}

/// A die or a PCM chip.
#[derive(Clone, Copy, Debug, Default)]
struct Device {
    /// End of the last operation.
    free_ns: u64,
    busy_ns: u64,
    /// Bus time: a die that uses a bus is alone on it, and then die and channel have the same number.
    bus_ns: u64,
}

/// The host request that is open, or was open last.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    request: u64,
    issue_ns: u64,
    /// End of the own operations so far; the issue time at first.
    end_ns: u64,
    /// Earliest start up to the last own operation.
    first_start_ns: u64,
    /// Earliest start of the operations after it.
    later_start_ns: u64,
}

/// Clock of a machine in which no two dies can want the same bus: an operation
/// starts at its release and its end is final at once (docs/spec/timing.md, section 11).
#[derive(Clone, Debug)]
pub struct Closed {
    machine: Machine,
    costs: [Cost; 7],
    at_ns: u64,
    /// The dies; the PCM chips come after them.
    devices: Vec<Device>,
    dies: usize,
    /// The PCM chips, if they read first.
    pcm: Vec<ReadFirst>,
    open: Open,
    is_open: bool,
    ready: BinaryHeap<Reverse<Completion>>,
    /// Latest completion of the closed requests.
    latest_ns: u64,
    any_closed: bool,
    /// For those who record requests: the devices when they were looked at last, and what came to light.
    seen: Vec<Device>,
    notes: Vec<Note>,
}

impl Closed {
    /// True if this clock is exact for the machine: mode `flat`, or at most one
    /// die a channel, or nothing ever crosses a bus.
    #[must_use]
    pub fn fits(machine: &Machine) -> bool {
        let is_alone = machine.dies <= machine.used_channels()
            || machine.mode == super::Mode::Flat
            || bus_is_free(machine);
        is_alone && !machine.cache_commands
    }

    /// Lets `device` do operations that cost `cost`, one after the other;
    /// returns the end of the last one.
    #[inline(always)]
    fn occupy(&mut self, device: usize, cost: Cost, after: KnownEnd) -> KnownEnd {
        let device = &mut self.devices[device];
        let start_ns = self.at_ns.max(device.free_ns).max(after.0);
        let end_ns = add_ns(start_ns, cost.total_ns);
        device.free_ns = end_ns;
        device.busy_ns = device.busy_ns.saturating_add(cost.total_ns);
        device.bus_ns = device.bus_ns.saturating_add(cost.bus_ns);
        self.open.later_start_ns = self.open.later_start_ns.min(start_ns);
        KnownEnd(end_ns)
    }

    #[inline]
    fn device_of(&self, op: FlashOp) -> usize {
        let die = op.die as usize;
        if op.kind.is_pcm() {
            return self.dies + die;
        }
        assert!(die < self.dies, "die {die} does not exist");
        die
    }

    /// Issues an access of a chip that reads first. A write has no end that could be waited for.
    #[cold]
    fn issue_read_first(&mut self, op: FlashOp, after: KnownEnd) -> KnownEnd {
        let of = |kind: OpKind| self.costs[kind as usize].total_ns;
        let (read_ns, write_ns) = (of(OpKind::PcmRead), of(OpKind::PcmWrite));
        let device = self.device_of(op);
        let chip = &mut self.pcm[op.die as usize];
        let busy_ns = &mut self.devices[device].busy_ns;
        if op.kind == OpKind::PcmWrite {
            *busy_ns = busy_ns.saturating_add(write_ns);
            chip.begin_writes(self.at_ns, write_ns);
            chip.write(self.at_ns.max(after.0));
            return KnownEnd::default();
        }
        debug_assert_eq!(after, KnownEnd::default(), "a PCM read waits for nothing");
        *busy_ns = busy_ns.saturating_add(read_ns);
        let (start_ns, end_ns) = chip.read(self.at_ns, read_ns, write_ns);
        self.open.later_start_ns = self.open.later_start_ns.min(start_ns);
        KnownEnd(end_ns)
    }
}

/// True if every phase on a bus is empty.
fn bus_is_free(machine: &Machine) -> bool {
    machine.ordinary_phases().iter().all(|p| p.bus_ns() == 0)
        && machine.in_ps == 0
        && machine.out_ps == 0
}

impl Clock for Closed {
    type Token = KnownEnd;
    const EXACT_AT_ISSUE: bool = true;

    fn new(machine: &Machine) -> Self {
        debug_assert!(Self::fits(machine), "dies share a bus: use Events");
        let dies = machine.dies.max(1) as usize;
        let chips = machine.pcm.chips.max(1) as usize;
        let read_first = if machine.pcm.read_first { chips } else { 0 };
        Self {
            costs: machine.ordinary_phases().map(Cost::from),
            machine: machine.clone(),
            at_ns: 0,
            devices: vec![Device::default(); dies + chips],
            dies,
            pcm: vec![ReadFirst::default(); read_first],
            open: Open::default(),
            is_open: false,
            ready: BinaryHeap::new(),
            latest_ns: 0,
            any_closed: false,
            seen: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[inline]
    fn set_time(&mut self, at_ns: u64) {
        self.at_ns = at_ns.min(TIME_MAX_NS);
    }

    #[inline(always)]
    fn issue(&mut self, op: FlashOp, after: KnownEnd) -> KnownEnd {
        if op.kind.is_pcm() && !self.pcm.is_empty() {
            return self.issue_read_first(op, after);
        }
        let device = self.device_of(op);
        let cost = if op.is_ordinary() {
            self.costs[op.kind as usize]
        } else {
            self.machine.phases(op).into()
        };
        self.occupy(device, cost, after)
    }

    /// Closed form: copy `m` ends at `F + m (2c + xr + xw + tR + tPROG)`, with
    /// copy-back at `F + m (2c + tR + tPROG)`.
    fn copies(
        &mut self,
        die: u32,
        pages: u32,
        copyback: bool,
        _cause: Cause,
        after: KnownEnd,
    ) -> KnownEnd {
        if pages == 0 {
            return after;
        }
        let device = self.device_of(FlashOp::new(OpKind::CopyBack, die));
        let kinds: &[OpKind] = if copyback {
            &[OpKind::CopyBack]
        } else {
            &[OpKind::Read, OpKind::Program]
        };
        let mut run = Cost {
            total_ns: 0,
            bus_ns: 0,
        };
        for &kind in kinds {
            let cost = self.costs[kind as usize];
            run.total_ns = add_ns(run.total_ns, mul_ns(cost.total_ns, pages.into()));
            run.bus_ns = add_ns(run.bus_ns, mul_ns(cost.bus_ns, pages.into()));
        }
        self.occupy(device, run, after)
    }

    #[inline]
    fn join(&mut self, a: KnownEnd, b: KnownEnd) -> KnownEnd {
        a.max(b)
    }

    #[inline]
    fn begin_request(&mut self, request: u64) {
        debug_assert!(!self.is_open, "a request is open already");
        self.is_open = true;
        self.open = Open {
            request,
            issue_ns: self.at_ns,
            end_ns: self.at_ns,
            first_start_ns: u64::MAX,
            later_start_ns: u64::MAX,
        };
    }

    #[inline]
    fn own(&mut self, token: KnownEnd) {
        debug_assert!(self.is_open, "no request is open");
        let open = &mut self.open;
        open.end_ns = open.end_ns.max(token.0);
        open.first_start_ns = open.first_start_ns.min(open.later_start_ns);
        open.later_start_ns = u64::MAX;
    }

    fn own_beside(&mut self, end_ns: u64) {
        let open = &mut self.open;
        open.end_ns = open.end_ns.max(end_ns.min(TIME_MAX_NS));
        open.first_start_ns = open.issue_ns;
    }

    #[inline]
    fn end_request(&mut self) {
        if let Some(completion) = self.end_request_known() {
            self.ready.push(Reverse(completion));
        }
    }

    #[inline(always)]
    fn end_request_known(&mut self) -> Option<Completion> {
        debug_assert!(self.is_open, "no request is open");
        self.is_open = false;
        let open = &self.open;
        self.latest_ns = self.latest_ns.max(open.end_ns);
        self.any_closed = true;
        Some(Completion::of(
            open.request,
            open.issue_ns,
            open.first_start_ns,
            open.end_ns,
        ))
    }

    fn drain(&mut self, out: &mut Vec<Completion>) {
        out.extend(self.ready.drain().map(|Reverse(completion)| completion));
    }

    fn next_completion_by(&mut self, by_ns: u64) -> Option<Completion> {
        if self.ready.peek()?.0.end_ns > by_ns {
            return None;
        }
        self.ready.pop().map(|Reverse(completion)| completion)
    }

    fn settle(&mut self, _at_ns: u64) {}

    fn complete_by(&self, at_ns: u64) -> u64 {
        let over = |ready: &&Reverse<Completion>| ready.0.end_ns <= at_ns;
        self.ready.iter().filter(over).count() as u64
    }

    fn idle_since(&mut self, until_ns: u64) -> Option<u64> {
        (self.any_closed && self.latest_ns < until_ns).then_some(self.latest_ns)
    }

    fn catch_up(&mut self) {}

    fn advance(&mut self, _until_ns: u64) {}

    fn finish(&mut self) {
        let write_ns = self.costs[OpKind::PcmWrite as usize].total_ns;
        for chip in &mut self.pcm {
            chip.begin_writes(u64::MAX, write_ns);
        }
    }

    fn known_end(&self, token: KnownEnd) -> Option<u64> {
        Some(token.0)
    }

    fn die_busy_ns(&self) -> Vec<u64> {
        let dies = &self.devices[..self.dies];
        dies.iter().map(|die| die.busy_ns).collect()
    }

    fn channel_busy_ns(&self) -> Vec<u64> {
        // Channels without a die carry nothing, but are reported.
        let dies = &self.devices[..self.dies];
        let carried = dies
            .iter()
            .map(|die| die.bus_ns)
            .chain(std::iter::repeat(0));
        carried
            .take(self.machine.channels.max(1) as usize)
            .collect()
    }

    fn pcm_busy_ns(&self) -> u64 {
        let chips = self.devices[self.dies..].iter();
        chips.fold(0, |sum, chip| sum.saturating_add(chip.busy_ns))
    }

    fn last_end_ns(&self) -> u64 {
        // A die's last operation ends last.
        let devices = self.devices.iter().map(|d| d.free_ns);
        let chips = self.pcm.iter().map(ReadFirst::free_ns);
        devices.chain(chips).max().unwrap_or(0)
    }

    fn watch(&mut self, _operations: bool) {
        self.seen.clone_from(&self.devices);
        self.notes.clear();
    }

    fn watched(&mut self, request: Option<u64>) {
        for (die, (now, seen)) in self.devices.iter().zip(&mut self.seen).enumerate() {
            let before = std::mem::replace(seen, *now);
            if now.free_ns != before.free_ns {
                let (die, free_ns, end_ns) = (die as u32, before.free_ns, now.free_ns);
                self.notes.push(Note::Issued { request, die });
                if let Some(request) = request {
                    self.notes.extend([
                        Note::Started {
                            request,
                            die,
                            free_ns,
                        },
                        Note::Ended {
                            request,
                            die,
                            end_ns,
                        },
                    ]);
                }
            }
        }
    }

    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }

    fn reset(&mut self) {
        self.at_ns = 0;
        self.devices.fill(Device::default());
        self.pcm.fill(ReadFirst::default());
        self.is_open = false;
        self.ready.clear();
        self.latest_ns = 0;
        self.any_closed = false;
    }
}
