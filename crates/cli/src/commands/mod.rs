//! What each command does: one file each.

pub mod bench;
pub mod bytes;
pub mod compare;
pub mod completions;
pub mod config;
pub mod conform;
pub mod crash;
pub mod fleet;
pub mod image;
mod listeners;
pub mod papers;
mod parallel;
pub mod parts;
pub mod recovery;
pub mod run;
pub mod schema;
pub mod schemes;
pub mod serve;
mod study;
pub mod sweep;
mod taps;
pub mod torture;
pub mod trace_convert;
pub mod trace_generate;
pub mod trace_info;
mod variant;
