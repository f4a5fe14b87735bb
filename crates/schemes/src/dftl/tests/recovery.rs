//! What a recovery reads and writes, counted on a flash that stores bytes.

use super::*;
use crate::parts::scan::MORE;
use crate::parts::translation::checkpoint::Checkpoint;
use floatgate_core::address::{Pbn, Ppn};
use floatgate_core::described::RecoveryCost;
use floatgate_core::flash::Role;
use floatgate_core::flash::start_content;
use floatgate_core::report::FlashCounters;
use floatgate_testkit::cut::{CutFlash, Tear};
use floatgate_testkit::ram::RamFlash;

const MODES: [&str; 4] = ["NOFLUSH", "TIMEOUT", "REQ", "PAGE"];

/// A device with pages of so many bytes, and what the host knows of it.
struct Host {
    space: Space,
    options: DftlOptions,
    flash: RamFlash,
    ftl: Dftl,
    /// `None`: trimmed, so that anything it once held may come back.
    shadow: Vec<Option<Vec<u8>>>,
    version: u32,
}

impl Host {
    fn new(case: &Case, page_bytes: usize) -> Self {
        let pages = case.logical_pages;
        let geometry =
            Geometry::new(case.dies, case.blocks, case.pages, pages.into(), case.order).unwrap();
        let space = Space::whole(&geometry);
        let options = case.options_of::<Dftl>().unwrap();
        let mut flash = RamFlash::new(&geometry, page_bytes);
        let ftl = Dftl::format(&space, &options, case.start, &mut flash).unwrap();
        let initial = |lpn| match case.start {
            Start::Full => start_content(Lpn(lpn), page_bytes),
            Start::Empty => vec![0; page_bytes],
        };
        Self {
            shadow: (0..pages).map(|lpn| Some(initial(lpn))).collect(),
            version: 0,
            space,
            options,
            flash,
            ftl,
        }
    }

    /// Writes pages at a time in nanoseconds.
    fn write(&mut self, first: u32, pages: u32, at_ns: u64) {
        let Ok(()) = self.ftl.tick(&mut self.flash, &at(at_ns));
        for (i, bytes) in self.flash.new_request(pages).iter_mut().enumerate() {
            self.version += 1;
            bytes[..4].copy_from_slice(&self.version.to_le_bytes());
            self.shadow[first as usize + i] = Some(bytes.clone());
        }
        let Ok(()) = self
            .ftl
            .write(&mut self.flash, &Run::whole(Lpn(first), pages));
    }

    /// One request as the page writes it.
    fn play(&mut self, request: &str, at_ns: u64) {
        let words: Vec<&str> = request.split_whitespace().collect();
        let number = |i: usize| words[i].parse().expect("a number");
        let (first, pages) = (number(1), number(2));
        if words[0] == "W" {
            return self.write(first, pages, at_ns);
        }
        let Ok(()) = self.ftl.tick(&mut self.flash, &at(at_ns));
        self.flash.new_request(pages);
        let run = Run::whole(Lpn(first), pages);
        let Ok(()) = match words[0] {
            "R" => self.ftl.read(&mut self.flash, &run),
            _ => {
                self.shadow[first as usize..(first + pages) as usize].fill(None);
                self.ftl.trim(&mut self.flash, &run)
            }
        };
    }

    /// Random writes, most of them in a tenth of the device, one every 10 ms from `since` of them on.
    fn run(&mut self, since: u64, requests: u64) {
        let total = u64::from(self.space.logical_pages());
        let mut rng = SplitMix64::new(since + 3);
        for request in since..since + requests {
            let among = if rng.below(4) == 0 { total } else { total / 10 };
            let first = rng.below(among) as u32;
            let pages = (1 + rng.below(4) as u32).min(total as u32 - first);
            self.write(first, pages, request * 10_000_000);
        }
    }

    /// Brings the device back with other options from what the flash holds, checks every page, and returns what
    /// the recovery did.
    fn recover_with(&self, options: &DftlOptions, means: RecoveryMode) -> FlashCounters {
        let mut flash = self.flash.clone();
        flash.ledger.counters = FlashCounters::default();
        let mut ftl = Dftl::recover(&self.space, options, means, &mut flash).unwrap();
        let did = flash.ledger.counters;
        ftl.audit(&flash).unwrap();
        for (lpn, known) in (0..).zip(&self.shadow) {
            flash.new_request(1);
            let Ok(()) = ftl.read(&mut flash, &Run::whole(Lpn(lpn), 1));
            let known = known.as_ref().unwrap_or(&flash.buffer()[0]);
            assert_eq!(
                &flash.buffer()[0],
                known,
                "page {lpn}, {means:?}, {options:?}"
            );
        }
        did
    }

    fn recover(&self, means: RecoveryMode) -> FlashCounters {
        self.recover_with(&self.options, means)
    }
}

/// The page's formula, from what stands on the flash.
struct Formula {
    /// Programmed pages, and 1 for each block that is not full.
    full_scan: u64,
    /// Page 0 of every block.
    first_pages: u64,
    /// The other OOBs of map blocks.
    map_blocks: u64,
    /// The other OOBs of the data blocks that pending changes can be in.
    pending: u64,
    /// Translation pages on flash.
    translation_pages: u64,
}

impl Formula {
    fn of(host: &Host) -> Self {
        let (flash, geometry) = (&host.flash, &host.space.geometry);
        let blocks: Vec<Pbn> = (0..geometry.blocks()).map(Pbn).collect();
        let oobs = |block: Pbn| {
            let pages =
                (0..flash.ledger().write_pointer(block)).map(move |o| geometry.ppn(block, o));
            pages.filter_map(|at| flash.peek_oob(at))
        };
        let reads = |block: Pbn| {
            u64::from(flash.ledger().write_pointer(block) + 1).min(geometry.pages_per_block.into())
        };
        let rest = |block: Pbn| reads(block) - 1;
        let is_of = |block: Pbn, map: bool| {
            oobs(block)
                .next()
                .is_some_and(|read| (read.oob.role == Role::Map) == map)
        };
        let map_blocks: Vec<Pbn> = blocks.iter().copied().filter(|&b| is_of(b, true)).collect();
        let map_pages = map_blocks.iter().flat_map(|&b| oobs(b));
        let mut numbers: Vec<u32> = map_pages.map(|read| read.oob.lpn.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let places = map_blocks
            .iter()
            .flat_map(|&b| (0..flash.ledger().write_pointer(b)).map(move |o| geometry.ppn(b, o)));
        let checkpoint = |at: Ppn| flash.peek_oob_bytes(at).map(Checkpoint::of);
        let since = places
            .filter_map(checkpoint)
            .map(|c| c.pending)
            .max()
            .unwrap();
        let mut pending = 0;
        for die in 0..geometry.dies {
            let mut data: Vec<Pbn> = blocks
                .iter()
                .copied()
                .filter(|&b| is_of(b, false) && geometry.die_of(b) == die)
                .collect();
            data.sort_by_key(|&b| oobs(b).next().unwrap().sequence);
            let begun_before = data
                .iter()
                .filter(|&&b| oobs(b).next().unwrap().sequence < since)
                .count();
            let open = &data[begun_before.saturating_sub(1)..];
            let (at, last) = oobs(data[data.len() - 1]).enumerate().last().unwrap();
            let is_full = at as u32 + 1 == geometry.pages_per_block;
            let no_erase = last.oob.tag == MORE || last.oob.tag == 0 && !is_full;
            let waits = host.options.on_flash.integrity == Integrity::Timeout && !no_erase;
            pending += (if waits { &data } else { open })
                .iter()
                .map(|&b| rest(b))
                .sum::<u64>();
        }
        Self {
            full_scan: blocks.iter().map(|&b| reads(b)).sum(),
            first_pages: geometry.blocks().into(),
            map_blocks: map_blocks.iter().map(|&b| rest(b)).sum(),
            pending,
            translation_pages: numbers.len() as u64,
        }
    }
}

fn cost(host: &Host, means: &str) -> RecoveryCost {
    let costs = Dftl::recovery_costs(&host.space.geometry, &host.options);
    let found = costs.into_iter().find(|cost| cost.means.starts_with(means));
    found.unwrap_or_else(|| panic!("no {means}"))
}

/// `cargo test -p floatgate-core recovery_reads -- --nocapture` prints the table of docs/recovery.md.
#[test]
fn recovery_reads_of_the_four_modes_are_those_of_the_page() {
    println!("mode     means       OOBs first map pending | pages read, written");
    for mode in MODES {
        let case = Case::small(4, 128, 32, 100)
            .with("tp_entries", 64)
            .with("cmt_entries", 512)
            .with("integrity", mode);
        let mut host = Host::new(&case, 256);
        // Cut at five points of a period of the timer: 30 s are 3,000 requests.
        let mut sent = 0;
        for (i, requests) in [9_600, 1, 400, 1_000, 30].into_iter().enumerate() {
            host.run(sent, requests);
            sent += requests;
            let formula = Formula::of(&host);
            let by_formula = formula.first_pages + formula.map_blocks + formula.pending;
            for means in [RecoveryMode::FullScan, RecoveryMode::Fastest] {
                let did = host.recover(means);
                let is_fast = means == RecoveryMode::Fastest && mode != "NOFLUSH";
                let oobs = if is_fast {
                    by_formula
                } else {
                    formula.full_scan
                };
                assert_eq!(did.oob_reads.map, oobs, "{mode} {means:?} {requests}");
                assert_eq!(did.reads.map, formula.translation_pages);
                let cost = cost(
                    &host,
                    if is_fast {
                        "translation pages"
                    } else {
                        "full scan"
                    },
                );
                assert!(did.reads.map <= cost.page_reads);
                assert!(did.programs.map <= cost.programs);
                if mode != "TIMEOUT" || !is_fast {
                    assert!(did.oob_reads.map <= cost.oob_reads);
                }
                if i == 3 {
                    println!(
                        "{mode:<8} {:<9} {:>6} {:>5} {:>3} {:>7} | {:>10} {:>8}",
                        format!("{means:?}"),
                        did.oob_reads.map,
                        formula.first_pages,
                        formula.map_blocks,
                        formula.pending,
                        did.reads.map,
                        did.programs.map
                    );
                }
            }
        }
    }
}

/// The worked example in every mode, request `i` at `10 i` s: OOBs, translation pages read and written. NOFLUSH by
/// hand: 50 pages programmed less 5 blocks erased leave 7 full blocks and 2 pages, so 30 OOBs and 1 for each of the
/// 6 blocks that are not full.
#[test]
fn recovery_of_the_worked_example() {
    for (mode, full_scan, fastest) in [
        ("NOFLUSH", [36, 4, 2], [36, 4, 2]),
        ("TIMEOUT", [37, 4, 2], [22, 4, 2]),
        ("REQ", [38, 4, 1], [23, 4, 1]),
        ("PAGE", [37, 4, 1], [22, 4, 1]),
    ] {
        let case = case().with("integrity", mode);
        let mut host = Host::new(&case, 16);
        for (i, request) in (0..).zip(EXAMPLE) {
            host.play(request, i * 10_000_000_000);
        }
        for (means, expected) in [
            (RecoveryMode::FullScan, full_scan),
            (RecoveryMode::Fastest, fastest),
        ] {
            let did = host.recover(means);
            let got = [did.oob_reads.map, did.reads.map, did.programs.map];
            assert_eq!(got, expected, "{mode} {means:?}");
        }
    }
}

/// What another configuration left on flash is not taken at its word.
#[test]
fn other_options_than_those_of_the_writer_read_everything() {
    let case = Case::small(2, 40, 8, 24)
        .with("tp_entries", 16)
        .with("cmt_entries", 20);
    for (mode, key, value) in [
        ("NOFLUSH", "integrity", "PAGE"),
        ("TIMEOUT", "integrity", "REQ"),
        ("PAGE", "tp_entries", "8"),
        ("REQ", "streams", "split"),
    ] {
        let case = case.clone().with("integrity", mode);
        let mut host = Host::new(&case, 64);
        host.run(1, 700);
        let other = case.with(key, value);
        let options = other.options_of::<Dftl>().unwrap();
        let did = host.recover_with(&options, RecoveryMode::Fastest);
        assert_eq!(
            did.oob_reads.map,
            Formula::of(&host).full_scan,
            "{mode} {key}={value}"
        );
    }
}

/// A translation page that does not have room for its entries cannot give the map.
#[test]
fn translation_pages_that_are_too_small_are_not_read_for_the_map() {
    let case = Case::small(1, 30, 8, 16)
        .with("tp_entries", 16)
        .with("integrity", "PAGE");
    let mut host = Host::new(&case, 32);
    host.run(1, 500);
    let did = host.recover(RecoveryMode::Fastest);
    assert_eq!(did.oob_reads.map, Formula::of(&host).full_scan);
}

/// A translation page that has rotted, with others behind it in its block.
#[test]
fn an_unreadable_translation_page_leads_to_the_full_scan() {
    let case = Case::small(1, 40, 8, 24)
        .with("tp_entries", 16)
        .with("integrity", "PAGE");
    let mut host = Host::new(&case, 64);
    host.run(1, 700);
    let mut scans = 0;
    for place in host.ftl.map.pages.places().collect::<Vec<_>>() {
        let sound = host.flash.clone();
        host.flash.lose(place);
        let (block, position) = host.space.geometry.split(place);
        let did = if position + 1 < host.flash.ledger.write_pointer(block) {
            scans += 1;
            let did = host.recover(RecoveryMode::Fastest);
            assert_eq!(did.oob_reads.map, Formula::of(&host).full_scan);
            did
        } else {
            host.recover(RecoveryMode::FullScan)
        };
        assert!(did.programs.map >= 1);
        host.flash = sound;
    }
    assert!(scans >= 6);
}

/// One recovery leaves the next one little to do.
#[test]
fn a_recovery_leaves_nothing_pending() {
    let case = Case::small(2, 40, 8, 24)
        .with("tp_entries", 16)
        .with("cmt_entries", 40)
        .with("integrity", "TIMEOUT");
    let mut host = Host::new(&case, 64);
    host.run(1, 900);
    let before = Formula::of(&host).pending;
    let mut flash = host.flash.clone();
    host.ftl = Dftl::recover(
        &host.space,
        &host.options,
        RecoveryMode::Fastest,
        &mut flash,
    )
    .unwrap();
    host.flash = flash;
    let open = 2 * 8;
    assert!(before > open, "{before}");
    assert_eq!(host.ftl.map.newer(), 0);
    // All blocks are closed: a cut now cannot have come in an erase, but that is not to be seen.
    let did = host.recover(RecoveryMode::Fastest);
    assert_eq!(did.programs.map, 1);
    // Once the host has written to every die it is.
    host.write(0, 2, 0);
    let did = host.recover(RecoveryMode::Fastest);
    let formula = Formula::of(&host);
    assert_eq!(
        did.oob_reads.map,
        formula.first_pages + formula.map_blocks + formula.pending
    );
    assert!(formula.pending <= open, "{}", formula.pending);
}

/// Trims of single pages in mode `PAGE` write translation pages and no data. Chosen so that no map block runs
/// empty, they make a map collection take the last erased block. A cut there must leave one.
#[test]
fn a_map_collection_that_holds_the_last_erased_block_is_given_up() {
    let case = Case::small(1, 38, 8, 20)
        .with("tp_entries", 4)
        .with("integrity", "PAGE");
    let mut host = Host::new(&case, 16);
    let geometry = host.space.geometry.clone();
    let mut flash = CutFlash::new(host.flash.clone());
    let has_blank = |ram: &RamFlash| {
        (0..geometry.blocks()).any(|block| ram.ledger.write_pointer(Pbn(block)) == 0)
    };
    let mut tried = 0;
    for _ in 0..150 {
        // The translation page in the fullest block, of those with pages left to trim.
        let valid = |at: Ppn| host.ftl.store.valid(geometry.block_of(at));
        let live =
            |page: u32| (4 * page..4 * page + 4).find(|&lpn| host.shadow[lpn as usize].is_some());
        let places = (0..).zip(host.ftl.map.pages.places());
        let candidates = places.filter_map(|(page, at)| Some((valid(at), live(page)?)));
        let (_, lpn) = candidates.max().expect("there are pages left");
        flash.states = Some(Vec::new());
        flash.ram.new_request(1);
        let run = Run::whole(Lpn(lpn), 1);
        host.ftl.trim(&mut flash, &run).unwrap();
        host.shadow[lpn as usize] = None;
        let states = flash.states.take().unwrap();
        for (ram, change) in states.iter().filter(|(ram, _)| !has_blank(ram)) {
            for tear in [Tear::Clean, Tear::Torn(tried)] {
                host.flash = ram.clone();
                tear.apply(&mut host.flash, *change);
                host.recover(RecoveryMode::Fastest);
                host.recover(RecoveryMode::FullScan);
            }
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
}
