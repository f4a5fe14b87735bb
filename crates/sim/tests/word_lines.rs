//! Pages that are programmed together with the others of their word line, or in times of their own (docs/chips.md).

mod common;

use common::config;
use floatgate_core::flash::{Flash, Oob};
use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Ftl, Lpn, Ppn, Start, Striped};
use floatgate_schemes::{fast::Fast, page::Page};
use floatgate_sim::clock::{Clock, Closed, Events, Policy, Schedule, Scheduled};
use floatgate_sim::config::{Copyback, RunConfig};
use floatgate_sim::flash::SimFlash;
use floatgate_sim::host::Kind;
use floatgate_sim::part::PageTimes;
use floatgate_sim::session::Session;

/// Part `ssdsim`: cycles 175, transfer 52 800, tR 20 000, tPROG 200 000, tBERS 1 500 000.
const READ_NS: u64 = 72_975;
const LOAD_NS: u64 = 52_975;
const T_PROG_NS: u64 = 200_000;

fn one_shot(dies: u32, blocks: u32, pages: u32, logical_blocks: u32) -> RunConfig {
    let mut config = config(dies, blocks, pages, logical_blocks, &[]);
    config.device.part.one_shot = 3;
    config
}

/// Completion of single pages that are read (`true`) or written at those times.
fn completions<C: Clock>(config: &RunConfig, requests: &[(u64, bool, u32)]) -> Vec<u64> {
    let mut session = Session::<Page, C>::new(config).unwrap();
    session.record_requests();
    for &(at_ns, is_read, page) in requests {
        let kind = if is_read { Kind::Read } else { Kind::Write };
        session.page_request(kind, Lpn(page), 1, at_ns);
    }
    session.finish();
    session.check_laws().unwrap();
    let rows = session.request_rows().map(std::mem::take).unwrap();
    rows.iter().map(|row| row.end_ns).collect()
}

/// The table of docs/chips.md.
#[test]
fn a_word_line_is_programmed_with_its_last_page() {
    let mut config = one_shot(1, 20, 6, 8);
    config.start = Start::Empty;
    let requests = [
        (0, false, 0),
        (60_000, true, 0),
        (120_000, false, 1),
        (180_000, false, 2),
        (200_000, true, 1),
        (600_000, true, 0),
        (700_000, false, 3),
    ];
    let ends = [52_975, 112_975, 172_975, 432_975, 505_950, 672_975, 752_975];
    assert_eq!(completions::<Closed>(&config, &requests), ends);
    assert_eq!(completions::<Events>(&config, &requests), ends);
    assert_eq!(completions::<Scheduled>(&config, &requests), ends);
    // Where reads go first they do not find cells that are not programmed: the controller still has the page.
    config.device.schedule = Schedule {
        policy: Policy::ReadFirst,
        ..Schedule::default()
    };
    let mut by_controller = ends;
    by_controller[4] = 200_000;
    assert_eq!(completions::<Scheduled>(&config, &requests), by_controller);
}

/// Pages 0, 100 and 300 us in turn.
#[test]
fn programs_by_page() {
    let mut config = config(1, 20, 6, 8, &[]);
    config.start = Start::Empty;
    config.device.part.t_prog_by_page_ns = PageTimes::new(&[0, 100_000, 300_000]).unwrap();
    let writes: Vec<_> = (0..7).map(|page| (u64::from(page), false, page)).collect();
    let mut end_ns = 0;
    let ends: Vec<u64> = (0..7)
        .map(|page| {
            end_ns += LOAD_NS + [0, 100_000, 300_000][page % 3];
            end_ns
        })
        .collect();
    assert_eq!(completions::<Closed>(&config, &writes), ends);
    assert_eq!(completions::<Events>(&config, &writes), ends);
    assert_eq!(completions::<Scheduled>(&config, &writes), ends);
}

/// Who skips to a later word line has the one before programmed as it is, with the last page of the later one in one go.
#[test]
fn a_word_line_that_is_left_is_programmed() {
    let config = one_shot(1, 20, 9, 8);
    let geometry = config.device.geometry().unwrap();
    let mut flash = SimFlash::<Closed>::new(&geometry, &config.device.machine(), Copyback::Off);
    let mut ends = Vec::new();
    for page in [0, 3, 7, 8] {
        let nothing = Default::default();
        let Ok(end) = flash.program_map(Ppn(page), Oob::default(), |_| (), nothing);
        ends.push(end.0);
    }
    let lines = [0, 1, 1, 1];
    let mut end_ns = 0;
    for (end, lines) in ends.into_iter().zip(lines) {
        end_ns += LOAD_NS + lines * T_PROG_NS;
        assert_eq!(end, end_ns);
    }
}

/// What the dies were busy with, and the programs of word lines in it.
fn busy<S: Ftl<Page = Lpn>, C: Clock>(config: &RunConfig) -> (Vec<u64>, u64) {
    let mut session = Session::<S, C>::new(config).unwrap();
    let (mut rng, mut now_ns) = (SplitMix64::new(3), 0);
    let pages = u64::from(session.geometry().logical_pages);
    for _ in 0..4000 {
        now_ns += rng.below(400_000);
        let kind = match rng.below(4) {
            0 => Kind::Read,
            _ => Kind::Write,
        };
        let count = 1 + rng.below(5);
        let first = Lpn(rng.below(pages - count) as u32);
        session.page_request(kind, first, count as u32, now_ns);
    }
    session.finish();
    session.check_laws().unwrap();
    let (counters, fine) = (&session.flash.ledger.counters, &session.flash.fine);
    let sum = |ns: &[u64; 3]| ns.iter().copied().fold(0, u64::wrapping_add);
    let (programs, reads) = (counters.programs.sum(), counters.reads.sum());
    let not_programmed_ns = sum(&fine.programming_ns).wrapping_neg();
    let lines = programs - not_programmed_ns / T_PROG_NS;
    let counted_ns = (reads * READ_NS + programs * LOAD_NS + lines * T_PROG_NS)
        .wrapping_add(counters.erases.sum() * 1_500_125)
        .wrapping_add(sum(&fine.sensing_ns));
    let busy_ns = session.flash.clock.die_busy_ns();
    assert_eq!(busy_ns.iter().sum::<u64>(), counted_ns);
    (busy_ns, programs * 100 / lines)
}

/// Host, map and collection alike: of a scheme that fills its blocks in order a third of the programs take cell time, and all
/// clocks agree about how much.
#[test]
fn whole_schemes_program_word_lines() {
    let mut config = one_shot(2, 44, 12, 30);
    let mut with_log = config.clone();
    let log_blocks = ("log_blocks".into(), Value::Int(16));
    with_log.options.push(log_blocks);
    for channels in [1, 2] {
        config.device.channels = channels;
        with_log.device.channels = channels;
        let (by_events, share) = busy::<Page, Events>(&config);
        assert!((295..=305).contains(&share), "{share}");
        assert_eq!(busy::<Page, Scheduled>(&config).0, by_events);
        let hybrid = busy::<Striped<Fast>, Events>(&with_log);
        assert_eq!(busy::<Striped<Fast>, Scheduled>(&with_log), hybrid);
        if channels == 2 {
            assert_eq!(busy::<Page, Closed>(&config).0, by_events);
            assert_eq!(busy::<Striped<Fast>, Closed>(&with_log), hybrid);
        }
    }
}

#[test]
fn what_cannot_be_programmed_at_once_is_refused() {
    let refusal = |change: fn(&mut RunConfig)| {
        let mut config = one_shot(1, 20, 6, 8);
        change(&mut config);
        let refusal = config.device.geometry().expect_err("refused");
        assert_eq!(refusal.key.as_deref(), Some("one_shot"));
        refusal.message
    };
    let text = refusal(|config| config.device.part.one_shot = 4);
    assert!(text.contains("multiple of 4"), "{text}");
    let text = refusal(|config| config.device.program_order = floatgate_core::ProgramOrder::Any);
    assert!(text.contains("program_order"), "{text}");
    let times = PageTimes::new(&[1, 2]).unwrap();
    let mut config = one_shot(1, 20, 6, 8);
    config.device.part.t_prog_by_page_ns = times;
    let text = config.device.geometry().expect_err("refused").message;
    assert!(text.contains("t_prog_by_page"), "{text}");
}
