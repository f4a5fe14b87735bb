//! `floatgate trace generate`.

use floatgate_trace::generate::{GenerateError, Requests, build, generators};
use floatgate_trace::{Count, Filter, Op, PageCache, Request, Writer};
use serde_json::{Value, json};

use super::trace_convert::{summary_text, write_options};
use crate::args::GenerateArgs;
use crate::errors::{Outcome, Place, Problem, nearest};
use crate::output;
use crate::table::Table;
use crate::traces::pagecache;

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
    let made =
        |params: &[(&str, &str)]| build(name, params).map_err(|error| explained(name, &error));
    let requests = made(&params)?;
    let cache = pagecache("--pagecache", args.pagecache.as_deref())?;
    let requests: Box<dyn Iterator<Item = Request>> = match cache {
        None => Box::new(requests.map(|request| request.to_request(args.page_bytes))),
        Some(cache) => {
            let cache = PageCache {
                page_bytes: args.page_bytes,
                ..cache
            };
            behind(name, &params, requests, cache, made)?
        }
    };
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
            writer.write(&request)?;
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

/// What a page cache leaves of a generator. If the length counts pages at the device, the generator goes on until as many
/// have been written there as it writes without a cache.
fn behind(
    name: &str,
    params: &[(&str, &str)],
    requests: Requests,
    cache: PageCache,
    made: impl Fn(&[(&str, &str)]) -> Outcome<Requests>,
) -> Outcome<Box<dyn Iterator<Item = Request>>> {
    let page_bytes = cache.page_bytes;
    let mut filter = Filter::new(cache);
    if cache.count == Count::Host {
        let mut requests = Some(requests);
        return Ok(Box::new(std::iter::from_fn(move || {
            loop {
                if let Some(request) = filter.pop() {
                    return Some(request);
                }
                match requests.as_mut()?.next() {
                    Some(request) => filter.push(&request.to_request(page_bytes)),
                    None => {
                        filter.end();
                        requests = None;
                        return filter.pop();
                    }
                }
            }
        })));
    }
    let writes = requests.filter(|request| request.op == Op::Write);
    let mut left: u64 = writes.map(|request| u64::from(request.n)).sum();
    let most = u64::MAX.to_string();
    let length = ["requests", "writes", "page_writes"]
        .into_iter()
        .find(|key| param_names(name).contains(key));
    let endless: Vec<(&str, &str)> = params
        .iter()
        .filter(|(key, _)| Some(*key) != length)
        .chain(length.map(|key| (key, most.as_str())).iter())
        .copied()
        .collect();
    // A cache with room for all that a generator ever writes never writes back.
    let mut trial = Filter::new(cache);
    let patience = cache.dirty_pages.saturating_mul(64).max(1 << 20);
    let mut tried = made(&endless)?.take(patience as usize);
    let fills = tried.any(|request| {
        trial.push(&request.to_request(page_bytes));
        std::iter::from_fn(|| trial.pop()).any(|request| request.op == Op::Write)
    });
    if !fills {
        return Err(Problem::new(format!(
            "--pagecache: the generator writes only {} different pages, and dirty_pages is {}: nothing reaches the device",
            trial.dirty(),
            cache.dirty_pages
        ))
        .help("fewer dirty_pages, a larger working set, or count=host"));
    }
    let mut host = made(&endless)?;
    Ok(Box::new(std::iter::from_fn(move || {
        while left > 0 {
            if let Some(request) = filter.pop() {
                left -= u64::from(request.op == Op::Write);
                return Some(request);
            }
            filter.push(&host.next()?.to_request(page_bytes));
        }
        None
    })))
}

fn explained(name: &str, error: &GenerateError) -> Problem {
    {
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
    }
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
