//! Lists of values: `1,8,32`, `3..20`, `3..20/2`, `0.5..2/0.5`, `64..1024*2`, and words.

use std::ops::Range;

use crate::errors::{Outcome, Place, Problem};

/// Most values of one range.
const VALUES_MAX: usize = 10_000;
/// Most digits after the point of a range's numbers: more do not survive a sum.
const FRACTION_DIGITS_MAX: u32 = 9;

/// The parts of a list between its commas, without the blanks around them; commas in quotes or brackets are no
/// ends.
pub(super) fn items(text: &str) -> Vec<Range<usize>> {
    let (mut depth, mut quote, mut start) = (0_i32, None, 0);
    let mut items = Vec::new();
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            (None, ',') if depth <= 0 => {
                items.push(trimmed(text, start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(trimmed(text, start..text.len()));
    items
}

/// A part of a text without the blanks around it.
fn trimmed(text: &str, part: Range<usize>) -> Range<usize> {
    let whole = &text[part.clone()];
    let start = part.start + whole.len() - whole.trim_start().len();
    start..start + whole.trim().len()
}

/// A number as it was written: so many units of `10^-digits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    units: i128,
    digits: u32,
}

impl Decimal {
    /// None if the text is no decimal number, or one with too many digits.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().replace('_', "");
        let (sign, positive) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, &*text),
        };
        let (whole, fraction) = positive.split_once('.').unwrap_or((positive, ""));
        let are_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let dot_at_end = positive.contains('.') && fraction.is_empty();
        let fits = whole.len() <= 18 && fraction.len() <= FRACTION_DIGITS_MAX as usize;
        if whole.is_empty() || dot_at_end || !fits || !are_digits(whole) || !are_digits(fraction) {
            return None;
        }
        Some(Self {
            units: sign * format!("{whole}{fraction}").parse::<i128>().ok()?,
            digits: fraction.len() as u32,
        })
    }

    /// The same number in units of `10^-digits`, which are as fine at least.
    fn at(self, digits: u32) -> i128 {
        self.units * 10_i128.pow(digits - self.digits)
    }

    /// As the nearest number of its text, whole if it has no digits after the point.
    fn number(self) -> Number {
        match self.digits {
            0 => i64::try_from(self.units).map_or(Number::Real(self.units as f64), Number::Whole),
            digits => Number::Real(self.units as f64 / 10_f64.powi(digits as i32)),
        }
    }
}

/// A value of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Without a fraction.
    Whole(i64),
    /// Perhaps with one.
    Real(f64),
}

/// How a range goes on.
enum Step {
    Add(Decimal),
    Times(Decimal),
}

/// The values of `text` if it is meant as a range: `a..b`, `a..b/step`, `a..b*factor`; both ends belong to it.
///
/// # Errors
/// If it is meant as a range and is none; `place` is where it stands.
pub(super) fn range(text: &str, place: &Place) -> Option<Outcome<Vec<Number>>> {
    let (first, rest) = text.split_once("..")?;
    // `..` is in paths too: only what begins with a number is meant as a range.
    let first = Decimal::read(first)?;
    Some(numbers(first, rest).map_err(|(message, help)| {
        Problem::new(format!("{text}: {message}"))
            .at(place)
            .help(help)
    }))
}

const FORMS: &str = "a range is 3..20, 3..20/2 (steps of 2), 0.5..2/0.5 or 64..1024*2 (each twice the one before), and both ends belong to it";

fn numbers(first: Decimal, rest: &str) -> Result<Vec<Number>, (String, String)> {
    let wrong = |message: &str| (message.to_string(), FORMS.to_string());
    let at = rest.find(['/', '*']).unwrap_or(rest.len());
    let last = Decimal::read(&rest[..at]);
    let last = last.ok_or_else(|| wrong("the end of the range is no number"))?;
    let how = &rest[at..];
    let read = |text: &str| Decimal::read(text).ok_or_else(|| wrong("the step is no number"));
    let step = match how.chars().next() {
        None if first.digits + last.digits == 0 => Step::Add(Decimal {
            units: 1,
            digits: 0,
        }),
        None => return Err(wrong("a range of fractions needs a step")),
        Some('/') => Step::Add(read(&how[1..])?),
        Some(_) => Step::Times(read(&how[1..])?),
    };
    let digits = first.digits.max(last.digits);
    if first.at(digits) > last.at(digits) {
        return Err(wrong("the range goes down; write the smaller end first"));
    }
    match step {
        Step::Add(step) if step.units <= 0 => Err(wrong("the step must be above 0")),
        Step::Add(step) => sums(first, last, step),
        Step::Times(factor) if first.units <= 0 || factor.units <= 10_i128.pow(factor.digits) => {
            Err(wrong(
                "a factor must be above 1, and the range begin above 0",
            ))
        }
        Step::Times(factor) => products(first, last, factor),
    }
}

fn too_many() -> (String, String) {
    let message = format!("more than {VALUES_MAX} values");
    (message, "a larger step, or a factor: 64..1024*2".into())
}

/// Exact: tenths stay tenths.
fn sums(first: Decimal, last: Decimal, step: Decimal) -> Result<Vec<Number>, (String, String)> {
    let digits = first.digits.max(last.digits).max(step.digits);
    let (from, to, by) = (first.at(digits), last.at(digits), step.at(digits));
    let count = (to - from) / by + 1;
    if count > VALUES_MAX as i128 {
        return Err(too_many());
    }
    let value = |i: i128| {
        let units = from + i * by;
        Decimal { units, digits }.number()
    };
    Ok((0..count).map(value).collect())
}

fn products(
    first: Decimal,
    last: Decimal,
    factor: Decimal,
) -> Result<Vec<Number>, (String, String)> {
    let whole = first.digits + last.digits + factor.digits == 0;
    let mut values = Vec::new();
    if whole {
        let mut value = first.units;
        while value <= last.units {
            values.push(Decimal {
                units: value,
                digits: 0,
            });
            value *= factor.units;
        }
        return Ok(values.into_iter().map(Decimal::number).collect());
    }
    let real = |decimal: Decimal| decimal.units as f64 / 10_f64.powi(decimal.digits as i32);
    let (first, last, factor) = (real(first), real(last), real(factor));
    let mut numbers = Vec::new();
    // What rounding adds must not take the end away.
    let value = |i: usize| first * factor.powi(i as i32);
    while value(numbers.len()) <= last * (1.0 + 1e-12) {
        if numbers.len() == VALUES_MAX {
            return Err(too_many());
        }
        numbers.push(Number::Real(value(numbers.len())));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Number::{Real, Whole};

    fn of(text: &str) -> Vec<Number> {
        range(text, &Place::Default).expect("a range").expect(text)
    }

    fn refusal(text: &str) -> String {
        let refused = range(text, &Place::Default).expect("meant as a range");
        refused.expect_err(text).message().to_string()
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        assert_eq!(of("3..6"), [3, 4, 5, 6].map(Whole));
        assert_eq!(of("3..20/6"), [3, 9, 15].map(Whole));
        assert_eq!(of("-2..2/2"), [-2, 0, 2].map(Whole));
        assert_eq!(of("7..7"), [Whole(7)]);
        assert_eq!(of("0.5..2/0.5"), [0.5, 1.0, 1.5, 2.0].map(Real));
        assert_eq!(of("64..1_024*2"), [64, 128, 256, 512, 1024].map(Whole));
        assert_eq!(of("1..4*1.5"), [1.0, 1.5, 2.25, 3.375].map(Real));
        assert_eq!(of("1..3 / 2"), [1, 3].map(Whole));
    }

    #[test]
    fn tenths_are_the_numbers_that_one_would_write() {
        let tenths = of("0.1..0.9/0.1");
        let written = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
        assert_eq!(tenths, written.map(Real));
    }

    #[test]
    fn what_is_no_range_but_meant_as_one_is_refused() {
        for (text, message) in [
            ("20..3", "the range goes down; write the smaller end first"),
            ("3..", "the end of the range is no number"),
            ("3..=20", "the end of the range is no number"),
            ("3..20/0", "the step must be above 0"),
            ("3..20/-1", "the step must be above 0"),
            ("3..20/x", "the step is no number"),
            (
                "3..20*1",
                "a factor must be above 1, and the range begin above 0",
            ),
            (
                "0..20*2",
                "a factor must be above 1, and the range begin above 0",
            ),
            ("0.5..2", "a range of fractions needs a step"),
            ("0..1000000", "more than 10000 values"),
            ("0.5..9*1.0001", "more than 10000 values"),
        ] {
            assert_eq!(refusal(text), format!("{text}: {message}"));
        }
    }

    #[test]
    fn paths_and_words_are_no_ranges() {
        for text in ["../a.csv", "a..b", "fast", "", "..", "1.5", "x1..3"] {
            assert!(range(text, &Place::Default).is_none(), "{text}");
        }
    }

    #[test]
    fn commas_in_brackets_and_quotes_do_not_end_an_item() {
        let text = r#" 1, ["a", "b"],"x,y" ,,3..5"#;
        let items: Vec<&str> = items(text).into_iter().map(|part| &text[part]).collect();
        assert_eq!(items, ["1", r#"["a", "b"]"#, "\"x,y\"", "", "3..5"]);
    }

    /// No text panics, and every range begins with its first value, ends at its last at most, and goes up.
    #[test]
    fn random_texts_are_ranges_in_order_or_refused() {
        const WORDS: [&str; 16] = [
            "0", "1", "9", "3", "12", ".", "..", "/", "*", "-", "_", "=", "e", " ", "é", ",",
        ];
        let mut state = 1_u64;
        let mut random = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let mut ranges = 0;
        for _ in 0..200_000 {
            let words = (0..1 + random(9)).map(|_| WORDS[random(WORDS.len())]);
            let text: String = words.collect();
            for part in items(&text) {
                let item = &text[part];
                let Some(Ok(values)) = range(item, &Place::Default) else {
                    continue;
                };
                let real = |n: &Number| match *n {
                    Whole(n) => n as f64,
                    Real(x) => x,
                };
                let ends = item.split_once("..").expect("a range");
                let first: f64 = ends.0.trim().replace('_', "").parse().expect(item);
                let last = ends.1.split(['/', '*']).next().expect("an end");
                let last: f64 = last.trim().replace('_', "").parse().expect(item);
                let values: Vec<f64> = values.iter().map(real).collect();
                assert_eq!(values[0], first, "{item}");
                assert!(values.windows(2).all(|two| two[0] < two[1]), "{item}");
                assert!(
                    values[values.len() - 1] <= last + last.abs() * 1e-12,
                    "{item}"
                );
                ranges += 1;
            }
        }
        assert!(ranges > 400, "{ranges}");
    }
}
