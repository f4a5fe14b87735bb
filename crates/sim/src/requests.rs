//! One row a request: when it came, when it ran, and what the device did for it (a microscope for single
//! responses, as HAT's Fig. 12 needs it). `docs/requests.md` defines every column.
//!
//! Work is told from the difference of the counters before and after the request, so a run that records
//! nothing pays one test a request, and nothing an operation.

use std::collections::VecDeque;
use std::path::Path;

use floatgate_core::report::FlashCounters;
use floatgate_trace::TraceError;
use floatgate_trace::columns::{Column, Kind as ColumnKind, TableSummary, TableWriter};

use crate::clock::{FlashOp, Machine, Mode, OpKind};
use crate::flash::Fine;
use crate::host::{Kind, PageRequest};

/// Time of the operations of one or more requests, each for its own phases alone; waiting is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Map pages and OOBs for translation, and phase-change memory.
    pub translation_ns: u64,
    /// Pages of the host.
    pub flash_ns: u64,
    /// Copies and erases of merges and collections.
    pub gc_ns: u64,
}

impl Work {
    fn since(self, before: Self) -> Self {
        // Sums may pass 2^64 in very long runs; differences stay right.
        Self {
            translation_ns: self.translation_ns.wrapping_sub(before.translation_ns),
            flash_ns: self.flash_ns.wrapping_sub(before.flash_ns),
            gc_ns: self.gc_ns.wrapping_sub(before.gc_ns),
        }
    }
}

/// How long each operation takes on a machine that is idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durations {
    read_ns: u64,
    /// Part of `read_ns` that is the transfer of a whole page.
    read_data_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    oob_read_ns: u64,
    copyback_ns: u64,
    pcm_read_ns: u64,
    pcm_write_ns: u64,
}

impl Durations {
    pub(crate) fn of(machine: &Machine) -> Self {
        let of = |kind| machine.duration_ns(FlashOp::new(kind, 0));
        let read = FlashOp::new(OpKind::Read, 0);
        Self {
            read_ns: of(OpKind::Read),
            read_data_ns: if machine.mode == Mode::Flat {
                0
            } else {
                machine.data_ns(read)
            },
            program_ns: of(OpKind::Program),
            erase_ns: of(OpKind::Erase),
            oob_read_ns: of(OpKind::OobRead),
            copyback_ns: of(OpKind::CopyBack),
            pcm_read_ns: of(OpKind::PcmRead),
            pcm_write_ns: of(OpKind::PcmWrite),
        }
    }

    /// The work of everything counted so far.
    fn work(&self, c: &FlashCounters, fine: &Fine) -> Work {
        let times = |n: u64, ns: u64| n.wrapping_mul(ns);
        // A copy-back is counted as a read and a program; it moves no data.
        let copies = |reads: u64, programs: u64, copybacks: u64| {
            times(reads - copybacks, self.read_ns)
                .wrapping_add(times(programs - copybacks, self.program_ns))
                .wrapping_add(times(copybacks, self.copyback_ns))
        };
        let map = copies(c.reads.map, c.programs.map, fine.map_copybacks);
        let gc = copies(
            c.reads.gc,
            c.programs.gc,
            fine.copybacks - fine.map_copybacks,
        );
        let host = copies(c.reads.host, c.programs.host, 0);
        let (short_count_ns, short_ns) = match self.read_data_ns {
            0 => (0, 0),
            whole_ns => (times(fine.short_reads, whole_ns), fine.short_read_data_ns),
        };
        Work {
            translation_ns: map
                .wrapping_add(times(c.oob_reads.map, self.oob_read_ns))
                .wrapping_add(times(c.erases.map, self.erase_ns))
                .wrapping_add(times(c.pcm_reads, self.pcm_read_ns))
                .wrapping_add(times(c.pcm_writes, self.pcm_write_ns)),
            flash_ns: host
                .wrapping_sub(short_count_ns)
                .wrapping_add(short_ns)
                .wrapping_add(times(c.oob_reads.host, self.oob_read_ns)),
            gc_ns: gc
                .wrapping_add(times(c.oob_reads.gc, self.oob_read_ns))
                .wrapping_add(times(c.erases.gc, self.erase_ns)),
        }
    }
}

/// A request that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Its number in the trace, from 0.
    pub request: u64,
    /// What it is.
    pub kind: Kind,
    /// First logical page; of a request that was cut, of its first part; 0 if it has no page.
    pub first_lpn: u32,
    /// Pages.
    pub pages: u32,
    /// Arrival (closed loop: issue).
    pub arrival_ns: u64,
    /// Issue to the device.
    pub issue_ns: u64,
    /// First start of an operation that it had to wait for.
    pub start_ns: u64,
    /// Completion.
    pub end_ns: u64,
    /// Time of the operations issued for it.
    pub work: Work,
}

/// A row in the making.
#[derive(Clone, Copy, Debug)]
struct Pending {
    row: RequestRow,
    done: bool,
}

/// Makes rows of requests, in the order of the trace.
#[derive(Debug)]
pub(crate) struct Recorder {
    durations: Durations,
    before: Work,
    /// Number of the request at the front.
    first: u64,
    pending: VecDeque<Pending>,
    rows: Vec<RequestRow>,
}

impl Recorder {
    pub(crate) fn new(machine: &Machine, next: u64) -> Self {
        Self {
            durations: Durations::of(machine),
            before: Work::default(),
            first: next,
            pending: VecDeque::new(),
            rows: Vec::new(),
        }
    }

    /// The next request is issued.
    pub(crate) fn issued(
        &mut self,
        kind: Kind,
        arrival_ns: u64,
        issue_ns: u64,
        pages: &PageRequest,
    ) {
        let (first_lpn, count) = match kind {
            Kind::Flush | Kind::EmptyTrim => (0, 0),
            _ => (
                pages.segments.first().map_or(0, |segment| segment.first.0),
                pages.pages,
            ),
        };
        let row = RequestRow {
            request: self.first + self.pending.len() as u64,
            kind,
            first_lpn,
            pages: count,
            arrival_ns,
            issue_ns,
            start_ns: issue_ns,
            end_ns: issue_ns,
            work: Work::default(),
        };
        self.pending.push_back(Pending { row, done: false });
    }

    /// The scheme begins to work on the request issued last.
    pub(crate) fn begins(&mut self, counters: &FlashCounters, fine: &Fine) {
        self.before = self.durations.work(counters, fine);
    }

    /// The scheme has done all it does for it.
    pub(crate) fn worked(&mut self, counters: &FlashCounters, fine: &Fine) {
        if let Some(pending) = self.pending.back_mut() {
            pending.row.work = self.durations.work(counters, fine).since(self.before);
        }
    }

    /// A request is complete.
    pub(crate) fn done(&mut self, request: u64, start_ns: u64, end_ns: u64) {
        let Some(pending) = self.pending.get_mut((request - self.first) as usize) else {
            return;
        };
        (pending.row.start_ns, pending.row.end_ns, pending.done) = (start_ns, end_ns, true);
        while let Some(front) = self.pending.front().filter(|front| front.done) {
            self.rows.push(front.row);
            self.pending.pop_front();
            self.first += 1;
        }
    }

    pub(crate) fn rows(&mut self) -> &mut Vec<RequestRow> {
        &mut self.rows
    }
}

/// Names of the operations, in the order of [`op_index`].
const OPS: &[&str] = &["R", "W", "T", "F"];

fn op_index(kind: Kind) -> u64 {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Trim | Kind::EmptyTrim => 2,
        Kind::Flush => 3,
    }
}

/// The columns of a file of requests.
pub const COLUMNS: &[Column] = &[
    Column {
        name: "request",
        kind: ColumnKind::Rising,
    },
    Column {
        name: "op",
        kind: ColumnKind::Word(OPS),
    },
    Column {
        name: "first_lpn",
        kind: ColumnKind::Small,
    },
    Column {
        name: "pages",
        kind: ColumnKind::Small,
    },
    Column {
        name: "arrival_ns",
        kind: ColumnKind::Rising,
    },
    Column {
        name: "issue_ns",
        kind: ColumnKind::Rising,
    },
    Column {
        name: "start_ns",
        kind: ColumnKind::Rising,
    },
    Column {
        name: "end_ns",
        kind: ColumnKind::Rising,
    },
    Column {
        name: "queueing_ns",
        kind: ColumnKind::Number,
    },
    Column {
        name: "translation_ns",
        kind: ColumnKind::Number,
    },
    Column {
        name: "flash_ns",
        kind: ColumnKind::Number,
    },
    Column {
        name: "gc_ns",
        kind: ColumnKind::Number,
    },
];

/// A file of requests: Parquet, or CSV by the ending of its name (`.csv`, `.csv.zst`, ...).
#[derive(Debug)]
pub struct RequestsFile {
    table: TableWriter,
}

impl RequestsFile {
    /// Starts the file. It gets its name in [`finish`](Self::finish); dropped before, nothing is left.
    ///
    /// # Errors
    /// If the name ends in neither, or the file cannot be made.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        Ok(Self {
            table: TableWriter::create(path, COLUMNS)?,
        })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, rows: &[RequestRow]) -> Result<(), TraceError> {
        for row in rows {
            self.table.row(&[
                row.request,
                op_index(row.kind),
                row.first_lpn.into(),
                row.pages.into(),
                row.arrival_ns,
                row.issue_ns,
                row.start_ns,
                row.end_ns,
                row.start_ns.saturating_sub(row.arrival_ns),
                row.work.translation_ns,
                row.work.flash_ns,
                row.work.gc_ns,
            ])?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If its end cannot be written or it cannot get its name.
    pub fn finish(self) -> Result<TableSummary, TraceError> {
        self.table.finish()
    }
}
