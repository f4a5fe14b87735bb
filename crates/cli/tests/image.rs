//! `floatgate image`: made, described, checked, dumped; damaged and refused.

mod common;

use floatgate_core::Lpn;
use std::os::unix::fs::FileExt;

use common::Place;
use floatgate_core::ftl::{Ftl, RecoveryMode};
use floatgate_core::rng::SplitMix64;
use floatgate_device::block::options_from_text;
use floatgate_device::faulty::FaultPlan;
use floatgate_device::image::Durability;
use floatgate_device::{BlockDevice, Faulty, ImageNand, Spares};

const SMALL: &str = "--set device.dies=1 --set device.pages_per_block=8 --set device.logical_pages=96 --set device.blocks_per_die=36";

#[test]
fn an_image_is_made_and_described() {
    let place = Place::new();
    let made = place
        .run(&format!("image create a.img --scheme fast {SMALL} --set scheme.log_blocks=6 --spare-blocks 4 --pair-guard flushed --set device.wear_leveling=static --set device.program_order=ascending"))
        .ok();
    assert_eq!(place.files(), ["a.img"]);
    let info = place.run("image info a.img").ok();
    assert_eq!(info.out, made.out);
    let stable: Vec<&str> = info
        .out
        .lines()
        .filter(|line| !line.starts_with("format ") && !line.starts_with("file "))
        .collect();
    assert_eq!(
        stable,
        [
            "image             a.img",
            "state             closed in order",
            "scheme            fast log_blocks=6",
            "part              slc_large_block",
            "chip              1 dies x 42 blocks x 8 pages x 2048 bytes, ascending order",
            "logical           96 pages, 196608 bytes",
            "below the scheme  4 spare blocks a die, pair guard flushed, wear levelling static (gap 64)",
            "pages             0 programmed, 0 unreadable",
            "bad blocks        0",
            "erases a block    0 to 0, mean 0.0",
            "programs          0",
        ]
    );
    let json = place.run("image info a.img --json").ok().json();
    assert_eq!(
        (&json["scheme"], &json["options"][0]),
        (&"fast".into(), &"log_blocks=6".into())
    );
    let check = place.run("image check a.img").ok();
    assert_eq!(
        check.out,
        "a.img: 0 errors, 0 notes; 0 pages good, 336 erased\n"
    );
    let dump = place
        .run("image dump a.img --block 1 --erased --rows 2 --json")
        .ok()
        .json();
    assert_eq!(
        (dump["rows"].as_array().map(Vec::len), &dump["cut"]),
        (Some(2), &true.into())
    );
}

#[test]
fn an_image_without_settings_has_64_mib() {
    let place = Place::new();
    place.run("image create a.img").ok();
    let info = place.run("image info a.img --json").ok().json();
    let bytes = info["logical_pages"].as_u64().unwrap() * info["page_bytes"].as_u64().unwrap();
    assert!((64 << 20..70 << 20).contains(&bytes), "{bytes}");
    assert!(
        info["allocated_bytes"].as_u64().unwrap() < 2 << 20,
        "{info}"
    );
}

#[test]
fn bad_input_is_refused_and_nothing_is_left() {
    let place = Place::new();
    let refused = |arguments: &str, message: &str| {
        let ran = place.run(arguments);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{arguments}: {}",
            ran.err
        );
        assert!(ran.err.contains(message), "{arguments}: {}", ran.err);
        assert_eq!(place.files(), ["no.img", "there.img"]);
    };
    place.file("no.img", "this is no image");
    place.file("there.img", "");
    refused("image create there.img", "error: create there.img: ");
    refused(
        "image create there.img",
        "\n  help: name another file, or remove this one",
    );
    refused("image create a.img --scheme fsat", "did you mean fast?");
    refused(
        "image create a.img --scheme fast --set scheme.log_bloks=3",
        "did you mean log_blocks?",
    );
    refused(
        "image create a.img --set device.wear_leveling=some",
        "takes one of \"off\", \"dynamic\", \"static\"",
    );
    refused(
        "image create a.img --pair-guard some",
        "possible values: off, flushed, always",
    );
    refused("image create a.img --spare-blocks 4000000000", "error: ");
    refused(
        "image create a.img --set device.page_bytes=4194304 --set device.capacity_gib=1",
        "page_bytes = 4194304: from 1 to 1048576",
    );
    refused(
        &format!("image create a.img --scheme fast {SMALL} --set scheme.log_blocks=30"),
        "\n  --> --set ",
    );
    refused(
        &format!("image create a.img {SMALL} --set device.program_order=any --pair-guard always"),
        "pair_guard",
    );
    refused(
        "image create no/such/a.img",
        "error: create no/such/a.img: ",
    );
    refused("image info missing.img", "error: open missing.img: ");
    for command in ["info", "dump"] {
        refused(
            &format!("image {command} no.img"),
            "error: not a Floatgate image",
        );
    }
}

#[test]
fn damage_is_named_and_tells_by_the_exit_code() {
    let place = Place::new();
    place.run(&format!("image create a.img {SMALL}")).ok();
    (uses().find("page").unwrap().life.0)(Used {
        path: place.path("a.img"),
        failures: 0,
        requests: 60,
    });
    let sound = place.run("image check a.img").ok();
    assert!(
        sound.out.starts_with("a.img: 0 errors, 0 notes; "),
        "{}",
        sound.out
    );
    let dump = place.run("image dump a.img --rows 1 --data 4").ok();
    assert!(
        dump.out.lines().nth(1).unwrap().contains(" good "),
        "{}",
        dump.out
    );
    let image = std::fs::read(place.path("a.img")).unwrap();
    let page = image.windows(4).position(|bytes| bytes == b"FGPG").unwrap() as u64;
    let file = std::fs::File::options()
        .write(true)
        .open(place.path("a.img"))
        .unwrap();
    file.write_all_at(&[7], page + 20).unwrap();
    // The newer of the two headers, by its sequence number.
    let sequence = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
    let newer = usize::from(sequence(4096 + 16) > sequence(16));
    file.write_all_at(&[0xFF; 8], 4096 * newer as u64 + 24)
        .unwrap();
    let ran = place.run("image check a.img");
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    // Without its newest header the image is as it was before it was closed.
    assert_eq!(
        lines[..2],
        [
            &*format!(
                "error header-checksum     header {newer} is damaged, the other is used: its checksum is wrong"
            ),
            "note  not-clean           not closed in order: the next start has to recover"
        ]
    );
    assert!(
        lines[2].starts_with("error page-header         block "),
        "{}",
        ran.out
    );
    assert!(
        lines[3].starts_with("a.img: 2 errors, 1 note; "),
        "{}",
        ran.out
    );
    let json = place.run("image check a.img --json");
    assert_eq!(
        (json.code, &json.json()["findings"][2]["kind"]),
        (1, &"page-header".into())
    );
    place.file("a.img", &image[..5000]);
    let ran = place.run("image check a.img");
    assert!(
        ran.code == 1 && ran.out.contains("error truncated "),
        "{}",
        ran.out
    );
    let ran = place.run("image info a.img");
    assert!(
        ran.code == 2 && ran.err.contains("error: the file ends after 5000 bytes"),
        "{}",
        ran.err
    );
}

#[test]
fn a_scrub_names_what_is_lost_and_mends_what_can_be_mended() {
    let place = Place::new();
    place.run(&format!("image create a.img {SMALL}")).ok();
    (uses().find("page").unwrap().life.0)(Used {
        path: place.path("a.img"),
        failures: 0,
        requests: 60,
    });
    let sound = place.run("image scrub a.img").ok();
    assert!(
        sound.out.contains("(0 with retries, 0 lost), 0 blocks"),
        "{}",
        sound.out
    );
    let dump = place.run("image dump a.img --json").ok().json();
    let lpns: Vec<u64> = dump["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["lpn"].as_u64().unwrap())
        .collect();
    // A logical page that was written once.
    let is_only = |lpn: &u64| lpns.iter().filter(|other| *other == lpn).count() == 1;
    let row = lpns.iter().position(is_only).unwrap();
    let lpn = lpns[row];
    let mut image = std::fs::read(place.path("a.img")).unwrap();
    // The header of that page, and a record of the first block.
    let mut headers = (0..image.len()).filter(|&at| image[at..].starts_with(b"FGPG"));
    let page = headers.nth(row).unwrap();
    image[page + 20] ^= 1;
    image[8192 + 64..8192 + 128].fill(0xA5);
    place.file("a.img", &image);
    let ran = place.run("image scrub a.img --json");
    let found = ran.json();
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert_eq!(
        (
            &found["lost_pages"],
            &found["rewritten_blocks"],
            &found["records_mended"]
        ),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!(found["lost_logical_pages"], serde_json::json!([lpn]));
    let again = place.run("image scrub a.img");
    assert_eq!(again.code, 1);
    assert!(
        again
            .out
            .contains("1 logical pages cannot be read until they are written again"),
        "{}",
        again.out
    );
    let checked = place.run("image check a.img");
    assert!(!checked.out.contains("block-record"), "{}", checked.out);
    place
        .run("image scrub no.img")
        .refused("error: open no.img: No such file or directory (os error 2)");
}

/// Uses an image that the command made, on a chip that fails.
struct Used {
    path: std::path::PathBuf,
    /// Chance of a failed program and erase, in a million.
    failures: u32,
    requests: u32,
}

/// What became of it.
struct Life {
    retired: u64,
    read_only: bool,
}

floatgate_core::life! {
    /// The use, for every scheme.
    struct Uses = fn Used::play_on(Used) -> Life;
}

fn uses() -> floatgate_core::Catalog<Uses> {
    floatgate_schemes::catalog()
}

impl Used {
    fn play_on<S: Ftl<Page = Lpn>>(self) -> Life {
        let nand = ImageNand::open(&self.path, Durability::Process).unwrap();
        let header = nand.header().clone();
        let options = options_from_text::<S>(&header.options).unwrap();
        let plan = FaultPlan {
            seed: 5,
            program_failures_ppm: self.failures,
            erase_failures_ppm: 4 * self.failures,
            soft_reads_ppm: 4 * self.failures,
            ..FaultPlan::default()
        };
        let spares = Spares::mount(Faulty::new(nand, plan).unwrap(), header.spares).unwrap();
        let mut device =
            BlockDevice::<S, _>::open(spares, &options, RecoveryMode::Fastest).unwrap();
        let pages = device.sectors() * 512 / 2048;
        let mut shadow = vec![0_u8; pages as usize];
        let mut rng = SplitMix64::new(3);
        for request in 0..self.requests {
            let page = rng.below(pages);
            match device.write(page * 4, &[request as u8; 2048]) {
                Ok(()) => shadow[page as usize] = request as u8,
                Err(error) => {
                    assert!(error.is_read_only(), "{}: {error}", S::KEY);
                    break;
                }
            }
        }
        let read_only = device.read_only().is_some();
        let mut bytes = [0; 2048];
        for (page, &expected) in (0..).zip(&shadow) {
            device.read(page * 4, &mut bytes).unwrap();
            assert_eq!(bytes, [expected; 2048], "{} page {page}", S::KEY);
        }
        let spares = device.shut_down().unwrap();
        let retired = spares.stats().retired_program + spares.stats().retired_erase;
        spares.into_nand().into_inner().close().unwrap();
        Life { retired, read_only }
    }
}

#[test]
fn every_scheme_on_an_image_that_fails_until_it_can_only_be_read() {
    let mut ended = 0;
    for scheme in &uses() {
        let place = Place::new();
        let log_blocks = scheme
            .info
            .options
            .iter()
            .any(|option| option.key == "log_blocks");
        let set = if log_blocks {
            "--set scheme.log_blocks=4"
        } else {
            ""
        };
        place
            .run(&format!(
                "image create a.img --scheme {} {SMALL} {set} --spare-blocks 5",
                scheme.info.key
            ))
            .ok();
        let used = Used {
            path: place.path("a.img"),
            failures: 2000,
            requests: 1500,
        };
        let life = scheme.life.0(used);
        let checked = place.run("image check a.img");
        assert_eq!(checked.code, 0, "{}: {}", scheme.info.key, checked.out);
        let info = place.run("image info a.img --json").ok().json();
        assert_eq!(info["bad_blocks"], life.retired, "{}", scheme.info.key);
        assert_eq!(info["clean"], true);
        if life.read_only {
            ended += 1;
            assert!(
                checked.out.contains("note  spares-ended"),
                "{}",
                checked.out
            );
        }
    }
    assert!(ended > 0, "no device came to its end");
}

#[test]
fn a_dump_says_what_it_has_nothing_of() {
    let place = Place::new();
    place.run(&format!("image create a.img {SMALL}")).ok();
    place
        .run("image dump a.img --lpn 96")
        .refused("error: --lpn 96: the image has 96 logical pages\n  help: --lpn takes 0 to 95");
    place.run("image dump a.img --block 4000 --json").refused(
        "error: --block 4000: the image has 38 physical blocks\n  help: --block takes 0 to 37",
    );
    let says = |arguments: &str, text: &str| {
        let ran = place.run(&format!("image dump a.img {arguments}")).ok();
        assert_eq!(ran.out, format!("{text}\n"));
    };
    says("", "every page is erased; --erased lists them");
    says(
        "--block 3",
        "every page of block 3 is erased; --erased lists them",
    );
    says(
        "--lpn 95",
        "no page here holds logical page 95: it was never written, or trimmed since",
    );
    let all = place.run("image dump a.img --block 3 --erased").ok();
    assert_eq!(all.out.lines().count(), 9);
}

#[test]
fn an_image_too_large_is_refused_at_once() {
    let place = Place::new();
    let refused = |gib: u64, message: &str, help: &str| {
        let start = std::time::Instant::now();
        place
            .run(&format!(
                "image create a.img --set device.capacity_gib={gib}"
            ))
            .refused(&format!(
                "error: {message}\n  --> --set device.capacity_gib={gib}\n  help: {help}"
            ));
        assert!(start.elapsed().as_secs() < 5, "{gib} GiB");
    };
    refused(
        4096,
        "an image of 33554432 blocks of 64 pages of 2048 bytes is needed, spare ones not counted; less than 4194304 are possible",
        "more pages a block (device.pages_per_block), larger pages (device.page_bytes), or less capacity (device.capacity_gib)",
    );
    refused(
        1 << 20,
        "an image of 549755813888 pages of 2048 bytes is needed; at most 4294967294 are possible",
        "larger pages (device.page_bytes), or less capacity (device.capacity_gib)",
    );
    assert!(place.files().is_empty());
}
