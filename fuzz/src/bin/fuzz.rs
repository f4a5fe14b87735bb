//! `fuzz`, under libFuzzer: the target is named by the environment variable `FLOATGATE_FUZZ_TARGET`; the arguments
//! are libFuzzer's.
#![no_main]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Once, OnceLock};

use floatgate_fuzz::{Schemes, TARGETS, Target};

static TARGET: OnceLock<&Target> = OnceLock::new();
static SCHEMES: OnceLock<Schemes> = OnceLock::new();

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
        // A panic that is caught on its way is none: the Parquet library has some for damaged files.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
        let schemes = SCHEMES.get_or_init(Schemes::default);
        if let Some(target) = TARGET.get()
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input, schemes)))
        {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            eprintln!("finding: {}", text.unwrap_or("a panic without a message"));
            std::process::abort();
        }
    }
);
