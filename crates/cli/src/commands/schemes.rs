//! `floatgate schemes`.

use floatgate_catalog::Scheme;
use serde_json::{Value, json};

use crate::args::SchemesArgs;
use crate::config::unknown_scheme;
use crate::errors::Outcome;
use crate::output;
use crate::table::Table;

/// Prints the list of schemes, or one with its options.
pub fn run(args: &SchemesArgs, schemes: &[Scheme]) -> Outcome<()> {
    match &args.name {
        None => list(args.json, schemes),
        Some(name) => show(args.json, find(schemes, name)?),
    }
}

/// The scheme of that name.
///
/// # Errors
/// Lists the names there are.
pub fn find<'a>(schemes: &'a [Scheme], name: &str) -> Outcome<&'a Scheme> {
    schemes
        .iter()
        .find(|scheme| scheme.info.key == name)
        .ok_or_else(|| {
            let known: Vec<&str> = schemes.iter().map(|scheme| scheme.info.key).collect();
            unknown_scheme(name, &known)
        })
}

fn list(as_json: bool, schemes: &[Scheme]) -> Outcome<()> {
    if as_json {
        return output::print_json(&schemes.iter().map(json_of).collect::<Vec<_>>());
    }
    let mut table = Table::new(&["<scheme", "<what it is", "<source"]);
    for scheme in schemes {
        table.row([scheme.info.key, scheme.info.summary, scheme.info.source]);
    }
    output::print(&format!(
        "{}\n`floatgate schemes NAME` shows the options of one.\n",
        table.render()
    ))
}

fn show(as_json: bool, scheme: &Scheme) -> Outcome<()> {
    if as_json {
        return output::print_json(&json_of(scheme));
    }
    let info = &scheme.info;
    let mut out = format!(
        "{}: {}\n{}\nSource: {}\n\n",
        info.key, info.title, info.summary, info.source
    );
    if info.options.is_empty() {
        out.push_str("No options of its own.\n");
        return output::print(&out);
    }
    let mut table = Table::new(&["<option", "<unit", "<default", "<values", "<meaning"]);
    for option in &info.options {
        table.row([
            option.key,
            &option.unit_and_scope(),
            &option.default,
            &option.takes.to_string(),
            option.doc,
        ]);
    }
    out.push_str(&table.render());
    out.push_str(&format!(
        "\nSet with --set scheme.OPTION=VALUE, or in a configuration under [scheme] or [schemes.{}].\n",
        info.key
    ));
    output::print(&out)
}

fn json_of(scheme: &Scheme) -> Value {
    let info = &scheme.info;
    let options: Vec<Value> = info
        .options
        .iter()
        .map(|o| json!({"key": o.key, "unit": o.unit_and_scope(), "default": o.default, "values": o.takes.to_string(), "meaning": o.doc}))
        .collect();
    json!({"key": info.key, "title": info.title, "summary": info.summary, "source": info.source, "options": options})
}
