//! Traces in Parquet: the columns `arrival_ns`, `op`, `volume`, `offset`, `bytes`, `stream`.

use std::io;

use crate::Request;
use crate::columns::{Column, Kind, NONE, ParquetTable};
use crate::outfile::OutFile;

/// The letters of [`crate::Op`], in its order.
const OPS: &[&str] = &["R", "W", "T", "Z", "F"];

const COLUMNS: &[Column] = &[
    Column {
        name: "arrival_ns",
        kind: Kind::Rising,
    },
    Column {
        name: "op",
        kind: Kind::Word(OPS),
    },
    Column {
        name: "volume",
        kind: Kind::Small,
    },
    Column {
        name: "offset",
        kind: Kind::Number,
    },
    Column {
        name: "bytes",
        kind: Kind::Number,
    },
    Column {
        name: "stream",
        kind: Kind::Sparse,
    },
];

pub(crate) struct ParquetWriter(ParquetTable);

impl ParquetWriter {
    pub fn new(file: OutFile) -> io::Result<Self> {
        ParquetTable::new(file, "trace", COLUMNS).map(ParquetWriter)
    }

    pub fn write(&mut self, request: &Request) -> io::Result<()> {
        let cells = [
            request.arrival_ns,
            request.op as u64,
            request.volume.into(),
            request.offset,
            request.bytes,
            request.stream.number().map_or(NONE, u64::from),
        ];
        self.0.row(&cells, &[])
    }

    pub fn finish(self) -> io::Result<OutFile> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    #[test]
    fn letters_stand_in_the_order_of_operations() {
        for op in [Op::Read, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush] {
            assert_eq!(OPS[op as usize], op.letter().to_string());
        }
    }
}
