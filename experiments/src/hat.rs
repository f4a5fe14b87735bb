//! HAT Tables 1 and 5, Figs. 13 and 14: response, hit ratio and energy of page mapping, HAT, DFTL, FAST and
//! block mapping.

use floatgate_core::Start;
use floatgate_sim::clock::Mode;
use floatgate_sim::config::{Beyond, Device, Host};
use floatgate_trace::{Op, Request};
use serde_json::Value;

use crate::lab::{Job, Lab, at, config, device, over, replayed};
use crate::table::{Cell, Table, number, signed};
use crate::workload::Workload;

/// HAT Table 4: 4 channels of 4 dies, 4 planes of 2048 blocks.
const DIES: u32 = 16;
const CHANNELS: u32 = 4;
const BLOCKS: u32 = 8192;
/// Over-provisioning 0.1.
const DATA_BLOCKS: u32 = 7372;
/// GC threshold 0.2, as a share of the spare blocks.
const GC_LOW: u32 = (BLOCKS - DATA_BLOCKS) / 5;
/// Log blocks of FAST; the paper does not say how many.
const FAST_LOG_BLOCKS: u32 = 1024;
const SCHEMES: [&str; 5] = ["page", "hat", "dftl", "fast", "block"];

/// A workload made after a row of HAT's Table 3, with Zipf's law bent to the hit ratio of its Table 1.
struct StandIn {
    name: &'static str,
    sectors: u64,
    /// Pages from one place to the next.
    stride: u64,
    reads: &'static str,
    gap_ns: &'static str,
    places: &'static str,
    theta: &'static str,
    requests: &'static str,
    /// Whether it is played once before it counts, so that collections are under way.
    replay: bool,
    paper: Paper,
}

/// What HAT's tables and figures say of a workload, %.
#[derive(Clone, Copy, Default)]
struct Paper {
    hit: Option<f64>,
    hat: Option<f64>,
    dftl: Option<f64>,
    /// Energy of HAT and DFTL, of page mapping's.
    energy: Option<(f64, f64)>,
}

const STAND_INS: [StandIn; 4] = [
    StandIn {
        name: "like Fin1",
        sectors: 6,
        stride: 2,
        reads: "23",
        gap_ns: "8190000",
        places: "130000",
        theta: "0.974",
        requests: "300000",
        replay: true,
        paper: Paper { hit: Some(65.9), hat: Some(0.38), dftl: Some(21.8), energy: Some((33.4, 51.5)) },
    },
    StandIn {
        name: "like Fin2",
        sectors: 4,
        stride: 1,
        reads: "82",
        gap_ns: "11080000",
        places: "100000",
        theta: "0.978",
        requests: "300000",
        replay: true,
        paper: Paper { hit: Some(76.7), hat: Some(0.79), dftl: Some(8.3), energy: None },
    },
    StandIn {
        name: "like Openmail",
        sectors: 11,
        stride: 3,
        reads: "45",
        gap_ns: "1000000",
        places: "250000",
        theta: "0.917",
        requests: "200000",
        replay: true,
        paper: Paper { hit: Some(47.1), hat: Some(0.5), dftl: Some(57.08), energy: None },
    },
    StandIn {
        name: "like Web1",
        sectors: 30,
        stride: 8,
        reads: "100",
        gap_ns: "2990000",
        places: "250000",
        theta: "0.51",
        requests: "100000",
        replay: false,
        paper: Paper { hit: Some(2.5), hat: Some(0.7), dftl: Some(18.8), energy: Some((58.2, 78.4)) },
    },
];

impl StandIn {
    fn workload(&self, device: &Device) -> Result<Workload, String> {
        let space = (device.logical_pages / self.stride).to_string();
        let params = [
            ("space", space.as_str()),
            ("distinct", self.places),
            ("theta", self.theta),
            ("requests", self.requests),
            ("reads", self.reads),
            ("arrival", "exponential"),
            ("gap", self.gap_ns),
        ];
        let stride_bytes = self.stride as u32 * device.part.page_bytes;
        let mut workload = Workload::generated(self.name, "zipf", &params, stride_bytes)?;
        workload.requests.iter_mut().for_each(|request| request.bytes = self.sectors * 512);
        Ok(workload)
    }
}

/// One workload with all that belongs to it.
struct Case {
    workload: Workload,
    replay: bool,
    paper: Paper,
}

/// Runs the experiment.
pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    let mut device = device("ssdsim", DIES, DATA_BLOCKS, BLOCKS - DATA_BLOCKS, Mode::Onfi);
    device.channels = CHANNELS;
    let mut cases = Vec::new();
    for stand_in in &STAND_INS {
        let workload = stand_in.workload(&device)?;
        cases.push(Case { workload, replay: stand_in.replay, paper: stand_in.paper });
    }
    if let Some(trace) = &lab.trace {
        cases.push(Case { workload: Workload::open(trace)?, replay: false, paper: Paper::default() });
    }
    let host = Host { beyond: Beyond::Compact, ..Host::default() };
    let mut jobs = Vec::new();
    for case in &cases {
        for scheme in SCHEMES {
            let options = match scheme {
                "page" | "hat" | "dftl" => vec![("gc_low", GC_LOW.to_string())],
                "fast" => vec![("log_blocks", FAST_LOG_BLOCKS.to_string())],
                _ => Vec::new(),
            };
            let run = config(&device, &host, Start::Full, scheme, &options);
            let run = if case.replay { replayed(run) } else { run };
            let label = format!("{scheme} on {}", case.workload.name);
            jobs.push(Job { label, config: run, requests: &case.workload.requests });
        }
    }
    let records = lab.run(&jobs)?;
    let rows: Vec<(&Case, &[Value])> = cases.iter().zip(records.chunks(SCHEMES.len())).collect();
    Ok(vec![workloads(&cases), responses(&rows), energies(&rows)])
}

fn workloads(cases: &[Case]) -> Table {
    let mut table = Table::new("Workloads", &["workload", "requests", "reads %", "mean sectors", "gap ms"]);
    for case in cases {
        let data = |r: &&Request| matches!(r.op, Op::Read | Op::Write);
        let requests: Vec<&Request> = case.workload.requests.iter().filter(data).collect();
        let n = requests.len() as f64;
        let reads = requests.iter().filter(|r| r.op == Op::Read).count() as f64;
        let bytes: u64 = requests.iter().map(|r| r.bytes).sum();
        let last_ns = requests.iter().map(|r| r.arrival_ns).max().unwrap_or(0);
        table.row(vec![
            case.workload.name.as_str().into(),
            (requests.len() as u64).into(),
            number(reads / n * 100.0, 1),
            number(bytes as f64 / 512.0 / n, 1),
            number(last_ns as f64 / 1e6 / n, 2),
        ]);
    }
    table.remark(
        "the first four are generated: sizes, read shares and gaps of HAT's Table 3 (Web1 without its 0.1 % of writes), \
         places by Zipf's law with the exponent that gives a cache of 16,384 entries the hit ratio of Table 1, exponential gaps",
    );
    table.remark("device of HAT's Table 4: 16 GiB, 4 channels, 16 dies, over-provisioning 0.1, threshold 0.2, start full; those with writes are played once before they count");
    table
}

fn responses(rows: &[(&Case, &[Value])]) -> Table {
    let mut table = Table::new(
        "Mean response above page mapping (HAT Tables 1 and 5), hit ratio (Table 1)",
        &["workload", "scheme", "mean us", "above page %", "paper's %", "hits %", "paper's hits %", "erases", "map reads", "map writes"],
    );
    for (case, records) in rows {
        let base = at(&records[0], "time.response.all.mean_us");
        for (scheme, record) in SCHEMES.iter().zip(*records) {
            let mean = at(record, "time.response.all.mean_us");
            let known = case.paper.hat.is_some();
            let paper: Cell = match *scheme {
                "hat" => signed(case.paper.hat, 2),
                "dftl" => signed(case.paper.dftl, 1),
                "fast" if known => "0 to 64 times".into(),
                "block" if known => "8 % to 1519 times".into(),
                _ => number(None, 0),
            };
            let cached = matches!(*scheme, "hat" | "dftl");
            let map = |what: &str| at(record, &format!("counters.flash.{what}.map"));
            table.row(vec![
                case.workload.name.as_str().into(),
                (*scheme).into(),
                number(mean, 1),
                signed(over(mean, base), 2),
                paper,
                number(hit_ratio(record), 1),
                number(case.paper.hit.filter(|_| cached), 1),
                number(at(record, "derived.erases"), 0),
                number(map("reads"), 0),
                number(map("programs"), 0),
            ]);
        }
    }
    table.remark(
        "HAT is closer to page mapping than the paper's 0.4 to 0.8 %: a PCM read of 0.115 us before a flash read of 73 us is 0.16 % at most, and nothing else of HAT's is in the way of a request here",
    );
    table.remark(
        "DFTL reads a translation page for each page that misses, on whatever die that lies, and writes one back for every dirty entry that leaves; \
         the paper's mean over its traces has long queues in it (Openmail in bursts), which these generated arrivals do not have",
    );
    table.remark(
        "FAST and block mapping fall behind by queueing: under random writes they cannot keep up with the gaps, and the mean then grows with the length of the run; the paper's ranges (Table 5) are over its traces, the first for reads only",
    );
    table
}

/// Share of page translations served by the cached entries, %.
fn hit_ratio(record: &Value) -> Option<f64> {
    let extra = |key: &str| at(record, &format!("counters.extra.{key}"));
    let (hits, misses) = match extra("qmt_hits") {
        Some(hits) => (hits, extra("qmt_misses")?),
        None => (extra("cmt_hits")?, extra("cmt_misses")?),
    };
    Some(hits / (hits + misses) * 100.0).filter(|share| share.is_finite())
}

fn energies(rows: &[(&Case, &[Value])]) -> Table {
    let parts = ["flash_read", "flash_program", "flash_erase", "pcm_read", "pcm_write", "dram_access", "dram_refresh", "total"];
    let mut columns = vec!["workload", "scheme"];
    columns.extend(["read", "program", "erase", "PCM read", "PCM write", "DRAM access", "refresh", "total", "paper's total"]);
    let mut table =
        Table::new("Energy by component, % of page mapping's total (HAT Figs. 13 and 14)", &columns);
    for (case, records) in rows {
        let base = at(&records[0], "energy.total_uj");
        for (scheme, record) in SCHEMES.iter().zip(*records) {
            let mut row: Vec<Cell> = vec![case.workload.name.as_str().into(), (*scheme).into()];
            for part in parts {
                let share = at(record, &format!("energy.{part}_uj")).zip(base).map(|(part, base)| part / base * 100.0);
                row.push(number(share, 1));
            }
            let paper = case.paper.energy.and_then(|(hat, dftl)| match *scheme {
                "page" => Some(100.0),
                "hat" => Some(hat),
                "dftl" => Some(dftl),
                _ => None,
            });
            row.push(number(paper, 1));
            table.row(row);
        }
    }
    table.remark(
        "page mapping pays for the refresh of the DRAM that holds its table as long as the run lasts (9.9 mW a chip of 32 MiB), so its distance from HAT is the gap between requests; \
         HAT's part of the total depends on the gap more than on anything HAT does",
    );
    table
}
