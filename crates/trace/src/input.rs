//! A buffered byte stream that hands out lines and records without copying them.

use std::io::{self, Read};

use crate::error::{Fault, Stop};

/// The bytes that detection examines.
pub(crate) const PEEK_BYTES: usize = 64 * 1024;
/// A longer line is an error, so that a file without line ends cannot fill memory.
const MAX_LINE: usize = 64 * 1024;
/// The buffer: more than two lines of the greatest length.
const BUFFER_BYTES: usize = 256 * 1024;

/// A stream of decompressed bytes.
pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
}

impl Input {
    pub fn new(source: Box<dyn Read + Send>) -> Self {
        Input {
            source,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            eof: false,
        }
    }

    /// Reads once more into the buffer, after moving the unread bytes to its start.
    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    // A full buffer cannot happen: callers stop far below its size.
                    self.eof = true;
                    return Ok(());
                }
                Ok(n) => {
                    self.end += n;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The next bytes without consuming them: `n` of them (at most [`PEEK_BYTES`]), fewer at the end.
    pub fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        let n = n.min(PEEK_BYTES);
        while self.end - self.start < n && !self.eof {
            self.fill()?;
        }
        let stop = self.end.min(self.start + n);
        Ok(&self.buffer[self.start..stop])
    }

    /// The next line without its line end, or `None` at the end of the stream.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, Stop> {
        let mut scanned = 0;
        let (stop, next) = loop {
            let from = self.start + scanned;
            if let Some(i) = memchr::memchr(b'\n', &self.buffer[from..self.end]) {
                break (from + i, from + i + 1);
            }
            scanned = self.end - self.start;
            if scanned > MAX_LINE {
                return Err(
                    Fault::new(format!("a line is longer than {MAX_LINE} bytes"))
                        .hint("this is not a trace in a text format, or it is damaged here")
                        .into(),
                );
            }
            if self.eof {
                if scanned == 0 {
                    return Ok(None);
                }
                break (self.end, self.end);
            }
            self.fill()?;
        };
        let mut line = &self.buffer[self.start..stop];
        if line.len() > MAX_LINE {
            return Err(
                Fault::new(format!("a line is longer than {MAX_LINE} bytes"))
                    .hint("this is not a trace in a text format, or it is damaged here")
                    .into(),
            );
        }
        if let [head @ .., b'\r'] = line {
            line = head;
        }
        self.start = next;
        Ok(Some(line))
    }

    /// The next `n` bytes (at most [`PEEK_BYTES`]); `None` at the end of the stream, a fault if
    /// fewer are left.
    #[inline]
    pub fn record(&mut self, n: usize) -> Result<Option<&[u8]>, Stop> {
        while self.end - self.start < n && !self.eof {
            self.fill()?;
        }
        let left = self.end - self.start;
        if left == 0 && n > 0 {
            return Ok(None);
        }
        if left < n {
            return Err(Fault::new(format!(
                "the trace ends inside a record: only {left} of its {n} bytes are there"
            ))
            .hint("the file is cut off: copy it again")
            .into());
        }
        let start = self.start;
        self.start += n;
        Ok(Some(&self.buffer[start..start + n]))
    }

    /// Skips `n` bytes; false if the stream ends first.
    pub fn skip(&mut self, mut n: usize) -> io::Result<bool> {
        loop {
            let step = n.min(self.end - self.start);
            self.start += step;
            n -= step;
            if n == 0 {
                return Ok(true);
            }
            if self.eof {
                return Ok(false);
            }
            self.fill()?;
        }
    }

    /// The unread rest, as a stream.
    #[cfg(feature = "parquet")]
    pub fn into_rest(self) -> impl Read + Send {
        let Input {
            source,
            mut buffer,
            start,
            end,
            ..
        } = self;
        buffer.truncate(end);
        buffer.drain(..start);
        io::Cursor::new(buffer).chain(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that hands out few bytes at a time.
    struct Dribble(Vec<u8>, usize);
    impl Read for Dribble {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = out.len().min(7).min(self.0.len() - self.1);
            out[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
            self.1 += n;
            Ok(n)
        }
    }

    #[test]
    fn lines_of_every_kind() {
        let text = b"one\r\n\ntwo three four\nlast".to_vec();
        let mut input = Input::new(Box::new(Dribble(text, 0)));
        assert_eq!(input.peek(5).unwrap(), b"one\r\n");
        let mut lines = Vec::new();
        while let Some(line) = input.line().unwrap() {
            lines.push(line.to_vec());
        }
        assert_eq!(
            lines,
            [&b"one"[..], &b""[..], &b"two three four"[..], &b"last"[..]]
        );
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut input = Input::new(Box::new(io::repeat(b'x')));
        assert!(matches!(input.line(), Err(Stop::Fault(_))));
    }

    #[test]
    fn records_and_their_truncation() {
        let mut input = Input::new(Box::new(Dribble(vec![1; 10], 0)));
        assert_eq!(input.record(8).unwrap().unwrap().len(), 8);
        assert!(matches!(input.record(8), Err(Stop::Fault(_))));
        assert!(input.skip(2).unwrap());
        assert!(input.record(8).unwrap().is_none());
        assert!(!input.skip(1).unwrap());
    }
}
