//! The result of a single run as text.

use floatgate_sim::record::{Brief, Latency, Record};

use crate::table::{Table, bytes, count, energy, micros, percent, short, short_or_dash};

/// All that a person wants to know of a run.
pub fn of(record: &Record) -> String {
    let title = format!("{} ({})\n", record.title, record.scheme);
    let sections = [
        title,
        ageing(record),
        responses(record),
        flows(record),
        throughput(record),
        schedule(record),
        buffer(record),
        slc(record),
        operations(record),
        garbage(record),
        own(record),
        wear_and_energy(record),
        memory(record),
    ];
    sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn ageing(record: &Record) -> String {
    let steps = record.ageing.iter();
    steps
        .map(|step| {
            let settled = match step.settled {
                Some(true) => format!(
                    ", settled at write amplification {}",
                    short_or_dash(step.write_amplification)
                ),
                Some(false) => ", did not settle".into(),
                None => String::new(),
            };
            let pages = count(step.page_writes);
            let loaded = if step.loaded { ", loaded" } else { "" };
            format!("aged by {}: {pages} pages{settled}{loaded}\n", step.recipe)
        })
        .collect()
}

fn micros_or_dash(us: Option<f64>) -> String {
    us.map_or_else(|| "-".into(), micros)
}

fn responses(record: &Record) -> String {
    let mut table = Table::new(&[
        "<response",
        "requests",
        "mean",
        "deviation",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
    ]);
    let response = &record.time.response;
    let whole = |l: &Latency| {
        let times = [
            l.mean_us,
            l.deviation_us,
            l.p50_us,
            l.p90_us,
            l.p99_us,
            l.p99_9_us,
            l.max_us,
        ];
        (l.count, times)
    };
    let brief = |b: &Brief| {
        let times = [b.mean_us, None, None, None, None, None, b.max_us];
        (b.count, times)
    };
    for (kind, (requests, times)) in [
        ("read+write", whole(&response.all)),
        ("read", whole(&response.read)),
        ("write", whole(&response.write)),
        ("trim", brief(&response.trim)),
        ("flush", brief(&response.flush)),
    ] {
        if requests > 0 {
            let mut cells = vec![kind.to_string(), count(requests)];
            cells.extend(times.map(micros_or_dash));
            table.row(cells);
        }
    }
    table.render()
}

fn flows(record: &Record) -> String {
    let Some(flows) = &record.flows else {
        return String::new();
    };
    let mut table = Table::new(&[
        "<flow",
        "requests",
        "MB/s",
        "share",
        "mean",
        "p99",
        "p99.9",
        "alone: mean",
        "p99",
        "slowdown",
    ]);
    for flow in &flows.each {
        let all = &flow.response.all;
        let alone = flow.alone;
        table.row([
            flow.config.name.clone(),
            count(all.count),
            short_or_dash(flow.throughput_mb_s),
            percent(flow.share_percent.map(|share| share / 100.0)),
            micros_or_dash(all.mean_us),
            micros_or_dash(all.p99_us),
            micros_or_dash(all.p99_9_us),
            micros_or_dash(alone.and_then(|alone| alone.mean_us)),
            micros_or_dash(alone.and_then(|alone| alone.p99_us)),
            short_or_dash(flow.slowdown),
        ]);
    }
    let mut text = table.render();
    if let (Some(fairness), Some(jain)) = (flows.fairness, flows.jain) {
        text.push_str(&format!(
            "fairness {} (least slowdown / largest), Jain\'s index {}\n",
            short(fairness),
            short(jain)
        ));
    }
    text
}

fn throughput(record: &Record) -> String {
    let time = &record.time;
    let mut table = Table::new(&["<", "<"]);
    table.row(["elapsed", &format!("{} s", short(time.elapsed_s))]);
    table.row([
        "service, queueing (mean)",
        &format!(
            "{}, {}",
            micros_or_dash(time.service.mean_us),
            micros_or_dash(time.queue.mean_us)
        ),
    ]);
    table.row(["requests a second", &short_or_dash(time.iops)]);
    table.row([
        "throughput",
        &format!("{} MB/s", short_or_dash(time.throughput_mb_s)),
    ]);
    table.row([
        "busiest die, busiest channel",
        &format!(
            "{}, {}",
            busiest(&time.die_utilisation),
            busiest(&time.channel_utilisation)
        ),
    ]);
    table.render()
}

fn busiest(shares: &[Option<f64>]) -> String {
    percent(shares.iter().copied().flatten().reduce(f64::max))
}

/// What came of a schedule.
fn schedule(record: &Record) -> String {
    let Some(stats) = &record.schedule else {
        return String::new();
    };
    let mut table = Table::new(&["<schedule", "times"]);
    for (what, times) in [
        ("operations overtaken by later ones", stats.overtaken),
        (
            "reads of pages that waited to be programmed",
            stats.reads_from_controller,
        ),
        ("erases interrupted", stats.suspended_erases),
        ("programs interrupted", stats.suspended_programs),
    ] {
        table.row([what, &count(times)]);
    }
    table.render()
}

/// Pages in memory between host and scheme.
fn buffer(record: &Record) -> String {
    let Some(buffer) = &record.buffer else {
        return String::new();
    };
    let mut table = Table::new(&["<", "<"]);
    if buffer.absorbed + buffer.trimmed + buffer.written_out + buffer.held_at_end > 0 {
        table.row([
            "write buffer",
            &format!(
                "{} of the pages written again in it, {} written out in runs of {} pages, {} held at the end",
                percent(buffer.write_hits),
                count(buffer.written_out),
                short_or_dash(buffer.run_pages),
                count(buffer.held_at_end),
            ),
        ]);
    }
    if record.counters.host.page_reads > 0 {
        table.row([
            "pages read from memory",
            &format!(
                "{}: {} from the write buffer, {} from the read cache",
                percent(buffer.read_hits),
                count(buffer.read_held),
                count(buffer.read_cached),
            ),
        ]);
    }
    if buffer.padded_pages > 0 {
        table.row([
            "pages written to fill up blocks",
            &format!(
                "{}, {} of them from the read cache",
                count(buffer.padded_pages),
                count(buffer.padded_cached),
            ),
        ]);
    }
    if buffer.read_ahead > 0 {
        table.row([
            "pages read ahead",
            &format!(
                "{}, {} of them used, {} dropped unused",
                count(buffer.read_ahead),
                count(buffer.read_ahead_used),
                count(buffer.read_ahead_wasted),
            ),
        ]);
    }
    table.render()
}

/// Pages in flash blocks with one bit a cell.
fn slc(record: &Record) -> String {
    let Some(slc) = &record.slc else {
        return String::new();
    };
    let mut table = Table::new(&["<", "<"]);
    table.row([
        "one bit a cell",
        &format!(
            "{} pages taken in, {} written past it; {} absorbed, {} moved to the scheme in {} writes, {} held at the end",
            count(slc.taken_in),
            count(slc.direct),
            count(slc.absorbed),
            count(slc.folded),
            count(slc.runs),
            count(slc.held_at_end),
        ),
    ]);
    table.row([
        "its room",
        &format!(
            "{} pages, {} at the end; at most {} held, {} blocks erased",
            count(slc.capacity_at_start),
            count(slc.capacity_at_end),
            count(slc.held_peak),
            count(slc.erases),
        ),
    ]);
    table.render()
}

fn operations(record: &Record) -> String {
    let mut table = Table::new(&["<flash operations", "host", "moves", "map", "all"]);
    let flash = &record.counters.flash;
    for (name, of) in [
        ("page reads", &flash.reads),
        ("page programs", &flash.programs),
        ("spare area reads", &flash.oob_reads),
    ] {
        let counts = [of.host, of.gc, of.map, of.sum()].map(count);
        table.row([vec![name.to_string()], counts.into()].concat());
    }
    let erases = &flash.erases;
    table.row([
        "erases".to_string(),
        "-".into(),
        count(erases.gc),
        count(erases.map),
        count(erases.sum()),
    ]);
    table.render()
}

fn garbage(record: &Record) -> String {
    let mut table = Table::new(&["<", "<"]);
    let (host, derived) = (&record.counters.host, &record.derived);
    let pages = [host.page_reads, host.page_writes, host.page_trims].map(count);
    table.row([
        "pages read, written, trimmed by the host",
        &pages.join(", "),
    ]);
    table.row([
        "write amplification",
        &short_or_dash(derived.write_amplification),
    ]);
    table.row(["pages copied", &count(derived.copies)]);
    let merges = record.counters.merges.kinds();
    let merges: Vec<String> = merges
        .map(|(kind, n)| format!("{kind} {}", count(n)))
        .collect();
    table.row(["merges", &merges.join(", ")]);
    if let Some(association) = derived.association {
        table.row([
            "logical blocks a full merge rebuilds (mean)",
            &short(association),
        ]);
    }
    if let Some(share) = derived.log_block_utilisation {
        table.row(["log block utilisation", &percent(Some(share))]);
    }
    table.render()
}

fn own(record: &Record) -> String {
    let mut table = Table::new(&["<", "<"]);
    for (name, &n) in &record.counters.extra {
        table.row([name.replace('_', " "), count(n)]);
    }
    table.render()
}

fn wear_and_energy(record: &Record) -> String {
    let mut table = Table::new(&["<", "<"]);
    let wear = &record.wear;
    let counts = format!(
        "{} mean, {} to {}, deviation {}",
        short(wear.mean),
        wear.min,
        wear.max,
        short(wear.sd)
    );
    table.row(["erases of a block", &counts]);
    if let Some(lifetime) = wear.lifetime_bytes {
        table.row([
            "lifetime at this wear",
            &format!("{} of host data", bytes(lifetime)),
        ]);
    }
    let parts = record.energy.components().into_iter();
    let parts: Vec<String> = parts
        .filter(|(_, uj)| *uj > 0.0)
        .map(|(name, uj)| format!("{name} {}", energy(uj)))
        .collect();
    table.row([
        "energy",
        &format!("{} ({})", energy(record.energy.total_uj), parts.join(", ")),
    ]);
    table.render()
}

fn memory(record: &Record) -> String {
    let mut table = Table::new(&["<table", "entries", "bits an entry", "size", "<in"]);
    for of in &record.tables.tables {
        table.row([
            of.name.clone(),
            count(of.entries),
            count(of.bits_per_entry),
            bytes(of.bytes.ceil()),
            of.memory.name().into(),
        ]);
    }
    table.render()
}
