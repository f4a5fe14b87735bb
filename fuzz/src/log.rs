//! The target `log`: a write log, read, its states thought of and some of them built.
//!
//! First byte: bit 0: the checksums are made right, so that what lies behind them is reached; bit 1: writes may be torn;
//! the rest of it is the seed of what is drawn. The other bytes are the file.

use std::collections::HashSet;

use floatgate_serve::crash::{Builder, History, Plan, State, Wanted, build};

const HEADER_BYTES: usize = 32;
const HEAD_BYTES: usize = 28;
/// Largest device whose states are built.
const BUILD_MAX: u64 = 1 << 24;

/// Reads a log; what a plan says must hold of every state in it.
pub fn log(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let mut file = bytes.to_vec();
    if choice & 1 == 1 {
        seal(&mut file);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("log");
    std::fs::write(&path, &file).expect("a temporary file");
    let history = match History::open(&path) {
        Ok(history) => history,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let wanted = Wanted {
        states: 40,
        seed: u64::from(choice >> 2),
        torn: choice & 2 == 2,
        prefixes_only: false,
        first: 0,
        last: usize::MAX,
        marks: 0,
    };
    let plan = Plan::new(&history, &wanted);
    assert!(plan.states.len() <= wanted.states);
    let mut seen = HashSet::new();
    for state in &plan.states {
        let words = state.to_string();
        let again = words
            .parse::<State>()
            .and_then(|state| state.checked(&history));
        assert_eq!(again.as_ref(), Ok(state), "{words}");
        let interval = &history.intervals[state.interval];
        let identity = state.identity(interval, &mut Vec::new());
        assert!(seen.insert(identity), "{words} is planned twice");
    }
    if history.header.device_bytes <= BUILD_MAX
        && let Ok(mut builder) = Builder::new(&history, folder.path())
    {
        for state in plan.states.iter().take(4) {
            let file = builder.begin(state.interval, &folder.path().join("state"));
            let built = file.and_then(|file| build::finish(&history, state, &file));
            built.unwrap_or_else(|error| panic!("{state}: {error}"));
        }
    }
}

/// Makes all checksums right, as far as the lengths lead.
fn seal(file: &mut [u8]) {
    let Some(header) = file.get_mut(..HEADER_BYTES) else {
        return;
    };
    let checksum = crc32c::crc32c(&header[..28]);
    header[28..].copy_from_slice(&checksum.to_le_bytes());
    let mut at = HEADER_BYTES;
    while let Some(head) = file.get_mut(at..at + HEAD_BYTES) {
        let place = crc32c::crc32c(&(at as u64).to_le_bytes());
        let checksum = crc32c::crc32c_append(place, &head[..24]);
        head[24..].copy_from_slice(&checksum.to_le_bytes());
        let stored = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        at += HEAD_BYTES;
        if stored == 0 {
            continue;
        }
        let Some(data) = file.get_mut(at..at + stored + 4) else {
            return;
        };
        let checksum = crc32c::crc32c(&data[..stored]);
        data[stored..].copy_from_slice(&checksum.to_le_bytes());
        at += stored + 4;
    }
}
