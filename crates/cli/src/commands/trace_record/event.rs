//! A line of the tracepoint `block:block_rq_issue`.

use floatgate_trace::Op;

/// A request on its way to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    pub at_us: u64,
    /// Nothing, if it is of a kind that no trace has.
    pub op: Option<Op>,
    /// Whether what was written before is made safe first.
    pub flush_before: bool,
    pub fua: bool,
    /// In units of 512 bytes.
    pub sector: u64,
    pub sectors: u64,
}

impl Event {
    /// Reads a line, as `make-123 [001] ..... 40469.455334: block_rq_issue: 7,0 WS 4096 () 1024 + 8 none,0,0 [make]`.
    pub fn of(line: &str) -> Option<Self> {
        let (head, tail) = line.split_once(": block_rq_issue: ")?;
        let (seconds, micros) = head.rsplit(' ').next()?.split_once('.')?;
        let at_us = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?;
        let mut words = tail.split_whitespace();
        let kind = words.nth(1)?.as_bytes();
        // A program's name may have anything in it, but it stands behind the place.
        let (_, place) = tail.split_once(") ")?;
        let mut place = place.split_whitespace();
        let sector = place.next()?.parse().ok()?;
        if place.next()? != "+" {
            return None;
        }
        let sectors = place.next()?.parse().ok()?;
        // An F before the kind is a flush that goes before it, one behind it FUA.
        let (flush_before, kind) = match kind {
            [b'F', rest @ ..] => (true, rest),
            kind => (false, kind),
        };
        let op = match kind.first() {
            Some(b'R') => Some(Op::Read),
            Some(b'W') => Some(Op::Write),
            Some(b'D') => Some(Op::Trim),
            Some(b'N') => Some(Op::WriteZeroes),
            _ => None,
        };
        Some(Self {
            at_us: at_us.checked_add(micros.parse().ok()?)?,
            op,
            flush_before,
            fua: op == Some(Op::Write) && kind.contains(&b'F'),
            sector,
            sectors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, place: &str) -> Option<Event> {
        Event::of(&format!(
            "  a: b (c)-12 [001] ..... 40469.455334: block_rq_issue: 7,0 {kind} 4096 () {place} none,0,0 [a: (b) x]"
        ))
    }

    #[test]
    fn the_kinds_that_the_kernel_tells() {
        let whole = event("WFS", "1024 + 8").expect("a request");
        let wanted = Event {
            at_us: 40_469_455_334,
            op: Some(Op::Write),
            flush_before: false,
            fua: true,
            sector: 1024,
            sectors: 8,
        };
        assert_eq!(whole, wanted);
        for (kind, op, flush_before, fua) in [
            ("RA", Some(Op::Read), false, false),
            ("FWFS", Some(Op::Write), true, true),
            ("FF", None, true, false),
            ("DE", Some(Op::Trim), false, false),
            ("NS", Some(Op::WriteZeroes), false, false),
            ("ZR", None, false, false),
        ] {
            let found = event(kind, "0 + 8").expect(kind);
            assert_eq!(
                (found.op, found.flush_before, found.fua),
                (op, flush_before, fua),
                "{kind}"
            );
        }
        assert_eq!(event("W", "1024 - 8"), None);
        assert_eq!(event("W", "x + 8"), None);
        assert_eq!(Event::of("CPU:1 [LOST 25 EVENTS]"), None);
    }
}
