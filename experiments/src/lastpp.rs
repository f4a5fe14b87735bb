//! LAST++ Figs. 15 to 17, 19 to 21 and Table V on one recorded trace.

use floatgate_core::Start;
use floatgate_sim::clock::Mode;
use floatgate_sim::config::{Device, Host};
use floatgate_sim::record::Record;

use crate::lab::{Figure, Job, Lab, config, copies, device, erases, extra, one_at_a_time, over};
use crate::table::{Cell, Table, number, signed};
use crate::workload::Workload;

/// Dies, each on a channel of its own.
pub const DIES: u32 = 8;
const SCHEMES: [&str; 4] = ["bast", "fast", "superblock", "last++"];
/// What the paper says of BAST, FAST, SUPERBLOCK, LAST++ over all its traces.
const PAPER: [Paper; 4] = [
    Paper {
        io: Some(299.0),
        time: Some(255.0),
        erases: Some(282.0),
        association: Some(1.0),
        utilisation: Some(14.0),
        dead: None,
    },
    Paper {
        io: Some(39.0),
        time: Some(41.0),
        erases: Some(40.0),
        association: Some(1.5),
        utilisation: Some(73.0),
        dead: None,
    },
    Paper {
        io: Some(70.0),
        time: Some(73.0),
        erases: Some(51.0),
        association: Some(2.1),
        utilisation: None,
        dead: None,
    },
    Paper {
        io: Some(0.0),
        time: Some(0.0),
        erases: Some(0.0),
        association: Some(0.76),
        utilisation: Some(86.0),
        dead: Some(70.0),
    },
];

/// Percent, but the association.
struct Paper {
    io: Option<f64>,
    time: Option<f64>,
    erases: Option<f64>,
    association: Option<f64>,
    utilisation: Option<f64>,
    dead: Option<f64>,
}

/// What the log may hold of what the trace writes: one page in this many. The paper's desktops have 512 MB for
/// 6.1 GB (1 in 12), Financial1 2 GB for 12.5 GB (1 in 6).
const LOG_SHARES: [u64; 3] = [12, 6, 3];
/// Longest requests, in pages, that LAST++ takes for random (its Fig. 25 has 1 to 64).
const THRESHOLDS: [u32; 5] = [1, 4, 16, 64, 1 << 20];

/// The host: one request at a time, regions of one stripe.
pub fn host() -> Host {
    one_at_a_time(DIES * 128)
}

/// A device that the trace fills, with LAST++'s part and this log: its blocks, the log blocks.
pub fn device_for(workload: &Workload, host: &Host, log_share: u64) -> (Device, u32) {
    let mut made = device("mt29f16g08", DIES, 1, 0, Mode::Flat);
    let block_bytes = u64::from(made.part.page_bytes) * u64::from(made.part.pages_per_block);
    let log = (workload.written_bytes() / log_share / block_bytes).clamp(64, 1 << 20) as u32;
    let log_blocks = log.next_multiple_of(DIES);
    let pages = workload.touched_pages(host, made.part.page_bytes);
    let stripe = u64::from(DIES) * u64::from(made.part.pages_per_block);
    let data_blocks = pages.div_ceil(stripe).max(1) as u32;
    made.logical_pages = u64::from(data_blocks) * stripe;
    // The largest reserve of the four schemes is below 8 blocks a die.
    made.blocks = data_blocks + log_blocks / DIES + 8;
    (made, log_blocks)
}

/// The schemes on one trace with one log.
struct Case<'a> {
    workload: &'a Workload,
    log_blocks: u32,
    records: &'a [Record],
}

/// Runs the experiment.
pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    let workloads = match &lab.trace {
        Some(trace) => vec![Workload::open(trace)?],
        None => vec![Workload::open("oltp-postgres")?, Workload::open("desktop")?],
    };
    let host = host();
    let mut jobs = Vec::new();
    let mut logs = Vec::new();
    for workload in &workloads {
        for share in LOG_SHARES {
            let (device, log_blocks) = device_for(workload, &host, share);
            logs.push((workload, log_blocks));
            for scheme in SCHEMES {
                let options = [("log_blocks", log_blocks.to_string())];
                let config = config(&device, &host, Start::Full, scheme, &options);
                jobs.push(Job {
                    label: scheme.into(),
                    config,
                    requests: &workload.requests,
                });
            }
        }
    }
    let cases = jobs.len();
    for workload in &workloads {
        let (device, log_blocks) = device_for(workload, &host, LOG_SHARES[1]);
        for threshold in THRESHOLDS {
            let options = [
                ("log_blocks", log_blocks.to_string()),
                ("sequential_threshold", threshold.to_string()),
            ];
            let config = config(&device, &host, Start::Full, "last++", &options);
            jobs.push(Job {
                label: format!("threshold {threshold}"),
                config,
                requests: &workload.requests,
            });
        }
    }
    let records = lab.run(&jobs)?;
    let (records, thresholds) = records.split_at(cases);
    let cases: Vec<Case<'_>> = logs
        .iter()
        .zip(records.chunks(SCHEMES.len()))
        .map(|(&(workload, log_blocks), records)| Case {
            workload,
            log_blocks,
            records,
        })
        .collect();
    Ok(vec![
        costs(&cases),
        logs_table(&cases),
        channels(&cases),
        threshold_table(&workloads, thresholds),
    ])
}

fn names(case: &Case<'_>, scheme: &str) -> Vec<Cell> {
    vec![
        case.workload.name.as_str().into(),
        u64::from(case.log_blocks).into(),
        scheme.into(),
    ]
}

fn operations(record: &Record) -> Option<f64> {
    Some(record.derived.io_operations as f64)
}

fn costs(cases: &[Case<'_>]) -> Table {
    let mut table = Table::new(
        "Operations, time, erases over LAST++ (LAST++ Figs. 15, 16, 21; over the log blocks Fig. 22)",
        &[
            "trace",
            "log blocks",
            "scheme",
            "operations",
            "over LAST++ %",
            "paper's %",
            "us a written page",
            "over LAST++ %",
            "paper's %",
            "erases",
            "over LAST++ %",
            "paper's %",
        ],
    );
    for case in cases {
        let last = &case.records[SCHEMES.len() - 1];
        for ((scheme, paper), record) in SCHEMES.iter().zip(&PAPER).zip(case.records) {
            let mut row = names(case, scheme);
            let metrics: [(Figure, Option<f64>); 3] = [
                (operations, paper.io),
                (|record| record.time.elapsed_per_written_page_us, paper.time),
                (erases, paper.erases),
            ];
            for (of, paper) in metrics {
                row.push(number(of(record), 0));
                row.push(signed(over(of(record), of(last)), 0));
                row.push(signed(paper, 0));
            }
            table.row(row);
        }
    }
    table.remark(format!(
        "{DIES} dies, each on its channel, blocks of 512 KB, 50/900/3500 us, as many data blocks as the trace touches, start full, one request at a time; \
         the log takes one page in 12, 6, 3 of what the trace writes"
    ));
    table.remark("the paper's numbers are means over its ten traces on 256 GB; each of ours is one trace of two minutes");
    table
}

fn logs_table(cases: &[Case<'_>]) -> Table {
    let mut table = Table::new(
        "Merges and log blocks (LAST++ Figs. 19, 20, Table V)",
        &[
            "trace",
            "log blocks",
            "scheme",
            "switch",
            "partial",
            "full",
            "dead",
            "association",
            "with dead",
            "paper's (geometric mean)",
            "dead %",
            "paper's dead %",
            "log utilisation %",
            "paper's %",
        ],
    );
    for case in cases {
        for ((scheme, paper), record) in SCHEMES.iter().zip(&PAPER).zip(case.records) {
            let (merges, derived) = (&record.counters.merges, &record.derived);
            let (full, dead) = (merges.full, merges.dead);
            let dead_share = (full + dead > 0).then(|| dead as f64 / (full + dead) as f64 * 100.0);
            let mut row = names(case, scheme);
            row.extend([merges.switch, merges.partial, full, dead].map(Cell::from));
            row.push(number(derived.association, 2));
            row.push(number(derived.association_with_dead, 2));
            row.push(number(paper.association, 2));
            row.push(number(dead_share, 0));
            row.push(number(paper.dead, 0));
            row.push(number(
                derived.log_block_utilisation.map(|share| share * 100.0),
                0,
            ));
            row.push(number(paper.utilisation, 0));
            table.row(row);
        }
    }
    table.remark("desktop: what LAST++ copies it copies in full merges of a single logical block, some 120 pages each; likely large writes that begin inside a segment, whose sequential log blocks \
         can be neither switched nor completed. With the whole log left to random writes (last table) it copies twice as much");
    table.remark("dead %: of the victims merged fully or dead, those without a valid page; LAST++'s counts have its sequential log blocks with gaps in them as well, the paper's 70 % is of random log blocks");
    table
}

fn channels(cases: &[Case<'_>]) -> Table {
    let mut table = Table::new(
        "Use of the channels (LAST++ Fig. 17)",
        &[
            "trace",
            "log blocks",
            "scheme",
            "least share to channel 0 %",
            "largest %",
            "least busy %",
            "busiest %",
            "mean busy %",
        ],
    );
    for case in cases {
        for (scheme, record) in SCHEMES.iter().zip(case.records) {
            let known =
                |values: &[Option<f64>]| -> Vec<f64> { values.iter().copied().flatten().collect() };
            let shares = known(&record.time.channel_share_difference_percent);
            // Without a bus model the dies are what is busy; each has a channel of its own.
            let busy = known(&record.time.die_utilisation);
            let least = |values: &[f64]| values.iter().copied().reduce(f64::min);
            let most = |values: &[f64]| values.iter().copied().reduce(f64::max);
            let mean = (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64);
            let percent = |share: Option<f64>| number(share.map(|share| share * 100.0), 1);
            let mut row = names(case, scheme);
            row.extend([signed(least(&shares), 1), signed(most(&shares), 1)]);
            row.extend([percent(least(&busy)), percent(most(&busy)), percent(mean)]);
            table.row(row);
        }
    }
    table.remark("host reads and writes together; the paper's figure gives no numbers, its text says that LAST++ uses the channels nearly evenly and FTL-MM does not for all traces");
    table
}

fn threshold_table(workloads: &[Workload], records: &[Record]) -> Table {
    let mut table = Table::new(
        "LAST++ over the longest random request (LAST++ Fig. 25), log of one page in 6 written",
        &[
            "trace",
            "threshold, pages",
            "copies",
            "of partial merges",
            "of full merges",
            "operations",
            "us a written page",
            "sequential pages",
        ],
    );
    for (workload, records) in workloads.iter().zip(records.chunks(THRESHOLDS.len())) {
        for (threshold, record) in THRESHOLDS.iter().zip(records) {
            let name: Cell = if *threshold > 1 << 16 {
                "none".into()
            } else {
                u64::from(*threshold).into()
            };
            let mut row: Vec<Cell> = vec![workload.name.as_str().into(), name];
            let figures = [
                copies(record),
                Some(record.stats.copies_partial as f64),
                Some(record.stats.copies_full as f64),
                operations(record),
                record.time.elapsed_per_written_page_us,
                extra(record, "seq_pages"),
            ];
            row.extend(figures.map(|figure| number(figure, 0)));
            table.row(row);
        }
    }
    table.remark("the paper's: fewest copies at 16 pages");
    table
}
