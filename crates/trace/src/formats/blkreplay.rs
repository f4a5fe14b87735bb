//! blkreplay's `.load` files: `seconds ; sector ; sectors ; op ; ...` after a header of any text.
//!
//! The header ends with the line that names the columns; without such a line the file has no header. Files may be put one
//! behind the other, headers and all.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::Op;
use crate::error::Fault;
use crate::parse::{need_sectors, need_time, split, trim};
use crate::volumes::Volumes;

#[derive(Default)]
pub(crate) struct Blkreplay {
    part: Part,
}

#[derive(Default)]
enum Part {
    /// Before the first request; the text need not end with the names of the columns.
    #[default]
    Head,
    Requests,
    /// The head of a further file that was put behind the first, and its lines so far.
    FurtherHead(u64),
}

/// Whether a line is the one that names the columns.
pub(crate) fn is_column_line(line: &[u8]) -> bool {
    let (f, n) = split::<2>(line, b';');
    n >= 4
        && trim(f[0]).eq_ignore_ascii_case(b"start")
        && trim(f[1]).eq_ignore_ascii_case(b"sector")
}

/// Whether a line is prose: a damaged request has separators, or consists of digits.
fn is_prose(line: &[u8]) -> bool {
    !line.contains(&b';') && line.iter().any(u8::is_ascii_alphabetic)
}

/// Whether a line has the shape of a request.
pub(crate) fn is_data_line(line: &[u8]) -> bool {
    let (f, n) = split::<4>(line, b';');
    n >= 4
        && crate::parse::decimal(trim(f[0]), 9).is_some()
        && crate::parse::number(trim(f[1])).is_some()
        && crate::parse::number(trim(f[2])).is_some()
}

#[cold]
fn headless(lines: u64) -> Fault {
    Fault::new(format!(
        "before this request {lines} lines with text are neither requests nor the head of a further file"
    ))
    .hint("a head ends with the line that names the columns: start ; sector ; length ; op ; ...")
}

impl TextFormat for Blkreplay {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        if is_column_line(line) {
            self.part = Part::Requests;
            return Ok(Parsed::Skip);
        }
        match &mut self.part {
            Part::Head if !is_data_line(line) => return Ok(Parsed::Skip),
            Part::Head => self.part = Part::Requests,
            Part::Requests if line[0] == b'#' => return Ok(Parsed::Skip),
            Part::Requests if is_prose(line) => {
                self.part = Part::FurtherHead(1);
                return Ok(Parsed::Skip);
            }
            Part::Requests => {}
            Part::FurtherHead(lines) if is_data_line(line) => return Err(headless(*lines)),
            Part::FurtherHead(lines) => {
                *lines += 1;
                return Ok(Parsed::Skip);
            }
        }
        let (f, n) = split::<4>(line, b';');
        if n < 4 {
            return Err(wrong_fields(n, Format::Blkreplay));
        }
        let time = need_time(f[0], "start time", 9)?;
        let offset = need_sectors(f[1], "sector")?;
        let bytes = need_sectors(f[2], "length")?;
        let op = match trim(f[3]).first() {
            Some(b'R' | b'r') => Op::Read,
            Some(b'W' | b'w') => Op::Write,
            Some(b'D' | b'd') => Op::Trim,
            _ => return Err(unknown_op(trim(f[3]), "R, W or D")),
        };
        Ok(Parsed::One(request(time, op, 0, offset, bytes)))
    }
}
