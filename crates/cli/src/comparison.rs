//! The tables of a comparison: how long requests took, alone and under load, and what the flash did for them.

use floatgate_core::report::Memory;
use floatgate_sim::record::{By, HeldUp, Record};

use crate::config::resolve::Plan;
use crate::config::sizing::Failure;
use crate::notes::backlog_s;
use crate::table::{Table, bytes, count, energy, micros, short, short_or_dash};

/// What became of each scheme, by its name.
type Row<'a> = (&'a str, &'a Result<Record, Failure>);

/// Both tables, one line a scheme.
pub fn tables<'a>(rows: impl Iterator<Item = Row<'a>>, plan: &Plan, span_s: f64) -> String {
    let rows: Vec<Row<'a>> = rows.collect();
    let is_behind = |record: &Record| backlog_s(record, plan, span_s);
    let times = |record: &Record| times(record, is_behind(record));
    format!(
        "{}alone: mean response when requests come one at a time; mean to p99.9: response times under load, as the trace has it\n\
         {}\n{}WA: write amplification; switch to other: merges by kind\n",
        table(&TIMES, &rows, times, true),
        match rows
            .iter()
            .any(|(_, row)| row.as_ref().is_ok_and(|record| is_behind(record).is_some()))
        {
            true =>
                "behind: the device did not keep up, so that row measures its queue and not the scheme\n",
            false => "",
        },
        table(&WORK, &rows, work, false)
    )
}

const TIMES: [&str; 7] = [
    "<scheme",
    "alone",
    "mean",
    "p99",
    "p99.9",
    "behind",
    "<held up by",
];
const WORK: [&str; 10] = [
    "<scheme",
    "WA",
    "erases",
    "switch",
    "partial",
    "full",
    "dead",
    "other",
    "map memory",
    "energy",
];

/// A table of those that ran; `tells` also of the others.
fn table<const N: usize>(
    columns: &[&str; N],
    rows: &[Row<'_>],
    cells: impl Fn(&Record) -> [String; N],
    tells: bool,
) -> String {
    let mut table = Table::new(columns);
    for (name, row) in rows {
        match row {
            Ok(record) => table.row(cells(record)),
            Err(_) if !tells => {}
            Err(Failure::Refused(refusal)) => {
                table.across(*name, format!("refused: {}", refusal.message));
            }
            Err(Failure::Trace(text)) => table.across(*name, format!("failed: {text}")),
            Err(Failure::Bug(text)) => table.across(*name, format!("BUG: {text}")),
        }
    }
    table.render()
}

fn times(record: &Record, behind_s: Option<f64>) -> [String; 7] {
    let time = |us: Option<f64>| us.map_or_else(|| "-".into(), micros);
    let response = &record.time.response.all;
    [
        record.scheme.clone(),
        time(record.time.alone.as_ref().and_then(|alone| alone.mean_us)),
        time(response.mean_us),
        time(response.p99_us),
        time(response.p99_9_us),
        behind_s.map_or_else(String::new, |s| format!("{} s", short(s))),
        record.held_up.as_ref().map_or_else(String::new, held_up),
    ]
}

/// What requests waited for: how busy that is, or, where steps wait for each other, how idle the flash is meanwhile.
fn held_up(what: &HeldUp) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let name = what.by.name();
    match what.by {
        By::Dies | By::OneDie => format!("{name} ({} busy)", percent(what.die_utilisation)),
        By::Channel => format!("{name} ({} busy)", percent(what.channel_utilisation)),
        By::Pcm | By::Map | By::Merges | By::Order => {
            format!("{name} (busiest die {})", percent(what.die_utilisation))
        }
    }
}

fn work(record: &Record) -> [String; 10] {
    let merges = &record.counters.merges;
    [
        record.scheme.clone(),
        short_or_dash(record.derived.write_amplification),
        count(record.derived.erases),
        count(merges.switch),
        count(merges.partial),
        count(merges.full),
        count(merges.dead),
        count(merges.own.values().sum()),
        map_memory(record),
        energy(record.energy.total_uj),
    ]
}

/// Bytes of the tables in the controller's memory; what lies in phase-change memory apart.
fn map_memory(record: &Record) -> String {
    let of = |places: &[Memory]| record.tables.bytes_in(places);
    let (ram, pcm) = (of(&[Memory::Sram, Memory::Dram]), of(&[Memory::Pcm]));
    if pcm > 0.0 {
        format!("{} + {} PCM", bytes(ram), bytes(pcm))
    } else {
        bytes(ram.ceil())
    }
}
