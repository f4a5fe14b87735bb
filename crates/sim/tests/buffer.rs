//! Memory between host and scheme: worked times, laws under every scheme, and what it is good for.

mod common;

use common::config;
use common::played::{PAGE, ends, pages, r, random, run};
use floatgate_catalog as _;
use floatgate_core::buffer::Eviction;
use floatgate_core::options::{Setting, Value};
use floatgate_core::rng::SplitMix64;
use floatgate_sim::config::{Buffer, Recipe, RunConfig};
use floatgate_sim::host::Kind;
use floatgate_sim::record::Record;
use floatgate_sim::run::{Decoded, RunError, Simulated};
use floatgate_trace::{Op, Request};

/// One die of 32 logical pages; a read takes 72,975 ns, a program 252,975.
fn small(buffer: Buffer) -> RunConfig {
    let mut config = config(1, 16, 4, 8, &[]);
    config.device.buffer = buffer;
    config
}

#[test]
fn a_write_waits_for_its_slot_and_a_flush_for_all_that_is_held() {
    let config = small(Buffer {
        write_pages: 2,
        ..Buffer::default()
    });
    let requests = [
        pages(0, Op::Write, 0, 1),
        pages(10_000, Op::Write, 1, 1),
        // Again: page 1 is the older one now.
        pages(20_000, Op::Write, 0, 1),
        pages(30_000, Op::Read, 0, 1),
        // Page 1 leaves, 40,000 to 292,975, and frees the slot of page 2.
        pages(40_000, Op::Write, 2, 1),
        // From the flash, behind that.
        pages(50_000, Op::Read, 1, 1),
        // Page 0 leaves behind the read.
        pages(60_000, Op::Write, 3, 1),
        // It is not there before its slot was free.
        pages(70_000, Op::Read, 3, 1),
        // Pages 2 and 3 leave.
        pages(1_000_000, Op::Flush, 0, 0),
        pages(2_000_000, Op::Write, 2, 1),
    ];
    let (record, rows) = run("page", &config, &requests);
    assert_eq!(
        ends(&rows),
        [
            1_000, 11_000, 21_000, 31_000, 292_975, 365_950, 618_925, 618_925, 1_505_950, 2_001_000
        ]
    );
    let buffer = record.buffer.expect("there is one");
    assert_eq!(
        (buffer.absorbed, buffer.written_out, buffer.runs),
        (1, 4, 3)
    );
    assert_eq!(
        (buffer.held_at_end, buffer.read_held, buffer.read_missed),
        (1, 2, 1)
    );
    assert_eq!(record.counters.flash.programs.host, 4);
}

/// One page is kept free, so that a single write never waits; the memory is protected, so that a flush waits for nothing
/// that is held; an idle millisecond later all is written out.
#[test]
fn room_is_made_ahead_and_in_idle_time() {
    let config = small(Buffer {
        write_pages: 3,
        reserve_pages: 1,
        idle_ns: 1_000_000,
        protected: true,
        ..Buffer::default()
    });
    let requests = [
        pages(0, Op::Write, 0, 2),
        // Page 0 leaves, 10,000 to 262,975.
        pages(10_000, Op::Write, 2, 1),
        pages(20_000, Op::Flush, 0, 0),
        // Page 1 leaves, to 515,950; its slot is that of page 0.
        pages(300_000, Op::Write, 8, 1),
        // Pages 2 and 8 leave from 1,301,000 on: two programs, the read comes behind.
        pages(1_400_000, Op::Read, 2, 1),
        pages(3_000_000, Op::Trim, 2, 1),
    ];
    let (record, rows) = run("page", &config, &requests);
    let read = 1_301_000 + 2 * 252_975 + 72_975;
    assert_eq!(
        ends(&rows)[..5],
        [2_000, 11_000, 20_000, 301_000, 1_400_000.max(read)]
    );
    let buffer = record.buffer.expect("there is one");
    assert_eq!(
        (buffer.written_out, buffer.held_at_end, buffer.trimmed),
        (4, 0, 0)
    );
}

#[test]
fn what_follows_is_read_ahead_and_a_hit_waits_for_its_read() {
    let config = small(Buffer {
        read_pages: 8,
        prefetch_pages: 2,
        ..Buffer::default()
    });
    let requests = [
        pages(0, Op::Read, 0, 1),
        // Pages 2 and 3 are read behind it, to 245,950 and 318,925.
        pages(100_000, Op::Read, 1, 1),
        // Page 4 follows, to 391,900.
        pages(200_000, Op::Read, 2, 1),
        // And page 5.
        pages(500_000, Op::Read, 3, 1),
        // Written through: what was read ahead is outdated.
        pages(600_000, Op::Write, 5, 1),
        pages(900_000, Op::Read, 0, 1),
        pages(1_000_000, Op::Read, 5, 1),
    ];
    let (record, rows) = run("page", &config, &requests);
    assert_eq!(
        ends(&rows),
        [
            72_975, 172_975, 245_950, 501_000, 852_975, 901_000, 1_072_975
        ]
    );
    let buffer = record.buffer.expect("there is one");
    assert_eq!((buffer.read_cached, buffer.read_missed), (3, 3));
    assert_eq!(
        (
            buffer.read_ahead,
            buffer.read_ahead_used,
            buffer.read_ahead_wasted
        ),
        (4, 2, 1)
    );
    assert_eq!(record.counters.flash.reads.host, 7);
}

#[test]
fn a_part_of_a_page_that_is_held_is_merged_there() {
    let config = small(Buffer {
        write_pages: 1,
        ..Buffer::default()
    });
    let half = PAGE / 2;
    let requests = [
        // The old content is read first, 72,975.
        r(0, Op::Write, 0, half),
        r(100_000, Op::Write, half, half),
        // That of page 1 is read before page 0 leaves: 200,000 to 272,975, then to 525,950.
        r(200_000, Op::Write, PAGE, half),
    ];
    let (record, rows) = run("page", &config, &requests);
    assert_eq!(ends(&rows), [72_975, 101_000, 525_950]);
    assert_eq!(record.stats.partial_write_reads, 2);
}

/// Under every scheme the laws hold, which every run checks: what was written was absorbed, trimmed, written out or is
/// held; and the scheme has what was written out and not trimmed. A flush ends behind all before it.
#[test]
fn every_scheme_wears_it() {
    let mut rng = SplitMix64::new(18);
    let catalog = floatgate_schemes::catalog::<Simulated>();
    for scheme in catalog.iter() {
        for case in 0..3 {
            let mut config = config(4, 40, 16, 20, &[]);
            config.device.channels = [4, 2, 1][case];
            config.host.queue_depth = [0, 0, 5][case];
            config.device.buffer = Buffer {
                write_pages: 1 + rng.below(200) as u32,
                eviction: [Eviction::Bplru, Eviction::Lru][rng.below(2) as usize],
                padding: rng.below(2) == 0,
                block_pages: [0, 16, 7][rng.below(3) as usize],
                idle_ns: rng.below(2) * 500_000,
                write_out_at_end: rng.below(2) == 0,
                read_pages: [0, 40][rng.below(2) as usize],
                ..Buffer::default()
            };
            let buffer = &mut config.device.buffer;
            buffer.padding &= buffer.eviction == Eviction::Bplru;
            buffer.reserve_pages = rng.below(u64::from(buffer.write_pages)) as u32;
            buffer.prefetch_pages = buffer.read_pages / 5;
            if let Some(log_blocks) = scheme.info.filled_from(Setting::LogBlocks) {
                let few = Value::from_word("24");
                config.options.push((log_blocks.key.into(), few));
            }
            let requests = random(&mut rng, config.device.logical_pages, 400);
            let (record, rows) = run(scheme.info.key, &config, &requests);
            let buffer = record.buffer.as_ref().expect("there is one");
            assert!(buffer.absorbed > 0 && buffer.written_out > 0, "{buffer:?}");
            assert!(!config.device.buffer.write_out_at_end || buffer.held_at_end == 0);
            let mut written_ns = 0;
            for row in &rows {
                match row.kind {
                    Kind::Write | Kind::Trim => written_ns = row.end_ns.max(written_ns),
                    Kind::Drain => assert!(row.end_ns >= written_ns, "{row:?}"),
                    _ => {}
                }
            }
        }
    }
}

/// What is absorbed, written out and held is that of a list of pages, the one that was not written for longest first.
#[test]
fn counters_are_those_of_a_plain_list() {
    let mut rng = SplitMix64::new(4);
    let config = small(Buffer {
        write_pages: 9,
        ..Buffer::default()
    });
    let writes: Vec<u64> = (0..2_000).map(|_| rng.below(16) * rng.below(3)).collect();
    let (mut list, mut absorbed, mut written_out) = (Vec::new(), 0, 0);
    for page in &writes {
        match list.iter().position(|held| held == page) {
            Some(at) => {
                list.remove(at);
                absorbed += 1;
            }
            None if list.len() == 9 => {
                list.remove(0);
                written_out += 1;
            }
            None => {}
        }
        list.push(*page);
    }
    let requests: Vec<Request> = (0..)
        .zip(&writes)
        .map(|(i, &page)| pages(i * 1_000_000, Op::Write, page, 1))
        .collect();
    let (record, _) = run("page", &config, &requests);
    let buffer = record.buffer.expect("there is one");
    assert!(absorbed > 100 && written_out > 100);
    assert_eq!(
        (buffer.absorbed, buffer.written_out, buffer.held_at_end),
        (absorbed, written_out, list.len() as u64)
    );
}

/// Ageing goes past the memory, and no pages of it are none at all.
#[test]
fn without_pages_there_is_none() {
    let mut rng = SplitMix64::new(9);
    let requests = random(&mut rng, 4 * 20 * 16, 300);
    let mut config = config(4, 40, 16, 20, &[("log_blocks", "24")]);
    config.ageing = vec![Recipe::Overwrite(0.5), Recipe::Replay];
    let (plain, _) = run("fast", &config, &requests);
    config.device.buffer = Buffer {
        eviction: Eviction::Bplru,
        idle_ns: 1,
        dram_ns_per_page: 5,
        write_out_at_end: true,
        ..Buffer::default()
    };
    assert_eq!(run("fast", &config, &requests).0, plain);
    config.device.buffer.write_pages = 30;
    let (held, _) = run("fast", &config, &requests);
    assert_eq!(held.ageing, plain.ageing);
    assert!(held.counters.flash.programs.host < plain.counters.flash.programs.host);
}

/// Random writes to a few hot blocks: BAST has a log block for each block that is written, so whole blocks at a time cost
/// it far less than pages of many.
#[test]
fn whole_blocks_at_a_time_help_a_scheme_that_maps_blocks() {
    let mut rng = SplitMix64::new(6);
    let mut config = config(1, 80, 16, 64, &[("log_blocks", "4")]);
    let write = |i: u64| {
        let page = rng.below(32) * 16 + rng.below(16);
        pages(i * 10_000_000, Op::Write, page, 1)
    };
    let requests: Vec<Request> = (0..6_000).map(write).collect();
    let [lru, bplru] = [Eviction::Lru, Eviction::Bplru].map(|eviction| {
        config.device.buffer = Buffer {
            write_pages: 256,
            eviction,
            ..Buffer::default()
        };
        run("bast", &config, &requests).0
    });
    let erases = |record: &Record| record.derived.erases;
    assert!(
        2 * erases(&bplru) < erases(&lru),
        "{} and {}",
        erases(&bplru),
        erases(&lru)
    );
    let length = |record: &Record| record.buffer.as_ref().and_then(|buffer| buffer.run_pages);
    assert!(length(&bplru) > length(&lru));
}

/// One page of four is held: the other three are read first, each for its own program. On a device of two dies only the
/// block of the die that is written is filled up.
#[test]
fn a_block_that_leaves_is_filled_up() {
    let buffer = Buffer {
        write_pages: 4,
        eviction: Eviction::Bplru,
        padding: true,
        ..Buffer::default()
    };
    let mut config = config(1, 16, 4, 8, &[("log_blocks", "1")]);
    config.device.buffer = buffer;
    let requests = [pages(0, Op::Write, 2, 1), pages(1_000_000, Op::Flush, 0, 0)];
    let (record, rows) = run("bast", &config, &requests);
    let filled = record.buffer.expect("there is one");
    assert_eq!((filled.written_out, filled.padded_pages), (1, 3));
    assert_eq!((filled.runs, filled.run_pages), (1, Some(4.0)));
    // Three reads and four programs: the whole block is a log block now.
    assert_eq!(ends(&rows)[1], 1_000_000 + 3 * 72_975 + 4 * 252_975);
    assert_eq!(record.counters.flash.reads.host, 3);
    assert_eq!(record.counters.flash.programs.host, 4);

    let mut config = common::config(2, 16, 4, 8, &[("log_blocks", "2")]);
    config.device.buffer = Buffer {
        read_pages: 8,
        ..buffer
    };
    let requests = [
        // Of die 1 the pages 1, 3, 5 and 7 are this block's.
        pages(0, Op::Read, 5, 1),
        pages(1_000_000, Op::Write, 3, 1),
        pages(2_000_000, Op::Flush, 0, 0),
    ];
    let (record, _) = run("bast", &config, &requests);
    let filled = record.buffer.expect("there is one");
    assert_eq!((filled.padded_pages, filled.padded_cached), (3, 1));
    assert_eq!(record.counters.flash.reads.host, 3);
    assert_eq!(record.counters.flash.programs.host, 4);
}

/// What the paper pads for: every eviction is a block from its first page to its last, so merges are switches. Without it
/// the same writes cost full merges. 16 MiB of buffer on 128 MiB, single pages, most of them to a tenth of the device.
#[test]
fn padding_makes_switches_of_full_merges() {
    let logical_pages = 1024 * 64;
    let mut rng = SplitMix64::new(2);
    let write = |i: u64| {
        let hot = if rng.below(10) < 9 { 10 } else { 1 };
        let page = rng.below(logical_pages / hot);
        pages(i * 10_000_000, Op::Write, page, 1)
    };
    let requests: Vec<Request> = (0..40_000).map(write).collect();
    for scheme in ["bast", "fast"] {
        let mut config = config(1, 1100, 64, 1024, &[("log_blocks", "16")]);
        let [plain, padded] = [false, true].map(|padding| {
            config.device.buffer = Buffer {
                write_pages: (16 << 20) / PAGE as u32,
                eviction: Eviction::Bplru,
                padding,
                ..Buffer::default()
            };
            let catalog = floatgate_schemes::catalog::<Simulated>();
            let life = catalog.find(scheme).expect("a scheme").life;
            let record = life.run(&config, &mut Decoded::new(&requests), &mut |_| {});
            record.expect("it runs, and the laws hold").counters.merges
        });
        println!("{scheme}: {plain:?}, padded: {padded:?}");
        assert_eq!((padded.full, padded.partial), (0, 0), "{scheme}");
        assert!(padded.switch > 0 && plain.full > 0, "{scheme}");
        assert!(plain.switch * 10 < padded.switch, "{scheme}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let catalog = floatgate_schemes::catalog::<Simulated>();
    let refused = |scheme: &str, config: &RunConfig| {
        let life = catalog.find(scheme).expect("a scheme").life;
        life.check(config).expect_err("refused").key
    };
    let mut config = small(Buffer {
        write_pages: 4,
        reserve_pages: 4,
        ..Buffer::default()
    });
    assert_eq!(refused("page", &config).as_deref(), Some("reserve_pages"));
    config.device.buffer.reserve_pages = 3;
    config.device.buffer.prefetch_pages = 1;
    assert_eq!(refused("page", &config).as_deref(), Some("prefetch_pages"));
    config.device.buffer.padding = true;
    assert_eq!(refused("page", &config).as_deref(), Some("padding"));
    config.device.buffer.padding = false;
    // Who must know when each page of the host is written next cannot.
    config.device.buffer.prefetch_pages = 0;
    config.options = vec![("separation".into(), Value::from_word("fk"))];
    assert_eq!(refused("page", &config).as_deref(), Some("write_pages"));
    let life = catalog.find("page").expect("a scheme").life;
    let error = life.run(&config, &mut Decoded::new(&[]), &mut |_| {});
    assert!(matches!(error, Err(RunError::Refused(_))));
}
