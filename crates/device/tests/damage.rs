//! Damaged and forged images: every kind of damage has its name, and nothing makes the program panic or read
//! wrong bytes.

mod common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{check, create};
use floatgate_catalog as _;
use floatgate_core::flash::Oob;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Geometry, Lpn, Pbn, Ppn, ProgramOrder, Role};
use floatgate_device::image::format::{
    BLOCKS_MAX, BlockRecord, HEADER_BYTES, Header, Layout, PAGE_HEADER_BYTES, PageHeader, record_at,
};
use floatgate_device::image::{
    DumpSelection, Durability, ImageError, ImageSpec, Severity, dump, info,
};
use floatgate_device::nand::{BlockState, Nand, Place, PlaceKind, Spare};
use floatgate_device::{ImageNand, NandError, Spares, SparesOptions};

const PAGE_BYTES: usize = 48;

fn spec() -> ImageSpec {
    ImageSpec {
        dies: 1,
        blocks_per_die: 8,
        pages_per_block: 4,
        page_bytes: PAGE_BYTES as u32,
        logical_pages: 16,
        program_order: ProgramOrder::Ascending,
        spares: SparesOptions::default(),
        scheme: "page".into(),
        options: "gc_low=2".into(),
        part: "a small one".into(),
        erase_limit: 1000,
    }
}

fn content(page: u32) -> Vec<u8> {
    (0..PAGE_BYTES)
        .map(|i| (page as usize * 37 + i) as u8 | 1)
        .collect()
}

fn spare(lpn: u32, sequence: u64, block: u32, position: u32) -> Spare {
    let mut spare = Spare::new(Oob::new(Lpn(lpn), Role::Data), sequence);
    spare.place = Place {
        kind: PlaceKind::Mapped,
        block,
        page: position as u16,
        generation: u64::from(block) + 1,
        ..Place::default()
    };
    spare
}

/// An image with three blocks in use, one of them erased once.
fn sample(folder: &Path) -> PathBuf {
    let path = folder.join("sample.img");
    let mut nand =
        ImageNand::create(&path, &spec().header().unwrap(), Durability::Process).unwrap();
    nand.erase(Pbn(1)).unwrap();
    for (sequence, page) in (1..).zip(0..11) {
        let (block, position) = (page / 4, page % 4);
        let spare = spare(page % 16, sequence, block, position);
        nand.program(Ppn(page), &spare, &content(page)).unwrap();
    }
    nand.close().unwrap();
    path
}

fn layout() -> Layout {
    Layout::of(&spec().header().unwrap())
}

fn put(path: &Path, at: u64, bytes: &[u8]) {
    std::fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .write_all_at(bytes, at)
        .unwrap();
}

/// Names of the findings after a change of the sample.
fn findings(change: impl FnOnce(&Path)) -> Vec<(&'static str, Severity)> {
    let folder = tempfile::tempdir().unwrap();
    let path = sample(folder.path());
    change(&path);
    let report = check(&path).unwrap();
    assert_eq!(report.is_sound(), report.count(Severity::Error) == 0);
    report
        .findings
        .iter()
        .map(|finding| (finding.kind, finding.severity))
        .collect()
}

fn errors(change: impl FnOnce(&Path)) -> Vec<&'static str> {
    let found = findings(change).into_iter();
    found
        .filter(|(_, severity)| *severity == Severity::Error)
        .map(|(kind, _)| kind)
        .collect()
}

fn page(at: u32, spare: &Spare) -> [u8; PAGE_HEADER_BYTES] {
    PageHeader::new(0, at, 0, spare, &content(at)).encode()
}

#[test]
fn a_sound_image_has_no_findings() {
    assert_eq!(findings(|_| {}), []);
}

#[test]
fn every_damage_has_its_name() {
    let l = layout();
    let both = |path: &Path, at: u64, bytes: &[u8]| {
        put(path, at, bytes);
        put(path, HEADER_BYTES as u64 + at, bytes);
    };
    assert_eq!(errors(|p| both(p, 0, b"whatever")), ["magic"]);
    assert_eq!(errors(|p| both(p, 8, &[9])), ["version"]);
    assert_eq!(errors(|p| both(p, 24, &[9])), ["header-checksum"]);
    assert_eq!(errors(|p| put(p, 24, &[9])), ["header-checksum"]);
    let cut = |p: &Path, bytes| {
        std::fs::File::options()
            .write(true)
            .open(p)
            .unwrap()
            .set_len(bytes)
            .unwrap();
    };
    assert_eq!(errors(|p| cut(p, l.file_bytes - 1)), ["truncated"]);
    assert_eq!(errors(|p| cut(p, 100)), ["header-checksum"]);
    assert_eq!(errors(|p| cut(p, l.file_bytes + 1)), ["trailing-bytes"]);
    assert_eq!(
        errors(|p| put(p, record_at(1, 1) + 16, &[7])),
        ["block-record"]
    );
    assert_eq!(
        errors(|p| put(p, l.header_at(2) + 20, &[7])),
        ["page-header"]
    );
    assert_eq!(
        errors(|p| put(p, l.data_at(2) + 20, &[0])),
        ["page-checksum"]
    );
    // Pages with valid checksums and impossible content.
    assert_eq!(
        errors(|p| put(p, l.header_at(3), &page(2, &spare(3, 4, 0, 3)))),
        ["misplaced"]
    );
    assert_eq!(
        errors(|p| put(p, l.header_at(3), &page(3, &spare(99, 4, 0, 3)))),
        ["lpn-range"]
    );
    assert_eq!(
        errors(|p| put(p, l.header_at(3), &page(3, &spare(3, 2, 0, 3)))),
        ["out-of-order", "duplicate-sequence"]
    );
    assert_eq!(
        errors(|p| put(p, l.header_at(3), &page(3, &spare(3, 8, 0, 3)))),
        ["duplicate-sequence"]
    );
    let lost = Spare {
        lost: true,
        ..spare(3, 4, 0, 3)
    };
    assert_eq!(
        errors(|p| put(p, l.header_at(3), &page(3, &lost))),
        ["lost-page"]
    );
    assert_eq!(
        errors(|p| put(p, l.header_at(3), &with_role(3, 77))),
        ["role"]
    );
    let other = Header {
        scheme: "fast".into(),
        ..spec().header().unwrap()
    };
    assert_eq!(errors(|p| put(p, 0, &other.encode())), ["headers-differ"]);
}

#[test]
fn claims_that_do_not_go_together_have_their_names() {
    let l = layout();
    let claim = |change: &dyn Fn(&mut Place)| {
        let mut spare = spare(3, 4, 0, 3);
        change(&mut spare.place);
        errors(|p| put(p, l.header_at(3), &page(3, &spare)))
    };
    assert_eq!(claim(&|_| {}), [""; 0]);
    assert_eq!(claim(&|p| p.kind = PlaceKind::Plain), ["unmanaged-page"]);
    assert_eq!(claim(&|p| p.block = 8), ["claim-range"]);
    assert_eq!(claim(&|p| p.generation = 0), ["claim-range"]);
    assert_eq!(claim(&|p| p.page = 2), ["claim-page"]);
    assert_eq!(claim(&|p| p.generation = 9), ["mixed-block"]);
    assert_eq!(claim(&|p| p.kind = PlaceKind::Backup), ["mixed-block"]);
    // Block 5, in use like block 1, or in an older generation.
    let second = |generation| {
        let mut spare = spare(4, 40, 1, 0);
        spare.place.generation = generation;
        findings(|p| put(p, l.header_at(20), &page(20, &spare)))
    };
    let put_data = |p: &Path| put(p, l.data_at(20), &content(20));
    let found = |generation| {
        let mut spare = spare(4, 40, 1, 0);
        spare.place.generation = generation;
        findings(|p| {
            put_data(p);
            put(p, l.header_at(20), &page(20, &spare));
        })
    };
    assert_eq!(second(2), [("page-checksum", Severity::Error)]);
    assert_eq!(found(2), [("same-generation", Severity::Error)]);
    assert_eq!(found(1), [("two-generations", Severity::Note)]);
}

/// The image as if it had never been closed.
fn leave_open(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let copies = bytes[..2 * HEADER_BYTES].chunks(HEADER_BYTES);
    let headers = copies.map(|copy| Header::decode(copy.try_into().unwrap()).unwrap());
    let newest = headers.max_by_key(|header| header.sequence).unwrap();
    let header = Header {
        clean: false,
        sequence: newest.sequence + 1,
        ..newest
    };
    let at = header.sequence % 2 * HEADER_BYTES as u64;
    put(path, at, &header.encode());
}

#[test]
fn a_torn_page_is_no_loss_where_a_cut_may_have_torn_it() {
    let l = layout();
    let torn = |page: u32, change: fn(&Path)| {
        findings(|p| {
            put(p, l.header_at(page), &[0xA5; PAGE_HEADER_BYTES]);
            change(p);
        })
    };
    let (kind, open) = ("page-header", ("not-clean", Severity::Note));
    // The sample ends at page 10.
    assert_eq!(torn(10, |_| {}), [(kind, Severity::Error)]);
    assert_eq!(torn(10, leave_open), [open, (kind, Severity::Note)]);
    assert_eq!(torn(9, leave_open), [open, (kind, Severity::Error)]);
    // The program that failed when no spare block was left.
    let last_spare = |path: &Path| {
        for block in [7, 8] {
            let record = BlockRecord {
                version: 1,
                op: 0,
                erases: 0,
                state: BlockState::ProgramFailed,
            };
            put(path, record_at(block, 1), &record.encode(block));
        }
    };
    let ended = ("spares-ended", Severity::Note);
    assert_eq!(torn(10, last_spare), [(kind, Severity::Note), ended]);
    assert_eq!(torn(9, last_spare), [(kind, Severity::Error), ended]);
}

#[test]
fn what_a_header_says_of_its_scheme_is_checked() {
    let with = |change: &dyn Fn(&mut Header)| {
        findings(|p| {
            let mut header = spec().header().unwrap();
            change(&mut header);
            put(p, 0, &header.encode());
            put(p, HEADER_BYTES as u64, &header.encode());
        })
    };
    assert_eq!(with(&|_| {}), []);
    assert_eq!(
        with(&|h| h.options = "gc_lo=2".into()),
        [("options", Severity::Error)]
    );
    assert_eq!(
        with(&|h| h.scheme = "mine".into()),
        [("scheme", Severity::Note)]
    );
}

#[test]
fn worn_and_bad_blocks_are_noted() {
    let bad = |block: u32, erases: u32| {
        let record = BlockRecord {
            version: 1,
            op: 0,
            erases,
            state: BlockState::EraseFailed,
        };
        move |p: &Path| put(p, record_at(block, 1), &record.encode(block))
    };
    assert_eq!(
        findings(|p| {
            bad(7, 1001)(p);
            bad(8, 1)(p);
        }),
        [
            ("worn-out", Severity::Note),
            ("spares-ended", Severity::Note)
        ]
    );
    assert_eq!(findings(bad(7, 1)), []);
}

/// A page of an unknown role with a valid checksum.
fn with_role(at: u32, code: u8) -> [u8; PAGE_HEADER_BYTES] {
    let mut bytes = page(at, &spare(3, 4, 0, 3));
    bytes[24] = code;
    let at = PAGE_HEADER_BYTES - 4;
    let crc = crc32c::crc32c(&bytes[..at]);
    bytes[at..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn pages_from_before_an_erase_count_as_erased_and_are_freed() {
    let record = BlockRecord {
        version: 1,
        erases: 5,
        ..BlockRecord::default()
    };
    let found = findings(|p| put(p, record_at(0, 1), &record.encode(0)));
    assert_eq!(found, [("stale-pages", Severity::Note)]);
    let folder = tempfile::tempdir().unwrap();
    let path = sample(folder.path());
    put(&path, record_at(0, 1), &record.encode(0));
    let mut nand = ImageNand::open(&path, Durability::Process).unwrap();
    assert_eq!((nand.found().stale, nand.erase_count(Pbn(0))), (4, 5));
    assert!(!nand.is_programmed(Ppn(0)));
    nand.program(Ppn(0), &spare(0, 50, 0, 0), &content(0))
        .unwrap();
    assert_eq!(nand.read_spare(Ppn(0)).unwrap().sequence, 50);
}

/// A page from after the last erase, in a block whose other pages are from before: nobody leaves that behind, and what is
/// good stays.
#[test]
fn a_good_page_among_stale_ones_is_not_freed() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample(folder.path());
    let forged = PageHeader::new(5, 1, 0, &spare(1, 2, 0, 1), &content(1));
    put(&path, layout().header_at(1), &forged.encode());
    let mut nand = ImageNand::open(&path, Durability::Process).unwrap();
    assert_eq!((nand.found().stale, nand.erase_count(Pbn(0))), (3, 5));
    let next = spare(2, 50, 0, 2);
    nand.program(Ppn(2), &next, &content(2)).unwrap();
    let mut data = vec![0; PAGE_BYTES];
    nand.read(Ppn(1), &mut data).unwrap();
    assert_eq!(data, content(1));
}

#[test]
fn one_damaged_header_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample(folder.path());
    put(&path, 30, &[0xFF; 50]);
    let nand = ImageNand::open(&path, Durability::Process).unwrap();
    assert!(nand.found().damaged_header && nand.header().scheme == "page");
}

#[test]
fn a_second_opener_is_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample(folder.path());
    let first = ImageNand::open(&path, Durability::Process).unwrap();
    let locked = |e: ImageError| matches!(e, ImageError::Locked { .. });
    assert!(locked(
        ImageNand::open(&path, Durability::Process).unwrap_err()
    ));
    assert!(locked(check(&path).unwrap_err()) && locked(info(&path).unwrap_err()));
    drop(first);
    assert!(ImageNand::open(&path, Durability::Process).is_ok());
}

#[test]
fn erased_blocks_take_no_space_and_pages_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big.img");
    let spec = ImageSpec {
        blocks_per_die: 1000,
        pages_per_block: 64,
        page_bytes: 4096,
        ..spec()
    };
    let spec = ImageSpec {
        logical_pages: 64 * 900,
        ..spec
    };
    let made = create(&path, &spec).unwrap();
    assert!(
        made.file_bytes > 260_000_000 && made.allocated_bytes < 1_000_000,
        "{made}"
    );
    let mut nand = ImageNand::open(&path, Durability::Process).unwrap();
    let data = vec![7; 4096];
    for page in 0..64 {
        nand.program(Ppn(page), &spare(page, 1 + u64::from(page), 0, page), &data)
            .unwrap();
    }
    nand.flush().unwrap();
    drop(nand);
    let filled = info(&path).unwrap();
    assert!(!filled.clean && filled.pages_programmed == 64 && filled.last_sequence == 64);
    assert!(filled.allocated_bytes > made.allocated_bytes + 64 * 4096);
    let mut nand = ImageNand::open(&path, Durability::Machine).unwrap();
    nand.erase(Pbn(0)).unwrap();
    nand.close().unwrap();
    let erased = info(&path).unwrap();
    assert!(erased.clean && erased.pages_programmed == 0 && erased.erases_max == 1);
    assert!(erased.allocated_bytes < filled.allocated_bytes);
}

#[test]
fn create_refuses_before_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.img");
    let refused = |change: &dyn Fn(&mut ImageSpec)| {
        let mut spec = spec();
        change(&mut spec);
        let error = create(&path, &spec).unwrap_err().to_string();
        assert!(!path.exists(), "{error}");
        error
    };
    assert!(refused(&|s| s.scheme = "pages".into()).starts_with("no scheme \"pages\""));
    assert!(refused(&|s| s.options = "gc_lo=2".into()).starts_with("no option gc_lo"));
    assert!(refused(&|s| s.options = "gc_low".into()).contains("key=value"));
    assert!(refused(&|s| s.page_bytes = 0).contains("page_bytes = 0"));
    assert!(refused(&|s| s.blocks_per_die = 5).contains("are needed"));
    assert!(refused(&|s| s.spares.spare_blocks = u32::MAX).contains("spare"));
    assert!(refused(&|s| s.part = "x".repeat(70_000)).contains("bytes of text"));
    create(&path, &spec()).unwrap();
    let again = create(&path, &spec()).unwrap_err();
    let exists = matches!(&again, floatgate_device::DeviceError::Image(e) if e.is_existing_file());
    assert!(exists, "{again}");
}

#[test]
fn info_and_dump_print_and_serialise() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample(folder.path());
    let info = info(&path).unwrap();
    assert_eq!(
        (info.pages_programmed, info.erases_max, info.last_sequence),
        (11, 1, 11)
    );
    assert!(
        info.to_string()
            .contains("1 dies x 10 blocks x 4 pages x 48 bytes, ascending order")
    );
    let json = serde_json::to_value(&info).unwrap();
    assert_eq!(json["scheme"], "page");
    let all = dump(&path, &DumpSelection::default()).unwrap();
    assert_eq!(all.rows.len(), 11);
    let one = DumpSelection {
        lpn: Some(9),
        data_bytes: 2,
        ..DumpSelection::default()
    };
    let one = dump(&path, &one).unwrap();
    assert_eq!(
        (one.rows.len(), one.rows[0].block, one.rows[0].page),
        (1, 2, 1)
    );
    assert_eq!(one.rows[0].data.as_deref(), Some("4d4f"));
    assert_eq!(
        serde_json::to_value(&one).unwrap()["rows"][0]["role"],
        "data"
    );
    let first = DumpSelection {
        erased: true,
        rows_max: 3,
        ..DumpSelection::default()
    };
    assert!(dump(&path, &first).unwrap().cut);
    assert!(all.to_string().lines().count() == 12);
    let report = check(&path).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap()["pages_good"], 11);
}

/// Opens, mounts and reads a damaged image; whatever can be read of the sample's pages is right.
fn devour(path: &Path) {
    let _ = info(path);
    let _ = dump(
        path,
        &DumpSelection {
            erased: true,
            data_bytes: 4,
            ..DumpSelection::default()
        },
    );
    let report = check(path).unwrap();
    let _ = report.to_string();
    let Ok(mut nand) = ImageNand::open(path, Durability::Process) else {
        assert!(!report.is_sound());
        return;
    };
    let options = nand.header().spares;
    let mut data = vec![0; nand.page_bytes()];
    for page in 0..nand.geometry().pages().min(100) {
        match nand.read(Ppn(page), &mut data) {
            Ok(_) => assert_eq!(
                data,
                content(page),
                "page {page} reads what was not written"
            ),
            Err(NandError::Unreadable { .. } | NandError::Erased { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let _ = nand.read_spare(Ppn(page));
    }
    if let Ok(spares) = Spares::mount(nand, options) {
        let mut flash = floatgate_device::NandFlash::new(spares).unwrap();
        use floatgate_core::Flash;
        for page in 0..flash.ledger.geometry().pages().min(100) {
            let _ = flash.read_oob(Ppn(page), floatgate_core::Cause::Map, ());
        }
        let _ = flash.program_map(Ppn(31), Oob::new(Lpn(0), Role::Map), |_| {}, ());
        let _ = flash.erase(Pbn(0), floatgate_core::Cause::Gc, ());
    }
}

/// Places worth damaging: headers, records, pages.
fn target(rng: &mut SplitMix64, l: &Layout) -> (u64, u64) {
    let page = rng.below(12) as u32;
    match rng.below(5) {
        0 => (rng.below(2) * HEADER_BYTES as u64, 140),
        1 => (record_at(rng.below(4) as u32, rng.below(2)), 64),
        2 | 3 => (l.header_at(page), PAGE_HEADER_BYTES as u64),
        _ => (l.data_at(page), PAGE_BYTES as u64),
    }
}

#[test]
fn thousands_of_mutations() {
    let folder = tempfile::tempdir().unwrap();
    let original = std::fs::read(sample(folder.path())).unwrap();
    let path = folder.path().join("mutant.img");
    let l = layout();
    let mut rng = SplitMix64::new(20);
    for round in 0..2000 {
        let mut bytes = original.clone();
        for _ in 0..1 + rng.below(3) {
            let (at, length) = target(&mut rng, &l);
            for _ in 0..1 + rng.below(4) {
                bytes[(at + rng.below(length)) as usize] = rng.next() as u8;
            }
            // Half of them with valid checksums again.
            if rng.below(2) == 0 {
                mend(&mut bytes, at, length);
            }
        }
        if rng.below(10) == 0 {
            bytes.truncate(rng.below(bytes.len() as u64) as usize);
        }
        std::fs::write(&path, &bytes).unwrap();
        let devoured = std::panic::catch_unwind(|| devour(&path));
        assert!(devoured.is_ok(), "mutation {round} of seed 20");
    }
}

/// Corrects the checksum of a header, record or page header.
fn mend(bytes: &mut [u8], at: u64, length: u64) {
    let at = at as usize;
    let end = match length {
        140 => at + HEADER_BYTES,
        64 => at + 64,
        length if length == PAGE_HEADER_BYTES as u64 => at + PAGE_HEADER_BYTES,
        _ => return,
    };
    let crc = crc32c::crc32c(&bytes[at..end - 4]);
    bytes[end - 4..end].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn geometry_of_a_header_is_checked() {
    // A header may claim any shape; only one that the file can hold is opened.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims.img");
    let geometry = Geometry::new(4, 10_000, 512, 4 * 512 * 9_000, ProgramOrder::Ascending).unwrap();
    let header = Header {
        geometry,
        ..spec().header().unwrap()
    };
    std::fs::write(&path, header.encode()).unwrap();
    let error = ImageNand::open(&path, Durability::Process).unwrap_err();
    assert!(matches!(error, ImageError::Truncated { .. }), "{error}");
    // Nor does one that is long enough, but would take hours and gigabytes to look through.
    let blocks = BLOCKS_MAX + 1;
    let geometry = Geometry::new(1, blocks, 4, 16, ProgramOrder::Ascending).unwrap();
    let header = Header {
        geometry,
        ..spec().header().unwrap()
    };
    let layout = Layout::of(&header);
    std::fs::write(&path, header.encode()).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(layout.file_bytes).unwrap();
    for error in [
        ImageNand::open(&path, Durability::Process).err(),
        info(&path).err(),
    ] {
        let error = error.expect("refused").to_string();
        assert!(error.contains("an image has at most"), "{error}");
    }
    let report = check(&path).unwrap();
    assert_eq!(
        (report.findings[0].kind, report.pages_erased),
        ("header", 0)
    );
}

#[test]
fn an_image_that_is_not_finished_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.img");
    // Refused by the scheme, when the file is there already.
    let spec = ImageSpec {
        blocks_per_die: 5,
        ..spec()
    };
    create(&path, &spec).unwrap_err();
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names(), 0);
    create(&path, &self::spec()).unwrap();
    assert_eq!(names(), 1);
}
