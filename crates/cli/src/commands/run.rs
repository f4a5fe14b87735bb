//! `floatgate run`: one scheme on one trace, read as it is played.

use floatgate_catalog::Scheme;
use floatgate_sim::record::Outcome as Played;

use super::single::Single;
use super::slowest;
use super::study::{notes_text, write_report};
use super::taps::{Paths, Played as Tapped, Taps};
use crate::args::RunArgs;
use crate::errors::Outcome;
use crate::output;
use crate::progress::Bar;
use crate::report::{self, text, why};

/// Runs the scheme and prints its result.
pub fn run(args: &RunArgs, schemes: &[Scheme]) -> Outcome<()> {
    let single = Single::new(args, schemes)?;
    let paths = Paths {
        requests: args.requests_out.clone(),
        series: args.series_out.clone(),
        blocks: args.blocks_out.clone(),
    };
    // The numbers of the rows of flows are not those of a trace.
    let draws_slowest = args.setup.report.is_some() && !single.has_flows();
    let taps = Taps::open(paths, args.slowest.unwrap_or(0) as usize, draws_slowest)?;
    let ready = single.ready(&mut || {})?;
    let timeline = args.timeline.as_deref();
    let taps = taps.with_timeline(timeline, ready.config(), args.timeline_between.clone())?;
    ready.told().iter().for_each(|line| output::tell(line));
    let bar = Bar::new(ready.requests(), "requests");
    let mut progress = |step| bar.step(step);
    let played = ready.play(|scheme, device, source, flows| {
        taps.play(scheme, device, ready.config(), source, flows, &mut progress)
    });
    let played = played.and_then(|mut played| {
        ready.compare_alone(&mut played.record, &mut progress)?;
        Ok(played)
    });
    bar.done();
    let Tapped {
        record,
        told,
        slowest,
    } = played?;
    if let Some(path) = &args.save_state {
        output::tell(&format!("State:  {}", path.display()));
    }
    told.iter().for_each(|line| output::tell(line));
    let document = ready.document(record);
    if args.setup.json {
        output::print_json(&document)?;
    } else {
        let of = |record| format!("{}{}", text::of(record), why::of(record));
        let text: String = document
            .results
            .iter()
            .filter_map(Played::record)
            .map(of)
            .collect();
        output::print(&format!("\n{text}{}\n", notes_text(&document.notes)))?;
    }
    let Some(path) = &args.setup.report else {
        return Ok(());
    };
    let slowest = slowest.map(|of| slowest::window(&ready, &of)).transpose()?;
    write_report(path, &report::html(&document, slowest.as_ref()))
}
