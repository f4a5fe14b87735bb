//! LAST++ Figs. 15 to 17, 19 to 21 and Table V on one recorded trace.

use floatgate_core::Start;
use floatgate_sim::clock::Mode;
use floatgate_sim::config::{Device, Host};
use serde_json::Value;

use crate::lab::{Job, Lab, at, config, count, device, one_at_a_time, over};
use crate::table::{Table, number, signed};
use crate::workload::Workload;

/// Dies, each on a channel of its own.
pub const DIES: u32 = 8;
const SCHEMES: [&str; 4] = ["bast", "fast", "superblock", "last++"];
/// What the paper says of BAST, FAST, SUPERBLOCK, LAST++ over all its traces.
const PAPER: [Paper; 4] = [
    Paper { io: Some(299.0), time: Some(255.0), erases: Some(282.0), association: Some(1.0), utilisation: Some(14.0), dead: None },
    Paper { io: Some(39.0), time: Some(41.0), erases: Some(40.0), association: Some(1.5), utilisation: Some(73.0), dead: None },
    Paper { io: Some(70.0), time: Some(73.0), erases: Some(51.0), association: Some(2.1), utilisation: None, dead: None },
    Paper { io: Some(0.0), time: Some(0.0), erases: Some(0.0), association: Some(0.76), utilisation: Some(86.0), dead: Some(70.0) },
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

/// A device that the trace fills, with LAST++'s part, and its log blocks.
pub fn device_for(workload: &Workload, host: &Host) -> (Device, u32) {
    let mut made = device("mt29f16g08", DIES, 1, 0, Mode::Flat);
    let block_bytes = u64::from(made.part.page_bytes) * u64::from(made.part.pages_per_block);
    // As many as the paper's desktops had for what they wrote: 512 MB for 6.1 GB.
    let log = (workload.written_bytes() / 12 / block_bytes).clamp(64, 1 << 20) as u32;
    let log_blocks = log.next_multiple_of(DIES);
    let pages = workload.touched_pages(host, made.part.page_bytes);
    let stripe = u64::from(DIES) * u64::from(made.part.pages_per_block);
    let data_blocks = pages.div_ceil(stripe).max(1) as u32;
    made.logical_pages = u64::from(data_blocks) * stripe;
    // The largest reserve of the four schemes is below 8 blocks a die.
    made.blocks = data_blocks + log_blocks / DIES + 8;
    (made, log_blocks)
}

/// Runs the experiment.
pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    let workload = lab.recorded()?;
    let host = one_at_a_time();
    let (device, log_blocks) = device_for(&workload, &host);
    let jobs: Vec<Job<'_>> = SCHEMES
        .iter()
        .map(|scheme| {
            let options = [("log_blocks", log_blocks.to_string())];
            Job {
                label: (*scheme).into(),
                config: config(&device, &host, Start::Full, scheme, &options),
                requests: &workload.requests,
            }
        })
        .collect();
    let records = lab.run(&jobs)?;
    let about = format!(
        "trace {}, {} requests; {DIES} dies of {} blocks of 512 KB, {log_blocks} log blocks, start full, one request at a time",
        workload.name,
        workload.requests.len(),
        device.blocks
    );
    Ok(vec![costs(&records, &about), logs(&records), channels(&records)])
}

fn costs(records: &[Value], about: &str) -> Table {
    let mut table = Table::new(
        "Operations, time, erases over LAST++ (LAST++ Figs. 15, 16, 21)",
        &[
            "scheme", "operations", "over LAST++ %", "paper's %", "us a written page", "over LAST++ %", "paper's %",
            "erases", "over LAST++ %", "paper's %",
        ],
    );
    let last = &records[SCHEMES.len() - 1];
    for ((scheme, paper), record) in SCHEMES.iter().zip(&PAPER).zip(records) {
        let of = |path: &str| (at(record, path), over(at(record, path), at(last, path)));
        let (io, io_over) = of("derived.io_operations");
        let (time, time_over) = of("time.elapsed_per_written_page_us");
        let (erases, erases_over) = of("derived.erases");
        table.row(vec![
            (*scheme).into(),
            number(io, 0),
            signed(io_over, 0),
            signed(paper.io, 0),
            number(time, 0),
            signed(time_over, 0),
            signed(paper.time, 0),
            number(erases, 0),
            signed(erases_over, 0),
            signed(paper.erases, 0),
        ]);
    }
    table.remark(about);
    table.remark("the paper's numbers are means over its ten traces on 256 GB; ours is one trace on a device of its size");
    table
}

fn logs(records: &[Value]) -> Table {
    let mut table = Table::new(
        "Merges and log blocks (LAST++ Figs. 19, 20, Table V)",
        &[
            "scheme", "switch", "partial", "full", "dead", "association", "with dead", "paper's (geometric mean)",
            "dead %", "paper's dead %", "log utilisation %", "paper's %",
        ],
    );
    for ((scheme, paper), record) in SCHEMES.iter().zip(&PAPER).zip(records) {
        let merges = |kind: &str| count(record, &format!("counters.merges.{kind}"));
        let (full, dead) = (merges("full"), merges("dead"));
        let dead_share = (full + dead > 0).then(|| dead as f64 / (full + dead) as f64 * 100.0);
        table.row(vec![
            (*scheme).into(),
            merges("switch").into(),
            merges("partial").into(),
            full.into(),
            dead.into(),
            number(at(record, "derived.association"), 2),
            number(at(record, "derived.association_with_dead"), 2),
            number(paper.association, 2),
            number(dead_share, 0),
            number(paper.dead, 0),
            number(at(record, "derived.log_block_utilisation").map(|share| share * 100.0), 0),
            number(paper.utilisation, 0),
        ]);
    }
    table.remark("dead: victims without a valid page among those merged fully or dead; the paper gives it for LAST++'s random log blocks");
    table
}

fn channels(records: &[Value]) -> Table {
    let mut table = Table::new(
        "Use of the channels (LAST++ Fig. 17)",
        &["scheme", "least share to channel 0 %", "largest %", "least busy %", "busiest %", "mean busy %"],
    );
    for (scheme, record) in SCHEMES.iter().zip(records) {
        let shares = list(record, "/time/channel_share_difference_percent");
        // Without a bus model the dies are what is busy; each has a channel of its own.
        let busy = list(record, "/time/die_utilisation");
        let least = |values: &[f64]| values.iter().copied().reduce(f64::min);
        let most = |values: &[f64]| values.iter().copied().reduce(f64::max);
        let mean = (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64);
        let percent = |share: Option<f64>| number(share.map(|share| share * 100.0), 1);
        table.row(vec![
            (*scheme).into(),
            signed(least(&shares), 1),
            signed(most(&shares), 1),
            percent(least(&busy)),
            percent(most(&busy)),
            percent(mean),
        ]);
    }
    table.remark("the paper's figure gives no numbers: its text says LAST++ uses the channels nearly evenly, the others unevenly for traces with locality in few blocks");
    table.remark("BAST and FAST put page p of the device on die p mod 8 (FTL-MM); LAST++ in zigzag segments; host reads and writes are counted together");
    table
}

fn list(record: &Value, path: &str) -> Vec<f64> {
    let values = record.pointer(path).and_then(Value::as_array);
    values.map(|values| values.iter().filter_map(Value::as_f64).collect()).unwrap_or_default()
}
