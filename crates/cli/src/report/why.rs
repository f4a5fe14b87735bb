//! The slowest requests in words.

use floatgate_sim::record::{Explanation, Link, Record, SlowRequest};

use crate::table::{count, micros, short, some};

/// What each of the slowest requests did and waited for; nothing if none were asked for.
pub fn of(record: &Record) -> String {
    let slowest = record.explained.iter().flat_map(|of| &of.slowest);
    let stories: Vec<String> = slowest
        .enumerate()
        .map(|(i, slow)| story(i + 1, slow))
        .collect();
    if stories.is_empty() {
        return String::new();
    }
    format!(
        "\nslowest requests (work: time of the operations themselves, some of which run at the same time or are left behind)\n\n{}",
        stories.join("\n")
    )
}

fn story(place: usize, slow: &SlowRequest) -> String {
    let request = &slow.request;
    let service_us = request.response_us - request.queueing_us;
    let mut text = format!(
        "{place}. {} took {}: {} queueing, {} from its first start; it came at {} s\n   work: {}; {}\n",
        name(request),
        micros(request.response_us),
        micros(request.queueing_us),
        micros(service_us),
        short(request.arrival_s),
        work(request),
        dies(request),
    );
    for (depth, link) in slow.chain.iter().enumerate() {
        let who = if depth == 0 { "it" } else { "which" };
        let indent = " ".repeat(3 + 2 * depth);
        text.push_str(&format!("{indent}{who} {}\n", wait(link)));
    }
    text
}

/// `request 3096 (write of 4 pages from page 17)`.
fn name(request: &Explanation) -> String {
    let what = match request.op.as_str() {
        "R" => "read",
        "W" => "write",
        "T" => "trim",
        _ => return format!("request {} (flush)", count(request.number)),
    };
    format!(
        "request {} ({what} of {} from page {})",
        count(request.number),
        some(request.pages.into(), "page"),
        count(request.first_lpn.into())
    )
}

fn work(request: &Explanation) -> String {
    let parts = [
        ("translation", request.translation_us),
        ("own pages", request.flash_us),
        ("copies and erases", request.gc_us),
    ];
    let parts = parts.into_iter().filter(|(_, us)| *us > 0.0);
    let mut parts: Vec<String> = parts
        .map(|(what, us)| format!("{what} {}", micros(us)))
        .collect();
    parts.extend(merges(request));
    if parts.is_empty() {
        return "none".into();
    }
    parts.join(", ")
}

/// `2 full merges, 1 switch merge`.
fn merges(request: &Explanation) -> Option<String> {
    let kinds = [
        (request.merges_switch, "switch merge"),
        (request.merges_partial, "partial merge"),
        (request.merges_full, "full merge"),
        (request.merges_dead, "dead log block"),
        (request.merges_other, "merge of the scheme's own kind"),
    ];
    let run: Vec<String> = kinds
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, kind)| match kind.split_once(" of ") {
            Some((head, tail)) => format!("{} of {tail}", some(n, head)),
            None => some(n, kind),
        })
        .collect();
    (!run.is_empty()).then(|| run.join(", "))
}

fn dies(request: &Explanation) -> String {
    match request.die_last {
        Some(die) if request.dies > 1 => {
            format!("on {} dies, done last on die {die}", request.dies)
        }
        Some(die) => format!("on die {die}"),
        None => "on no die".into(),
    }
}

fn wait(link: &Link) -> String {
    let waited = format!(
        "waited {} for die {}, busy with",
        micros(link.waited_us),
        link.die
    );
    match (&link.behind, link.behind_number) {
        (Some(behind), _) => format!("{waited} {}: {}", name(behind), work(behind)),
        (None, Some(number)) => format!("{waited} request {}, long before", count(number)),
        (None, None) => format!("{waited} work of the scheme in idle time or by a timer"),
    }
}
