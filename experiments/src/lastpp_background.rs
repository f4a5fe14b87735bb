//! LAST++ Fig. 28: foreground merges only, aggressive and conservative background merges.

use floatgate_core::Start;
use floatgate_sim::config::{Arrivals, Host};
use floatgate_trace::Request;

use crate::lab::{Figure, Job, Lab, config, copies, erases, over};
use crate::lastpp::{DIES, device_for, host};
use crate::table::{Table, number, signed};
use crate::workload::Workload;

/// Name, option, the paper's time and erases relative to FG, %.
const POLICIES: [(&str, &str, f64, f64); 3] = [
    ("FG", "off", 0.0, 0.0),
    ("BG(AGGR)", "aggressive", -15.0, 21.0),
    ("BG(CONS)", "conservative", -12.0, 3.2),
];

/// Share of the trace's time that the device may be busy, without background work.
const BUSY_SHARE: f64 = 0.25;

/// Runs the experiment.
pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    let names = match &lab.trace {
        Some(trace) => vec![trace.as_str()],
        None => vec!["oltp-postgres", "desktop"],
    };
    names
        .into_iter()
        .map(|name| one(lab, &Workload::open(name)?))
        .collect()
}

fn one(lab: &Lab, workload: &Workload) -> Result<Table, String> {
    let closed = host();
    let (device, log_blocks) = device_for(workload, &closed, 6);
    let config_of = |host: &Host, background: &str| {
        let options = [
            ("log_blocks", log_blocks.to_string()),
            ("background", background.to_string()),
        ];
        config(&device, host, Start::Full, "last++", &options)
    };
    // How long the device needs without a pause tells whether the trace leaves it any idle time.
    let probe = Job {
        label: "probe".into(),
        config: config_of(&closed, "off"),
        requests: &workload.requests,
    };
    let busy_s = lab.run(&[probe])?[0].time.elapsed_s;
    let span_s = workload
        .requests
        .iter()
        .map(|r| r.arrival_ns)
        .max()
        .unwrap_or(0) as f64
        / 1e9;
    let stretch = (busy_s / BUSY_SHARE / span_s).ceil().max(1.0);
    let host = Host {
        arrivals: Arrivals::Open,
        speed: 1.0 / stretch,
        ..closed
    };
    let jobs: Vec<Job<'_>> = POLICIES
        .iter()
        .map(|(name, background, ..)| Job {
            label: (*name).into(),
            config: config_of(&host, background),
            requests: &workload.requests,
        })
        .collect();
    let records = lab.run(&jobs)?;
    let mut table = Table::new(
        format!("Background merges on {} (LAST++ Fig. 28)", workload.name),
        &[
            "policy",
            "us a written page",
            "to FG %",
            "paper's %",
            "erases",
            "to FG %",
            "paper's %",
            "background merges",
            "copies",
            "write p99 us",
            "write max ms",
        ],
    );
    for ((name, _, time_paper, erases_paper), record) in POLICIES.iter().zip(&records) {
        let of = |figure: Figure| (figure(record), over(figure(record), figure(&records[0])));
        let (time, time_to) = of(|record| record.time.elapsed_per_written_page_us);
        let (erases, erases_to) = of(erases);
        let write = &record.time.response.write;
        let merges = record.counters.extra.get("background_merges");
        table.row(vec![
            (*name).into(),
            number(time, 0),
            signed(time_to, 1),
            signed(*time_paper, 1),
            number(erases, 0),
            signed(erases_to, 1),
            signed(*erases_paper, 1),
            merges.copied().unwrap_or(0).into(),
            number(copies(record), 0),
            number(write.p99_us, 0),
            number(write.max_us.map(|us| us / 1000.0), 0),
        ]);
    }
    let (gaps, idle_s) = idle_gaps(&workload.requests, stretch);
    table.remark(format!(
        "{} requests; {DIES} dies of {} blocks of 512 KB, {log_blocks} log blocks, start full; arrivals of the trace, one request at a time; a merge starts after 100 ms without a request",
        workload.requests.len(),
        device.blocks
    ));
    table.remark(format!(
        "without pauses the device needs {busy_s:.0} s, the trace took {span_s:.0} s to record: its gaps are stretched {stretch} times; \
         then {gaps} gaps between arrivals are longer than 100 ms, together {idle_s:.0} s"
    ));
    table
        .remark("responses contain the wait for the request before, since one is issued at a time");
    Ok(table)
}

/// Gaps above 100 ms after stretching, and the seconds that they have together.
fn idle_gaps(requests: &[Request], stretch: f64) -> (u64, f64) {
    let gaps = requests
        .windows(2)
        .map(|pair| pair[1].arrival_ns.saturating_sub(pair[0].arrival_ns));
    let seconds = gaps.map(|gap_ns| gap_ns as f64 * stretch / 1e9);
    let long: Vec<f64> = seconds.filter(|&gap_s| gap_s > 0.1).collect();
    (long.len() as u64, long.iter().sum())
}
