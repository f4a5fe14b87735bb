//! BLogFTL Tables 4, 5, 6 and 8: response and wasted pages over `u`, `l` and the number of log blocks.

use floatgate_core::Start;
use floatgate_sim::clock::Mode;
use floatgate_sim::record::Record;

use crate::lab::{Figure, Job, Lab, config, copies, device, erases, extra, one_at_a_time};
use crate::table::{Cell, Table, number};

/// `(u, l)` of the paper's Tables 6 and 8, and the paper's values for three of its workloads: response in us
/// (Bonnie 150MB, Tiobench 4 threads, CAMRESHMSA01), then wasted pages of the same.
const PAIRS: [(u32, u32, [f64; 3], [f64; 3]); 10] = [
    (1, 4, [5504.0, 5260.0, f64::NAN], [f64::NAN; 3]),
    (2, 4, [4909.0, 4584.0, 6759.0], [5600.0, 1024.0, 146_304.0]),
    (3, 4, [5022.0, 4915.0, 6581.0], [4618.0, 792.0, 110_683.0]),
    (4, 4, [4893.0, 4903.0, 6145.0], [4199.0, 630.0, 102_605.0]),
    (5, 4, [4908.0, 4819.0, 5231.0], [4108.0, 603.0, 94_506.0]),
    (6, 4, [4906.0, 5064.0, 4913.0], [4011.0, 587.0, 89_217.0]),
    (2, 2, [5036.0, 6090.0, 7184.0], [5952.0, 2368.0, 151_477.0]),
    (2, 3, [5013.0, 5743.0, 6828.0], [5664.0, 1725.0, 146_304.0]),
    (2, 5, [4985.0, 4619.0, 7090.0], [5744.0, 1500.0, 169_222.0]),
    (2, 6, [4984.0, 4627.0, 7505.0], [5809.0, 1587.0, 196_747.0]),
];
/// Log blocks of Table 5 and its response in us for Bonnie 150MB, Postmark 200MB, Tiobench 4 threads.
const LOG_BLOCKS: [(u32, [f64; 3]); 5] = [
    (64, [6194.0, 6457.0, 8655.0]),
    (128, [5900.0, 6328.0, 8243.0]),
    (256, [5765.0, 5207.0, 7483.0]),
    (512, [4909.0, 4588.0, 4584.0]),
    (1024, [4979.0, 4627.0, 4581.0]),
];
/// The paper's default run.
const DEFAULT: (u32, u32, u32) = (2, 4, 512);

/// Runs the experiment.
pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    let workload = lab.recorded("desktop")?;
    let host = one_at_a_time(0);
    let mut base = device("k9g4g08u0a", 1, 1, 0, Mode::Flat);
    let pages = u64::from(base.part.pages_per_block);
    let data_blocks = workload
        .touched_pages(&host, base.part.page_bytes)
        .div_ceil(pages)
        .max(1);
    base.logical_pages = data_blocks * pages;
    let mut runs: Vec<(u32, u32, u32)> =
        PAIRS.iter().map(|&(u, l, ..)| (u, l, DEFAULT.2)).collect();
    runs.extend(
        LOG_BLOCKS
            .iter()
            .map(|&(log, _)| (DEFAULT.0, DEFAULT.1, log)),
    );
    let jobs: Vec<Job<'_>> = runs
        .iter()
        .map(|&(u, l, log_blocks)| {
            let mut device = base.clone();
            device.blocks = data_blocks as u32 + log_blocks + 1;
            let options = [
                ("u", u.to_string()),
                ("l", l.to_string()),
                ("log_blocks", log_blocks.to_string()),
            ];
            Job {
                label: format!("u = {u}, l = {l}, {log_blocks} log blocks"),
                config: config(&device, &host, Start::Empty, "blog", &options),
                requests: &workload.requests,
            }
        })
        .collect();
    let records = lab.run(&jobs)?;
    let (pairs, logs) = records.split_at(PAIRS.len());
    let normal = |record: &Record, of: Figure| {
        let index = PAIRS
            .iter()
            .position(|&(u, l, ..)| (u, l) == (DEFAULT.0, DEFAULT.1))?;
        Some(of(record)? / of(&pairs[index])?)
    };
    let mut first = Table::new(
        "Over u and l, 512 log blocks (BLogFTL Tables 4, 6 and 8); the paper's values relative to u = 2, l = 4",
        &[
            "u/l",
            "response us",
            "relative",
            "Bonnie150 paper's",
            "Tiobench4 paper's",
            "CAMRESHM paper's",
            "wasted pages",
            "relative",
            "Bonnie150 paper's",
            "Tiobench4 paper's",
            "CAMRESHM paper's",
            "copies",
            "erases",
            "S1",
            "S2",
            "S3",
        ],
    );
    let base_paper = PAIRS[1];
    for ((u, l, response, wasted), record) in PAIRS.iter().zip(pairs) {
        let mut row: Vec<Cell> = vec![format!("{u}/{l}").into()];
        row.push(number(mean_us(record), 0));
        row.push(number(normal(record, mean_us), 3));
        row.extend(
            response
                .iter()
                .zip(&base_paper.2)
                .map(|(value, base)| number(value / base, 3)),
        );
        row.push(number(wasted_data_pages(record), 0));
        row.push(number(normal(record, wasted_data_pages), 3));
        row.extend(
            wasted
                .iter()
                .zip(&base_paper.3)
                .map(|(value, base)| number(value / base, 3)),
        );
        row.extend(events(record));
        first.row(row);
    }
    first.remark(format!(
        "trace {}, {} requests; one die, {data_blocks} data blocks of 128 pages of 2 KB, start empty, one request at a time; S1 to S3: times each situation was entered",
        workload.name,
        workload.requests.len()
    ));
    let wasted_log: f64 = records
        .iter()
        .map(|record| record.stats.wasted_log_pages as f64)
        .sum();
    first.remark(format!(
        "log pages wasted in all runs together: {wasted_log}; the paper's: 0"
    ));
    let mut second = Table::new(
        "Over the number of log blocks, u = 2, l = 4 (BLogFTL Table 5); the paper's values relative to 512",
        &[
            "log blocks",
            "response us",
            "relative",
            "Bonnie150 paper's",
            "Postmark200 paper's",
            "Tiobench4 paper's",
            "copies",
            "erases",
            "S1",
            "S2",
            "S3",
        ],
    );
    for ((log_blocks, paper), record) in LOG_BLOCKS.iter().zip(logs) {
        let mut row: Vec<Cell> = vec![u64::from(*log_blocks).into()];
        row.push(number(mean_us(record), 0));
        row.push(number(normal(record, mean_us), 3));
        row.extend(
            paper
                .iter()
                .zip(&LOG_BLOCKS[3].1)
                .map(|(value, base)| number(value / base, 3)),
        );
        row.extend(events(record));
        second.row(row);
    }
    Ok(vec![first, second])
}

fn mean_us(record: &Record) -> Option<f64> {
    record.time.response.all.mean_us
}

fn wasted_data_pages(record: &Record) -> Option<f64> {
    Some(record.stats.wasted_data_pages as f64)
}

/// Copies, erases, situations.
fn events(record: &Record) -> Vec<Cell> {
    let situations = ["situation1", "situation2", "situation3"].map(|name| extra(record, name));
    [copies(record), erases(record)]
        .into_iter()
        .chain(situations)
        .map(|figure| number(figure, 0))
        .collect()
}
