//! LAST++ Fig. 28: foreground merges only, aggressive and conservative background merges.

use floatgate_core::Start;
use floatgate_sim::config::{Arrivals, Host};

use crate::lab::{Job, Lab, at, config, count, one_at_a_time, over};
use crate::lastpp::{DIES, device_for};
use crate::table::{Table, number, signed};

/// Name, option, the paper's time and erases relative to FG, %.
const POLICIES: [(&str, &str, f64, f64); 3] = [
    ("FG", "off", 0.0, 0.0),
    ("BG(AGGR)", "aggressive", -15.0, 21.0),
    ("BG(CONS)", "conservative", -12.0, 3.2),
];

/// Runs the experiment.
pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    let workload = lab.recorded()?;
    let host = Host { arrivals: Arrivals::Open, queue_depth: 1, ..one_at_a_time() };
    let (device, log_blocks) = device_for(&workload, &host);
    let jobs: Vec<Job<'_>> = POLICIES
        .iter()
        .map(|(name, background, ..)| {
            let options = [("log_blocks", log_blocks.to_string()), ("background", (*background).to_string())];
            Job {
                label: (*name).into(),
                config: config(&device, &host, Start::Full, "last++", &options),
                requests: &workload.requests,
            }
        })
        .collect();
    let records = lab.run(&jobs)?;
    let mut table = Table::new(
        "Background merges (LAST++ Fig. 28)",
        &[
            "policy", "us a written page", "to FG %", "paper's %", "erases", "to FG %", "paper's %", "background merges",
            "copies", "write p99 us", "write max ms",
        ],
    );
    for ((name, _, time_paper, erases_paper), record) in POLICIES.iter().zip(&records) {
        let of = |path: &str| (at(record, path), over(at(record, path), at(&records[0], path)));
        let (time, time_to) = of("time.elapsed_per_written_page_us");
        let (erases, erases_to) = of("derived.erases");
        table.row(vec![
            (*name).into(),
            number(time, 0),
            signed(time_to, 1),
            signed(*time_paper, 1),
            number(erases, 0),
            signed(erases_to, 1),
            signed(*erases_paper, 1),
            count(record, "counters.extra.background_merges").into(),
            number(at(record, "derived.copies"), 0),
            number(at(record, "time.response.write.p99_us"), 0),
            number(at(record, "time.response.write.max_us").map(|us| us / 1000.0), 0),
        ]);
    }
    let idle = idle_gaps(&workload.requests);
    table.remark(format!(
        "trace {}; {DIES} dies of {} blocks of 512 KB, {log_blocks} log blocks, start full; arrivals of the trace, one request at a time; a merge starts after 100 ms without a request",
        workload.name, device.blocks
    ));
    table.remark(format!(
        "{} of its {} gaps between arrivals are longer than that, together {:.1} s; the paper's traces have hours of idle time (desktops) or next to none (benchmarks: little effect)",
        idle.0,
        workload.requests.len().saturating_sub(1),
        idle.1
    ));
    table.remark("responses contain the wait for the request before, since one is issued at a time");
    Ok(vec![table])
}

/// Gaps above 100 ms, and the seconds that they have together.
fn idle_gaps(requests: &[floatgate_trace::Request]) -> (u64, f64) {
    let gaps = requests.windows(2).map(|pair| pair[1].arrival_ns.saturating_sub(pair[0].arrival_ns));
    let long: Vec<u64> = gaps.filter(|&gap_ns| gap_ns > 100_000_000).collect();
    (long.len() as u64, long.iter().sum::<u64>() as f64 / 1e9)
}
