//! A channel of the event engine: its bus, and the dies that ask for it, at most one ask a die.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::machine::{add_ns, mul_ns};
use super::shape::Shape;

mod rhythm;

use rhythm::Rhythm;

/// No ask: later than any time.
pub(super) const NEVER_NS: u64 = u64::MAX;

/// Up to so many dies the least ask is found by looking at all of them.
const SCANNED_LANES: usize = 12;

/// A die on its channel: what its operation in work asks for.
#[derive(Clone, Copy, Debug)]
struct Lane {
    ask_ns: u64,
    /// Number of the operation, which decides between equal ask times.
    number: u64,
    /// Copies that are not over, 1 for an operation that is no run.
    left: u32,
    shape: u32,
    /// Bus hold of the shape that is asked for.
    step: u8,
    started: bool,
    /// The cells are busy with something else until then.
    cells_ns: u64,
}

/// What an operation asks for when it first asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstAsk {
    /// Bus hold of its shape.
    pub(super) step: u8,
    /// When.
    pub(super) ask_ns: u64,
    /// Whether it started without the bus.
    pub(super) started: bool,
    /// Its cells cannot start before.
    pub(super) cells_ns: u64,
}

impl Lane {
    /// The end of its operation if it never waits: it comes not before that.
    #[inline]
    fn no_end_ns(&self, shape: &Shape) -> u64 {
        let rest_ns = add_ns(self.ask_ns, shape.rest_ns[self.step as usize]);
        if self.left <= 1 {
            return rest_ns;
        }
        add_ns(rest_ns, shape.times_ns(self.left - 1))
    }
}

/// What came of a grant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Granted {
    /// Place of the die on the channel.
    pub(super) lane: u32,
    /// Start of its operation, if this was its first bus hold.
    pub(super) start_ns: Option<u64>,
    /// End of its operation, if this was its last one.
    pub(super) end_ns: Option<u64>,
    /// When its last hold was asked for.
    pub(super) ask_ns: u64,
}

/// A bus and the dies on it.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// End of the last grant.
    pub(super) bus_ns: u64,
    /// By lane.
    dies: Vec<u32>,
    lanes: Vec<Lane>,
    /// The asks as (time, number, lane), on channels with many dies only.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    rhythm: Rhythm,
}

impl Channel {
    pub(super) fn new(dies: Vec<u32>) -> Self {
        let idle = Lane {
            ask_ns: NEVER_NS,
            number: 0,
            left: 0,
            shape: 0,
            step: 0,
            started: false,
            cells_ns: 0,
        };
        Self {
            bus_ns: 0,
            lanes: vec![idle; dies.len()],
            rhythm: Rhythm::new(dies.len() as u32),
            dies,
            heap: BinaryHeap::new(),
        }
    }

    /// The die at that place.
    #[inline]
    pub(super) fn die_at(&self, lane: u32) -> u32 {
        self.dies[lane as usize]
    }

    /// The operation `number` of the die at `lane`, which asks for nothing yet, asks for the first time.
    #[inline]
    pub(super) fn ask(
        &mut self,
        lane: u32,
        number: u64,
        (shape, copies): (u32, u32),
        first: FirstAsk,
    ) {
        self.lanes[lane as usize] = Lane {
            ask_ns: first.ask_ns,
            number,
            left: copies,
            shape,
            step: first.step,
            started: first.started,
            cells_ns: first.cells_ns,
        };
        self.rhythm.is_broken = true;
        self.file(lane);
    }

    fn file(&mut self, lane: u32) {
        if self.lanes.len() > SCANNED_LANES {
            let Lane { ask_ns, number, .. } = self.lanes[lane as usize];
            self.heap.push(Reverse((ask_ns, number, lane)));
        }
    }

    /// Time of the least ask; `NEVER_NS` if there is none.
    #[inline]
    pub(super) fn least_ask_ns(&self) -> u64 {
        if self.lanes.len() > SCANNED_LANES {
            return self.heap.peek().map_or(NEVER_NS, |Reverse(ask)| ask.0);
        }
        let asks = self.lanes.iter().map(|lane| lane.ask_ns);
        asks.fold(NEVER_NS, u64::min)
    }

    /// A time before which no operation on this channel ends; `NEVER_NS` if there is no ask.
    pub(super) fn no_end_ns(&self, shapes: &[Shape]) -> u64 {
        if self.lanes.len() > SCANNED_LANES {
            // A bus hold takes time.
            return self.least_ask_ns().saturating_add(1);
        }
        let asking = self.lanes.iter().filter(|lane| lane.ask_ns < NEVER_NS);
        let ends = asking.map(|lane| lane.no_end_ns(&shapes[lane.shape as usize]));
        ends.fold(NEVER_NS, u64::min)
    }

    /// The die with the least ask, if that comes not after `until_ns`, and a time up to which asks of the same
    /// operation still come before those of the others.
    #[inline]
    fn first(&mut self, until_ns: u64) -> Option<(u32, u64)> {
        if self.lanes.len() > SCANNED_LANES {
            return self.first_of_heap(until_ns);
        }
        // Which die is next follows no pattern, so nothing branches on it.
        let (mut first_ns, mut second_ns) = (NEVER_NS, NEVER_NS);
        let mut first = 0;
        for (lane, &Lane { ask_ns, .. }) in self.lanes.iter().enumerate() {
            let is_first = ask_ns < first_ns;
            second_ns = if is_first {
                first_ns
            } else {
                second_ns.min(ask_ns)
            };
            first = if is_first { lane } else { first };
            first_ns = first_ns.min(ask_ns);
        }
        if first_ns > until_ns {
            return None;
        }
        if first_ns == second_ns {
            return Some(self.first_of_equals(first_ns));
        }
        // At the time of the second ask the numbers decide: that is looked at then.
        Some((first as u32, second_ns - 1))
    }

    /// The same where several dies ask at the same time: the lowest number decides.
    #[cold]
    fn first_of_equals(&self, ask_ns: u64) -> (u32, u64) {
        let asking = self.lanes.iter().enumerate();
        let equals = asking.filter(|(_, lane)| lane.ask_ns == ask_ns);
        let first = equals.min_by_key(|(_, lane)| lane.number);
        // Any later ask comes behind those that wait already.
        (first.map_or(0, |(lane, _)| lane as u32), ask_ns)
    }

    fn first_of_heap(&mut self, until_ns: u64) -> Option<(u32, u64)> {
        if self.heap.peek().is_none_or(|Reverse(ask)| ask.0 > until_ns) {
            return None;
        }
        let Reverse((_, number, lane)) = self.heap.pop()?;
        let second = self.heap.peek();
        let others_ns = second.map_or(NEVER_NS, |Reverse(ask)| ask.0 - u64::from(ask.1 < number));
        Some((lane, others_ns))
    }

    /// Grants asks up to `until_ns` in order, until there is none or an operation starts or ends.
    #[inline]
    pub(super) fn grant(&mut self, shapes: &[Shape], until_ns: u64) -> Option<Granted> {
        while let Some((lane, others_ns)) = self.first(until_ns) {
            let shape = self.lanes[lane as usize].shape as usize;
            let granted = self.run(lane, &shapes[shape], until_ns.min(others_ns));
            if granted.end_ns.is_none() {
                self.file(lane);
            }
            if granted.end_ns.is_some() {
                self.rhythm.is_broken = true;
                return Some(granted);
            }
            if granted.start_ns.is_some() {
                return Some(granted);
            }
            self.follow(lane, until_ns);
        }
        None
    }

    /// Grants the asks of one operation up to `until_ns`, the first in any case.
    #[inline]
    fn run(&mut self, lane: u32, shape: &Shape, until_ns: u64) -> Granted {
        let asking = &mut self.lanes[lane as usize];
        let mut granted = Granted {
            lane,
            ..Granted::default()
        };
        if !asking.started {
            asking.started = true;
            granted.start_ns = Some(asking.ask_ns.max(self.bus_ns));
        }
        loop {
            if asking.left > 1 && asking.step == 0 && asking.ask_ns >= self.bus_ns {
                let copies = alone(asking, shape, until_ns);
                if copies > 0 {
                    let last_ns = add_ns(asking.ask_ns, mul_ns(shape.total_ns, copies - 1));
                    let held_ns = shape.steps[shape.len as usize - 1].bus_ns;
                    self.bus_ns = add_ns(add_ns(last_ns, shape.last_ask_ns), held_ns);
                    asking.left -= copies as u32;
                    asking.ask_ns = add_ns(last_ns, shape.total_ns);
                    if asking.ask_ns > until_ns {
                        return granted;
                    }
                }
            }
            let step = shape.steps[asking.step as usize];
            granted.ask_ns = asking.ask_ns;
            self.bus_ns = add_ns(asking.ask_ns.max(self.bus_ns), step.bus_ns);
            let next_ns = add_ns(self.bus_ns.max(asking.cells_ns), step.cell_ns);
            asking.step += 1;
            if asking.step < shape.len {
                asking.ask_ns = next_ns;
            } else {
                asking.left -= 1;
                if asking.left == 0 {
                    asking.ask_ns = NEVER_NS;
                    granted.end_ns = Some(next_ns);
                    return granted;
                }
                asking.step = 0;
                asking.ask_ns = add_ns(next_ns, shape.before_ns);
            }
            if asking.ask_ns > until_ns {
                return granted;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.rhythm.is_broken = true;
        self.bus_ns = 0;
        self.lanes
            .iter_mut()
            .for_each(|lane| lane.ask_ns = NEVER_NS);
        self.heap.clear();
    }
}

/// Copies of a run, but not its last one, all asks of which come up to `until_ns`: nobody is in their way, so they
/// follow each other at the distance of their duration (docs/spec/timing.md, section 11).
#[inline]
fn alone(lane: &Lane, shape: &Shape, until_ns: u64) -> u64 {
    let Some(room_ns) = until_ns.checked_sub(add_ns(lane.ask_ns, shape.last_ask_ns)) else {
        return 0;
    };
    let most = u64::from(lane.left - 1);
    if mul_ns(shape.total_ns, most) <= room_ns {
        most
    } else {
        // A duration of 0 leaves room for any number.
        (room_ns / shape.total_ns + 1).min(most)
    }
}
