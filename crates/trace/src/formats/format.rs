//! The formats by name, and the units that some of them leave unspecified.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// MSR Cambridge CSV: `filetime,host,disk,Read|Write,offset,bytes,response`, times and responses
    /// in 100 ns.
    Msr,
    /// SPC / UMass: `ASU,LBA,bytes,r|w,seconds`, the LBA in sectors of 512 bytes; further fields are ignored.
    Spc,
    /// Five columns, times in milliseconds: `ms device sector sectors 1=read|0=write` (DiskSim ASCII, `.5ms`).
    DiskSimAscii,
    /// Five columns as [`Format::DiskSimAscii`], but offset and size in bytes (`.5msB`).
    DiskSimAsciiBytes,
    /// Five columns, times in microseconds (`.5us`).
    MicrosecondAscii,
    /// Five columns, times in nanoseconds (SSDsim, MQSim; `.5ns`).
    SsdSimAscii,
    /// The text that `blkparse` prints; queue (`Q`) events are requests (see [`BlockEvent`]).
    Blkparse,
    /// What `blktrace` writes, one file per CPU, either byte order; queue events are requests (see [`BlockEvent`]).
    Blktrace,
    /// An fio I/O log, version 2 or 3.
    FioIolog,
    /// Alibaba block traces: `device_id,R|W,offset,bytes,microseconds`.
    Alibaba,
    /// Tencent block traces: `seconds,sector,sectors,0=read|1=write,volume`.
    Tencent,
    /// SYSTOR '17 VDI traces: `Timestamp,Response,IOType,LUN,Offset,Size`.
    Systor,
    /// CloudPhysics vSCSI traces, binary, version 1 or 2.
    Vscsi,
    /// Text saved by DiskMon: `number seconds duration disk Read|Write sector sectors`.
    DiskMon,
    /// blkreplay's `.load`: `seconds ; sector ; sectors ; R|W ; ...` after a header of any text.
    Blkreplay,
    /// Floatgate's own recordings: `time_ns,op,offset,size`, with streams `time_ns,op,offset,size,stream`.
    Recorded,
    /// Page requests: `W lpn n [arrival_ns [stream]]`, also `R`, `T`, `Z`, `F`; `#` starts a comment.
    Pages,
    /// One line per 4 KiB page with a content hash; the lines of a request are merged.
    HashText,
    /// Parquet with the columns `arrival_ns`, `op`, `volume`, `offset`, `bytes`, `stream`.
    Parquet,
    /// A table, in text or Parquet, whose columns the user names ([`Layout`](crate::Layout)).
    Columns,
}

impl Format {
    /// Every format that can be asked for by its name.
    pub const ALL: [Format; 19] = [
        Format::Msr,
        Format::Spc,
        Format::DiskSimAscii,
        Format::DiskSimAsciiBytes,
        Format::MicrosecondAscii,
        Format::SsdSimAscii,
        Format::Blkparse,
        Format::Blktrace,
        Format::FioIolog,
        Format::Alibaba,
        Format::Tencent,
        Format::Systor,
        Format::Vscsi,
        Format::DiskMon,
        Format::Blkreplay,
        Format::Recorded,
        Format::Pages,
        Format::HashText,
        Format::Parquet,
    ];

    /// The name used on the command line and in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::DiskSimAscii => "5ms",
            Format::DiskSimAsciiBytes => "5ms-bytes",
            Format::MicrosecondAscii => "5us",
            Format::SsdSimAscii => "5ns",
            Format::Blkparse => "blkparse",
            Format::Blktrace => "blktrace",
            Format::FioIolog => "iolog",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Systor => "systor",
            Format::Vscsi => "vscsi",
            Format::DiskMon => "diskmon",
            Format::Blkreplay => "blkreplay",
            Format::Recorded => "recorded",
            Format::Pages => "pages",
            Format::HashText => "hash-text",
            Format::Parquet => "parquet",
            Format::Columns => "columns",
        }
    }

    /// One line about the format: its fields and units.
    pub const fn describe(self) -> &'static str {
        match self {
            Format::Msr => {
                "MSR Cambridge CSV: filetime (100 ns),host,disk,Read|Write,offset B,bytes[,response]"
            }
            Format::Spc => "SPC / UMass: ASU,sector,bytes,r|w,seconds[,...]",
            Format::DiskSimAscii => {
                "DiskSim ASCII: ms device sector sectors flag (1 read, 0 write)"
            }
            Format::DiskSimAsciiBytes => {
                "five columns: ms device offset-B bytes flag (1 read, 0 write)"
            }
            Format::MicrosecondAscii => {
                "five columns: us device sector sectors flag (1 read, 0 write)"
            }
            Format::SsdSimAscii => {
                "SSDsim and MQSim ASCII: ns device sector sectors flag (1 read, 0 write)"
            }
            Format::Blkparse => "text of blkparse, queue events",
            Format::Blktrace => "binary blktrace, one file per CPU, queue events",
            Format::FioIolog => "fio I/O log, version 2 or 3",
            Format::Alibaba => "Alibaba block trace: device,R|W,offset B,bytes,time us",
            Format::Tencent => {
                "Tencent block trace: seconds,sector,sectors,0|1 (read, write),volume"
            }
            Format::Systor => "SYSTOR '17: Timestamp,Response,IOType,LUN,Offset,Size",
            Format::Vscsi => "CloudPhysics vSCSI, binary, version 1 or 2",
            Format::DiskMon => "DiskMon: number seconds duration disk Read|Write sector sectors",
            Format::Blkreplay => "blkreplay .load: seconds ; sector ; sectors ; R|W ; ...",
            Format::Recorded => "Floatgate recording: time_ns,op,offset,size[,stream] (R W T Z F)",
            Format::Pages => "page text: W|R|T|Z lpn n [arrival_ns [stream]]",
            Format::HashText => {
                "seconds, R|W, sector, bytes, process, device, hash (tabs), a line per 4 KiB page"
            }
            Format::Parquet => "Parquet: arrival_ns, op, volume, offset, bytes, stream",
            Format::Columns => "a table whose columns are named by --columns",
        }
    }

    /// The usual ending of a file of this format, before that of a compression.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Msr => "msr.csv",
            Format::Spc => "spc",
            Format::DiskSimAscii => "5ms",
            Format::DiskSimAsciiBytes => "5msB",
            Format::MicrosecondAscii => "5us",
            Format::SsdSimAscii => "5ns",
            Format::Blkparse => "blkparse",
            Format::Blktrace => "blktrace.0",
            Format::FioIolog => "iolog",
            Format::Alibaba => "alibaba.csv",
            Format::Tencent => "tencent.csv",
            Format::Systor => "systor.csv",
            Format::Vscsi => "vscsi",
            Format::DiskMon => "diskmon",
            Format::Blkreplay => "load",
            Format::Recorded => "csv",
            Format::Pages => "pages",
            Format::HashText => "hash.txt",
            Format::Parquet => "parquet",
            Format::Columns => "csv",
        }
    }

    /// Whether [`Writer`](crate::Writer) can write it.
    pub const fn writable(self) -> bool {
        matches!(
            self,
            Format::Msr
                | Format::DiskSimAscii
                | Format::SsdSimAscii
                | Format::FioIolog
                | Format::Recorded
                | Format::Pages
        ) || (matches!(self, Format::Parquet) && cfg!(feature = "parquet"))
    }

    /// Whether the format's own times start at 0 (they are kept as they are); the times of the
    /// other formats are returned relative to the trace's first request.
    pub const fn times_start_at_zero(self) -> bool {
        matches!(
            self,
            Format::Spc
                | Format::FioIolog
                | Format::Blkreplay
                | Format::Recorded
                | Format::Pages
                | Format::Parquet
        )
    }

    /// Whether it says which process made a request.
    pub const fn knows_processes(self) -> bool {
        matches!(self, Format::Blkparse | Format::Blktrace | Format::HashText)
    }

    /// Whether it is no text.
    pub(crate) const fn is_binary(self) -> bool {
        matches!(self, Format::Blktrace | Format::Vscsi | Format::Parquet)
    }

    /// Whether it is one of the five-column formats, which differ in units only.
    pub const fn is_five_columns(self) -> bool {
        matches!(
            self,
            Format::DiskSimAscii
                | Format::DiskSimAsciiBytes
                | Format::MicrosecondAscii
                | Format::SsdSimAscii
        )
    }

    /// All names, for messages.
    pub(crate) fn names() -> String {
        let names: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
        names.join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    /// Accepts [`Format::name`] in any case; the error lists all names.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.to_ascii_lowercase();
        Format::ALL
            .into_iter()
            .find(|f| f.name() == text)
            .ok_or_else(|| {
                format!(
                    "unknown trace format '{text}'; it is one of {}",
                    Format::names()
                )
            })
    }
}

/// The unit of the times in a five-column trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    /// The number of decimal digits from this unit to a nanosecond.
    pub(crate) const fn digits(self) -> u32 {
        match self {
            TimeUnit::Ns => 0,
            TimeUnit::Us => 3,
            TimeUnit::Ms => 6,
            TimeUnit::S => 9,
        }
    }
}

/// The unit of addresses and sizes in a five-column trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressUnit {
    /// Sectors of 512 bytes.
    Sectors,
    /// Bytes.
    Bytes,
}

/// An event of the Linux block layer that counts as a request in blktrace and blkparse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockEvent {
    /// The request enters the block layer (`Q`).
    Queue,
    /// The request goes to the driver (`D`), merged and ordered by the scheduler.
    Issue,
    /// The request is done (`C`).
    Complete,
}

impl BlockEvent {
    /// The letter that blkparse prints.
    pub(crate) const fn letter(self) -> u8 {
        match self {
            BlockEvent::Queue => b'Q',
            BlockEvent::Issue => b'D',
            BlockEvent::Complete => b'C',
        }
    }

    /// The number in a binary record.
    pub(crate) const fn code(self) -> u32 {
        match self {
            BlockEvent::Queue => 1,
            BlockEvent::Issue => 7,
            BlockEvent::Complete => 8,
        }
    }
}
