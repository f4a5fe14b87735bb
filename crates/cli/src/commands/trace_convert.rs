//! `floatgate trace convert`.

use floatgate_trace::{WriteOptions, WriteSummary, Writer};
use serde_json::json;

use crate::args::ConvertArgs;
use crate::errors::{Outcome, Problem};
use crate::output;
use crate::table::{bytes, count};
use crate::traces::{About, Choice};

/// Reads a trace and writes it again.
pub fn run(args: &ConvertArgs) -> Outcome<()> {
    let read = &args.read;
    let choice = Choice::new(std::slice::from_ref(&args.file), read)?;
    let inputs: Vec<_> = choice.paths().collect();
    output::check_files(&[("OUT", &args.out)], &inputs)?;
    let mut reader = choice.open()?;
    let mut writer = Writer::create(
        &args.out,
        &write_options(args.to.as_deref(), read.page_bytes)?,
    )?;
    let format = writer.format();
    let written = (|| {
        while let Some(request) = reader.next()? {
            writer.write(&request)?;
        }
        writer.finish()
    })();
    let Some(summary) = output::unless_unread(written)? else {
        return Ok(());
    };
    let about = About::of(&choice, &reader);
    if args.json {
        let written = serde_json::to_value(summary).unwrap_or_default();
        let value = json!({"trace": about.record(), "format": format.name(), "written": written});
        return output::report(&args.out, &output::json(&value)?);
    }
    let out = args.out.display();
    let text = summary_text(&summary);
    let text = format!("{}\n{out} ({format}): {text}\n", about.describe());
    output::report(&args.out, &text)
}

/// The format that was asked for, if any.
pub fn write_options(to: Option<&str>, page_bytes: u32) -> Outcome<WriteOptions> {
    let format = to.map(str::parse).transpose().map_err(Problem::new)?;
    Ok(WriteOptions {
        format,
        page_bytes,
        ..WriteOptions::default()
    })
}

/// What was written, and what the format could not say.
pub fn summary_text(summary: &WriteSummary) -> String {
    let mut text = format!(
        "{} requests, {}",
        count(summary.written),
        bytes(summary.file_bytes as f64)
    );
    for (n, what) in [
        (summary.dropped, "trims, zeroes and flushes left out"),
        (summary.widened, "widened to whole units"),
        (summary.times_cut, "times cut to the unit"),
        (summary.volumes_lost, "without their volume"),
        (summary.streams_lost, "without their stream"),
    ] {
        if n > 0 {
            text.push_str(&format!(", {} {what}", count(n)));
        }
    }
    text
}
