//! The simple page text: `W lpn n [arrival_ns [stream]]`, one request a line.
//!
//! `R` reads, `T` trims, `Z` writes zeroes, `F` (alone, or `F 0 0 [arrival_ns]`) flushes; `#` starts a
//! comment. The comment `# page_bytes N` says how long a page is; without it, it is the reader's option.

use super::{Format, Parsed, TextFormat, request, stream, unknown_op, wrong_fields};
use crate::error::Fault;
use crate::parse::{need, number, words};
use crate::volumes::Volumes;
use crate::{Op, Request};

/// The length of a page when neither the file nor the options say it.
pub(crate) const DEFAULT_PAGE_BYTES: u32 = 4096;

pub(crate) struct Pages {
    page_bytes: u64,
    /// Set in the options.
    fixed: bool,
}

impl Pages {
    /// `page_bytes` 0 stands for "what the file says, or the default".
    pub fn new(page_bytes: u32) -> Self {
        Pages {
            page_bytes: u64::from(if page_bytes == 0 {
                DEFAULT_PAGE_BYTES
            } else {
                page_bytes
            }),
            fixed: page_bytes != 0,
        }
    }

    fn comment(&mut self, comment: &[u8]) -> Result<(), Fault> {
        let (f, n) = words::<2>(comment);
        if n != 2 || f[0] != b"page_bytes" {
            return Ok(());
        }
        let Some(bytes) = number(f[1]).filter(|&b| b > 0 && b <= 1 << 30) else {
            return Err(Fault::new(
                "the page size is not a number between 1 and 2^30",
            ));
        };
        if self.fixed && bytes != self.page_bytes {
            return Err(Fault::new(format!(
                "the trace is in pages of {bytes} bytes, but the options say {}",
                self.page_bytes
            ))
            .hint("leave the page size out of the options, or set it to that of the file"));
        }
        self.page_bytes = bytes;
        Ok(())
    }
}

impl TextFormat for Pages {
    #[inline]
    fn line(&mut self, line: &[u8], _: &mut Volumes) -> Result<Parsed, Fault> {
        let content = match memchr::memchr(b'#', line) {
            Some(i) => {
                if line[..i].trim_ascii().is_empty() {
                    self.comment(&line[i + 1..])?;
                    return Ok(Parsed::Skip);
                }
                &line[..i]
            }
            None => line,
        };
        let (f, n) = words::<5>(content);
        let op = match f[0] {
            [letter] => Op::from_letter(*letter),
            _ => None,
        }
        .ok_or_else(|| unknown_op(f[0], "W, R, T, Z or F"))?;
        if op == Op::Flush && n == 1 {
            return Ok(Parsed::One(request(0, op, 0, 0, 0)));
        }
        if !(3..=5).contains(&n) {
            return Err(wrong_fields(n, Format::Pages));
        }
        let lpn = need(f[1], "page number")?;
        let pages = need(f[2], "number of pages")?;
        let time = if n > 3 { need(f[3], "arrival")? } else { 0 };
        let (Some(offset), Some(bytes)) = (
            lpn.checked_mul(self.page_bytes),
            pages.checked_mul(self.page_bytes),
        ) else {
            return Err(Fault::new("the request is beyond 2^64 bytes"));
        };
        let request = request(time, op, 0, offset, bytes);
        Ok(Parsed::One(Request {
            stream: stream(f[4])?,
            ..request
        }))
    }
}
