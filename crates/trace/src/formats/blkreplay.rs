//! blkreplay's `.load` files: `seconds ; sector ; sectors ; op ; ...` after a header of any text.
//!
//! The header ends with the line that names the columns; without such a line the file has no header.

use super::{Format, Parsed, TextFormat, request, unknown_op, wrong_fields};
use crate::Op;
use crate::error::Fault;
use crate::parse::{need_sectors, need_time, split, trim};
use crate::volumes::Volumes;

#[derive(Default)]
pub(crate) struct Blkreplay {
    /// Past the header.
    started: bool,
}

/// Whether a line is the one that names the columns.
pub(crate) fn is_column_line(line: &[u8]) -> bool {
    let (f, n) = split::<2>(line, b';');
    n >= 4
        && trim(f[0]).eq_ignore_ascii_case(b"start")
        && trim(f[1]).eq_ignore_ascii_case(b"sector")
}

/// Whether a line has the shape of a request.
pub(crate) fn is_data_line(line: &[u8]) -> bool {
    let (f, n) = split::<4>(line, b';');
    n >= 4
        && crate::parse::decimal(trim(f[0]), 9).is_some()
        && crate::parse::number(trim(f[1])).is_some()
        && crate::parse::number(trim(f[2])).is_some()
}

impl TextFormat for Blkreplay {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        if !self.started {
            if is_column_line(line) {
                self.started = true;
                return Ok(Parsed::Skip);
            }
            if !is_data_line(line) {
                return Ok(Parsed::Skip);
            }
            self.started = true;
        }
        if line[0] == b'#' || is_column_line(line) {
            return Ok(Parsed::Skip);
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
