//! Tables of numbers: Parquet, or CSV in plain or compressed. What traces are written with in Parquet, and
//! whatever else has a row a request.
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
use crate::source::base_name;
use crate::write::{Sink, give_name, new_file};

/// What a column holds. A cell is a `u64` in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit numbers that mostly go up, as times do: stored as differences.
    Rising,
    /// 64-bit numbers.
    Number,
    /// 32-bit numbers.
    Small,
    /// One of these words, by its place.
    Word(&'static [&'static str]),
}

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

/// Writes a table row by row, in memory that does not grow with it.
///
/// It writes to a temporary file in the same folder, which takes its name in [`finish`](Self::finish); a
/// writer that is dropped before leaves nothing behind.
pub struct TableWriter {
    path: PathBuf,
    temporary: tempfile::TempPath,
    columns: &'static [Column],
    body: Body,
    line: Vec<u8>,
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

/// How a file's name asks to be written.
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
    /// Starts a file: Parquet if its name ends in `.parquet`, CSV if in `.csv` or that and a compression
    /// (`.csv.zst`).
    ///
    /// # Errors
    /// If the name ends otherwise, or the file cannot be made.
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
        let making = |e: &io::Error| TraceError::io(&name, "cannot make the file", e);
        let (body, temporary) = match shape {
            #[cfg(feature = "parquet")]
            Shape::Parquet => {
                let (file, temporary) = new_file(path).map_err(|e| making(&e))?;
                let table = ParquetTable::new(file, "table", columns).map_err(|e| making(&e))?;
                (Body::Parquet(Box::new(table)), temporary)
            }
            #[cfg(not(feature = "parquet"))]
            Shape::Parquet => {
                return Err(
                    TraceError::file(&name, "this program was built without Parquet")
                        .hint("write .csv"),
                );
            }
            Shape::Csv => {
                let (file, temporary) = new_file(path).map_err(|e| making(&e))?;
                let sink =
                    Sink::new(file, Compression::from_name(&name)).map_err(|e| making(&e))?;
                (Body::Csv(Box::new(sink)), temporary)
            }
        };
        let mut table = TableWriter {
            path: path.to_owned(),
            temporary,
            columns,
            body,
            line: Vec::with_capacity(256),
            rows: 0,
        };
        if let Body::Csv(sink) = &mut table.body {
            let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            writeln!(sink, "{}", names.join(",")).map_err(|e| making(&e))?;
        }
        Ok(table)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the file cannot be written (the disk is full, say).
    ///
    /// # Panics
    /// If the row has not as many cells as there are columns, or a word is not in its column's list.
    pub fn row(&mut self, cells: &[u64]) -> Result<(), TraceError> {
        assert_eq!(cells.len(), self.columns.len(), "a cell for every column");
        self.rows += 1;
        let result = match &mut self.body {
            Body::Csv(sink) => {
                csv_line(self.columns, cells, &mut self.line);
                sink.write_all(&self.line)
            }
            #[cfg(feature = "parquet")]
            Body::Parquet(table) => table.row(cells),
        };
        result.map_err(|e| TraceError::io(&self.path.display().to_string(), "cannot write", &e))
    }

    /// Ends the file and gives it its name, replacing a file of this name.
    ///
    /// # Errors
    /// If the end cannot be written or the file not be renamed; nothing is left behind then.
    pub fn finish(self) -> Result<TableSummary, TraceError> {
        let name = self.path.display().to_string();
        let failed = |e: io::Error| TraceError::io(&name, "cannot write", &e);
        match self.body {
            Body::Csv(sink) => sink.finish().map_err(failed)?,
            #[cfg(feature = "parquet")]
            Body::Parquet(table) => table.finish().map_err(failed)?,
        }
        let file_bytes = give_name(self.temporary, &self.path).map_err(failed)?;
        Ok(TableSummary {
            rows: self.rows,
            file_bytes,
        })
    }
}

fn csv_line(columns: &[Column], cells: &[u64], line: &mut Vec<u8>) {
    line.clear();
    for (i, (column, &cell)) in columns.iter().zip(cells).enumerate() {
        if i > 0 {
            line.push(b',');
        }
        match column.kind {
            Kind::Word(words) => line.extend_from_slice(words[cell as usize].as_bytes()),
            _ => {
                let _ = write!(line, "{cell}");
            }
        }
    }
    line.push(b'\n');
}

#[cfg(feature = "parquet")]
pub(crate) use self::parquet_table::ParquetTable;

#[cfg(feature = "parquet")]
mod parquet_table {
    use std::fs::File;
    use std::io;
    use std::sync::Arc;

    use parquet::basic::{
        Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel,
    };
    use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
    use parquet::errors::ParquetError;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::types::{ColumnPath, Type};

    use super::{Column, Kind};

    /// Rows of a row group: small enough that writing and reading take a few MB.
    const GROUP_ROWS: usize = 256 * 1024;

    /// The values of a column that are not written yet. Unsigned columns: the bits are the same.
    enum Values {
        Long(Vec<i64>),
        Short(Vec<i32>),
        Word(&'static [&'static str], Vec<u8>),
    }

    impl Values {
        fn of(kind: Kind) -> Values {
            match kind {
                Kind::Rising | Kind::Number => Values::Long(Vec::new()),
                Kind::Small => Values::Short(Vec::new()),
                Kind::Word(words) => Values::Word(words, Vec::new()),
            }
        }

        fn push(&mut self, cell: u64) {
            match self {
                Values::Long(values) => values.push(cell as i64),
                Values::Short(values) => values.push(cell as i32),
                Values::Word(words, values) => {
                    assert!((cell as usize) < words.len(), "no word {cell}");
                    values.push(cell as u8);
                }
            }
        }

        /// Writes them as the next column of a row group and forgets them.
        fn flush(
            &mut self,
            group: &mut SerializedRowGroupWriter<'_, File>,
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
            }
            writer.close()
        }
    }

    /// A Parquet file, compressed with Zstandard.
    pub(crate) struct ParquetTable {
        file: SerializedFileWriter<File>,
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
            Kind::Rising | Kind::Number => (Physical::INT64, LogicalType::integer(64, false)),
            Kind::Small => (Physical::INT32, LogicalType::integer(32, false)),
            Kind::Word(_) => (Physical::BYTE_ARRAY, LogicalType::String),
        };
        Ok(Arc::new(
            Type::primitive_type_builder(column.name, physical)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(Some(logical))
                .build()?,
        ))
    }

    impl ParquetTable {
        pub fn new(file: File, name: &str, columns: &[Column]) -> io::Result<Self> {
            Self::start(file, name, columns).map_err(io_error)
        }

        fn start(file: File, name: &str, columns: &[Column]) -> Result<Self, ParquetError> {
            let mut properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
                .set_dictionary_enabled(true)
                .set_created_by("floatgate".to_owned());
            // What goes up hardly repeats.
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

        pub fn row(&mut self, cells: &[u64]) -> io::Result<()> {
            for (values, &cell) in self.values.iter_mut().zip(cells) {
                values.push(cell);
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

        pub fn finish(mut self) -> io::Result<()> {
            if self.rows > 0 {
                self.group().map_err(io_error)?;
            }
            self.file.into_inner().map_err(io_error)?.sync_all()
        }
    }
}
