//! What a start reads: as the formulas say, on flashes of bytes; the paper's two times.

use super::*;
use floatgate_core::described::RecoveryCost;
use floatgate_testkit::ram::RamFlash;

/// Two dies, 8 segments of 4 pages a die, 5 log blocks a die, one of them sequential; full.
struct Device {
    space: Space,
    options: LastPlusPlusOptions,
    flash: RamFlash,
    ftl: LastPlusPlus,
}

impl Device {
    fn new(map_blocks: u32, summary_pages: bool) -> Self {
        let case = Case::small(2, 8 + 5 + 1 + map_blocks, 4, 8)
            .with("log_blocks", 10)
            .with("sequential_log_blocks", 2)
            .with("sequential_threshold", 4)
            .with("summary_pages", summary_pages)
            .with("map_entries_per_page", 4)
            .with("map_blocks", map_blocks);
        let geometry = Geometry::new(2, case.blocks, 4, 64, case.order).unwrap();
        let mut flash = RamFlash::new(&geometry, 4096);
        let (space, options) = (
            Space::whole(&geometry),
            case.options_of::<LastPlusPlus>().unwrap(),
        );
        let ftl = LastPlusPlus::format(&space, &options, Start::Full, &mut flash).unwrap();
        Self {
            space,
            options,
            flash,
            ftl,
        }
    }

    /// Every log block full, every page in them another one.
    fn filled(map_blocks: u32, summary_pages: bool) -> Self {
        let mut device = Self::new(map_blocks, summary_pages);
        device.write(0, 8);
        let pages = 2 * 4 * (4 - u32::from(summary_pages));
        (8..8 + pages).for_each(|lpn| device.write(lpn, 1));
        let merges = &device.ftl.h.merges;
        assert_eq!((merges.full, merges.dead, merges.switch), (0, 0, 0));
        device
    }

    fn write(&mut self, first: u32, pages: u32) {
        let buffer = self.flash.new_request(pages);
        for (bytes, lpn) in buffer.iter_mut().zip(first..) {
            bytes.fill(lpn as u8 + 1);
        }
        let Ok(()) = self
            .ftl
            .write(&mut self.flash, &Run::whole(Lpn(first), pages));
    }

    /// OOBs of the map areas, each block up to its first erased page.
    fn map_oobs(&self) -> u64 {
        let geometry = &self.space.geometry;
        let (per_die, maps) = (geometry.blocks_per_die, self.options.map.map_blocks);
        let blocks = (0..geometry.blocks()).filter(|b| b % per_die >= per_die - maps);
        let oobs = blocks.map(|b| (self.flash.ledger().write_pointer(Pbn(b)) + 1).min(4));
        oobs.map(u64::from).sum()
    }

    /// Starts again, and counts what the start did.
    fn start(&mut self, means: RecoveryMode) -> FlashCounters {
        self.flash.ledger.counters = FlashCounters::default();
        let recovered = LastPlusPlus::recover(&self.space, &self.options, means, &mut self.flash);
        self.ftl = recovered.unwrap();
        self.flash.ledger.counters
    }

    fn cost(&self, means: &str) -> RecoveryCost {
        let costs = LastPlusPlus::recovery_costs(&self.space.geometry, &self.options);
        let found = costs.into_iter().find(|cost| cost.means == means);
        found.unwrap_or_else(|| panic!("no way back by {means}"))
    }

    /// Every page that was written reads back.
    fn check(&mut self, written: std::ops::Range<u32>) {
        self.ftl.audit(&self.flash).unwrap();
        for lpn in written {
            self.flash.new_request(1);
            let Ok(()) = self.ftl.read(&mut self.flash, &Run::whole(Lpn(lpn), 1));
            assert_eq!(self.flash.buffer()[0][0], lpn as u8 + 1, "page {lpn}");
        }
    }
}

#[test]
fn full_scan_reads_what_its_cost_says() {
    for map_blocks in [0, 3] {
        let mut device = Device::filled(map_blocks, true);
        let (cost, map_oobs) = (device.cost("full scan"), device.map_oobs());
        let counted = device.start(RecoveryMode::FullScan);
        // Of the map areas up to the first erased pages, and no void page.
        let maps = 2 * u64::from(map_blocks) * 4;
        assert_eq!(counted.oob_reads.map, cost.oob_reads - maps + map_oobs);
        assert_eq!(cost.oob_reads, 2 * 14 * 4 + maps);
        assert_eq!(counted.reads.map, 0);
        assert_eq!(counted.programs.map, cost.programs);
        device.check(0..32);
        // Without map blocks there is nothing faster after a power cut, and looking for a snapshot costs nothing.
        if map_blocks == 0 {
            let counted = device.start(RecoveryMode::Fastest);
            assert_eq!(counted.oob_reads.map, cost.oob_reads);
        }
    }
}

/// Each random log block by a page read, each sequential one by its OOBs; then a page of a data block for each page.
#[test]
fn map_blocks_and_summary_pages_read_what_their_cost_says() {
    let mut device = Device::filled(3, true);
    let (cost, map_oobs) = (device.cost("map blocks, summary pages"), device.map_oobs());
    let counted = device.start(RecoveryMode::Fastest);
    // 13 entries of 4 a page: 4 map pages a die.
    assert_eq!(counted.reads.map, 2 * 4 + 2 * 4);
    assert_eq!(counted.reads.map, cost.page_reads);
    assert_eq!(counted.oob_reads.map - map_oobs, 2 * 4 + 2 * (4 + 4 * 3));
    assert_eq!(counted.oob_reads.map - map_oobs, cost.oob_reads - 2 * 3 * 4);
    assert_eq!(counted.programs.map, cost.programs);
    assert!(counted.erases.map <= cost.erases);
    // Four data blocks a die hold nothing valid any more.
    assert_eq!((counted.programs.gc, counted.erases.gc), (0, 8));
    device.check(0..32);
}

#[test]
fn map_blocks_without_summary_pages_scan_the_log() {
    let mut device = Device::filled(3, false);
    let (cost, map_oobs) = (device.cost("map blocks"), device.map_oobs());
    let counted = device.start(RecoveryMode::Fastest);
    assert_eq!((counted.reads.map, cost.page_reads), (2 * 4, 2 * 4));
    assert_eq!(counted.oob_reads.map - map_oobs, 2 * 2 * 5 * 4);
    assert_eq!(counted.oob_reads.map - map_oobs, cost.oob_reads - 2 * 3 * 4);
    device.check(0..40);
}

/// An open random log block has no summary: a page read that finds nothing, then its OOBs up to the first erased page.
#[test]
fn an_open_log_block_is_scanned() {
    let mut device = Device::new(3, true);
    [8, 9, 10].into_iter().for_each(|lpn| device.write(lpn, 1));
    let map_oobs = device.map_oobs();
    let counted = device.start(RecoveryMode::Fastest);
    // Two pages on one die, one on the other.
    assert_eq!(counted.reads.map, 2 * 4 + 2);
    assert_eq!(counted.oob_reads.map - map_oobs, (2 + 1) + (1 + 1) + 3);
    device.check(8..11);
}

#[test]
fn a_snapshot_reads_what_its_cost_says() {
    for map_blocks in [0, 3] {
        let mut device = Device::filled(map_blocks, true);
        let Ok(()) = device.ftl.shutdown(&mut device.flash);
        let (cost, map_oobs) = (device.cost("snapshot"), device.map_oobs());
        assert!(cost.is_after_shutdown);
        let counted = device.start(RecoveryMode::Fastest);
        assert_eq!(counted.reads.map, cost.page_reads);
        if map_blocks == 0 {
            // One page of snapshot; the first OOB of every block.
            assert_eq!((counted.reads.map, counted.oob_reads.map), (1, 2 * 14));
            assert_eq!(cost.oob_reads, 2 * 14);
        } else {
            // The first OOBs of the log blocks and of the snapshot's block.
            assert_eq!(counted.oob_reads.map - map_oobs, 2 * 5 + 1);
            assert_eq!(cost.oob_reads, 2 * 3 * 4 + 2 * 5 + 1);
        }
        assert_eq!(counted.programs.map, cost.programs);
        assert_eq!((counted.programs.gc, counted.erases.gc), (0, 0));
        device.check(0..32);
        assert_eq!(device.ftl.snapshot.len(), 1);
        let before = device.flash.ledger.counters.erases.map;
        device.write(63, 1);
        assert_eq!(device.flash.ledger.counters.erases.map - before, 1);
        device.check(63..64);
    }
}

/// A snapshot says more than a scan: update counters, the order of the segments, what has been trimmed in the log.
#[test]
fn a_snapshot_keeps_what_oobs_do_not_tell() {
    let mut device = Device::new(0, true);
    for lpn in [20, 20, 20, 21, 22] {
        device.write(lpn, 1);
    }
    let Ok(()) = device.ftl.trim(&mut device.flash, &Run::whole(Lpn(22), 1));
    let updates = |device: &Device, lpn| {
        let page = device
            .ftl
            .h
            .newest_log_page(device.ftl.locate(Lpn(lpn)).local);
        device.ftl.h.watch.random.entry(page)
    };
    let Ok(()) = device.ftl.shutdown(&mut device.flash);
    let mut cut = device.flash.clone();
    device.start(RecoveryMode::Fastest);
    assert_eq!(updates(&device, 20), Some((Heat::Cold, 2)));
    assert_eq!(updates(&device, 21), Some((Heat::Cold, 0)));
    assert_eq!(updates(&device, 22), None);
    std::mem::swap(&mut device.flash, &mut cut);
    device.start(RecoveryMode::FullScan);
    assert_eq!(updates(&device, 20), Some((Heat::Cold, 0)));
    assert_eq!(updates(&device, 22), Some((Heat::Cold, 0)));
    assert!(device.ftl.snapshot.is_empty());
    device.check(20..23);
}

/// Section 4.7: 256 GB, 10 % of it log blocks, 8 dies with 320 MB/s together. All pages of the log take 81.92 s, the
/// summary pages 0.64 s. One block a die is sequential here, and the log is rounded up to whole blocks of a die.
#[test]
fn the_papers_81_92_and_0_64_seconds() {
    let logical: u64 = 65_536 * 8 * 128;
    let per_die = 6_554;
    let geometry = Geometry::new(
        8,
        65_536 + per_die + 1 + 12,
        128,
        logical,
        ProgramOrder::Any,
    );
    let geometry = geometry.unwrap();
    let costs = |summary_pages| {
        let mut options = LastPlusPlusOptions::default();
        for (key, value) in [
            ("log_blocks", i64::from(8 * per_die)),
            ("sequential_log_blocks", 8),
            ("map_blocks", 12),
        ] {
            options.set(key, &Value::Int(value)).unwrap();
        }
        let summaries = Value::Bool(summary_pages);
        options.set("summary_pages", &summaries).unwrap();
        let costs = LastPlusPlus::recovery_costs(&geometry, &options);
        let by_map = |cost: &RecoveryCost| cost.means.starts_with("map blocks");
        costs.into_iter().find(by_map).unwrap()
    };
    let seconds = |pages: u64| pages as f64 * 4096.0 / (320.0 * 1024.0 * 1024.0);
    let is_close = |a: f64, b: f64| (a - b).abs() < 0.006;
    // The map areas aside; of what is left half are the pages of the log, half those of the data blocks that hold the
    // same pages, which the paper does not count.
    let scan = costs(false).oob_reads - 8 * 12 * 128;
    assert!(is_close(seconds(scan / 2), 81.92), "{}", seconds(scan / 2));
    let map_pages = 8 * (65_536_u64 + u64::from(per_die)).div_ceil(512);
    let summaries = costs(true).page_reads - map_pages;
    assert_eq!(summaries, 8 * (u64::from(per_die) - 1));
    assert!(is_close(seconds(summaries), 0.64), "{}", seconds(summaries));
    // Its OOBs: the sequential blocks' own, and for every page of the log one of a data block.
    let oobs = costs(true).oob_reads - 8 * 12 * 128;
    assert_eq!(oobs, 8 * 128 + 8 * (128 + u64::from(per_die - 1) * 127));
}
