//! Ctrl-C and its like: unfinished files are removed, then the signal takes its usual course.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use floatgate_trace::outfile::abandon_all;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

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
