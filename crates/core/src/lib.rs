//! Floatgate's heart: flash translation layers, each written once against one small interface to
//! NAND flash.
//!
//! | module | what it holds |
//! |---|---|
//! | [`address`], [`geometry`] | logical and physical addresses, the shape of a device |
//! | [`flash`] | [`flash::Flash`]: what a scheme stands on; time flows through it as a token |
//! | [`ledger`] | the state every flash keeps alike: program rules, erase counts, counters |
//! | [`ram`] | a flash that stores real bytes in memory |
//! | [`ftl`] | [`ftl::Ftl`]: what a scheme is; one file a scheme; the registry |
//! | [`parts`] | what several schemes share, each once |
//! | [`options`] | option schemas: names, units, defaults, help |
//! | [`report`] | counters, merges, memory tables |
//! | [`suite`] | what every scheme must pass, a user's too |
//!
//! [`corner`] is the only place with `unsafe`. The crate does no I/O and knows no clock: a scheme decides *what* happens, a flash says *when*.

pub mod address;
pub mod corner;
pub mod cut;
pub mod flash;
pub mod ftl;
pub mod geometry;
pub mod ledger;
pub mod options;
pub mod parts;
pub mod ram;
#[cfg(test)]
mod recorder;
pub mod report;
pub mod rng;
pub mod striped;
pub mod suite;
pub mod torture;

pub use address::{Lpn, Pbn, Ppn};
pub use flash::{Cause, Flash, Oob, Role, Slot};
pub use ftl::{Ftl, NoRecovery, Refusal, Run, Start};
pub use geometry::{Geometry, ProgramOrder, Space};
pub use striped::Striped;
