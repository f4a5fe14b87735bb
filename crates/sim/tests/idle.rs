//! Page mapping: collection in idle time, and the die that is free first.

mod common;

use common::config;
use floatgate_catalog as _;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn};
use floatgate_schemes::{hat::Hat, page::Page};
use floatgate_sim::clock::{Clock, Closed, Events, Scheduled};
use floatgate_sim::config::RunConfig;
use floatgate_sim::host::Kind;
use floatgate_sim::requests::RequestRow;
use floatgate_sim::session::Session;

/// Bursts of random writes, with pauses of 100 ms in which the device is idle, after a warm-up of the same.
fn bursts<S: Ftl<Page = Lpn>, C: Clock>(config: &RunConfig) -> (Session<S, C>, Vec<RequestRow>) {
    let mut session = Session::<S, C>::new(config).expect("a valid configuration");
    let (mut rng, mut now_ns) = (SplitMix64::new(11), 0);
    let pages = u64::from(session.geometry().logical_pages);
    session.record_requests();
    for number in 0..12_000 {
        now_ns += if number % 16 == 0 {
            100_000_000
        } else {
            400_000
        };
        session.page_request(Kind::Write, Lpn(rng.below(pages) as u32), 1, now_ns);
    }
    session.finish();
    session.check_laws().expect("laws hold");
    let rows = session.request_rows().map(std::mem::take);
    (session, rows.unwrap_or_default())
}

/// Mean and largest response of the last half, us.
fn responses(rows: &[RequestRow]) -> (f64, f64) {
    let late = &rows[rows.len() / 2..];
    let us = late.iter().map(|row| row.response_ns() as f64 / 1000.0);
    let mean = us.clone().sum::<f64>() / late.len() as f64;
    (mean, us.fold(0.0, f64::max))
}

const IDLE: [(&str, &str); 2] = [("gc_idle", "5"), ("gc_idle_valid", "100")];

#[test]
fn work_done_in_idle_time_is_not_waited_for() {
    let off = config(2, 40, 16, 32, &[]);
    let on = config(2, 40, 16, 32, &IDLE);
    let (_, usual) = bursts::<Page, Closed>(&off);
    let (session, ahead) = bursts::<Page, Closed>(&on);
    let ((mean, largest), (mean_ahead, largest_ahead)) = (responses(&usual), responses(&ahead));
    assert!(mean_ahead < 0.6 * mean, "{mean_ahead} of {mean} us");
    assert!(largest_ahead < largest, "{largest_ahead} of {largest} us");
    // A write after a pause waits for one slice at most: four copies and an erase.
    let slice_ns = 4 * (72_975 + 252_975) + 1_500_125;
    let late = ahead.iter().skip(ahead.len() / 2);
    let first = late.filter(|row| row.request % 16 == 0);
    for row in first {
        assert!(row.response_ns() <= 252_975 + slice_ns, "{row:?}");
    }
    session.ftl.audit(&session.flash).expect("tables agree");
}

#[test]
fn what_is_collected_in_idle_time_does_not_depend_on_the_clock() {
    let on = config(2, 40, 16, 32, &IDLE);
    let mut shared = on.clone();
    shared.device.channels = 1;
    let (closed, _) = bursts::<Page, Closed>(&on);
    let (events, _) = bursts::<Page, Events>(&on);
    assert_eq!(events.flash.ledger.counters, closed.flash.ledger.counters);
    for channels in [&on, &shared] {
        let (events, _) = bursts::<Hat, Events>(channels);
        let (scheduled, _) = bursts::<Hat, Scheduled>(channels);
        assert_eq!(
            scheduled.flash.ledger.counters,
            events.flash.ledger.counters
        );
        events.ftl.audit(&events.flash).expect("tables agree");
    }
}

/// Five reads keep die 0 busy, whose turn it is.
#[test]
fn a_page_goes_to_the_die_that_is_free_first() {
    for (placement, end_ns) in [("rr", 5 * 72_975 + 252_975), ("free", 252_975)] {
        let mut session =
            Session::<Page, Closed>::new(&config(2, 40, 16, 32, &[("placement", placement)]))
                .expect("a valid configuration");
        session.record_requests();
        for page in 0..5 {
            session.page_request(Kind::Read, Lpn(2 * page), 1, 0);
        }
        session.page_request(Kind::Write, Lpn(100), 1, 0);
        session.finish();
        let rows = session
            .request_rows()
            .map(std::mem::take)
            .unwrap_or_default();
        assert_eq!(rows[5].response_ns(), end_ns, "{placement}");
    }
}
