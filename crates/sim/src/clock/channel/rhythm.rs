//! Runs of copies that share a bus soon fall into step: what happens on the channel repeats, later by the same time. Then
//! all repetitions up to the end of the first run, or up to the time that may be granted, are one addition.
//!
//! What decides about the future of a channel, as long as nothing new is issued to it and no operation ends: of each die
//! its ask, as far as it is from those of the others, and the place of the ask in its copy; and how long the bus is still held
//! when the first ask comes. (Between equal asks the numbers of the operations decide, and these stay.) When all that is
//! as it was once before, the course between these two instants repeats.

use super::{Channel, Lane, NEVER_NS, SCANNED_LANES};
use crate::clock::machine::{add_ns, mul_ns};

/// How a die stood when the rhythm was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stand {
    /// Its ask after the first one of the channel; `NEVER_NS` without one.
    ask_ns: u64,
    step: u8,
    left: u32,
}

/// What a channel looked like when its leader was last compared with.
#[derive(Clone, Debug)]
pub(super) struct Rhythm {
    /// Something was issued or ended since.
    pub(super) is_broken: bool,
    /// The die at whose copies the channel is looked at.
    leader: u32,
    /// Least ask.
    ask_ns: u64,
    /// How long the bus is held after it.
    bus_ns: u64,
    stands: Vec<Stand>,
    /// Looks that found nothing, and after how many the comparison begins anew from where the channel is then: what leads to
    /// the rhythm does not belong to it.
    looks: u32,
    renew_at: u32,
}

impl Rhythm {
    pub(super) fn new(dies: u32) -> Self {
        let nowhere = Stand {
            ask_ns: NEVER_NS,
            step: 0,
            left: 0,
        };
        Self {
            is_broken: true,
            leader: 0,
            ask_ns: 0,
            bus_ns: 0,
            stands: vec![nowhere; dies as usize],
            looks: 0,
            renew_at: 1,
        }
    }
}

impl Channel {
    /// Something else has held the bus.
    #[inline]
    pub(in crate::clock) fn disturb(&mut self) {
        self.rhythm.is_broken = true;
    }

    /// A grant has been made to a die, and its operation goes on. If the channel is in rhythm, plays what repeats.
    #[inline]
    pub(super) fn follow(&mut self, lane: u32, until_ns: u64) {
        let Lane { step, left, .. } = self.lanes[lane as usize];
        // Looked at when a copy of a run is over and the next one asks.
        if step == 0 && left > 1 && self.lanes.len() <= SCANNED_LANES {
            if self.rhythm.is_broken {
                self.look_anew(lane);
            } else if self.rhythm.leader == lane {
                self.compare(until_ns);
            }
        }
    }

    fn look_anew(&mut self, leader: u32) {
        self.rhythm.is_broken = false;
        self.rhythm.leader = leader;
        self.rhythm.looks = 0;
        self.rhythm.renew_at = 1;
        self.remember();
    }

    fn remember(&mut self) {
        let least_ns = self.least_ask_ns();
        self.rhythm.ask_ns = least_ns;
        self.rhythm.bus_ns = self.bus_ns.saturating_sub(least_ns);
        for (stand, lane) in self.rhythm.stands.iter_mut().zip(&self.lanes) {
            *stand = Stand {
                ask_ns: after(lane, least_ns),
                step: lane.step,
                left: lane.left,
            };
        }
    }

    #[inline]
    fn compare(&mut self, until_ns: u64) {
        let least_ns = self.least_ask_ns();
        let before = &self.rhythm;
        let mut is_same = self.bus_ns.saturating_sub(least_ns) == before.bus_ns;
        for (stand, lane) in before.stands.iter().zip(&self.lanes) {
            is_same &= stand.ask_ns == after(lane, least_ns) && stand.step == lane.step;
        }
        if is_same {
            return self.repeat(least_ns, until_ns);
        }
        self.rhythm.looks += 1;
        if self.rhythm.looks == self.rhythm.renew_at {
            self.rhythm.looks = 0;
            self.rhythm.renew_at *= 2;
            self.remember();
        }
    }

    /// What came since the channel was remembered comes again, as often as no operation ends and all asks are in time.
    fn repeat(&mut self, least_ns: u64, until_ns: u64) {
        let period_ns = least_ns - self.rhythm.ask_ns;
        let Some(room_ns) = until_ns.checked_sub(least_ns) else {
            return;
        };
        if period_ns == 0 {
            return;
        }
        let mut times = room_ns / period_ns;
        for (stand, lane) in self.rhythm.stands.iter().zip(&self.lanes) {
            let copies = stand.left - lane.left;
            if lane.ask_ns < NEVER_NS && copies > 0 {
                times = times.min(u64::from((lane.left - 1) / copies));
            }
        }
        let later_ns = mul_ns(period_ns, times);
        for (stand, lane) in self.rhythm.stands.iter_mut().zip(&mut self.lanes) {
            if lane.ask_ns < NEVER_NS {
                lane.left -= (stand.left - lane.left) * times as u32;
                lane.ask_ns = add_ns(lane.ask_ns, later_ns);
                stand.left = lane.left;
            }
        }
        self.bus_ns = add_ns(self.bus_ns, later_ns);
        self.rhythm.ask_ns = add_ns(least_ns, later_ns);
    }
}

/// The ask of a die after the least one of its channel.
#[inline]
fn after(lane: &Lane, least_ns: u64) -> u64 {
    match lane.ask_ns {
        NEVER_NS => NEVER_NS,
        ask_ns => ask_ns - least_ns,
    }
}
