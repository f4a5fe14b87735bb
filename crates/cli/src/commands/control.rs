//! `floatgate control` and `floatgate stat`: what a device that is up is told, and what it tells.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use floatgate_device::drive::cache::CacheFigures;
use floatgate_serve::control::ask;
use floatgate_serve::prometheus;
use floatgate_serve::stat::{Operations, Stat};
use serde_json::{Map, Value, json};

use crate::args::{ControlArgs, StatArgs};
use crate::errors::{EXIT_DIFFERENT, EXIT_DONE, Outcome, Problem};
use crate::output;
use crate::table::{self, Table, count, micros};

/// Sends a command and prints the answer.
pub fn control(args: &ControlArgs) -> Outcome<u8> {
    let line = match args.command.trim_start().starts_with('{') {
        true => args.command.clone(),
        false => command(args)?.to_string(),
    };
    let told = asked(&args.socket, &line)?;
    output::print(&format!("{told}\n"))?;
    Ok(match told["ok"] == true {
        true => EXIT_DONE,
        false => EXIT_DIFFERENT,
    })
}

/// The object that a verb and its options stand for.
fn command(args: &ControlArgs) -> Outcome<Value> {
    let argument = |what: &str| {
        let given = args.argument.as_ref();
        given.ok_or_else(|| Problem::new(format!("{} wants a {what}", args.command)))
    };
    // The device may run in another folder.
    let file = || {
        let path = std::path::absolute(argument("file")?);
        path.map_err(|error| Problem::new(error.to_string()))
    };
    Ok(match args.command.as_str() {
        word @ ("stat" | "on" | "shutdown") => json!({"do": word}),
        "mark" => json!({"do": "mark", "text": argument("text")?}),
        word @ ("snapshot" | "restore") => json!({"do": word, "file": file()?}),
        "cut" => {
            let mut object = Map::from_iter([("do".into(), "cut".into())]);
            let at = [
                ("write", args.at_write),
                ("flush", args.at_flush),
                ("flash", args.at_flash),
            ];
            for (word, nth) in at {
                if let Some(nth) = nth {
                    object.insert("at".into(), json!({word: nth}));
                }
            }
            if let Some(which) = &args.unflushed {
                object.insert("unflushed".into(), which.as_str().into());
            }
            object.insert("tear".into(), args.tear.into());
            object.insert("seed".into(), args.seed.unwrap_or(0).into());
            object.into()
        }
        other => {
            return Err(Problem::new(format!("no command {other:?}")).help(
                "stat, cut, on, shutdown, mark TEXT, snapshot FILE, restore FILE, or a JSON object",
            ));
        }
    })
}

fn asked(socket: &Path, line: &str) -> Outcome<Value> {
    ask(socket, line).map_err(|error| {
        Problem::new(format!("{}: {error}", socket.display()))
            .help("the socket that `serve`, `mount` or `attach` was given with --control")
    })
}

/// Shows what a device has done.
pub fn stat(args: &StatArgs) -> Outcome<()> {
    loop {
        let told = asked(&args.socket, "{\"do\":\"stat\"}")?;
        if let Some(why) = told["error"].as_str() {
            return Err(Problem::new(why));
        }
        if args.json {
            output::print(&format!("{told}\n"))?;
        } else {
            let stat: Stat = serde_json::from_value(told)
                .map_err(|error| Problem::new(format!("{}: {error}", args.socket.display())))?;
            output::print(&match args.prometheus {
                true => prometheus::text(&stat),
                false => shown(&stat),
            })?;
        }
        let Some(seconds) = args.every else {
            return Ok(());
        };
        std::thread::sleep(Duration::from_secs(seconds.into()));
    }
}

fn bytes(n: u64) -> String {
    table::bytes(n as f64)
}

fn shown(stat: &Stat) -> String {
    let mut text = format!(
        "{}, {}, up for {:.1} s, power {}, {} power cuts\n",
        stat.scheme,
        bytes(stat.device_bytes),
        stat.uptime_ns as f64 / 1e9,
        if stat.is_on { "on" } else { "off" },
        stat.power_cuts
    );
    if let Some(why) = &stat.read_only {
        let _ = writeln!(text, "read-only: {why}");
    }
    let mut table = Table::new(&[
        "<requests",
        "number",
        "failed",
        "bytes",
        "p50",
        "p99",
        "p99.9",
        "max",
    ]);
    let us = |ns: u64| micros(ns as f64 / 1000.0);
    for (kind, of) in stat.requests.iter().filter(|(_, of)| of.requests > 0) {
        table.row([
            kind.clone(),
            count(of.requests),
            count(of.errors),
            bytes(of.bytes),
            us(of.p50_ns),
            us(of.p99_ns),
            us(of.p999_ns),
            us(of.max_ns),
        ]);
    }
    text += &table.render();
    let mut table = Table::new(&["<flash", "host", "gc", "map", "chip"]);
    let (scheme, chip) = (&stat.scheme_operations, &stat.chip_operations);
    for (name, Operations { host, gc, map }, chip) in [
        ("page reads", scheme.reads, chip.reads),
        ("OOB reads", scheme.oob_reads, chip.oob_reads),
        ("page programs", scheme.programs, chip.programs),
        ("block erases", scheme.erases, chip.erases),
    ] {
        table.row([name.into(), count(host), count(gc), count(map), count(chip)]);
    }
    text += &table.render();
    if let Some(amplification) = stat.write_amplification {
        let _ = writeln!(
            text,
            "write amplification {amplification:.3}; flushes done {}",
            stat.flushes_done
        );
    }
    if let Some(wear) = &stat.wear {
        let _ = writeln!(
            text,
            "erases a block {} to {}, mean {:.1}; bad blocks {}, spare blocks left {}",
            wear.erases_min, wear.erases_max, wear.erases_mean, wear.bad_blocks, wear.spares_left
        );
    }
    if let Some(cache) = &stat.cache {
        text += &caches(cache);
    }
    if let Some(lag) = &stat.lag {
        let _ = writeln!(
            text,
            "later than the modelled flash: {} requests, by {} at most",
            count(lag.late_requests),
            us(lag.max_ns)
        );
    }
    text
}

fn caches(cache: &CacheFigures) -> String {
    let mut text = String::new();
    if cache.size_bytes > 0 {
        let protected = if cache.is_protected {
            ", protected"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "write cache {}{protected}: {} unwritten; taken {}, merged {}, written {}, read {}",
            bytes(cache.size_bytes),
            bytes(cache.unwritten_bytes),
            bytes(cache.taken_bytes),
            bytes(cache.merged_bytes),
            bytes(cache.written_bytes),
            bytes(cache.read_bytes)
        );
    }
    if cache.read_cache_bytes > 0 {
        let _ = writeln!(
            text,
            "read cache {}: read {}; read ahead {}, of which used {}, dropped unread {}",
            bytes(cache.read_cache_bytes),
            bytes(cache.read_cached_bytes),
            bytes(cache.ahead_bytes),
            bytes(cache.ahead_used_bytes),
            bytes(cache.ahead_wasted_bytes)
        );
    }
    text
}
