//! A modelled SSD: any Floatgate scheme on a flash that is nothing but time, energy and wear.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`], [`part`] | what a run is made of; presets of flash parts |
//! | [`clock`] | when operations start and end, to the nanosecond |
//! | [`flash`] | [`flash::SimFlash`]: program rules, counters and a clock under one scheme |
//! | [`host`] | trace requests to page requests: partial pages, addresses past the end, trims |
//! | [`span`] | which pages a stretch of bytes touches |
//! | [`session`] | one scheme, one flash, one host: requests in, measurements out |
//! | [`run`] | a whole run by the name of its scheme |
//! | `saved` | the state of an aged device as bytes |
//! | [`streamed`] | a trace decoded on a second thread while it is played |
//! | [`requests`] | one row a request: times, and the work done for it |
//! | [`wear`] | wear levelling below any scheme |
//! | [`ageing`] | named recipes that age a device before it is measured |
//! | [`metrics`], [`energy`], [`record`] | what is measured; the record of a run |
//! | [`driven`] | a device driven page by page without a trace, for benchmarks |
//! | [`conform`] | runs conformance vectors |
//! | [`recovery`] | how long a device takes to come up again |
//! | [`analytic`] | closed formulas to hold a run against |

pub mod ageing;
pub mod analytic;
pub mod clock;
pub mod config;
pub mod conform;
pub mod driven;
pub mod energy;
pub mod flash;
mod flight;
pub mod host;
mod live;
pub mod metrics;
pub mod part;
pub mod record;
pub mod recovery;
pub mod requests;
pub mod run;
mod saved;
pub mod session;
pub mod span;
pub mod streamed;
pub mod wear;
