//! When maps are read and written: worked out by hand from docs/spec/hat.md, section 9, and docs/spec/timing.md,
//! section 4.

mod common;

use common::config;
use floatgate_core::{Ftl, Lpn};
use floatgate_schemes::dftl::Dftl;
use floatgate_schemes::hat::Hat;
use floatgate_sim::clock::{Clock, Closed, Events};
use floatgate_sim::config::RunConfig;
use floatgate_sim::session::Session;
use floatgate_trace::{Op, Request};

const PAGE_BYTES: u64 = 2048;

/// Whole pages: arrival, operation, first page, number.
type Pages = (u64, Op, u64, u64);

/// Plays the requests to their end.
fn play<S: Ftl<Page = Lpn>, C: Clock>(session: &mut Session<S, C>, requests: &[Pages]) {
    for &(arrival_ns, op, first, pages) in requests {
        let request = Request {
            arrival_ns,
            op,
            volume: 0,
            stream: floatgate_trace::Stream::NONE,
            offset: first * PAGE_BYTES,
            bytes: pages * PAGE_BYTES,
        };
        session.request(&request).expect("the device has it");
    }
    session.finish();
}

/// The completion of every request.
fn ends<S: Ftl<Page = Lpn>, C: Clock>(config: &RunConfig, requests: &[Pages]) -> Vec<u64> {
    let mut session = Session::<S, C>::new(config).expect("a valid configuration");
    session.record_requests();
    play(&mut session, requests);
    session.check_laws().expect("laws hold");
    let rows = session.request_rows().expect("they are recorded");
    rows.iter().map(|row| row.end_ns).collect()
}

/// Four dies, each on its channel; a read takes 72,975 ns, a PCM read 115, a PCM write 90,000. Pages 0 and 1 are in the
/// QMT, newer than PCM, when a read of three pages drives them out; another read comes 10 us after it.
fn hat_reads(options: &[(&str, &str)]) -> [u64; 2] {
    let mut all = vec![("qmt_entries", "2")];
    all.extend(options);
    let config = config(4, 20, 64, 8, &all);
    let requests = [
        (0, Op::Write, 0, 2),
        (1_000_000, Op::Read, 2, 3),
        (1_010_000, Op::Read, 5, 1),
    ];
    let closed = ends::<Hat, Closed>(&config, &requests);
    assert_eq!(closed, ends::<Hat, Events>(&config, &requests));
    assert_eq!(closed[0], 252_975);
    [closed[1] - 1_000_000, closed[2] - 1_010_000]
}

/// The entries of pages 2, 3, 4 are read by 115, 230, 345; the last page ends at 345 + 72,975. Then PCM writes the two
/// old entries, until 180,345, and reads that of page 5 by 180,460.
#[test]
fn a_read_of_several_pages_writes_what_it_evicts_behind_its_last_smt_read() {
    assert_eq!(hat_reads(&[]), [73_320, 180_460 + 72_975 - 10_000]);
}

/// The first old entry is being written when the read of page 5 comes, until 90,345; the second gives way.
#[test]
fn a_pcm_read_goes_before_writes_that_have_not_begun() {
    let ends = hat_reads(&[("pcm_read_first", "true")]);
    assert_eq!(ends, [73_320, 90_345 + 115 + 72_975 - 10_000]);
}

/// Even pages in one chip, odd ones in the other: two entries are read at once, the third by 230. Chip 1 writes its old
/// entry from 115 to 90,115 and then reads that of page 5.
#[test]
fn pcm_chips_work_side_by_side() {
    for read_first in ["false", "true"] {
        let ends = hat_reads(&[("pcm_chips", "2"), ("pcm_read_first", read_first)]);
        assert_eq!(ends, [230 + 72_975, 90_115 + 115 + 72_975 - 10_000]);
    }
}

/// Three chips: page 5 lies in chip 2 with page 2, whose read has long ended; pages 0 and 1 are written in the others.
#[test]
fn a_pcm_chip_of_its_own_waits_for_nobody() {
    let ends = hat_reads(&[("pcm_chips", "3")]);
    assert_eq!(ends, [115 + 72_975, 115 + 72_975]);
}

/// A device of two dies on one channel with four entries in a translation page; after 1 us the timer is due.
fn dftl(queue_depth: u32) -> RunConfig {
    let options = [
        ("integrity", "TIMEOUT"),
        ("flush_ns", "1000"),
        ("tp_entries", "4"),
        ("cmt_entries", "8"),
    ];
    let mut config = config(2, 80, 4, 4, &options);
    config.device.channels = 1;
    config.host.queue_depth = queue_depth;
    config
}

/// Page 4 lies on die 0, its entry on die 1: load until 72,975, program until 325,950. The timer is due at 1,000: the
/// old translation page is read as soon as die 1 is free, data behind the program's, until 198,925, and programmed until
/// 451,900. The read of page 5 was issued at 325,950 and finds die 1 busy until then: load and page take 72,975 each.
#[test]
fn a_flush_of_the_timer_does_not_wait_for_a_place_in_the_queue() {
    let requests = [(0, Op::Write, 4, 1), (2_000, Op::Read, 5, 1)];
    let ends = ends::<Dftl, Events>(&dftl(1), &requests);
    assert_eq!(ends, [325_950, 451_900 + 2 * 72_975]);
}

/// What the scheme does not see counts for the time of a flush all the same: it stands at 900,000, where the request
/// before was issued. Its read ends at 972,975, its program at 1,225,950; load and page follow.
#[test]
fn a_flush_of_the_timer_stands_behind_a_request_that_the_scheme_does_not_see() {
    for (unseen, pages) in [(Op::Flush, 0), (Op::Trim, 0)] {
        let requests = [
            (0, Op::Write, 4, 1),
            (900_000, unseen, 0, pages),
            (1_000_000, Op::Read, 5, 1),
        ];
        let ends = ends::<Dftl, Events>(&dftl(0), &requests);
        assert_eq!(ends, [325_950, 900_000, 1_225_950 + 2 * 72_975]);
    }
}

/// Nor has a request arrived that the scheme does not see: the timer waits for the next one.
#[test]
fn a_request_that_the_scheme_does_not_see_starts_no_flush() {
    let requests = [(0, Op::Write, 4, 1), (900_000, Op::Flush, 0, 0)];
    let mut session = Session::<Dftl, Events>::new(&dftl(0)).expect("a valid configuration");
    play(&mut session, &requests);
    assert_eq!(session.flash.ledger.counters.programs.map, 0);
}
