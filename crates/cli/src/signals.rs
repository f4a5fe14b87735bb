//! Ctrl-C and its like: unfinished files are removed, then the signal takes its usual course.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use floatgate_trace::outfile::abandon_all;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// Set by the first signal, where somebody wants to end in order.
static ASKED_TO_END: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on the first signal sets this flag and does nothing else: who asks for it ends the program in order. The
/// second one ends it at once.
pub fn asked_to_end() -> Arc<AtomicBool> {
    Arc::clone(ASKED_TO_END.get_or_init(Arc::default))
}

/// Takes care of signals from now on. The process still ends by them, so that a shell sees what happened (130, 143).
pub fn watch() {
    // Beyond a limit on file sizes a write fails then, and that is reported like any other failure.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let ignored = ignored();
    let ours: Vec<i32> = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
        .into_iter()
        .filter(|signal| ignored & 1 << (signal - 1) == 0)
        .collect();
    let again = Arc::new(AtomicBool::new(false));
    for &signal in &ours {
        // The second one ends the process whatever the first one is waiting for.
        let _ = flag::register_conditional_default(signal, Arc::clone(&again));
        let _ = flag::register(signal, Arc::clone(&again));
    }
    let Ok(mut signals) = Signals::new(ours) else {
        return;
    };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            if let Some(asked) = ASKED_TO_END.get() {
                return asked.store(true, Ordering::Relaxed);
            }
            let _abandoned = abandon_all();
            let _ = low_level::emulate_default_handler(signal);
        }
    });
}

/// The signals that this process was told to ignore, as `nohup` does: bit 0 is signal 1.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
