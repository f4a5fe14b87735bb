//! `floatgate trace generate`.

use floatgate_trace::Writer;
use floatgate_trace::generate::{build, generators};
use serde_json::{Value, json};

use super::trace_convert::{summary_text, write_options};
use crate::args::GenerateArgs;
use crate::errors::{Outcome, Place, Problem, nearest};
use crate::output;
use crate::table::Table;

/// Makes a synthetic trace, or lists what can be made.
pub fn run(args: &GenerateArgs) -> Outcome<()> {
    let Some(name) = &args.name else {
        return list(args.json);
    };
    let mut params = Vec::new();
    for set in &args.set {
        let pair = set.split_once('=').ok_or_else(|| {
            Problem::new("a parameter has the form key=value")
                .at(&Place::Argument(format!("--set {set}")))
                .help("for example --set requests=100000")
        })?;
        params.push((pair.0.trim(), pair.1.trim()));
    }
    let requests = build(name, &params).map_err(|error| {
        let problem = Problem::new(error.to_string());
        let near = match &error.param {
            Some(param) => nearest(param, param_names(name)),
            None => nearest(name, generators().iter().map(|g| g.name)),
        };
        match near.filter(|near| Some(*near) != error.param.as_deref()) {
            Some(near) => problem.help(format!("did you mean {near}?")),
            None => {
                problem.help("`floatgate trace generate` lists the generators and their parameters")
            }
        }
    })?;
    let Some(out) = &args.out else {
        return Err(Problem::new("no file to write").help(
            "--out FILE; its name tells the format: .pages, .csv, .parquet, with .xz, .zst, ...",
        ));
    };
    output::check_files(&[("--out", out)], &[])?;
    let mut writer = Writer::create(out, &write_options(args.to.as_deref(), args.page_bytes)?)?;
    let format = writer.format();
    let written = (|| {
        for request in requests {
            writer.write(&request.to_request(args.page_bytes))?;
        }
        writer.finish()
    })();
    let Some(summary) = output::unless_unread(written)? else {
        return Ok(());
    };
    if args.json {
        let written = serde_json::to_value(summary).unwrap_or_default();
        let value = json!({"generator": name, "format": format.name(), "written": written});
        return output::report(out, &output::json(&value)?);
    }
    let text = summary_text(&summary);
    output::report(out, &format!("{} ({format}): {text}\n", out.display()))
}

fn param_names(generator: &str) -> Vec<&'static str> {
    let found = generators().iter().find(|g| g.name == generator);
    found
        .into_iter()
        .flat_map(|g| g.params.iter().map(|p| p.name))
        .collect()
}

fn list(as_json: bool) -> Outcome<()> {
    if as_json {
        let all: Vec<Value> = generators()
            .iter()
            .map(|g| {
                let params: Vec<Value> = g
                    .params
                    .iter()
                    .map(|p| json!({"key": p.name, "unit": p.unit, "default": p.default, "meaning": p.doc}))
                    .collect();
                json!({"name": g.name, "summary": g.summary, "source": g.source, "parameters": params})
            })
            .collect();
        return output::print_json(&all);
    }
    let mut out = String::new();
    for generator in generators() {
        out.push_str(&format!(
            "{}: {} ({})\n",
            generator.name, generator.summary, generator.source
        ));
        let mut table = Table::new(&["<", "<", "<", "<"]);
        for p in generator.params {
            table.row([&format!("  {}", p.name), p.default, p.unit, p.doc]);
        }
        out.push_str(&table.render());
        out.push('\n');
    }
    out.push_str("floatgate trace generate NAME --set KEY=VALUE --out FILE\n");
    output::print(&out)
}
