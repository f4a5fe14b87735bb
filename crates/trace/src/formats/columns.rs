//! Tables of text whose columns the user has named: see [`Layout`].

use std::ops::Range;

use super::{Parsed, TextFormat, request, stream, unknown_op};
use crate::delimited::{Separator, cells};
use crate::error::{Fault, excerpt};
use crate::layout::{Column, Layout, Ops, Place, op_of};
use crate::parse::{decimal, number};
use crate::volumes::Volumes;
use crate::{Op, Request, Stream};

/// Columns of a header that a message lists.
const NAMES_SHOWN: usize = 20;

pub(crate) struct Table {
    layout: Layout,
    /// Known from the first line on.
    shape: Option<Shape>,
    /// Where the cells of the line are.
    cells: Vec<Range<usize>>,
}

/// What the first line says.
struct Shape {
    separator: Separator,
    /// The header; it may come again in the middle, where files were put one behind the other.
    header: Option<Vec<u8>>,
    time: Option<usize>,
    offset: usize,
    size: usize,
    op: Option<usize>,
    volume: Option<usize>,
    stream: Option<usize>,
}

impl Table {
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            shape: None,
            cells: Vec::new(),
        }
    }

    /// Finds the columns in a first line; `None` if that is a comment before the header.
    fn shape_of(&mut self, line: &[u8]) -> Result<Option<Shape>, Fault> {
        let layout = &self.layout;
        let is_comment = line.starts_with(b"#");
        let head = line.strip_prefix(b"#").unwrap_or(line);
        let separator = Separator::of(head);
        cells(head, separator, &mut self.cells);
        let names: Vec<&[u8]> = self
            .cells
            .iter()
            .map(|range| &head[range.clone()])
            .collect();
        let find = |place: &Place| match place {
            Place::Number(number) => Ok(*number),
            Place::Name(name) => column_named(&names, name),
        };
        let find_all = || {
            let of = |column: &Column| find(&column.place);
            Ok(Shape {
                separator,
                header: None,
                time: layout.time.as_ref().map(of).transpose()?,
                offset: of(&layout.offset)?,
                size: of(&layout.size)?,
                op: match &layout.op {
                    Ops::All(_) => None,
                    Ops::Column(place, _) => Some(find(place)?),
                },
                volume: layout.volume.as_ref().map(find).transpose()?,
                stream: layout.stream.as_ref().map(find).transpose()?,
            })
        };
        let mut shape: Shape = match find_all() {
            Err(_) if is_comment => return Ok(None),
            found => found?,
        };
        let by_name = matches!(layout.offset.place, Place::Name(_));
        let is_number = |at: usize| names.get(at).is_some_and(|cell| whole(cell).is_some());
        let is_op = |at: usize| match (&layout.op, names.get(at)) {
            (Ops::Column(_, words), Some(cell)) => op_of(cell, words).is_some(),
            _ => false,
        };
        let is_request =
            is_number(shape.offset) || is_number(shape.size) || shape.op.is_some_and(is_op);
        let is_header = by_name || !is_request;
        if is_comment && !by_name {
            return Ok(None);
        }
        if is_header {
            shape.header = Some(line.to_vec());
        }
        Ok(Some(shape))
    }

    fn request(&self, shape: &Shape, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault> {
        let cell = |at: usize, what: &str| match self.cells.get(at) {
            Some(range) => Ok(&line[range.clone()]),
            None => Err(too_short(self.cells.len(), at, what)),
        };
        let time = match (shape.time, &self.layout.time) {
            (Some(at), Some(column)) => {
                let cell = cell(at, "time")?;
                decimal(cell, column.unit.ilog10())
                    .ok_or_else(|| wrong(cell, at, "time", "number"))?
            }
            _ => 0,
        };
        let op = match (shape.op, &self.layout.op) {
            (Some(at), Ops::Column(_, words)) => {
                let cell = cell(at, "operation")?;
                op_of(cell, words).ok_or_else(|| unknown(cell, at))?
            }
            (_, Ops::All(op)) => *op,
            (None, Ops::Column(..)) => Op::Write,
        };
        let volume = match shape.volume {
            Some(at) => volumes.number(cell(at, "volume")?)?,
            None => 0,
        };
        // A flush has no range; what stands in its place does not matter.
        if op == Op::Flush {
            return Ok(Parsed::One(request(time, op, volume, 0, 0)));
        }
        let bytes = |at: usize, column: &Column, what: &str| {
            let cell = cell(at, what)?;
            let number = whole(cell).ok_or_else(|| wrong(cell, at, what, "whole number"))?;
            number
                .checked_mul(column.unit)
                .ok_or_else(|| beyond(what, number))
        };
        let offset = bytes(shape.offset, &self.layout.offset, "offset")?;
        let size = bytes(shape.size, &self.layout.size, "size")?;
        let stream = match shape.stream {
            Some(at) => stream(cell(at, "stream")?)?,
            None => Stream::NONE,
        };
        let request = request(time, op, volume, offset, size);
        Ok(Parsed::One(Request { stream, ..request }))
    }
}

impl TextFormat for Table {
    fn line(&mut self, line: &[u8], volumes: &mut Volumes) -> Result<Parsed, Fault> {
        let shape = match self.shape.take() {
            Some(shape) => shape,
            None => match self.shape_of(line)? {
                Some(shape) => shape,
                None => return Ok(Parsed::Skip),
            },
        };
        let is_header = shape.header.as_deref() == Some(line);
        let parsed = if is_header || line[0] == b'#' {
            Ok(Parsed::Skip)
        } else {
            cells(line, shape.separator, &mut self.cells);
            self.request(&shape, line, volumes)
        };
        self.shape = Some(shape);
        parsed
    }
}

/// A column of a header, in the case given or, if there is only one such, in any.
fn column_named(names: &[&[u8]], name: &str) -> Result<usize, Fault> {
    if let Some(at) = names.iter().position(|other| *other == name.as_bytes()) {
        return Ok(at);
    }
    let is = |other: &&[u8]| other.eq_ignore_ascii_case(name.as_bytes());
    let mut alike = (0..names.len()).filter(|&at| is(&names[at]));
    if let (Some(at), None) = (alike.next(), alike.next()) {
        return Ok(at);
    }
    let shown: Vec<String> = names
        .iter()
        .take(NAMES_SHOWN)
        .map(|name| excerpt(name))
        .collect();
    Err(
        Fault::new(format!("no column of the header is named '{name}'")).hint(format!(
            "its columns are: {}; without a header, give columns by position (time:s,offset:B,...)",
            shown.join(", ")
        )),
    )
}

/// A whole number, also one written with zeroes after the point, as some programs write every number.
fn whole(cell: &[u8]) -> Option<u64> {
    number(cell).or_else(|| {
        let point = memchr::memchr(b'.', cell)?;
        let zeroes = cell[point + 1..].iter().all(|digit| *digit == b'0');
        number(&cell[..point]).filter(|_| zeroes)
    })
}

#[cold]
fn too_short(found: usize, at: usize, what: &str) -> Fault {
    Fault::new(format!(
        "the line has {found} columns; the {what} is column {}",
        at + 1
    ))
}

#[cold]
fn wrong(cell: &[u8], at: usize, what: &str, wanted: &str) -> Fault {
    let column = at + 1;
    match cell {
        [] => Fault::new(format!("the {what} in column {column} is missing")),
        _ => Fault::new(format!(
            "the {what} in column {column} is no {wanted}, or too large: {}",
            excerpt(&cell[..cell.len().min(40)])
        )),
    }
}

#[cold]
fn unknown(cell: &[u8], at: usize) -> Fault {
    let shown = excerpt(&cell[..cell.len().min(40)]);
    let mut fault = unknown_op(cell, "read, write, trim, flush or their first letters");
    fault.message.push_str(&format!(" in column {}", at + 1));
    fault.hint(format!(
        "if it has a meaning, say it: op:{shown}=W for a write, or for example op:1=W/0=R"
    ))
}

#[cold]
pub(super) fn beyond(what: &str, number: u64) -> Fault {
    Fault::new(format!("the {what} {number} lies beyond 2^64 bytes"))
        .hint("check the unit that is given for it")
}
