//! Settings from a TOML file and from `--set`: every value knows where it stands, so that every error can
//! point there.

mod check;
pub mod document;
pub mod flows;
pub mod keys;
mod load;
mod ranges;
pub use load::unknown_scheme;
pub mod resolve;
pub mod sizing;
pub mod vary;
pub mod written;

use std::collections::BTreeMap;

use floatgate_catalog::Scheme;
use floatgate_core::options::Value as OptionValue;
use floatgate_sim::part::{DRIVE_DIE_BYTES, DRIVE_SPARE_PERCENT, part};

use crate::errors::{Outcome, Place, Problem};

/// A value as it stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// A list of texts, each with its place.
    List(Vec<(String, Place)>),
}

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x}"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Text(t) => write!(f, "{t:?}"),
            Self::List(items) => {
                let items: Vec<String> =
                    items.iter().map(|(item, _)| format!("{item:?}")).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

/// A setting that was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key as it was written, as `device.t_prog_us`.
    pub written: String,
    /// The value; times in ns, sizes in bytes.
    pub value: Plain,
    /// Where it stands.
    pub place: Place,
}

/// All settings that were given, checked one by one.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: BTreeMap<String, Setting>,
    /// The flows of a file, each with its keys and where it stands.
    flows: Vec<(Settings, Place)>,
}

impl Settings {
    /// The setting of a path such as `device.t_prog` (without a unit).
    pub fn get(&self, path: &str) -> Option<&Setting> {
        self.values.get(path)
    }

    /// A whole number, if it was given.
    pub fn whole(&self, path: &str) -> Option<u64> {
        match self.get(path)?.value {
            Plain::Int(n) => u64::try_from(n).ok(),
            _ => None,
        }
    }

    /// A whole number of a key whose bounds fit 32 bits.
    pub fn small(&self, path: &str) -> Option<u32> {
        self.whole(path).and_then(|n| u32::try_from(n).ok())
    }

    /// A number, if it was given.
    pub fn number(&self, path: &str) -> Option<f64> {
        match self.get(path)?.value {
            Plain::Int(n) => Some(n as f64),
            Plain::Float(x) => Some(x),
            _ => None,
        }
    }

    /// A truth value, if it was given.
    pub fn flag(&self, path: &str) -> Option<bool> {
        match self.get(path)?.value {
            Plain::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// A text, if it was given.
    pub fn text(&self, path: &str) -> Option<&str> {
        match &self.get(path)?.value {
            Plain::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A list, empty if it was not given.
    pub fn list(&self, path: &str) -> &[(String, Place)] {
        match self.get(path).map(|setting| &setting.value) {
            Some(Plain::List(items)) => items,
            _ => &[],
        }
    }

    /// The numbers of a list, none if it was not given.
    pub fn numbers(&self, path: &str) -> Vec<f64> {
        let items = self.list(path).iter();
        items.filter_map(|(item, _)| item.parse().ok()).collect()
    }

    /// What the drive that `device.preset` names consists of, where nothing else is given.
    #[must_use]
    pub(super) fn with_preset(self) -> Self {
        let Some(part) = self.text("device.preset").and_then(part) else {
            return self;
        };
        let place = self.place("device.preset");
        let (channels, dies, _) = part.device;
        let capacity = u64::from(dies) * DRIVE_DIE_BYTES;
        let mut preset = Self::default();
        for (key, value) in [
            ("part", Plain::Text(part.name.into())),
            ("channels", Plain::Int(channels.into())),
            ("dies", Plain::Int(dies.into())),
            ("capacity", Plain::Int(capacity as i64)),
            ("spare_percent", Plain::Float(DRIVE_SPARE_PERCENT)),
        ] {
            let setting = Setting {
                written: "device.preset".into(),
                value,
                place: place.clone(),
            };
            preset.values.insert(format!("device.{key}"), setting);
        }
        preset.under(self)
    }

    /// Where a path stands.
    pub fn place(&self, path: &str) -> Place {
        self.get(path)
            .map(|setting| setting.place.clone())
            .unwrap_or_default()
    }

    /// The same, or another place if it was not given.
    fn place_or(&self, path: &str, other: &Place) -> Place {
        self.get(path)
            .map_or_else(|| other.clone(), |setting| setting.place.clone())
    }

    /// Refuses flows, for all that plays one trace.
    ///
    /// # Errors
    /// Points at the first of them.
    pub fn check_no_flows(&self) -> Outcome<()> {
        match self.flows.first() {
            Some((_, place)) => Err(Problem::new("[[flow]] is for `floatgate run` alone")
                .at(place)
                .help("leave the flows out")),
            None => Ok(()),
        }
    }

    /// The options given for a scheme. Those of `[scheme]` count if it has them and `[scheme]` is not about
    /// another scheme; those of `[schemes.<name>]` win.
    pub fn options_of(&self, scheme: &Scheme) -> Vec<(String, OptionValue)> {
        let about_another = self
            .text("scheme.name")
            .is_some_and(|name| name != scheme.info.key);
        let mut options: Vec<(String, OptionValue)> = Vec::new();
        for option in &scheme.info.options {
            let own = self.get(&format!("schemes.{}.{}", scheme.info.key, option.key));
            let common = self
                .get(&format!("scheme.{}", option.key))
                .filter(|_| !about_another);
            if let Some(value) = own
                .or(common)
                .and_then(|setting| option_value(&setting.value))
            {
                options.push((option.key.to_string(), value));
            }
        }
        options
    }

    /// The largest number of log blocks that was given for a scheme, and where.
    pub fn most_log_blocks(&self) -> Option<(u64, Place)> {
        let given = self
            .values
            .keys()
            .filter(|path| path.ends_with(".log_blocks"));
        let given = given.filter_map(|path| Some((self.whole(path)?, self.place(path))));
        given.max_by_key(|(blocks, _)| *blocks)
    }

    /// Where the key that a refusal names was given, if it was.
    pub fn place_of_refusal(&self, scheme: Option<&str>, key: &str) -> Place {
        // What does not fit is a sum: the first of its parts that was given is shown.
        let parts: &[&str] = match key {
            "blocks" => &[
                "blocks_per_die",
                "spare_percent",
                "log_blocks",
                "log_percent",
                "capacity",
                "logical_pages",
            ],
            "logical_pages" => &[
                "logical_pages",
                "capacity",
                "blocks_per_die",
                "spare_percent",
            ],
            "pages" => &["pages_per_block"],
            "write_pages" => &["write"],
            _ => &[],
        };
        let sections = scheme.map(|scheme| format!("schemes.{scheme}")).into_iter();
        let sections = sections
            .chain(["scheme", "device", "schedule", "buffer", "host", "run"].map(String::from));
        let sections: Vec<String> = sections.collect();
        let keys = std::iter::once(key).chain(parts.iter().copied());
        let paths = keys.flat_map(|key| {
            sections
                .iter()
                .map(move |section| format!("{section}.{key}"))
        });
        // A section that nobody shares keys with says so.
        let place = std::iter::once(key.to_string())
            .chain(paths)
            .find_map(|path| self.get(&path).map(|setting| setting.place.clone()));
        place.unwrap_or_default()
    }

    /// Takes the place of whatever said the same before.
    fn set(&mut self, path: String, setting: Setting, group: &str) {
        if !group.is_empty() {
            for other in keys::KEYS.iter().filter(|key| key.group == group) {
                self.values.remove(&other.path());
            }
        }
        self.values.insert(path, setting);
    }

    /// These settings where `given` says nothing else.
    #[must_use]
    pub fn under(mut self, given: Self) -> Self {
        // The channels of a device go with its dies.
        if given.get("device.dies").is_some() {
            self.values.remove("device.channels");
        }
        self.flows.extend(given.flows);
        for (path, setting) in given.values {
            let key = keys::KEYS.iter().find(|key| key.path() == path);
            if let Some(option) = path.strip_prefix("scheme.").filter(|_| key.is_none()) {
                // Else what stands here under the scheme's own name would win.
                let own = format!(".{option}");
                self.values
                    .retain(|path, _| !(path.starts_with("schemes.") && path.ends_with(&own)));
            }
            self.set(path, setting, key.map_or("", |key| key.group));
        }
        self
    }

    /// Those of them that are about no scheme.
    #[must_use]
    pub fn of_all_schemes(mut self) -> Self {
        self.values.retain(|path, _| !path.starts_with("scheme"));
        self
    }

    /// Refuses options in `[scheme]` that none of the schemes takes: they would be ignored silently.
    ///
    /// # Errors
    /// Points at the first such option.
    pub fn check_options(&self, schemes: &[&Scheme]) -> Outcome<()> {
        for (path, setting) in self
            .values
            .iter()
            .filter(|(path, _)| path.starts_with("scheme."))
        {
            let key = &path["scheme.".len()..];
            let taken =
                |scheme: &&Scheme| scheme.info.options.iter().any(|option| option.key == key);
            if key != "name" && !schemes.iter().any(taken) {
                let known: Vec<&str> = schemes
                    .iter()
                    .flat_map(|scheme| scheme.info.options.iter().map(|o| o.key))
                    .collect();
                let names: Vec<&str> = schemes.iter().map(|scheme| scheme.info.key).collect();
                let problem = Problem::new(format!("{} has no option {key}", names.join(", ")))
                    .at(&setting.place);
                return Err(load::suggest(problem, key, &known));
            }
        }
        Ok(())
    }
}

fn option_value(value: &Plain) -> Option<OptionValue> {
    match value {
        Plain::Int(n) => Some(OptionValue::Int(*n)),
        Plain::Bool(b) => Some(OptionValue::Bool(*b)),
        Plain::Text(text) => Some(OptionValue::Text(text.clone())),
        // No option takes a fraction or a list: the scheme says what it takes instead.
        Plain::Float(_) | Plain::List(_) => Some(OptionValue::Text(value.to_string())),
    }
}
