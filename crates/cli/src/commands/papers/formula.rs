//! Formulas over a record: `{counters.flash.programs.gc} / {counters.host.page_writes}`.

use std::borrow::Cow;

use exmex::{Express, FlatEx};
use serde_json::Value;

/// Where names are a scheme's own: one that is not there is no mistake.
const OWN: [&str; 5] = [
    "counters.extra.",
    "counters.merges.",
    "stats.",
    "series.",
    "explained.",
];

/// A formula.
#[derive(Clone, Debug)]
pub struct Formula {
    expression: FlatEx<f64>,
    paths: Vec<String>,
}

impl Formula {
    /// Reads it: numbers, `+ - * / ^`, functions, and paths of a record between braces.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expression: FlatEx<f64> =
            exmex::parse(text).map_err(|error| format!("the formula {text}: {error}"))?;
        let paths = expression.var_names().to_vec();
        Ok(Self { expression, paths })
    }

    /// Whether it needs the statistics of the workload.
    pub fn is_of_workload(&self) -> bool {
        self.paths.iter().any(|path| path.starts_with("workload."))
    }

    /// Its value on a record; nothing if one of its parts has none.
    ///
    /// # Errors
    /// If a path leads nowhere.
    pub fn value(&self, record: &Value) -> Result<Option<f64>, String> {
        let mut values = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            match number_at(record, path)? {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        let value = self.expression.eval(&values);
        let value = value.map_err(|error| error.to_string())?;
        Ok(value.is_finite().then_some(value))
    }
}

/// What a path leads to. A part of it is a field, a place in a list, or the name of a list's element; `field<=x` and
/// `field>x` keep the elements of a list for which that holds, a field of the elements makes a list of its values, and
/// `min`, `max`, `mean`, `sum` and `len` at its end are those of a list of numbers.
fn number_at(record: &Value, path: &str) -> Result<Option<f64>, String> {
    let mut here = Cow::Borrowed(record);
    for part in path.split('.') {
        let next = match &here {
            Cow::Borrowed(value) => step(value, part),
            Cow::Owned(value) => step(value, part).map(Next::owned),
        };
        here = match next {
            Some(Next::Value(next)) => next,
            Some(Next::Number(value)) => return Ok(value),
            None if here.is_null() => return Ok(None),
            None if OWN.iter().any(|own| path.starts_with(own)) => return Ok(None),
            None => return Err(format!("{path}: a record has no {part} there")),
        };
    }
    match &*here {
        Value::Number(number) => Ok(number.as_f64()),
        Value::Bool(flag) => Ok(Some(f64::from(u8::from(*flag)))),
        Value::Null => Ok(None),
        _ => Err(format!("{path} is no number")),
    }
}

/// Where a part of a path leads.
enum Next<'a> {
    Value(Cow<'a, Value>),
    /// The end of the path.
    Number(Option<f64>),
}

impl Next<'_> {
    fn owned<'a>(self) -> Next<'a> {
        match self {
            Self::Value(value) => Next::Value(Cow::Owned(value.into_owned())),
            Self::Number(value) => Next::Number(value),
        }
    }
}

fn step<'a>(here: &'a Value, part: &str) -> Option<Next<'a>> {
    let items = match here {
        Value::Object(fields) => {
            return fields
                .get(part)
                .map(|next| Next::Value(Cow::Borrowed(next)));
        }
        Value::Array(items) => items,
        _ => return None,
    };
    let named = match part.parse::<usize>() {
        Ok(place) => items.get(place),
        Err(_) => items.iter().find(|item| is_called(item, part)),
    };
    if let Some(value) = over(items, part) {
        return Some(Next::Number(value));
    }
    let list = || {
        let items = kept(items, part).or_else(|| values(items, part))?;
        Some(Next::Value(Cow::Owned(Value::Array(items))))
    };
    named
        .map(|next| Next::Value(Cow::Borrowed(next)))
        .or_else(list)
}

/// The elements for which `field<=x` or `field>x` holds; nothing if the part is neither.
fn kept(items: &[Value], part: &str) -> Option<Vec<Value>> {
    let (field, bound, above) = match (part.split_once("<="), part.split_once('>')) {
        (Some((field, bound)), _) => (field, bound, false),
        (None, Some((field, bound))) => (field, bound, true),
        (None, None) => return None,
    };
    let bound: f64 = bound.parse().ok()?;
    let is_kept = |item: &&Value| {
        let value = item[field].as_f64();
        value.is_some_and(|value| (value > bound) == above)
    };
    Some(items.iter().filter(is_kept).cloned().collect())
}

/// The values of a field of all elements; nothing if one has no such field.
fn values(items: &[Value], field: &str) -> Option<Vec<Value>> {
    items.iter().map(|item| item.get(field).cloned()).collect()
}

fn is_called(item: &Value, name: &str) -> bool {
    ["name", "means"].iter().any(|key| item[key] == name)
}

/// What a list of numbers comes to.
fn over(items: &[Value], what: &str) -> Option<Option<f64>> {
    let numbers = || items.iter().filter_map(Value::as_f64);
    let sum = || numbers().sum::<f64>();
    Some(match what {
        "min" => numbers().reduce(f64::min),
        "max" => numbers().reduce(f64::max),
        "sum" => Some(sum()),
        "mean" => Some(sum() / numbers().count() as f64).filter(|mean| mean.is_finite()),
        "len" => Some(items.len() as f64),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Result<Option<f64>, String> {
        let record = json!({
            "a": {"b": 6, "none": null, "word": "x"},
            "list": [1.5, 2.5, null],
            "tables": [{"name": "block map", "bytes": 64}, {"name": "rest", "bytes": 8}],
            "sizes": [{"size": 1, "n": 10}, {"size": 8, "n": 20}, {"size": 9, "n": 40}],
            "counters": {"extra": {"hits": 3}},
        });
        Formula::parse(text)?.value(&record)
    }

    #[test]
    fn paths_lead_to_fields_places_names_and_sums() {
        assert_eq!(value("{a.b} / 4"), Ok(Some(1.5)));
        assert_eq!(
            value("{tables.1.bytes} + {tables.block map.bytes}"),
            Ok(Some(72.0))
        );
        assert_eq!(
            value("{list.sum} - {list.min} * {list.max}"),
            Ok(Some(4.0 - 3.75))
        );
        assert_eq!(value("{list.mean} + {tables.len}"), Ok(Some(4.0)));
        assert_eq!(value("2 ^ 10"), Ok(Some(1024.0)));
    }

    #[test]
    fn elements_of_a_list_are_chosen_by_a_field() {
        assert_eq!(value("{sizes.size<=8.n.sum}"), Ok(Some(30.0)));
        assert_eq!(value("{sizes.size>8.n.sum}"), Ok(Some(40.0)));
        assert_eq!(value("{sizes.n.sum} + {sizes.size>1.len}"), Ok(Some(72.0)));
        assert_eq!(value("{sizes.size>9.n.mean}"), Ok(None));
        assert!(value("{sizes.size>x.n.sum}").is_err());
        assert!(value("{sizes.size>1.m.sum}").is_err());
    }

    #[test]
    fn what_has_no_value_gives_none_and_what_is_not_there_is_a_mistake() {
        assert_eq!(value("{a.none} + 1"), Ok(None));
        assert_eq!(value("{a.b} / 0"), Ok(None));
        assert_eq!(value("{counters.extra.misses}"), Ok(None));
        assert!(value("{a.c}").is_err_and(|text| text.contains("no c there")));
        assert!(value("{a.word}").is_err());
        assert!(value("{a.b} +* 2").is_err());
    }
}
