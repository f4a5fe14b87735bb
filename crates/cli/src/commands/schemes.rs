//! `floatgate schemes`.

use floatgate_catalog::Scheme;
use floatgate_core::catalog::SchemeInfo;
use floatgate_core::options::{Setting, Value};
use floatgate_core::report::Memory;
use floatgate_core::{Geometry, ProgramOrder};
use serde_json::json;

use crate::args::SchemesArgs;
use crate::config::unknown_scheme;
use crate::errors::{Outcome, Problem};
use crate::output;
use crate::table::{Table, bytes, count};

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
    let mut out = format!("{}: {}\n{}\n\n", info.key, info.title, info.summary);
    out += &story(&info.story());
    out += &format!("\nMEMORY on {EXAMPLE}:\n{}", memory(info)?);
    out += &options(info);
    output::print(&out)
}

/// The head of a scheme's file for a terminal: its headings stand on lines of their own.
fn story(head: &str) -> String {
    let mut out = String::new();
    // The first paragraph says what the summary has said already.
    for paragraph in head.split("\n\n").skip(1) {
        let text = match paragraph
            .strip_prefix("**")
            .and_then(|rest| rest.split_once(".** "))
        {
            Some((heading, text)) => {
                out += &format!("{}\n", heading.to_uppercase());
                text
            }
            None => paragraph,
        };
        for line in text.replace('`', "").lines() {
            out += &format!("  {line}\n");
        }
    }
    out
}

/// The device whose memory is shown: that of the LAST++ paper (Tables I and II).
const EXAMPLE: &str =
    "256 GiB in 8 dies, pages of 4 KiB, 128 a block, 1,024 log blocks where there are any";

fn memory(info: &SchemeInfo) -> Outcome<String> {
    let logical_pages = (256 << 30) / 4096;
    let blocks = (logical_pages / 128 / 8) as u32 * 11 / 10;
    let geometry = Geometry::new(8, blocks, 128, logical_pages, ProgramOrder::Ascending)
        .map_err(|refusal| Problem::bug(refusal.message))?;
    let log_blocks = info.filled_from(Setting::LogBlocks);
    let given: Vec<(&str, Value)> = log_blocks
        .map(|option| (option.key, Value::Int(1_024)))
        .into_iter()
        .collect();
    let tables = (info.tables)(&geometry, &given).map_err(|r| Problem::bug(r.message))?;
    let mut table = Table::new(&["<  table", "entries", "bits each", "size", "<in"]);
    for one in &tables {
        table.row([
            format!("  {}", one.name),
            count(one.entries),
            one.bits_per_entry.to_string(),
            bytes(one.bits() as f64 / 8.0),
            match one.memory {
                Memory::Sram => "SRAM",
                Memory::Dram => "DRAM",
                Memory::Pcm => "PCM",
                Memory::Flash => "flash",
            }
            .to_string(),
        ]);
    }
    Ok(table.render())
}

fn options(info: &SchemeInfo) -> String {
    if info.options.is_empty() {
        return "\nNo options of its own.\n".into();
    }
    let mut table = Table::new(&["<  option", "<unit", "<default", "<values", "<meaning"]);
    for option in &info.options {
        table.row([
            &format!("  {}", option.key),
            &option.unit_and_scope(),
            &option.default,
            &option.takes.to_string(),
            option.doc,
        ]);
    }
    format!(
        "\nOPTIONS, set with --set scheme.OPTION=VALUE, or in a configuration under [scheme] or [schemes.{}]:\n{}",
        info.key,
        table.render()
    )
}

fn json_of(scheme: &Scheme) -> serde_json::Value {
    let info = &scheme.info;
    let options: Vec<serde_json::Value> = info
        .options
        .iter()
        .map(|o| json!({"key": o.key, "unit": o.unit_and_scope(), "default": o.default, "values": o.takes.to_string(), "meaning": o.doc}))
        .collect();
    json!({"key": info.key, "title": info.title, "summary": info.summary, "source": info.source, "story": info.story(), "options": options})
}
