//! A look at a Parquet footer before the library sees it: sizes that a damaged or hostile file
//! declares must not decide how much memory is taken.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use crate::error::{Fault, Stop};

/// No trace has a footer of this size (it has a few hundred bytes per row group).
const MAX_FOOTER: u64 = 256 << 20;
/// Structures deeper than this are refused.
const MAX_DEPTH: u32 = 16;

/// Walks the Thrift structure of the footer: every list must have room for its elements.
pub(crate) fn check(mut file: &File, bytes: u64) -> Result<(), Stop> {
    let cut_off = || {
        Stop::from(
            Fault::new("the Parquet file has no footer")
                .hint("the file is cut off: copy or write it again"),
        )
    };
    if bytes < 12 {
        return Err(cut_off());
    }
    let mut tail = [0; 8];
    file.seek(SeekFrom::Start(bytes - 8))?;
    file.read_exact(&mut tail)?;
    if &tail[4..] == b"PARE" {
        return Err(Fault::new("the Parquet file is encrypted").into());
    }
    if &tail[4..] != b"PAR1" {
        return Err(cut_off());
    }
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if length > bytes - 12 || length > MAX_FOOTER {
        return Err(cut_off());
    }
    file.seek(SeekFrom::Start(bytes - 8 - length))?;
    let mut footer = vec![0; length as usize];
    file.read_exact(&mut footer)?;
    file.rewind()?;
    let mut walk = Walk { rest: &footer };
    walk.structure(0).ok_or_else(|| {
        Stop::from(
            Fault::new("the footer of the Parquet file is damaged")
                .hint("copy or write the file again"),
        )
    })
}

/// A walk over Thrift's compact protocol.
struct Walk<'a> {
    rest: &'a [u8],
}

impl Walk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn skip(&mut self, n: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(n).ok()?..)?;
        Some(())
    }

    fn structure(&mut self, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        loop {
            let head = self.byte()?;
            let kind = head & 0x0f;
            if kind == 0 {
                return Some(());
            }
            if head >> 4 == 0 {
                self.varint()?;
            }
            self.value(kind, depth, false)?;
        }
    }

    fn value(&mut self, kind: u8, depth: u32, in_list: bool) -> Option<()> {
        match kind {
            // Booleans live in the field's head, but take a byte in a list.
            1 | 2 => {
                if in_list {
                    self.byte()?;
                }
                Some(())
            }
            3 => self.byte().map(|_| ()),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let n = self.varint()?;
                self.skip(n)
            }
            9 | 10 => {
                let head = self.byte()?;
                let n = match head >> 4 {
                    15 => self.varint()?,
                    n => u64::from(n),
                };
                // An element takes a byte at least.
                if n > self.rest.len() as u64 {
                    return None;
                }
                for _ in 0..n {
                    self.value(head & 0x0f, depth + 1, true)?;
                }
                Some(())
            }
            12 => self.structure(depth + 1),
            // Maps do not occur in a footer.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_need_room_for_their_elements() {
        // A field of type list with 2^30 elements, then nothing.
        let footer = [0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 0x04];
        assert!(Walk { rest: &footer }.structure(0).is_none());
        // An i32 field and the end.
        assert!(Walk { rest: &[0x15, 0x02, 0x00] }.structure(0).is_some());
    }
}
