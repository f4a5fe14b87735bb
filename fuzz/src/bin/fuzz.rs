//! `fuzz`, under libFuzzer: the target is named by the environment variable `FLOATGATE_FUZZ_TARGET`; the arguments
//! are libFuzzer's.
#![no_main]

use std::sync::OnceLock;

use floatgate_fuzz::{TARGETS, Target};

static TARGET: OnceLock<&Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("FLOATGATE_FUZZ_TARGET").unwrap_or_default();
        let found = TARGETS.iter().find(|target| target.name == name);
        let Some(found) = found else {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            eprintln!("FLOATGATE_FUZZ_TARGET={name:?}: one of {}", names.join(", "));
            std::process::exit(2);
        };
        let _ = TARGET.set(found);
    },
    |input: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.run)(input);
        }
    }
);
