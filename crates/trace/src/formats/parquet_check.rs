//! Checks a Parquet footer before the library reads it: the sizes that a damaged or hostile file declares must not
//! decide how much memory is allocated.

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
    Walk::new(&footer).structure(0).ok_or_else(|| {
        Stop::from(
            Fault::new("the footer of the Parquet file is damaged")
                .hint("copy or write the file again"),
        )
    })
}

/// A page header is far shorter than this.
const MAX_HEADER: u64 = 64 << 10;
/// A page may be this long when decompressed; writers aim at 1 MiB.
const MAX_PAGE: u64 = 256 << 20;

/// Walks the page headers of a column chunk: no page may declare more than [`MAX_PAGE`].
pub(crate) fn pages(mut file: &File, start: u64, length: u64) -> Result<(), Fault> {
    let damaged =
        || Fault::new("a page of the Parquet file is damaged").hint("copy or write the file again");
    let end = start.checked_add(length).ok_or_else(damaged)?;
    let mut at = start;
    let mut head = Vec::new();
    while at < end {
        head.clear();
        file.seek(SeekFrom::Start(at))
            .and_then(|_| {
                // A header and its first bytes of data; a longer one is read in the second round.
                file.take((end - at).min(512)).read_to_end(&mut head)
            })
            .map_err(|_| damaged())?;
        let mut walk = Walk::new(&head);
        if walk.structure(0).is_none() {
            head.clear();
            file.seek(SeekFrom::Start(at))
                .and_then(|_| file.take((end - at).min(MAX_HEADER)).read_to_end(&mut head))
                .map_err(|_| damaged())?;
            walk = Walk::new(&head);
            walk.structure(0).ok_or_else(damaged)?;
        }
        let [full, stored] = walk
            .sizes
            .map(|size| u64::try_from(size).unwrap_or(u64::MAX));
        if full > MAX_PAGE {
            return Err(Fault::new(format!(
                "a page of the Parquet file declares {full} bytes, more than {MAX_PAGE}"
            ))
            .hint("the file is damaged, or must be written again with smaller pages"));
        }
        let header = (head.len() - walk.rest.len()) as u64;
        at = at
            .checked_add(header)
            .and_then(|at| at.checked_add(stored))
            .filter(|&next| next <= end)
            .ok_or_else(damaged)?;
    }
    Ok(())
}

/// A walk over Thrift's compact protocol.
struct Walk<'a> {
    rest: &'a [u8],
    /// The fields 2 and 3 of the outermost structure, in a page header its decompressed and its
    /// stored size.
    sizes: [i64; 2],
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Walk {
            rest: bytes,
            sizes: [0; 2],
        }
    }

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
        let mut field = 0u64;
        loop {
            let head = self.byte()?;
            let kind = head & 0x0f;
            if kind == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => zigzag(self.varint()?).unsigned_abs(),
                step => field.wrapping_add(u64::from(step)),
            };
            if depth == 0 && kind == 5 && (2..=3).contains(&field) {
                self.sizes[field as usize - 2] = zigzag(self.varint()?);
            } else {
                self.value(kind, depth, false)?;
            }
        }
    }

    fn value(&mut self, kind: u8, depth: u32, in_list: bool) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
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

/// A signed number from its unsigned form.
fn zigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_need_room_for_their_elements() {
        // A field of type list with 2^30 elements, then nothing.
        let footer = [0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 0x04];
        assert!(Walk::new(&footer).structure(0).is_none());
        // Field 2, an i32 of 1, and the end.
        let mut walk = Walk::new(&[0x25, 0x02, 0x00, 9]);
        assert!(walk.structure(0).is_some());
        assert_eq!((walk.sizes, walk.rest), ([1, 0], &[9][..]));
    }

    #[test]
    fn lists_in_lists_have_a_limit() {
        let footer = vec![0x19; 1 << 20];
        assert!(Walk::new(&footer).structure(0).is_none());
    }

    #[test]
    fn pages_have_a_limit() {
        let file_of = |bytes: &[u8]| {
            use std::io::Write;
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file
        };
        // type 0, decompressed size, stored size 2, end, two bytes of data
        let small = [0x15, 0x00, 0x15, 0x08, 0x15, 0x04, 0x00, 1, 2];
        let twice = [small, small].concat();
        assert!(pages(&file_of(&twice), 0, 18).is_ok());
        assert!(pages(&file_of(&twice), 9, 9).is_ok());
        assert!(pages(&file_of(&twice), 0, 17).is_err());
        assert!(pages(&file_of(&twice), u64::MAX, 17).is_err());
        let large = [
            0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0x04, 0x00, 1, 2,
        ];
        let fault = pages(&file_of(&large), 0, 13).unwrap_err();
        assert!(fault.message.contains("2147483647"));
    }
}
