//! What `--scheme` names: schemes, and schemes with options of their own, as `fast:sw_log=false`.

use floatgate_catalog::Scheme;
use floatgate_sim::config::RunConfig;

use super::schemes::find;
use crate::config::Settings;
use crate::config::resolve::Plan;
use crate::config::sizing::Named;
use crate::errors::{Outcome, Place, Problem};

/// A scheme and the settings it runs with.
#[derive(Clone, Debug)]
pub struct Variant<'a> {
    /// The scheme.
    pub scheme: &'a Scheme,
    /// What results call it: its key, and the options that are its own here.
    pub label: String,
    /// The settings of all, and its own options.
    pub settings: Settings,
    /// Its own options, as they were written.
    own: Vec<(String, String)>,
    place: Place,
}

impl<'a> Variant<'a> {
    /// What `text` names. `place` is where it stands.
    ///
    /// # Errors
    /// Points at what is wrong.
    pub fn parse(
        text: &str,
        place: &Place,
        settings: &Settings,
        schemes: &'a [Scheme],
    ) -> Outcome<Self> {
        let mut words = text.trim().split(':');
        let name = words.next().unwrap_or_default().trim();
        let scheme = find(schemes, name).map_err(|problem| problem.at(place))?;
        let mut label = name.to_string();
        let mut own: Vec<(String, String)> = Vec::new();
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| {
                Problem::new(format!("{word:?} is no option of the form option=value"))
                    .at(place)
                    .help("for example --scheme fast,fast:sw_log=false:log_blocks=64")
            })?;
            let (key, value) = (key.trim(), value.trim());
            if own.iter().any(|(known, _)| known == key) {
                let text = format!("{text} says {key} twice");
                return Err(Problem::new(text).at(place).help("keep one of the two"));
            }
            own.push((key.into(), value.into()));
            label += &format!(":{key}={value}");
        }
        let variant = Self {
            scheme,
            label,
            settings: settings.clone(),
            own,
            place: place.clone(),
        };
        variant.under(settings)
    }

    /// The same under other settings.
    ///
    /// # Errors
    /// Points at an option that the scheme does not have.
    pub fn under(&self, settings: &Settings) -> Outcome<Self> {
        let mut settings = settings.clone();
        for (key, value) in &self.own {
            settings.add_option(self.scheme, key, value, self.place.clone())?;
        }
        Ok(Self {
            settings,
            ..self.clone()
        })
    }

    /// All schemes, with the settings of all.
    pub fn all(settings: &Settings, schemes: &'a [Scheme]) -> Vec<Self> {
        let plain = |scheme: &'a Scheme| Self {
            scheme,
            label: scheme.info.key.into(),
            settings: settings.clone(),
            own: Vec::new(),
            place: Place::Default,
        };
        schemes.iter().map(plain).collect()
    }

    /// Those that a list names, each with its place.
    ///
    /// # Errors
    /// Points at what is wrong, also where one stands twice.
    pub fn list<'t>(
        texts: impl Iterator<Item = (&'t str, Place)>,
        settings: &Settings,
        schemes: &'a [Scheme],
    ) -> Outcome<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for (text, place) in texts {
            let variant = Self::parse(text, &place, settings, schemes)?;
            if all.iter().any(|known| known.label == variant.label) {
                let key = variant.scheme.info.key;
                return Err(
                    Problem::new(format!("{} is named twice", variant.label))
                        .at(&place)
                        .help(format!(
                            "to compare settings of one scheme, give one of them options of its own: {key},{key}:OPTION=VALUE (`floatgate schemes {key}` lists them)"
                        )),
                );
            }
            all.push(variant);
        }
        Ok(all)
    }

    /// Those that `--scheme` names.
    ///
    /// # Errors
    /// As [`Variant::list`].
    pub fn of_flags(
        names: &[String],
        settings: &Settings,
        schemes: &'a [Scheme],
    ) -> Outcome<Vec<Self>> {
        let flag = |text: &String| Place::Argument(format!("--scheme {text}"));
        let named = names.iter().map(|text| (text.as_str(), flag(text)));
        Self::list(named, settings, schemes)
    }

    /// What has a say in the size of its device.
    pub fn named(&self) -> Named<'_> {
        (self.scheme, &self.settings)
    }

    /// The run of it on a device.
    pub fn run_on(&self, plan: &Plan) -> RunConfig {
        RunConfig {
            scheme: self.label.clone(),
            ..plan.run_of(self.scheme, &self.settings)
        }
    }
}
