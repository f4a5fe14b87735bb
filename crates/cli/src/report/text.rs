//! The result of a single run as text.

use serde_json::Value;

use crate::notes::{number, whole};
use crate::table::{Table, bytes, count, energy, micros, percent, short_or_dash};

/// All that a person wants to know of a run.
pub fn of(record: &Value) -> String {
    let title = format!(
        "{} ({})\n",
        record["title"].as_str().unwrap_or_default(),
        record["scheme"].as_str().unwrap_or_default()
    );
    let sections = [
        title,
        ageing(record),
        responses(record),
        throughput(record),
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

fn ageing(record: &Value) -> String {
    let steps = record["ageing"].as_array().into_iter().flatten();
    steps
        .map(|step| {
            let settled = match step["settled"].as_bool() {
                Some(true) => format!(
                    ", settled at write amplification {}",
                    short_or_dash(number(step, "write_amplification"))
                ),
                Some(false) => ", did not settle".into(),
                None => String::new(),
            };
            format!(
                "aged by {}: {} pages{settled}\n",
                step["recipe"].as_str().unwrap_or_default(),
                count(whole(step, "page_writes"))
            )
        })
        .collect()
}

fn responses(record: &Value) -> String {
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
    for kind in ["all", "read", "write", "trim", "flush"] {
        let of = &record["time"]["response"][kind];
        if whole(of, "count") == 0 {
            continue;
        }
        let mut cells = vec![
            if kind == "all" {
                "read+write".to_string()
            } else {
                kind.into()
            },
            count(whole(of, "count")),
        ];
        for value in [
            "mean_us",
            "deviation_us",
            "p50_us",
            "p90_us",
            "p99_us",
            "p99_9_us",
            "max_us",
        ] {
            cells.push(number(of, value).map_or_else(|| "-".into(), micros));
        }
        table.row(cells);
    }
    table.render()
}

fn throughput(record: &Value) -> String {
    let time = |path| number(record, path).map_or_else(|| "-".into(), micros);
    let mut table = Table::new(&["<", "<"]);
    table.row([
        "elapsed",
        &format!("{} s", short_or_dash(number(record, "time/elapsed_s"))),
    ]);
    table.row([
        "service, queueing (mean)",
        &format!(
            "{}, {}",
            time("time/service/mean_us"),
            time("time/queue/mean_us")
        ),
    ]);
    table.row([
        "requests a second",
        &short_or_dash(number(record, "time/iops")),
    ]);
    table.row([
        "throughput",
        &format!(
            "{} MB/s",
            short_or_dash(number(record, "time/throughput_mb_s"))
        ),
    ]);
    table.row([
        "busiest die, busiest channel",
        &format!(
            "{}, {}",
            busiest(record, "die_utilisation"),
            busiest(record, "channel_utilisation")
        ),
    ]);
    table.render()
}

fn busiest(record: &Value, what: &str) -> String {
    let shares = record["time"][what]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64);
    percent(shares.reduce(f64::max))
}

fn operations(record: &Value) -> String {
    let mut table = Table::new(&["<flash operations", "host", "moves", "map", "all"]);
    for (name, key) in [
        ("page reads", "reads"),
        ("page programs", "programs"),
        ("spare area reads", "oob_reads"),
        ("erases", "erases"),
    ] {
        let of = &record["counters"]["flash"][key];
        let n = |cause| whole(of, cause);
        let host = if key == "erases" {
            "-".into()
        } else {
            count(n("host"))
        };
        table.row([
            name.into(),
            host,
            count(n("gc")),
            count(n("map")),
            count(n("host") + n("gc") + n("map")),
        ]);
    }
    table.render()
}

fn garbage(record: &Value) -> String {
    let mut table = Table::new(&["<", "<"]);
    let n = |path| count(whole(record, path));
    table.row([
        "pages read, written, trimmed by the host",
        &format!(
            "{}, {}, {}",
            n("counters/host/page_reads"),
            n("counters/host/page_writes"),
            n("counters/host/page_trims")
        ),
    ]);
    table.row([
        "write amplification",
        &short_or_dash(number(record, "derived/write_amplification")),
    ]);
    table.row(["pages copied", &n("derived/copies")]);
    let merges = record["counters"]["merges"].as_object();
    let merges = merges
        .into_iter()
        .flatten()
        .filter(|(kind, _)| kind.as_str() != "full_merge_associated");
    let merges: Vec<String> = merges
        .map(|(kind, n)| format!("{kind} {}", count(n.as_u64().unwrap_or(0))))
        .collect();
    table.row(["merges", &merges.join(", ")]);
    if let Some(association) = number(record, "derived/association") {
        table.row([
            "logical blocks a full merge rebuilds (mean)",
            &crate::table::short(association),
        ]);
    }
    if let Some(share) = number(record, "derived/log_block_utilisation") {
        table.row(["log block utilisation", &percent(Some(share))]);
    }
    table.render()
}

fn own(record: &Value) -> String {
    let mut table = Table::new(&["<", "<"]);
    let extra = record["counters"]["extra"]
        .as_object()
        .into_iter()
        .flatten();
    extra.for_each(|(name, n)| table.row([name.replace('_', " "), count(n.as_u64().unwrap_or(0))]));
    table.render()
}

fn wear_and_energy(record: &Value) -> String {
    let mut table = Table::new(&["<", "<"]);
    let wear = |key| short_or_dash(number(record, &format!("wear/{key}")));
    let counts = format!(
        "{} mean, {} to {}, deviation {}",
        wear("mean"),
        whole(record, "wear/min"),
        whole(record, "wear/max"),
        wear("sd")
    );
    table.row(["erases of a block", &counts]);
    if let Some(lifetime) = number(record, "wear/lifetime_bytes") {
        table.row([
            "lifetime at this wear",
            &format!("{} of host data", bytes(lifetime)),
        ]);
    }
    let uj = |key: &str| number(record, &format!("energy/{key}_uj")).unwrap_or(0.0);
    let parts = [
        "flash_read",
        "flash_program",
        "flash_erase",
        "pcm_read",
        "pcm_write",
        "dram_access",
        "dram_refresh",
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|part| uj(part) > 0.0)
        .map(|part| format!("{} {}", part.replace('_', " "), energy(uj(part))))
        .collect();
    table.row([
        "energy",
        &format!("{} ({})", energy(uj("total")), parts.join(", ")),
    ]);
    table.render()
}

fn memory(record: &Value) -> String {
    let mut table = Table::new(&["<table", "entries", "bits an entry", "size", "<in"]);
    for of in record["tables"]["tables"].as_array().into_iter().flatten() {
        table.row([
            of["name"].as_str().unwrap_or_default().to_string(),
            count(whole(of, "entries")),
            count(whole(of, "bits_per_entry")),
            bytes(number(of, "bytes").unwrap_or(0.0).ceil()),
            of["memory"].as_str().unwrap_or_default().to_string(),
        ]);
    }
    table.render()
}
