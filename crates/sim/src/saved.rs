//! The state of an aged device as bytes: how each step of its ageing ended, then the flash, the scheme, and what the host
//! side knows of the pages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use floatgate_core::state::{StateError, Tape};
use floatgate_core::{Ftl, Lpn};

use crate::ageing::Aged;
use crate::clock::Clock;
use crate::session::Session;

/// The state of a device on which nothing is under way.
///
/// # Errors
/// If the scheme takes no part.
pub fn save<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    aged: &[Aged],
) -> Result<Vec<u8>, StateError> {
    let mut steps =
        serde_json::to_vec(aged).map_err(|error| StateError::damaged(error.to_string()))?;
    let geometry = session.geometry().clone();
    let mut bytes = Vec::new();
    let mut tape = Tape::saving(&mut bytes, &geometry);
    tape.grows(&mut steps)?;
    session.pass(&mut tape)?;
    tape.end()?;
    Ok(bytes)
}

/// Gives a fresh device that state, which is audited, and tells how it was aged.
///
/// # Errors
/// If it is no state of this device.
pub fn load<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    bytes: &[u8],
) -> Result<Vec<Aged>, StateError> {
    let geometry = session.geometry().clone();
    let mut tape = Tape::loading(bytes, &geometry);
    let mut steps = Vec::new();
    tape.grows(&mut steps)?;
    let steps = serde_json::from_slice::<Vec<Aged>>(&steps);
    let mut aged = steps.map_err(|error| StateError::damaged(format!("its ageing: {error}")))?;
    aged.iter_mut().for_each(|step| step.loaded = true);
    if !aged.is_empty() {
        // As every step of ageing ends.
        session.reset_counters();
    }
    // Tables that do not hang together may lead anywhere, also the functions that look at them.
    let loaded = catch_unwind(AssertUnwindSafe(|| {
        session.pass(&mut tape)?;
        tape.end()?;
        session.check_live().map_err(StateError::Damaged)
    }));
    loaded.unwrap_or_else(|_| Err(StateError::damaged("its tables do not agree")))?;
    Ok(aged)
}
