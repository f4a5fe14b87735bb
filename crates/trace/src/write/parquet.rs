//! Traces in Parquet: the columns of [`crate::table`].

use std::io;

use crate::Request;
use crate::columns::ParquetTable;
use crate::outfile::OutFile;
use crate::table::{COLUMNS, cells};

pub(crate) struct ParquetWriter(ParquetTable);

impl ParquetWriter {
    pub fn new(file: OutFile) -> io::Result<Self> {
        ParquetTable::new(file, "trace", COLUMNS).map(ParquetWriter)
    }

    pub fn write(&mut self, request: &Request) -> io::Result<()> {
        self.0.row(&cells(request), &[])
    }

    pub fn finish(self) -> io::Result<OutFile> {
        self.0.finish()
    }
}
