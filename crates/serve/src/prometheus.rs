//! Statistics in the text format of Prometheus (version 0.0.4).

use std::fmt::{Display, Write};

use floatgate_device::drive::cache::CacheFigures;

use crate::stat::{Operations, Stat};

/// A metric's values, one line each.
struct Metric<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Metric<'_> {
    fn value(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{}{suffix}{labels} {value}", self.name);
    }
}

fn metric<'a>(text: &'a mut String, name: &'static str, kind: &str, help: &str) -> Metric<'a> {
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    Metric { text, name }
}

/// A label's value.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// All of it as text.
pub fn text(stat: &Stat) -> String {
    let mut text = String::new();
    let all = &mut text;
    device(all, stat);
    requests(all, stat);
    flash(all, stat);
    if let Some(cache) = &stat.cache {
        caches(all, cache);
    }
    if let Some(lag) = &stat.lag {
        metric(
            all,
            "floatgate_late_requests_total",
            "counter",
            "Requests answered later than the modelled flash would have.",
        )
        .value("", &[], lag.late_requests);
        metric(
            all,
            "floatgate_lag_max_seconds",
            "gauge",
            "The most that one was late.",
        )
        .value("", &[], seconds(lag.max_ns));
    }
    text
}

fn caches(all: &mut String, cache: &CacheFigures) {
    let gauges = [
        (
            "floatgate_cache_size_bytes",
            "Bytes the write cache can hold.",
            cache.size_bytes,
        ),
        (
            "floatgate_cache_protected",
            "Whether the write cache outlasts the power: 1 if so.",
            cache.is_protected.into(),
        ),
        (
            "floatgate_cache_unwritten_bytes",
            "Bytes in the write cache that have not reached the flash.",
            cache.unwritten_bytes,
        ),
        (
            "floatgate_cache_read_cache_size_bytes",
            "Bytes the read cache can hold.",
            cache.read_cache_bytes,
        ),
    ];
    let counters = [
        (
            "floatgate_cache_taken_bytes_total",
            "Bytes taken into the write cache since the power came on.",
            cache.taken_bytes,
        ),
        (
            "floatgate_cache_merged_bytes_total",
            "Bytes that replaced others in the write cache.",
            cache.merged_bytes,
        ),
        (
            "floatgate_cache_written_bytes_total",
            "Bytes written out of the write cache.",
            cache.written_bytes,
        ),
        (
            "floatgate_cache_read_bytes_total",
            "Bytes read from the write cache.",
            cache.read_bytes,
        ),
        (
            "floatgate_cache_read_cached_bytes_total",
            "Bytes read from the read cache.",
            cache.read_cached_bytes,
        ),
        (
            "floatgate_cache_ahead_bytes_total",
            "Bytes read ahead into the read cache.",
            cache.ahead_bytes,
        ),
        (
            "floatgate_cache_ahead_used_bytes_total",
            "Bytes read ahead that were read afterwards.",
            cache.ahead_used_bytes,
        ),
        (
            "floatgate_cache_ahead_wasted_bytes_total",
            "Bytes read ahead that were dropped before anybody read them.",
            cache.ahead_wasted_bytes,
        ),
    ];
    let mut of_kind = |kind, metrics: &[(&'static str, &str, u64)]| {
        for &(name, help, value) in metrics {
            metric(all, name, kind, help).value("", &[], value);
        }
    };
    of_kind("gauge", &gauges);
    of_kind("counter", &counters);
}

fn device(all: &mut String, stat: &Stat) {
    metric(
        all,
        "floatgate_device_info",
        "gauge",
        "The device; the value is 1.",
    )
    .value("", &[("scheme", &stat.scheme)], 1);
    metric(
        all,
        "floatgate_device_bytes",
        "gauge",
        "Bytes of the device.",
    )
    .value("", &[], stat.device_bytes);
    metric(
        all,
        "floatgate_uptime_seconds",
        "gauge",
        "How long the device has been up.",
    )
    .value("", &[], seconds(stat.uptime_ns));
    metric(
        all,
        "floatgate_power_on",
        "gauge",
        "Whether the power is on.",
    )
    .value("", &[], u8::from(stat.is_on));
    metric(all, "floatgate_power_cuts_total", "counter", "Power cuts.").value(
        "",
        &[],
        stat.power_cuts,
    );
    let why = stat.read_only.as_deref();
    metric(
        all,
        "floatgate_read_only",
        "gauge",
        "Whether nothing can be written, and why.",
    )
    .value(
        "",
        &[("reason", why.unwrap_or(""))],
        u8::from(why.is_some()),
    );
}

fn requests(all: &mut String, stat: &Stat) {
    let kinds = || stat.requests.iter();
    let mut metric_of = metric(
        all,
        "floatgate_requests_total",
        "counter",
        "Requests answered.",
    );
    kinds().for_each(|(kind, of)| metric_of.value("", &[("kind", kind)], of.requests));
    let mut metric_of = metric(
        all,
        "floatgate_request_errors_total",
        "counter",
        "Requests that failed.",
    );
    kinds().for_each(|(kind, of)| metric_of.value("", &[("kind", kind)], of.errors));
    let mut metric_of = metric(
        all,
        "floatgate_request_bytes_total",
        "counter",
        "Bytes of requests that were done.",
    );
    kinds().for_each(|(kind, of)| metric_of.value("", &[("kind", kind)], of.bytes));
    let mut metric_of = metric(
        all,
        "floatgate_request_duration_seconds",
        "summary",
        "Time from request to answer.",
    );
    for (kind, of) in kinds() {
        for (quantile, ns) in [
            ("0.5", of.p50_ns),
            ("0.9", of.p90_ns),
            ("0.99", of.p99_ns),
            ("0.999", of.p999_ns),
        ] {
            metric_of.value("", &[("kind", kind), ("quantile", quantile)], seconds(ns));
        }
        metric_of.value("_sum", &[("kind", kind)], seconds(of.latency_sum_ns));
        metric_of.value("_count", &[("kind", kind)], of.requests);
    }
    metric(
        all,
        "floatgate_flushes_done_total",
        "counter",
        "Flushes done; one may serve several that asked.",
    )
    .value("", &[], stat.flushes_done);
}

fn flash(all: &mut String, stat: &Stat) {
    let of = &stat.scheme_operations;
    let mut metric_of = metric(
        all,
        "floatgate_scheme_operations_total",
        "counter",
        "Flash operations of the scheme by cause.",
    );
    for (operation, Operations { host, gc, map }) in [
        ("read", of.reads),
        ("oob_read", of.oob_reads),
        ("program", of.programs),
        ("erase", of.erases),
    ] {
        for (cause, count) in [("host", host), ("gc", gc), ("map", map)] {
            metric_of.value("", &[("operation", operation), ("cause", cause)], count);
        }
    }
    let chip = &stat.chip_operations;
    let mut metric_of = metric(
        all,
        "floatgate_chip_operations_total",
        "counter",
        "Operations of the chip.",
    );
    for (operation, count) in [
        ("read", chip.reads),
        ("oob_read", chip.oob_reads),
        ("program", chip.programs),
        ("erase", chip.erases),
        ("mark", chip.marks),
    ] {
        metric_of.value("", &[("operation", operation)], count);
    }
    if let Some(amplification) = stat.write_amplification {
        metric(
            all,
            "floatgate_write_amplification",
            "gauge",
            "Bytes programmed for each byte written by clients.",
        )
        .value("", &[], amplification);
    }
    if let Some(wear) = &stat.wear {
        metric(
            all,
            "floatgate_spare_blocks",
            "gauge",
            "Spare blocks that are left.",
        )
        .value("", &[], wear.spares_left);
        metric(all, "floatgate_bad_blocks", "gauge", "Bad blocks.").value("", &[], wear.bad_blocks);
        metric(
            all,
            "floatgate_block_erases_min",
            "gauge",
            "Erases of the good block with the fewest.",
        )
        .value("", &[], wear.erases_min);
        metric(
            all,
            "floatgate_block_erases_mean",
            "gauge",
            "Mean erases of a good block.",
        )
        .value("", &[], wear.erases_mean);
        metric(
            all,
            "floatgate_block_erases_max",
            "gauge",
            "Erases of the good block with the most.",
        )
        .value("", &[], wear.erases_max);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::stat::{Ended, Kind};

    /// A sample: its metric, its labels, its value.
    type Sample = (String, BTreeMap<String, String>, f64);

    /// Reads the format strictly: a metric is announced once, by HELP and TYPE in this order, before its samples, which
    /// stand together; no sample is there twice.
    fn parsed(text: &str) -> BTreeMap<String, (String, Vec<Sample>)> {
        let mut metrics = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let (mut helped, mut current) = (String::new(), String::new());
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a help");
                assert!(!help.is_empty());
                helped = name.into();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                assert_eq!(name, helped, "HELP comes first");
                assert!(["counter", "gauge", "summary"].contains(&kind));
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                let fresh = metrics.insert(name.to_string(), (kind.to_string(), Vec::new()));
                assert!(fresh.is_none(), "{name} is announced twice");
                current = name.into();
            } else {
                let sample = sample(line);
                let suffix = sample.0.strip_prefix(&current).expect("below its metric");
                let (kind, samples): &mut (String, Vec<Sample>) =
                    metrics.get_mut(&current).expect("announced");
                assert!(
                    suffix.is_empty() || kind == "summary" && ["_sum", "_count"].contains(&suffix)
                );
                assert!(seen.insert(line.rsplit_once(' ').expect("a value").0.to_string()));
                samples.push(sample);
            }
        }
        metrics
    }

    fn sample(line: &str) -> Sample {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let end = line.find(|c| !is_name(c)).expect("a value");
        let (name, mut rest) = line.split_at(end);
        let mut labels = BTreeMap::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            loop {
                let (label, value) = rest.split_once("=\"").expect("a label");
                assert!(label.chars().all(is_name) && !label.is_empty());
                let (value, behind) = unquoted(value);
                assert!(
                    labels.insert(label.into(), value).is_none(),
                    "{label} twice"
                );
                let (next, behind) = behind.split_at(1);
                rest = behind;
                if next == "}" {
                    break;
                }
                assert_eq!(next, ",");
            }
        }
        let value = rest.strip_prefix(' ').expect("one blank").parse();
        (name.into(), labels, value.expect("a number"))
    }

    fn unquoted(text: &str) -> (String, &str) {
        let mut value = String::new();
        let mut chars = text.char_indices();
        loop {
            let (at, c) = chars.next().expect("a closing quote");
            match c {
                '"' => return (value, &text[at + 1..]),
                '\\' => value.push(match chars.next().expect("an escape").1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    other => panic!("\\{other} is no escape"),
                }),
                c => value.push(c),
            }
        }
    }

    fn stat() -> Stat {
        let mut ended = Ended::new();
        ended.note(Kind::Write, 4096, 1_000_000_000, true);
        ended.note(Kind::Write, 4096, 3_000_000_000, false);
        Stat {
            scheme: "last++".into(),
            device_bytes: 1 << 20,
            page_bytes: 2048,
            uptime_ns: 1_500_000_000,
            is_on: true,
            power_cuts: 3,
            read_only: Some("a \"reason\" \\ of\ntwo lines".into()),
            requests: ended.requests(),
            flushes_done: 5,
            scheme_operations: Default::default(),
            chip_operations: Default::default(),
            write_amplification: Some(1.25),
            wear: Some(Default::default()),
            cache: Some(Default::default()),
            lag: Some(Default::default()),
        }
    }

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let stat = stat();
        let metrics = parsed(&text(&stat));
        let of = |name: &str| metrics.get(name).unwrap_or_else(|| panic!("no {name}"));
        let (kind, samples) = of("floatgate_read_only");
        assert_eq!((kind.as_str(), samples.len()), ("gauge", 1));
        assert_eq!(Some(&samples[0].1["reason"]), stat.read_only.as_ref());
        assert_eq!(samples[0].2, 1.0);
        let value = |name: &str, sample: &str, label: &str| {
            let (_, samples) = of(name);
            let fits =
                |one: &&Sample| one.0 == sample && one.1.values().any(|value| value == label);
            samples.iter().find(fits).expect("a sample").2
        };
        let requests = "floatgate_requests_total";
        assert_eq!(value(requests, requests, "write"), 2.0);
        assert_eq!(
            value(
                "floatgate_request_errors_total",
                "floatgate_request_errors_total",
                "write"
            ),
            1.0
        );
        assert_eq!(
            value(
                "floatgate_request_bytes_total",
                "floatgate_request_bytes_total",
                "write"
            ),
            4096.0
        );
        let duration = "floatgate_request_duration_seconds";
        assert_eq!(
            value(duration, "floatgate_request_duration_seconds_sum", "write"),
            4.0
        );
        assert_eq!(
            value(
                duration,
                "floatgate_request_duration_seconds_count",
                "write"
            ),
            2.0
        );
        let median = of(duration).1.iter().find(|one| {
            one.1.get("kind").is_some_and(|kind| kind == "write")
                && one
                    .1
                    .get("quantile")
                    .is_some_and(|quantile| quantile == "0.5")
        });
        let median = median.expect("a median").2;
        assert!((0.99..1.02).contains(&median), "{median}");
        assert_eq!(of("floatgate_uptime_seconds").1[0].2, 1.5);
    }
}
