//! PCM chips, at random against a judge that looks at every instant.

use floatgate_core::pcm::PcmSetup;

use super::super::list::{self, ListOp};
use super::super::{Clock, Closed, Events, Machine, OpKind, Scheduled};
use super::{Rng, op, random_machine};

/// An access of a chip: issued at, from when it may begin.
struct Access {
    is_read: bool,
    chip: u32,
    due_ns: u64,
}

/// Starts and ends of all accesses by the words of docs/spec/hat.md, section 9: at each instant at which a chip is free
/// it begins the first read that is due, else the first write, if that may begin.
fn judge(machine: &Machine, accesses: &[Access]) -> Vec<(u64, u64)> {
    let mut times = vec![(0, 0); accesses.len()];
    for chip in 0..machine.pcm.chips {
        let mine = |&i: &usize| accesses[i].chip == chip;
        let mut left: Vec<usize> = (0..accesses.len()).filter(mine).collect();
        let mut now_ns = 0;
        while !left.is_empty() {
            let first = |is_read| {
                let of_kind = |&&i: &&usize| accesses[i].is_read == is_read;
                left.iter().find(of_kind).copied()
            };
            let heads = [first(true), first(false)].into_iter().flatten();
            let may = heads.clone().find(|&i| accesses[i].due_ns <= now_ns);
            let Some(next) = may else {
                let earliest = heads.map(|i| accesses[i].due_ns).min();
                now_ns = earliest.expect("one is left");
                continue;
            };
            let length_ns = match accesses[next].is_read {
                true => machine.pcm_read_ns,
                false => machine.pcm_write_ns,
            };
            times[next] = (now_ns, now_ns + length_ns);
            now_ns += length_ns;
            left.retain(|&i| i != next);
        }
    }
    times
}

/// Flash operations, PCM reads that wait for nothing, PCM writes that wait for one of the latest flash operations.
fn random_list(rng: &mut Rng, machine: &Machine) -> Vec<ListOp> {
    let (mut at_ns, mut flash) = (0, Vec::new());
    let most_ns = rng.pick(&[3, 100, 60_000, 400_000]);
    let mut ops = Vec::new();
    for number in 0..120 {
        at_ns += rng.below(3) * rng.below(most_ns);
        let kind = rng.pick(&[
            OpKind::Read,
            OpKind::Program,
            OpKind::PcmRead,
            OpKind::PcmWrite,
        ]);
        let die = match kind.is_pcm() {
            true => rng.below(machine.pcm.chips.into()),
            false => rng.below(machine.dies.into()),
        };
        let mut next = op(kind, die as u32).at(at_ns);
        next.die = Some(die as u32);
        if kind == OpKind::PcmWrite && rng.chance(60) {
            let latest = flash.iter().rev().take(6).copied().collect::<Vec<usize>>();
            next.after.extend(latest.first().map(|_| rng.pick(&latest)));
        }
        if !kind.is_pcm() {
            flash.push(number);
        }
        ops.push(next);
    }
    ops
}

/// Plays a list; what is compared is the end of every PCM read, the latest end and the busy time.
fn check<C: Clock>(machine: &Machine, ops: &[ListOp], seed: u64) -> u32 {
    // No flash operation waits for PCM, so the flash alone says when a write may begin.
    let is_flash = |op: &&ListOp| !op.op.is_pcm();
    let alone: Vec<ListOp> = ops.iter().filter(is_flash).cloned().collect();
    let flash_times = list::replay_on(machine, &alone).expect("a valid list");
    let place = |number: usize| ops[..number].iter().filter(is_flash).count();
    let pcm: Vec<&ListOp> = ops.iter().filter(|op| op.op.is_pcm()).collect();
    let accesses = pcm.iter().map(|op| {
        let ends = op.after.iter().map(|&other| flash_times[place(other)].1);
        Access {
            is_read: op.op == OpKind::PcmRead,
            chip: op.die.expect("a chip"),
            due_ns: ends.fold(op.at, u64::max),
        }
    });
    let accesses: Vec<Access> = accesses.collect();
    let times = judge(machine, &accesses);
    let mut clock = C::new(machine);
    let (mut tokens, mut reads) = (Vec::new(), Vec::new());
    for op in ops {
        clock.set_time(op.at);
        let after = op.after.iter().fold(C::Token::default(), |after, &other| {
            clock.join(after, tokens[other])
        });
        let is_read = op.op == OpKind::PcmRead;
        if is_read {
            clock.begin_request(reads.len() as u64);
        }
        let token = clock.issue(op.flash_op(), after);
        tokens.push(token);
        if is_read {
            clock.own(token);
            clock.end_request();
            reads.push(0);
            let is_known = clock.known_end(token).is_some();
            assert!(is_known || C::REORDERS, "known at once");
        }
    }
    clock.finish();
    let mut done = Vec::new();
    clock.drain(&mut done);
    for completion in done {
        reads[completion.request as usize] = completion.end_ns;
    }
    let ends = accesses.iter().zip(&times).filter(|(a, _)| a.is_read);
    let expected: Vec<u64> = ends.map(|(_, time)| time.1).collect();
    assert_eq!(reads, expected, "seed {seed}: {machine:?}");
    let all = times.iter().chain(&flash_times).map(|time| time.1);
    assert_eq!(clock.last_end_ns(), all.max().unwrap_or(0), "seed {seed}");
    let busy_ns: u64 = times.iter().map(|time| time.1 - time.0).sum();
    assert_eq!(clock.pcm_busy_ns(), busy_ns, "seed {seed}");
    let overtakes = |&i: &usize| {
        let earlier = accesses[..i].iter().zip(&times).filter(|(a, _)| !a.is_read);
        accesses[i].is_read
            && earlier
                .filter(|(a, _)| a.chip == accesses[i].chip)
                .any(|(_, t)| t.0 >= times[i].1)
    };
    (0..accesses.len()).filter(overtakes).count() as u32
}

#[test]
fn chips_that_read_first_agree_with_the_judge() {
    let (mut overtaken, mut closed) = (0, 0);
    for seed in 0..400 {
        let mut rng = Rng(seed);
        let mut machine = random_machine(&mut rng);
        machine.pcm = PcmSetup {
            chips: 1 + rng.below(3) as u32,
            read_first: true,
        };
        let ops = random_list(&mut rng, &machine);
        overtaken += check::<Events>(&machine, &ops, seed);
        check::<Scheduled>(&machine, &ops, seed);
        if Closed::fits(&machine) {
            closed += 1;
            check::<Closed>(&machine, &ops, seed);
        }
    }
    assert!(overtaken > 2_000, "{overtaken} reads went before a write");
    assert!(closed > 20, "{closed} for the closed forms");
}

/// A write that is put off is not what its request begins with, nor does it end it.
#[test]
fn a_write_that_can_be_put_off_is_no_part_of_its_request() {
    fn first_starts<C: Clock>(read_first: bool) -> u64 {
        let mut machine = super::ssdsim(2, 2);
        machine.pcm.read_first = read_first;
        let mut clock = C::new(&machine);
        clock.issue(op(OpKind::Program, 0).flash_op(), C::Token::default());
        clock.begin_request(0);
        clock.issue(op(OpKind::PcmWrite, 0).flash_op(), C::Token::default());
        let program = clock.issue(op(OpKind::Program, 0).flash_op(), C::Token::default());
        clock.own(program);
        clock.end_request();
        clock.finish();
        let mut done = Vec::new();
        clock.drain(&mut done);
        assert_eq!(done[0].end_ns, 2 * 252_975);
        done[0].first_start_ns
    }
    assert_eq!(
        [
            first_starts::<Closed>(false),
            first_starts::<Events>(false),
            first_starts::<Scheduled>(false)
        ],
        [0, 0, 0]
    );
    assert_eq!(
        [
            first_starts::<Closed>(true),
            first_starts::<Events>(true),
            first_starts::<Scheduled>(true)
        ],
        [252_975, 252_975, 252_975]
    );
}
