//! FASTer Table II: mean and deviation of a page write over the log space.

use floatgate_core::{ProgramOrder, Start};
use floatgate_sim::clock::Mode;
use floatgate_sim::config::{Arrivals, Host};
use floatgate_sim::record::Latency;

use crate::lab::{Job, Lab, config, device, replayed};
use crate::table::{Cell, Table, number};
use crate::workload::Workload;

/// Logical pages; the paper has 4,194,304.
const SPACE: u32 = 262_144;
/// Write requests: the paper's 4 million (section V-C) at a sixteenth of its size.
const WRITES: u32 = 250_000;
const PERCENT: [u32; 6] = [3, 5, 10, 15, 20, 25];
/// Scheme, what it is called, its options, the paper's means and deviations in ms.
const VARIANTS: [Variant; 4] = [
    Variant {
        name: "FAST",
        scheme: "faster",
        options: &[("second_chance", "false"), ("isolation", "false")],
        mean: [3.59, 2.64, 1.71, 1.33, 1.12, 1.00],
        deviation: [27.6, 19.9, 12.2, 9.01, 7.20, 6.19],
    },
    Variant {
        name: "FASTer, no isolation area",
        scheme: "faster",
        options: &[("isolation", "false")],
        mean: [3.11, 2.11, 1.24, 0.92, 0.76, 0.66],
        deviation: [38.9, 30.8, 21.6, 17.3, 14.6, 12.7],
    },
    Variant {
        name: "FASTer, isolation area",
        scheme: "faster",
        options: &[],
        mean: [3.04, 2.08, 1.20, 0.90, 0.75, 0.66],
        deviation: [5.99, 5.00, 3.66, 3.02, 2.64, 2.40],
    },
    Variant {
        name: "page mapping",
        scheme: "page",
        options: &[],
        mean: [3.00, 2.05, 1.20, 0.89, 0.72, 0.61],
        deviation: [5.73, 4.74, 3.44, 2.77, 2.32, 2.01],
    },
];

struct Variant {
    name: &'static str,
    scheme: &'static str,
    options: &'static [(&'static str, &'static str)],
    mean: [f64; 6],
    deviation: [f64; 6],
}

/// What it is called, ours, the paper's.
type Figure = (
    &'static str,
    fn(&Latency) -> Option<f64>,
    fn(&Variant) -> &[f64; 6],
);

/// Runs the experiment.
pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    let (space, writes) = (SPACE.to_string(), WRITES.to_string());
    let params = [
        ("space", space.as_str()),
        ("writes", writes.as_str()),
        // Section V-B: almost 75 % of the data blocks are written.
        ("blocks", "75"),
        ("order", "tiers"),
        ("seed", "1"),
    ];
    let host = Host {
        arrivals: Arrivals::Closed,
        queue_depth: 1,
        ..Host::default()
    };
    let part = floatgate_sim::part::part("slc_large_block").ok_or("no such part")?;
    let workload =
        Workload::generated("tpcc", "tpcc", &params, part.page_bytes)?.page_writes(part.page_bytes);
    let data_blocks = SPACE / part.pages_per_block;
    let mut jobs = Vec::new();
    for variant in &VARIANTS {
        for percent in PERCENT {
            let log_blocks = data_blocks * percent / 100;
            let mut options: Vec<(&str, String)> = variant
                .options
                .iter()
                .map(|(key, word)| (*key, (*word).to_string()))
                .collect();
            if variant.scheme == "faster" {
                options.push(("log_blocks", log_blocks.to_string()));
            }
            // Page mapping has the same blocks: what is log space there is spare space here.
            let mut device = device(
                "slc_large_block",
                1,
                data_blocks,
                log_blocks + 1,
                Mode::Flat,
            );
            device.program_order = ProgramOrder::Any;
            let run = config(&device, &host, Start::Full, variant.scheme, &options);
            let label = format!("{} at {percent} %", variant.name);
            jobs.push(Job {
                label,
                config: replayed(run),
                requests: &workload.requests,
            });
        }
    }
    let records = lab.run(&jobs)?;
    let mut tables = Vec::new();
    let figures: [Figure; 2] = [
        ("Mean", |l| l.mean_us, |variant| &variant.mean),
        (
            "Standard deviation",
            |l| l.deviation_us,
            |variant| &variant.deviation,
        ),
    ];
    for (what, of, paper_of) in figures {
        let title = format!(
            "{what} of the time of a page write, ms, over the log space in % of the data (FASTer Table II)"
        );
        let mut table = Table::new(
            title,
            &[
                "variant", "whose", "3 %", "5 %", "10 %", "15 %", "20 %", "25 %",
            ],
        );
        for (variant, records) in VARIANTS.iter().zip(records.chunks(PERCENT.len())) {
            let mut ours: Vec<Cell> = vec![variant.name.into(), "ours".into()];
            let ms = records
                .iter()
                .map(|record| of(&record.time.response.write).map(|us| us / 1000.0));
            ours.extend(ms.map(|ms| number(ms, 2)));
            table.row(ours);
            let mut theirs: Vec<Cell> = vec!["".into(), "paper's".into()];
            theirs.extend(paper_of(variant).iter().map(|&ms| number(ms, 2)));
            table.row(theirs);
        }
        tables.push(table);
    }
    let last = tables.last_mut().ok_or("no table")?;
    last.remark(format!(
        "generator tpcc, space {SPACE} pages, the working set in 75 % of the blocks, tier by tier, {WRITES} write requests as single pages, played once before it counts; 25/200/1500 us; the paper: TPC-C on 8 GB, 16 times the space"
    ));
    last.remark("the isolation area costs a little here (each cold page is copied once more, a log block less), where the paper's means are 0 to 3 % lower with it; the deviations of the three have the paper's order");
    last.remark("page mapping's means are 4 to 21 % above the paper's, its deviations 2 to 4 times as large: ours collects until it has a whole erased block, several victims in a row; the paper's fit one victim at a time");
    Ok(tables)
}
