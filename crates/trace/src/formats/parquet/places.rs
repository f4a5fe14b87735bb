//! Where the columns of a trace are among those of a Parquet file.

use parquet::basic::Type as Physical;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::{COLUMNS, OP, STREAM, TIME, VOLUME, WHAT};
use crate::error::Fault;
use crate::layout::{Layout, Ops, Place};

/// The places of Floatgate's own columns.
pub(super) fn own_places(schema: &SchemaDescriptor) -> Result<[Option<usize>; COLUMNS], Fault> {
    const OWN: [&str; COLUMNS] = ["arrival_ns", "op", "volume", "offset", "bytes", "stream"];
    let mut places = [None; COLUMNS];
    for (i, name) in OWN.into_iter().enumerate() {
        places[i] = column_named(schema, name);
        let Some(place) = places[i] else {
            if matches!(i, TIME | VOLUME | STREAM) {
                continue;
            }
            return Err(no_column(schema, &format!("'{name}'")).hint(
                "a trace of Floatgate's has the columns op, offset and bytes, and may have arrival_ns, volume and stream; \
                 of another file say what its columns hold (--columns time=NAME:us,offset=NAME:B,size=NAME:B,op=NAME)",
            ));
        };
        let column = schema.column(place);
        let fits = match column.physical_type() {
            Physical::BYTE_ARRAY => i == OP,
            Physical::INT32 | Physical::INT64 => i != OP,
            _ => false,
        };
        if !fits || column.max_rep_level() > 0 {
            return Err(wrong_type(&column)
                .hint("op is text, the other columns are integers of 32 or 64 bits"));
        }
    }
    Ok(places)
}

/// The places of the columns that a layout names.
pub(super) fn places_of(
    schema: &SchemaDescriptor,
    layout: &Layout,
) -> Result<[Option<usize>; COLUMNS], Fault> {
    let mut places = [None; COLUMNS];
    let op = match &layout.op {
        Ops::All(_) => None,
        Ops::Column(place, _) => Some(place),
    };
    let wanted = [
        layout.time.as_ref().map(|column| &column.place),
        op,
        layout.volume.as_ref(),
        Some(&layout.offset.place),
        Some(&layout.size.place),
        layout.stream.as_ref(),
    ];
    for (i, wanted) in wanted.into_iter().enumerate() {
        let Some(wanted) = wanted else { continue };
        let place = match wanted {
            Place::Number(number) => Some(*number).filter(|&at| at < schema.num_columns()),
            Place::Name(name) => column_named(schema, name),
        };
        let Some(place) = place else {
            return Err(no_column(schema, &wanted.describe()));
        };
        let column = schema.column(place);
        let fits = match column.physical_type() {
            Physical::INT32 | Physical::INT64 => true,
            Physical::FLOAT | Physical::DOUBLE => !matches!(i, OP | VOLUME),
            Physical::BYTE_ARRAY => matches!(i, OP | VOLUME),
            Physical::BOOLEAN => i == OP,
            _ => false,
        };
        if !fits || column.max_rep_level() > 0 {
            return Err(wrong_type(&column).hint(format!(
                "times, offsets, sizes and streams are numbers, operations and volumes are texts or whole numbers; this is \
                 to hold the {}",
                WHAT[i]
            )));
        }
        places[i] = Some(place);
    }
    Ok(places)
}

fn column_named(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    let columns = schema.columns();
    let is = |column: &ColumnDescPtr| column.path().string() == name;
    columns.iter().position(is)
}

fn no_column(schema: &SchemaDescriptor, wanted: &str) -> Fault {
    let names = schema.columns().iter().take(20);
    let names: Vec<String> = names.map(|column| column.path().string()).collect();
    Fault::new(format!(
        "the Parquet file has no column {}; it has: {}",
        wanted.trim_start_matches("column "),
        names.join(", ")
    ))
}

fn wrong_type(column: &ColumnDescPtr) -> Fault {
    Fault::new(format!(
        "the column '{}' has the wrong type {}",
        column.path().string(),
        column.physical_type()
    ))
}
