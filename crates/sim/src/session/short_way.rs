//! The short way through a request: what the [long way](super::long_way) does for a read or write of whole pages that
//! meets neither a queue nor a recorder, and nothing more.
//!
//! Nearly all requests of nearly all traces are of this kind, and a simulated host write takes only some hundred
//! instructions: the tests of the long way that cannot apply here were a fifth of them (docs/performance.md).
//! No rule lives here alone. Whoever changes the long way changes this one too; the test below plays the same
//! requests both ways and compares everything that is counted.

use floatgate_core::{Ftl, Lpn};
use floatgate_trace::{Op, Request};

use super::Session;
use crate::clock::Clock;
use crate::config::Beyond;
use crate::flight::InFlight;
use crate::host::{Kind, PageMapper, Segment};

impl PageMapper {
    /// Kind, first page and number of pages of a read or write of whole pages that the device has; nothing for any
    /// other request. The short way to what [`PageMapper::map`] finds.
    #[inline]
    pub fn whole_pages(&self, request: &Request) -> Option<(Kind, Lpn, u32)> {
        let kind = match request.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            _ => return None,
        };
        let span = self.page_size.span(request.offset, request.bytes);
        let whole =
            (span.head | span.tail) == 0 && span.first < span.end && span.end <= self.logical_pages;
        (whole && self.beyond == Beyond::Error)
            .then(|| (kind, Lpn(span.first as u32), (span.end - span.first) as u32))
    }
}

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// Whether the next request needs nothing but its work and its place among those under way: what else may have to
    /// be done is the same for all requests, or comes only now and then.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        // The first request and those with a look at the backlog behind them take the long way.
        self.plain && self.next + 1 < self.next_look
    }

    /// Plays a read or write of whole pages that [is plain](Self::is_plain): the short way to the same as
    /// the long way.
    #[inline(always)]
    pub(super) fn play_whole(
        &mut self,
        kind: Kind,
        first: Lpn,
        pages: u32,
        bytes: u64,
        arrival_ns: u64,
    ) {
        self.arrives(arrival_ns);
        let issue_ns = arrival_ns.max(self.last_issue_ns);
        self.last_issue_ns = issue_ns;
        let number = self.next;
        self.next += 1;
        let alone = self.flight.is_empty();
        if !alone {
            let request = InFlight::new(kind, arrival_ns, issue_ns);
            self.flight.add(number, request);
        }
        self.idles(arrival_ns, issue_ns);
        self.flash.begin_request(number, issue_ns, None);
        let whole = Segment {
            first,
            pages,
            first_slot: 0,
        };
        if kind == Kind::Write {
            self.host.page_writes += u64::from(pages);
            self.metrics.write_bytes += bytes;
            self.work(Kind::Write, &whole);
        } else {
            self.host.page_reads += u64::from(pages);
            self.metrics.read_bytes += bytes;
            self.work(Kind::Read, &whole);
        }
        let done = self.flash.clock.end_request_known();
        if !alone {
            return self.complete_under_way(done);
        }
        let Some(done) = done else {
            let request = InFlight::new(kind, arrival_ns, issue_ns);
            return self.flight.add(number, request);
        };
        if kind == Kind::Write {
            self.flight.written_ns = self.flight.written_ns.max(done.end_ns);
        }
        self.measure_times(InFlight::new(kind, arrival_ns, issue_ns), done);
    }
}

#[cfg(test)]
mod tests {
    use floatgate_core::options::Value;
    use floatgate_core::rng::SplitMix64;
    use floatgate_core::{Start, Striped};
    use floatgate_schemes::fast::Fast;
    use floatgate_schemes::last_plus_plus::LastPlusPlus;
    use floatgate_schemes::page::Page;

    use super::*;
    use crate::clock::{Closed, Events};
    use crate::config::{Device, Host, RunConfig};
    use crate::host::PageRequest;
    use crate::part::part;

    const PAGE_BYTES: u64 = 4096;
    const LOGICAL_PAGES: u64 = 4 * 24 * 16;

    /// Four dies with 24 logical blocks of 16 pages each.
    fn config(channels: u32, start: Start, options: &[(&str, &str)]) -> RunConfig {
        let mut part = part("mt29f16g08").expect("a preset").clone();
        part.pages_per_block = 16;
        let options = options.iter();
        RunConfig {
            device: Device {
                channels,
                ..Device::one_die_a_channel(part, 4, 40, LOGICAL_PAGES)
            },
            start,
            ageing: Vec::new(),
            host: Host::default(),
            scheme: String::new(),
            options: options
                .map(|(key, value)| ((*key).into(), Value::from_word(value)))
                .collect(),
        }
    }

    /// Requests of which most can go the short way; some of them come while others are under way, some after idle time.
    /// Now and then one comes that must go the long way, and a flush among them asks when the writes before it end.
    fn random(rng: &mut SplitMix64, now_ns: &mut u64) -> Request {
        let op = match rng.below(40) {
            0..2 => Op::Trim,
            2..5 => Op::Flush,
            5..20 => Op::Read,
            _ => Op::Write,
        };
        let gaps_ns = [1_000, 100_000, 1_000_000, 50_000_000];
        let gap_ns = gaps_ns[rng.below(4) as usize];
        *now_ns += rng.below(gap_ns);
        let pages = 1 + rng.below(5);
        let cut = if rng.below(20) == 0 { 512 } else { 0 };
        Request {
            // Some come too late to be issued when they arrived.
            arrival_ns: now_ns.saturating_sub(rng.below(16) / 15 * 1_000_000),
            op,
            volume: 0,
            stream: floatgate_trace::Stream::NONE,
            offset: rng.below(LOGICAL_PAGES - pages) * PAGE_BYTES + cut,
            bytes: pages * PAGE_BYTES - cut,
        }
    }

    /// Everything that a request can change in a session, but for the histograms: those are too long to compare each time.
    fn state<S: Ftl<Page = Lpn>, C: Clock>(session: &Session<S, C>) -> String {
        let (flash, metrics) = (&session.flash, &session.metrics);
        format!(
            "{:?}",
            (
                (session.next, session.last_issue_ns, &session.flight),
                (&session.host, &session.live, flash.unwritten_reads),
                (&flash.ledger.counters, &flash.fine, session.ftl.counters()),
                (flash.clock.die_busy_ns(), flash.clock.channel_busy_ns()),
                (flash.clock.last_end_ns(), metrics.last_completion_ns),
                (metrics.read_bytes, metrics.write_bytes, metrics.cuts),
            )
        )
    }

    /// Plays the same requests as they come and by the long way alone.
    fn both_ways<S: Ftl<Page = Lpn>, C: Clock>(config: &RunConfig) {
        let mut session = Session::<S, C>::new(config).expect("a valid configuration");
        let mut at_length = Session::<S, C>::new(config).expect("a valid configuration");
        at_length.plain = false;
        let (mut rng, mut now_ns, mut short_ways) = (SplitMix64::new(5), 0, 0);
        for number in 0..4_000 {
            if number == 1_000 {
                session.reset_counters();
                at_length.reset_counters();
            }
            let request = random(&mut rng, &mut now_ns);
            let whole = session.mapper.whole_pages(&request);
            short_ways += u32::from(session.is_plain() && whole.is_some());
            if let Some((kind, first, pages)) = whole.filter(|_| number % 2 == 0) {
                session.page_request(kind, first, pages, request.arrival_ns);
                at_length.page_request(kind, first, pages, request.arrival_ns);
            } else {
                session.request(&request).expect("the device has it");
                at_length.request(&request).expect("the device has it");
            }
            assert_eq!(state(&session), state(&at_length), "request {number}");
            if number % 200 == 0 {
                let (short, long) = (&session.metrics, &at_length.metrics);
                assert_eq!(format!("{short:?}"), format!("{long:?}"), "by {number}");
            }
        }
        assert!(short_ways > 2_500, "{short_ways} took the short way");
        session.finish();
        at_length.finish();
        assert_eq!(state(&session), state(&at_length));
        let (short, long) = (&session.metrics, &at_length.metrics);
        assert_eq!(format!("{short:?}"), format!("{long:?}"));
        assert_eq!(session.flash.erase_counts(), at_length.flash.erase_counts());
        session.check_laws().expect("laws hold");
        at_length.check_laws().expect("laws hold");
    }

    #[test]
    fn a_device_of_one_die_a_channel_sees_no_difference() {
        for start in [Start::Empty, Start::Full] {
            both_ways::<Page, Closed>(&config(4, start, &[]));
            both_ways::<Page, Events>(&config(4, start, &[]));
        }
        both_ways::<Striped<Fast>, Closed>(&config(4, Start::Full, &[("log_blocks", "16")]));
    }

    #[test]
    fn a_device_with_shared_channels_sees_no_difference() {
        for start in [Start::Empty, Start::Full] {
            both_ways::<Page, Events>(&config(2, start, &[]));
        }
        both_ways::<Striped<Fast>, Events>(&config(2, Start::Full, &[("log_blocks", "16")]));
    }

    /// Merges in idle time make it matter when the scheme is told of an arrival.
    #[test]
    fn a_scheme_that_works_in_idle_time_sees_no_difference() {
        let options = [
            ("log_blocks", "16"),
            ("background", "aggressive"),
            ("idle_timeout_ns", "1000000"),
        ];
        both_ways::<LastPlusPlus, Closed>(&config(4, Start::Full, &options));
        both_ways::<LastPlusPlus, Events>(&config(2, Start::Full, &options));
    }

    /// The short way gives what the long way gives, or nothing, and both ways agree with what is asked for ahead.
    #[test]
    fn whole_pages_are_mapped_as_by_the_long_way() {
        let mut rng = SplitMix64::new(11);
        let mut short_ways = 0;
        for page_bytes in [4096, 18_432] {
            let mut part = part("mt29f16g08").expect("a preset").clone();
            part.page_bytes = page_bytes;
            let device = Device::one_die_a_channel(part, 2, 32, 64);
            for beyond in [Beyond::Error, Beyond::Wrap, Beyond::Compact] {
                let host = Host {
                    beyond,
                    ..Host::default()
                };
                let mut mapper = PageMapper::new(&device, &host);
                for _ in 0..3_000 {
                    let sectors = u64::from(page_bytes) / 512;
                    let unit = if rng.below(2) == 0 {
                        512
                    } else {
                        page_bytes.into()
                    };
                    let request = Request {
                        arrival_ns: 0,
                        op: [Op::Read, Op::Write, Op::Trim, Op::Flush][rng.below(4) as usize],
                        volume: 0,
                        stream: floatgate_trace::Stream::NONE,
                        offset: rng.below(70 * sectors * 512 / unit) * unit,
                        bytes: rng.below(6) * unit,
                    };
                    let short = mapper.whole_pages(&request);
                    let mut long = PageRequest::default();
                    let mapped = mapper.map(&request, &mut long);
                    if let Some((kind, first, pages)) = short {
                        short_ways += 1;
                        let segment = Segment {
                            first,
                            pages,
                            first_slot: 0,
                        };
                        assert_eq!((mapped, long.kind), (Ok(()), Some(kind)));
                        assert_eq!((&long.segments[..], long.pages), (&[segment][..], pages));
                        assert!(!long.first_partial && !long.last_partial);
                        assert!(long.partial.is_none());
                    }
                    if let (Ok(()), Some(segment)) = (mapped, long.segments.first())
                        && request.op != Op::Trim
                    {
                        assert_eq!(mapper.first_page(&request), Some(segment.first));
                    }
                }
            }
        }
        assert!(short_ways > 500);
    }
}
