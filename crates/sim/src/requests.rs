//! One row a request: when it came, when it ran, and what the device did for it (a microscope for single
//! responses, as HAT's Fig. 12 needs it). `docs/requests.md` defines every column.

use std::path::Path;

use floatgate_trace::TraceError;
use floatgate_trace::columns::{Column, Kind as ColumnKind, NONE, TableSummary, TableWriter};

use crate::host::Kind;
use crate::merges::MergeKinds;

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
    pub(crate) fn since(self, before: Self) -> Self {
        // Sums may pass 2^64 in very long runs; differences stay right.
        Self {
            translation_ns: self.translation_ns.wrapping_sub(before.translation_ns),
            flash_ns: self.flash_ns.wrapping_sub(before.flash_ns),
            gc_ns: self.gc_ns.wrapping_sub(before.gc_ns),
        }
    }

    /// All kinds together, ns.
    pub fn sum_ns(&self) -> u64 {
        self.translation_ns + self.flash_ns + self.gc_ns
    }
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        *self = Self {
            translation_ns: self.translation_ns.wrapping_add(more.translation_ns),
            flash_ns: self.flash_ns.wrapping_add(more.flash_ns),
            gc_ns: self.gc_ns.wrapping_add(more.gc_ns),
        };
    }
}

/// Whose work a request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// That of an earlier request, by its number.
    Request(u64),
    /// Work that the scheme did in idle time or by a timer.
    Background,
}

/// The longest wait of a request for a die that was still busy with earlier work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// From the issue until the die was done with it, ns.
    pub ns: u64,
    /// The die.
    pub die: u32,
    /// Whose work came last on the die before that of the request.
    pub behind: Behind,
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
    /// Merges run for it.
    pub merges: MergeKinds,
    /// Dies that it had work on.
    pub dies: u32,
    /// The die whose work for it ended with it.
    pub die_last: Option<u32>,
    /// What it waited for on a die, if it did.
    pub waited: Option<Waited>,
}

impl RequestRow {
    /// From arrival to completion, ns.
    pub fn response_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.arrival_ns)
    }

    /// What it is in one letter.
    pub fn op(&self) -> &'static str {
        OPS[op_index(self.kind) as usize]
    }

    /// The same as a word: in a timeline all requests of a name share a track.
    pub fn op_in_words(&self) -> &'static str {
        ["read", "write", "trim", "flush"][op_index(self.kind) as usize]
    }

    /// From arrival to the first start, ns.
    pub fn queueing_ns(&self) -> u64 {
        self.start_ns.saturating_sub(self.arrival_ns)
    }

    /// Its cells in the order of [`COLUMNS`].
    pub fn cells(&self) -> [u64; COLUMNS.len()] {
        let [waited_ns, waited_die, waited_on, waited_for] = behind_cells(self.waited);
        [
            self.request,
            op_index(self.kind),
            self.first_lpn.into(),
            self.pages.into(),
            self.arrival_ns,
            self.issue_ns,
            self.start_ns,
            self.end_ns,
            self.queueing_ns(),
            self.work.translation_ns,
            self.work.flash_ns,
            self.work.gc_ns,
            self.merges.switch,
            self.merges.partial,
            self.merges.full,
            self.merges.dead,
            self.merges.other,
            self.dies.into(),
            self.die_last.map_or(NONE, u64::from),
            waited_ns,
            waited_die,
            waited_on,
            waited_for,
        ]
    }
}

/// Names of the operations, in the order of [`op_index`].
const OPS: &[&str] = &["R", "W", "T", "F"];

/// What a request can have waited for, in the order of [`behind_cells`].
const BEHIND: &[&str] = &["none", "request", "background"];

/// What a request waited for: time, die, kind, number.
fn behind_cells(waited: Option<Waited>) -> [u64; 4] {
    let Some(Waited { ns, die, behind }) = waited else {
        return [0, NONE, 0, NONE];
    };
    match behind {
        Behind::Request(number) => [ns, die.into(), 1, number],
        Behind::Background => [ns, die.into(), 2, NONE],
    }
}

fn op_index(kind: Kind) -> u64 {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Trim | Kind::EmptyTrim => 2,
        Kind::Flush | Kind::Drain => 3,
    }
}

const fn column(name: &'static str, kind: ColumnKind) -> Column {
    Column { name, kind }
}

/// The columns of a file of requests.
pub const COLUMNS: &[Column] = &[
    column("request", ColumnKind::Rising),
    column("op", ColumnKind::Word(OPS)),
    column("first_lpn", ColumnKind::Small),
    column("pages", ColumnKind::Small),
    column("arrival_ns", ColumnKind::Rising),
    column("issue_ns", ColumnKind::Rising),
    column("start_ns", ColumnKind::Rising),
    column("end_ns", ColumnKind::Rising),
    column("queueing_ns", ColumnKind::Number),
    column("translation_ns", ColumnKind::Number),
    column("flash_ns", ColumnKind::Number),
    column("gc_ns", ColumnKind::Number),
    column("merges_switch", ColumnKind::Number),
    column("merges_partial", ColumnKind::Number),
    column("merges_full", ColumnKind::Number),
    column("merges_dead", ColumnKind::Number),
    column("merges_other", ColumnKind::Number),
    column("dies", ColumnKind::Small),
    column("die_last", ColumnKind::Sparse),
    column("waited_ns", ColumnKind::Number),
    column("waited_die", ColumnKind::Sparse),
    column("waited_on", ColumnKind::Word(BEHIND)),
    column("waited_for", ColumnKind::Sparse),
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
        let mut rows = rows.iter();
        rows.try_for_each(|row| self.table.row(&row.cells()))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If its end cannot be written or it cannot get its name.
    pub fn finish(self) -> Result<TableSummary, TraceError> {
        self.table.finish()
    }
}
