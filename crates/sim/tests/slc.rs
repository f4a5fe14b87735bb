//! A cache of flash blocks with one bit a cell: worked times, laws under every scheme, and what it is good for.

mod common;

use common::config;
use common::played::{PAGE, ends, pages, random, run};
use floatgate_core::options::{Setting, Value};
use floatgate_core::rng::SplitMix64;
use floatgate_sim::clock::{Policy, Schedule, Suspend};
use floatgate_sim::config::{Buffer, RunConfig, Slc, WhenFull};
use floatgate_sim::requests::RequestRow;
use floatgate_sim::run::Simulated;
use floatgate_trace::{Op, Request};

const MS: u64 = 1_000_000;

/// With one bit a cell a read takes 62,975 ns, a program 102,975; an erase 1,500,125.
fn fast(blocks: u32, when_full: WhenFull) -> Slc {
    Slc {
        blocks,
        bits: 2,
        t_prog_ns: 50_000,
        t_r_ns: 10_000,
        fold_after_ns: MS,
        when_full,
        ..Slc::default()
    }
}

/// One die of 32 logical pages; otherwise a read takes 72,975 ns, a program 252,975.
fn small(slc: Slc) -> RunConfig {
    let mut config = config(1, 16, 4, 8, &[]);
    config.device.slc = slc;
    config
}

/// The table of docs/slc.md: two blocks of two pages.
#[test]
fn a_full_cache_lets_writes_pass_until_it_was_idle() {
    let requests = [
        pages(0, Op::Write, 0, 1),
        pages(200_000, Op::Write, 1, 1),
        pages(400_000, Op::Write, 0, 1),
        pages(600_000, Op::Read, 0, 1),
        pages(700_000, Op::Write, 2, 1),
        pages(900_000, Op::Write, 3, 1),
        pages(1_200_000, Op::Read, 1, 1),
        pages(1_300_000, Op::Read, 3, 1),
        // Idle since 1,372,975: page 1 is moved from 2,372,975 on, 0 and 2 from 4,189,050 on.
        pages(5_000_000, Op::Read, 2, 1),
        pages(7_000_000, Op::Write, 0, 1),
    ];
    let (record, rows) = run("page", &small(fast(2, WhenFull::Direct)), &requests);
    assert_eq!(
        ends(&rows),
        [
            102_975, 302_975, 502_975, 662_975, 802_975, 1_152_975, 1_262_975, 1_372_975,
            6_394_050, 7_102_975
        ]
    );
    let slc = record.slc.expect("there is one");
    assert_eq!(
        (slc.taken_in, slc.absorbed, slc.folded, slc.direct),
        (5, 1, 3, 1)
    );
    assert_eq!((slc.runs, slc.reads, slc.erases), (3, 2, 2));
    assert_eq!(
        (slc.held_at_end, slc.held_peak, slc.capacity_at_end),
        (1, 3, 4)
    );
    // Programs of host pages and of the cache, for six pages of the host.
    assert_eq!(record.derived.write_amplification, Some(9.0 / 6.0));
}

/// As in the table, but a read comes before the first block can be done with: the second one stays.
#[test]
fn a_block_is_not_begun_with_before_the_one_before_it_should_be_done() {
    let requests = [
        pages(0, Op::Write, 0, 1),
        pages(200_000, Op::Write, 1, 1),
        pages(400_000, Op::Write, 0, 1),
        pages(600_000, Op::Write, 2, 1),
        // Idle since 702,975: page 1 is moved from 1,702,975 on, which takes 62,975 + 252,975 + 1,500,125 ns.
        pages(3_500_000, Op::Read, 2, 1),
    ];
    let (record, rows) = run("page", &small(fast(2, WhenFull::Direct)), &requests);
    assert_eq!(ends(&rows)[4], 1_702_975 + 1_816_075 + 62_975);
    let slc = record.slc.expect("there is one");
    assert_eq!((slc.folded, slc.erases, slc.held_at_end), (1, 1, 2));
}

/// With `fold` the oldest block is folded before the page that finds less than one erased block.
#[test]
fn a_full_cache_folds_before_the_next_write() {
    let mut slc = fast(2, WhenFull::Fold);
    slc.fold_after_ns = 0;
    let requests: Vec<Request> = (0..4)
        .map(|i| pages(10 * i * MS, Op::Write, i, 1))
        .collect();
    let (record, rows) = run("page", &small(slc), &requests);
    // Pages 0 and 1 are moved: two reads, two programs, an erase.
    let folded_ns = 2 * 62_975 + 2 * 252_975 + 1_500_125;
    assert_eq!(
        ends(&rows),
        [
            102_975,
            10 * MS + 102_975,
            20 * MS + 102_975,
            30 * MS + folded_ns + 102_975
        ]
    );
    let slc = record.slc.expect("there is one");
    assert_eq!((slc.folded, slc.runs, slc.erases, slc.direct), (2, 1, 1, 0));
}

/// The cache of one die as a list of blocks, each a list of pages with whether they are valid.
#[derive(Default)]
struct Model {
    blocks: Vec<Vec<(u64, bool)>>,
    taken_in: u64,
    absorbed: u64,
    folded: u64,
    direct: u64,
    reads: u64,
    erases: u64,
}

impl Model {
    fn held(&mut self, page: u64) -> Option<&mut (u64, bool)> {
        let all = self.blocks.iter_mut().flatten();
        let mut found = all.filter(|(of, valid)| *of == page && *valid);
        found.next()
    }

    fn write(&mut self, page: u64, blocks: usize, of_block: usize, folds: bool) {
        if let Some(old) = self.held(page) {
            old.1 = false;
            self.absorbed += 1;
        }
        let is_full = |block: &Vec<_>| block.len() == of_block;
        if folds && self.blocks.len() == blocks && is_full(&self.blocks[0]) {
            let oldest = self.blocks.remove(0);
            self.folded += oldest.iter().filter(|page| page.1).count() as u64;
            self.erases += 1;
        }
        if self.blocks.last().is_none_or(is_full) {
            if self.blocks.len() == blocks {
                self.direct += 1;
                return;
            }
            self.blocks.push(Vec::new());
        }
        let open = self.blocks.last_mut().expect("a block");
        open.push((page, true));
        self.taken_in += 1;
    }
}

/// Where each page is read, and what is taken in, absorbed and moved, is what plain lists say: so the newest content is read.
#[test]
fn counters_are_those_of_plain_lists() {
    for when_full in [WhenFull::Direct, WhenFull::Fold] {
        let mut slc = fast(5, when_full);
        slc.fold_after_ns = 0;
        let (mut rng, mut model) = (SplitMix64::new(4), Model::default());
        let mut requests = Vec::new();
        for i in 0..3_000 {
            let page = rng.below(24) * rng.below(2) + rng.below(8);
            let is_read = rng.below(3) == 0;
            let op = if is_read { Op::Read } else { Op::Write };
            requests.push(pages(i * 20 * MS, op, page, 1));
            if is_read {
                model.reads += u64::from(model.held(page).is_some());
            } else {
                model.write(page, 5, 2, when_full == WhenFull::Fold);
            }
        }
        let (record, rows) = run("page", &small(slc), &requests);
        let slc = record.slc.expect("there is one");
        assert_eq!(
            (slc.taken_in, slc.absorbed, slc.folded, slc.direct),
            (model.taken_in, model.absorbed, model.folded, model.direct)
        );
        assert_eq!((slc.reads, slc.erases), (model.reads, model.erases));
        let held = model.blocks.iter().flatten().filter(|page| page.1);
        assert_eq!(slc.held_at_end as usize, held.count());
        assert!(rows.iter().all(|row| row.end_ns > row.start_ns));
        match when_full {
            WhenFull::Direct => assert!(slc.direct > 1000 && slc.folded == 0),
            WhenFull::Fold => assert!(slc.direct == 0 && slc.folded > 300),
        }
    }
}

/// Under every scheme, on one and several dies a channel, with a queue and without, the laws hold, which every run checks.
#[test]
fn every_scheme_wears_it() {
    let mut rng = SplitMix64::new(21);
    let catalog = floatgate_schemes::catalog::<Simulated>();
    let (mut folded, mut direct, mut absorbed, mut reads) = (0, 0, 0, 0);
    for scheme in catalog.iter() {
        for case in 0..3 {
            let mut config = config(4, 40, 16, 20, &[]);
            config.device.channels = [4, 2, 1][case];
            config.host.queue_depth = [0, 0, 5][case];
            config.device.part.one_shot = [1, 2, 4][rng.below(3) as usize];
            config.device.slc = Slc {
                blocks: 1 + rng.below(6) as u32,
                dynamic: rng.below(2) == 0,
                bits: 2 + rng.below(3) as u32,
                fold_after_ns: rng.below(2) * 500_000,
                ..fast(1, [WhenFull::Direct, WhenFull::Fold][rng.below(2) as usize])
            };
            if let Some(log_blocks) = scheme.info.filled_from(Setting::LogBlocks) {
                let few = Value::from_word("24");
                config.options.push((log_blocks.key.into(), few));
            }
            let requests = random(&mut rng, config.device.logical_pages, 400);
            let (record, _) = run(scheme.info.key, &config, &requests);
            let slc = record.slc.expect("there is one");
            (folded, direct) = (folded + slc.folded, direct + slc.direct);
            (absorbed, reads) = (absorbed + slc.absorbed, reads + slc.reads);
        }
    }
    assert!(folded > 1000 && direct > 1000, "{folded}, {direct}");
    assert!(absorbed > 1000 && reads > 1000, "{absorbed}, {reads}");
}

/// Reads that go first still find the newest content, and the laws hold.
#[test]
fn a_schedule_sees_the_blocks_of_the_cache() {
    let mut rng = SplitMix64::new(2);
    let mut config = config(4, 40, 16, 20, &[]);
    config.device.channels = 2;
    config.device.schedule = Schedule {
        policy: Policy::HostFirst,
        suspend: Suspend::Both,
        ..Schedule::default()
    };
    config.device.slc = fast(3, WhenFull::Fold);
    let requests = random(&mut rng, config.device.logical_pages, 1000);
    let (record, _) = run("page", &config, &requests);
    let slc = record.slc.expect("there is one");
    assert!(slc.folded > 100 && slc.reads > 100, "{slc:?}");
}

fn mean_ns(rows: &[RequestRow]) -> u64 {
    let sum: u64 = rows.iter().map(|row| row.end_ns - row.issue_ns).sum();
    sum / rows.len() as u64
}

/// More than the cache holds at a stretch: fast, then slow; after a pause fast again.
#[test]
fn a_long_write_falls_off_a_cliff_and_a_pause_heals() {
    let mut config = config(2, 80, 16, 64, &[]);
    config.device.slc = fast(8, WhenFull::Direct);
    config.device.slc.fold_after_ns = 100 * MS;
    // 128 pages of cache; each write is over when the next one comes.
    let write = |at_ns: u64, i: u64| pages(at_ns + i * MS, Op::Write, 2 * i, 2);
    let first = (0..128).map(|i| write(0, i));
    let again = (0..64).map(|i| write(3_000 * MS, i));
    let requests: Vec<Request> = first.chain(again).collect();
    let (record, rows) = run("page", &config, &requests);
    assert_eq!(mean_ns(&rows[..64]), 102_975);
    assert_eq!(mean_ns(&rows[64..128]), 252_975);
    assert_eq!(mean_ns(&rows[128..]), 102_975);
    let slc = record.slc.expect("there is one");
    assert_eq!((slc.taken_in, slc.direct, slc.folded), (256, 128, 128));
    // A row of blocks over all dies leaves as it came, in one write.
    assert_eq!((slc.runs, slc.erases), (8, 16));
}

/// A third of what is not written can be used, beside the blocks of its own, and room that is filled is given up.
#[test]
fn a_dynamic_cache_shrinks_as_the_device_fills() {
    let mut config = config(2, 40, 12, 20, &[]);
    config.start = floatgate_core::Start::Empty;
    config.device.slc = Slc {
        dynamic: true,
        bits: 3,
        fold_after_ns: 0,
        ..fast(2, WhenFull::Direct)
    };
    let write = |i: u64| pages(i * 10 * MS, Op::Write, i, 1);
    let mut requests: Vec<Request> = (0..360).map(write).collect();
    let (half_full, _) = run("page", &config, &requests[..240]);
    let (fuller, _) = run("page", &config, &requests);
    let capacity = |slc: &floatgate_sim::record::Slc| (slc.capacity_at_start, slc.capacity_at_end);
    let (half, full) = (half_full.slc.unwrap(), fuller.slc.unwrap());
    assert_eq!(capacity(&half), (4 * 4 + 40 * 4, 4 * 4 + 20 * 4));
    assert_eq!(capacity(&full), (4 * 4 + 40 * 4, 4 * 4 + 10 * 4));
    assert!(half.held_at_end <= 96 && full.held_at_end <= 56);
    assert!(full.folded > 0, "what no longer fits moves to the scheme");
    // What is trimmed is room again.
    requests.push(pages(4_000 * MS, Op::Trim, 0, 360));
    let (trimmed, _) = run("page", &config, &requests);
    assert_eq!(capacity(&trimmed.slc.unwrap()), (176, 176));
}

#[test]
fn what_does_not_fit_is_refused() {
    let catalog = floatgate_schemes::catalog::<Simulated>();
    let life = catalog.find("page").expect("a scheme").life;
    let refused = |config: &RunConfig| life.check(config).expect_err("refused").key;
    let change = |change: fn(&mut RunConfig)| {
        let mut config = small(fast(2, WhenFull::Direct));
        change(&mut config);
        refused(&config)
    };
    let write_pages = |config: &mut RunConfig| {
        config.device.buffer = Buffer {
            write_pages: 4,
            ..Buffer::default()
        };
    };
    assert_eq!(change(write_pages).as_deref(), Some("slc.blocks"));
    let too_many = change(|config| config.device.slc.blocks = u32::MAX / 4);
    assert_eq!(too_many.as_deref(), Some("slc.blocks"));
    let bits = change(|config| {
        config.device.part.pages_per_block = 1;
        config.device.slc.bits = 2;
    });
    assert_eq!(bits.as_deref(), Some("slc.bits"));
    let low = change(|config| config.device.slc.low_blocks = 3);
    assert_eq!(low.as_deref(), Some("slc.low_blocks"));
    // Who must know when each page of the host is written next cannot.
    let fk = change(|config| config.options = vec![("separation".into(), Value::from_word("fk"))]);
    assert_eq!(fk.as_deref(), Some("slc.blocks"));
    assert_eq!(PAGE, 2048, "the part of these tests");
}
