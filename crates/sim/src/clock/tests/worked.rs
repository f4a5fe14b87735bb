//! The worked timelines and closed formulas of docs/spec/timing.md, sections 8, 9 and 11.

use super::super::list::replay_on;
use super::super::{Allocation, Closed, Events, Phases};
use super::*;
use OpKind::{CopyBack, Erase, OobRead, PcmRead, PcmWrite, Program, Read};
use floatgate_core::report::Cause;

/// Replayer and engines must all give these times.
fn expect(machine: &Machine, ops: &[ListOp], times: &[(u64, u64)]) {
    assert_eq!(replay_on(machine, ops).as_deref(), Ok(times), "replayer");
    assert_eq!(
        run_list::<Events>(machine, ops, |_, _, _| {}),
        times,
        "events"
    );
    if Closed::fits(machine) {
        assert_eq!(
            run_list::<Closed>(machine, ops, |_, _, _| {}),
            times,
            "closed"
        );
    }
}

#[test]
fn section_1_and_2_lengths() {
    let machine = ssdsim(1, 1);
    assert_eq!(Machine::xfer(2112, 25_000), 52_800);
    assert_eq!(Machine::xfer(1, 1), 1);
    assert_eq!(Machine::xfer(0, 25_000), 0);
    assert_eq!(Machine::xfer(3, 833), 3);
    assert_eq!(machine.duration_ns(FlashOp::new(Read, 0)), 72_975);
    assert_eq!(machine.duration_ns(FlashOp::new(Program, 0)), 252_975);
    assert_eq!(machine.duration_ns(FlashOp::new(Erase, 0)), 1_500_125);
    assert_eq!(
        machine.duration_ns(FlashOp::new(OobRead, 0)),
        175 + 20_000 + 1600
    );
    assert_eq!(machine.duration_ns(FlashOp::new(CopyBack, 0)), 220_350);
    let nocmd = Machine {
        mode: Mode::NoCmd,
        ..machine.clone()
    };
    assert_eq!(nocmd.duration_ns(FlashOp::new(Read, 0)), 72_800);
    let flat = Machine {
        mode: Mode::Flat,
        ..machine
    };
    assert_eq!(flat.duration_ns(FlashOp::new(CopyBack, 0)), 220_000);
    assert_eq!(flat.phases(FlashOp::new(Read, 0)).bus_ns(), 0);
    assert_eq!(flat.data_ns(FlashOp::new(Read, 0)), 52_800);
}

#[test]
fn two_reads_share_a_channel() {
    let ops = [op(Read, 0), op(Read, 1)];
    expect(&ssdsim(1, 2), &ops, &[(0, 72_975), (175, 125_775)]);
}

#[test]
fn read_then_program_on_one_die() {
    let times = [(0, 72_975), (72_975, 325_950)];
    expect(&ssdsim(1, 1), &[op(Read, 0), op(Program, 0)], &times);
    // The partial write: the same.
    expect(
        &ssdsim(1, 1),
        &[op(Read, 0), op(Program, 0).after(&[0])],
        &times,
    );
}

#[test]
fn a_read_hides_in_a_program() {
    let ops = [op(Program, 1), op(Read, 0)];
    expect(&ssdsim(1, 2), &ops, &[(0, 252_975), (52_975, 125_950)]);
}

#[test]
fn eight_pages_over_four_channels() {
    let machine = ssdsim(4, 4);
    let stripe = |kind| (0..8).map(|i| op(kind, i % 4)).collect::<Vec<_>>();
    let mut writes = vec![(0, 252_975); 4];
    writes.extend([(252_975, 505_950); 4]);
    expect(&machine, &stripe(Program), &writes);
    let mut reads = vec![(0, 72_975); 4];
    reads.extend([(72_975, 145_950); 4]);
    expect(&machine, &stripe(Read), &reads);
}

/// Pages go to dies 0, 1, 2, 3, 0, ...: the first two cross the two buses side by side, or one bus after the other.
#[test]
fn eight_pages_over_two_channels_in_both_orders() {
    let writes: Vec<_> = (0..8).map(|i| op(Program, i % 4)).collect();
    let (alone, second) = ((0, 252_975), (52_975, 305_950));
    let (third, fourth) = ((252_975, 505_950), (305_950, 558_925));
    for (allocation, times) in [
        (
            Allocation::ChannelFirst,
            [alone, alone, second, second, third, third, fourth, fourth],
        ),
        (
            Allocation::DieFirst,
            [alone, second, alone, second, third, fourth, third, fourth],
        ),
    ] {
        let machine = Machine {
            allocation,
            ..ssdsim(2, 4)
        };
        expect(&machine, &writes, &times);
        expect(&machine, &writes[..2], &times[..2]);
    }
}

/// Eight dies on two channels, two dies a package: those of a package share a bus, and the next package has the other one.
#[test]
fn pages_over_packages() {
    let machine = Machine {
        allocation: Allocation::PackageFirst,
        package_dies: 2,
        ..ssdsim(2, 8)
    };
    let channels: Vec<_> = (0..8).map(|die| machine.channel_of(die)).collect();
    assert_eq!(channels, [0, 0, 1, 1, 0, 0, 1, 1]);
    let writes: Vec<_> = (0..8).map(|die| op(Program, die)).collect();
    // The n-th page of a bus has n transfers before it.
    let end = |n: u64| (n * 52_975, n * 52_975 + 252_975);
    let times = [0, 1, 0, 1, 2, 3, 2, 3].map(end);
    expect(&machine, &writes, &times);
    let alone = Machine {
        package_dies: 1,
        ..machine.clone()
    };
    let channel_first = Machine {
        allocation: Allocation::ChannelFirst,
        ..machine.clone()
    };
    for die in 0..8 {
        assert_eq!(alone.channel_of(die), channel_first.channel_of(die));
    }
    // One package: the second channel stays empty, so the dies share a bus.
    let one_package = Machine {
        package_dies: 2,
        dies: 2,
        ..machine
    };
    assert!(!Closed::fits(&one_package));
    assert!((0..2).all(|die| one_package.channel_of(die) == 0));
}

/// The orders part where the channels do not divide the dies, too: no channel has two dies more than another.
#[test]
fn every_die_is_on_a_channel() {
    for (channels, dies) in [(1, 1), (2, 4), (3, 7), (4, 6), (5, 5), (8, 3)] {
        for allocation in [Allocation::ChannelFirst, Allocation::DieFirst] {
            let machine = Machine {
                allocation,
                ..ssdsim(channels, dies)
            };
            let on: Vec<_> = (0..dies).map(|die| machine.channel_of(die)).collect();
            for channel in 0..channels.min(dies) {
                let count = on.iter().filter(|&&it| it == channel).count() as u32;
                assert!(count >= dies / channels, "{channels} {dies}: {on:?}");
                assert!(
                    count <= dies.div_ceil(channels),
                    "{channels} {dies}: {on:?}"
                );
            }
            let by_rows = allocation == Allocation::DieFirst;
            assert!(!by_rows || on.is_sorted(), "{channels} {dies}: {on:?}");
        }
    }
}

#[test]
fn four_reads_over_two_dies() {
    let ops = [op(Read, 0), op(Read, 1), op(Read, 0), op(Read, 1)];
    let times = [
        (0, 72_975),
        (175, 125_775),
        (125_775, 198_750),
        (125_950, 251_550),
    ];
    expect(&ssdsim(1, 2), &ops, &times);
}

#[test]
fn planes_and_sub_pages() {
    for (one, end) in [
        (op(Read, 0).planes(2), 125_950),
        (op(Program, 0).planes(2), 305_950),
        (op(Erase, 0).planes(2), 1_500_250),
        (op(Read, 0).bytes(528), 33_375),
        // Both together: 4 planes, half a page each.
        (op(Read, 0).planes(4).bytes(1056), 700 + 20_000 + 105_600),
        // The length of a page means nothing to an OOB read.
        (op(OobRead, 0).planes(2).bytes(528), 350 + 20_000 + 3200),
    ] {
        expect(&ssdsim(1, 1), &[one], &[(0, end)]);
    }
}

/// Three bits a cell, read in 15, 25 and 40 us; two retries more than double that.
#[test]
fn reads_by_page_type_and_again() {
    let sensed = |kind, page_type, retries| ListOp {
        sensing: Sensing { page_type, retries },
        ..op(kind, 0)
    };
    let machine = Machine {
        t_r_by_page_ns: vec![15_000, 25_000, 40_000],
        ..ssdsim(1, 1)
    };
    for (one, end) in [
        (sensed(Read, 0, 0), 175 + 20_000 + 52_800),
        (sensed(Read, 1, 0), 175 + 15_000 + 52_800),
        (sensed(Read, 3, 0), 175 + 40_000 + 52_800),
        (sensed(Read, 2, 2), 175 + 3 * 25_000 + 2 * 175 + 52_800),
        (
            sensed(CopyBack, 3, 1),
            175 + 2 * 40_000 + 175 + 175 + 200_000,
        ),
        // What is no page read has nothing of it.
        (sensed(OobRead, 3, 2), 175 + 20_000 + 1600),
        (sensed(Program, 3, 2), 252_975),
    ] {
        expect(&machine, &[one], &[(0, end)]);
    }
}

/// Three pages of a word line at once: the first two only cross the bus, and are read from the registers. Beside it a die
/// that programs its pages in 100 and 300 us in turn.
#[test]
fn programs_of_a_word_line_at_once_and_by_page() {
    let programmed = |die, programming| ListOp {
        programming,
        ..op(Program, die)
    };
    let lines = |lines| programmed(0, Programming::WordLines(lines));
    let held = |kind| ListOp {
        sensing: Sensing::IN_REGISTER,
        ..op(kind, 0)
    };
    let ops = [
        lines(0),
        lines(0),
        held(Read),
        lines(1),
        lines(2),
        held(OobRead),
        ListOp {
            programming: Programming::WordLines(0),
            ..held(CopyBack)
        },
    ];
    let ends = [
        (0, 52_975),
        (52_975, 105_950),
        (105_950, 158_925 + 175 - 175),
        (158_925, 411_900),
        (411_900, 864_875),
        (864_875, 864_875 + 175 + 1600),
        (866_650, 866_650 + 350),
    ];
    expect(&ssdsim(1, 1), &ops, &ends);
    let machine = Machine {
        t_prog_by_page_ns: vec![100_000, 300_000],
        ..ssdsim(1, 2)
    };
    // The second die waits for the bus, not for the cells.
    let ops = [
        programmed(0, Programming::OfPage(0)),
        programmed(1, Programming::OfPage(1)),
        programmed(0, Programming::OfPage(1)),
    ];
    let ends = [(0, 152_975), (52_975, 405_950), (152_975, 505_950)];
    expect(&machine, &ops, &ends);
}

#[test]
fn hat_read_that_misses() {
    let ops = [
        op(PcmRead, 0),
        op(Read, 0).after(&[0]),
        op(PcmWrite, 0).after(&[0]),
    ];
    expect(
        &ssdsim(1, 1),
        &ops,
        &[(0, 115), (115, 73_090), (115, 90_115)],
    );
}

#[test]
fn copy_between_channels() {
    let ops = [op(Read, 0), op(Program, 1).after(&[0])];
    expect(&ssdsim(2, 2), &ops, &[(0, 72_975), (72_975, 325_950)]);
}

/// The full merge of section 8: two rebuilds of 4 pages, each with the erase of
/// its data block, then the erase of the victim. Starts and ends of the erases.
fn full_merge<C: Clock>(machine: &Machine, copyback: bool) -> Vec<u64> {
    let mut clock = C::new(machine);
    let mut ends = Vec::new();
    let mut all = C::Token::default();
    for _ in 0..2 {
        let copies = clock.copies(0, 4, copyback, Cause::Gc, C::Token::default());
        all = clock.join(all, copies);
        ends.push(copies);
        ends.push(clock.issue(FlashOp::new(Erase, 0), copies));
    }
    ends.push(clock.issue(FlashOp::new(Erase, 0), all));
    clock.finish();
    ends.into_iter()
        .filter_map(|end| clock.known_end(end))
        .collect()
}

#[test]
fn full_merge_on_one_die() {
    let copies = [1_303_800, 2_803_925, 4_107_725, 5_607_850, 7_107_975];
    let copybacks = [881_400, 2_381_525, 3_262_925, 4_763_050, 6_263_175];
    let flat = [880_000, 2_380_000, 3_260_000, 4_760_000, 6_260_000];
    let machine = ssdsim(1, 1);
    assert_eq!(full_merge::<Closed>(&machine, false), copies);
    assert_eq!(full_merge::<Events>(&machine, false), copies);
    assert_eq!(full_merge::<Closed>(&machine, true), copybacks);
    assert_eq!(full_merge::<Events>(&machine, true), copybacks);
    let machine = Machine {
        mode: Mode::Flat,
        ..machine
    };
    for copyback in [false, true] {
        assert_eq!(full_merge::<Closed>(&machine, copyback), flat);
        assert_eq!(full_merge::<Events>(&machine, copyback), flat);
    }
}

#[test]
fn full_merge_operation_by_operation() {
    let (mut ops, mut times): (Vec<ListOp>, Vec<(u64, u64)>) = Default::default();
    let mut programs: Vec<usize> = Vec::new();
    for begin in [0, 2_803_925] {
        let mut rebuilt = Vec::new();
        for copy in 0..4 {
            let start = begin + 325_950 * copy;
            let read = ops.len();
            ops.push(op(Read, 0));
            ops.push(op(Program, 0).after(&[read]));
            times.extend([(start, start + 72_975), (start + 72_975, start + 325_950)]);
            rebuilt.push(read + 1);
        }
        ops.push(op(Erase, 0).after(&rebuilt));
        times.push((begin + 1_303_800, begin + 2_803_925));
        programs.extend(rebuilt);
    }
    ops.push(op(Erase, 0).after(&programs));
    times.push((5_607_850, 7_107_975));
    expect(&ssdsim(1, 1), &ops, &times);
}

/// Time of a request of `n` pages striped over all dies from die `first` on.
fn striped<C: Clock>(machine: &Machine, kind: OpKind, n: u64, first: u64) -> u64 {
    let mut clock = C::new(machine);
    clock.begin_request(1);
    for page in 0..n {
        let die = ((first + page) % u64::from(machine.dies)) as u32;
        let token = clock.issue(FlashOp::new(kind, die), C::Token::default());
        clock.own(token);
    }
    clock.end_request();
    clock.next_completion().map_or(0, |done| done.end_ns)
}

/// The formulas of section 9 for reads and writes of `n` pages.
fn formula(machine: &Machine, kind: OpKind, n: u64) -> Option<u64> {
    let channels = u64::from(machine.channels);
    let dies = u64::from(machine.dies);
    let d = dies / channels;
    let command = machine.phases(FlashOp::new(Read, 0)).bus_1_ns;
    let transfer = Machine::xfer(machine.transfer_bytes(), machine.out_ps);
    let (t_r, t_prog) = (machine.t_r_ns, machine.t_prog_ns);
    let w = command + Machine::xfer(machine.transfer_bytes(), machine.in_ps);
    let q = n / dies;
    if n > dies && !n.is_multiple_of(dies) {
        return None;
    }
    Some(match kind {
        Read if (d - 1) * command > transfer.min(t_r) => return None,
        Read if n <= dies => command + t_r + n.div_ceil(channels) * transfer,
        Read if command == 0 => (q - 1) * (t_r + transfer).max(d * transfer) + t_r + d * transfer,
        Read => q * (command + t_r + d * transfer),
        _ if n <= dies => n.div_ceil(channels) * w + t_prog,
        _ => (q - 1) * (d * w).max(w + t_prog) + d * w + t_prog,
    })
}

#[test]
fn section_9_formulas() {
    let mut held = 0;
    for (channels, d, n) in (0..6 * 6 * 40).map(|i| (i / 240 + 1, i / 40 % 6 + 1, i % 40 + 1)) {
        for (mode, cycle_ns) in [(Mode::Onfi, 25), (Mode::NoCmd, 25), (Mode::Onfi, 400)] {
            let machine = Machine {
                mode,
                cycle_ns,
                ..ssdsim(channels, channels * d)
            };
            for kind in [Read, Program] {
                let Some(wanted) = formula(&machine, kind, n.into()) else {
                    continue;
                };
                let got = striped::<Events>(&machine, kind, n.into(), u64::from(n % 3));
                assert_eq!(got, wanted, "{channels} x {d}, {kind:?} of {n}, {mode:?}");
                if Closed::fits(&machine) {
                    assert_eq!(striped::<Closed>(&machine, kind, n.into(), 0), wanted);
                }
                held += 1;
            }
        }
    }
    assert!(held > 3000, "{held}");
}

#[test]
fn section_9_table() {
    /// Machines (channels, dies), pages, ns of the read and of the write.
    type Row = (&'static [(u32, u32)], u64, u64, u64);
    let rows: [Row; 6] = [
        (&[(1, 1), (4, 4), (4, 16)], 1, 72_975, 252_975),
        (&[(4, 4), (4, 16)], 4, 72_975, 252_975),
        (&[(4, 4)], 16, 291_900, 1_011_900),
        (&[(4, 16)], 16, 231_375, 411_900),
        (&[(4, 16)], 32, 462_750, 664_875),
        (&[(4, 16)], 64, 925_500, 1_170_825),
    ];
    for (machines, n, read_ns, write_ns) in rows {
        for &(channels, dies) in machines {
            let machine = ssdsim(channels, dies);
            assert_eq!(striped::<Events>(&machine, Read, n, 0), read_ns);
            assert_eq!(striped::<Events>(&machine, Program, n, 0), write_ns);
        }
    }
}

#[test]
fn section_9_full_merge() {
    for (k, pages) in [(1_u64, 4_u32), (3, 8), (4, 64)] {
        for copyback in [false, true] {
            // Its die alone on the channel: the others stay idle.
            let mut clock = Events::new(&ssdsim(2, 4));
            let mut last = Default::default();
            for _ in 0..k {
                let copies = clock.copies(1, pages, copyback, Cause::Gc, Default::default());
                last = clock.issue(FlashOp::new(Erase, 1), copies);
            }
            clock.issue(FlashOp::new(Erase, 1), last);
            clock.finish();
            let cells = 2 * 175 + 20_000 + 200_000;
            let copy = if copyback { cells } else { cells + 2 * 52_800 };
            let wanted = k * u64::from(pages) * copy + (k + 1) * 1_500_125;
            assert_eq!(clock.last_end_ns(), wanted);
        }
    }
}

#[test]
fn section_9_oob_read_before_the_page() {
    let ops = [op(OobRead, 0), op(Read, 0).after(&[0])];
    let oob = 175 + 20_000 + 1600;
    expect(&ssdsim(1, 1), &ops, &[(0, oob), (oob, oob + 72_975)]);
}

/// Section 9: with deep queues throughput comes up to the ceilings and never
/// above them.
#[test]
fn section_9_ceilings() {
    for (channels, d) in [(1, 1), (1, 2), (2, 4), (4, 8)] {
        let machine = ssdsim(channels, channels * d);
        for (kind, bus, total) in [(Read, 52_975, 72_975), (Program, 52_975, 252_975)] {
            let pages = 4000 * u64::from(machine.dies);
            let time = striped::<Events>(&machine, kind, pages, 0) as f64;
            let ceiling = (f64::from(channels) / f64::from(bus))
                .min(f64::from(machine.dies) / f64::from(total));
            let rate = pages as f64 / time;
            assert!(rate <= ceiling, "{channels} x {d} {kind:?}");
        }
    }
}

/// Section 11: copies from one die to another on a channel of its own, issued
/// read, program, read, ...; copy `j` ends at
/// `max(max(F_b, F_a + ur) + j uw, F_a + j ur + uw)`.
#[test]
fn section_11_copies_between_dies() {
    let (ur, uw) = (72_975, 252_975);
    for (free_a, free_b) in [(0, 0), (5_000_000, 0), (0, 5_000_000), (400_000, 700_000)] {
        let machine = ssdsim(2, 2);
        let mut clock = Closed::new(&machine);
        let mut other = Events::new(&machine);
        for (die, free) in [(0, free_a), (1, free_b)] {
            for _ in 0..free / 100_000 {
                // 100 us of cell time each, nothing on the bus.
                let blank = FlashOp::new(Erase, die);
                clock.issue(blank, Default::default());
                other.issue(blank, Default::default());
            }
        }
        let free_a = free_a / 100_000 * 1_500_125;
        let free_b = free_b / 100_000 * 1_500_125;
        for j in 1..=40_u64 {
            let read = clock.issue(FlashOp::new(Read, 0), Default::default());
            let copy = clock.issue(FlashOp::new(Program, 1), read);
            let wanted = (free_b.max(free_a + ur) + j * uw).max(free_a + j * ur + uw);
            assert_eq!(clock.known_end(copy), Some(wanted));
            let read = other.issue(FlashOp::new(Read, 0), Default::default());
            other.issue(FlashOp::new(Program, 1), read);
        }
        other.finish();
        assert_eq!(other.last_end_ns(), clock.last_end_ns());
    }
}

/// Section 11: one more operation can let another one end earlier.
#[test]
fn an_end_that_is_not_final_is_no_bound() {
    let mut found = false;
    for seed in 0..3000 {
        let mut rng = Rng(seed);
        let machine = random_machine(&mut rng);
        let mut ops = random_list(&mut rng, &machine, 12);
        let all = replay_on(&machine, &ops).expect("times");
        ops.pop();
        let fewer = replay_on(&machine, &ops).expect("times");
        found |= fewer.iter().zip(&all).any(|(a, b)| b.1 < a.1);
    }
    assert!(found, "no such list among them");
}

/// Closed form of `copies` against one operation after the other.
#[test]
fn batched_copies() {
    for seed in 0..300 {
        let mut rng = Rng(seed);
        let mut machine = random_machine(&mut rng);
        (machine.channels, machine.package_dies) = (machine.dies, 1);
        let mut closed = Closed::new(&machine);
        let mut events = Events::new(&machine);
        let (mut a, mut b) = Default::default();
        for step in 0..20_u64 {
            closed.set_time(step * 50_000);
            events.set_time(step * 50_000);
            let die = rng.below(machine.dies.into()) as u32;
            let (pages, copyback) = (rng.below(5) as u32, rng.chance(50));
            let after = if rng.chance(50) {
                (a, b)
            } else {
                Default::default()
            };
            closed.begin_request(step);
            a = closed.copies(die, pages, copyback, Cause::Gc, after.0);
            closed.own(a);
            closed.end_request();
            events.begin_request(step);
            b = events.copies(die, pages, copyback, Cause::Gc, after.1);
            events.own(b);
            events.end_request();
        }
        closed.finish();
        events.finish();
        let (mut one, mut other) = (Vec::new(), Vec::new());
        closed.drain(&mut one);
        events.drain(&mut other);
        one.sort_unstable();
        other.sort_unstable();
        assert_eq!(one, other, "seed {seed}");
        assert_eq!(closed.die_busy_ns(), events.die_busy_ns());
        assert_eq!(closed.channel_busy_ns(), events.channel_busy_ns());
    }
}

/// Endless collections on all dies of a channel: they fall into step, and the bus is never idle again. One by one their copies
/// would take hours here.
#[test]
fn long_runs_that_share_a_bus_keep_it_busy() {
    let machine = ssdsim(1, 4);
    let pages = 500_000_000;
    let mut clock = Events::new(&machine);
    clock.begin_request(0);
    for die in 0..4 {
        let end = clock.copies(die, pages, false, Cause::Gc, Default::default());
        clock.own(end);
    }
    clock.end_request();
    clock.finish();
    let phases = machine.ordinary_phases();
    let copy = [Read, Program].map(|kind| phases[kind as usize]);
    let bus_ns = 4 * u64::from(pages) * copy.iter().map(Phases::bus_ns).sum::<u64>();
    let alone_ns = copy.iter().map(Phases::total_ns).sum::<u64>();
    let idle_ns = clock.last_end_ns() - bus_ns;
    assert!(idle_ns < 2 * alone_ns, "idle for {idle_ns} ns");
}
