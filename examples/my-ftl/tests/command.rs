//! What one line of `main` gives a scheme: every command of Floatgate knows it.

use std::path::Path;
use std::process::{Command, Output};

use floatgate_core::{Catalog, Striped};
use floatgate_testkit::broken::{Broken, FORGETS_A_PAGE};
use floatgate_testkit::play;
use floatgate_testkit::torture::Effort;
use floatgate_testkit::{Tested, checks};
use my_ftl::Ring;

const SMALL: &str = "--set device.dies=1 --set device.pages_per_block=8 --set device.logical_pages=96 \
                     --set device.blocks_per_die=36";

fn run_with(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_my-ftl"));
    let done = command.current_dir(folder).args(arguments).output();
    done.expect("the command starts")
}

/// What a command prints.
fn run(folder: &Path, arguments: &str) -> String {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let done = run_with(folder, &words);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments}: {errors}");
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn it_is_listed_with_its_options() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), "schemes").contains("ring"));
    let ring = run(folder.path(), "schemes ring");
    for part in ["Ring", "a log that runs round", "extra_erased_blocks"] {
        assert!(ring.contains(part), "{part} in {ring}");
    }
}

#[test]
fn it_is_sized_run_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let trace: String = (0..400)
        .map(|i| {
            format!(
                "{},host,0,Write,{},4096,0\n",
                i * 10_000,
                i * 7919 % 90 * 4096
            )
        })
        .collect();
    std::fs::write(folder.path().join("t.csv"), trace).unwrap();
    let ring = run(folder.path(), "run --scheme ring --trace t.csv --json");
    assert!(ring.contains("\"ring\""), "{ring}");
    let varied = "run --scheme ring --trace t.csv --set scheme.extra_erased_blocks=3 --json";
    assert!(run(folder.path(), varied).contains("extra_erased_blocks"));
    let compared = run(folder.path(), "compare --scheme ring,page --trace t.csv");
    assert!(compared.contains("ring") && compared.contains("page"));
}

#[test]
fn it_is_made_into_an_image_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let made =
        format!("image create a.img --scheme ring {SMALL} --set scheme.extra_erased_blocks=1");
    run(folder.path(), &made);
    let info = run(folder.path(), "image info a.img");
    assert!(info.contains("ring extra_erased_blocks=1"), "{info}");
    let check = run(folder.path(), "image check a.img");
    assert!(check.contains("0 errors, 0 notes"), "{check}");
}

#[test]
fn it_is_tortured_and_a_line_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), "torture --scheme ring --minutes 0.02");
    assert!(done.contains("nothing lost"), "{done}");
    // Every failure of the kit is one line; these are what a scheme with a bug has printed.
    let broken =
        <Tested as floatgate_core::catalog::Life>::of::<Broken<Striped<Ring>, FORGETS_A_PAGE>>();
    let lost = broken.random_cuts(1, 1000, &Effort::default(), &mut || false);
    let cut = lost.expect_err("a bug").line.to_string();
    let plain = "ring dies=2 blocks=20 pages=4 logical_pages=64 extra_erased_blocks=3";
    let lines = [
        cut,
        format!("{plain} suite"),
        format!("{plain} requests=20 cut=none"),
        format!("{plain} requests=20 rot=unreadable:3"),
        "ring script=0102030405060708".to_string(),
    ];
    for line in lines {
        let done = run_with(folder.path(), &["torture", "--replay", &line]);
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(
            done.status.success() && text.contains("holds"),
            "{line}: {text}"
        );
    }
    // A line that is none is a mistake of the user's.
    let done = run_with(folder.path(), &["torture", "--replay", plain]);
    assert_eq!(done.status.code(), Some(2));
}

/// The fuzzer's entry takes any catalog.
#[test]
fn it_is_fuzzed() {
    let ring = checks::one::<Striped<Ring>>();
    let with_others: Catalog<Tested> =
        floatgate_schemes::catalog::<Tested>().with::<Striped<Ring>>();
    let its_number = with_others.len() as u8 - 1;
    let mut bytes = [5, 1, 2, 3, 4, 0, 0, 3, 9, 0, 1, 2, 6];
    assert!(play(&bytes, &ring).expect("no finding").tried > 0);
    bytes[0] = its_number;
    assert!(play(&bytes, &with_others).expect("no finding").tried > 0);
}
