//! A trace as a table: its columns, and a reader of requests that are in memory already.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::columns::{Column, Kind, NONE};
use crate::error::{Position, Stop};
use crate::formats::{Decoder, Format, Parsed};
use crate::open::check_streams;
use crate::reader::Parts;
use crate::volumes::Volumes;
use crate::{Compression, OpenOptions, Reader, Request, TraceError};

/// The letters of [`crate::Op`], in its order.
const OPS: &[&str] = &["R", "W", "T", "Z", "F"];

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

/// The columns, as in a trace in Parquet.
pub const COLUMNS: &[Column] = &[
    column("arrival_ns", Kind::Rising),
    column("op", Kind::Word(OPS)),
    column("volume", Kind::Small),
    column("offset", Kind::Number),
    column("bytes", Kind::Number),
    column("stream", Kind::Sparse),
];

/// The cells of a request, in the order of [`COLUMNS`].
pub fn cells(request: &Request) -> [u64; COLUMNS.len()] {
    [
        request.arrival_ns,
        request.op as u64,
        request.volume.into(),
        request.offset,
        request.bytes,
        request.stream.number().map_or(NONE, u64::from),
    ]
}

/// Requests in memory, read as the same table in Parquet would be.
///
/// # Errors
/// If streams by process are asked for: a table does not know processes.
///
/// ```
/// use std::sync::Arc;
/// use floatgate_trace::{Op, OpenOptions, Request, Stream, table};
///
/// let write = Request { arrival_ns: 7, op: Op::Write, volume: 0, stream: Stream::NONE, offset: 0, bytes: 4096 };
/// let mut reader = table::open("frame", Arc::new(vec![write]), &OpenOptions::default())?;
/// assert_eq!(reader.next()?.map(|request| request.arrival_ns), Some(7));
/// assert_eq!(reader.next()?, None);
/// # Ok::<(), floatgate_trace::TraceError>(())
/// ```
pub fn open(
    name: &str,
    requests: Arc<Vec<Request>>,
    options: &OpenOptions,
) -> Result<Reader, TraceError> {
    check_streams(name, Format::Parquet, options)?;
    let parts = Parts {
        path: name.into(),
        format: Format::Parquet,
        compression: Compression::None,
        decoder: Box::new(InMemory {
            requests,
            at: 0,
            volumes: Volumes::default(),
        }),
        count: Arc::new(AtomicU64::new(0)),
        total: None,
    };
    Ok(Reader::new(parts, options))
}

struct InMemory {
    requests: Arc<Vec<Request>>,
    at: usize,
    volumes: Volumes,
}

impl Decoder for InMemory {
    fn next(&mut self) -> Result<Option<Parsed>, Stop> {
        let next = self.requests.get(self.at).copied();
        self.at += usize::from(next.is_some());
        Ok(next.map(Parsed::One))
    }

    fn position(&self) -> Position {
        Position::Record(self.at as u64)
    }

    fn volumes(&self) -> &Volumes {
        &self.volumes
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
