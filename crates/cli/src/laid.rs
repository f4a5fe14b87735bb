//! Rows of results laid out: for a file, or for a program.

use floatgate_trace::TraceError;
use floatgate_trace::columns::{Kind, TableSummary, TableWriter};

/// A table in memory.
#[derive(Clone, Debug, Default)]
pub struct Laid {
    /// Names and kinds of the columns.
    pub columns: Vec<(String, Kind)>,
    /// The texts that cells name by their places.
    pub texts: Vec<String>,
    /// The cells of each row.
    pub rows: Vec<Vec<u64>>,
}

impl Laid {
    /// Keeps a text; its cell.
    pub fn text(&mut self, text: impl Into<String>) -> u64 {
        self.texts.push(text.into());
        self.texts.len() as u64 - 1
    }

    /// Writes all rows to a file of the same columns, and ends it.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&self, mut table: TableWriter) -> Result<TableSummary, TraceError> {
        for text in &self.texts {
            table.text(text);
        }
        self.rows.iter().try_for_each(|row| table.row(row))?;
        table.finish()
    }
}
