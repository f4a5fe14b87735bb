//! The slowest request for the report: the operations of its window as bars, and in a sentence why it took so long.

use floatgate_sim::clock::{Does, Machine, Operation};
use floatgate_sim::record::{SlowRequest, Wait};
use floatgate_sim::timeline::{CAUSES, DOES, cause_index, does_index, pcm_chip};
use floatgate_sim::window::Window;
use serde::Serialize;

use super::why;
use crate::table::micros;

/// Share of a wait from which on it is told that the die was idle meanwhile.
const IDLE_PART: f64 = 0.01;

/// What the report draws. Times are counted from the arrival of the request.
#[derive(Debug, Serialize)]
pub struct Slowest {
    /// Why it took so long.
    why: String,
    /// Its number in the trace, from 0.
    request: u64,
    /// When the device got it.
    issue_ns: u64,
    /// When it was complete.
    end_ns: u64,
    /// Dies, and chips of phase-change memory, that did something meanwhile.
    lanes: Vec<String>,
    /// Operations, by their ends.
    bars: Vec<Bar>,
    /// Earlier operations that are not among the bars.
    left_out: u64,
}

/// An operation.
#[derive(Debug, Serialize)]
struct Bar {
    lane: usize,
    does: &'static str,
    /// Pages that are copied, of copies in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u32>,
    cause: &'static str,
    /// The request that it was issued for; none in idle time or by a timer.
    request: Option<u64>,
    /// Before the arrival if negative.
    from_ns: i64,
    to_ns: i64,
}

impl Slowest {
    /// What is told of the slowest request, and its window on a machine.
    pub fn of(slow: &SlowRequest, window: &Window, machine: &Machine) -> Self {
        let row = window.row();
        let mut places: Vec<u32> = window.kept().map(|operation| operation.die).collect();
        places.sort_unstable();
        places.dedup();
        let bar = |operation: &Operation| Bar::of(operation, row.arrival_ns, &places);
        let name = |&place: &u32| match pcm_chip(machine, place) {
            Some(chip) => format!("PCM {chip}"),
            None => format!("die {place}"),
        };
        Self {
            why: sentence(slow, window),
            request: row.request,
            issue_ns: row.issue_ns - row.arrival_ns,
            end_ns: row.response_ns(),
            lanes: places.iter().map(name).collect(),
            bars: window.kept().map(bar).collect(),
            left_out: window.left_out(),
        }
    }
}

impl Bar {
    fn of(operation: &Operation, arrival_ns: u64, places: &[u32]) -> Self {
        let since_ns = |ns: u64| ns.cast_signed() - arrival_ns.cast_signed();
        Self {
            lane: places.partition_point(|&place| place < operation.die),
            does: DOES[does_index(operation.does)],
            pages: match operation.does {
                Does::Copies { pages, .. } => Some(pages),
                Does::One(_) => None,
            },
            cause: CAUSES[cause_index(operation.cause)],
            request: operation.request,
            from_ns: since_ns(operation.start_ns),
            to_ns: since_ns(operation.end_ns),
        }
    }
}

/// `Request 7 (read of 1 page from page 3) took 3.13 ms: it waited 3.00 ms for die 0, ...; its own work: ...`
fn sentence(slow: &SlowRequest, window: &Window) -> String {
    let (request, row) = (&slow.request, window.row());
    let mut parts = Vec::new();
    let queued_ns = row.issue_ns - row.arrival_ns;
    if queued_ns > 0 {
        let time = micros(queued_ns as f64 / 1000.0);
        parts.push(format!("it waited {time} for a place in the queue"));
    }
    let busy_us = window.waited_ns().map(|ns| ns as f64 / 1000.0);
    match &slow.waited {
        Some(waited) => parts.push(wait(waited, busy_us)),
        None => parts.push("it waited for no die".into()),
    }
    format!(
        "R{} took {}: {}; its own work: {}.",
        &why::name(request)[1..],
        micros(request.response_us),
        parts.join(", then "),
        why::work(request),
    )
}

/// `it waited 3.20 ms for die 0 (3.00 ms gc, 200 us host), last for request 0`
fn wait(waited: &Wait, busy_us: [f64; CAUSES.len()]) -> String {
    let idle_us = waited.waited_us - busy_us.iter().sum::<f64>();
    let mut parts: Vec<(f64, &str)> = busy_us.into_iter().zip(CAUSES.iter().copied()).collect();
    if idle_us >= IDLE_PART * waited.waited_us {
        parts.push((idle_us, "idle until its work could begin"));
    }
    parts.retain(|(us, _)| *us > 0.0);
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let times: Vec<String> = parts
        .iter()
        .map(|&(us, what)| format!("{} {what}", micros(us)))
        .collect();
    format!(
        "it waited {} for die {} ({}), last for {}",
        micros(waited.waited_us),
        waited.die,
        times.join(", "),
        why::behind(waited)
    )
}

#[cfg(test)]
mod tests {
    use floatgate_core::report::Cause;
    use floatgate_sim::clock::OpKind;
    use floatgate_sim::host::Kind;
    use floatgate_sim::merges::MergeKinds;
    use floatgate_sim::requests::{Behind, RequestRow, Waited, Work};
    use floatgate_sim::why::Why;

    use super::*;

    /// A read of die 0 that comes 1 us after a write, for which a block is erased first: 3 ms, 0.2 ms, 0.05 ms.
    fn rows() -> [RequestRow; 2] {
        let write = RequestRow {
            request: 0,
            kind: Kind::Write,
            first_lpn: 8,
            pages: 1,
            arrival_ns: 1000,
            issue_ns: 1000,
            start_ns: 1000,
            end_ns: 3_201_000,
            work: Work {
                translation_ns: 0,
                flash_ns: 200_000,
                gc_ns: 3_000_000,
            },
            merges: MergeKinds::default(),
            dies: 1,
            die_last: Some(0),
            waited: None,
        };
        let read = RequestRow {
            request: 1,
            kind: Kind::Read,
            first_lpn: 3,
            arrival_ns: 2000,
            issue_ns: 2000,
            start_ns: 3_201_000,
            end_ns: 3_251_000,
            work: Work {
                flash_ns: 50_000,
                ..Work::default()
            },
            waited: Some(Waited {
                ns: 3_199_000,
                die: 0,
                behind: Behind::Request(0),
            }),
            ..write
        };
        [write, read]
    }

    fn operations() -> [Operation; 3] {
        let of = |kind, cause, request, start_ns, end_ns| Operation {
            die: 0,
            does: Does::One(kind),
            cause,
            request: Some(request),
            start_ns,
            end_ns,
        };
        [
            of(OpKind::Erase, Cause::Gc, 0, 1000, 3_001_000),
            of(OpKind::Program, Cause::Host, 0, 3_001_000, 3_201_000),
            of(OpKind::Read, Cause::Host, 1, 3_201_000, 3_251_000),
        ]
    }

    fn slowest(rows: &[RequestRow], operations: &[Operation]) -> Slowest {
        let mut why = Why::new(1);
        why.add(rows);
        let slowest = why.slowest().expect("there are requests");
        let mut window = Window::new(slowest.row, 100);
        window.operations(operations);
        let machine = Machine {
            dies: 1,
            ..Machine::default()
        };
        Slowest::of(&slowest.slow, &window, &machine)
    }

    #[test]
    fn a_read_behind_an_erase() {
        let slowest = slowest(&rows(), &operations());
        let bar = |of: &Bar| (of.does, of.cause, of.request, of.from_ns, of.to_ns);
        let bars: Vec<_> = slowest.bars.iter().map(bar).collect();
        let expected = [
            ("erase", "gc", Some(0), -1000, 2_999_000),
            ("program", "host", Some(0), 2_999_000, 3_199_000),
            ("read", "host", Some(1), 3_199_000, 3_249_000),
        ];
        assert_eq!(bars, expected);
        assert_eq!((slowest.request, slowest.end_ns), (1, 3_249_000));
        assert_eq!(
            slowest.why,
            "Request 1 (read of 1 page from page 3) took 3.25 ms: it waited 3.20 ms for die 0 (3.00 ms gc, 200 us host), \
             last for request 0 (write of 1 page from page 8); its own work: own pages 50 us."
        );
    }

    /// The erase went on for the last two of the three milliseconds: before, it waited for something.
    #[test]
    fn a_die_that_was_idle_while_work_for_it_had_to_wait() {
        let mut operations = operations();
        operations[0].start_ns = 1_001_000;
        let why = slowest(&rows(), &operations).why;
        let times =
            "for die 0 (2.00 ms gc, 999 us idle until its work could begin, 200 us host), last";
        assert!(why.contains(times), "{why}");
    }

    #[test]
    fn a_request_that_waited_for_a_place_in_the_queue_alone() {
        let [write, _] = rows();
        let queued = RequestRow {
            arrival_ns: 0,
            ..write
        };
        let slowest = slowest(&[queued], &operations());
        assert_eq!(slowest.issue_ns, 1000);
        assert_eq!(
            slowest.why,
            "Request 0 (write of 1 page from page 8) took 3.20 ms: it waited 1 us for a place in the queue, then it \
             waited for no die; its own work: own pages 200 us, copies and erases 3.00 ms."
        );
    }
}
