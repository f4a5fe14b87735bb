//! Tables of numbers as Arrow: the rows that the command writes to files.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use floatgate::library::Laid;
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
    Text(StringBuilder),
}

impl Cells {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Rising | Kind::Number => Self::Long(UInt64Builder::new()),
            Kind::Small => Self::Short(UInt32Builder::new()),
            Kind::Word(words) => Self::Word(words, StringBuilder::new()),
            Kind::Sparse => Self::Sparse(UInt64Builder::new()),
            Kind::Real => Self::Real(Float64Builder::new()),
            Kind::Text => Self::Text(StringBuilder::new()),
        }
    }

    fn push(&mut self, cell: u64, texts: &[String]) {
        let there = cell != NONE;
        match self {
            Self::Long(values) => values.append_value(cell),
            Self::Short(values) => values.append_value(cell as u32),
            Self::Word(words, values) => values.append_value(words[cell as usize]),
            Self::Sparse(values) => values.append_option(there.then_some(cell)),
            Self::Real(values) => values.append_option(there.then(|| f64::from_bits(cell))),
            Self::Text(values) => values.append_option(there.then(|| &texts[cell as usize])),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Long(values) | Self::Sparse(values) => Arc::new(values.finish()),
            Self::Short(values) => Arc::new(values.finish()),
            Self::Word(_, values) | Self::Text(values) => Arc::new(values.finish()),
            Self::Real(values) => Arc::new(values.finish()),
        }
    }
}

fn field(name: &str, kind: Kind) -> Field {
    let (kind, may_be_empty) = match kind {
        Kind::Rising | Kind::Number => (DataType::UInt64, false),
        Kind::Small => (DataType::UInt32, false),
        Kind::Word(_) => (DataType::Utf8, false),
        Kind::Sparse => (DataType::UInt64, true),
        Kind::Real => (DataType::Float64, true),
        Kind::Text => (DataType::Utf8, true),
    };
    Field::new(name, kind, may_be_empty)
}

/// A table that grows row by row.
pub struct Rows {
    schema: SchemaRef,
    cells: Vec<Cells>,
    /// What cells of texts name by their places.
    texts: Vec<String>,
    rows: usize,
    batches: Vec<RecordBatch>,
}

impl Rows {
    /// No rows yet.
    pub fn new(columns: &[Column]) -> Self {
        let columns = columns.iter().map(|column| (column.name, column.kind));
        Self::named(columns, Vec::new())
    }

    /// The same; cells of texts name these by their places.
    fn named<'a>(
        columns: impl Iterator<Item = (&'a str, Kind)> + Clone,
        texts: Vec<String>,
    ) -> Self {
        let fields = columns.clone().map(|(name, kind)| field(name, kind));
        Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            cells: columns.map(|(_, kind)| Cells::of(kind)).collect(),
            texts,
            rows: 0,
            batches: Vec::new(),
        }
    }

    /// The table of rows that are laid out.
    ///
    /// # Errors
    /// If Python cannot take it.
    pub fn of(laid: Laid) -> PyResult<PyTable> {
        let columns = laid
            .columns
            .iter()
            .map(|(name, kind)| (name.as_str(), *kind));
        let mut rows = Self::named(columns, laid.texts);
        laid.rows.iter().for_each(|row| rows.row(row));
        rows.finish()
    }

    /// Adds a row, a cell for every column.
    pub fn row(&mut self, cells: &[u64]) {
        for (column, &cell) in self.cells.iter_mut().zip(cells) {
            column.push(cell, &self.texts);
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
