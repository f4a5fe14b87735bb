//! The slowest requests in words.

use floatgate_sim::record::{Explanation, Record, SlowRequest, Wait};

use crate::table::{count, micros, short, some};

/// What belongs to no request.
const IDLE_WORK: &str = "work of the scheme in idle time or by a timer";

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
    if let Some(waited) = &slow.waited {
        text.push_str(&format!("   {}\n", wait(waited)));
        for behind in &waited.heaviest {
            text.push_str(&format!("     {}: {}\n", name(behind), work(behind)));
        }
    }
    text
}

/// `request 3096 (write of 4 pages from page 17)`.
pub(super) fn name(request: &Explanation) -> String {
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

pub(super) fn work(request: &Explanation) -> String {
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

/// What its die did last before a request that waited got it.
pub(super) fn behind(waited: &Wait) -> String {
    let Some(number) = waited.behind_number else {
        return IDLE_WORK.into();
    };
    let row = waited.heaviest.iter().find(|row| row.number == number);
    row.map_or_else(|| format!("request {}", count(number)), name)
}

/// `waited 340 ms for die 3, behind request 3096`, and what that waited for.
fn wait(waited: &Wait) -> String {
    let time = micros(waited.waited_us);
    let mut text = format!("it waited {time} for die {}, busy with ", waited.die);
    match waited.behind_number {
        None => return text + IDLE_WORK,
        Some(number) => text.push_str(&format!("request {}", count(number))),
    }
    match waited.chain_requests {
        0 => return text + ", which came long before",
        1 => {}
        n => text.push_str(&format!(
            ", the last of {} of which each waited for one before",
            some(n, "request")
        )),
    }
    if waited.behind_background {
        text.push_str(&format!(", the first for {IDLE_WORK}"));
    }
    match waited.heaviest.len() as u64 {
        n if n < waited.chain_requests => text + &format!("; the {n} with the most work:"),
        _ => text + ":",
    }
}
