//! Floatgate's contract: what a flash translation layer is, and the flash below it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`address`], [`geometry`] | logical and physical addresses, the shape of a device |
//! | [`flash`], [`oob`], [`pcm`] | [`flash::Flash`]: the flash below a scheme; time flows through it as a token |
//! | [`ftl`], [`described`] | [`ftl::Ftl`]: what a scheme is; [`described::Described`]: how it describes itself |
//! | [`striped`] | a scheme for one die on many dies |
//! | [`options`], [`refusal`] | option schemas: names, units, defaults, help; why a configuration is refused |
//! | [`report`] | counters, merges, memory tables |
//! | [`ledger`] | the state that every kind of flash keeps: program rules, erase counts, counters |
//! | [`state`] | the state of a device as bytes, saved and loaded |
//! | [`wear`] | rules of wear levelling |
//! | [`buffer`], [`read_cache`] | what a device holds in memory before and after the flash: hits, victims, reading ahead |
//! | [`slc`] | a cache of flash blocks with one bit a cell: places, and which blocks are folded next |
//! | [`lists`] | ordered lists over numbered things, without allocation |
//! | [`catalog`] | schemes chosen by name |
//!
//! The crate does no I/O and knows no clock and no scheme: a scheme decides *what* happens, a flash says *when*.

#![no_std]

#[doc(hidden)]
pub extern crate alloc;

pub mod address;
pub mod buffer;
pub mod catalog;
pub mod described;
pub mod flash;
pub mod ftl;
pub mod geometry;
pub mod ledger;
pub mod lists;
pub mod oob;
pub mod options;
pub mod pcm;
pub mod read_cache;
pub mod refusal;
pub mod report;
pub mod rng;
pub mod slc;
pub mod state;
pub mod striped;
pub mod wear;

pub use address::{DieLpn, Lbn, Lpn, Pbn, Ppn};
pub use catalog::Catalog;
pub use described::Described;
pub use flash::{Cause, Flash, Oob, Preload, Role, Slot};
pub use ftl::{Ftl, MountError, Run, Start, Tick};
pub use geometry::{Geometry, ProgramOrder, Space};
pub use refusal::Refusal;
pub use striped::Striped;
