//! Whether a value is what its key takes, and what the key keeps of it.

use super::Plain;
use super::keys::{Key, Kind};
use crate::errors::{Outcome, Place, Problem};

/// The value as the key keeps it.
pub(super) fn checked(
    key: &Key,
    full: &str,
    factor: u64,
    value: Plain,
    place: &Place,
) -> Outcome<Plain> {
    let wrong =
        |wanted: String| Problem::new(format!("{full} = {value}: takes {wanted}")).at(place);
    match (key.kind, &value) {
        (Kind::Whole(min, max), Plain::Int(n))
            if u64::try_from(*n).is_ok_and(|n| (min..=max).contains(&n)) =>
        {
            Ok(value)
        }
        (Kind::Whole(min, max), _) => Err(unit_hint(
            wrong(format!("a whole number from {min} to {max}")),
            &value,
        )),
        (Kind::Number(min, max), Plain::Int(n)) if (min..=max).contains(&(*n as f64)) => Ok(value),
        (Kind::Number(min, max), Plain::Float(x)) if (min..=max).contains(x) => Ok(value),
        (Kind::Number(min, max), _) => Err(unit_hint(
            wrong(format!("a number from {min} to {max}")),
            &value,
        )),
        (Kind::Flag, Plain::Bool(_)) => Ok(value),
        (Kind::Flag, _) => Err(wrong("true or false".into())),
        (Kind::Words(words), Plain::Text(word)) if words.contains(&word.as_str()) => Ok(value),
        (Kind::Words(words), _) => {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            Err(wrong(format!("one of {}", words.join(", "))))
        }
        (Kind::Text, Plain::Text(_)) => Ok(value),
        (Kind::Text, _) => Err(wrong("a text in quotes".into())),
        (Kind::List, Plain::List(_)) => Ok(value),
        // On the command line a comma does what the brackets do in a file.
        (Kind::List, Plain::Text(words)) if !matches!(place, Place::File { .. }) => {
            Ok(Plain::List(
                words
                    .split(',')
                    .map(|word| (word.trim().to_string(), place.clone()))
                    .collect(),
            ))
        }
        (Kind::List, _) => Err(wrong("a list of texts, as [\"fill\", \"settle\"]".into())),
        (Kind::Numbers(min, max, most), _) => {
            let numbers = numbers(&value, (min, max), place);
            let numbers = numbers.filter(|numbers| numbers.len() <= most);
            numbers.map(Plain::List).ok_or_else(|| {
                wrong(format!(
                    "up to {most} numbers from {min} to {max}, as {}",
                    key.example().0
                ))
            })
        }
        (Kind::Time | Kind::Size, _) => with_unit(key, factor, &value)
            .ok_or_else(|| unit_hint(wrong(unit_text(key, full)), &value)),
    }
}

/// The items of a list of numbers. On the command line a comma does what the brackets do in a file, and one number needs
/// neither.
fn numbers(value: &Plain, (min, max): (f64, f64), place: &Place) -> Option<Vec<(String, Place)>> {
    let is_argument = !matches!(place, Place::File { .. });
    let items: Vec<(String, Place)> = match value {
        Plain::List(items) => items.clone(),
        Plain::Text(words) if is_argument => words
            .split(',')
            .map(|word| (word.trim().to_string(), place.clone()))
            .collect(),
        Plain::Int(_) | Plain::Float(_) if is_argument => vec![(value.to_string(), place.clone())],
        _ => return None,
    };
    let is_number = |text: &str| text.parse().is_ok_and(|x: f64| (min..=max).contains(&x));
    items
        .iter()
        .all(|(item, _)| is_number(item))
        .then_some(items)
}

/// A time in ns or a size in bytes, at most an hour or 2^50 bytes.
fn with_unit(key: &Key, factor: u64, value: &Plain) -> Option<Plain> {
    let max = if key.kind == Kind::Time {
        3_600_000_000_000
    } else {
        1 << 50
    };
    let scaled = match value {
        Plain::Int(n) => u64::try_from(*n).ok()?.checked_mul(factor)?,
        Plain::Float(x) => {
            let scaled = x * factor as f64;
            // Half a nanosecond does not exist; 0.1 us is 100 ns although 0.1 is no binary fraction.
            ((scaled - scaled.round()).abs() < 1e-6 && (0.0..1e15).contains(&scaled))
                .then(|| scaled.round() as u64)?
        }
        _ => return None,
    };
    (scaled <= max).then_some(Plain::Int(scaled as i64))
}

fn unit_text(key: &Key, full: &str) -> String {
    let unit = full.rsplit('_').next().unwrap_or_default();
    let (what, most) = match key.kind {
        Kind::Time => ("whole ns", "up to an hour"),
        _ => ("whole bytes", "up to 1 PiB"),
    };
    format!("a number of {unit}, {what}, {most}")
}

/// A number in quotes with its unit, as "200us": the unit belongs to the key.
fn unit_hint(problem: Problem, value: &Plain) -> Problem {
    match value {
        Plain::Text(text) if text.starts_with(|c: char| c.is_ascii_digit()) => problem
            .help("write the number alone, without quotes and unit; the key's name says the unit"),
        _ => problem,
    }
}
