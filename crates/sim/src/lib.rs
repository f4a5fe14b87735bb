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
//! | [`flows`] | several traces at once, and who of them goes next |
//! | `saved` | the state of an aged device as bytes |
//! | [`streamed`] | a trace decoded on a second thread while it is played |
//! | [`timeline`] | every operation of the flash, for Perfetto |
//! | [`window`] | the operations while one request was in work |
//! | [`requests`], [`why`] | one row a request: times, work, waits; why requests took so long |
//! | [`series_file`], [`blocks`] | the time series, and one row a block, as files |
//! | [`merges`] | merges by kind |
//! | [`wear`] | wear levelling below any scheme |
//! | [`ageing`] | named recipes that age a device before it is measured |
//! | [`metrics`], [`series`], [`energy`], [`record`] | what is measured, also over time; the record of a run |
//! | [`driven`] | a device driven page by page without a trace, for benchmarks |
//! | [`conform`] | runs conformance vectors |
//! | [`recovery`] | how long a device takes to come up again |
//! | [`analytic`] | closed formulas to hold a run against |

pub mod ageing;
pub mod analytic;
mod backlog;
pub mod blocks;
pub mod clock;
pub mod config;
pub mod conform;
pub mod driven;
pub mod energy;
pub mod flash;
mod flight;
pub mod flows;
mod future;
mod histogram;
pub mod host;
mod live;
pub mod merges;
pub mod metrics;
pub mod part;
pub mod record;
mod recorder;
pub mod recovery;
pub mod requests;
pub mod run;
mod saved;
pub mod series;
pub mod series_file;
pub mod session;
pub mod source;
pub mod span;
pub mod streamed;
pub mod timeline;
pub mod wear;
pub mod why;
pub mod window;
