//! What a power cut can leave of a drive with a volatile write cache, found from a log of its writes.
//!
//! | module | what it holds |
//! |---|---|
//! | [`history`] | the log as intervals between flushes, and what each change does to which sector |
//! | [`state`] | one state: where the power was cut, and what was lost of the cache |
//! | [`plan`] | which states are looked at, likely killers first, equal ones once |
//! | [`build`] | a state as a file |
//!
//! The drive is the one that SATA, SCSI and NVMe promise, no better: what was flushed is there, and so is a write with FUA
//! that was answered; of all else any part may be missing, whatever came before or after it. Two writes to one sector
//! are never exchanged: the older one of two is seen only if the newer is lost.

pub mod build;
pub mod history;
pub mod plan;
pub mod state;

pub use build::Builder;
pub use history::{History, Interval};
pub use plan::{Plan, Wanted};
pub use state::State;

#[cfg(test)]
mod tests;
