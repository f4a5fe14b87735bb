//! Keys that take several values: `--vary KEY=VALUES`, and the table `[vary]` of a configuration.

use std::path::Path;
use std::sync::Arc;

use floatgate_catalog::Scheme;
use floatgate_sim::record::sweep::VariedValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::load::{argument_value, is_key, parsed, plain, read};
use super::ranges::{Number, items, range};
use super::{Plain, Settings, keys};
use crate::errors::{Outcome, Place, Problem, Source};

/// What is varied besides keys: another name of `trace.file`.
const TRACE: &str = "trace";

/// A key and the values it takes, one after the other.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The key as it was written, unit and all.
    pub key: String,
    /// Its place in [`Settings`].
    pub path: String,
    /// Where it stands.
    pub place: Place,
    /// Its values, each with its place.
    values: Vec<(Plain, Place)>,
}

impl Axis {
    /// How many values it has; never 0.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// A value for output.
    pub fn value(&self, i: usize) -> VariedValue {
        match &self.values[i].0 {
            Plain::Int(n) => VariedValue::Whole(*n),
            Plain::Float(x) => VariedValue::Number(*x),
            Plain::Bool(b) => VariedValue::Flag(*b),
            Plain::Text(text) => VariedValue::Text(text.clone()),
            list @ Plain::List(_) => VariedValue::Text(list.to_string()),
        }
    }

    /// Gives the key one of its values.
    ///
    /// # Errors
    /// Points at a value that the key does not take.
    pub fn set(&self, i: usize, settings: &mut Settings, schemes: &[Scheme]) -> Outcome<()> {
        let (value, place) = &self.values[i];
        settings.assign(full_key(&self.key), value.clone(), place.clone(), schemes)
    }
}

fn full_key(key: &str) -> &str {
    match key {
        TRACE => "trace.file",
        other => other,
    }
}

/// The settings of a sweep, and what it varies: first what the file says, then the arguments of `--vary`. A value may come
/// twice only if all keys go `in_step`.
///
/// # Errors
/// Points at what is wrong: every value is checked.
pub fn load(
    file: Option<&Path>,
    sets: &[String],
    arguments: &[String],
    in_step: bool,
    schemes: &[Scheme],
) -> Outcome<(Settings, Vec<Axis>)> {
    let mut settings = Settings::default();
    let mut given = Vec::new();
    if let Some(path) = file {
        let source = read(path)?;
        let table = parsed(&source)?;
        let (vary, others): (Vec<_>, Vec<_>) = table
            .get_ref()
            .iter()
            .partition(|(section, _)| section.get_ref() == "vary");
        settings.add_sections(&source, others.into_iter(), schemes)?;
        for (section, value) in vary {
            let place = place_in(&source, section);
            let Some(table) = value.get_ref().as_table() else {
                return Err(Problem::new("vary is a section")
                    .at(&place)
                    .help("write [vary] on a line of its own and below it keys and their values"));
            };
            in_table(&source, "", table, &mut given)?;
        }
    }
    for set in sets {
        settings.add_argument(set, schemes)?;
    }
    for argument in arguments {
        given.push(of_argument(argument)?);
    }
    let mut axes: Vec<Axis> = Vec::new();
    for given in given {
        let axis = checked(given, in_step, schemes)?;
        if let Some(other) = axes.iter().find(|other| say_the_same(other, &axis)) {
            return Err(again(&axis, other));
        }
        axes.push(axis);
    }
    Ok((settings, axes))
}

fn again(axis: &Axis, other: &Axis) -> Problem {
    let text = match axis.key == other.key {
        true => format!("{} is varied twice", axis.key),
        false => format!("{} varies again what {} varies", axis.key, other.key),
    };
    Problem::new(text)
        .at(&axis.place)
        .help("keep one of the two; all its values may stand in one list")
}

/// Whether two axes are about one key, or about keys of which only one may be given.
fn say_the_same(a: &Axis, b: &Axis) -> bool {
    let group = |axis: &Axis| {
        let key = keys::KEYS.iter().find(|key| key.path() == axis.path);
        key.map_or("", |key| key.group)
    };
    a.path == b.path || (!group(a).is_empty() && group(a) == group(b))
}

/// A key and its values as they were given.
struct Given {
    key: String,
    place: Place,
    values: Vec<(Plain, Place)>,
}

/// Checks the key and all its values.
fn checked(given: Given, in_step: bool, schemes: &[Scheme]) -> Outcome<Axis> {
    let Given { key, place, values } = given;
    let instead = match full_key(&key) {
        "compare.schemes" | "scheme.name" => {
            Some("every cell runs under every scheme: --scheme page,fast chooses them")
        }
        "compare.jobs" => Some("it changes no result; --jobs sets it"),
        _ => None,
    };
    if let Some(help) = instead {
        return Err(Problem::new(format!("{key} cannot be varied"))
            .at(&place)
            .help(help));
    }
    let mut axis = Axis {
        key,
        path: String::new(),
        place,
        values,
    };
    if !is_key(full_key(&axis.key), schemes) {
        // The key is at fault, not its values: the same message, but it points at the key.
        axis.values[0].1 = axis.place.clone();
    }
    let mut seen: Vec<Plain> = Vec::new();
    for i in 0..axis.count() {
        let mut alone = Settings::default();
        axis.set(i, &mut alone, schemes)?;
        for (path, setting) in alone.values {
            if !in_step && seen.contains(&setting.value) {
                let text = format!("{} comes twice", axis.value(i));
                return Err(Problem::new(text)
                    .at(&setting.place)
                    .help("leave one of the two out"));
            }
            seen.push(setting.value);
            axis.path = path;
        }
    }
    Ok(axis)
}

/// `KEY=VALUES` of the command line.
fn of_argument(argument: &str) -> Outcome<Given> {
    let source = Arc::new(Source {
        name: "--vary".into(),
        text: argument.into(),
    });
    let place = |span| Place::Option {
        source: source.clone(),
        span,
    };
    let form = || {
        Problem::new("what varies has the form section.key=values")
            .at(&place(0..argument.len()))
            .help("for example --vary device.log_percent=3..20 or --vary host.queue_depth=1,8,32")
    };
    let at = argument.find('=').ok_or_else(form)?;
    let key = argument[..at].trim();
    if key.is_empty() || (key != TRACE && !key.contains('.')) {
        return Err(form());
    }
    let text = &argument[at + 1..];
    let moved = |part: std::ops::Range<usize>| place(part.start + at + 1..part.end + at + 1);
    let mut values = Vec::new();
    for part in items(text) {
        let here = moved(part.clone());
        let item = &text[part];
        if item.is_empty() {
            return Err(Problem::new(format!("{key}: a value is missing"))
                .at(&here)
                .help("values stand between commas, as 1,8,32"));
        }
        match range(item, &here) {
            Some(numbers) => spread(numbers?, &here, &mut values),
            None => values.push((argument_value(item, &here), here)),
        }
    }
    Ok(Given {
        key: key.into(),
        place: place(0..at),
        values,
    })
}

fn spread(numbers: Vec<Number>, place: &Place, values: &mut Vec<(Plain, Place)>) {
    values.extend(numbers.into_iter().map(|number| {
        let value = match number {
            Number::Whole(n) => Plain::Int(n),
            Number::Real(x) => Plain::Float(x),
        };
        (value, place.clone())
    }));
}

fn place_in<T>(source: &Arc<Source>, spanned: &Spanned<T>) -> Place {
    Place::File {
        source: source.clone(),
        span: spanned.span(),
    }
}

/// The keys of `[vary]`, in the order of the file. `device.dies = ...` is a table in a table for TOML.
fn in_table(
    source: &Arc<Source>,
    above: &str,
    table: &DeTable<'_>,
    given: &mut Vec<Given>,
) -> Outcome<()> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let path = match above {
            "" => key.get_ref().to_string(),
            above => format!("{above}.{}", key.get_ref()),
        };
        if let Some(inner) = value.get_ref().as_table() {
            in_table(source, &path, inner, given)?;
            continue;
        }
        let place = place_in(source, key);
        if path != TRACE && !path.contains('.') {
            return Err(Problem::new(format!("no section in {path}"))
                .at(&place)
                .help("keys stand here with their sections, as device.log_percent = \"3..20\""));
        }
        let values = in_file(source, value)?;
        if values.is_empty() {
            return Err(Problem::new(format!("{path} has no value"))
                .at(&place_in(source, value))
                .help("for example [1, 8, 32] or \"3..20\""));
        }
        given.push(Given {
            key: path,
            place,
            values,
        });
    }
    Ok(())
}

/// A value, a list of values, or a text as `--vary` takes it.
fn in_file(source: &Arc<Source>, value: &Spanned<DeValue<'_>>) -> Outcome<Vec<(Plain, Place)>> {
    let mut values = Vec::new();
    match value.get_ref() {
        DeValue::Array(list) => {
            for item in list.iter() {
                one(source, item, &mut values)?;
            }
        }
        DeValue::String(text) => {
            let place = place_in(source, value);
            for part in items(text) {
                match range(&text[part.clone()], &place) {
                    Some(numbers) => spread(numbers?, &place, &mut values),
                    None => values.push((argument_value(&text[part], &place), place.clone())),
                }
            }
        }
        _ => one(source, value, &mut values)?,
    }
    Ok(values)
}

/// One item of a list: a value, or a range in quotes.
fn one(
    source: &Arc<Source>,
    value: &Spanned<DeValue<'_>>,
    values: &mut Vec<(Plain, Place)>,
) -> Outcome<()> {
    let place = place_in(source, value);
    if let Some(numbers) = value
        .get_ref()
        .as_str()
        .and_then(|text| range(text, &place))
    {
        spread(numbers?, &place, values);
        return Ok(());
    }
    let at = |item: &Spanned<DeValue<'_>>| place_in(source, item);
    let value = plain(value.get_ref(), &at).map_err(|text| Problem::new(text).at(&place))?;
    values.push((value, place));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, arguments: &[&str]) -> Outcome<Vec<String>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.toml");
        std::fs::write(&path, file).expect("a file");
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let schemes = floatgate_catalog::catalog();
        let (_, axes) = load(Some(&path), &[], &arguments, false, &schemes)?;
        let text = |axis: &Axis| {
            let values: Vec<String> = (0..axis.count())
                .map(|i| axis.value(i).to_string())
                .collect();
            format!("{}={}", axis.key, values.join(" "))
        };
        Ok(axes.iter().map(text).collect())
    }

    #[test]
    fn a_file_says_it_as_the_command_line_does() {
        let file = "[host]\narrivals = \"closed\"\n[vary]\nhost.queue_depth = [1, 8, \"16..64*2\"]\n\
                    device.log_percent = \"3..5, 20\"\nschemes.\"last++\".log_blocks = 64\n\
                    \"scheme.sw_log\" = [true, false]\ntrace = [\"desktop\", \"a,b\"]\n\
                    run.ageing = [[\"fill\"], [\"fill\", \"settle\"]]\n";
        let from_file = of(file, &[]).expect("axes");
        assert_eq!(
            from_file,
            [
                "host.queue_depth=1 8 16 32 64",
                "device.log_percent=3 4 5 20",
                "schemes.last++.log_blocks=64",
                "scheme.sw_log=true false",
                "trace=desktop a,b",
                "run.ageing=[\"fill\"] [\"fill\", \"settle\"]",
            ]
        );
        let arguments = [
            "host.queue_depth=1,8,16..64*2",
            "device.log_percent=3..5, 20",
            "schemes.last++.log_blocks=64",
            "scheme.sw_log=true,false",
            "trace=desktop,\"a,b\"",
            "run.ageing=[\"fill\"],[\"fill\", \"settle\"]",
        ];
        assert_eq!(of("", &arguments).expect("axes"), from_file);
    }

    #[test]
    fn one_key_is_varied_once_whatever_it_is_called() {
        let refusal = |arguments: &[&str]| of("", arguments).expect_err("twice").to_string();
        let text = refusal(&["device.capacity_mib=64,128", "device.capacity_gib=1"]);
        assert!(
            text.starts_with("error: device.capacity_gib varies again what device.capacity_mib varies\n  --> --vary device.capacity_gib=1\n             ^^^^^^^^^^^^^^^^^^^\n"),
            "{text}"
        );
        let text = refusal(&["device.capacity_mib=64", "device.logical_pages=1024"]);
        assert!(text.contains("varies again"), "{text}");
        let text = refusal(&["scheme.wear_gap=64", "device.wear_gap=32"]);
        assert!(text.contains("varies again"), "{text}");
        let text = refusal(&["device.dies=1,2..4,3"]);
        assert!(
            text.starts_with("error: 3 comes twice\n  --> --vary device.dies=1,2..4,3\n                                ^\n"),
            "{text}"
        );
    }
}
