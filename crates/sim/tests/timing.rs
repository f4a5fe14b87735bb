//! Does a whole device keep time? One scheme on machines small enough to work out by hand.

mod common;

use common::config;
use floatgate_core::Lpn;
use floatgate_core::rng::SplitMix64;
use floatgate_schemes::page::Page;
use floatgate_sim::clock::{Clock, Closed, Events, Scheduled};
use floatgate_sim::config::{Arrivals, Copyback, Host, RunConfig};
use floatgate_sim::host::Kind;
use floatgate_sim::part::PageTimes;
use floatgate_sim::session::Session;
use floatgate_trace::{Op, Request};

fn request(op: Op, arrival_ns: u64, offset: u64, bytes: u64) -> Request {
    Request {
        arrival_ns,
        op,
        volume: 0,
        stream: floatgate_trace::Stream::NONE,
        offset,
        bytes,
    }
}

/// Cycles 175, transfer 52 800, tR 20 000, tPROG 200 000.
const READ_NS: u64 = 72_975;
const WRITE_NS: u64 = 252_975;

fn closed_loop(config: &RunConfig, depth: u32) -> RunConfig {
    let host = Host {
        arrivals: Arrivals::Closed,
        queue_depth: depth,
        ..Host::default()
    };
    RunConfig {
        host,
        ..config.clone()
    }
}

/// The table of closed formulas: one request at a time on 4 channels of `d` dies.
#[test]
fn rows_of_the_throughput_table() {
    for (dies, n, read_ns, write_ns) in [
        (4, 1, 72_975, 252_975),
        (4, 4, 72_975, 252_975),
        (4, 16, 291_900, 1_011_900),
        (16, 4, 72_975, 252_975),
        (16, 16, 231_375, 411_900),
        (16, 32, 462_750, 664_875),
        (16, 64, 925_500, 1_170_825),
    ] {
        let mut config = closed_loop(&config(dies, 20, 64, 8, &[]), 1);
        config.device.channels = 4;
        let time = |kind| {
            let mut session = Session::<Page, Events>::new(&config).unwrap();
            session.page_request(kind, Lpn(0), n, 0);
            session.finish();
            session.metrics.last_completion_ns
        };
        assert_eq!(time(Kind::Read), read_ns, "{dies} dies, read {n}");
        assert_eq!(time(Kind::Write), write_ns, "{dies} dies, write {n}");
    }
}

#[test]
fn open_loop_counts_queueing_and_closed_loop_does_not() {
    let base = config(1, 20, 64, 8, &[]);
    let play = |config: &RunConfig| {
        let mut session = Session::<Page, Closed>::new(config).unwrap();
        for _ in 0..2 {
            session
                .request(&request(Op::Write, 1_000, 0, 2048))
                .unwrap();
        }
        session.finish();
        (
            session.metrics.writes.max_ns(),
            session.metrics.queue.max_ns,
            session.metrics.last_completion_ns,
        )
    };
    assert_eq!(play(&base), (2 * WRITE_NS, WRITE_NS, 1_000 + 2 * WRITE_NS));
    assert_eq!(play(&closed_loop(&base, 1)), (WRITE_NS, 0, 2 * WRITE_NS));
    assert_eq!(
        play(&closed_loop(&base, 2)),
        (2 * WRITE_NS, WRITE_NS, 2 * WRITE_NS)
    );
}

#[test]
fn a_partly_written_page_is_read_first_if_it_has_content() {
    let play = |offset, bytes, trimmed: bool| {
        let mut session = Session::<Page, Closed>::new(&config(1, 20, 64, 8, &[])).unwrap();
        if trimmed {
            session.request(&request(Op::Trim, 0, 0, 1 << 20)).unwrap();
        }
        session
            .request(&request(Op::Write, 0, offset, bytes))
            .unwrap();
        session.finish();
        session.check_laws().unwrap();
        (
            session.metrics.partial_write_reads,
            session.metrics.writes.max_ns(),
        )
    };
    assert_eq!(play(0, 2048, false), (0, WRITE_NS));
    assert_eq!(play(512, 512, false), (1, READ_NS + WRITE_NS));
    assert_eq!(play(512, 512, true), (0, WRITE_NS));
    // Both ends of three pages: two reads, then three programs.
    assert_eq!(play(512, 4096, false), (2, 2 * READ_NS + 3 * WRITE_NS));
}

#[test]
fn a_short_read_transfers_its_sub_pages_only() {
    let play = |offset, bytes| {
        let mut session = Session::<Page, Closed>::new(&config(1, 20, 64, 8, &[])).unwrap();
        session
            .request(&request(Op::Read, 0, offset, bytes))
            .unwrap();
        session.finish();
        session.metrics.reads.max_ns()
    };
    assert_eq!(play(0, 512), 33_375);
    assert_eq!(play(100, 500), 175 + 20_000 + 2 * 13_200);
    assert_eq!(play(0, 2048), READ_NS);
    assert_eq!(play(1536, 1024), 2 * 33_375);
}

/// A flush ends with the last of all earlier writes, and is no barrier.
#[test]
fn flush_waits_for_writes() {
    for depth in [0, 1, 2, 8] {
        let mut config = config(1, 20, 64, 8, &[]);
        config.host.queue_depth = depth;
        let mut session = Session::<Page, Events>::new(&config).unwrap();
        session.request(&request(Op::Write, 0, 0, 4096)).unwrap();
        session.request(&request(Op::Flush, 10, 0, 0)).unwrap();
        session.request(&request(Op::Read, 20, 0, 2048)).unwrap();
        session.finish();
        let m = &session.metrics;
        // With one place in the queue the flush is issued at the end of the write; counted from its arrival
        // that is the same instant.
        let flush_ns = 2 * WRITE_NS - 10;
        assert_eq!(
            (m.flushes.count, m.flushes.max_ns),
            (1, flush_ns),
            "depth {depth}"
        );
        assert_eq!(
            m.reads.max_ns(),
            2 * WRITE_NS + READ_NS - 20,
            "depth {depth}"
        );
    }
}

/// Two clocks, one answer, where each channel has one die.
#[test]
fn both_clocks_agree_on_a_random_run() {
    fn play<C: Clock>(config: &RunConfig, seed: u64) -> (u128, u128, u64, u64) {
        let mut rng = floatgate_core::rng::SplitMix64::new(seed);
        let mut session = Session::<Page, C>::new(config).unwrap();
        let bytes = session.config().device.logical_pages * 2048;
        let mut at = 0;
        for _ in 0..3_000 {
            at += rng.below(400_000);
            let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush][rng.below(5) as usize];
            let size = if op == Op::Flush {
                0
            } else {
                512 * (1 + rng.below(24))
            };
            let offset = if op == Op::Flush {
                0
            } else {
                rng.below((bytes - size) / 512) * 512
            };
            session.request(&request(op, at, offset, size)).unwrap();
        }
        session.finish();
        session.check_laws().unwrap();
        let m = &session.metrics;
        (
            m.reads.sum_ns(),
            m.writes.sum_ns(),
            m.queue.max_ns,
            m.last_completion_ns,
        )
    }
    for (seed, depth) in [(1, 0), (2, 0), (3, 1), (4, 4), (5, 32)] {
        let mut config = config(4, 24, 16, 16, &[]);
        config.host.queue_depth = depth;
        assert_eq!(
            play::<Closed>(&config, seed),
            play::<Events>(&config, seed),
            "seed {seed} depth {depth}"
        );
    }
}

/// Every other page of a block of two bits a cell is a slow one; a read of a block erased 10 times needs one retry. Whichever clock: alone on its channel, sharing it, or scheduled.
#[test]
fn reads_by_page_type_and_wear() {
    let mut config = config(2, 20, 64, 8, &[]);
    config.device.part.t_r_ns = 20_000;
    config.device.part.t_r_by_page_ns = PageTimes::new(&[15_000, 25_000]).unwrap();
    config.device.read_retry = vec![10, 20];
    for (erases_before, retries) in [(0, 0), (10, 1), (19, 1), (25, 2)] {
        config.device.erases_before = erases_before;
        let again_ns = |t_r_ns: u64| retries * (t_r_ns + 175);
        let fast_ns = READ_NS - 5000 + again_ns(15_000);
        let slow_ns = READ_NS + 5000 + again_ns(25_000);
        for (page, ns) in [(0, fast_ns), (2, slow_ns), (4, fast_ns), (6, slow_ns)] {
            config.device.channels = 2;
            assert_eq!(read_alone::<Closed>(&config, page), (ns, retries));
            assert_eq!(read_alone::<Events>(&config, page), (ns, retries));
            config.device.channels = 1;
            assert_eq!(read_alone::<Events>(&config, page), (ns, retries));
            assert_eq!(read_alone::<Scheduled>(&config, page), (ns, retries));
        }
    }
}

/// Time of a read of one page, and its retries.
fn read_alone<C: Clock>(config: &RunConfig, page: u32) -> (u64, u64) {
    let mut session = Session::<Page, C>::new(config).unwrap();
    session.page_request(Kind::Read, Lpn(page), 1, 0);
    session.finish();
    let ns = session.metrics.last_completion_ns;
    (ns, session.flash.fine.read_retries)
}

/// A collection reads slow and fast pages too, one by one or in a run: both ways it takes as long as its cells.
#[test]
fn copies_know_their_pages() {
    for copyback in [Copyback::Off, Copyback::Plane, Copyback::Parity] {
        let mut config = config(1, 7, 8, 4, &[]);
        config.device.copyback = copyback;
        let busy_ns = |config: &RunConfig| {
            let mut session = Session::<Page, Closed>::new(config).unwrap();
            let mut rng = SplitMix64::new(1);
            for _ in 0..300 {
                let page = Lpn(rng.below(32) as u32);
                session.page_request(Kind::Write, page, 1, 0);
            }
            session.finish();
            session.check_laws().unwrap();
            let reads = session.flash.ledger.counters.reads.gc;
            (session.flash.clock.die_busy_ns()[0], reads)
        };
        let (plain_ns, reads) = busy_ns(&config);
        assert!(reads > 0);
        // The same times, told by page.
        config.device.part.t_r_by_page_ns = PageTimes::new(&[20_000; 3]).unwrap();
        assert_eq!(busy_ns(&config), (plain_ns, reads));
        config.device.part.t_r_by_page_ns = PageTimes::new(&[27_000; 3]).unwrap();
        assert_eq!(busy_ns(&config), (plain_ns + 7000 * reads, reads));
    }
}
