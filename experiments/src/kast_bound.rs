//! KAST's bound: association, longest write and merge time over `k`, against FAST.

use floatgate_core::{ProgramOrder, Start};
use floatgate_sim::clock::Mode;
use floatgate_sim::record::Record;

use crate::lab::{Job, Lab, config, device, extra, one_at_a_time};
use crate::table::{Cell, Table, number};

const PART: &str = "slc_large_block";

/// Runs the experiment.
pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    let host = one_at_a_time(0);
    let mut device = device(PART, 1, 1, 0, Mode::Flat);
    device.program_order = ProgramOrder::Any;
    let (page_bytes, pages) = (device.part.page_bytes, device.part.pages_per_block);
    let recorded = lab.recorded("oltp-postgres")?;
    let workload = recorded.page_writes(page_bytes);
    let data_blocks = workload
        .touched_pages(&host, page_bytes)
        .div_ceil(pages.into())
        .max(1) as u32;
    let log_blocks = (data_blocks * 3 / 100).max(8);
    device.logical_pages = u64::from(data_blocks) * u64::from(pages);
    device.blocks = data_blocks + log_blocks + 1;
    let ks: Vec<u32> = (0..).map(|i| 1 << i).take_while(|&k| k <= pages).collect();
    let log_option = ("log_blocks", log_blocks.to_string());
    let job = |label: String, scheme: &str, options: &[(&str, String)]| Job {
        label,
        config: config(&device, &host, Start::Full, scheme, options),
        requests: &workload.requests,
    };
    let mut jobs: Vec<Job<'_>> = ks
        .iter()
        .map(|k| {
            job(
                format!("kast, k = {k}"),
                "kast",
                &[log_option.clone(), ("k", k.to_string())],
            )
        })
        .collect();
    jobs.push(job("fast".into(), "fast", &[log_option]));
    let records = lab.run(&jobs)?;
    let mut table = Table::new(
        "KAST over k: one page write at a time",
        &[
            "scheme",
            "largest association",
            "paper's bound",
            "longest merge copies",
            "longest write ms",
            "bound ms",
            "mean write ms",
            "merge time s",
            "full",
            "switch + partial",
            "dead",
        ],
    );
    for (job, record) in jobs.iter().zip(&records) {
        let k = ks
            .iter()
            .find(|k| job.label == format!("kast, k = {k}"))
            .copied();
        table.row(row(job, record, k, pages));
    }
    table.remark(format!(
        "writes of {}, page by page: {} page writes; one die, {data_blocks} data blocks of {pages} pages, {log_blocks} log blocks (3 %), start full, {}/{}/{} us",
        workload.name,
        workload.requests.len(),
        device.part.t_r_ns / 1000,
        device.part.t_prog_ns / 1000,
        device.part.t_bers_ns / 1000
    ));
    table.remark("bound: k P copies and 2k + 1 erases (k owned sequential log blocks among them), and the page itself; the paper's bound is k data blocks a merge. FAST's largest association is that of its histogram");
    Ok(vec![table])
}

fn row(job: &Job<'_>, record: &Record, k: Option<u32>, pages: u32) -> Vec<Cell> {
    let part = &job.config.device.part;
    let copy_ms = (part.t_r_ns + part.t_prog_ns) as f64 / 1e6;
    let bound_ms = k.map(|k| {
        let erases = f64::from(2 * k + 1) * part.t_bers_ns as f64 / 1e6;
        f64::from(k * pages) * copy_ms + erases + part.t_prog_ns as f64 / 1e6
    });
    let histogram = &record.stats.association_histogram;
    let largest = extra(record, "max_association")
        .unwrap_or_else(|| histogram.len().saturating_sub(1) as f64);
    let longest_copies = record.stats.own.get("longest_merge_copies");
    let merges = &record.counters.merges;
    let write = &record.time.response.write;
    let ms = |us: Option<f64>| us.map(|us| us / 1000.0);
    vec![
        job.label.as_str().into(),
        number(largest, 0),
        number(k.map(f64::from), 0),
        number(longest_copies.copied().flatten(), 0),
        number(ms(write.max_us), 1),
        number(bound_ms, 1),
        number(ms(write.mean_us), 3),
        number(record.derived.gc_overhead_us / 1e6, 1),
        number(merges.full as f64, 0),
        number((merges.switch + merges.partial) as f64, 0),
        number(merges.dead as f64, 0),
    ]
}
