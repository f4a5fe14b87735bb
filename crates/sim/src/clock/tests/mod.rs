//! Tests of the clocks: by hand, by formula, and at random against the replayer.

mod cached;
mod host;
mod pcm;
mod random;
mod robust;
mod scheduled;
mod worked;

use floatgate_core::pcm::PcmSetup;

use super::list::ListOp;
use super::{Allocation, Clock, Completion, FlashOp, Machine, Mode, OpKind, Programming, Sensing};

/// The part `ssdsim` in mode `onfi` (docs/spec/timing.md, section 8).
fn ssdsim(channels: u32, dies: u32) -> Machine {
    Machine {
        channels,
        dies,
        ..Machine::default()
    }
}

/// An operation of a list: at 0, after nothing.
fn op(kind: OpKind, die: u32) -> ListOp {
    ListOp {
        op: kind,
        die: (!kind.is_pcm()).then_some(die),
        planes: 1,
        bytes: None,
        sensing: Sensing::default(),
        programming: Programming::default(),
        after: Vec::new(),
        at: 0,
    }
}

impl ListOp {
    fn after(mut self, after: &[usize]) -> Self {
        self.after = after.to_vec();
        self
    }
    fn at(mut self, at: u64) -> Self {
        self.at = at;
        self
    }
    fn planes(mut self, planes: u32) -> Self {
        self.planes = planes;
        self
    }
    fn bytes(mut self, bytes: u32) -> Self {
        self.bytes = Some(bytes);
        self
    }
    /// The same for an engine.
    fn flash_op(&self) -> FlashOp {
        FlashOp {
            planes: self.planes,
            bytes: self.bytes.unwrap_or(0),
            sensing: self.sensing,
            programming: self.programming,
            ..FlashOp::new(self.op, self.die.unwrap_or(0))
        }
    }
}

/// Runs a list through an engine; every operation is a request of its own, so
/// that its completion tells start and end. `meddle` may look at the clock
/// after every operation, and drain it.
fn run_list<C: Clock>(
    machine: &Machine,
    ops: &[ListOp],
    mut meddle: impl FnMut(&mut C, usize, &mut Vec<Completion>),
) -> Vec<(u64, u64)> {
    let mut clock = C::new(machine);
    let mut tokens: Vec<C::Token> = Vec::new();
    let mut done: Vec<Completion> = Vec::new();
    for (number, op) in ops.iter().enumerate() {
        clock.set_time(op.at);
        clock.begin_request(number as u64);
        let mut after = C::Token::default();
        for &earlier in &op.after {
            after = clock.join(after, tokens[earlier]);
        }
        let token = clock.issue(op.flash_op(), after);
        clock.own(token);
        clock.end_request();
        tokens.push(token);
        meddle(&mut clock, number, &mut done);
    }
    clock.finish();
    clock.drain(&mut done);
    let mut times = vec![(u64::MAX, u64::MAX); ops.len()];
    for completion in done {
        let time = &mut times[completion.request as usize];
        assert_eq!(*time, (u64::MAX, u64::MAX), "handed out twice");
        *time = (completion.first_start_ns, completion.end_ns);
    }
    let last_ns = times.iter().map(|t| t.1).max().unwrap_or(0);
    assert_eq!(clock.last_end_ns(), last_ns, "latest end");
    times
}

/// SplitMix64: small, and its seeds can be printed.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// `0..n`.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A machine with round numbers among others, so that many things happen at
/// the same instant.
fn random_machine(rng: &mut Rng) -> Machine {
    let channels = 1 + rng.below(4) as u32;
    let small = rng.chance(50);
    let mut time = |usual: u64| {
        if small { rng.below(6) } else { usual }
    };
    Machine {
        t_r_ns: time(20_000),
        t_r_by_page_ns: vec![time(15_000), time(25_000), time(20_000)],
        t_prog_ns: time(200_000),
        t_prog_by_page_ns: vec![time(100_000), time(300_000)],
        t_bers_ns: time(1_500_000),
        t_r_oob_ns: time(20_000),
        cycle_ns: time(25),
        in_ps: time(25_000),
        out_ps: time(25_000),
        pcm_read_ns: time(115),
        pcm_write_ns: time(90_000),
        pcm: PcmSetup::default(),
        channels,
        dies: channels * (1 + rng.below(4) as u32) + rng.below(2) as u32,
        allocation: rng.pick(&Allocation::ALL),
        package_dies: 1 + rng.below(3) as u32,
        planes: 4,
        page_bytes: if small { 1000 } else { 2048 },
        oob_bytes: if small { 0 } else { 64 },
        mode: rng.pick(&[Mode::Onfi, Mode::Onfi, Mode::NoCmd, Mode::Flat]),
        ..Machine::default()
    }
}

fn random_op(rng: &mut Rng, machine: &Machine) -> ListOp {
    let mut new = op(
        rng.pick(&OpKind::ALL),
        rng.below(u64::from(machine.dies)) as u32,
    );
    if rng.chance(20) {
        new.planes = rng.pick(&[2, 4]);
    }
    if rng.chance(20) {
        new.sensing = Sensing {
            page_type: rng.below(4) as u8,
            retries: rng.below(3) as u8,
        };
        if rng.chance(20) {
            new.sensing = Sensing::IN_REGISTER;
        }
        new.programming = match rng.chance(50) {
            true => Programming::OfPage(rng.below(2) as u8),
            false => Programming::WordLines(rng.below(3) as u8),
        };
    }
    if rng.chance(20) {
        new.bytes = Some(rng.pick(&[528, 1056, 1584]));
    }
    new
}

/// Operations with `at` going up in steps that suit the machine.
fn random_list(rng: &mut Rng, machine: &Machine, len: usize) -> Vec<ListOp> {
    let read_ns = machine.duration_ns(FlashOp::new(OpKind::Read, 0)).max(1);
    let step = rng.pick(&[1, 2, read_ns / 2 + 1, read_ns * 3, 400_000]);
    let mut at = 0;
    let mut ops = Vec::new();
    for number in 0..len {
        if rng.chance(40) {
            at += rng.below(step);
        }
        let mut new = random_op(rng, machine).at(at);
        if number > 0 && rng.chance(50) {
            let reach = rng.pick(&[2, 8, len as u64]).min(number as u64);
            for _ in 0..=rng.below(6) {
                new.after.push(number - 1 - rng.below(reach) as usize);
            }
        }
        ops.push(new);
    }
    ops
}
