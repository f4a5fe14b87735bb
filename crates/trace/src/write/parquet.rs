//! Parquet with the columns `arrival_ns`, `op`, `volume`, `offset`, `bytes`, compressed with Zstandard.

use std::fs::File;
use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::{Op, Request};

/// Rows of a row group: small enough that writing and reading take a few MB.
const GROUP_ROWS: usize = 256 * 1024;

pub(crate) struct ParquetWriter {
    file: SerializedFileWriter<File>,
    arrival: Vec<i64>,
    op: Vec<Op>,
    volume: Vec<i32>,
    offset: Vec<i64>,
    bytes: Vec<i64>,
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

fn integer(name: &str, bits: i8) -> Result<Arc<Type>, ParquetError> {
    let physical = if bits == 32 {
        Physical::INT32
    } else {
        Physical::INT64
    };
    let unsigned = LogicalType::integer(bits, false);
    Ok(Arc::new(
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(unsigned))
            .build()?,
    ))
}

fn schema() -> Result<Arc<Type>, ParquetError> {
    let op = Type::primitive_type_builder("op", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::String))
        .build()?;
    Ok(Arc::new(
        Type::group_type_builder("trace")
            .with_fields(vec![
                integer("arrival_ns", 64)?,
                Arc::new(op),
                integer("volume", 32)?,
                integer("offset", 64)?,
                integer("bytes", 64)?,
            ])
            .build()?,
    ))
}

impl ParquetWriter {
    pub fn new(file: File) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(io_error)?))
            .set_dictionary_enabled(true)
            // Arrivals hardly repeat and mostly go up.
            .set_column_dictionary_enabled(ColumnPath::from("arrival_ns"), false)
            .set_column_encoding(
                ColumnPath::from("arrival_ns"),
                Encoding::DELTA_BINARY_PACKED,
            )
            .set_created_by("floatgate".to_owned())
            .build();
        let file =
            SerializedFileWriter::new(file, schema().map_err(io_error)?, Arc::new(properties))
                .map_err(io_error)?;
        Ok(ParquetWriter {
            file,
            arrival: Vec::new(),
            op: Vec::new(),
            volume: Vec::new(),
            offset: Vec::new(),
            bytes: Vec::new(),
        })
    }

    pub fn write(&mut self, request: &Request) -> io::Result<()> {
        // The columns are unsigned: the bits are the same.
        self.arrival.push(request.arrival_ns as i64);
        self.op.push(request.op);
        self.volume.push(request.volume as i32);
        self.offset.push(request.offset as i64);
        self.bytes.push(request.bytes as i64);
        if self.op.len() == GROUP_ROWS {
            self.group().map_err(io_error)?;
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        let names = [Op::Read, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush]
            .map(|op| ByteArray::from(op.letter().to_string().into_bytes()));
        let ops: Vec<ByteArray> = self
            .op
            .iter()
            .map(|&op| names[op as usize].clone())
            .collect();
        let mut group = self.file.next_row_group()?;
        let mut column = 0;
        while let Some(mut writer) = group.next_column()? {
            match column {
                0 => writer
                    .typed::<Int64Type>()
                    .write_batch(&self.arrival, None, None)?,
                1 => writer
                    .typed::<ByteArrayType>()
                    .write_batch(&ops, None, None)?,
                2 => writer
                    .typed::<Int32Type>()
                    .write_batch(&self.volume, None, None)?,
                3 => writer
                    .typed::<Int64Type>()
                    .write_batch(&self.offset, None, None)?,
                _ => writer
                    .typed::<Int64Type>()
                    .write_batch(&self.bytes, None, None)?,
            };
            writer.close()?;
            column += 1;
        }
        group.close()?;
        self.arrival.clear();
        self.op.clear();
        self.volume.clear();
        self.offset.clear();
        self.bytes.clear();
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        if !self.op.is_empty() {
            self.group().map_err(io_error)?;
        }
        let file = self.file.into_inner().map_err(io_error)?;
        file.sync_all()
    }
}
