//! What the columns of a table hold, in words: `time:s,offset:B,size:B,op`.
//!
//! A column is given by its position (`_` leaves one out), or by its name in the header (`time=Timestamp:100ns`), or by its
//! number (`time=#3:ms`). Times and addresses have a unit after a colon; `op` may say what its words mean (`op:1=W/0=R`).
//!
//! ```
//! use floatgate_trace::{Layout, OpenOptions, open_reader};
//!
//! let layout: Layout = "time=When:ms,offset=Sector:sectors,size=Bytes:B,op=Kind".parse()?;
//! let options = OpenOptions { columns: Some(layout), ..OpenOptions::default() };
//! let table = "When;Kind;Sector;Bytes\n1.5;write;8;4096\n";
//! let mut reader = open_reader("example", Box::new(table.as_bytes()), &options)?;
//! assert_eq!(reader.next()?.expect("a request").offset, 4096);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::Op;

mod guess;
#[cfg(test)]
mod tests;

pub use guess::guess;

/// What the columns of a table hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Without it all requests arrive at once.
    pub(crate) time: Option<Column>,
    pub(crate) offset: Column,
    pub(crate) size: Column,
    pub(crate) op: Ops,
    pub(crate) volume: Option<Place>,
    pub(crate) stream: Option<Place>,
}

/// Where a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its number, from 0.
    Number(usize),
    /// Its name in the header.
    Name(String),
}

/// A column of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub place: Place,
    /// Of a time the nanoseconds, of an address or a size the bytes in one.
    pub unit: u64,
}

/// Where the operations come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ops {
    /// All are the same.
    All(Op),
    /// A column, and what words in it mean beside the usual ones.
    Column(Place, Vec<(String, Op)>),
}

/// What is wrong with the text of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError {
    /// The text.
    pub text: String,
    /// The bytes of it that are wrong.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for LayoutError {
    /// The message, the text with carets under what is wrong, and the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.at.start).unwrap_or_default();
        let marked = self.text.get(self.at.clone()).unwrap_or_default();
        let carets = "^".repeat(marked.chars().count().max(1));
        let indent = before.chars().count();
        write!(
            f,
            "{}\n  | {}\n  | {:indent$}{carets}\n  = {}",
            self.message, self.text, "", self.hint
        )
    }
}

impl std::error::Error for LayoutError {}

const TIMES: &str = "time takes s, ms, us, ns or 100ns, as in time:us";
const SIZES: &str = "offset and size take B, KiB, MiB, sectors (512 bytes), or the bytes of a unit, as in offset:4096";
const OPS: &str = "say what a word means as in op:1=W/0=R; the letters are R, W, T (trim), Z (write zeroes) and F (flush)";
const KEYS: &str = "the columns are time, offset, size, op, volume and stream; _ leaves one out, and all:write stands for op \
                    where every record is a write";
/// More columns than any table has.
const COLUMNS_MAX: usize = 4096;

/// A part of the text, and where it stands.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Part<'a> {
    fn trimmed(self) -> Self {
        let left = self.text.trim_start();
        Part {
            text: left.trim_end(),
            start: self.start + self.text.len() - left.len(),
        }
    }

    /// What is before and after byte `at`, which is left out.
    fn split_at(self, at: usize) -> (Part<'a>, Part<'a>) {
        let before = Part {
            text: &self.text[..at],
            start: self.start,
        };
        let after = Part {
            text: &self.text[at + 1..],
            start: self.start + at + 1,
        };
        (before.trimmed(), after.trimmed())
    }

    fn fault(self, message: impl Into<String>, hint: &str) -> LayoutError {
        LayoutError {
            text: String::new(),
            at: self.start..self.start + self.text.len(),
            message: message.into(),
            hint: hint.to_owned(),
        }
    }
}

/// The columns found so far.
#[derive(Default)]
struct Found {
    time: Option<Column>,
    offset: Option<Column>,
    size: Option<Column>,
    op: Option<Ops>,
    volume: Option<Place>,
    stream: Option<Place>,
    /// Columns given by position so far, those left out included.
    positions: usize,
    named: bool,
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut found = Found::default();
        let whole = Part { text, start: 0 };
        let mut rest = Some(whole);
        let parsed = (|| {
            while let Some(part) = rest {
                let item = match part.text.find(',') {
                    Some(at) => {
                        let (item, after) = part.split_at(at);
                        rest = Some(after);
                        item
                    }
                    None => {
                        rest = None;
                        part.trimmed()
                    }
                };
                found.item(item)?;
            }
            found.layout(whole)
        })();
        parsed.map_err(|error| LayoutError {
            text: text.to_owned(),
            ..error
        })
    }
}

impl Found {
    fn item(&mut self, item: Part<'_>) -> Result<(), LayoutError> {
        if item.text.is_empty() {
            return Err(item.fault("a column is missing here", "_ leaves a column out"));
        }
        if matches!(item.text, "_" | "-") {
            self.position(item)?;
            return Ok(());
        }
        let (key, by_name, rest) = match item.text.find([':', '=']) {
            Some(at) => {
                let (key, rest) = item.split_at(at);
                (key, item.text.as_bytes()[at] == b'=', Some(rest))
            }
            None => (item, false, None),
        };
        if key.text == "all" {
            return self.all(item, rest.filter(|_| !by_name));
        }
        const COLUMNS: [&str; 6] = ["time", "offset", "size", "op", "volume", "stream"];
        if !COLUMNS.contains(&key.text) {
            return Err(key.fault(format!("there is no column '{}'", key.text), KEYS));
        }
        let (name, rest) = match rest {
            Some(rest) if by_name => name_and_unit(key.text, rest),
            rest => (None, rest),
        };
        let place = match name {
            None => Place::Number(self.position(item)?),
            Some(name) => self.named(item, name)?,
        };
        self.take(key, place, rest)
    }

    /// The next position.
    fn position(&mut self, item: Part<'_>) -> Result<usize, LayoutError> {
        if self.named {
            return Err(mixed(item));
        }
        if self.positions == COLUMNS_MAX {
            return Err(item.fault("these are too many columns", "give them by name or number"));
        }
        self.positions += 1;
        Ok(self.positions - 1)
    }

    /// A column by its name, or by its number as `#3`.
    fn named(&mut self, item: Part<'_>, name: Part<'_>) -> Result<Place, LayoutError> {
        if self.positions > 0 {
            return Err(mixed(item));
        }
        self.named = true;
        if name.text.is_empty() {
            let hint =
                "write the name that stands in the header, or the number of the column as #3";
            return Err(item.fault("the name of the column is missing", hint));
        }
        let number = name.text.strip_prefix('#').map(str::parse::<usize>);
        match number {
            Some(Ok(number)) if (1..=COLUMNS_MAX).contains(&number) => {
                Ok(Place::Number(number - 1))
            }
            Some(Ok(_)) => Err(name.fault("there is no such column", "columns count from #1")),
            _ => Ok(Place::Name(name.text.to_owned())),
        }
    }

    fn all(&mut self, item: Part<'_>, op: Option<Part<'_>>) -> Result<(), LayoutError> {
        let hint = "all:read or all:write says what every record is";
        let op = op.and_then(|op| op_of(op.text.as_bytes(), &[]));
        let op = op.ok_or_else(|| item.fault("what all records are is missing", hint))?;
        match self.op.replace(Ops::All(op)) {
            None => Ok(()),
            Some(_) => Err(item.fault("the operation is given twice", "keep one of the two")),
        }
    }

    fn take(
        &mut self,
        key: Part<'_>,
        place: Place,
        rest: Option<Part<'_>>,
    ) -> Result<(), LayoutError> {
        let is_new = match key.text {
            "time" => {
                let unit = time_unit(key, rest)?;
                self.time.replace(Column { place, unit }).is_none()
            }
            "offset" => {
                let unit = size_unit(key, rest)?;
                self.offset.replace(Column { place, unit }).is_none()
            }
            "size" => {
                let unit = size_unit(key, rest)?;
                self.size.replace(Column { place, unit }).is_none()
            }
            "op" => {
                let words = rest.map_or(Ok(Vec::new()), words)?;
                self.op.replace(Ops::Column(place, words)).is_none()
            }
            name => {
                if let Some(rest) = rest {
                    return Err(rest.fault(format!("a {name} has no unit"), "leave it out"));
                }
                let column = match name {
                    "volume" => &mut self.volume,
                    _ => &mut self.stream,
                };
                column.replace(place).is_none()
            }
        };
        match is_new {
            true => Ok(()),
            false => Err(key.fault(
                format!("{} is given twice", key.text),
                "keep one of the two",
            )),
        }
    }

    fn layout(self, whole: Part<'_>) -> Result<Layout, LayoutError> {
        let missing = |what: &str, hint: &str| {
            let end = Part {
                text: "",
                start: whole.text.len(),
            };
            end.fault(format!("no column is said to hold the {what}"), hint)
        };
        Ok(Layout {
            time: self.time,
            offset: self.offset.ok_or_else(|| missing("offset", SIZES))?,
            size: self.size.ok_or_else(|| missing("size", SIZES))?,
            op: self.op.ok_or_else(|| missing("operation", KEYS))?,
            volume: self.volume,
            stream: self.stream,
        })
    }
}

fn mixed(item: Part<'_>) -> LayoutError {
    item.fault(
        "some columns are given by position and some by name",
        "give all by position (time:s,offset:B,...) or all by name or number (time=Name:s,offset=#3:B,...)",
    )
}

/// `Name:unit` taken apart; a name may have colons in it.
fn name_and_unit<'a>(key: &str, rest: Part<'a>) -> (Option<Part<'a>>, Option<Part<'a>>) {
    let Some(at) = rest
        .text
        .rfind(':')
        .filter(|_| !matches!(key, "volume" | "stream"))
    else {
        return (Some(rest), None);
    };
    let (name, unit) = rest.split_at(at);
    if key == "op" && !unit.text.contains('=') {
        return (Some(rest), None);
    }
    let is_pages = unit.text.parse::<u64>().is_ok();
    let pages = name.text.strip_suffix(":pages").filter(|_| is_pages);
    let name = Part {
        text: pages.unwrap_or(name.text),
        ..name
    };
    (Some(name), Some(unit))
}

fn time_unit(key: Part<'_>, unit: Option<Part<'_>>) -> Result<u64, LayoutError> {
    let Some(unit) = unit else {
        return Err(key.fault("the time has no unit", TIMES));
    };
    Ok(match unit.text {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1000,
        "100ns" => 100,
        "ns" => 1,
        other => return Err(unit.fault(format!("'{other}' is no unit of time"), TIMES)),
    })
}

fn size_unit(key: Part<'_>, unit: Option<Part<'_>>) -> Result<u64, LayoutError> {
    let Some(unit) = unit else {
        return Err(key.fault(format!("the {} has no unit", key.text), SIZES));
    };
    let text = unit.text.strip_prefix("pages:").unwrap_or(unit.text);
    Ok(match text.to_ascii_lowercase().as_str() {
        "b" | "bytes" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "sectors" => 512,
        other => match other.parse() {
            Ok(bytes @ 1..=0x1_0000_0000) => bytes,
            _ => {
                let text = format!("'{}' is no unit of sizes", unit.text);
                return Err(unit.fault(text, SIZES));
            }
        },
    })
}

/// `1=W/0=R`: what words mean.
fn words(part: Part<'_>) -> Result<Vec<(String, Op)>, LayoutError> {
    let mut words = Vec::new();
    let mut rest = Some(part);
    while let Some(part) = rest {
        let item = match part.text.find('/') {
            Some(at) => {
                let (item, after) = part.split_at(at);
                rest = Some(after);
                item
            }
            None => {
                rest = None;
                part
            }
        };
        let at = item.text.find('=');
        let pair = at.map(|at| item.split_at(at));
        let op = pair.and_then(|(_, op)| op_of(op.text.as_bytes(), &[]));
        let (Some((word, _)), Some(op)) = (pair, op) else {
            return Err(item.fault("this does not say what a word means", OPS));
        };
        words.push((word.text.to_owned(), op));
    }
    Ok(words)
}

/// The operation that a word stands for: as the layout says, else as usual, in either case. Flags that `blktrace` puts
/// behind the letter are seen through. A bare number is none: formats differ in what 0 and 1 are.
pub(crate) fn op_of(word: &[u8], words: &[(String, Op)]) -> Option<Op> {
    let word = word.trim_ascii();
    let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
    if let Some((_, op)) = words.iter().find(|(known, _)| is(known)) {
        return Some(*op);
    }
    const USUAL: [(Op, &[&str]); 5] = [
        (Op::Read, &["R", "read", "rd"]),
        (Op::Write, &["W", "write", "wr"]),
        (Op::Trim, &["T", "D", "trim", "discard", "unmap"]),
        (Op::WriteZeroes, &["Z", "write_zeroes", "write_zeros"]),
        (Op::Flush, &["F", "flush"]),
    ];
    let usual = USUAL
        .iter()
        .find(|(_, known)| known.iter().any(|known| is(known)));
    if let Some((op, _)) = usual {
        return Some(*op);
    }
    match word.strip_prefix(b"F").unwrap_or(word) {
        [letter @ (b'R' | b'W' | b'D'), flags @ ..]
            if flags.iter().all(|flag| b"FASMU".contains(flag)) =>
        {
            op_of(&[*letter], &[])
        }
        _ => None,
    }
}

impl Place {
    /// As a message calls it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Place::Number(number) => format!("column {}", number + 1),
            Place::Name(name) => format!("column '{name}'"),
        }
    }
}
