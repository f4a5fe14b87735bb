//! Reading settings: from the text of a TOML file, and from the arguments of `--set`.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use floatgate_catalog::Scheme;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::checked;
use super::keys::{self, Key, SECTIONS};
use super::{Plain, Setting, Settings};
use crate::errors::{Outcome, Place, Problem, Source, nearest};

impl Settings {
    /// Reads a file, if there is one, and then the `--set` arguments, which win.
    ///
    /// # Errors
    /// Points at what is wrong.
    pub fn load(file: Option<&Path>, sets: &[String], schemes: &[Scheme]) -> Outcome<Self> {
        let mut settings = Self::default();
        if let Some(path) = file {
            let source = read(path)?;
            settings.add_sections(&source, parsed(&source)?.get_ref().iter(), schemes)?;
        }
        let mut given = Self::default();
        for set in sets {
            given.add(set, schemes, false)?;
            settings.add_argument(set, schemes)?;
        }
        Ok(settings)
    }

    /// Adds the settings of a TOML text.
    ///
    /// # Errors
    /// Points at what is wrong.
    pub fn add_text(&mut self, name: &str, text: String, schemes: &[Scheme]) -> Outcome<()> {
        let source = Arc::new(Source {
            name: name.into(),
            text,
        });
        self.add_sections(&source, parsed(&source)?.get_ref().iter(), schemes)
    }

    /// Adds sections of a parsed text.
    pub(super) fn add_sections<'a>(
        &mut self,
        source: &Arc<Source>,
        sections: impl Iterator<Item = Section<'a>>,
        schemes: &[Scheme],
    ) -> Outcome<()> {
        let mut in_file = Self::default();
        for (section, value) in sections {
            let place = Place::File {
                source: source.clone(),
                span: section.span(),
            };
            let section = section.get_ref();
            if section == FLOW {
                self.add_flows(source, value, &place, schemes)?;
                continue;
            }
            check_section(section, &place)?;
            let Some(inner) = value.get_ref().as_table() else {
                let problem = Problem::new(format!("{section} is a section")).at(&place);
                return Err(problem.help(format!(
                    "write [{section}] on a line of its own and the keys below it"
                )));
            };
            let mut reader = FileReader {
                source,
                schemes,
                settings: &mut in_file,
            };
            if section == "schemes" {
                reader.schemes(inner)?
            } else {
                reader.section(section, inner)?
            }
        }
        in_file.values.into_iter().for_each(|(path, setting)| {
            self.values.insert(path, setting);
        });
        Ok(())
    }

    /// Adds the tables `[[flow]]` of a file.
    fn add_flows(
        &mut self,
        source: &Arc<Source>,
        value: &Spanned<DeValue<'_>>,
        place: &Place,
        schemes: &[Scheme],
    ) -> Outcome<()> {
        let DeValue::Array(tables) = value.get_ref() else {
            return Err(Problem::new("flow is a list of tables")
                .at(place)
                .help("write [[flow]] on a line of its own and the keys of the flow below it"));
        };
        for table in tables {
            let mut flow = Self::default();
            let mut reader = FileReader {
                source,
                schemes,
                settings: &mut flow,
            };
            let place = reader.place(table);
            let Some(inner) = table.get_ref().as_table() else {
                return Err(Problem::new("a flow is a table of keys").at(&place));
            };
            reader.section(FLOW, inner)?;
            self.flows.push((flow, place));
        }
        Ok(())
    }

    /// Adds one `a.b=c` of the command line; it wins over what was there.
    ///
    /// # Errors
    /// Shows the argument.
    pub fn add_argument(&mut self, argument: &str, schemes: &[Scheme]) -> Outcome<()> {
        self.add(argument, schemes, true)
    }

    fn add(&mut self, argument: &str, schemes: &[Scheme], overrides: bool) -> Outcome<()> {
        let place = Place::Argument(format!("--set {argument}"));
        let Some((path, text)) = argument.split_once('=') else {
            return Err(form(&place));
        };
        let value = argument_value(text.trim(), &place);
        self.put(path.trim(), value, place, schemes, overrides)
    }

    /// Sets the key of a path as it is written, unit and all, to a value; it wins over what was there.
    ///
    /// # Errors
    /// Points at the place.
    pub(super) fn assign(
        &mut self,
        path: &str,
        value: Plain,
        place: Place,
        schemes: &[Scheme],
    ) -> Outcome<()> {
        self.put(path, value, place, schemes, true)
    }

    fn put(
        &mut self,
        path: &str,
        value: Plain,
        place: Place,
        schemes: &[Scheme],
        overrides: bool,
    ) -> Outcome<()> {
        let (section, key) = path.rsplit_once('.').ok_or_else(|| form(&place))?;
        if let Some(scheme) = section.strip_prefix("schemes.") {
            let scheme = scheme.trim_matches('"');
            return set_option(self, Some(scheme), key, value, place, schemes, overrides);
        }
        check_section(section, &place)?;
        set_key(self, section, key, value, place, schemes, overrides)
    }

    /// Adds an option of one scheme that was given elsewhere than by `--set`; it wins over what was there.
    ///
    /// # Errors
    /// Points at the place.
    pub fn add_option(
        &mut self,
        scheme: &Scheme,
        key: &str,
        text: &str,
        place: Place,
    ) -> Outcome<()> {
        let value = argument_value(text, &place);
        let schemes = std::slice::from_ref(scheme);
        set_option(
            self,
            Some(scheme.info.key),
            key,
            value,
            place,
            schemes,
            true,
        )
    }
}

/// Adds a key of a flow.
///
/// # Errors
/// Points at the place.
pub(super) fn add_to_flow(
    flow: &mut Settings,
    key: &str,
    value: Plain,
    place: Place,
    schemes: &[Scheme],
) -> Outcome<()> {
    set_key(flow, FLOW, key, value, place, schemes, false)
}

/// The section of which there may be many.
pub(super) const FLOW: &str = "flow";

/// The problem of an override that has not the form of one.
fn form(place: &Place) -> Problem {
    Problem::new("an override has the form section.key=value")
        .at(place)
        .help("for example --set device.dies=4 or --set schemes.fast.log_blocks=64")
}

/// A section of a parsed file: its name and what it holds.
pub(super) type Section<'a> = (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

/// The sections of a file.
pub(super) fn parsed(source: &Arc<Source>) -> Outcome<Spanned<DeTable<'_>>> {
    DeTable::parse(&source.text).map_err(|error| syntax(source, &error))
}

/// The text of a configuration file.
pub(super) fn read(path: &Path) -> Outcome<Arc<Source>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::new(format!("cannot read the configuration {name}: {error}"))
            .help("`floatgate config > floatgate.toml` makes one to start from")
    })?;
    Ok(Arc::new(Source { name, text }))
}

/// A value of the command line: TOML where it is, else a word; commas make a list of words where needed.
pub(super) fn argument_value(text: &str, place: &Place) -> Plain {
    match DeValue::parse(text) {
        Ok(value) => {
            plain(value.get_ref(), &|_| place.clone()).unwrap_or_else(|_| Plain::Text(text.into()))
        }
        Err(_) => Plain::Text(text.into()),
    }
}

fn syntax(source: &Arc<Source>, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let message = error.message().trim().replace('\n', "; ");
    Problem::new(format!("this is no TOML: {message}"))
        .at(&Place::File {
            source: source.clone(),
            span,
        })
        .help("a line is key = value, texts stand in quotes, a section begins with [name]")
}

fn check_section(section: &str, place: &Place) -> Outcome<()> {
    let known: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
    if known.contains(&section) && section != FLOW {
        return Ok(());
    }
    if section == FLOW {
        return Err(Problem::new("flow.KEY: which flow?")
            .at(place)
            .help("name the flow with --flow, or give it a table [[flow]] in a file"));
    }
    if section == "vary" {
        return Err(Problem::new("[vary] is for `floatgate sweep` alone")
            .at(place)
            .help("floatgate sweep FILE, or leave the section out"));
    }
    Err(suggest(
        Problem::new(format!("no section {section}")).at(place),
        section,
        &known,
    ))
}

/// Adds the nearest known name, or all of them if none is near.
pub(super) fn suggest(problem: Problem, word: &str, known: &[&str]) -> Problem {
    match nearest(word, known.iter().copied()) {
        Some(near) => problem.help(format!("did you mean {near}?")),
        None if known.is_empty() => problem.help("there is nothing to set there"),
        None => problem.help(format!("there are {}", known.join(", "))),
    }
}

struct FileReader<'a> {
    source: &'a Arc<Source>,
    schemes: &'a [Scheme],
    settings: &'a mut Settings,
}

impl FileReader<'_> {
    fn place<T>(&self, spanned: &Spanned<T>) -> Place {
        Place::File {
            source: self.source.clone(),
            span: spanned.span(),
        }
    }

    fn value(&self, value: &Spanned<DeValue<'_>>) -> Outcome<Plain> {
        let place = |item: &Spanned<DeValue<'_>>| self.place(item);
        plain(value.get_ref(), &place).map_err(|text| Problem::new(text).at(&self.place(value)))
    }

    fn section(&mut self, section: &str, table: &DeTable<'_>) -> Outcome<()> {
        for (key, value) in table {
            let plain = self.value(value)?;
            let known = keys::find(section, key.get_ref()).is_some() || section == "scheme";
            // An unknown key is shown itself; of a known one the value is at fault.
            let place = if known {
                self.place(value)
            } else {
                self.place(key)
            };
            set_key(
                self.settings,
                section,
                key.get_ref(),
                plain,
                place,
                self.schemes,
                false,
            )?;
        }
        Ok(())
    }

    fn schemes(&mut self, table: &DeTable<'_>) -> Outcome<()> {
        for (scheme, options) in table {
            let Some(options) = options.get_ref().as_table() else {
                let problem =
                    Problem::new("[schemes] holds one section a scheme").at(&self.place(scheme));
                return Err(problem.help(
                    "for example [schemes.fast]; options for all schemes stand in [scheme]",
                ));
            };
            check_scheme(scheme.get_ref(), &self.place(scheme), self.schemes)?;
            for (key, value) in options {
                let plain = self.value(value)?;
                let name = Some(scheme.get_ref().as_ref());
                let known = has_option(self.schemes, name, key.get_ref());
                let place = if known {
                    self.place(value)
                } else {
                    self.place(key)
                };
                set_option(
                    self.settings,
                    name,
                    key.get_ref(),
                    plain,
                    place,
                    self.schemes,
                    true,
                )?;
            }
        }
        Ok(())
    }
}

/// Whether there is a key of that path as it is written, whatever value it takes.
pub(super) fn is_key(path: &str, schemes: &[Scheme]) -> bool {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    match section.strip_prefix("schemes.") {
        Some(scheme) => has_option(schemes, Some(scheme.trim_matches('"')), key),
        None => {
            keys::find(section, key).is_some()
                || (section == "scheme" && has_option(schemes, None, key))
        }
    }
}

fn has_option(schemes: &[Scheme], scheme: Option<&str>, key: &str) -> bool {
    let mut of = schemes
        .iter()
        .filter(|s| scheme.is_none_or(|name| s.info.key == name));
    of.any(|s| s.info.options.iter().any(|option| option.key == key))
}

pub(super) fn plain(
    value: &DeValue<'_>,
    place: &dyn Fn(&Spanned<DeValue<'_>>) -> Place,
) -> Result<Plain, String> {
    match value {
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
            .map(Plain::Int)
            .map_err(|_| format!("{} is too large", n.as_str())),
        DeValue::Float(x) => x
            .as_str()
            .parse()
            .map(Plain::Float)
            .map_err(|_| format!("{x} is no number")),
        DeValue::Boolean(b) => Ok(Plain::Bool(*b)),
        DeValue::String(text) => Ok(Plain::Text(text.to_string())),
        DeValue::Array(items) => {
            let mut list = Vec::new();
            for item in items {
                match item.get_ref() {
                    DeValue::String(text) => list.push((text.to_string(), place(item))),
                    DeValue::Integer(n) => list.push((n.as_str().into(), place(item))),
                    DeValue::Float(x) => list.push((x.as_str().into(), place(item))),
                    other => {
                        return Err(format!(
                            "a list of texts or numbers is needed here, not of {}s",
                            other.type_str()
                        ));
                    }
                }
            }
            Ok(Plain::List(list))
        }
        other => Err(format!("no key takes a {}", other.type_str())),
    }
}

fn check_scheme(name: &str, place: &Place, schemes: &[Scheme]) -> Outcome<()> {
    let known: Vec<&str> = schemes.iter().map(|scheme| scheme.info.key).collect();
    if known.contains(&name) {
        return Ok(());
    }
    Err(unknown_scheme(name, &known).at(place))
}

/// Schemes that docs/spec describes and nobody can build yet, with the reason.
const NOT_BUILT: [(&str, &str); 1] = [(
    "cftl",
    "cftl is described in specs/cftl.md but not built: what is published does not fix its behaviour",
)];

/// The problem of a scheme that does not exist.
pub fn unknown_scheme(name: &str, known: &[&str]) -> Problem {
    if let Some((_, reason)) = NOT_BUILT.iter().find(|(key, _)| *key == name) {
        return Problem::new(*reason)
            .help("docs/spec/cftl.md says what is missing; sftl and tpftl do parts of what it is known to do");
    }
    let problem = Problem::new(format!(
        "no scheme {name:?}; there are {}",
        known.join(", ")
    ));
    match nearest(name, known.iter().copied()) {
        Some(near) => problem.help(format!("did you mean {near}?")),
        None => problem.help("`floatgate schemes` says what each is"),
    }
}

fn set_option(
    settings: &mut Settings,
    scheme: Option<&str>,
    key: &str,
    value: Plain,
    place: Place,
    schemes: &[Scheme],
    overrides: bool,
) -> Outcome<()> {
    if let Some(name) = scheme {
        check_scheme(name, &place, schemes)?;
    }
    if !has_option(schemes, scheme, key) {
        let of = schemes
            .iter()
            .filter(|s| scheme.is_none_or(|name| s.info.key == name));
        let known: Vec<&str> = of
            .flat_map(|s| s.info.options.iter().map(|option| option.key))
            .collect();
        let who = scheme.map_or("no scheme has an".to_string(), |name| {
            format!("{name} has no")
        });
        return Err(suggest(
            Problem::new(format!("{who} option {key}")).at(&place),
            key,
            &known,
        ));
    }
    if let Some(several) = several(&value) {
        let problem = Problem::new(format!("{key} takes one value, not several")).at(&place);
        return Err(problem.help(format!(
            "`floatgate sweep --vary scheme.{key}={several}` runs each; in a comparison: --scheme A:{key}=1,A:{key}=2"
        )));
    }
    let path = match scheme {
        Some(name) => format!("schemes.{name}.{key}"),
        None => format!("scheme.{key}"),
    };
    if !overrides && settings.get(&path).is_some() {
        return Err(said_again(&path, &path, &place));
    }
    settings.set(
        path.clone(),
        Setting {
            written: path,
            value,
            place,
        },
        "",
    );
    Ok(())
}

/// The values, where a value is a list: no option takes one.
fn several(value: &Plain) -> Option<String> {
    match value {
        Plain::Text(text) if text.contains(',') => Some(text.trim_matches(['[', ']']).to_string()),
        Plain::List(items) => {
            let words: Vec<&str> = items.iter().map(|(word, _)| &**word).collect();
            Some(words.join(","))
        }
        _ => None,
    }
}

fn set_key(
    settings: &mut Settings,
    section: &str,
    written: &str,
    value: Plain,
    place: Place,
    schemes: &[Scheme],
    overrides: bool,
) -> Outcome<()> {
    // Options of every scheme, so they may stand with a scheme's; they are kept with the device, which does it.
    let section = match written {
        "wear_leveling" | "wear_gap" if section == "scheme" => "device",
        _ => section,
    };
    let Some((key, factor)) = keys::find(section, written) else {
        if section == "scheme" {
            return set_option(settings, None, written, value, place, schemes, overrides);
        }
        return Err(unknown_key(section, written).at(&place));
    };
    let full = format!("{section}.{written}");
    if !overrides && let Some(other) = said_before(settings, key) {
        return Err(said_again(&full, &other.written, &place));
    }
    let value = checked(key, &full, factor, value, &place)?;
    if full == "scheme.name"
        && let Plain::Text(name) = &value
    {
        check_scheme(name, &place, schemes)?;
    }
    settings.set(
        key.path(),
        Setting {
            written: full,
            value,
            place,
        },
        key.group,
    );
    Ok(())
}

fn said_again(full: &str, before: &str, place: &Place) -> Problem {
    let text = if full == before {
        format!("{full} is given twice")
    } else {
        format!("{full} says again what {before} says")
    };
    Problem::new(text).at(place).help("keep one of the two")
}

fn said_before<'a>(settings: &'a Settings, key: &Key) -> Option<&'a Setting> {
    let group = keys::KEYS
        .iter()
        .filter(|k| !key.group.is_empty() && k.group == key.group);
    settings
        .get(&key.path())
        .or_else(|| group.filter_map(|other| settings.get(&other.path())).next())
}

fn unknown_key(section: &str, written: &str) -> Problem {
    let names = keys::names(section);
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let problem = Problem::new(format!("no key {section}.{written}"));
    // `t_prog`, `t_prog_s`, `capacity`: the key is right, its unit is missing or wrong.
    let unit_at_fault = keys::KEYS
        .iter()
        .filter(|k| k.section == section && !k.kind.units().is_empty())
        .find(|key| {
            written == key.name
                || written
                    .strip_prefix(key.name)
                    .is_some_and(|rest| rest.starts_with('_') && rest.len() < 8)
        });
    match unit_at_fault {
        Some(key) => {
            let spellings: Vec<String> = key.spellings().collect();
            problem.help(format!(
                "the unit belongs to the name: {}",
                spellings.join(", ")
            ))
        }
        None => suggest(problem, written, &known),
    }
}
