//! Numbers and fields straight from bytes.

use crate::error::Fault;

/// An unsigned decimal number; `None` for anything else, including one that does not fit.
#[inline]
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    if text.len() <= 19 {
        for &c in text {
            let digit = c.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
    } else {
        for &c in text {
            let digit = c.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
    }
    Some(value)
}

/// An unsigned decimal number with an optional fraction, in units of `10^digits`: `decimal("1.5", 9)`
/// is 1,500,000,000. Digits beyond the last unit are cut off. An exponent (`1.5e-05`) is allowed.
#[inline]
pub(crate) fn decimal(text: &[u8], digits: u32) -> Option<u64> {
    let scale = 10u64.pow(digits);
    let point = text.iter().position(|c| !c.is_ascii_digit());
    let Some(point) = point else {
        return number(text)?.checked_mul(scale);
    };
    if text[point] != b'.' {
        return exponent(text, scale);
    }
    let whole = if point == 0 {
        0
    } else {
        number(&text[..point])?
    };
    let fraction = &text[point + 1..];
    if point == 0 && fraction.is_empty() {
        return None;
    }
    let mut unit = scale;
    let mut part = 0;
    for &c in fraction {
        if !c.is_ascii_digit() {
            return exponent(text, scale);
        }
        unit /= 10;
        part += unit * u64::from(c - b'0');
    }
    whole.checked_mul(scale)?.checked_add(part)
}

/// The rare notation with an exponent, as printed by scripts for very small times.
#[cold]
fn exponent(text: &[u8], scale: u64) -> Option<u64> {
    if text.len() > 40 || !text.iter().any(|c| matches!(c, b'e' | b'E')) {
        return None;
    }
    if !text[0].is_ascii_digit() && text[0] != b'.' {
        return None;
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let scaled = (value * scale as f64).round();
    (scaled.is_finite() && (0.0..9.0e18).contains(&scaled)).then_some(scaled as u64)
}

/// Removes blanks (space, tab, carriage return) at both ends.
#[inline]
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Splits at a separator into at most `N` fields; returns them and how many fields there are in all.
#[inline]
pub(crate) fn split<const N: usize>(line: &[u8], separator: u8) -> ([&[u8]; N], usize) {
    let mut fields = [&line[..0]; N];
    let mut count = 0;
    let mut rest = line;
    loop {
        let (field, more) = match memchr::memchr(separator, rest) {
            Some(i) => (&rest[..i], Some(&rest[i + 1..])),
            None => (rest, None),
        };
        if count < N {
            fields[count] = field;
        }
        count += 1;
        match more {
            Some(more) => rest = more,
            None => return (fields, count),
        }
    }
}

/// Splits at blanks into at most `N` words; returns them and how many words there are in all.
#[inline]
pub(crate) fn words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut fields = [&line[..0]; N];
    let mut count = 0;
    let mut i = 0;
    while i < line.len() {
        if matches!(line[i], b' ' | b'\t') {
            i += 1;
            continue;
        }
        let start = i;
        while i < line.len() && !matches!(line[i], b' ' | b'\t') {
            i += 1;
        }
        if count < N {
            fields[count] = &line[start..i];
        }
        count += 1;
    }
    (fields, count)
}

/// A number, or the fault that names the field.
#[inline]
pub(crate) fn need(text: &[u8], field: &str) -> Result<u64, Fault> {
    number(trim(text)).ok_or_else(|| not_a_number(text, field))
}

/// A 32-bit number, or the fault that names the field.
#[inline]
pub(crate) fn need32(text: &[u8], field: &str) -> Result<u32, Fault> {
    u32::try_from(need(text, field)?).map_err(|_| not_a_number(text, field))
}

/// A time in units of `10^digits` nanoseconds, or the fault that names the field.
#[inline]
pub(crate) fn need_time(text: &[u8], field: &str, digits: u32) -> Result<u64, Fault> {
    decimal(trim(text), digits).ok_or_else(|| not_a_number(text, field))
}

/// Sectors of 512 bytes as bytes, or the fault that names the field.
#[inline]
pub(crate) fn need_sectors(text: &[u8], field: &str) -> Result<u64, Fault> {
    let sectors = need(text, field)?;
    sectors.checked_mul(512).ok_or_else(|| {
        Fault::new(format!("{field} {sectors} lies beyond 2^64 bytes"))
            .hint("check that the column counts sectors of 512 bytes")
    })
}

#[cold]
fn not_a_number(text: &[u8], field: &str) -> Fault {
    let shown = crate::error::excerpt(&text[..text.len().min(40)]);
    if text.is_empty() {
        Fault::new(format!("the {field} is missing"))
    } else if trim(text).first() == Some(&b'-') {
        Fault::new(format!("the {field} is negative: {shown}"))
    } else {
        Fault::new(format!(
            "the {field} is not a number, or too large: {shown}"
        ))
    }
}

/// `Read`/`Write`, `R`/`W`, `RS`, `ws`, ...: by the first letter, in either case.
#[inline]
pub(crate) fn read_or_write(text: &[u8]) -> Option<crate::Op> {
    match trim(text).first() {
        Some(b'R' | b'r') => Some(crate::Op::Read),
        Some(b'W' | b'w') => Some(crate::Op::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        for bad in [&b""[..], b"-1", b"1.0", b" 1", b"1x", b"+1"] {
            assert_eq!(number(bad), None);
        }
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal(b"1.5", 9), Some(1_500_000_000));
        assert_eq!(decimal(b"12", 6), Some(12_000_000));
        assert_eq!(decimal(b"0.026214", 9), Some(26_214_000));
        assert_eq!(decimal(b"0.1234567899", 9), Some(123_456_789));
        assert_eq!(decimal(b"7.", 3), Some(7000));
        assert_eq!(decimal(b".25", 3), Some(250));
        assert_eq!(decimal(b"1.5e-05", 9), Some(15_000));
        assert_eq!(decimal(b"2E3", 0), Some(2000));
        for bad in [
            &b""[..],
            b".",
            b"-1.0",
            b"nan",
            b"inf",
            b"1.2.3",
            b"e",
            b"1e400",
            b"99999999999999999999",
        ] {
            assert_eq!(decimal(bad, 9), None, "{bad:?}");
        }
    }

    #[test]
    fn fields() {
        let (f, n) = split::<3>(b"a,,c,d", b',');
        assert_eq!((f, n), ([&b"a"[..], b"", b"c"], 4));
        let (w, n) = words::<4>(b"  a\tb  c ");
        assert_eq!((w, n), ([&b"a"[..], b"b", b"c", b""], 3));
    }
}
