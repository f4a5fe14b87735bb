//! Tables of numbers as Arrow: the rows that the command writes to files.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use floatgate_trace::columns::{Column, Kind, NONE};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;

/// Rows of a batch: enough that a table has few, and few enough that none has to be moved as it grows for long.
const BATCH_ROWS: usize = 1 << 18;

/// The cells of a column so far.
enum Cells {
    Long(UInt64Builder),
    Short(UInt32Builder),
    Word(&'static [&'static str], StringBuilder),
    Sparse(UInt64Builder),
    Real(Float64Builder),
}

impl Cells {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Rising | Kind::Number => Self::Long(UInt64Builder::new()),
            Kind::Small => Self::Short(UInt32Builder::new()),
            Kind::Word(words) => Self::Word(words, StringBuilder::new()),
            Kind::Sparse => Self::Sparse(UInt64Builder::new()),
            Kind::Real => Self::Real(Float64Builder::new()),
            Kind::Text => unreachable!("no table of a run has texts"),
        }
    }

    fn push(&mut self, cell: u64) {
        let there = cell != NONE;
        match self {
            Self::Long(values) => values.append_value(cell),
            Self::Short(values) => values.append_value(cell as u32),
            Self::Word(words, values) => values.append_value(words[cell as usize]),
            Self::Sparse(values) => values.append_option(there.then_some(cell)),
            Self::Real(values) => values.append_option(there.then(|| f64::from_bits(cell))),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Long(values) | Self::Sparse(values) => Arc::new(values.finish()),
            Self::Short(values) => Arc::new(values.finish()),
            Self::Word(_, values) => Arc::new(values.finish()),
            Self::Real(values) => Arc::new(values.finish()),
        }
    }
}

fn field(column: &Column) -> Field {
    let (kind, may_be_empty) = match column.kind {
        Kind::Rising | Kind::Number => (DataType::UInt64, false),
        Kind::Small => (DataType::UInt32, false),
        Kind::Word(_) => (DataType::Utf8, false),
        Kind::Sparse => (DataType::UInt64, true),
        Kind::Real => (DataType::Float64, true),
        Kind::Text => (DataType::Utf8, true),
    };
    Field::new(column.name, kind, may_be_empty)
}

/// A table that grows row by row.
pub struct Rows {
    schema: SchemaRef,
    cells: Vec<Cells>,
    rows: usize,
    batches: Vec<RecordBatch>,
}

impl Rows {
    /// No rows yet.
    pub fn new(columns: &[Column]) -> Self {
        let fields: Vec<Field> = columns.iter().map(field).collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            cells: columns
                .iter()
                .map(|column| Cells::of(column.kind))
                .collect(),
            rows: 0,
            batches: Vec::new(),
        }
    }

    /// Adds a row, a cell for every column.
    pub fn row(&mut self, cells: &[u64]) {
        for (column, &cell) in self.cells.iter_mut().zip(cells) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS {
            self.end_batch();
        }
    }

    fn end_batch(&mut self) {
        let arrays = self.cells.iter_mut().map(Cells::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        // Schema and builders come from the same columns.
        self.batches.push(batch.expect("a column for every field"));
        self.rows = 0;
    }

    /// The table.
    pub fn finish(mut self) -> PyResult<PyTable> {
        if self.rows > 0 || self.batches.is_empty() {
            self.end_batch();
        }
        PyTable::try_new(self.batches, self.schema)
    }
}
