//! Parquet: Floatgate's own columns `arrival_ns`, `op`, `volume`, `offset`, `bytes`, `stream`, or those that a [`Layout`] names.
//!
//! In its own files `op` is text (`R`, `W`, `T`, `Z`, `F` or their words), the others are integers of 32 or 64 bits, and
//! missing `arrival_ns` and `volume` are 0; further columns are ignored. Columns may be nullable, but only `stream` may hold
//! a null: the request names none.

mod places;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{Decoder, Parsed, request, stream_of};
use crate::error::{Fault, Position, Stop, TraceError};
use crate::input::Input;
use crate::layout::{Layout, Ops, op_of};
use crate::volumes::Volumes;
use crate::{Op, Request, Stream};
use places::{own_places, places_of};

/// Rows decoded at a time.
const BATCH: usize = 8192;

/// What a column holds; the indices of everything in this file that is there once a column.
const TIME: usize = 0;
const OP: usize = 1;
const VOLUME: usize = 2;
const OFFSET: usize = 3;
const SIZE: usize = 4;
const STREAM: usize = 5;
const COLUMNS: usize = 6;
const WHAT: [&str; COLUMNS] = ["time", "operation", "volume", "offset", "size", "stream"];

/// A damaged file can make the library panic; that is an error of the file like any other.
fn guarded<T>(f: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(Fault::new("the Parquet file is damaged")))
}

fn damaged(error: ParquetError) -> Fault {
    Fault::new(format!("the Parquet file cannot be read: {error}"))
        .hint("copy or write the file again")
}

/// Reads the values of a column in a row group.
enum Cells {
    I32(ColumnReaderImpl<Int32Type>, Vec<i32>, bool),
    I64(ColumnReaderImpl<Int64Type>, Vec<i64>, bool),
    F32(ColumnReaderImpl<FloatType>, Vec<f32>),
    F64(ColumnReaderImpl<DoubleType>, Vec<f64>),
    Bool(ColumnReaderImpl<BoolType>, Vec<bool>),
    Text(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
}

/// A value, whatever its type.
enum Value<'a> {
    Whole(u64),
    Negative,
    Real(f64),
    Bool(bool),
    Text(&'a [u8]),
}

impl Cells {
    /// Reads up to `want` rows; returns how many, and how many of their values are no nulls.
    fn read(&mut self, want: usize, levels: &mut Vec<i16>) -> Result<(usize, usize), Fault> {
        fn read<T: DataType>(
            reader: &mut ColumnReaderImpl<T>,
            values: &mut Vec<T::T>,
            want: usize,
            levels: &mut Vec<i16>,
        ) -> Result<(usize, usize), Fault> {
            values.clear();
            levels.clear();
            let read = reader.read_records(want, Some(levels), None, values);
            read.map(|(rows, values, _)| (rows, values))
                .map_err(damaged)
        }
        match self {
            Cells::I32(reader, values, _) => read(reader, values, want, levels),
            Cells::I64(reader, values, _) => read(reader, values, want, levels),
            Cells::F32(reader, values) => read(reader, values, want, levels),
            Cells::F64(reader, values) => read(reader, values, want, levels),
            Cells::Bool(reader, values) => read(reader, values, want, levels),
            Cells::Text(reader, values) => read(reader, values, want, levels),
        }
    }

    fn value(&self, row: usize) -> Value<'_> {
        match self {
            Cells::I32(_, values, true) => Value::Whole(u64::from(values[row] as u32)),
            Cells::I32(_, values, false) => whole(values[row].into()),
            Cells::I64(_, values, true) => Value::Whole(values[row] as u64),
            Cells::I64(_, values, false) => whole(values[row]),
            Cells::F32(_, values) => Value::Real(values[row].into()),
            Cells::F64(_, values) => Value::Real(values[row]),
            Cells::Bool(_, values) => Value::Bool(values[row]),
            Cells::Text(_, values) => Value::Text(values[row].data()),
        }
    }
}

fn whole(value: i64) -> Value<'static> {
    u64::try_from(value).map_or(Value::Negative, Value::Whole)
}

/// The columns of one row group.
struct Group {
    rows_left: u64,
    cells: [Option<Cells>; COLUMNS],
    /// The streams of the decoded rows, if there is a column of them.
    streams: Vec<Stream>,
}

pub(crate) struct ParquetDecoder {
    reader: SerializedFileReader<File>,
    /// The same file, for reading page headers.
    file: File,
    /// What the user says of the columns; of Floatgate's own, nothing need be said.
    layout: Option<Layout>,
    /// The index of each column among the file's columns.
    places: [Option<usize>; COLUMNS],
    group: Option<Group>,
    next_group: usize,
    levels: Vec<i16>,
    /// Rows decoded, and those of them returned.
    decoded: usize,
    at: usize,
    row: u64,
    total_rows: u64,
    progress: Arc<AtomicU64>,
    file_bytes: u64,
    volumes: Volumes,
}

impl ParquetDecoder {
    /// `path` is the file if it can be opened as it is (not compressed as a whole); otherwise `input`
    /// goes to a temporary file first, since the footer is at the end.
    pub fn new(
        input: Input,
        path: Option<&Path>,
        layout: Option<Layout>,
        progress: Arc<AtomicU64>,
    ) -> Result<Self, Stop> {
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
        Ok(guarded(|| {
            Self::open(file, same, file_bytes, layout, progress)
        })?)
    }

    fn open(
        file: File,
        same: File,
        file_bytes: u64,
        layout: Option<Layout>,
        progress: Arc<AtomicU64>,
    ) -> Result<Self, Fault> {
        let reader = SerializedFileReader::new(file).map_err(damaged)?;
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let places = match &layout {
            Some(layout) => places_of(schema, layout)?,
            None => own_places(schema)?,
        };
        let total_rows = metadata
            .row_groups()
            .iter()
            .map(|g| u64::try_from(g.num_rows()).unwrap_or(0))
            .fold(0, u64::saturating_add);
        Ok(ParquetDecoder {
            reader,
            file: same,
            layout,
            places,
            group: None,
            next_group: 0,
            levels: Vec::new(),
            decoded: 0,
            at: 0,
            row: 0,
            total_rows,
            progress,
            file_bytes,
            volumes: Volumes::default(),
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
        let mut cells = [const { None }; COLUMNS];
        for (cells, place) in cells.iter_mut().zip(self.places) {
            let Some(place) = place else { continue };
            let chunk = group.metadata().column(place);
            let (start, length) = chunk.byte_range();
            super::parquet_check::pages(&self.file, start, length)?;
            let descriptor = chunk.column_descr_ptr();
            let unsigned = matches!(
                descriptor.logical_type_ref(),
                Some(parquet::basic::LogicalType::Integer(integer)) if !integer.is_signed
            );
            *cells = Some(match group.get_column_reader(place).map_err(damaged)? {
                ColumnReader::Int32ColumnReader(reader) => Cells::I32(reader, Vec::new(), unsigned),
                ColumnReader::Int64ColumnReader(reader) => Cells::I64(reader, Vec::new(), unsigned),
                ColumnReader::FloatColumnReader(reader) => Cells::F32(reader, Vec::new()),
                ColumnReader::DoubleColumnReader(reader) => Cells::F64(reader, Vec::new()),
                ColumnReader::BoolColumnReader(reader) => Cells::Bool(reader, Vec::new()),
                ColumnReader::ByteArrayColumnReader(reader) => Cells::Text(reader, Vec::new()),
                _ => return Err(Fault::new("a row group does not match the schema")),
            });
        }
        self.group = Some(Group {
            rows_left: rows,
            cells,
            streams: Vec::new(),
        });
        Ok(true)
    }

    /// Decodes the next rows; false at the end of the file.
    fn fill(&mut self) -> Result<bool, Fault> {
        (self.at, self.decoded) = (0, 0);
        while self.group.as_ref().is_none_or(|group| group.rows_left == 0) {
            if !self.open_group()? {
                return Ok(false);
            }
        }
        let Some(group) = &mut self.group else {
            return Ok(false);
        };
        let want = group.rows_left.min(BATCH as u64) as usize;
        for (column, cells) in group.cells.iter_mut().enumerate() {
            let Some(cells) = cells else { continue };
            let (rows, mut values) = cells.read(want, &mut self.levels)?;
            if column == STREAM {
                group.streams.clear();
                values += spread(cells, values, rows, &self.levels, &mut group.streams)?;
            }
            all_there(rows, values, want, WHAT[column])?;
        }
        group.rows_left -= want as u64;
        self.decoded = want;
        let done = (self.row + want as u64) as f64 / self.total_rows.max(1) as f64;
        self.progress
            .store((self.file_bytes as f64 * done) as u64, Ordering::Relaxed);
        Ok(true)
    }

    /// The next of the decoded rows.
    fn row(&mut self, row: usize) -> Result<Parsed, Fault> {
        let Some(group) = &self.group else {
            return Ok(Parsed::Skip);
        };
        let value = |what: usize| group.cells[what].as_ref().map(|cells| cells.value(row));
        let layout = self.layout.as_ref();
        let op = match (layout.map(|layout| &layout.op), value(OP)) {
            (Some(Ops::All(op)), _) => *op,
            (Some(Ops::Column(_, words)), Some(value)) => op_in(value, words)?,
            (None, Some(value)) => op_in(value, &[])?,
            (_, None) => return Err(Fault::new("a row group does not match the schema")),
        };
        let unit = |what: usize| match (layout, what) {
            (Some(layout), TIME) => layout.time.as_ref().map_or(1, |column| column.unit),
            (Some(layout), OFFSET) => layout.offset.unit,
            (Some(layout), SIZE) => layout.size.unit,
            _ => 1,
        };
        let number = |what: usize| match value(what) {
            Some(value) => scaled(value, unit(what), what),
            None => Ok(0),
        };
        let volume = match value(VOLUME) {
            Some(Value::Text(name)) => self.volumes.number(name)?,
            _ => {
                let volume = number(VOLUME)?;
                u32::try_from(volume).map_err(|_| {
                    Fault::new(format!("the volume {volume} does not fit in 32 bits"))
                })?
            }
        };
        let (time, offset, size) = (number(TIME)?, number(OFFSET)?, number(SIZE)?);
        let stream = group.streams.get(row).copied().unwrap_or_default();
        let request = request(time, op, volume, offset, size);
        Ok(Parsed::One(Request { stream, ..request }))
    }
}

/// The streams of so many rows, of which these have a value; returns how many have none. Without definition levels the
/// column cannot hold a null.
fn spread(
    cells: &Cells,
    values: usize,
    rows: usize,
    levels: &[i16],
    streams: &mut Vec<Stream>,
) -> Result<usize, Fault> {
    let highest = levels.iter().max().copied().unwrap_or_default();
    let is_null = |row: usize| values < rows && levels.get(row).is_none_or(|&l| l < highest);
    let mut next = 0;
    for row in 0..rows {
        if values == 0 || is_null(row) {
            streams.push(Stream::NONE);
            continue;
        }
        if next == values {
            return Err(Fault::new("the column with the stream is damaged"));
        }
        streams.push(stream_of(scaled(cells.value(next), 1, STREAM)?)?);
        next += 1;
    }
    Ok(rows - next)
}

/// Checks that a column returned all requested rows, and no nulls.
fn all_there(rows: usize, values: usize, want: usize, what: &str) -> Result<(), Fault> {
    if rows != want {
        return Err(Fault::new(format!(
            "the column with the {what} is shorter than its row group"
        )));
    }
    if values != want {
        return Err(
            Fault::new(format!("the column with the {what} holds a null"))
                .hint("every request needs a value in every column"),
        );
    }
    Ok(())
}

fn op_in(value: Value<'_>, words: &[(String, Op)]) -> Result<Op, Fault> {
    let number;
    let text = match value {
        Value::Text(text) => text,
        Value::Bool(true) => b"true",
        Value::Bool(false) => b"false",
        Value::Whole(n) => {
            number = n.to_string();
            number.as_bytes()
        }
        Value::Negative | Value::Real(_) => b"a negative number",
    };
    op_of(text, words).ok_or_else(|| {
        super::unknown_op(text, "R, W, T, Z or F")
            .hint("another word has its meaning said, as in op=NAME:1=W/0=R")
    })
}

/// A number in nanoseconds or bytes.
fn scaled(value: Value<'_>, unit: u64, what: usize) -> Result<u64, Fault> {
    let too_large = || {
        Fault::new(format!("the {} is too large", WHAT[what]))
            .hint("check the unit that is given for it")
    };
    match value {
        Value::Whole(number) => number.checked_mul(unit).ok_or_else(too_large),
        // Addresses that were written as numbers with a fraction have none.
        Value::Real(real) if real >= 0.0 && (what == TIME || real.fract() == 0.0) => {
            let scaled = (real * unit as f64).round();
            match scaled < u64::MAX as f64 {
                true => Ok(scaled as u64),
                false => Err(too_large()),
            }
        }
        Value::Negative => Err(Fault::new(format!("the {} is negative", WHAT[what]))),
        Value::Real(real) => Err(Fault::new(format!(
            "the {} is no whole number: {real}",
            WHAT[what]
        ))),
        Value::Bool(_) | Value::Text(_) => {
            Err(Fault::new(format!("the {} is no number", WHAT[what])))
        }
    }
}

impl Decoder for ParquetDecoder {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        if self.at >= self.decoded && !guarded(|| self.fill())? {
            return Ok(None);
        }
        self.at += 1;
        self.row += 1;
        Ok(Some(self.row(self.at - 1)?))
    }

    fn position(&self) -> Position {
        Position::Record(self.row)
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
    }
}
