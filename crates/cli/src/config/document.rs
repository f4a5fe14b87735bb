//! The configuration explained by itself: a file to start from, and a JSON schema for editors.

use floatgate_catalog::Scheme;
use serde_json::{Map, Value, json};

use super::keys::{KEYS, Key, Kind, SECTIONS};
use super::load::FLOW;

/// A commented TOML file: every key is there, with its default.
pub fn example(schemes: &[Scheme]) -> String {
    let mut out = String::from(
        "# Floatgate configuration. Every key is optional. Lines with one # show the default, or an example where the\n\
         # text above says what the default is; take the # away to set a key.\n\
         # floatgate run --config FILE, floatgate compare --config FILE; --set section.key=value overrides.\n",
    );
    for (section, about) in SECTIONS {
        if section == "schemes" {
            scheme_sections(&mut out, schemes);
            continue;
        }
        // There is no flow but those that are asked for.
        let title = match section {
            FLOW => format!("# [[{FLOW}]]"),
            _ => format!("[{section}]"),
        };
        out.push_str(&format!("\n# {about}\n{title}\n"));
        for key in KEYS.iter().filter(|key| key.section == section) {
            let (example, words) = key.example();
            let about = match words {
                Some(words) => format!("{} (default: {words})", key.doc),
                None => key.doc.to_string(),
            };
            out.push_str(&entry(&key.written(), example, &about));
        }
    }
    out.push_str(&format!(
        "\n# {VARY}\n# [vary]\n# device.log_percent = \"3..20\"\n# host.queue_depth = [1, 8, 32]\n"
    ));
    out
}

/// What the table of `sweep` is for.
const VARY: &str =
    "What `sweep` varies, and no other command takes: keys with their sections, and their values.";

fn scheme_sections(out: &mut String, schemes: &[Scheme]) {
    let about = SECTIONS
        .iter()
        .find(|(section, _)| *section == "schemes")
        .map_or("", |(_, about)| about);
    out.push_str(&format!("\n# {about}\n"));
    for scheme in schemes
        .iter()
        .filter(|scheme| !scheme.info.options.is_empty())
    {
        out.push_str(&format!(
            "\n# {}: {}\n[schemes.{}]\n",
            scheme.info.title,
            scheme.info.summary,
            toml_key(scheme.info.key)
        ));
        for option in &scheme.info.options {
            let unit = if option.unit.is_empty() {
                String::new()
            } else {
                format!(" ({})", option.unit_and_scope())
            };
            let about = format!(
                "{}{unit} ({})",
                option.doc.trim_end_matches('.'),
                option.takes
            );
            out.push_str(&entry(option.key, &option_default(&option.default), &about));
        }
    }
}

/// What a key means, above the key itself; both commented out.
fn entry(key: &str, value: &str, about: &str) -> String {
    format!("## {about}\n# {key} = {value}\n")
}

/// A name as TOML takes it: bare if it can be.
pub(super) fn toml_key(name: &str) -> String {
    let bare = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare {
        name.into()
    } else {
        format!("{name:?}")
    }
}

fn option_default(default: &str) -> String {
    let plain = default.parse::<f64>().is_ok() || matches!(default, "true" | "false");
    if plain {
        default.into()
    } else {
        format!("{default:?}")
    }
}

/// A JSON schema of the file.
pub fn schema(schemes: &[Scheme]) -> Value {
    let mut sections = Map::new();
    for (section, about) in SECTIONS {
        let mut properties = Map::new();
        for key in KEYS.iter().filter(|key| key.section == section) {
            for spelling in key.spellings() {
                properties.insert(spelling, key_schema(key));
            }
        }
        match section {
            "scheme" => schemes
                .iter()
                .for_each(|scheme| options_into(&mut properties, scheme)),
            "schemes" => schemes.iter().for_each(|scheme| {
                let mut options = Map::new();
                options_into(&mut options, scheme);
                properties.insert(scheme.info.key.into(), table(scheme.info.summary, options));
            }),
            _ => {}
        }
        let one = table(about, properties);
        let section_schema = match section {
            FLOW => json!({"type": "array", "items": one}),
            _ => one,
        };
        sections.insert(section.into(), section_schema);
    }
    let vary = json!({"description": VARY, "type": "object"});
    sections.insert("vary".into(), vary);
    let mut schema = table("Floatgate configuration", sections);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema
}

fn table(about: &str, properties: Map<String, Value>) -> Value {
    json!({"description": about, "type": "object", "additionalProperties": false, "properties": properties})
}

fn options_into(properties: &mut Map<String, Value>, scheme: &Scheme) {
    for option in &scheme.info.options {
        let about = json!({
            "description": format!("{} ({}; default {})", option.doc, option.takes, option.default),
            "type": ["integer", "boolean", "string"],
        });
        properties.insert(option.key.into(), about);
    }
}

fn key_schema(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Whole(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Words(words) => json!({"enum": words}),
        Kind::Text => json!({"type": "string"}),
        Kind::List => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Numbers(min, max, most) => {
            let item = json!({"type": "number", "minimum": min, "maximum": max});
            json!({"type": "array", "items": item, "maxItems": most})
        }
        Kind::Time | Kind::Size => json!({"type": "number", "minimum": 0}),
    };
    let (example, words) = key.example();
    schema["description"] = format!("{} (default {})", key.doc, words.unwrap_or(example)).into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    #[test]
    fn every_key_takes_its_default_or_example() {
        let schemes = floatgate_catalog::catalog();
        for key in KEYS {
            let title = match key.section {
                FLOW => "[[flow]]".to_string(),
                section => format!("[{section}]"),
            };
            let text = format!("{title}\n{} = {}\n", key.written(), key.example().0);
            let mut settings = Settings::default();
            settings
                .add_text("a.toml", text, &schemes)
                .unwrap_or_else(|problem| panic!("{problem}"));
            let settings = settings.flows.first().map_or(&settings, |(flow, _)| flow);
            assert!(settings.get(&key.path()).is_some());
        }
    }
}
