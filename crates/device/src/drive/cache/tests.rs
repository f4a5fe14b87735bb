//! What leaves a cache, when, and what is asked of the device below it.

use std::sync::{Arc, Mutex};

use super::*;
use crate::power::Times;

const SECTOR: usize = 512;
const PER_PAGE: u64 = 2;
const PAGES: u64 = 24;
const PAGE_BYTES: u64 = PER_PAGE * SECTOR as u64;
const READ_NS: u64 = 1000;

/// What was asked of a device, in pages: writes and reads with their first page and length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Read(u64, u64),
    Write(u64, u64),
    Flush,
}
use Asked::{Flush, Read, Write};

/// A device of bytes in memory, with two pages a logical block of each of its two dies.
struct Below {
    data: Vec<u8>,
    asked: Arc<Mutex<Vec<Asked>>>,
    supply: Supply,
    holes: std::ops::Range<u32>,
}

impl Below {
    fn note(&self, asked: Asked) {
        self.asked.lock().expect("no panic").push(asked);
    }
}

fn in_pages(sector: u64, bytes: usize) -> (u64, u64) {
    let end = sector + (bytes / SECTOR) as u64;
    let first = sector / PER_PAGE;
    (first, end.div_ceil(PER_PAGE) - first)
}

impl Drive for Below {
    fn scheme(&self) -> &'static str {
        "below"
    }

    fn sector_bytes(&self) -> usize {
        SECTOR
    }

    fn sectors(&self) -> u64 {
        PAGES * PER_PAGE
    }

    fn page_bytes(&self) -> usize {
        PAGE_BYTES as usize
    }

    fn block_pages(&self) -> u32 {
        4
    }

    fn read_only(&self) -> Option<String> {
        None
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let (first, pages) = in_pages(sector, data.len());
        self.note(Read(first, pages));
        let from = sector as usize * SECTOR;
        data.copy_from_slice(&self.data[from..from + data.len()]);
        (0..pages).for_each(|_| self.supply.take(0, |times| times.read_ns));
        Ok(())
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        let (first, pages) = in_pages(sector, data.len());
        self.note(Write(first, pages));
        let to = sector as usize * SECTOR;
        self.data[to..to + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<(), DeviceError> {
        let range = sector as usize * SECTOR..(sector + count) as usize * SECTOR;
        self.data[range].fill(0);
        Ok(())
    }

    fn is_hole(&self, page: u32) -> bool {
        self.holes.contains(&page)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.note(Flush);
        Ok(())
    }

    fn tick(&mut self, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn supply(&mut self) -> Option<&mut Supply> {
        Some(&mut self.supply)
    }

    fn close(self: Box<Self>) -> Result<(), DeviceError> {
        Ok(())
    }
}

struct Bench {
    cached: Cached,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Bench {
    fn new(setup: CacheSetup) -> Self {
        let asked = Arc::default();
        let below = Below {
            data: vec![0; (PAGES * PAGE_BYTES) as usize],
            asked: Arc::clone(&asked),
            supply: Supply::new(1, false),
            holes: 20..24,
        };
        Self {
            cached: Cached::new(Box::new(below), &setup),
            asked,
        }
    }

    /// Writes whole pages of that byte.
    fn write(&mut self, page: u64, pages: u64, byte: u8) {
        let data = vec![byte; (pages * PAGE_BYTES) as usize];
        self.cached.write(page * PER_PAGE, &data).expect("taken in");
    }

    /// Reads sectors; the first byte of each.
    fn read(&mut self, sector: u64, sectors: u64) -> Vec<u8> {
        let mut data = vec![0; sectors as usize * SECTOR];
        self.cached.read(sector, &mut data).expect("readable");
        data.chunks(SECTOR).map(|sector| sector[0]).collect()
    }

    /// What was asked below since the last look.
    fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().expect("no panic"))
    }

    fn figures(&self) -> CacheFigures {
        self.cached.figures().cache.expect("there is one")
    }
}

fn writes(pages: u64, eviction: Eviction) -> CacheSetup {
    CacheSetup {
        write_bytes: pages * PAGE_BYTES,
        eviction,
        ..CacheSetup::default()
    }
}

#[test]
fn the_policy_of_the_core_says_what_leaves() {
    for (eviction, expected) in [
        // Page 9 was written longest ago, but for page 0, which was written again.
        (Eviction::Lru, [Write(9, 1), Write(1, 1)]),
        // Block 2 (pages 8 to 11) was written last, with page 10: block 0 goes, and makes room for two.
        (Eviction::Bplru, [Write(0, 2), Write(9, 2)]),
    ] {
        let mut bench = Bench::new(writes(4, eviction));
        for page in [0, 9, 1, 0, 10] {
            bench.write(page, 1, 1);
        }
        assert_eq!(bench.asked(), []);
        bench.write(16, 1, 1);
        let mut asked = bench.asked();
        // Two more, so that a second victim leaves whatever the first one made room for.
        bench.write(17, 1, 1);
        asked.extend(bench.asked());
        bench.write(20, 1, 1);
        asked.extend(bench.asked());
        assert_eq!(asked[..2], expected, "{eviction:?}");
    }
}

/// A request of several pages makes room for all of them at once, so that what leaves does so in few requests.
#[test]
fn room_for_a_request_is_made_at_once() {
    let mut bench = Bench::new(writes(4, Eviction::Lru));
    bench.write(4, 4, 1);
    bench.write(12, 3, 2);
    assert_eq!(bench.asked(), [Write(4, 3)]);
    assert_eq!(bench.figures().written_bytes, 3 * PAGE_BYTES);
    assert_eq!(bench.read(12 * PER_PAGE, 1), [2]);
}

#[test]
fn a_protected_cache_outlasts_the_power_and_ignores_flushes_but_not_the_end() {
    let mut bench = Bench::new(CacheSetup {
        is_protected: true,
        ..writes(8, Eviction::Lru)
    });
    bench.write(3, 2, 7);
    bench.cached.write(2, &[9; SECTOR]).expect("a sector");
    bench.cached.flush().expect("flushed");
    assert_eq!(bench.asked(), [Flush], "what lies below is flushed");
    let runs = bench.cached.outlasting().expect("it is protected");
    let shapes: Vec<_> = runs.iter().map(|(at, data)| (*at, data.len())).collect();
    assert_eq!(shapes, [(2, SECTOR), (6, 4 * SECTOR)]);
    assert_eq!((runs[0].1[0], runs[1].1[0]), (9, 7));
    let Bench { cached, asked } = bench;
    Box::new(cached).close().expect("closed");
    let asked = asked.lock().expect("no panic");
    assert_eq!(asked[..2], [Write(1, 1), Write(3, 2)]);
    let volatile = Bench::new(writes(8, Eviction::Lru));
    assert!(volatile.cached.outlasting().is_none());
}

#[test]
fn reads_are_kept_until_the_flash_has_something_else() {
    let mut bench = Bench::new(CacheSetup {
        read_bytes: 4 * PAGE_BYTES,
        ..writes(8, Eviction::Lru)
    });
    assert_eq!(bench.read(0, 4), [0; 4]);
    assert_eq!(bench.asked(), [Read(0, 1), Read(1, 1)]);
    assert_eq!(bench.read(1, 2), [0; 2]);
    assert_eq!(bench.asked(), []);
    assert_eq!(bench.figures().read_cached_bytes, 2 * SECTOR as u64);

    // What is held goes first; the rest of its page is still that of the cache.
    bench.cached.write(1, &[5; SECTOR]).expect("taken in");
    assert_eq!(bench.read(0, 4), [0, 5, 0, 0]);
    assert_eq!(bench.asked(), []);
    // Written out, it is the flash that has it.
    bench.cached.flush().expect("flushed");
    bench.asked();
    assert_eq!(bench.read(0, 4), [0, 5, 0, 0]);
    assert_eq!(bench.asked(), [Read(0, 1)]);

    bench.cached.write_through(2, &[6; SECTOR]).expect("FUA");
    bench.asked();
    assert_eq!(bench.read(0, 4), [0, 5, 6, 0]);
    assert_eq!(bench.asked(), [Read(1, 1)]);
    bench.cached.trim(0, 4).expect("trimmed");
    assert_eq!(bench.read(0, 4), [0; 4]);
    assert_eq!(bench.asked(), [Read(0, 1), Read(1, 1)]);
}

#[test]
fn without_a_write_cache_writes_go_past_the_read_cache() {
    let mut bench = Bench::new(CacheSetup {
        read_bytes: 4 * PAGE_BYTES,
        ..CacheSetup::default()
    });
    bench.read(0, 2);
    bench.write(0, 1, 3);
    assert_eq!(bench.asked(), [Read(0, 1), Write(0, 1)]);
    assert_eq!(bench.read(0, 2), [3, 3]);
    assert_eq!(bench.asked(), [Read(0, 1)]);
    assert_eq!(bench.figures().size_bytes, 0);
}

/// Sectors one by one are a stream of pages; what is known to be empty is not read ahead; nobody waits for it.
#[test]
fn what_follows_is_read_ahead_and_not_waited_for() {
    let mut bench = Bench::new(CacheSetup {
        read_bytes: 8 * PAGE_BYTES,
        ahead_bytes: 3 * PAGE_BYTES,
        ..CacheSetup::default()
    });
    let times = Times {
        read_ns: READ_NS,
        oob_read_ns: 0,
        program_ns: 0,
        erase_ns: 0,
    };
    let pace = |bench: &mut Bench| {
        let supply = bench.cached.supply().expect("power");
        supply.pace().expect("a pace").end_ns()
    };
    bench.cached.supply().expect("power").set_pace(times);
    for sector in 32..35 {
        bench.read(sector, 1);
    }
    assert_eq!(bench.asked(), [Read(16, 1), Read(17, 1)]);
    assert_eq!(pace(&mut bench), 2 * READ_NS);
    bench.read(35, 1);
    assert_eq!(bench.asked(), [Read(18, 1), Read(19, 1)]);
    assert_eq!(pace(&mut bench), 2 * READ_NS);
    bench.read(36, 4);
    assert_eq!(bench.asked(), []);
    let figures = bench.figures();
    assert_eq!(figures.ahead_bytes, 2 * PAGE_BYTES);
    assert_eq!(figures.ahead_used_bytes, 2 * PAGE_BYTES);
}
