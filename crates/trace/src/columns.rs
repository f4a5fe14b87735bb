//! Tables of numbers: Parquet, or CSV, plain or compressed. Used for traces in Parquet and for other files with one
//! row per request.
//!
//! ```
//! use floatgate_trace::columns::{Column, Kind, TableWriter};
//!
//! const COLUMNS: &[Column] = &[
//!     Column { name: "time_ns", kind: Kind::Rising },
//!     Column { name: "op", kind: Kind::Word(&["R", "W"]) },
//! ];
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("two.csv");
//! let mut table = TableWriter::create(&path, COLUMNS)?;
//! table.row(&[0, 1])?;
//! table.row(&[250, 0])?;
//! assert_eq!(table.finish()?.rows, 2);
//! assert_eq!(std::fs::read_to_string(&path)?, "time_ns,op\n0,W\n250,R\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Compression;
use crate::error::TraceError;
use crate::outfile::{Destination, OutFile};
use crate::sink::Sink;
use crate::source::base_name;

/// What a column holds. A cell is always a `u64`; [`NONE`] leaves the cell empty (null in Parquet, nothing in CSV) if the
/// kind allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit numbers that mostly go up, as times do: stored as differences.
    Rising,
    /// 64-bit numbers.
    Number,
    /// 32-bit numbers.
    Small,
    /// One of these words, by index.
    Word(&'static [&'static str]),
    /// 64-bit numbers; may be empty.
    Sparse,
    /// Numbers with a fraction, as [`f64::to_bits`]; may be empty.
    Real,
    /// Any text, by the number that [`TableWriter::text`] returned for it; may be empty.
    Text,
}

/// An empty cell: the bits of a number that no calculation yields and no count reaches.
pub const NONE: u64 = u64::MAX;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSummary {
    /// Rows in the file.
    pub rows: u64,
    /// The length of the file.
    pub file_bytes: u64,
}

enum Body {
    Csv(Box<Sink>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetTable>),
}

/// Writes a table row by row, in bounded memory.
///
/// The file takes its name in [`finish`](Self::finish); a writer that is dropped before leaves nothing behind
/// ([`outfile`](crate::outfile)).
pub struct TableWriter {
    path: PathBuf,
    columns: &'static [Column],
    body: Body,
    line: Vec<u8>,
    texts: Vec<String>,
    rows: u64,
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter")
            .field("path", &self.path)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// The kind of file, by its name.
enum Shape {
    Csv,
    Parquet,
}

fn shape_of(name: &str) -> Option<Shape> {
    match base_name(name).rsplit_once('.')?.1 {
        "csv" => Some(Shape::Csv),
        "parquet" if Compression::from_name(name) == Compression::None => Some(Shape::Parquet),
        _ => None,
    }
}

impl TableWriter {
    /// Starts a file: Parquet if its name ends in `.parquet`, CSV if in `.csv`, also compressed
    /// (`.csv.zst`).
    ///
    /// # Errors
    /// If the name has another ending, or the file cannot be created.
    pub fn create(
        path: impl AsRef<Path>,
        columns: &'static [Column],
    ) -> Result<TableWriter, TraceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let shape = shape_of(&name).ok_or_else(|| {
            TraceError::file(&name, "the file name does not tell the format")
                .hint("end it in .parquet, .csv or .csv with .gz, .xz, .zst or .bz2 after it")
        })?;
        let making = |e: io::Error| TraceError::output(path, &e);
        let body = match shape {
            #[cfg(feature = "parquet")]
            Shape::Parquet => {
                let file = Destination::of(path)?.create()?;
                let table = ParquetTable::new(file, "table", columns).map_err(making)?;
                Body::Parquet(Box::new(table))
            }
            #[cfg(not(feature = "parquet"))]
            Shape::Parquet => {
                return Err(
                    TraceError::file(&name, "this program was built without Parquet")
                        .hint("write .csv"),
                );
            }
            Shape::Csv => {
                let file = Destination::of(path)?.create()?;
                let sink = Sink::new(file, Compression::from_name(&name)).map_err(making)?;
                Body::Csv(Box::new(sink))
            }
        };
        let mut table = TableWriter {
            path: path.to_owned(),
            columns,
            body,
            line: Vec::with_capacity(256),
            texts: Vec::new(),
            rows: 0,
        };
        if let Body::Csv(sink) = &mut table.body {
            let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            writeln!(sink, "{}", names.join(",")).map_err(making)?;
        }
        Ok(table)
    }

    /// Stores a text and returns its cell for a column of [`Kind::Text`]. Texts stay in memory until the table is
    /// finished: store one that many rows share only once.
    pub fn text(&mut self, text: impl Into<String>) -> u64 {
        self.texts.push(text.into());
        self.texts.len() as u64 - 1
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the file cannot be written (the disk is full, say).
    ///
    /// # Panics
    /// If the number of cells is not the number of columns, or a word or text is unknown.
    pub fn row(&mut self, cells: &[u64]) -> Result<(), TraceError> {
        assert_eq!(cells.len(), self.columns.len(), "a cell for every column");
        self.rows += 1;
        let result = match &mut self.body {
            Body::Csv(sink) => {
                csv_line(self.columns, cells, &self.texts, &mut self.line);
                sink.write_all(&self.line)
            }
            #[cfg(feature = "parquet")]
            Body::Parquet(table) => table.row(cells, &self.texts),
        };
        result.map_err(|e| TraceError::output(&self.path, &e))
    }

    /// Ends the file and gives it its name, replacing a file of this name.
    ///
    /// # Errors
    /// If the end cannot be written or the file cannot be renamed; then nothing is left behind.
    pub fn finish(self) -> Result<TableSummary, TraceError> {
        let file = match self.body {
            Body::Csv(sink) => sink.finish(),
            #[cfg(feature = "parquet")]
            Body::Parquet(table) => table.finish(),
        };
        let file_bytes = file
            .and_then(OutFile::finish)
            .map_err(|e| TraceError::output(&self.path, &e))?;
        Ok(TableSummary {
            rows: self.rows,
            file_bytes,
        })
    }
}

fn csv_line(columns: &[Column], cells: &[u64], texts: &[String], line: &mut Vec<u8>) {
    line.clear();
    for (i, (column, &cell)) in columns.iter().zip(cells).enumerate() {
        if i > 0 {
            line.push(b',');
        }
        // Writing to memory cannot fail.
        let _ = match column.kind {
            Kind::Word(words) => line.write_all(words[cell as usize].as_bytes()),
            Kind::Sparse | Kind::Real | Kind::Text if cell == NONE => Ok(()),
            Kind::Real => write!(line, "{}", f64::from_bits(cell)),
            Kind::Text => quoted(&texts[cell as usize], line),
            _ => write!(line, "{cell}"),
        };
    }
    line.push(b'\n');
}

/// A text as in RFC 4180: in quotes if it would otherwise read as more than one cell.
fn quoted(text: &str, line: &mut Vec<u8>) -> io::Result<()> {
    if text.contains([',', '"', '\n', '\r']) {
        write!(line, "\"{}\"", text.replace('"', "\"\""))
    } else {
        line.write_all(text.as_bytes())
    }
}

#[cfg(feature = "parquet")]
pub(crate) use self::parquet_table::ParquetTable;

#[cfg(feature = "parquet")]
mod parquet_table {
    use std::io;
    use std::sync::Arc;

    use parquet::basic::{
        Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel,
    };
    use parquet::data_type::{
        ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
    };
    use parquet::errors::ParquetError;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{
        SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
    };
    use parquet::schema::types::{ColumnPath, Type};

    use super::{Column, Kind, NONE};
    use crate::outfile::OutFile;

    /// Rows of a row group: small enough that writing and reading take a few MB.
    const GROUP_ROWS: usize = 256 * 1024;

    /// Values of a column not yet written; unsigned ones keep their bits.
    enum Values {
        Long(Vec<i64>),
        Short(Vec<i32>),
        Word(&'static [&'static str], Vec<u8>),
        Sparse(Optional<i64>),
        Real(Optional<f64>),
        Text(Optional<ByteArray>),
    }

    /// Values of a column that may be empty: the values, and for every row whether it has one.
    struct Optional<T> {
        values: Vec<T>,
        present: Vec<i16>,
    }

    impl<T> Optional<T> {
        fn new() -> Self {
            Optional {
                values: Vec::new(),
                present: Vec::new(),
            }
        }

        fn push(&mut self, value: Option<T>) {
            self.present.push(value.is_some().into());
            self.values.extend(value);
        }

        fn flush<D: DataType<T = T>>(
            &mut self,
            writer: &mut SerializedColumnWriter<'_>,
        ) -> Result<(), ParquetError> {
            writer
                .typed::<D>()
                .write_batch(&self.values, Some(&self.present), None)?;
            self.values.clear();
            self.present.clear();
            Ok(())
        }
    }

    impl Values {
        fn of(kind: Kind) -> Values {
            match kind {
                Kind::Rising | Kind::Number => Values::Long(Vec::new()),
                Kind::Small => Values::Short(Vec::new()),
                Kind::Word(words) => Values::Word(words, Vec::new()),
                Kind::Sparse => Values::Sparse(Optional::new()),
                Kind::Real => Values::Real(Optional::new()),
                Kind::Text => Values::Text(Optional::new()),
            }
        }

        fn push(&mut self, cell: u64, texts: &[String]) {
            let there = cell != NONE;
            match self {
                Values::Long(values) => values.push(cell as i64),
                Values::Short(values) => values.push(cell as i32),
                Values::Word(words, values) => {
                    assert!((cell as usize) < words.len(), "no word {cell}");
                    values.push(cell as u8);
                }
                Values::Sparse(values) => values.push(there.then_some(cell as i64)),
                Values::Real(values) => values.push(there.then_some(f64::from_bits(cell))),
                Values::Text(values) => {
                    values.push(there.then(|| texts[cell as usize].as_str().into()));
                }
            }
        }

        /// Writes them as the next column of a row group and clears them.
        fn flush(
            &mut self,
            group: &mut SerializedRowGroupWriter<'_, OutFile>,
        ) -> Result<(), ParquetError> {
            let Some(mut writer) = group.next_column()? else {
                return Ok(());
            };
            match self {
                Values::Long(values) => {
                    writer
                        .typed::<Int64Type>()
                        .write_batch(values, None, None)?;
                    values.clear();
                }
                Values::Short(values) => {
                    writer
                        .typed::<Int32Type>()
                        .write_batch(values, None, None)?;
                    values.clear();
                }
                Values::Word(words, values) => {
                    let words: Vec<ByteArray> = words.iter().map(|&word| word.into()).collect();
                    let texts: Vec<ByteArray> = values
                        .iter()
                        .map(|&word| words[word as usize].clone())
                        .collect();
                    writer
                        .typed::<ByteArrayType>()
                        .write_batch(&texts, None, None)?;
                    values.clear();
                }
                Values::Sparse(values) => values.flush::<Int64Type>(&mut writer)?,
                Values::Real(values) => values.flush::<DoubleType>(&mut writer)?,
                Values::Text(values) => values.flush::<ByteArrayType>(&mut writer)?,
            }
            writer.close()
        }
    }

    /// A Parquet file, compressed with Zstandard.
    pub(crate) struct ParquetTable {
        file: SerializedFileWriter<OutFile>,
        values: Vec<Values>,
        rows: usize,
    }

    fn io_error(error: ParquetError) -> io::Error {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => *error,
                Err(other) => io::Error::other(other.to_string()),
            },
            other => io::Error::other(other),
        }
    }

    fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
        let (physical, logical) = match column.kind {
            Kind::Rising | Kind::Number | Kind::Sparse => {
                (Physical::INT64, Some(LogicalType::integer(64, false)))
            }
            Kind::Small => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Kind::Real => (Physical::DOUBLE, None),
            Kind::Word(_) | Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match column.kind {
            Kind::Sparse | Kind::Real | Kind::Text => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        Ok(Arc::new(
            Type::primitive_type_builder(column.name, physical)
                .with_repetition(repetition)
                .with_logical_type(logical)
                .build()?,
        ))
    }

    impl ParquetTable {
        pub fn new(file: OutFile, name: &str, columns: &[Column]) -> io::Result<Self> {
            Self::start(file, name, columns).map_err(io_error)
        }

        fn start(file: OutFile, name: &str, columns: &[Column]) -> Result<Self, ParquetError> {
            let mut properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
                .set_dictionary_enabled(true)
                .set_created_by("floatgate".to_owned());
            // Rising values hardly repeat.
            for column in columns.iter().filter(|column| column.kind == Kind::Rising) {
                let path = ColumnPath::from(column.name);
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
            let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
            let schema = Type::group_type_builder(name).with_fields(fields).build()?;
            let properties = Arc::new(properties.build());
            Ok(ParquetTable {
                file: SerializedFileWriter::new(file, Arc::new(schema), properties)?,
                values: columns
                    .iter()
                    .map(|column| Values::of(column.kind))
                    .collect(),
                rows: 0,
            })
        }

        pub fn row(&mut self, cells: &[u64], texts: &[String]) -> io::Result<()> {
            for (values, &cell) in self.values.iter_mut().zip(cells) {
                values.push(cell, texts);
            }
            self.rows += 1;
            if self.rows == GROUP_ROWS {
                self.group().map_err(io_error)?;
            }
            Ok(())
        }

        fn group(&mut self) -> Result<(), ParquetError> {
            let mut group = self.file.next_row_group()?;
            for values in &mut self.values {
                values.flush(&mut group)?;
            }
            group.close()?;
            self.rows = 0;
            Ok(())
        }

        pub fn finish(mut self) -> io::Result<OutFile> {
            if self.rows > 0 {
                self.group().map_err(io_error)?;
            }
            self.file.into_inner().map_err(io_error)
        }
    }
}
