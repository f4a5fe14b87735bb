//! Block traces for Floatgate: every common trace format in and out, workload generators and
//! workload statistics.
//!
//! # Outline
//!
//! | module | what |
//! |---|---|
//! | [`open`], [`open_reader`], [`open_merged`], [`Spool`], [`Reader`] | reading: transparent decompression, detection by content, streaming |
//! | [`Request`], [`Op`], [`Counts`] | what a trace is made of |
//! | [`Format`], [`Layout`] | the formats, their names and extensions; tables whose columns the user names |
//! | [`Writer`], [`WriteOptions`] | writing; an error leaves no partial file behind |
//! | [`split`] | a trace of many volumes into its volumes, in bounded memory |
//! | [`columns`] | tables in Parquet and CSV |
//! | [`table`] | a trace as a table, and traces in memory |
//! | [`outfile`] | files for the user: whole or not at all |
//! | [`PageCache`], [`Filter`] | what a page cache in front of the device leaves of a workload |
//! | [`generate`] | synthetic page requests, reproducible bit for bit |
//! | [`stats`] | workload statistics, streaming |
//!
//! Offsets and sizes are bytes and times are nanoseconds everywhere, whatever the format counts in.
//! Reading takes bounded memory, and no input makes it panic: whatever is wrong with a file is returned as a
//! [`TraceError`] that names the file and the line, shows the line and says what to do.
//!
//! # Example
//!
//! ```
//! use floatgate_trace::{open_reader, Op, OpenOptions};
//!
//! let text = b"# a trace of pages\nW 0 2\nR 1 1\n";
//! let options = OpenOptions { page_bytes: 4096, ..OpenOptions::default() };
//! let mut reader = open_reader("example", Box::new(&text[..]), &options)?;
//! let first = reader.next()?.expect("two requests");
//! assert_eq!((first.op, first.offset, first.bytes), (Op::Write, 0, 8192));
//! # Ok::<(), floatgate_trace::TraceError>(())
//! ```

pub mod columns;
mod delimited;
mod detect;
mod error;
mod formats;
pub mod generate;
mod input;
mod layout;
mod merged;
mod open;
mod options;
pub mod outfile;
mod pagecache;
mod parse;
mod processes;
mod reader;
mod request;
pub mod sink;
mod source;
pub mod split;
mod spool;
pub mod stats;
pub mod table;
mod volumes;
mod write;

pub use error::{Cause, Position, TraceError};
pub use formats::{AddressUnit, BlockEvent, Format, TimeUnit};
pub use layout::{Layout, LayoutError, guess};
pub use open::{open, open_copy, open_merged, open_merged_with, open_reader};
pub use options::{OpenOptions, StreamFrom};
pub use pagecache::{Count, Filter, PageCache};
pub use reader::Reader;
pub use request::{Counts, Op, Request, Stream};
pub use source::Compression;
pub use spool::Spool;
pub use write::{WriteOptions, WriteSummary, Writer};
