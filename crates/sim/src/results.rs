//! The record of a run: one shape for people, programs and reports. `schema` is its version.

use floatgate_core::report::{ByCause, FlashCounters, HostCounters, SchemeCounters};
use floatgate_core::{Ftl, Lpn};
use serde_json::{Map, Value, json};

use crate::ageing::Aged;
use crate::clock::Clock;
use crate::energy::energy;
use crate::metrics::{Brief, Latencies};
use crate::session::Session;

/// Version of the record's shape.
pub const SCHEMA: u32 = 1;

fn by_cause(c: &ByCause) -> Value {
    json!({"host": c.host, "gc": c.gc, "map": c.map})
}

/// Counters in the shape of the conformance vectors.
pub fn counters_json(
    host: &HostCounters,
    unwritten: u64,
    flash: &FlashCounters,
    scheme: &SchemeCounters,
) -> Value {
    let m = &scheme.merges;
    let mut merges = Map::new();
    let kinds = [
        ("switch", m.switch),
        ("partial", m.partial),
        ("full", m.full),
        ("dead", m.dead),
    ];
    for (name, value) in kinds {
        merges.insert(name.into(), value.into());
    }
    merges.insert(
        "full_merge_associated".into(),
        m.full_merge_associated.into(),
    );
    for own in &scheme.own_merges {
        merges.insert(own.name.into(), own.value.into());
    }
    let mut counters = json!({
        "host": {
            "page_reads": host.page_reads,
            "page_writes": host.page_writes,
            "page_trims": host.page_trims,
            "unwritten_reads": unwritten,
        },
        "flash": {
            "reads": by_cause(&flash.reads),
            "programs": by_cause(&flash.programs),
            "oob_reads": by_cause(&flash.oob_reads),
            "erases": {"gc": flash.erases.gc, "map": flash.erases.map},
        },
        "merges": merges,
    });
    if !scheme.extra.is_empty() {
        let extra: Map<String, Value> = scheme
            .extra
            .iter()
            .map(|e| (e.name.into(), e.value.into()))
            .collect();
        counters["extra"] = extra.into();
    }
    counters
}

/// `a / b`, or no value.
fn ratio(a: f64, b: f64) -> Option<f64> {
    (b != 0.0).then(|| a / b)
}

fn latencies_json(l: &Latencies) -> Value {
    let us = |ns: Option<f64>| ns.map(|ns| ns / 1000.0);
    let at = |q| us(l.percentile_ns(q).map(|ns| ns as f64));
    json!({
        "count": l.count(),
        "mean_us": us(l.mean_ns()),
        "deviation_us": us(l.deviation_ns()),
        "p50_us": at(50.0),
        "p90_us": at(90.0),
        "p99_us": at(99.0),
        "p99_9_us": at(99.9),
        "max_us": us((l.count() > 0).then_some(l.max_ns() as f64)),
    })
}

fn brief_json(b: &Brief) -> Value {
    json!({
        "count": b.count,
        "mean_us": b.mean_ns().map(|ns| ns / 1000.0),
        "max_us": (b.count > 0).then_some(b.max_ns as f64 / 1000.0),
    })
}

/// The record of a session that has been settled.
pub fn record<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>, aged: &[Aged]) -> Value {
    let scheme = session.ftl.counters();
    let flash = &session.flash.ledger.counters;
    json!({
        "schema": SCHEMA,
        "scheme": S::KEY,
        "title": S::TITLE,
        "device": device_json(session),
        "options": options_json(session),
        "start": session.config().start.name(),
        "ageing": aged.iter().map(|a| json!({
            "recipe": a.recipe,
            "page_writes": a.page_writes,
            "write_amplification": a.write_amplification,
            "settled": a.settled,
        })).collect::<Vec<_>>(),
        "host": host_json(session),
        "counters": counters_json(&session.host, session.flash.unwritten_reads, flash, &scheme),
        "time": time_json(session),
        "derived": derived_json(session, &scheme),
        "stats": stats_json(session, &scheme),
        "energy": energy_json(session, &scheme),
        "wear": wear_json(session),
        "tables": tables_json(session),
        "series": series_json(session),
        "distribution": json!({
            "read": session.metrics.reads.cumulative(),
            "write": session.metrics.writes.cumulative(),
        }),
    })
}

fn device_json<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> Value {
    let device = &session.config().device;
    json!({
        "part": device.part.name,
        "channels": device.channels,
        "dies": device.dies,
        "blocks": device.blocks,
        "pages": device.part.pages_per_block,
        "page_bytes": device.part.page_bytes,
        "logical_pages": device.logical_pages,
        "logical_bytes": device.logical_pages * u64::from(device.part.page_bytes),
        "program_order": device.program_order.name(),
        "mode": device.mode,
        "copyback": device.copyback,
    })
}

fn options_json<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> Value {
    use floatgate_core::options::Options;
    let Ok(options) = crate::session::options_of::<S>(session.config()) else {
        return Value::Null;
    };
    options
        .values()
        .into_iter()
        .map(|(key, value)| (key.to_string(), Value::from(value)))
        .collect()
}

fn host_json<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> Value {
    let host = &session.config().host;
    json!({
        "arrivals": host.arrivals,
        "queue_depth": host.queue_depth,
        "speed": host.speed,
        "partial_write": host.partial_write,
        "beyond": host.beyond,
    })
}

fn time_json<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> Value {
    let m = &session.metrics;
    let mut all = m.reads.clone();
    all.add(&m.writes);
    let elapsed_ns = m
        .last_completion_ns
        .saturating_sub(m.first_arrival_ns.unwrap_or(0));
    let seconds = elapsed_ns as f64 / 1e9;
    let busy_until = session
        .flash
        .clock
        .last_end_ns()
        .saturating_sub(m.first_arrival_ns.unwrap_or(0)) as f64;
    let utilisation = |busy: &[u64]| -> Vec<Option<f64>> {
        busy.iter()
            .map(|&ns| ratio(ns as f64, busy_until))
            .collect()
    };
    let requests = (m.reads.count() + m.writes.count()) as f64;
    json!({
        "elapsed_s": seconds,
        "response": {
            "all": latencies_json(&all),
            "read": latencies_json(&m.reads),
            "write": latencies_json(&m.writes),
            "trim": brief_json(&m.trims),
            "flush": brief_json(&m.flushes),
        },
        "service": brief_json(&m.service),
        "queue": brief_json(&m.queue),
        "iops": ratio(requests, seconds),
        "throughput_mb_s": ratio((m.read_bytes + m.write_bytes) as f64 / 1e6, seconds),
        "pages_written_per_second": ratio(session.host.page_writes as f64, seconds),
        "elapsed_per_written_page_us": ratio(m.write_busy_ns as f64 / 1000.0, session.host.page_writes as f64),
        "die_utilisation": utilisation(&session.flash.clock.die_busy_ns()),
        "channel_utilisation": utilisation(&session.flash.clock.channel_busy_ns()),
        "channel_share_difference_percent": channel_shares(session),
    })
}

/// How much more or less each channel serves than channel 0, in percent.
fn channel_shares<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> Vec<Option<f64>> {
    let channels = session.config().device.channels as usize;
    let mut pages = vec![0.0; channels];
    for (die, &n) in session.flash.host_pages_by_die.iter().enumerate() {
        pages[die % channels] += n as f64;
    }
    pages
        .iter()
        .map(|&n| ratio((n - pages[0]) * 100.0, pages[0]))
        .collect()
}

fn derived_json<S: Ftl<Page = Lpn>, C: Clock>(
    session: &Session<S, C>,
    scheme: &SchemeCounters,
) -> Value {
    let c = &session.flash.ledger.counters;
    let part = &session.config().device.part;
    let (programs, host_writes) = (c.programs.sum() as f64, session.host.page_writes as f64);
    let (reads, erases) = (c.reads.sum(), c.erases.sum());
    let merges = &scheme.merges;
    let us = |ns: u64| ns as f64 / 1000.0;
    let copy_us = us(part.t_r_ns + part.t_prog_ns);
    let log_pages = merges.log_reclaimed as f64 * f64::from(part.pages_per_block);
    let oob_us = (c.oob_reads.map as f64) * us(part.t_r_oob_ns);
    let map_us =
        c.programs.map as f64 * us(part.t_prog_ns) + c.reads.map as f64 * us(part.t_r_ns) + oob_us;
    let counted = c.programs.host as f64 * us(part.t_prog_ns)
        + c.programs.gc as f64 * copy_us
        + erases as f64 * us(part.t_bers_ns);
    json!({
        "write_amplification": ratio(programs, host_writes),
        "io_operations": reads + c.programs.sum() + erases,
        "io_operations_write": c.reads.gc + c.reads.map + c.programs.sum() + erases,
        "copies": c.programs.gc,
        "erases": erases,
        "map_overhead": ratio((c.reads.map + c.programs.map) as f64, reads as f64 + programs),
        "association": ratio(merges.full_merge_associated as f64, merges.full as f64),
        "association_with_dead": ratio(merges.full_merge_associated as f64, (merges.full + merges.dead) as f64),
        "log_block_utilisation": ratio(merges.log_pages_used as f64, log_pages),
        "gc_overhead_us": c.programs.gc as f64 * copy_us + c.erases.gc as f64 * us(part.t_bers_ns),
        "elapsed_counted_us": counted,
        "elapsed_counted_with_map_us": counted + map_us,
    })
}

fn stats_json<S: Ftl<Page = Lpn>, C: Clock>(
    session: &Session<S, C>,
    scheme: &SchemeCounters,
) -> Value {
    let m = &scheme.merges;
    let c = &session.flash.ledger.counters;
    let mut stats = json!({
        "partial_write_reads": session.metrics.partial_write_reads,
        "flushes": session.metrics.flushes.count,
        "cuts": session.metrics.cuts,
        "copies_partial": m.copies_partial,
        "copies_full": m.copies_full,
        "copies_other": c.programs.gc - m.copies_partial - m.copies_full,
        "erases_switch": m.erases_switch,
        "erases_partial": m.erases_partial,
        "erases_full": m.erases_full,
        "erases_dead": m.erases_dead,
        "erases_other": c.erases.gc - m.erases_switch - m.erases_partial - m.erases_full - m.erases_dead,
        "log_reclaimed": m.log_reclaimed,
        "log_pages_used": m.log_pages_used,
        "wasted_data_pages": m.wasted_data_pages,
        "wasted_log_pages": m.wasted_log_pages,
        "association_histogram": m.association,
        "pcm_reads": c.pcm_reads,
        "pcm_writes": c.pcm_writes,
        "copybacks": session.flash.fine.copybacks,
    });
    for stat in &scheme.stats {
        stats[stat.name] = stat.value.into();
    }
    stats
}

fn energy_json<S: Ftl<Page = Lpn>, C: Clock>(
    session: &Session<S, C>,
    scheme: &SchemeCounters,
) -> Value {
    let m = &session.metrics;
    let elapsed_ns = m
        .last_completion_ns
        .saturating_sub(m.first_arrival_ns.unwrap_or(0));
    let dram = scheme
        .stats
        .iter()
        .find(|stat| stat.name == "dram_accesses")
        .map_or(0.0, |stat| stat.value);
    let energy = energy(
        &session.config().device,
        &session.flash.ledger.counters,
        &session.flash.fine,
        &session.tables,
        dram as u64,
        elapsed_ns,
    );
    serde_json::to_value(energy).unwrap_or(Value::Null)
}

fn wear_json<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> Value {
    let counts = session.flash.erase_counts();
    let n = counts.len() as f64;
    let mean = counts.iter().map(|&e| f64::from(e)).sum::<f64>() / n;
    let square = counts
        .iter()
        .map(|&e| f64::from(e) * f64::from(e))
        .sum::<f64>()
        / n;
    let (min, max) = (
        counts.iter().min().copied().unwrap_or(0),
        counts.iter().max().copied().unwrap_or(0),
    );
    let part = &session.config().device.part;
    let host_bytes = session.host.page_writes as f64 * f64::from(part.page_bytes);
    let lifetime = part
        .endurance
        .and_then(|e| ratio(host_bytes * f64::from(e), f64::from(max)));
    let mut wear = json!({
        "mean": mean,
        "sd": (square - mean * mean).max(0.0).sqrt(),
        "min": min,
        "max": max,
        "spread": max - min,
        "histogram": histogram(&counts, max),
        "lifetime_bytes": lifetime,
    });
    // Only where it is on, so that records without it stay as they are.
    if let Some(levelling) = &session.flash.wear {
        wear["leveling"] = json!({
            "swaps": levelling.swaps,
            "moved_pages": levelling.moved_pages,
        });
    }
    wear
}

/// `(erases, blocks)` in at most 64 classes of equal width.
fn histogram(counts: &[u32], max: u32) -> Vec<(u32, u32)> {
    let width = max / 64 + 1;
    let mut classes = vec![0; (max / width + 1) as usize];
    counts
        .iter()
        .for_each(|&e| classes[(e / width) as usize] += 1);
    classes
        .into_iter()
        .enumerate()
        .map(|(i, n)| (i as u32 * width, n))
        .collect()
}

fn tables_json<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> Value {
    let tables: Vec<Value> = session
        .tables
        .iter()
        .map(|t| {
            json!({
                "name": t.name,
                "entries": t.entries,
                "bits_per_entry": t.bits_per_entry,
                "bytes": t.bits() as f64 / 8.0,
                "memory": t.memory.name(),
            })
        })
        .collect();
    json!({
        "tables": tables,
        "bytes": session.tables.iter().map(|t| t.bits()).sum::<u64>() as f64 / 8.0,
    })
}

fn series_json<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> Value {
    let series = &session.metrics.series;
    let column = |value: &dyn Fn(&crate::metrics::Sample) -> Value| -> Vec<Value> {
        series.samples.iter().map(value).collect()
    };
    let mean =
        |s: &crate::metrics::Sample| ratio(s.response_sum_ns as f64 / 1000.0, s.completed as f64);
    let mut columns = json!({
        "requests": column(&|s| s.requests.into()),
        "time_s": column(&|s| (s.time_ns as f64 / 1e9).into()),
        "response_mean_us": column(&|s| mean(s).into()),
        "response_max_us": column(&|s| (s.response_max_ns as f64 / 1000.0).into()),
        "host_programs": column(&|s| s.host_programs.into()),
        "programs": column(&|s| s.programs.into()),
        "erases": column(&|s| s.erases.into()),
        "merges_switch": column(&|s| s.merges[0].into()),
        "merges_partial": column(&|s| s.merges[1].into()),
        "merges_full": column(&|s| s.merges[2].into()),
        "merges_dead": column(&|s| s.merges[3].into()),
    });
    for (i, name) in series.observed_names.iter().enumerate() {
        columns[*name] = column(&|s| s.observed.get(i).copied().into()).into();
    }
    columns
}
