//! Conformance vectors: a scheme, a configuration, requests, and the counters that must come out; or a list
//! of flash operations and their times (docs/spec/vectors/README.md).

use std::sync::Arc;

use floatgate_core::options::Value as OptionValue;
use floatgate_core::wear::{WEAR_GAP, WearLeveling};
use floatgate_core::{Ftl, Lpn, ProgramOrder, Refusal, Run, Start, Tick};
use serde_json::Value;

use crate::clock::{Clock, Closed, Mode, list};
use crate::config::{Device, Host, RunConfig};
use crate::future::Future;
use crate::host::Kind;
use crate::part::part;
use crate::record::Counters;
use crate::session::{Session, options_of};

/// One request of a vector.
#[derive(Clone, Copy, Debug)]
pub struct VectorRequest {
    kind: Kind,
    first: u64,
    pages: u32,
    arrival_ns: u64,
    stream: Option<u32>,
}

/// A difference between a vector and what came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Path of the key, as `flash.reads.gc`.
    pub key: String,
    /// What the vector says.
    pub expected: Value,
    /// What came out.
    pub got: Value,
}

/// Keys of a vector's `config` that are not options of the scheme.
const DEVICE_KEYS: [&str; 8] = [
    "dies",
    "blocks",
    "pages",
    "logical_pages",
    "start",
    "program_order",
    "wear_leveling",
    "wear_gap",
];

/// Reads the requests of a vector.
///
/// # Errors
/// Names the line.
pub fn parse_requests(text: &str) -> Result<Vec<VectorRequest>, String> {
    let mut requests = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line_no = i + 1;
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let bad = |what: &str| {
            format!(
                "line {line_no}: {what}: {line:?} (wanted: W|R|T lpn pages [arrival_ns [stream]])"
            )
        };
        let kind = match words[0] {
            "W" => Kind::Write,
            "R" => Kind::Read,
            "T" => Kind::Trim,
            _ => return Err(bad("no such operation")),
        };
        if !(3..=5).contains(&words.len()) {
            return Err(bad("3 to 5 words"));
        }
        let number = |i: usize| words[i].parse::<u64>().map_err(|_| bad("not a number"));
        let arrival_ns = if words.len() > 3 { number(3)? } else { 0 };
        let stream = match words.len() {
            5 => Some(u32::try_from(number(4)?).map_err(|_| bad("stream"))?),
            _ => None,
        };
        let pages = u32::try_from(number(2)?)
            .ok()
            .filter(|&n| n > 0)
            .ok_or_else(|| bad("number of pages"))?;
        requests.push(VectorRequest {
            kind,
            first: number(1)?,
            pages,
            arrival_ns,
            stream,
        });
    }
    Ok(requests)
}

/// Whether the JSON of a vector is a list of flash operations.
pub fn is_timing(vector: &Value) -> bool {
    vector.get("ops").is_some()
}

/// Checks a timing vector.
///
/// # Errors
/// The first difference, or what is wrong with the file.
pub fn check_timing(vector: Value) -> Result<(), String> {
    let vector: list::TimingVector = serde_json::from_value(vector).map_err(|e| e.to_string())?;
    list::check(&vector)
}

/// Times of a timing vector's operations, as it would hold them.
///
/// # Errors
/// What is wrong with the file.
pub fn timing_json(vector: Value) -> Result<Value, String> {
    let vector: list::TimingVector = serde_json::from_value(vector).map_err(|e| e.to_string())?;
    let times = list::replay(&vector.config, &vector.ops)?;
    let total = times.iter().map(|t| t.1).max().unwrap_or(0);
    Ok(serde_json::json!({"times": times, "total": total}))
}

/// The run configuration of a vector.
///
/// # Errors
/// Names the key at fault.
pub fn config_of(vector: &Value) -> Result<RunConfig, Refusal> {
    let Some(scheme) = vector.get("scheme").and_then(Value::as_str) else {
        return Err(Refusal::new("scheme", "no \"scheme\" in the vector".into()));
    };
    let Some(config) = vector.get("config").and_then(Value::as_object) else {
        return Err(Refusal::new("config", "no \"config\" in the vector".into()));
    };
    let number = |key: &str| {
        config
            .get(key)
            .and_then(Value::as_u64)
            .ok_or_else(|| Refusal::new(key, format!("config.{key}: a whole number is needed")))
    };
    let small = |key: &str| {
        number(key).and_then(|n| {
            u32::try_from(n)
                .map_err(|_| Refusal::new(key, format!("config.{key} = {n} is too large")))
        })
    };
    let word = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
    let start = Start::from_name(word("start"))
        .ok_or_else(|| Refusal::new("start", "config.start: \"empty\" or \"full\"".into()))?;
    let order = match config.get("program_order") {
        None => ProgramOrder::Ascending,
        Some(_) => ProgramOrder::from_name(word("program_order")).ok_or_else(|| {
            Refusal::new(
                "program_order",
                "config.program_order: \"ascending\" or \"any\"".into(),
            )
        })?,
    };
    let leveling = match config.get("wear_leveling") {
        None => WearLeveling::Off,
        Some(_) => {
            let word = OptionValue::Text(word("wear_leveling").into());
            floatgate_core::options::OptionValue::take(&word).map_err(|wanted| {
                Refusal::new("wear_leveling", format!("config.wear_leveling: {wanted}"))
            })?
        }
    };
    let mut base = part("ssdsim").expect("a preset").clone();
    base.pages_per_block = small("pages")?;
    let device = Device {
        program_order: order,
        mode: Mode::Flat,
        wear_leveling: leveling,
        wear_gap: match config.get("wear_gap") {
            None => WEAR_GAP,
            Some(_) => small("wear_gap")?,
        },
        ..Device::one_die_a_channel(
            base,
            small("dies")?,
            small("blocks")?,
            number("logical_pages")?,
        )
    };
    let mut options = Vec::new();
    for (key, value) in config
        .iter()
        .filter(|(key, _)| !DEVICE_KEYS.contains(&key.as_str()))
    {
        let value = match value {
            Value::Bool(b) => OptionValue::Bool(*b),
            Value::String(s) => OptionValue::Text(s.clone()),
            Value::Number(n) if n.is_i64() || n.is_u64() => match n.as_i64() {
                Some(n) => OptionValue::Int(n),
                None => OptionValue::Text(n.to_string()),
            },
            _ => {
                return Err(Refusal::new(
                    key,
                    format!("config.{key} = {value}: a number, a word or true/false"),
                ));
            }
        };
        options.push((key.clone(), value));
    }
    let host = Host::default();
    Ok(RunConfig {
        device,
        start,
        ageing: Vec::new(),
        host,
        scheme: scheme.into(),
        options,
    })
}

/// Plays a vector without a clock: arrivals stand for both ends of idle times.
pub(crate) fn conform_scheme<S: Ftl<Page = Lpn>>(
    config: &RunConfig,
    requests: &[VectorRequest],
) -> Result<Counters, String> {
    let mut session = Session::<S, Closed>::new(config).map_err(|refusal| refusal.message)?;
    let logical = config.device.logical_pages;
    let options = options_of::<S>(config).map_err(|refusal| refusal.message)?;
    let uses_streams = S::uses_streams(&options);
    if S::live(&options).is_err() {
        session.ftl.foretell(future_of(config, requests));
    }
    let mut last_arrival_ns: Option<u64> = None;
    for (i, request) in requests.iter().enumerate() {
        if request.first.saturating_add(u64::from(request.pages)) > logical {
            return Err(format!(
                "request {}: past the last logical page {}",
                i + 1,
                logical - 1
            ));
        }
        let now_ns = request.arrival_ns;
        let idle_ns = last_arrival_ns.replace(now_ns).map(|last| last..now_ns);
        let tick = Tick { now_ns, idle_ns };
        let Ok(()) = session.ftl.tick(&mut session.flash, &tick);
        if uses_streams && request.kind == Kind::Write {
            session.ftl.stream(request.stream);
        }
        play_untimed(&mut session, i as u64, request);
    }
    session.check_laws()?;
    let flash = &session.flash;
    Ok(Counters::counted(
        &session.host,
        flash.unwritten_reads,
        &flash.ledger.counters,
        &session.ftl.counters(),
    ))
}

/// All that the requests will write.
fn future_of(config: &RunConfig, requests: &[VectorRequest]) -> Arc<[u64]> {
    let mut future = Future::new(config.device.logical_pages, config.start);
    for request in requests {
        // A page past the last one is told of when it comes.
        if request.first.saturating_add(u64::from(request.pages)) <= config.device.logical_pages {
            future.request(request.kind, Lpn(request.first as u32), request.pages);
        }
    }
    future.told()
}

/// Hands a request to the scheme; when the clock says it ends does not matter.
fn play_untimed<S: Ftl<Page = Lpn>>(
    session: &mut Session<S, Closed>,
    number: u64,
    request: &VectorRequest,
) {
    let (first, pages) = (Lpn(request.first as u32), request.pages);
    let run = Run::whole(first, pages);
    session.flash.begin_request(number, 0, None);
    let count = u64::from(pages);
    let Ok(()) = match request.kind {
        Kind::Read => {
            session.host.page_reads += count;
            session.ftl.read(&mut session.flash, &run)
        }
        Kind::Write => {
            session.host.page_writes += count;
            session.ftl.write(&mut session.flash, &run)
        }
        _ => {
            session.host.page_trims += count;
            session.trim(&run)
        }
    };
    session.flash.end_request(false);
    session.flash.clock.drain(&mut Vec::new());
    if request.kind != Kind::Read {
        session.live.set(first, pages, request.kind == Kind::Write);
    }
}

/// Keys that the vector holds and that came out otherwise.
pub fn differences(expected: &Value, got: &Counters) -> Vec<Difference> {
    let mut found = Vec::new();
    let got = serde_json::to_value(got).unwrap_or_default();
    compare("", expected, &got, &mut found);
    found
}

fn compare(path: &str, expected: &Value, got: &Value, found: &mut Vec<Difference>) {
    if let Some(object) = expected.as_object() {
        for (key, value) in object {
            let path = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            compare(&path, value, got.get(key).unwrap_or(&Value::Null), found);
        }
    } else if expected != got {
        found.push(Difference {
            key: path.into(),
            expected: expected.clone(),
            got: got.clone(),
        });
    }
}
