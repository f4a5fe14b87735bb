//! The power of a served device is cut, in every way that can be asked for, under random requests to every scheme, with a
//! write cache and without: what was promised is there, and every other sector is something that it held since.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use floatgate_catalog as _;
use floatgate_core::buffer::Eviction;
use floatgate_core::catalog::Entry;
use floatgate_core::rng::SplitMix64;
use floatgate_device::drive::Unflushed;
use floatgate_device::drive::cache::CacheSetup;
use floatgate_device::image::ImageSpec;
use floatgate_device::{Drive, SparesOptions, Stored};
use floatgate_serve::cut::CutAt;
use floatgate_serve::shared::Failure;
use floatgate_serve::{CutPlan, Setup, Shared};

const PAGES: u64 = 96;
const PAGE: u64 = 2048;
const SECTOR: u64 = 512;
const SECTORS: u64 = PAGES * PAGE / SECTOR;
const PER_PAGE: u64 = PAGE / SECTOR;
const CACHE_BYTES: u64 = 12 * PAGE;

fn device(scheme: &Entry<Stored>) -> Box<dyn Drive> {
    let spec = |options: &str| ImageSpec {
        spares: SparesOptions::default(),
        scheme: scheme.info.key.into(),
        options: options.into(),
        ..ImageSpec::small(PAGES)
    };
    let made = scheme.life.in_memory(&spec("log_blocks=4"));
    made.or_else(|_| scheme.life.in_memory(&spec("")))
        .unwrap_or_else(|error| panic!("{}: {error}", scheme.info.key))
}

/// Of five devices one has no cache, and the others differ in all that a cache can be.
fn cache(seed: u64) -> Option<CacheSetup> {
    let setup = CacheSetup {
        write_bytes: CACHE_BYTES,
        eviction: [Eviction::Lru, Eviction::Bplru][seed as usize % 2],
        is_protected: seed % 5 > 2,
        read_bytes: seed % 3 * 4 * PAGE,
        ahead_bytes: 3 * PAGE,
    };
    (!seed.is_multiple_of(5)).then_some(setup)
}

/// What a sector may hold after a cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum May {
    /// This version; 0 is zeroes.
    Version(u64),
    /// A trim that was not flushed: zeroes, or anything that it ever held.
    Anything,
}

/// A host with a model of every sector.
struct Host {
    shared: Shared,
    /// Whether a power cut takes what no flush has covered.
    is_volatile: bool,
    /// What a read returns while the power is on.
    now: Vec<u64>,
    may: Vec<Vec<May>>,
    /// All versions that each sector was given.
    given: Vec<Vec<u64>>,
    version: u64,
    buffer: Vec<u8>,
}

impl Host {
    fn new(drive: Box<dyn Drive>, setup: Setup) -> Self {
        Self {
            is_volatile: setup.cache.is_some_and(|cache| !cache.is_protected),
            shared: Shared::with(drive, Vec::new(), setup),
            now: vec![0; SECTORS as usize],
            may: vec![vec![May::Version(0)]; SECTORS as usize],
            given: vec![vec![0]; SECTORS as usize],
            version: 0,
            buffer: Vec::new(),
        }
    }

    /// One request; whether the power is still on.
    fn step(&mut self, rng: &mut SplitMix64) -> bool {
        let count = 1 + rng.below(3 * PER_PAGE);
        let first = rng.below(SECTORS - count);
        let sectors = first as usize..(first + count) as usize;
        let (offset, bytes) = (first * SECTOR, count * SECTOR);
        let outcome = match rng.below(20) {
            0..11 => self.write(sectors, false),
            11..13 => self.write(sectors, true),
            13 => self.trim(first, count),
            14..16 => self.flush(),
            _ => {
                self.buffer.resize(bytes as usize, 0);
                let mut data = std::mem::take(&mut self.buffer);
                let outcome = self.shared.read(offset, &mut data);
                if outcome.is_ok() {
                    for (sector, data) in sectors.zip(data.chunks(SECTOR as usize)) {
                        assert_eq!(
                            version_of(data, sector),
                            self.now[sector],
                            "sector {sector}"
                        );
                    }
                }
                self.buffer = data;
                outcome
            }
        };
        let is_on = self.shared.stat().expect("defined").is_on;
        match outcome {
            Ok(()) => {}
            Err(why) => assert_eq!((why, is_on), (Failure::Io, false), "a request failed"),
        }
        is_on
    }

    fn write(&mut self, sectors: std::ops::Range<usize>, fua: bool) -> Result<(), Failure> {
        self.version += 1;
        let version = self.version;
        let data: Vec<u8> = sectors
            .clone()
            .flat_map(|sector| content(version, sector))
            .collect();
        let outcome = self.shared.write(sectors.start as u64 * SECTOR, &data, fua);
        for sector in sectors {
            self.given[sector].push(version);
            if outcome.is_ok() {
                self.now[sector] = version;
                if fua || !self.is_volatile {
                    self.may[sector].clear();
                }
            }
            self.may[sector].push(May::Version(version));
        }
        outcome
    }

    fn trim(&mut self, first: u64, count: u64) -> Result<(), Failure> {
        let outcome = self.shared.trim(first * SECTOR, count * SECTOR);
        let from = first.div_ceil(PER_PAGE) * PER_PAGE;
        let end = (first + count) / PER_PAGE * PER_PAGE;
        for sector in from as usize..end.max(from) as usize {
            if outcome.is_ok() {
                self.now[sector] = 0;
            }
            self.may[sector].push(May::Anything);
        }
        outcome
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.shared.flush()?;
        for (may, &now) in self.may.iter_mut().zip(&self.now) {
            *may = vec![May::Version(now)];
        }
        Ok(())
    }

    /// Every sector is something that it may be; from now on it is that.
    fn check(&mut self, place: &str) {
        let mut data = vec![0; (SECTORS * SECTOR) as usize];
        let read = self.shared.read(0, &mut data);
        assert_eq!(read, Ok(()), "{place}: a page is lost");
        for (sector, data) in data.chunks(SECTOR as usize).enumerate() {
            let found = version_of(data, sector);
            let may = &mut self.may[sector];
            let is_anything = may.contains(&May::Anything);
            let fits = match is_anything {
                true => self.given[sector].contains(&found),
                false => may.contains(&May::Version(found)),
            };
            assert!(
                fits,
                "{place}: sector {sector} holds {found}, not one of {may:?}"
            );
            *may = vec![match is_anything {
                true => May::Anything,
                false => May::Version(found),
            }];
            self.now[sector] = found;
        }
    }
}

fn content(version: u64, sector: usize) -> Vec<u8> {
    let word = match version {
        0 => 0,
        version => version << 32 | sector as u64,
    };
    word.to_le_bytes().repeat(SECTOR as usize / 8)
}

fn version_of(data: &[u8], sector: usize) -> u64 {
    let word = u64::from_le_bytes(data[..8].try_into().expect("8"));
    let version = word >> 32;
    assert_eq!(data, content(version, sector), "sector {sector} is mixed");
    version
}

fn plan(rng: &mut SplitMix64) -> (Option<CutAt>, CutPlan) {
    let at = match rng.below(7) {
        0 | 1 => Some(CutAt::Write(1 + rng.below(30))),
        2 => Some(CutAt::Flush(1 + rng.below(4))),
        3 | 4 => Some(CutAt::Flash(1 + rng.below(80))),
        5 => Some(floatgate_serve::cut::drawn(rng.next(), 40).expect("a draw")),
        _ => None,
    };
    let plan = CutPlan {
        at: CutAt::After(0),
        unflushed: [
            Unflushed::Keep,
            Unflushed::Drop,
            Unflushed::Some,
            Unflushed::Some,
        ][rng.below(4) as usize],
        tear: rng.below(2) == 1,
        seed: rng.next() >> 40,
    };
    (at, plan)
}

fn kind(plan: &CutPlan) -> String {
    let at = match plan.at {
        CutAt::Write(_) => "write",
        CutAt::Flush(_) => "flush",
        CutAt::Flash(_) => "flash",
        CutAt::After(_) => "after",
    };
    format!(
        "{at} {:?}{}",
        plan.unflushed,
        if plan.tear { " torn" } else { "" }
    )
}

#[test]
fn what_was_promised_survives_every_cut() {
    let lives = std::env::var("FLOATGATE_LIVES").map_or(12, |text| text.parse().expect("a number"));
    let mut cuts: BTreeMap<String, u64> = BTreeMap::new();
    for (index, scheme) in (0..).zip(&floatgate_schemes::catalog::<Stored>()) {
        for seed in 105 * index..105 * index + 5 {
            let setup = Setup {
                cache: cache(seed),
                ..Setup::default()
            };
            let mut host = Host::new(device(scheme), setup);
            let mut rng = SplitMix64::new(seed);
            for life in 0..lives {
                let place = format!("{} seed {seed} life {life}", scheme.info.key);
                for _ in 0..rng.below(40) {
                    assert!(host.step(&mut rng), "{place}: no cut was armed");
                }
                let (at, plan) = plan(&mut rng);
                let plan = host.shared.cut(at, plan).expect("the power is on");
                let place = format!("{place}, {plan}");
                let mut steps = 0;
                while host.shared.stat().expect("defined").is_on && steps < 400 {
                    host.step(&mut rng);
                    steps += 1;
                }
                if steps < 400 {
                    *cuts.entry(kind(&plan)).or_default() += 1;
                } else {
                    host.shared.cut(None, plan).expect("the power is on");
                }
                all_fails(&host.shared);
                host.shared
                    .power_on()
                    .unwrap_or_else(|why| panic!("{place}: {why}"));
                host.check(&place);
            }
            host.shared.close().expect("closed in order");
        }
    }
    println!("{} cuts: {cuts:?}", cuts.values().sum::<u64>());
    assert!(cuts.len() >= 20, "kinds of cuts that came: {cuts:?}");
}

fn all_fails(shared: &Shared) {
    let mut data = [0; SECTOR as usize];
    assert_eq!(shared.read(0, &mut data), Err(Failure::Io));
    assert_eq!(shared.write(0, &data, true), Err(Failure::Io));
    assert_eq!(shared.trim(0, PAGE), Err(Failure::Io));
    assert_eq!(shared.write_zeroes(0, PAGE, true), Err(Failure::Io));
    assert_eq!(shared.flush(), Err(Failure::Io));
    assert!(shared.extents(0, 512, 1, &mut Vec::new()).is_err());
}

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The bytes of a device of which the power was cut, and the line that tells of it.
fn cut_off(scheme: &Entry<Stored>, cut: Option<CutPlan>, seed: u64) -> (Vec<u8>, String) {
    let setup = Setup {
        cache: cache(seed),
        cut,
        tell: |line| TOLD.lock().expect("no panic").push(line.into()),
        ..Setup::default()
    };
    let mut host = Host::new(device(scheme), setup);
    let mut rng = SplitMix64::new(seed);
    if cut.is_none() {
        let (at, plan) = plan(&mut SplitMix64::new(seed));
        let at = at.or(Some(CutAt::After(17)));
        host.shared.cut(at, plan).expect("the power is on");
    }
    while host.step(&mut rng) {}
    host.shared.power_on().expect("on");
    let mut bytes = vec![0; (SECTORS * SECTOR) as usize];
    host.shared.read(0, &mut bytes).expect("no page is lost");
    let line = TOLD.lock().expect("no panic").pop().expect("a line");
    (bytes, line)
}

#[test]
fn the_line_of_a_cut_repeats_it() {
    let catalog = floatgate_schemes::catalog::<Stored>();
    for key in ["page", "fast"] {
        let scheme = catalog.get(key).expect("a scheme");
        for seed in 0..20 {
            let (bytes, line) = cut_off(scheme, None, seed);
            let again = line.split('\'').nth(1).expect("quoted");
            let cut = Some(again.parse().expect("a plan"));
            let (same, told) = cut_off(scheme, cut, seed);
            assert_eq!(told, line);
            assert!(same == bytes, "{key} seed {seed}: {line}");
        }
    }
}

#[test]
fn snapshots_are_whole_and_bring_back_what_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let catalog = floatgate_schemes::catalog::<Stored>();
    let scheme = catalog.get("page").expect("a scheme");
    let mut host = Host::new(device(scheme), Setup::default());
    let (file, other) = (folder.path().join("snap"), folder.path().join("noise"));
    host.write(0..40, false).expect("written");
    host.shared.snapshot(&file).expect("a snapshot");
    assert!(host.shared.snapshot(&file).is_err(), "the file exists");
    let before = host.now.clone();
    host.write(10..90, true).expect("written");
    std::fs::write(&other, [7; 9000]).expect("a file");
    assert!(host.shared.restore(&other).is_err(), "no image");
    let mut data = vec![0; SECTOR as usize];
    host.shared
        .read(10 * SECTOR, &mut data)
        .expect("still there");
    assert_eq!(version_of(&data, 10), 2);
    host.shared.restore(&file).expect("restored");
    for (sector, &version) in before.iter().enumerate() {
        host.shared
            .read(sector as u64 * SECTOR, &mut data)
            .expect("readable");
        assert_eq!(version_of(&data, sector), version);
    }
    host.shared
        .cut(None, "after=0".parse().expect("a plan"))
        .expect("cut");
    host.shared.power_on().expect("on");
    host.shared.read(0, &mut data).expect("readable");
    assert_eq!(version_of(&data, 0), 1);
}

#[test]
fn a_restored_image_file_is_the_one_that_is_used_and_locked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (image, snap) = (folder.path().join("disk.img"), folder.path().join("snap"));
    let catalog = floatgate_schemes::catalog::<Stored>();
    let scheme = catalog.get("page").expect("a scheme");
    let mut memory = Host::new(device(scheme), Setup::default());
    memory.write(0..4, false).expect("written");
    memory.shared.snapshot(&image).expect("an image");
    let mount = || {
        let durability = floatgate_device::image::Durability::Process;
        floatgate_device::stored::mount_image(&image, durability, &catalog)
    };
    let setup = Setup {
        image: Some(image.clone()),
        ..Setup::default()
    };
    let shared = Shared::with(mount().expect("mounted"), Vec::new(), setup);
    shared.snapshot(&snap).expect("a snapshot");
    shared.write(0, &content(9, 0), true).expect("written");
    shared.restore(&snap).expect("restored");
    assert!(mount().is_err(), "the image is in use");
    shared.write(SECTOR, &content(8, 1), true).expect("written");
    shared.close().expect("closed");
    drop(shared);
    let mut data = vec![0; 2 * SECTOR as usize];
    mount().expect("free").read(0, &mut data).expect("readable");
    let (first, second) = data.split_at(SECTOR as usize);
    assert_eq!((version_of(first, 0), version_of(second, 1)), (1, 8));
    let names = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(names, 2, "nothing else is left behind");
}

#[test]
fn writes_go_astray_and_pages_become_unreadable() {
    let catalog = floatgate_schemes::catalog::<Stored>();
    let mut host = Host::new(
        device(catalog.get("page").expect("a scheme")),
        Setup::default(),
    );
    let shared = &host.shared;
    shared.misdirect(2, Some(8 * SECTOR), 0).expect("a place");
    assert!(shared.misdirect(1, Some(SECTORS * SECTOR), 0).is_err());
    assert!(shared.misdirect(0, None, 0).is_err());
    shared.write(0, &content(1, 0), false).expect("written");
    shared
        .write(SECTOR, &content(2, 8), false)
        .expect("written, it says");
    shared
        .write(2 * SECTOR, &content(3, 2), false)
        .expect("written");
    let mut data = vec![0; SECTOR as usize];
    for (sector, version) in [(0, 1), (1, 0), (2, 3), (8, 2)] {
        shared.read(sector * SECTOR, &mut data).expect("readable");
        assert_eq!(version_of(&data, sector as usize), version);
    }
    shared.make_unreadable(SECTOR, 4 * SECTOR).expect("a range");
    assert!(shared.make_unreadable(1, SECTOR).is_err());
    assert!(shared.make_unreadable(SECTORS * SECTOR, SECTOR).is_err());
    let fails = |sector: u64| {
        shared
            .read(sector * SECTOR, &mut [0; SECTOR as usize])
            .is_err()
    };
    shared
        .write(3 * SECTOR, &content(4, 3), false)
        .expect("written");
    let found: Vec<bool> = (0..6).map(fails).collect();
    assert_eq!(found, [false, true, true, false, true, false]);
    host.shared.close().expect("closed");
    host.now.clear();
}

#[test]
fn control_lines_are_answered_and_nonsense_is_refused() {
    use std::io::{BufRead, BufReader, Write};
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c");
    let catalog = floatgate_schemes::catalog::<Stored>();
    let host = Host::new(
        device(catalog.get("page").expect("a scheme")),
        Setup::default(),
    );
    let shared = Arc::new(host.shared);
    let stop = Arc::new(AtomicBool::new(false));
    let control = floatgate_serve::control::Control::bind(&path).expect("a socket");
    let thread = {
        let (shared, stop) = (Arc::clone(&shared), Arc::clone(&stop));
        std::thread::spawn(move || control.run(&shared, &stop, &stop))
    };
    let ask = |line: &str| floatgate_serve::control::ask(&path, line).expect("an answer");
    for line in [
        "{}",
        "nonsense",
        "[1",
        "{\"do\":\"fly\"}",
        "{\"do\":\"cut\",\"at\":{}}",
        "\u{1}",
        "{\"do\":\"cut\",\"at\":{\"write\":1,\"flush\":1}}",
        "{\"do\":\"cut\",\"at\":{\"write\":0}}",
        "{\"do\":\"cut\",\"unflushed\":\"all\"}",
        "{\"do\":\"cut\",\"at\":{\"random\":1}}",
        "{\"do\":\"unreadable\",\"offset\":-1,\"bytes\":512}",
        "{\"do\":\"stat\",\"as\":1}",
        "{\"do\":\"restore\",\"file\":\"/dev/null\"}",
        "{\"do\":\"on\"}",
    ] {
        let told = ask(line);
        assert_eq!(told["ok"], false, "{line}");
        assert!(!told["error"].as_str().expect("why").is_empty());
    }
    let told = ask(
        "{\"do\":\"cut\",\"at\":{\"write\":2},\"unflushed\":\"keep\",\"tear\":true,\"seed\":7}",
    );
    assert_eq!(told["cut"], "write=2,unflushed=keep,tear,seed=7");
    assert_eq!(shared.write(0, &content(1, 0), false), Ok(()));
    assert_eq!(shared.write(0, &content(2, 0), false), Err(Failure::Io));
    assert_eq!(ask("{\"do\":\"stat\"}")["is_on"], false);
    assert_eq!(ask("{\"do\":\"cut\"}")["ok"], false, "it is off");
    assert_eq!(ask("{\"do\":\"on\"}")["ok"], true);
    let told: floatgate_serve::stat::Stat =
        serde_json::from_value(ask("{\"do\":\"stat\"}")).expect("statistics");
    assert_eq!((told.power_cuts, told.requests["write"].requests), (1, 2));
    assert_eq!(told.requests["write"].errors, 1);
    // A line too long, and one after the other on one connection.
    let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("a connection");
    stream
        .write_all(b"{\"do\":\"mark\",\"text\":\"a\"}\n{\"do\":\"mark\"}\n")
        .expect("sent");
    let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "{\"ok\":true}\n");
    line.clear();
    reader.read_line(&mut line).expect("a line");
    assert!(line.contains("text"), "{line}");
    let _ = stream.write_all(&[b'x'; 70_000]);
    line.clear();
    let _ = reader.read_line(&mut line);
    assert!(line.is_empty() || line.contains("at most"), "{line}");
    assert_eq!(ask("{\"do\":\"shutdown\"}")["ok"], true);
    assert!(stop.load(Ordering::Relaxed));
    thread.join().expect("no panic");
    assert!(!path.exists());
}

#[test]
fn a_cache_keeps_to_the_device() {
    let catalog = floatgate_schemes::catalog::<Stored>();
    let inner = device(catalog.get("page").expect("a scheme"));
    let mut cached = floatgate_device::Cached::new(inner, &cache(1).expect("a cache"));
    let unwritten = |cached: &floatgate_device::Cached| {
        cached.figures().cache.expect("a cache").unwritten_bytes
    };
    let sector = content(1, 0);
    assert!(cached.write(SECTORS, &sector).is_err(), "beyond the end");
    assert!(cached.write(u64::MAX, &sector).is_err());
    assert!(cached.write(0, &sector[1..]).is_err(), "part of a sector");
    assert!(cached.read(SECTORS, &mut sector.clone()).is_err());
    assert!(cached.write_through(SECTORS, &sector).is_err());
    assert!(cached.trim(SECTORS, 1).is_err());
    assert_eq!(unwritten(&cached), 0);

    assert!(cached.is_hole(0));
    cached.write(1, &sector).expect("taken in");
    cached.write(1, &sector).expect("merged");
    assert!(!cached.is_hole(0), "what is held is no hole");
    assert_eq!(unwritten(&cached), SECTOR);
    assert_eq!(cached.figures().chip.programs, 0);

    cached
        .tick(1)
        .expect("a request came since the tick before");
    assert_eq!(unwritten(&cached), SECTOR);
    cached.tick(2).expect("idle");
    assert_eq!(unwritten(&cached), 0);
    assert_eq!(cached.figures().chip.programs, 1);

    // More than it holds, in one write and in many.
    cached
        .write(0, &vec![3; (SECTORS * SECTOR) as usize])
        .expect("taken in");
    assert!(unwritten(&cached) <= CACHE_BYTES);
    cached.flush().expect("flushed");
    assert_eq!(unwritten(&cached), 0);
    Box::new(cached).close().expect("closed");
}

#[test]
fn amplification_is_of_what_was_written_not_of_what_was_dropped() {
    let catalog = floatgate_schemes::catalog::<Stored>();
    let scheme = catalog.iter().find(|scheme| scheme.info.key == "page");
    let shared = Shared::new(device(scheme.expect("page mapping")), Vec::new());
    shared.write_zeroes(0, 64 * PAGE, true).expect("dropped");
    shared.trim(0, 64 * PAGE).expect("dropped");
    let amplification = || shared.stat().expect("figures").write_amplification;
    assert_eq!(amplification(), None);
    shared
        .write(0, &[1; 4 * PAGE as usize], false)
        .expect("written");
    assert_eq!(amplification(), Some(1.0));
    // A sector of a page takes a page; what lies around the dropped pages is written.
    shared
        .write_zeroes(PAGE - SECTOR, PAGE + SECTOR, true)
        .expect("zeroes");
    assert_eq!(amplification(), Some(5.0 / 4.25));
}
