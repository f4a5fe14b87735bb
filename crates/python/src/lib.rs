//! Floatgate for Python: the native module `floatgate._floatgate`. The package around it, with all that people call, is
//! written in Python (`python/floatgate`).

mod errors;
mod flash;
mod fleet;
mod frames;
mod own;
mod policies;
mod pulse;
mod recorded;
mod run;
mod scheme;
mod sweep;
mod tables;
mod traces;
mod written;

use std::alloc::System;
use std::ffi::OsString;
use std::sync::OnceLock;

use floatgate::Cli;
use floatgate::library::Scheme;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// As in the command: `bench` tells the memory that a device takes to the byte.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The schemes, by their names; plans of sweeps outlive the call that makes them.
fn schemes() -> &'static [Scheme] {
    static CLI: OnceLock<Cli> = OnceLock::new();
    CLI.get_or_init(Cli::new).schemes()
}

/// The native module.
#[pyo3::pymodule(gil_used = false)]
mod _floatgate {
    use super::OsString;
    use pyo3::prelude::*;

    #[pymodule_export]
    const FRAME: &str = crate::run::FRAME;
    #[pymodule_export]
    use crate::flash::{FlashHandle, SpareArea, Token};
    #[pymodule_export]
    use crate::fleet::{FleetPlan, fleet, fleet_volume};
    #[pymodule_export]
    use crate::recorded::{read_rows, recorded, report_of, write_trace};
    #[pymodule_export]
    use crate::run::simulate;
    #[pymodule_export]
    use crate::scheme::{check_scheme, replay_scheme};
    #[pymodule_export]
    use crate::sweep::{SweepPlan, sweep_cell, sweep_printed, sweep_table, sweep_write};
    #[pymodule_export]
    use crate::traces::{read_trace, trace_info};

    /// The command: does what the words say, of which the first is the name of the program. The exit code.
    #[pyfunction]
    fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
        py.detach(|| floatgate::Cli::new().run_words(words))
    }

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        floatgate::hide_guarded_panics();
        Ok(())
    }
}
