//! Devices saved and loaded, as users type it; and files that are no right states.

mod common;

use common::{Place, small_trace};
use floatgate_core::rng::SplitMix64;
use floatgate_sim::record::Record;

const DEVICE: &str = "--set device.dies=2 --set device.capacity_mib=8 --set device.spare_percent=40 --set host.beyond=wrap";

/// A folder with a trace and a device, aged and saved, and the record of the run that did so.
fn aged(scheme: &str, ageing: &str) -> (Place, Record) {
    let place = Place::new();
    small_trace(&place);
    let ran = place
        .run(&format!(
            "run --trace t.pages --scheme {scheme} {DEVICE} --set run.ageing={ageing} --save-state aged.state --json"
        ))
        .ok();
    let record = ran.record();
    (place, record)
}

fn without_ageing(record: Record) -> Record {
    Record {
        ageing: Vec::new(),
        ..record
    }
}

#[test]
fn a_run_from_a_saved_device_has_the_same_record() {
    for (scheme, ageing) in [("fast", "overwrite:0.7"), ("last++", "fill,replay")] {
        let (place, first) = aged(scheme, ageing);
        let again = place
            .run("run --trace t.pages --load-state aged.state --set host.beyond=wrap --json")
            .ok()
            .record();
        assert!(again.ageing.iter().all(|step| step.loaded));
        let steps = |record: &Record| -> Vec<(String, u64)> {
            let steps = record.ageing.iter();
            steps
                .map(|step| (step.recipe.clone(), step.page_writes))
                .collect()
        };
        assert_eq!(steps(&again), steps(&first));
        assert_eq!(without_ageing(again), without_ageing(first));
        let text = place
            .run("run --trace t.pages --load-state aged.state")
            .ok();
        assert!(text.out.contains("pages, loaded\n"), "{}", text.out);
    }
}

#[test]
fn files_beside_the_record_are_the_same_too() {
    let (place, _) = aged("fast", "fill,overwrite:0.5");
    let device = format!("--scheme fast {DEVICE} --set run.ageing=fill,overwrite:0.5");
    let files = ["requests", "series", "blocks"];
    for (name, begin) in [
        ("first", format!("{device} --save-state again.state")),
        (
            "again",
            "--load-state aged.state --set host.beyond=wrap".into(),
        ),
    ] {
        let files = files.map(|what| format!("--{what}-out {name}-{what}.csv"));
        let outs = files.join(" ");
        place
            .run(&format!("run --trace t.pages {begin} {outs} --slowest 3"))
            .ok();
    }
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    for what in files {
        let first = read(&format!("first-{what}.csv"));
        assert!(!first.is_empty() && first == read(&format!("again-{what}.csv")));
    }
    assert_eq!(read("again.state"), read("aged.state"));
}

#[test]
fn a_comparison_saves_a_folder_and_begins_with_it() {
    let (place, _) = aged("page", "fill");
    let schemes = "page,fast:sw_log=false";
    place
        .run(&format!(
            "compare --trace t.pages --scheme {schemes} {DEVICE} --set run.ageing=fill --save-state aged --no-report"
        ))
        .ok();
    let first = place
        .run(&format!(
            "compare --trace t.pages --scheme {schemes} {DEVICE} --set run.ageing=fill --no-report"
        ))
        .ok();
    let again = place
        .run("compare --trace t.pages --load-state aged --no-report")
        .ok();
    assert_eq!(again.out, first.out);
    let missing = place.run("compare --trace t.pages --scheme kast --load-state aged");
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("aged/kast.state"), "{}", missing.err);
}

#[test]
fn what_differs_from_the_saved_device_is_named_with_both_values() {
    let (place, _) = aged("fast", "fill");
    for (given, key, asked, saved) in [
        ("--set device.dies=1", "device.dies", "1", "2"),
        (
            "--set scheme.sw_log=false",
            "scheme.sw_log",
            "false",
            "true",
        ),
        (
            "--set device.capacity_mib=4",
            "device.logical_pages",
            "2048",
            "4096",
        ),
        ("--set run.start=empty", "run.start", "empty", "full"),
        (
            "--set run.ageing=settle",
            "run.ageing",
            "[settle]",
            "[fill]",
        ),
    ] {
        let load = "run --trace t.pages --load-state aged.state";
        place.run(&format!("{load} {given}")).refused(&format!(
            "error: {key} is {asked}, and the state aged.state was saved with {saved}\n  --> {given}\n  \
             help: leave it out: --load-state takes device, scheme, options and ageing from the file"
        ));
        let words = |text: &str| text.replace(['[', ']'], "");
        let same = given.replace(&words(asked), &words(saved));
        if key != "device.logical_pages" {
            place.run(&format!("{load} {same}")).ok();
        }
    }
    // Times are no part of a state.
    place
        .run("run --trace t.pages --load-state aged.state --set device.t_prog_us=900")
        .ok();
}

/// A file with another state, and a checksum that agrees.
fn forged(file: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let end = |from: usize| from + file[from..].iter().position(|&b| b == b'\n').unwrap() + 1;
    let (second, third) = (end(0), end(end(0)));
    let body = end(third);
    let line = std::str::from_utf8(&file[third..body]).unwrap();
    let length = line.split(' ').next().unwrap().parse::<usize>().unwrap();
    let (configuration, packed) = file[body..].split_at(length);
    let mut state = zstd::decode_all(packed).unwrap();
    change(&mut state);
    let packed = zstd::encode_all(&state[..], 1).unwrap();
    let sum = crc32c::crc32c(configuration);
    let sum = crc32c::crc32c_append(sum, &(state.len() as u64).to_le_bytes());
    let sum = crc32c::crc32c_append(sum, &packed);
    let head = format!(
        "{length} bytes of configuration, {} bytes of state in {}, crc32c {sum:08x}\n",
        state.len(),
        packed.len()
    );
    assert!(second < third);
    [&file[..third], head.as_bytes(), configuration, &packed].concat()
}

#[test]
fn a_damaged_file_is_refused() {
    let (place, _) = aged("fast", "fill");
    let load = "run --trace t.pages --load-state wrong.state";
    let right = std::fs::read(place.path("aged.state")).unwrap();
    place.file("wrong.state", forged(&right, |_| {}));
    place.run(load).ok();
    let mut rng = SplitMix64::new(3);
    for round in 0..24 {
        let mut wrong = right.clone();
        let at = rng.below(wrong.len() as u64) as usize;
        match round % 3 {
            0 => wrong.truncate(at),
            _ => wrong[at] ^= 1 << rng.below(8),
        }
        place.file("wrong.state", &wrong);
        let ran = place.run(load);
        assert_eq!((ran.code, &*ran.out), (2, ""), "byte {at}: {}", ran.err);
    }
    place.file("wrong.state", forged(&right, |state| state.truncate(4000)));
    let ran = place.run(load);
    let expected = "error: wrong.state holds no state of this device: it ends too early\n  help: age the device anew";
    assert!(ran.code == 2 && ran.err.contains(expected), "{}", ran.err);
}

/// The checksum of a forged file agrees; its tables do not, or they may as well be right.
#[test]
fn a_forged_file_is_refused_or_runs() {
    for (seed, scheme) in [(1, "fast"), (2, "dftl"), (3, "blog"), (4, "superblock")] {
        let (place, _) = aged(scheme, "fill");
        let right = std::fs::read(place.path("aged.state")).unwrap();
        let mut rng = SplitMix64::new(seed);
        for _ in 0..12 {
            let mut at = 0;
            let wrong = forged(&right, |state| {
                at = rng.below(state.len() as u64) as usize;
                state[at] ^= 1 << rng.below(8);
            });
            place.file("wrong.state", wrong);
            let ran = place.run("run --trace t.pages --load-state wrong.state");
            assert!(
                matches!(ran.code, 0 | 2),
                "{scheme}, byte {at}: {}",
                ran.err
            );
        }
    }
}

#[test]
fn the_version_and_the_target_are_checked_first() {
    let (place, _) = aged("page", "fill");
    let right = std::fs::read(place.path("aged.state")).unwrap();
    let at = right.windows(6).position(|w| w == b" 0.1.0").unwrap();
    let mut old = right.clone();
    old[at..at + 6].copy_from_slice(b" 0.0.9");
    place.file("old.state", &old);
    place.run("run --load-state old.state").refused(
        "error: the state old.state was saved by floatgate 0.0.9; this is floatgate 0.1.0\n  --> --load-state old.state\n  \
         help: states are read by the version that wrote them only: age the device anew, with --save-state",
    );
    place.run("run --load-state t.pages").refused(
        "error: t.pages is no saved device\n  --> --load-state t.pages\n  \
         help: `floatgate run --save-state FILE` writes one",
    );
    place.run("run --save-state nowhere/x.state").refused(
        "error: --save-state nowhere/x.state: cannot write: the folder nowhere does not exist\n  \
         help: make the folder first, or name another",
    );
    place
        .run("run --trace t.pages --save-state x --report ./x")
        .refused("error: --save-state x and --report ./x are one file\n  help: name two files");
    let read = "this file is read by the same command\n  help: name another file to write";
    place
        .run("run --trace t.pages --load-state aged.state --report aged.state")
        .refused(&format!("error: --report aged.state: {read}"));
    place
        .run("run --trace t.pages --save-state t.pages")
        .refused(&format!("error: --save-state t.pages: {read}"));
    std::fs::create_dir(place.path("aged")).unwrap();
    place.file("aged/page.state", &right);
    place
        .run("compare --trace t.pages --load-state aged --report aged/page.state")
        .refused(&format!("error: --report aged/page.state: {read}"));
    let ran = place
        .run("compare --trace t.pages --scheme page --save-state aged --report aged/page.state");
    let expected = "error: --report aged/page.state and --save-state aged/page.state are one file\n  help: name two files";
    assert!(ran.code == 2 && ran.err.contains(expected), "{}", ran.err);
    assert_eq!(std::fs::read(place.path("aged/page.state")).unwrap(), right);
}
