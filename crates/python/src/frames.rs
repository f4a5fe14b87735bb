//! Traces in memory: from Arrow tables, and to them.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, SchemaRef};
use floatgate::errors::{Outcome, Problem};
use floatgate_trace::{Op, Request, Stream, table};

use crate::tables::Rows;

/// Without it a trace is none.
const NEEDED: [&str; 3] = ["op", "offset", "bytes"];

/// The requests of a table.
///
/// # Errors
/// Names the column, and the row, that no request can be made of.
pub fn requests(batches: &[RecordBatch], schema: &SchemaRef) -> Outcome<Vec<Request>> {
    let known: Vec<&str> = table::COLUMNS.iter().map(|column| column.name).collect();
    let help = format!("a frame of a trace has the columns {}", known.join(", "));
    for name in NEEDED {
        if schema.column_with_name(name).is_none() {
            return Err(Problem::new(format!("the frame has no column {name:?}")).help(help));
        }
    }
    for field in schema.fields() {
        if !known.contains(&field.name().as_str()) {
            let text = format!(
                "the frame has a column {:?} of no known meaning",
                field.name()
            );
            return Err(Problem::new(text).help(help));
        }
    }
    let mut requests = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in batches {
        let columns = Columns::of(batch)?;
        for row in 0..batch.num_rows() {
            let request = columns.request(row);
            let at = requests.len();
            let request =
                request.map_err(|what| Problem::new(format!("row {at} of the frame: {what}")))?;
            requests.push(request);
        }
    }
    Ok(requests)
}

/// The columns of a batch, each in the type of a request.
struct Columns {
    arrival_ns: Option<UInt64Array>,
    op: StringArray,
    volume: Option<UInt64Array>,
    offset: UInt64Array,
    bytes: UInt64Array,
    stream: Option<UInt64Array>,
}

impl Columns {
    fn of(batch: &RecordBatch) -> Outcome<Self> {
        let whole = |name: &str| -> Outcome<Option<UInt64Array>> {
            let column = batch.column_by_name(name);
            let column = column.map(|column| cast(name, column, &DataType::UInt64));
            Ok(column
                .transpose()?
                .map(|c| c.as_primitive::<UInt64Type>().clone()))
        };
        let needed = |name: &str| {
            whole(name)?.ok_or_else(|| Problem::new(format!("the frame has no column {name:?}")))
        };
        let op = batch.column_by_name("op");
        let op = op.ok_or_else(|| Problem::new("the frame has no column \"op\""))?;
        Ok(Self {
            arrival_ns: whole("arrival_ns")?,
            op: cast("op", op, &DataType::Utf8)?.as_string::<i32>().clone(),
            volume: whole("volume")?,
            offset: needed("offset")?,
            bytes: needed("bytes")?,
            stream: whole("stream")?,
        })
    }

    fn request(&self, row: usize) -> Result<Request, String> {
        let value = |name: &str, column: &UInt64Array| match column.is_null(row) {
            true => Err(format!("{name} is empty")),
            false => Ok(column.value(row)),
        };
        let or_zero = |name: &str, column: &Option<UInt64Array>| {
            column.as_ref().map_or(Ok(0), |column| value(name, column))
        };
        let volume = or_zero("volume", &self.volume)?;
        let stream = self.stream.as_ref().filter(|column| !column.is_null(row));
        Ok(Request {
            arrival_ns: or_zero("arrival_ns", &self.arrival_ns)?,
            op: self.op(row)?,
            volume: u32::try_from(volume).map_err(|_| format!("volume {volume} is too large"))?,
            stream: match stream.map(|column| column.value(row)) {
                None => Stream::NONE,
                Some(number) => Stream::new(number)
                    .ok_or_else(|| format!("stream {number}: the highest is {}", Stream::MAX))?,
            },
            offset: value("offset", &self.offset)?,
            bytes: value("bytes", &self.bytes)?,
        })
    }

    fn op(&self, row: usize) -> Result<Op, String> {
        let word = if self.op.is_null(row) {
            ""
        } else {
            self.op.value(row)
        };
        let op = match word.as_bytes() {
            [letter] => Op::from_letter(*letter),
            _ => None,
        };
        op.ok_or_else(|| {
            format!(
                "op is {word:?}; it is R (read), W (write), T (trim), Z (write zeroes) or F (flush)"
            )
        })
    }
}

/// A column in another type; what does not fit is an error, not a null.
fn cast(name: &str, column: &ArrayRef, to: &DataType) -> Outcome<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(column, to, &options)
        .map_err(|error| Problem::new(format!("column {name:?} of the frame: {error}")))
}

/// A trace as a table.
pub fn rows(requests: &[Request]) -> Rows {
    let mut rows = Rows::new(table::COLUMNS);
    for request in requests {
        rows.row(&table::cells(request));
    }
    rows
}
