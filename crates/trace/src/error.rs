//! Errors of reading and writing traces.

use std::fmt;
use std::io;
use std::path::Path;

/// Where in a trace something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A line of a text format, the first being 1.
    Line(u64),
    /// A record of a binary format, the first being 1.
    Record(u64),
}

/// What is wrong with a trace, where, and what to do about it.
///
/// Its [`Display`](fmt::Display) is one message that names the file and the line, shows the line
/// and ends with the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The file, or the name given to [`open_reader`](crate::open_reader).
    pub path: String,
    /// The line or record, where the error has one.
    pub position: Option<Position>,
    /// What is wrong.
    pub message: String,
    /// The line, clipped and with unprintable characters escaped.
    pub excerpt: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// What programs may want to tell apart.
    pub cause: Option<Box<Cause>>,
}

/// Errors that a program may answer in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The format of a text was not recognised; this is its first line.
    Unrecognised(String),
    /// Streams by process were asked for, and the format does not know processes.
    NoProcesses,
    /// What is written is not wanted any more: the other end of a pipe is closed.
    BrokenPipe,
}

impl TraceError {
    /// An error about the file as a whole.
    pub fn file(path: &str, message: impl Into<String>) -> Self {
        TraceError {
            path: path.to_owned(),
            position: None,
            message: message.into(),
            excerpt: None,
            hint: None,
            cause: None,
        }
    }

    /// The same error with a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with a position and the bytes found there.
    pub(crate) fn at(mut self, position: Option<Position>, excerpt: Option<String>) -> Self {
        self.position = position;
        self.excerpt = excerpt;
        self
    }

    /// Why a file cannot be written, with what helps.
    pub fn output(path: &Path, error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let hint = match error.kind() {
            Kind::StorageFull | Kind::QuotaExceeded => "free some space, or write to another disk",
            Kind::FileTooLarge => {
                "no larger file is allowed there: see `ulimit -f`, or write to another disk"
            }
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
                "check the permissions of the file and of its folder, or write to another"
            }
            Kind::BrokenPipe => "the program that reads it has ended",
            _ => "name a file in a folder that exists and may be written",
        };
        let message = format!("cannot write: {error}");
        TraceError {
            cause: (error.kind() == Kind::BrokenPipe).then(|| Box::new(Cause::BrokenPipe)),
            ..TraceError::file(&path.display().to_string(), message).hint(hint)
        }
    }

    /// What was to go to a temporary file without a name cannot be written or read there.
    pub(crate) fn temporary(what: &str, error: &io::Error) -> Self {
        let folder = std::env::temp_dir().display().to_string();
        TraceError::file(&folder, format!("a temporary file failed: {error}")).hint(format!(
            "{what} goes to a temporary file in that folder: free some space there, or name another \
             in TMPDIR"
        ))
    }

    /// An error of the operating system or of a decompressor.
    pub(crate) fn io(path: &str, doing: &str, error: &io::Error) -> Self {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => Some("check the path"),
            io::ErrorKind::PermissionDenied => Some("check the permissions of the file"),
            io::ErrorKind::UnexpectedEof => {
                Some("the file is cut off: copy or download it again, whole")
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                Some("the file looks damaged: copy or download it again, or check its checksum")
            }
            _ => None,
        };
        let mut result = TraceError::file(path, format!("{doing}: {error}"));
        result.hint = hint.map(str::to_owned);
        result
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        match self.position {
            Some(Position::Line(n)) => write!(f, ", line {n}")?,
            Some(Position::Record(n)) => write!(f, ", record {n}")?,
            None => {}
        }
        write!(f, ": {}", self.message)?;
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n  | {excerpt}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  = {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TraceError {}

/// What is wrong with a record; the reader adds the position.
#[derive(Debug)]
pub(crate) struct Fault {
    pub message: String,
    pub hint: Option<String>,
    pub cause: Option<Box<Cause>>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Self {
        Fault {
            message: message.into(),
            hint: None,
            cause: None,
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Why a decoder stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The record is wrong.
    Fault(Fault),
    /// The bytes could not be read or decompressed.
    Io(io::Error),
    /// An error that already names its position (in a file of a merged trace).
    Placed(Box<TraceError>),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Io(error)
    }
}

/// At most this many bytes of a bad line are shown.
const EXCERPT_BYTES: usize = 160;

/// A line made printable: clipped, unprintable characters escaped.
pub(crate) fn excerpt(line: &[u8]) -> String {
    let clipped = &line[..line.len().min(EXCERPT_BYTES)];
    let mut shown = String::with_capacity(clipped.len() + 3);
    for chunk in clipped.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => shown.push('\t'),
                c if c.is_control() => shown.extend(c.escape_default()),
                c => shown.push(c),
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if clipped.len() < line.len() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_file_line_and_hint() {
        let error = TraceError::file("a.csv", "size is not a number")
            .at(Some(Position::Line(3)), Some(excerpt(b"1,\x00,\xffx")))
            .hint("fix it");
        assert_eq!(
            error.to_string(),
            "a.csv, line 3: size is not a number\n  | 1,\\u{0},\\xffx\n  = fix it"
        );
    }

    #[test]
    fn excerpts_are_clipped() {
        assert_eq!(excerpt(&[b'x'; 500]).len(), EXCERPT_BYTES + 3);
    }
}
