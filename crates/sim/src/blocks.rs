//! One row a block, as the run leaves it. `docs/series.md` defines every column.

use std::path::Path;

use floatgate_core::Pbn;
use floatgate_trace::TraceError;
use floatgate_trace::columns::{Column, Kind, TableSummary, TableWriter};

use crate::clock::Clock;
use crate::flash::SimFlash;

/// A block at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// Its die.
    pub die: u32,
    /// Its number in the die.
    pub block: u32,
    /// Erases since the start.
    pub erases: u32,
    /// Pages programmed since its last erase; with wear levelling those of the scheme's block of this number.
    pub programmed_pages: u32,
}

impl BlockRow {
    /// Its cells in the order of [`COLUMNS`].
    pub fn cells(&self) -> [u64; COLUMNS.len()] {
        [self.die, self.block, self.erases, self.programmed_pages].map(u64::from)
    }
}

/// The rows of all blocks of a flash.
pub(crate) fn rows<C: Clock>(flash: &SimFlash<C>) -> Vec<BlockRow> {
    let blocks_per_die = flash.ledger.geometry().blocks_per_die;
    let erases = flash.erase_counts().into_iter().zip(0..);
    let row = |(erases, number)| BlockRow {
        die: number / blocks_per_die,
        block: number % blocks_per_die,
        erases,
        programmed_pages: flash.ledger.programmed_pages(Pbn(number)),
    };
    erases.map(row).collect()
}

/// The columns of a file of blocks.
pub const COLUMNS: &[Column] = &[
    Column {
        name: "die",
        kind: Kind::Small,
    },
    Column {
        name: "block",
        kind: Kind::Small,
    },
    Column {
        name: "erases",
        kind: Kind::Small,
    },
    Column {
        name: "programmed_pages",
        kind: Kind::Small,
    },
];

/// Starts a file: Parquet, or CSV by the ending of its name.
///
/// # Errors
/// If the name ends in neither, or the file cannot be made.
pub fn create(path: &Path) -> Result<TableWriter, TraceError> {
    TableWriter::create(path, COLUMNS)
}

/// Writes the rows and ends the file.
///
/// # Errors
/// If it cannot be written.
pub fn write(mut table: TableWriter, rows: &[BlockRow]) -> Result<TableSummary, TraceError> {
    for row in rows {
        table.row(&row.cells())?;
    }
    table.finish()
}
