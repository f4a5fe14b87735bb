use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use floatgate_device::image::ImageSpec;
use floatgate_device::{Drive, drive};
use floatgate_schemes::page::Page;

use super::*;
use crate::log::LogTap;
use crate::{Shared, Tap};

const BYTES: usize = 48 * 2048;

fn device() -> Box<dyn Drive> {
    let spec = ImageSpec::small(48);
    drive::in_memory::<Page>(&spec).expect("a device")
}

/// What is done to a device.
enum Step {
    Write(usize, u8, usize),
    Fua(usize, u8, usize),
    Trim(usize, usize),
    Flush,
    Mark(&'static str),
}
use Step::{Flush, Fua, Mark, Trim, Write};

/// Two intervals with a bit of everything; the second trims what the first wrote, and writes there again.
const STEPS: [Step; 14] = [
    Write(0, 1, 1024),
    Write(512, 2, 4096),
    Mark("a"),
    Flush,
    Mark("b"),
    Write(8192, 3, 2048),
    Write(14336, 6, 2048),
    Fua(1024, 4, 512),
    Mark("c"),
    Trim(0, 4096),
    Write(2048, 5, 512),
    Write(0, 0, 512),
    Write(8192, 3, 2048),
    Mark("d"),
];

fn history(steps: &[Step], folder: &Path) -> History {
    let path = folder.join("log");
    let mut device = device();
    device.write(100, &[9; 512]).expect("written");
    let tap: Box<dyn Tap> = Box::new(LogTap::begin(&path, &mut *device).expect("a log"));
    let shared = Shared::new(device, vec![tap]);
    for step in steps {
        match *step {
            Write(at, fill, bytes) => shared.write(at as u64, &vec![fill; bytes], false),
            Fua(at, fill, bytes) => shared.write(at as u64, &vec![fill; bytes], true),
            Trim(at, bytes) => shared.trim(at as u64, bytes as u64),
            Flush => shared.flush(),
            Mark(text) => shared.mark(text),
        }
        .expect("done");
    }
    shared.close().expect("closed");
    History::open(&path).expect("a log")
}

/// Everything a cut can leave, without any of the cleverness: for each cut, each subset of what may be lost.
fn all_states(steps: &[Step]) -> BTreeSet<(Vec<u8>, usize)> {
    let mut held = vec![0; BYTES];
    held[51200..51712].fill(9);
    let mut states = BTreeSet::new();
    let (mut changes, mut marks): (Vec<&Step>, usize) = (Vec::new(), 0);
    for step in steps {
        match step {
            Flush => {
                changes.drain(..).for_each(|change| play(change, &mut held));
                continue;
            }
            Mark(_) => marks += 1,
            change => changes.push(change),
        }
        for lost in 0..1u32 << changes.len() {
            let mut state = held.clone();
            let kept = changes.iter().enumerate();
            let kept = kept.filter(|(n, change)| lost >> n & 1 == 0 || matches!(change, Fua(..)));
            kept.for_each(|(_, change)| play(change, &mut state));
            states.insert((state, marks));
        }
    }
    states
}

fn play(step: &Step, held: &mut [u8]) {
    match *step {
        Write(at, fill, bytes) | Fua(at, fill, bytes) => held[at..at + bytes].fill(fill),
        Trim(at, bytes) => held[at..at + bytes].fill(0),
        Flush | Mark(_) => {}
    }
}

fn wanted(states: usize) -> Wanted {
    Wanted {
        states,
        seed: 1,
        torn: false,
        prefixes_only: false,
        first: 0,
        last: usize::MAX,
        marks: 0,
    }
}

fn built(builder: &mut Builder<'_>, history: &History, state: &State, folder: &Path) -> Vec<u8> {
    let path = folder.join("state");
    let file = builder.begin(state.interval, &path).expect("a file");
    build::finish(history, state, &file).expect("a state");
    std::fs::read(path).expect("the file")
}

#[test]
fn a_short_history_is_explored_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = history(&STEPS, folder.path());
    assert_eq!(history.marks, ["a", "b", "c", "d"]);
    let sizes: Vec<usize> = history.intervals.iter().map(|i| i.changes.len()).collect();
    assert_eq!(sizes, [2, 7]);
    let plan = Plan::new(&history, &wanted(10_000));
    assert!(plan.is_exhaustive);
    let mut builder = Builder::new(&history, folder.path()).expect("a builder");
    let mut found = BTreeMap::new();
    for state in &plan.states {
        let words = state.to_string();
        let again = words.parse::<State>().and_then(|s| s.checked(&history));
        assert_eq!(again.as_ref(), Ok(state), "{words}");
        let bytes = built(&mut builder, &history, state, folder.path());
        let marks = state.marks(&history.intervals[state.interval]);
        let twice = found.insert((bytes, marks), words.clone());
        assert_eq!(twice, None, "{words} is looked at once");
    }
    // A cut that falls before a mark is told as one behind it: no check holds that and fails the other.
    for (bytes, marks) in all_states(&STEPS) {
        let is_there = (marks..=4).any(|marks| found.contains_key(&(bytes.clone(), marks)));
        assert!(is_there, "a state with {marks} marks is missing");
    }
    let legal = all_states(&STEPS);
    for (state, words) in &found {
        let (bytes, marks) = state;
        assert!(
            legal.contains(&(bytes.clone(), *marks)),
            "{words} cannot be"
        );
    }
}

#[test]
fn the_budget_and_the_wishes_hold() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = history(&STEPS, folder.path());
    let few = Plan::new(&history, &wanted(9));
    assert_eq!((few.states.len(), few.is_exhaustive), (9, false));
    let same = Plan::new(&history, &wanted(9));
    assert_eq!(few.states, same.states, "one seed, one plan");
    let prefixes = Plan::new(
        &history,
        &Wanted {
            prefixes_only: true,
            ..wanted(100)
        },
    );
    assert!(prefixes.states.iter().all(|state| state.dropped.is_empty()));
    let late = Plan::new(
        &history,
        &Wanted {
            marks: 3,
            ..wanted(1000)
        },
    );
    assert!(!late.states.is_empty());
    for state in &late.states {
        assert!(state.marks(&history.intervals[state.interval]) >= 3);
    }
    let torn = Plan::new(
        &history,
        &Wanted {
            torn: true,
            ..wanted(10_000)
        },
    );
    let is_half = |state: &&State| state.torn == Some((2, 4)) && state.interval == 0;
    let state = torn.states.iter().find(is_half).expect("a torn write");
    let mut builder = Builder::new(&history, folder.path()).expect("a builder");
    let bytes = built(&mut builder, &history, state, folder.path());
    assert_eq!((bytes[512 + 2047], bytes[512 + 2048]), (2, 0));
}

#[test]
fn words_that_are_no_state_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = history(&STEPS, folder.path());
    for (words, told) in [
        ("", "the interval is no number"),
        ("7", "2 intervals"),
        ("0:cut=3", "2 changes"),
        ("1:drop=3", "FUA"),
        ("0:cut=1:drop=2", "not one of 1 to 1"),
        ("0:drop=0", "not one of"),
        ("0:drop=1-4000000000", "too long"),
        ("0:torn=1@2", "torn in two"),
        ("0:torn=1", "no number"),
        ("0:drop=1:torn=1@1", "not one of those kept"),
        ("0:keep=1", "none of cut="),
    ] {
        let state = words.parse::<State>().and_then(|s| s.checked(&history));
        let why = state.expect_err(words);
        assert!(why.contains(told), "{words}: {why}");
    }
}
