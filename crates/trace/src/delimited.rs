//! Lines of cells: between commas, semicolons, tabs, bars or blanks, some of them in quotes.

use std::ops::Range;

/// What stands between the cells of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    Byte(u8),
    /// Any number of blanks and tabs.
    Blanks,
}

impl Separator {
    /// The one that makes the most cells of a line; blanks if no other makes two.
    pub fn of(line: &[u8]) -> Self {
        let mut found = Vec::new();
        let mut best = (1, Separator::Blanks);
        for byte in *b",;\t|" {
            cells(line, Separator::Byte(byte), &mut found);
            if found.len() > best.0 {
                best = (found.len(), Separator::Byte(byte));
            }
        }
        best.1
    }
}

/// Where the cells of a line are, without quotes and blanks around them.
pub(crate) fn cells(line: &[u8], separator: Separator, found: &mut Vec<Range<usize>>) {
    found.clear();
    let is_blank = |at: usize| matches!(line.get(at), Some(b' ' | b'\t'));
    let mut at = 0;
    loop {
        let is_separator = |at: usize| match separator {
            Separator::Byte(byte) => line[at] == byte,
            Separator::Blanks => is_blank(at),
        };
        while is_blank(at) && (separator == Separator::Blanks || !is_separator(at)) {
            at += 1;
        }
        if separator == Separator::Blanks && at == line.len() {
            return;
        }
        let start = at;
        let quoted = line.get(at) == Some(&b'"');
        let closing = |from: usize| memchr::memchr(b'"', &line[from..]).map(|i| from + i);
        let close = if quoted { closing(at + 1) } else { None };
        at = close.unwrap_or(at);
        while at < line.len() && !is_separator(at) {
            at += 1;
        }
        found.push(match close {
            Some(close) => start + 1..close,
            None => {
                let blanks = line[start..at].iter().rev();
                let blanks = blanks.take_while(|byte| matches!(byte, b' ' | b'\t'));
                start..at - blanks.count()
            }
        });
        if at == line.len() {
            return;
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<&str> {
        let mut found = Vec::new();
        cells(line.as_bytes(), Separator::of(line.as_bytes()), &mut found);
        found.into_iter().map(|range| &line[range]).collect()
    }

    #[test]
    fn separators_quotes_and_blanks() {
        assert_eq!(split("a, b ,,c"), ["a", "b", "", "c"]);
        assert_eq!(split("0,5;8;W"), ["0,5", "8", "W"]);
        assert_eq!(split("  a   b  c "), ["a", "b", "c"]);
        assert_eq!(split("a b\t\tc d\te"), ["a b", "", "c d", "e"]);
        assert_eq!(split("1|\"x|y\" |2"), ["1", "x|y", "2"]);
        assert_eq!(split("\"open,2"), ["\"open", "2"]);
        assert_eq!(split("1,2,"), ["1", "2", ""]);
        assert_eq!(split(""), Vec::<&str>::new());
    }
}
