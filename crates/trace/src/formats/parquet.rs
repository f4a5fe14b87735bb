//! Parquet with the columns `arrival_ns`, `op`, `volume`, `offset`, `bytes`.
//!
//! `op` is text (`R`, `W`, `T`, `Z`, `F` or the words `read`, `write`, `trim`, `discard`, `write_zeroes`,
//! `flush`), the others are integers of 32 or 64 bits. Missing `arrival_ns` and `volume` are 0;
//! further columns are ignored. Columns may be nullable, but not hold a null.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{Decoder, Parsed, request};
use crate::Op;
use crate::error::{Fault, Position, Stop, TraceError};
use crate::input::Input;
use crate::volumes::Volumes;

/// Rows decoded at a time.
const BATCH: usize = 8192;

/// The columns, in this order everywhere in this file.
const COLUMNS: [&str; 5] = ["arrival_ns", "op", "volume", "offset", "bytes"];

/// A damaged file can make the library panic; that is an error of the file like any other.
fn guarded<T>(f: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(Fault::new("the Parquet file is damaged")))
}

fn damaged(error: ParquetError) -> Fault {
    Fault::new(format!("the Parquet file cannot be read: {error}"))
        .hint("copy or write the file again")
}

/// A column of integers.
enum Integers {
    I32(ColumnReaderImpl<Int32Type>, Vec<i32>, bool),
    I64(ColumnReaderImpl<Int64Type>, Vec<i64>, bool),
}

/// The columns of one row group.
struct Group {
    rows_left: u64,
    op: ColumnReaderImpl<ByteArrayType>,
    integers: [Option<Integers>; 5],
}

pub(crate) struct ParquetDecoder {
    reader: SerializedFileReader<File>,
    /// The same file, for reading page headers.
    file: File,
    /// Index of each of [`COLUMNS`] among the file's columns.
    places: [Option<usize>; 5],
    group: Option<Group>,
    next_group: usize,
    ops: Vec<ByteArray>,
    values: [Vec<u64>; 5],
    levels: Vec<i16>,
    at: usize,
    row: u64,
    total_rows: u64,
    progress: Arc<AtomicU64>,
    file_bytes: u64,
    volumes: Volumes,
    bad: Option<String>,
}

impl ParquetDecoder {
    /// `path` is the file if it can be opened as it is (not compressed as a whole); otherwise `input`
    /// goes to a temporary file first, since the footer is at the end.
    pub fn new(input: Input, path: Option<&Path>, progress: Arc<AtomicU64>) -> Result<Self, Stop> {
        let file = match path {
            Some(path) => File::open(path)?,
            None => {
                let failed = |e: io::Error| {
                    let what = "a Parquet file that is compressed or comes from a pipe";
                    Stop::Placed(Box::new(TraceError::temporary(what, &e)))
                };
                let mut file = tempfile::tempfile().map_err(failed)?;
                let mut rest = input.into_rest();
                let mut buffer = vec![0; 64 << 10];
                loop {
                    match rest.read(&mut buffer)? {
                        0 => break,
                        n => file.write_all(&buffer[..n]).map_err(failed)?,
                    }
                }
                file.rewind()?;
                file
            }
        };
        let file_bytes = file.metadata()?.len();
        super::parquet_check::check(&file, file_bytes)?;
        let same = file.try_clone()?;
        Ok(guarded(|| Self::open(file, same, file_bytes, progress))?)
    }

    fn open(
        file: File,
        same: File,
        file_bytes: u64,
        progress: Arc<AtomicU64>,
    ) -> Result<Self, Fault> {
        let reader = SerializedFileReader::new(file).map_err(damaged)?;
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let mut places = [None; 5];
        for (place, column) in schema.columns().iter().enumerate() {
            let Some(i) = COLUMNS
                .iter()
                .position(|&name| column.path().string() == name)
            else {
                continue;
            };
            let fits = match column.physical_type() {
                Physical::BYTE_ARRAY => i == 1,
                Physical::INT32 | Physical::INT64 => i != 1,
                _ => false,
            };
            if !fits || column.max_rep_level() > 0 {
                return Err(Fault::new(format!(
                    "the column '{}' has the wrong type {}",
                    COLUMNS[i],
                    column.physical_type()
                ))
                .hint("op is text, the other columns are integers of 32 or 64 bits"));
            }
            places[i] = Some(place);
        }
        for i in [1, 3, 4] {
            if places[i].is_none() {
                let names: Vec<String> = schema
                    .columns()
                    .iter()
                    .take(20)
                    .map(|c| c.path().string())
                    .collect();
                return Err(Fault::new(format!(
                    "the Parquet file has no column '{}'; it has: {}",
                    COLUMNS[i],
                    names.join(", ")
                ))
                .hint("a trace has the columns op, offset and bytes, and may have arrival_ns and volume"));
            }
        }
        let total_rows = metadata
            .row_groups()
            .iter()
            .map(|g| u64::try_from(g.num_rows()).unwrap_or(0))
            .fold(0, u64::saturating_add);
        Ok(ParquetDecoder {
            reader,
            file: same,
            places,
            group: None,
            next_group: 0,
            ops: Vec::new(),
            values: Default::default(),
            levels: Vec::new(),
            at: 0,
            row: 0,
            total_rows,
            progress,
            file_bytes,
            volumes: Volumes::default(),
            bad: None,
        })
    }

    /// Opens the next row group; false after the last.
    fn open_group(&mut self) -> Result<bool, Fault> {
        if self.next_group >= self.reader.num_row_groups() {
            return Ok(false);
        }
        let group = self
            .reader
            .get_row_group(self.next_group)
            .map_err(damaged)?;
        self.next_group += 1;
        let rows = u64::try_from(group.metadata().num_rows())
            .map_err(|_| Fault::new("a row group has a negative number of rows"))?;
        let mut op = None;
        let mut integers = [const { None }; 5];
        for (i, place) in self.places.iter().enumerate() {
            let Some(place) = *place else { continue };
            let chunk = group.metadata().column(place);
            let (start, length) = chunk.byte_range();
            super::parquet_check::pages(&self.file, start, length)?;
            let descriptor = chunk.column_descr_ptr();
            let unsigned = matches!(
                descriptor.logical_type_ref(),
                Some(parquet::basic::LogicalType::Integer(integer)) if !integer.is_signed
            );
            match group.get_column_reader(place).map_err(damaged)? {
                ColumnReader::ByteArrayColumnReader(reader) if i == 1 => op = Some(reader),
                ColumnReader::Int32ColumnReader(reader) if i != 1 => {
                    integers[i] = Some(Integers::I32(reader, Vec::new(), unsigned));
                }
                ColumnReader::Int64ColumnReader(reader) if i != 1 => {
                    integers[i] = Some(Integers::I64(reader, Vec::new(), unsigned));
                }
                _ => return Err(Fault::new("a row group does not match the schema")),
            }
        }
        let op = op.ok_or_else(|| Fault::new("a row group does not match the schema"))?;
        self.group = Some(Group {
            rows_left: rows,
            op,
            integers,
        });
        Ok(true)
    }

    /// Decodes the next rows; false at the end of the file.
    fn fill(&mut self) -> Result<bool, Fault> {
        self.at = 0;
        self.ops.clear();
        for values in &mut self.values {
            values.clear();
        }
        loop {
            if self.group.as_ref().is_none_or(|g| g.rows_left == 0) && !self.open_group()? {
                return Ok(false);
            }
            let levels = &mut self.levels;
            let Some(group) = &mut self.group else {
                return Ok(false);
            };
            if group.rows_left == 0 {
                continue;
            }
            let want = group.rows_left.min(BATCH as u64) as usize;
            levels.clear();
            let (rows, values, _) = group
                .op
                .read_records(want, Some(levels), None, &mut self.ops)
                .map_err(damaged)?;
            whole(rows, values, want, 1)?;
            for (i, integers) in group.integers.iter_mut().enumerate() {
                levels.clear();
                let out = &mut self.values[i];
                let negative = || {
                    Fault::new(format!(
                        "the column '{}' holds a negative number",
                        COLUMNS[i]
                    ))
                };
                match integers {
                    Some(Integers::I32(reader, buffer, unsigned)) => {
                        buffer.clear();
                        let (rows, values, _) = reader
                            .read_records(want, Some(levels), None, buffer)
                            .map_err(damaged)?;
                        whole(rows, values, want, i)?;
                        for &v in buffer.iter() {
                            out.push(if *unsigned {
                                u64::from(v as u32)
                            } else {
                                u64::try_from(v).map_err(|_| negative())?
                            });
                        }
                    }
                    Some(Integers::I64(reader, buffer, unsigned)) => {
                        buffer.clear();
                        let (rows, values, _) = reader
                            .read_records(want, Some(levels), None, buffer)
                            .map_err(damaged)?;
                        whole(rows, values, want, i)?;
                        for &v in buffer.iter() {
                            out.push(if *unsigned {
                                v as u64
                            } else {
                                u64::try_from(v).map_err(|_| negative())?
                            });
                        }
                    }
                    None => out.resize(want, 0),
                }
            }
            group.rows_left -= want as u64;
            let done = (self.row + want as u64) as f64 / self.total_rows.max(1) as f64;
            self.progress
                .store((self.file_bytes as f64 * done) as u64, Ordering::Relaxed);
            return Ok(true);
        }
    }
}

/// Checks that a column returned all requested rows, and no nulls.
fn whole(rows: usize, values: usize, want: usize, column: usize) -> Result<(), Fault> {
    if rows != want {
        return Err(Fault::new(format!(
            "the column '{}' is shorter than its row group",
            COLUMNS[column]
        )));
    }
    if values != want {
        return Err(
            Fault::new(format!("the column '{}' holds a null", COLUMNS[column]))
                .hint("every request needs a value in every column"),
        );
    }
    Ok(())
}

fn op(text: &[u8]) -> Option<Op> {
    if let [letter] = text {
        return Op::from_letter(*letter);
    }
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    if is("read") {
        Some(Op::Read)
    } else if is("write") {
        Some(Op::Write)
    } else if is("trim") || is("discard") {
        Some(Op::Trim)
    } else if is("write_zeroes") {
        Some(Op::WriteZeroes)
    } else if is("flush") {
        Some(Op::Flush)
    } else {
        None
    }
}

impl Decoder for ParquetDecoder {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        if self.at >= self.ops.len() && !guarded(|| self.fill())? {
            return Ok(None);
        }
        let at = self.at;
        self.at += 1;
        self.row += 1;
        let text = self.ops[at].data();
        let Some(op) = op(text) else {
            self.bad = Some(crate::error::excerpt(text));
            return Err(super::unknown_op(text, "R, W, T, Z or F").into());
        };
        let [time, _, volume, offset, bytes] =
            [0, 1, 2, 3, 4].map(|i| self.values[i].get(at).copied().unwrap_or(0));
        let volume = u32::try_from(volume)
            .map_err(|_| Fault::new(format!("the volume {volume} does not fit in 32 bits")))?;
        Ok(Some(Parsed::One(request(time, op, volume, offset, bytes))))
    }

    fn position(&self) -> Position {
        Position::Record(self.row)
    }

    fn excerpt(&self) -> Option<String> {
        self.bad.clone()
    }

    fn first_skipped(&self) -> Option<(Position, String)> {
        None
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
    }
}
