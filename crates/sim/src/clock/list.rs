//! Replays a list of operations that is known whole before the first one
//! starts (docs/spec/timing.md, section 10), by the letter of the rules of section 3.
//!
//! Nothing here is shared with the engines but the phases of an operation, so
//! that it can judge them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use floatgate_core::pcm::PcmSetup;
use serde::Deserialize;

use super::{MAX_DIES, Machine, Mode, OpKind, Phases, Programming, Sensing, TIME_MAX_NS};

/// Parameters of a part, by the names of docs/spec/timing.md, section 1.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Latencies {
    /// Cell time of a page read, ns.
    #[serde(rename = "tR")]
    pub t_r: u64,
    /// Cell time of a page program, ns.
    #[serde(rename = "tPROG")]
    pub t_prog: u64,
    /// Cell time of a block erase, ns.
    #[serde(rename = "tBERS")]
    pub t_bers: u64,
    /// Cell time of an OOB-only read, ns; `tR` unless given.
    #[serde(rename = "tR_oob", default)]
    pub t_r_oob: Option<u64>,
    /// One command or address cycle, ns.
    #[serde(default = "default_cycle")]
    pub cycle: u64,
    /// Picoseconds a byte into the die.
    #[serde(default = "default_ps")]
    pub in_ps: u64,
    /// Picoseconds a byte out of the die.
    #[serde(default = "default_ps")]
    pub out_ps: u64,
    /// Data bytes of a page.
    #[serde(default = "default_page_bytes")]
    pub page_bytes: u32,
    /// Out-of-band bytes of a page.
    #[serde(default = "default_oob_bytes")]
    pub oob_bytes: u32,
    /// Read of a PCM entry, ns.
    #[serde(default = "default_pcm_read")]
    pub pcm_read: u64,
    /// Write of a PCM entry, ns.
    #[serde(default = "default_pcm_write")]
    pub pcm_write: u64,
}

fn default_cycle() -> u64 {
    Machine::default().cycle_ns
}
fn default_ps() -> u64 {
    Machine::default().in_ps
}
fn default_page_bytes() -> u32 {
    Machine::default().page_bytes
}
fn default_oob_bytes() -> u32 {
    Machine::default().oob_bytes
}
fn default_pcm_read() -> u64 {
    Machine::default().pcm_read_ns
}
fn default_pcm_write() -> u64 {
    Machine::default().pcm_write_ns
}

/// The machine of a vector.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TimingConfig {
    /// Buses.
    pub channels: u32,
    /// Dies of all channels together.
    pub dies: u32,
    /// What of an operation costs time.
    #[serde(default)]
    pub mode: Mode,
    /// Latencies and sizes.
    pub part: Latencies,
}

impl TimingConfig {
    /// The same as parameters of an engine.
    #[must_use]
    pub fn machine(&self) -> Machine {
        let part = &self.part;
        Machine {
            channels: self.channels,
            dies: self.dies,
            planes: 1,
            t_r_ns: part.t_r,
            t_prog_ns: part.t_prog,
            t_bers_ns: part.t_bers,
            t_r_oob_ns: part.t_r_oob.unwrap_or(part.t_r),
            cycle_ns: part.cycle,
            in_ps: part.in_ps,
            out_ps: part.out_ps,
            page_bytes: part.page_bytes,
            oob_bytes: part.oob_bytes,
            pcm_read_ns: part.pcm_read,
            pcm_write_ns: part.pcm_write,
            pcm: PcmSetup::default(),
            mode: self.mode,
            ..Machine::default()
        }
    }
}

/// An operation of a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListOp {
    /// What is done.
    pub op: OpKind,
    /// Die; absent for the PCM device.
    #[serde(default)]
    pub die: Option<u32>,
    /// Planes that work together.
    #[serde(default = "one_plane")]
    pub planes: u32,
    /// How the cells of its page are read.
    #[serde(skip)]
    pub sensing: Sensing,
    /// How they are programmed.
    #[serde(skip)]
    pub programming: Programming,
    /// Bytes that a plane transfers; page and OOB unless given.
    #[serde(default)]
    pub bytes: Option<u32>,
    /// Numbers of the earlier operations that it waits for, from 0.
    #[serde(default)]
    pub after: Vec<usize>,
    /// Arrival time, ns; may go down from one operation to the next.
    #[serde(default)]
    pub at: u64,
}

fn one_plane() -> u32 {
    1
}

/// A conformance file of docs/spec/timing.md, section 10.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TimingVector {
    /// The machine.
    pub config: TimingConfig,
    /// The operations, in order of number.
    pub ops: Vec<ListOp>,
    /// Start and end of each, ns.
    pub times: Vec<(u64, u64)>,
    /// Latest end, ns.
    pub total: u64,
}

/// Replays a vector and compares.
///
/// # Errors
/// A sentence about what is wrong with the vector, or about the first operation
/// whose times do not come out.
pub fn check(vector: &TimingVector) -> Result<(), String> {
    let times = replay(&vector.config, &vector.ops)?;
    if times.len() != vector.times.len() {
        return Err(format!(
            "{} operations, but {} times",
            times.len(),
            vector.times.len()
        ));
    }
    for (number, (got, wanted)) in times.iter().zip(&vector.times).enumerate() {
        if got != wanted {
            return Err(format!(
                "operation {number}: got {}-{}, should be {}-{}",
                got.0, got.1, wanted.0, wanted.1
            ));
        }
    }
    let total = times.iter().map(|&(_, end)| end).max().unwrap_or(0);
    if total != vector.total {
        return Err(format!("total: got {total}, should be {}", vector.total));
    }
    Ok(())
}

/// Start and end (ns) of every operation of the list.
///
/// # Errors
/// A sentence for the user if the machine or an operation makes no sense, or
/// if a time does not fit.
pub fn replay(config: &TimingConfig, ops: &[ListOp]) -> Result<Vec<(u64, u64)>, String> {
    let takes_bytes = |op: &ListOp| matches!(op.op, OpKind::Read | OpKind::Program);
    let wrong = ops
        .iter()
        .position(|op| op.bytes.is_some() && !takes_bytes(op));
    if let Some(number) = wrong {
        return Err(format!(
            "operation {number}: only a read and a program take `bytes`; leave it out"
        ));
    }
    replay_on(&config.machine(), ops)
}

/// As [`replay`], on a machine.
///
/// # Errors
/// As [`replay`].
pub fn replay_on(machine: &Machine, ops: &[ListOp]) -> Result<Vec<(u64, u64)>, String> {
    machine.validate()?;
    let mut replay = Replay::new(machine, ops)?;
    while let Some(&Reverse((now, _))) = replay.due.peek() {
        // Ends and releases first; they may bring more of both at once.
        while let Some(&Reverse((time, number))) = replay.due.peek() {
            if time != now {
                break;
            }
            replay.due.pop();
            replay.step(number, now)?;
        }
        replay.grant(now)?;
    }
    Ok(replay.tasks.iter().map(|t| (t.start, t.end)).collect())
}

/// One phase of an operation.
#[derive(Clone, Copy, Debug)]
struct Phase {
    on_bus: bool,
    length: u64,
}

/// State of one operation.
#[derive(Debug)]
struct Task {
    /// What is left, the next phase last.
    phases: Vec<Phase>,
    /// `None`: the PCM device.
    channel: Option<u32>,
    /// Operations whose end it still waits for, its die's last one included.
    waits_for: usize,
    /// Operations that wait for its end.
    followers: Vec<usize>,
    at: u64,
    started: bool,
    start: u64,
    end: u64,
}

/// A bus.
#[derive(Debug, Default)]
struct Bus {
    /// Asks: time, number, length of the phase.
    asks: BTreeSet<(u64, usize, u64)>,
    busy_until: u64,
}

/// The state of a replay at one instant.
#[derive(Debug)]
struct Replay {
    tasks: Vec<Task>,
    buses: BTreeMap<u32, Bus>,
    /// Operations to look at: time, number. A bus becomes free only at the end
    /// of a phase, so these are all the instants at which anything happens.
    due: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Replay {
    fn new(machine: &Machine, ops: &[ListOp]) -> Result<Self, String> {
        let mut tasks: Vec<Task> = Vec::with_capacity(ops.len());
        let mut last_of_die: BTreeMap<u32, usize> = BTreeMap::new();
        for (number, op) in ops.iter().enumerate() {
            let die = device(machine, op).map_err(|why| format!("operation {number}: {why}"))?;
            let bytes = op.bytes.map_or(machine.transfer_bytes(), u64::from);
            let mut earlier: BTreeSet<usize> = op.after.iter().copied().collect();
            earlier.extend(last_of_die.insert(die, number));
            if let Some(wrong) = earlier.iter().find(|&&other| other >= number) {
                return Err(format!(
                    "operation {number}: `after` names {wrong}, which is not an earlier one"
                ));
            }
            for &other in &earlier {
                tasks[other].followers.push(number);
            }
            tasks.push(Task {
                phases: row(machine.phases_of(
                    op.op,
                    op.planes,
                    bytes,
                    (op.sensing, op.programming),
                )),
                channel: (!op.op.is_pcm()).then(|| machine.channel_of(die)),
                waits_for: earlier.len(),
                followers: Vec::new(),
                at: op.at,
                started: false,
                start: 0,
                end: 0,
            });
        }
        let due = tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| task.waits_for == 0)
            .map(|(number, task)| Reverse((task.at, number)))
            .collect();
        Ok(Self {
            tasks,
            buses: BTreeMap::new(),
            due,
        })
    }

    /// An operation is released, or a phase of it is over, at `now`: on to its
    /// next phase.
    fn step(&mut self, number: usize, now: u64) -> Result<(), String> {
        let task = &mut self.tasks[number];
        let Some(phase) = task.phases.pop() else {
            return self.end(number, now);
        };
        match task.channel {
            Some(channel) if phase.on_bus && phase.length > 0 => {
                let bus = self.buses.entry(channel).or_default();
                bus.asks.insert((now, number, phase.length));
            }
            _ => {
                task.start_at(now);
                let over = later(now, phase.length)?;
                self.due.push(Reverse((over, number)));
            }
        }
        Ok(())
    }

    /// The operation is over: its die goes on, and what waits for it.
    fn end(&mut self, number: usize, now: u64) -> Result<(), String> {
        let task = &mut self.tasks[number];
        task.start_at(now);
        task.end = now;
        for follower in std::mem::take(&mut task.followers) {
            let task = &mut self.tasks[follower];
            task.waits_for -= 1;
            if task.waits_for == 0 {
                // Released by the last of its ends, unless it arrives later.
                self.due.push(Reverse((now.max(task.at), follower)));
            }
        }
        Ok(())
    }

    /// Gives every free bus to who asked first, of equals the lowest number.
    fn grant(&mut self, now: u64) -> Result<(), String> {
        for bus in self.buses.values_mut() {
            if bus.busy_until > now {
                continue;
            }
            if let Some((_, number, length)) = bus.asks.pop_first() {
                self.tasks[number].start_at(now);
                bus.busy_until = later(now, length)?;
                self.due.push(Reverse((bus.busy_until, number)));
            }
        }
        Ok(())
    }
}

impl Task {
    /// Notes the begin of the first phase.
    fn start_at(&mut self, now: u64) {
        if !self.started {
            self.started = true;
            self.start = now;
        }
    }
}

fn later(time: u64, length: u64) -> Result<u64, String> {
    // A phase that is too long for the clock has been cut to `TIME_MAX_NS`.
    time.checked_add(length)
        .filter(|&sum| sum < TIME_MAX_NS)
        .ok_or_else(|| format!("times beyond {TIME_MAX_NS} ns"))
}

/// Number of the die that an operation uses; the PCM device comes after them.
fn device(machine: &Machine, op: &ListOp) -> Result<u32, String> {
    if op.planes == 0 {
        return Err("an operation needs at least one plane".into());
    }
    if op.op.is_pcm() {
        return Ok(MAX_DIES);
    }
    match op.die {
        Some(die) if die < machine.dies => Ok(die),
        Some(die) => Err(format!("die {die} of {}", machine.dies)),
        None => Err("a flash operation needs a die".into()),
    }
}

/// The phases as a stack.
fn row(phases: Phases) -> Vec<Phase> {
    let bus = |length| Phase {
        on_bus: true,
        length,
    };
    let cell = |length| Phase {
        on_bus: false,
        length,
    };
    vec![
        cell(phases.cell_2_ns),
        bus(phases.bus_2_ns),
        cell(phases.cell_1_ns),
        bus(phases.bus_1_ns),
    ]
}
