//! Phase-change memory in an image: a start of `hat` reads its map from there, and believes no entry that the flash has
//! left behind.

mod common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{Host, check};
use floatgate_catalog as _;
use floatgate_core::flash::{Oob, Role};
use floatgate_core::ftl::RecoveryMode;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Lpn, Pbn, Ppn, ProgramOrder};
use floatgate_device::entry::PcmEntry;
use floatgate_device::image::entries::ENTRY_BYTES;
use floatgate_device::image::format::{Header, Layout, VERSION, VERSION_WITH_PCM};
use floatgate_device::image::{
    DumpSelection, Durability, ImageSpec, create, dump, header_of, info, open, scrub,
};
use floatgate_device::nand::Spare;
use floatgate_device::power::Powered;
use floatgate_device::{BlockDevice, ImageNand, Nand, NandFlash, Spares, SparesOptions};
use floatgate_schemes::hat::{Hat, HatOptions};
use floatgate_schemes::page::Page;

const PAGES: u32 = 2 * 8 * 24;
const PAGE_BYTES: usize = 1024;
const SECTOR_BYTES: usize = PAGE_BYTES / 2;

type Device = BlockDevice<Hat, Spares<Powered<ImageNand>>>;

fn spec(scheme: &str) -> ImageSpec {
    ImageSpec {
        dies: 2,
        blocks_per_die: 32,
        pages_per_block: 8,
        page_bytes: PAGE_BYTES as u32,
        logical_pages: PAGES.into(),
        program_order: ProgramOrder::Ascending,
        spares: SparesOptions::default(),
        scheme: scheme.into(),
        options: match scheme {
            "hat" => "qmt_entries=16".into(),
            _ => String::new(),
        },
        part: String::new(),
        erase_limit: 0,
    }
}

fn host(path: &Path) -> Host<Hat, Spares<Powered<ImageNand>>> {
    Host::new(open::<Hat>(path, Durability::Process).unwrap())
}

/// A device written all over, and then at random.
fn used(folder: &Path) -> (PathBuf, Host<Hat, Spares<Powered<ImageNand>>>) {
    let path = folder.join("hat.img");
    create::<Hat>(&path, &spec("hat")).unwrap();
    let mut host = host(&path);
    for page in 0..u64::from(PAGES) {
        host.write(2 * page, 2).unwrap();
    }
    let mut rng = SplitMix64::new(5);
    for _ in 0..900 {
        host.random(&mut rng, true).unwrap();
    }
    // A trim survives the end of the process once it is flushed.
    host.device.flush().unwrap();
    (path, host)
}

/// What the start took: OOB reads and PCM reads.
fn cost(device: &Device) -> (u64, u64) {
    let did = device.flash_layer().ledger.counters;
    (did.oob_reads.sum(), did.pcm_reads)
}

fn open_in(path: &Path, mode: RecoveryMode) -> Device {
    let header = header_of(path).unwrap();
    let nand = Powered::new(ImageNand::open(path, Durability::Process).unwrap(), false);
    let options = HatOptions {
        qmt_entries: Some(16),
        ..HatOptions::default()
    };
    BlockDevice::open(Spares::mount(nand, header.spares).unwrap(), &options, mode).unwrap()
}

/// Every page reads as the host knows it, or as what a trim may have left of it.
fn assert_kept(
    device: Device,
    mut known: Host<Hat, Spares<Powered<ImageNand>>>,
) -> Host<Hat, Spares<Powered<ImageNand>>> {
    known.device = device;
    known.verify_all().unwrap();
    known
}

/// The same file once more, as a killed process leaves it.
fn copied(path: &Path, name: &str) -> PathBuf {
    let to = path.with_file_name(name);
    std::fs::copy(path, &to).unwrap();
    to
}

#[test]
fn after_a_kill_only_what_pcm_does_not_name_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (path, known) = used(folder.path());
    let (a, b) = (copied(&path, "a.img"), copied(&path, "b.img"));
    let scan = cost(&open_in(&a, RecoveryMode::FullScan));
    let device = open_in(&b, RecoveryMode::Fastest);
    let by_pcm = cost(&device);
    assert_eq!((scan.1, by_pcm.1), (PAGES.into(), PAGES.into()));
    assert!(scan.0 > u64::from(PAGES), "{scan:?}");
    // All but the 16 entries of the QMT and what was trimmed.
    assert!(
        by_pcm.0 + u64::from(PAGES) * 3 / 4 < scan.0,
        "{by_pcm:?} {scan:?}"
    );
    assert_kept(device, known);
}

#[test]
fn after_a_clean_close_no_spare_area_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut known) = used(folder.path());
    known.trim(3, 5).unwrap();
    let Host { device, shadow, .. } = known;
    device.shut_down().unwrap().into_nand().close().unwrap();
    assert!(info(&path).unwrap().pcm.unwrap().is_complete);
    let device = open::<Hat>(&path, Durability::Process).unwrap();
    assert_eq!(cost(&device), (0, PAGES.into()));
    let mut known = Host::new(device);
    known.shadow = shadow;
    known.verify_all().unwrap();
    // One write, and the table is no longer all that there is.
    known.write(0, 2).unwrap();
    let killed = copied(&path, "killed.img");
    assert!(!info(&killed).unwrap().pcm.unwrap().is_complete);
    let device = open_in(&killed, RecoveryMode::Fastest);
    assert!(cost(&device).0 > 0);
    let mut bytes = [0; SECTOR_BYTES];
    let mut again = device;
    again.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, known.shadow[0][..SECTOR_BYTES]);
}

#[test]
fn an_image_from_before_comes_up_by_the_scan_and_other_schemes_have_no_region() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.img");
    let header = spec("hat").header().unwrap();
    assert_eq!(header.version(), VERSION);
    let nand = ImageNand::create(&path, &header, Durability::Process).unwrap();
    let spares = Spares::format(nand, header.spares).unwrap();
    let options = HatOptions {
        qmt_entries: Some(16),
        ..HatOptions::default()
    };
    let mut known = Host::new(BlockDevice::<Hat, _>::create(spares, &options).unwrap());
    for page in 0..u64::from(PAGES) {
        known.write(2 * page, 2).unwrap();
    }
    let Host { device, shadow, .. } = known;
    device.shut_down().unwrap().into_nand().close().unwrap();
    let device = open::<Hat>(&path, Durability::Process).unwrap();
    assert!(cost(&device).0 >= PAGES.into());
    let mut known = Host::new(device);
    known.shadow = shadow;
    known.verify_all().unwrap();
    drop(known);
    assert_eq!(info(&path).unwrap().pcm, None);
    let (hat, page) = (
        folder.path().join("hat.img"),
        folder.path().join("page.img"),
    );
    create::<Hat>(&hat, &spec("hat")).unwrap();
    create::<Page>(&page, &spec("page")).unwrap();
    let versions = [&hat, &page].map(|path| info(path).unwrap().format_version);
    assert_eq!(versions, [VERSION_WITH_PCM, VERSION]);
}

fn flip(path: &Path, at: u64) {
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

fn kinds(path: &Path) -> Vec<&'static str> {
    check(path)
        .unwrap()
        .findings
        .iter()
        .map(|f| f.kind)
        .collect()
}

#[test]
fn damage_is_found_and_costs_reads_only() {
    let folder = tempfile::tempdir().unwrap();
    let (path, known) = used(folder.path());
    let Host { device, shadow, .. } = known;
    device.shut_down().unwrap().into_nand().close().unwrap();
    assert_eq!(kinds(&path), [""; 0]);
    let layout = Layout::of(&header_of(&path).unwrap());
    let entry_of = |path: &Path, lpn: u32| {
        let selection = DumpSelection {
            lpn: Some(lpn),
            ..DumpSelection::default()
        };
        dump(path, &selection).unwrap().entry.unwrap()
    };
    let written = (0..PAGES).filter(|&lpn| entry_of(&path, lpn).state == "good");
    let written: Vec<u32> = written.collect();
    assert!(written.len() > 200);
    for (name, at, found) in [
        (
            "entry.img",
            layout.entry_at(written[9]) + 6,
            vec!["pcm-entry", "pcm-seal"],
        ),
        ("seal.img", layout.seal_at() + 9, vec!["pcm-seal"]),
    ] {
        let damaged = copied(&path, name);
        flip(&damaged, at);
        assert_eq!(kinds(&damaged), found, "{name}");
        let device = open::<Hat>(&damaged, Durability::Process).unwrap();
        assert!(cost(&device).0 > 0, "{name}: the seal is broken");
        let mut known = Host::new(device);
        for (page, wanted) in shadow.iter().enumerate() {
            assert_eq!(
                known.content(page as u32).unwrap(),
                *wanted,
                "{name} {page}"
            );
        }
        drop(known);
        let report = scrub::<Hat>(&damaged).unwrap();
        assert_eq!(report.lost_logical_pages, [0; 0]);
        assert_eq!(kinds(&damaged), [""; 0], "{name}");
        assert!(info(&damaged).unwrap().pcm.unwrap().is_complete);
    }
    let damaged = copied(&path, "dump.img");
    flip(
        &damaged,
        layout.entry_at(written[9]) + ENTRY_BYTES as u64 - 1,
    );
    assert_eq!(entry_of(&damaged, written[9]).state, "damaged");
    assert_eq!(scrub::<Hat>(&damaged).unwrap().entries_mended, 1);
}

/// A whole page of entries as it was at an earlier close: each of them is sound by itself.
#[test]
fn entries_that_are_older_than_their_seal_are_not_taken_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let (path, known) = used(folder.path());
    let Host { device, .. } = known;
    device.shut_down().unwrap().into_nand().close().unwrap();
    let older = copied(&path, "older.img");
    let mut known = host(&path);
    for page in 0..60 {
        known.write(2 * page, 2).unwrap();
    }
    let Host { device, shadow, .. } = known;
    device.shut_down().unwrap().into_nand().close().unwrap();
    let layout = Layout::of(&header_of(&path).unwrap());
    let mut page = [0; 4096];
    let before = std::fs::File::open(&older).unwrap();
    before.read_exact_at(&mut page, layout.entry_at(0)).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&page, layout.entry_at(0)).unwrap();
    drop(file);
    assert_eq!(kinds(&path), ["pcm-seal"]);
    let mut known = host(&path);
    for (page, wanted) in shadow.iter().enumerate().take(60) {
        assert_eq!(known.content(page as u32).unwrap(), *wanted, "page {page}");
    }
}

/// Entries reach the disk in any mixture with the flash: one that names what is not there, or was erased since, goes, and
/// is gone before anything is programmed.
#[test]
fn an_entry_that_is_ahead_of_the_flash_or_behind_it_is_dropped_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chip.img");
    let header = Header {
        pcm: true,
        ..spec("hat").header().unwrap()
    };
    let mut nand = ImageNand::create(&path, &header, Durability::Machine).unwrap();
    nand.erase(Pbn(0)).unwrap();
    let spare = Spare::new(Oob::new(Lpn(5), Role::Data), 9);
    nand.program(Ppn(0), &spare, &[1; PAGE_BYTES]).unwrap();
    let entry = |place, era| PcmEntry {
        place: Ppn(place),
        era,
        sequence: 9,
        tag: 0,
    };
    let rows = [
        (4, entry(1, 1)),
        (5, entry(0, 1)),
        (6, entry(0, 0)),
        (7, entry(0, 2)),
        (8, entry(1 << 30, 1)),
    ];
    for (lpn, entry) in rows {
        nand.save_entry(Lpn(lpn), Some(&entry)).unwrap();
    }
    let mut flash = NandFlash::new(nand).unwrap();
    for (lpn, entry) in rows {
        let kept = flash.nand_mut().load_entry(Lpn(lpn)).unwrap();
        assert_eq!(kept, (lpn == 5).then_some(entry), "page {lpn}");
    }
    drop(flash);
    let mut nand = ImageNand::open(&path, Durability::Machine).unwrap();
    let kept = (4..9).filter(|&lpn| nand.load_entry(Lpn(lpn)).unwrap().is_some());
    assert_eq!(kept.collect::<Vec<_>>(), [5]);
}
