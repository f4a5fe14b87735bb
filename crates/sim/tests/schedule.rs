//! Schedules under whole schemes: what they may change, and what not.

mod common;

use common::config;
use floatgate_catalog as _;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Striped};
use floatgate_schemes::{dftl::Dftl, fast::Fast, hat::Hat, last::Last, page::Page};
use floatgate_sim::clock::{Clock, Closed, Events, Policy, Schedule, Scheduled, Suspend};
use floatgate_sim::config::RunConfig;
use floatgate_sim::host::Kind;
use floatgate_sim::requests::RequestRow;
use floatgate_sim::session::Session;

/// Random requests with pauses of up to `gap_ns`; only reads and writes of what is never collected if `is_light`.
fn played<S: Ftl<Page = Lpn>, C: Clock>(
    config: &RunConfig,
    (gap_ns, fixed_ns): (u64, u64),
    is_light: bool,
) -> (Session<S, C>, Vec<RequestRow>) {
    let mut session = Session::<S, C>::new(config).expect("a valid configuration");
    session.record_requests();
    let (mut rng, mut now_ns) = (SplitMix64::new(7), 0);
    let pages = u64::from(session.geometry().logical_pages);
    for number in 0..if is_light { 300 } else { 3000 } {
        now_ns += fixed_ns + rng.below(gap_ns);
        let kind = match rng.below(10) {
            0..4 if is_light => Kind::Write,
            0..5 if !is_light => Kind::Write,
            5 if !is_light && number % 3 == 0 => Kind::Trim,
            _ => Kind::Read,
        };
        let count = 1 + rng.below(4);
        let first = Lpn(rng.below(pages - count) as u32);
        session.page_request(kind, first, count as u32, now_ns);
    }
    session.finish();
    session.check_laws().expect("laws hold");
    let rows = session.request_rows().map(std::mem::take);
    (session, rows.unwrap_or_default())
}

fn schedules() -> Vec<Schedule> {
    let policies = ["ready", "read-first", "host-first"]
        .map(|name| Policy::from_name(name).expect("a policy"));
    let plain = policies.map(|policy| Schedule {
        policy,
        ..Schedule::default()
    });
    let reads_first = plain[1..].iter();
    let suspending = reads_first.map(|&schedule| Schedule {
        suspend: Suspend::Both,
        ..schedule
    });
    plain.iter().copied().chain(suspending).collect()
}

fn with(config: &RunConfig, channels: u32, schedule: Schedule) -> RunConfig {
    let mut config = config.clone();
    config.device.channels = channels;
    config.device.schedule = schedule;
    config
}

/// One request at a time, each after all work before is over, and nothing to collect: there is nothing to choose from.
#[test]
fn on_an_idle_device_all_clocks_and_schedules_agree_to_the_nanosecond() {
    let config = config(4, 64, 16, 40, &[]);
    for channels in [1, 2, 4] {
        let pauses = (1_000, 20_000_000);
        let plain = with(&config, channels, Schedule::default());
        let (_, wanted) = played::<Page, Events>(&plain, pauses, true);
        assert!(wanted.iter().all(|row| row.work.gc_ns == 0));
        if channels == 4 {
            assert_eq!(played::<Page, Closed>(&plain, pauses, true).1, wanted);
        }
        assert_eq!(played::<Page, Scheduled>(&plain, pauses, true).1, wanted);
        for schedule in schedules() {
            let by = with(&config, channels, schedule);
            let got = played::<Page, Scheduled>(&by, pauses, true).1;
            assert_eq!(got, wanted, "{channels} channels, {schedule:?}");
        }
    }
}

/// A schedule moves work about and neither adds nor drops any; in the order of issue it is the event engine.
fn moves_work_only<S: Ftl<Page = Lpn>>(options: &[(&str, &str)]) {
    let config = config(4, 64, 16, 40, options);
    for channels in [1, 2] {
        let plain = with(&config, channels, Schedule::default());
        let pauses = (600_000, 0);
        let (events, rows) = played::<S, Events>(&plain, pauses, false);
        let (fifo, fifo_rows) = played::<S, Scheduled>(&plain, pauses, false);
        let times = |rows: &[RequestRow]| -> Vec<_> {
            rows.iter().map(|row| (row.start_ns, row.end_ns)).collect()
        };
        assert_eq!(times(&fifo_rows), times(&rows), "{}", S::KEY);
        assert_eq!(
            fifo.flash.clock.last_end_ns(),
            events.flash.clock.last_end_ns()
        );
        for schedule in schedules() {
            let by = with(&config, channels, schedule);
            let (session, rows) = played::<S, Scheduled>(&by, pauses, false);
            let case = format!("{}, {channels} channels, {schedule:?}", S::KEY);
            assert_eq!(rows.len(), fifo_rows.len(), "{case}");
            let (ours, theirs) = (
                &session.flash.ledger.counters,
                &events.flash.ledger.counters,
            );
            assert_eq!(ours.erases, theirs.erases, "{case}");
            assert_eq!(ours.programs, theirs.programs, "{case}");
            assert_eq!(ours.reads, theirs.reads, "{case}");
            let stats = session.flash.clock.schedule_stats().expect("it has one");
            let suspended = stats.suspended_erases + stats.suspended_programs;
            let may_suspend = schedule.suspend != Suspend::None;
            assert_eq!(suspended > 0, may_suspend, "{case}: {stats:?}");
            // Where nothing waits for another die, what is ready first is what was issued first.
            let overtakes = stats.overtaken > 0 || schedule.policy == Policy::Ready;
            assert!(overtakes, "{case}: {stats:?}");
        }
    }
}

#[test]
fn counters_do_not_depend_on_the_schedule() {
    moves_work_only::<Page>(&[]);
    moves_work_only::<Dftl>(&[("cmt_entries", "64")]);
    moves_work_only::<Striped<Fast>>(&[("log_blocks", "8")]);
    moves_work_only::<Striped<Last>>(&[("log_blocks", "64")]);
    moves_work_only::<Hat>(&[]);
}

/// A mixed load on few dies: reads get faster with every step, and the work is the same.
#[test]
fn reads_get_faster_with_every_step() {
    let config = config(4, 64, 16, 40, &[]);
    let p99 = |schedule| {
        let by = with(&config, 1, schedule);
        let (_, rows) = played::<Page, Scheduled>(&by, (900_000, 0), false);
        let reads = rows.iter().filter(|row| row.kind == Kind::Read);
        let mut times: Vec<u64> = reads.map(|row| row.end_ns - row.arrival_ns).collect();
        times.sort_unstable();
        times[times.len() * 99 / 100]
    };
    let by = |policy, suspend| {
        p99(Schedule {
            policy,
            suspend,
            ..Schedule::default()
        })
    };
    let fifo = by(Policy::Fifo, Suspend::None);
    let first = by(Policy::ReadFirst, Suspend::None);
    let suspending = by(Policy::ReadFirst, Suspend::Both);
    assert!(fifo > 3 * first, "{fifo} {first}");
    assert!(first > suspending * 5 / 4, "{first} {suspending}");
}
