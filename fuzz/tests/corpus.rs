//! The corpus under the ordinary test runner: every seed, and damaged copies of it.

use std::path::{Path, PathBuf};

use floatgate_core::rng::SplitMix64;
use floatgate_fuzz::{Schemes, TARGETS, Target};

/// Damaged copies of each seed.
const COPIES: u64 = 40;

fn seeds(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    };
    files.into_iter().map(read).collect()
}

/// Flips, overwrites, cuts off, drops, doubles.
fn damage(rng: &mut SplitMix64, bytes: &mut Vec<u8>) {
    for _ in 0..=rng.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.below(bytes.len() as u64) as usize;
        let end = (at + 1 + rng.below(8) as usize).min(bytes.len());
        match rng.below(5) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.next() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            _ => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
}

#[test]
fn every_seed_and_damaged_copies_of_it() {
    let schemes = Schemes::default();
    for target in &TARGETS {
        let seeds = seeds(target);
        assert!(!seeds.is_empty(), "no seeds for {}", target.name);
        for (path, bytes) in seeds {
            let mut rng = SplitMix64::new(bytes.len() as u64);
            for copy in 0..=COPIES {
                let mut input = bytes.clone();
                if copy > 0 {
                    damage(&mut rng, &mut input);
                }
                let played = std::panic::catch_unwind(|| (target.run)(&input, &schemes));
                assert!(
                    played.is_ok(),
                    "{}: copy {copy} of {} is a finding",
                    target.name,
                    path.display()
                );
            }
        }
    }
}
