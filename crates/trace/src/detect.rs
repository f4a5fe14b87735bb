//! Detects the format of a trace by its first bytes.
//!
//! The file name serves only to tell the five-column formats apart, since their columns do not say in which units they
//! count.

use crate::Format;
use crate::error::{Cause, Fault, excerpt};
use crate::formats::{blkparse, blkreplay, blktrace, iolog, recorded, vscsi};
use crate::parse::{decimal, number, read_or_write, split, trim, words};
use crate::source::base_name;

/// Lines examined.
const TEST_LINES: usize = 400;

/// The format of a trace that begins with `peek` (decompressed; `whole` if that is all of it).
pub(crate) fn detect(peek: &[u8], whole: bool, name: &str) -> Result<Format, Fault> {
    if peek.starts_with(b"PAR1") {
        return Ok(Format::Parquet);
    }
    if blktrace::version(peek).is_some() {
        return Ok(Format::Blktrace);
    }
    let binary = peek.iter().take(4096).any(|&b| b == 0);
    if binary {
        return match vscsi::version(peek) {
            Some(_) => Ok(Format::Vscsi),
            None => Err(
                Fault::new("no trace format is recognised in this binary file")
                    .hint(format!("say the format; it is one of {}", Format::names())),
            ),
        };
    }
    let lines = lines(peek, whole);
    if let Some(first) = lines.first()
        && (iolog::version(first).is_some() || first.starts_with(b"fio version "))
    {
        return Ok(Format::FioIolog);
    }
    let header = lines.iter().find(|line| line[0] != b'#');
    if header.is_some_and(|line| *line == recorded::WITH_STREAMS) {
        return Ok(Format::Recorded);
    }
    if lines.iter().any(|l| blkreplay::is_column_line(l)) {
        return Ok(Format::Blkreplay);
    }
    // The first line may be a header or a bad one: the format of most lines wins, in a tie the one listed first.
    let mut votes = [0usize; CANDIDATES.len()];
    let mut first_unknown = None;
    let mut data_lines = 0;
    for line in &lines {
        if line[0] == b'#' {
            continue;
        }
        data_lines += 1;
        match CANDIDATES.iter().position(|(_, looks)| looks(line)) {
            Some(i) => votes[i] += 1,
            None if first_unknown.is_none() => first_unknown = Some(*line),
            None => {}
        }
    }
    let best = (0..votes.len()).rev().max_by_key(|&i| votes[i]);
    if let Some(best) = best.filter(|&i| votes[i] > 0 && votes[i] * 4 >= data_lines) {
        return match CANDIDATES[best].0 {
            Format::DiskSimAscii => five_columns(&lines, name),
            format => Ok(format),
        };
    }
    let Some(shown) = first_unknown.or(lines.first().copied()) else {
        return Err(Fault::new("the trace is empty").hint("it has no line that is not blank"));
    };
    let mut fault = Fault::new(format!(
        "no trace format is recognised; the first line is\n  | {}",
        excerpt(shown)
    ))
    .hint(format!("say the format; it is one of {}", Format::names()));
    let first = String::from_utf8_lossy(shown).into_owned();
    fault.cause = Some(Box::new(Cause::Unrecognised(first)));
    Err(fault)
}

/// The non-blank lines; the last one only if it is complete.
fn lines(peek: &[u8], whole: bool) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = peek;
    while !rest.is_empty() && lines.len() < TEST_LINES {
        let (line, more) = match memchr::memchr(b'\n', rest) {
            Some(i) => (&rest[..i], &rest[i + 1..]),
            None if whole => (rest, &rest[..0]),
            None => break,
        };
        rest = more;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            lines.push(line);
        }
    }
    lines
}

type Looks = fn(&[u8]) -> bool;

/// What a line of each format looks like; no two of them accept the same line.
const CANDIDATES: [(Format, Looks); 12] = [
    (Format::Msr, |l| {
        let (f, n) = split::<7>(l, b',');
        (6..=7).contains(&n)
            && is_number(f[0])
            && is_word_op(f[3])
            && is_number(f[4])
            && is_number(f[5])
    }),
    (Format::Systor, |l| {
        let (f, n) = split::<6>(l, b',');
        n == 6
            && (is_time(f[0])
                && is_number(f[3])
                && is_number(f[4])
                && is_number(f[5])
                && (read_or_write(f[2]).is_some() && trim(f[2]).len() == 1
                    || trim(f[2]).is_empty())
                || f[0].eq_ignore_ascii_case(b"timestamp") && f[3].eq_ignore_ascii_case(b"lun"))
    }),
    (Format::Spc, |l| {
        let (f, n) = split::<5>(l, b',');
        n >= 5
            && is_number(f[0])
            && is_number(f[1])
            && is_number(f[2])
            && trim(f[3]).len() == 1
            && read_or_write(f[3]).is_some()
            && is_time(f[4])
    }),
    (Format::Alibaba, |l| {
        let (f, n) = split::<5>(l, b',');
        n == 5
            && trim(f[1]).len() == 1
            && read_or_write(f[1]).is_some()
            && is_number(f[2])
            && is_number(f[3])
            && is_time(f[4])
    }),
    (Format::Tencent, |l| {
        let (f, n) = split::<5>(l, b',');
        n == 5
            && is_time(f[0])
            && is_number(f[1])
            && is_number(f[2])
            && matches!(trim(f[3]), b"0" | b"1")
            && is_number(f[4])
    }),
    (Format::Recorded, |l| {
        let (f, n) = split::<4>(l, b',');
        n == 4
            && (is_number(f[0]) && is_letter_op(f[1]) && is_number(f[2]) && is_number(f[3])
                || f == [&b"time_ns"[..], b"op", b"offset", b"size"])
    }),
    (Format::Blkparse, blkparse::is_event),
    (Format::Blkreplay, blkreplay::is_data_line),
    (Format::HashText, |l| {
        let (f, n) = split::<5>(l, b'\t');
        n >= 5
            && (is_time(f[0])
                && matches!(trim(f[1]), b"R" | b"W")
                && is_number(f[2])
                && is_number(f[3])
                || f.iter().all(|field| trim(field).is_empty()))
    }),
    (Format::DiskMon, |l| {
        let (f, n) = words::<7>(l);
        n == 7
            && is_number(f[0])
            && is_time(f[1])
            && is_word_op(f[4])
            && is_number(f[5])
            && is_number(f[6])
    }),
    (Format::DiskSimAscii, is_five_columns),
    (Format::Pages, |l| {
        let content = memchr::memchr(b'#', l).map_or(l, |i| &l[..i]);
        let (f, n) = words::<5>(content);
        is_letter_op(f[0])
            && ((3..=5).contains(&n) && f[1..n].iter().all(|w| is_number(w))
                || n == 1 && matches!(f[0], b"F" | b"f"))
    }),
];

fn is_number(text: &[u8]) -> bool {
    number(trim(text)).is_some()
}

fn is_time(text: &[u8]) -> bool {
    decimal(trim(text), 0).is_some()
}

fn is_word_op(text: &[u8]) -> bool {
    let text = trim(text);
    text.eq_ignore_ascii_case(b"read") || text.eq_ignore_ascii_case(b"write")
}

fn is_letter_op(text: &[u8]) -> bool {
    matches!(trim(text), [letter] if crate::Op::from_letter(*letter).is_some())
}

fn is_five_columns(line: &[u8]) -> bool {
    let (f, n) = words::<5>(line);
    n == 5
        && is_time(f[0])
        && f[1..4].iter().all(|w| number(w).is_some())
        && matches!(f[4], b"0" | b"1")
}

/// Which of the five-column formats: by the file name's suffix, else by the times.
fn five_columns(lines: &[&[u8]], name: &str) -> Result<Format, Fault> {
    match base_name(name).rsplit_once('.').map(|(_, ending)| ending) {
        Some("5ns") => return Ok(Format::SsdSimAscii),
        Some("5us") => return Ok(Format::MicrosecondAscii),
        Some("5ms") => return Ok(Format::DiskSimAscii),
        Some("5msB") => return Ok(Format::DiskSimAsciiBytes),
        _ => {}
    }
    let mut fraction = false;
    let mut byte_like = 0;
    let mut requests = 0;
    for line in lines.iter().filter(|l| is_five_columns(l)) {
        let (f, _) = words::<5>(line);
        fraction |= number(f[0]).is_none();
        requests += 1;
        let aligned = |w| number(w).is_some_and(|v| v % 512 == 0);
        byte_like += usize::from(aligned(f[2]) && aligned(f[3]));
    }
    if requests >= 8 && byte_like == requests {
        return Err(Fault::new(
            "the addresses and sizes of this five-column trace could be bytes or sectors: all of them \
             are multiples of 512",
        )
        .hint(
            "say the format: '5ns', '5us' or '5ms' count sectors, '5ms-bytes' counts bytes (or end the \
             file name in .5ns, .5us, .5ms or .5msB)",
        ));
    }
    Ok(if fraction {
        Format::DiskSimAscii
    } else {
        Format::SsdSimAscii
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str) -> Result<Format, Fault> {
        detect(text.as_bytes(), true, name)
    }

    #[test]
    fn no_line_has_two_formats() {
        let samples = [
            "128166372003061629,host,0,Read,512,4096,100",
            "1456095145.1,0.1,R,0,512,4096",
            "0,10,4096,w,0.5",
            "7,W,4096,4096,1577808000000046",
            "1538323200,8,8,1,1058",
            "10,W,4096,4096",
            "259,2 0 1 0.000000000 77 Q R 8 + 8 [x]",
            "0.5 ; 8 ; 8 ; W ; 0 ; 0",
            "1.5\t W\t8 \t4096 \tmain \tdm-1\t 00",
            "0\t0.5\t0.1\t0\tWrite\t8\t8",
            "5 0 8 8 1",
            "W 1 2",
        ];
        for (i, sample) in samples.iter().enumerate() {
            for (j, (format, looks)) in CANDIDATES.iter().enumerate() {
                assert_eq!(looks(sample.as_bytes()), i == j, "{sample} as {format}");
            }
        }
    }

    #[test]
    fn five_columns_by_suffix_then_by_times() {
        assert_eq!(found("5 0 8 8 1\n", "x").unwrap(), Format::SsdSimAscii);
        assert_eq!(found("5.0 0 8 8 1\n", "x").unwrap(), Format::DiskSimAscii);
        assert_eq!(
            found("5 0 8 8 1\n", "x.5us.gz").unwrap(),
            Format::MicrosecondAscii
        );
        assert_eq!(
            found("5 0 8 8 1\n", "x.5msB").unwrap(),
            Format::DiskSimAsciiBytes
        );
        let bytes = "0.5 0 4096 512 1\n".repeat(8);
        assert!(
            found(&bytes, "x")
                .unwrap_err()
                .hint
                .unwrap()
                .contains("5ms-bytes")
        );
    }

    #[test]
    fn unknown_and_empty() {
        let fault = found("hello world\n", "x").unwrap_err();
        assert!(fault.message.contains("hello world"));
        assert!(found("\n\n", "x").unwrap_err().message.contains("empty"));
    }
}
