//! How a trace is to be read.

use crate::formats::{AddressUnit, BlockEvent, Format, TimeUnit};
use crate::{Layout, PageCache};

/// What gives writes their streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamFrom {
    /// The trace, where its format has a place for streams.
    #[default]
    Trace,
    /// The process that made the write, numbered in the order of first writes, in the formats that
    /// [know it](Format::knows_processes); others are refused. Of several files processes are matched by name or number.
    Process,
}

/// How to read a trace. The default detects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// The format; `None` detects it by the content.
    pub format: Option<Format>,
    /// What the columns hold, if it is a table of text or Parquet with columns of its own; then no format is detected.
    pub columns: Option<Layout>,
    /// Read only the requests of this volume.
    pub volume: Option<u32>,
    /// Read only the requests of the volume with this name.
    pub volume_name: Option<String>,
    /// Bytes of a page in [`Format::Pages`]; 0 takes what the file says, or 4,096.
    pub page_bytes: u32,
    /// The unit of the times of a five-column trace, instead of its format's.
    pub time_unit: Option<TimeUnit>,
    /// The unit of the addresses and sizes of a five-column trace, instead of its format's.
    pub address_unit: Option<AddressUnit>,
    /// Which events of blktrace and blkparse are requests; `None` takes queue events, or issue events
    /// if there is no queue event in the first 64 KiB.
    pub event: Option<BlockEvent>,
    /// What gives writes their streams.
    pub stream_from: StreamFrom,
    /// A page cache between the trace and whoever reads it ([`open_merged`](crate::open_merged) and the like).
    pub pagecache: Option<PageCache>,
}
