//! `floatgate explain`: where the writes, the erases and the time of a result went, in words.

use std::io::Read;

use floatgate_sim::record::{
    By, Configuration, Document, Explained, HeldUp, Outcome as Ran, Reason, Record, Stats,
};
use serde::Serialize;

use crate::args::ExplainArgs;
use crate::errors::{Outcome, Problem};
use crate::output;
use crate::table::{bytes, count, micros, short, some};

/// Sentences about one thing.
#[derive(Debug, Serialize)]
struct Part {
    about: &'static str,
    sentences: Vec<String>,
}

/// What is said of one scheme.
#[derive(Debug, Serialize)]
struct Story {
    scheme: String,
    title: String,
    parts: Vec<Part>,
}

/// Explains what `run --json` or `compare --json` has printed.
pub fn run(args: &ExplainArgs) -> Outcome<()> {
    let name = args.result.display().to_string();
    let text = read(args).map_err(|error| Problem::new(format!("{name}: {error}")))?;
    let document: Document = serde_json::from_str(&text).map_err(|error| {
        Problem::new(format!("{name}: no result: {error}"))
            .help("it explains what `floatgate run --json` and `floatgate compare --json` print")
    })?;
    let stories: Vec<Story> = document
        .results
        .iter()
        .map(|result| story(result, &document.configuration))
        .collect();
    if args.json {
        return output::print_json(&stories);
    }
    let mut text = format!("{}\n{}\n", document.trace.name, document.device);
    for story in &stories {
        text.push_str(&format!("\n{} ({})\n", story.title, story.scheme));
        for part in &story.parts {
            text.push_str(&format!("\n  {}\n", part.about));
            for sentence in &part.sentences {
                text.push_str(&wrapped(sentence));
            }
        }
    }
    output::print(&text)
}

fn read(args: &ExplainArgs) -> std::io::Result<String> {
    let mut text = String::new();
    match args.result.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text)?,
        false => std::fs::File::open(&args.result)?.read_to_string(&mut text)?,
    };
    Ok(text)
}

/// Columns that a line takes.
const COLUMNS: usize = 96;

/// A sentence in lines, indented.
fn wrapped(sentence: &str) -> String {
    let mut text = String::new();
    let mut line = String::from("   ");
    for word in sentence.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            text.push_str(&line);
            text.push('\n');
            line = "     ".into();
        }
        line.push(' ');
        line.push_str(word);
    }
    text + &line + "\n"
}

fn story(result: &Ran, configuration: &Configuration) -> Story {
    let (scheme, title, mut parts) = match result {
        Ran::Record(record) => (
            record.scheme.clone(),
            record.title.clone(),
            vec![
                part("writes", writes(record)),
                part("moves", moves(record)),
                part("erases", erases(record)),
                part("the map", map(record)),
                part("time of the flash", flash_time(record, configuration)),
                part("time of the requests", request_time(record)),
                part(
                    "the slowest",
                    record.explained.as_ref().map_or(vec![], slowest),
                ),
                part("wear", wear(record)),
            ],
        ),
        Ran::Failed(failed) => {
            let (Reason::Refused(why) | Reason::Failed(why) | Reason::Bug(why)) = &failed.reason;
            let said = vec![format!("There is no result: {why}")];
            (
                failed.scheme.clone(),
                failed.title.clone(),
                vec![part("nothing", said)],
            )
        }
    };
    parts.retain(|part| !part.sentences.is_empty());
    Story {
        scheme,
        title,
        parts,
    }
}

fn part(about: &'static str, sentences: Vec<String>) -> Part {
    Part { about, sentences }
}

/// Shares of a whole in words, the largest first; those below half a percent are left out.
fn shares(parts: &[(&str, f64)]) -> String {
    let all: f64 = parts.iter().map(|(_, n)| n).sum();
    let mut told: Vec<(&str, f64)> = parts
        .iter()
        .map(|&(name, n)| (name, n * 100.0 / all))
        .filter(|&(_, percent)| percent >= 0.5)
        .collect();
    told.sort_by(|a, b| b.1.total_cmp(&a.1));
    let told: Vec<String> = told
        .iter()
        .map(|(name, percent)| format!("{percent:.0} % {name}"))
        .collect();
    told.join(", ")
}

fn writes(record: &Record) -> Vec<String> {
    let (host, flash) = (&record.counters.host, &record.counters.flash);
    let Some(amplification) = record.derived.write_amplification else {
        return vec!["The host wrote nothing.".into()];
    };
    let programs = &flash.programs;
    let mut said = vec![format!(
        "The host wrote {}, and the flash programmed {}: {} for each (write amplification).",
        some(host.page_writes, "page"),
        count(programs.sum()),
        short(amplification),
    )];
    said.push(format!(
        "Of what was programmed: {}.",
        shares(&[
            ("the host's own pages", programs.host as f64),
            ("pages moved", programs.gc as f64),
            ("pages of the map", programs.map as f64),
        ])
    ));
    let stats = &record.stats;
    if stats.partial_write_reads > 0 {
        said.push(format!(
            "Writes that covered pages in part cost {}.",
            some(stats.partial_write_reads, "page read"),
        ));
    }
    said
}

fn moves(record: &Record) -> Vec<String> {
    let (derived, stats, merges) = (&record.derived, &record.stats, &record.counters.merges);
    if derived.copies == 0 {
        return vec!["No page had to be moved.".into()];
    }
    let mut said = Vec::new();
    let kinds = [
        ("in full merges", stats.copies_full as f64),
        ("in partial merges", stats.copies_partial as f64),
        ("in other ways", stats.copies_other as f64),
    ];
    let has_merges = stats.copies_full > 0 || stats.copies_partial > 0;
    if has_merges {
        said.push(format!("Of the pages moved: {}.", shares(&kinds)));
        let kinds: Vec<String> = merges
            .kinds()
            .filter(|&(_, n)| n > 0)
            .map(|(kind, n)| format!("{} {kind}", count(n)))
            .collect();
        said.push(format!("Merges: {}.", kinds.join(", ")));
    }
    if let Some(association) = derived.association {
        said.push(format!(
            "A full merge rebuilt {} logical blocks on average.",
            short(association)
        ));
    }
    if let Some(used) = derived.log_block_utilisation {
        said.push(format!(
            "Log blocks were reclaimed with {:.0} % of their pages used.",
            used * 100.0
        ));
    }
    if !has_merges && derived.erases > 0 {
        said.push(format!(
            "A collection moved {} valid pages for each block that it erased.",
            short(derived.copies as f64 / derived.erases as f64)
        ));
    }
    said
}

fn erases(record: &Record) -> Vec<String> {
    let (host, erases) = (&record.counters.host, &record.counters.flash.erases);
    if erases.sum() == 0 {
        return vec![];
    }
    let mut said = Vec::new();
    if host.page_writes > 0 {
        said.push(format!(
            "{} were erased, one for every {} pages that the host wrote; a block has {}.",
            some(erases.sum(), "block"),
            short(host.page_writes as f64 / erases.sum() as f64),
            record.device.pages,
        ));
    }
    let Stats {
        erases_switch,
        erases_partial,
        erases_full,
        erases_dead,
        erases_other,
        ..
    } = record.stats;
    let kinds = [
        ("after full merges", erases_full as f64),
        ("after partial merges", erases_partial as f64),
        ("after switches, which move nothing", erases_switch as f64),
        (
            "of blocks that held nothing valid any more",
            erases_dead as f64,
        ),
        ("in other ways", erases_other as f64),
    ];
    if [erases_switch, erases_partial, erases_full, erases_dead] != [0; 4] {
        said.push(format!("Of the erases: {}.", shares(&kinds)));
    }
    said
}

fn map(record: &Record) -> Vec<String> {
    let flash = &record.counters.flash;
    let mut said = vec![format!(
        "The tables take {}: {}.",
        bytes(record.tables.bytes),
        record
            .tables
            .tables
            .iter()
            .map(|table| format!("{} {}", table.name, bytes(table.bytes)))
            .collect::<Vec<_>>()
            .join(", ")
    )];
    if flash.reads.map > 0 || flash.programs.map > 0 {
        said.push(format!(
            "The map cost {} and {}, {:.1} % of all that were read and programmed.",
            some(flash.reads.map, "page read"),
            some(flash.programs.map, "program"),
            record.derived.map_overhead.unwrap_or(0.0) * 100.0
        ));
    }
    if flash.oob_reads.sum() > 0 {
        said.push(format!(
            "To find pages, {} were read.",
            some(flash.oob_reads.sum(), "spare area")
        ));
    }
    said
}

/// Operations times the cell times of the part.
fn flash_time(record: &Record, configuration: &Configuration) -> Vec<String> {
    let (flash, part) = (&record.counters.flash, &configuration.device);
    let (read, program) = (part.t_r_us, part.t_prog_us);
    let of = |reads: u64, programs: u64| reads as f64 * read + programs as f64 * program;
    let host = of(flash.reads.host, flash.programs.host);
    let moved = of(flash.reads.gc, flash.programs.gc);
    let mapped = of(flash.reads.map, flash.programs.map);
    let erased = flash.erases.sum() as f64 * part.t_bers_us;
    let all = host + moved + mapped + erased;
    if all == 0.0 {
        return vec![];
    }
    let mut said = vec![format!(
        "One after the other its operations take {} in the cells: {}.",
        micros(all),
        shares(&[
            ("for the host's own reads and writes", host),
            ("for moves", moved),
            ("for the map", mapped),
            ("for erases", erased),
        ])
    )];
    let busiest = |all: &[Option<f64>]| all.iter().flatten().copied().fold(0.0, f64::max) * 100.0;
    let time = &record.time;
    said.push(format!(
        "In {} the busiest of {} was at work for {:.0} % of the time, the busiest of {} for {:.0} %.",
        micros(time.elapsed_s * 1e6),
        some(record.device.dies.into(), "die"),
        busiest(&time.die_utilisation),
        some(record.device.channels.into(), "channel"),
        busiest(&time.channel_utilisation),
    ));
    said
}

fn request_time(record: &Record) -> Vec<String> {
    let time = &record.time;
    let all = &time.response.all;
    let (Some(mean), Some(median), Some(p99), Some(most)) =
        (all.mean_us, all.p50_us, all.p99_us, all.max_us)
    else {
        return vec![];
    };
    let mut said = vec![format!(
        "Of {} half took {} or less, one in a hundred {} or more, the longest {}.",
        some(all.count, "request"),
        micros(median),
        micros(p99),
        micros(most),
    )];
    if let (Some(queue), Some(service)) = (time.queue.mean_us, time.service.mean_us) {
        said.push(format!(
            "On average a request took {}: {} until its first operation began, {} from then on.",
            micros(mean),
            micros(queue),
            micros(service),
        ));
    }
    if let Some(behind_s) = time.behind_s {
        said.push(format!(
            "The device did not keep up: it ended {} late, so these times measure its queue.",
            micros(behind_s * 1e6)
        ));
    }
    said.extend(record.held_up.as_ref().map(held_up));
    said
}

fn held_up(what: &HeldUp) -> String {
    let why = match what.by {
        By::Dies => "the dies were busy nearly all of the time",
        By::OneDie => "one die or a few were busy while others had time",
        By::Channel => "a channel was busy nearly all of the time",
        By::Pcm => "the phase-change memory gives one entry after the other",
        By::Map => "the map is worked on one step after the other while dies have time",
        By::Merges => "merges or collections wait for each other while dies have time",
        By::Order => "writes are done in the scheme's order while dies have time",
    };
    format!(
        "At its fullest {} were waiting; while at least half as many were ({}), {why}: busiest die {:.0} %, busiest channel {:.0} %.",
        some(what.backlog_max, "request"),
        micros(what.seconds * 1e6),
        what.die_utilisation * 100.0,
        what.channel_utilisation * 100.0,
    )
}

/// What `--slowest` has put into the record.
fn slowest(explained: &Explained) -> Vec<String> {
    let mut said = Vec::new();
    for at in &explained.percentiles {
        let work = at.translation_us + at.flash_us + at.gc_us;
        said.push(format!(
            "Requests of about {} (percentile {}) waited {} before they began; operations issued for one take {}: {}.",
            micros(at.response_us),
            at.percentile,
            micros(at.queueing_us),
            micros(work),
            match work > 0.0 {
                true => shares(&[
                    ("its own pages", at.flash_us),
                    ("merges or collections", at.gc_us),
                    ("translation", at.translation_us),
                ]),
                false => "none".into(),
            }
        ));
    }
    said
}

fn wear(record: &Record) -> Vec<String> {
    let wear = &record.wear;
    let mut said = vec![format!(
        "A block was erased {} times on average, the least worn {}, the most worn {}.",
        short(wear.mean),
        wear.min,
        wear.max,
    )];
    if let Some(lifetime) = wear.lifetime_bytes {
        said.push(format!(
            "If it goes on like that, the host can write {} until the most worn block is at its limit.",
            bytes(lifetime)
        ));
    }
    said
}
