//! HAT Tables 1 and 5, Figs. 13 and 14: response, hit ratio and energy of page mapping, HAT, DFTL, FAST and
//! block mapping.

use floatgate_core::Start;
use floatgate_sim::clock::Mode;
use floatgate_sim::config::{Beyond, Device, Host};
use floatgate_sim::record::Record;
use floatgate_trace::{Op, Request};

use crate::lab::{Job, Lab, config, device, erases, extra, over, replayed};
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
const VARIANTS: [Variant; 8] = [
    Variant {
        name: "page",
        scheme: "page",
        options: &[],
        pcm_write_ns: 90_000,
    },
    Variant {
        name: "hat",
        scheme: "hat",
        options: &[],
        pcm_write_ns: 90_000,
    },
    Variant {
        name: "hat, PCM reads first",
        scheme: "hat",
        options: &[("pcm_read_first", "true")],
        pcm_write_ns: 90_000,
    },
    // Tells what of HAT's distance is waiting for the writes of the PCM.
    Variant {
        name: "hat, PCM writes in no time",
        scheme: "hat",
        options: &[],
        pcm_write_ns: 0,
    },
    Variant {
        name: "dftl",
        scheme: "dftl",
        options: &[("fetch", "request")],
        pcm_write_ns: 90_000,
    },
    Variant {
        name: "dftl, a map read an entry",
        scheme: "dftl",
        options: &[],
        pcm_write_ns: 90_000,
    },
    Variant {
        name: "fast",
        scheme: "fast",
        options: &[],
        pcm_write_ns: 90_000,
    },
    Variant {
        name: "block",
        scheme: "block",
        options: &[],
        pcm_write_ns: 90_000,
    },
];

/// A scheme as it is run.
struct Variant {
    name: &'static str,
    scheme: &'static str,
    options: &'static [(&'static str, &'static str)],
    pcm_write_ns: u64,
}

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

const STAND_INS: [StandIn; 6] = [
    StandIn {
        name: "like Fin1",
        sectors: 6,
        stride: 2,
        reads: "23",
        gap_ns: "8190000",
        places: "130000",
        theta: "0.886",
        requests: "300000",
        replay: true,
        paper: Paper {
            hit: Some(65.9),
            hat: Some(0.38),
            dftl: Some(21.8),
            energy: Some((33.4, 51.5)),
        },
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
        paper: Paper {
            hit: Some(76.7),
            hat: Some(0.79),
            dftl: Some(8.3),
            energy: None,
        },
    },
    StandIn {
        name: "like Openmail",
        sectors: 11,
        stride: 3,
        reads: "45",
        // 96 % of exponential gaps with this mean are below 1 ms, as the paper has it.
        gap_ns: "311000",
        places: "250000",
        theta: "0.859",
        requests: "200000",
        replay: true,
        paper: Paper {
            hit: Some(47.1),
            hat: Some(0.5),
            dftl: Some(57.08),
            energy: None,
        },
    },
    StandIn {
        name: "like Web1",
        sectors: 30,
        stride: 8,
        reads: "99.9",
        gap_ns: "2990000",
        places: "250000",
        theta: "0.51",
        requests: "100000",
        replay: false,
        paper: Paper {
            hit: Some(2.5),
            hat: Some(0.7),
            dftl: Some(18.8),
            energy: Some((58.2, 78.4)),
        },
    },
    StandIn {
        name: "like Web2",
        gap_ns: "3360000",
        paper: NONE,
        ..WEB
    },
    StandIn {
        name: "like Web3",
        gap_ns: "4570000",
        paper: NONE,
        ..WEB
    },
];

/// Figures that the paper has only in a plot.
const NONE: Paper = Paper {
    hit: None,
    hat: None,
    dftl: None,
    energy: None,
};

/// The web traces: Table 3 tells them apart by their gaps alone.
const WEB: StandIn = StandIn {
    name: "like Web",
    sectors: 30,
    stride: 8,
    reads: "99.9",
    gap_ns: "2990000",
    places: "250000",
    theta: "0.51",
    requests: "100000",
    replay: false,
    paper: NONE,
};

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
        workload
            .requests
            .iter_mut()
            .for_each(|request| request.bytes = self.sectors * 512);
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
    let mut device = device(
        "ssdsim",
        DIES,
        DATA_BLOCKS,
        BLOCKS - DATA_BLOCKS,
        Mode::Onfi,
    );
    device.channels = CHANNELS;
    let mut cases = Vec::new();
    for stand_in in &STAND_INS {
        let workload = stand_in.workload(&device)?;
        cases.push(Case {
            workload,
            replay: stand_in.replay,
            paper: stand_in.paper,
        });
    }
    if let Some(trace) = &lab.trace {
        cases.push(Case {
            workload: Workload::open(trace)?,
            replay: false,
            paper: Paper::default(),
        });
    }
    let host = Host {
        beyond: Beyond::Compact,
        ..Host::default()
    };
    let mut jobs = Vec::new();
    for case in &cases {
        for variant in &VARIANTS {
            let mut options: Vec<(&str, String)> = variant
                .options
                .iter()
                .map(|(key, word)| (*key, (*word).to_string()))
                .collect();
            match variant.scheme {
                "page" | "hat" | "dftl" => options.push(("gc_low", GC_LOW.to_string())),
                "fast" => options.push(("log_blocks", FAST_LOG_BLOCKS.to_string())),
                _ => {}
            }
            device.pcm_write_ns = variant.pcm_write_ns;
            let run = config(&device, &host, Start::Full, variant.scheme, &options);
            let run = if case.replay { replayed(run) } else { run };
            let label = format!("{} on {}", variant.name, case.workload.name);
            jobs.push(Job {
                label,
                config: run,
                requests: &case.workload.requests,
            });
        }
    }
    let records = lab.run(&jobs)?;
    let rows: Vec<(&Case, &[Record])> = cases.iter().zip(records.chunks(VARIANTS.len())).collect();
    Ok(vec![workloads(&cases), responses(&rows), energies(&rows)])
}

fn workloads(cases: &[Case]) -> Table {
    let mut table = Table::new(
        "Workloads",
        &["workload", "requests", "reads %", "mean sectors", "gap ms"],
    );
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
        "the first six are generated: sizes, read shares and gaps of HAT's Table 3 (Openmail: 96 % of the gaps below 1 ms), \
         places by Zipf's law with the exponent that gives a cache of 16,384 entries the hit ratio of Table 1, exponential gaps",
    );
    table.remark("device of HAT's Table 4: 16 GiB, 4 channels, 16 dies, over-provisioning 0.1, threshold 0.2, start full; those with writes are played once before they count");
    table
}

fn responses(rows: &[(&Case, &[Record])]) -> Table {
    let mut table = Table::new(
        "Mean response above page mapping (HAT Tables 1 and 5), hit ratio (Table 1)",
        &[
            "workload",
            "scheme",
            "mean us",
            "above page %",
            "paper's %",
            "hits %",
            "paper's hits %",
            "erases",
            "map reads",
            "map writes",
        ],
    );
    for (case, records) in rows {
        let base = records[0].time.response.all.mean_us;
        for (variant, record) in VARIANTS.iter().zip(*records) {
            let mean = record.time.response.all.mean_us;
            let known = case.paper.hat.is_some();
            let paper: Cell = match variant.name {
                "hat" => signed(case.paper.hat, 2),
                "dftl" => signed(case.paper.dftl, 1),
                "fast" if known => "0 to 64 times".into(),
                "block" if known => "8 % to 1519 times".into(),
                _ => number(None, 0),
            };
            let cached = matches!(variant.name, "hat" | "dftl");
            let flash = &record.counters.flash;
            table.row(vec![
                case.workload.name.as_str().into(),
                variant.name.into(),
                number(mean, 1),
                above(over(mean, base)),
                paper,
                number(hit_ratio(record), 1),
                number(case.paper.hit.filter(|_| cached), 1),
                number(erases(record), 0),
                number(flash.reads.map as f64, 0),
                number(flash.programs.map as f64, 0),
            ]);
        }
    }
    table.remark(
        "HAT: a PCM read of 0.115 us before a flash read of 73 us is 0.16 %, and the request may lose its turn on the bus; what is above that (Fin1, Openmail) is waiting for the PCM, which does one access at a time: \
         without its writes of 90 us the distance is gone, and it is below 1 % if reads go before writes that have not begun (pcm_read_first). The paper takes a PCM write for hidden because a program takes longer; it says nothing of the writes for \
         pages that a collection moves (up to 64 in a row)",
    );
    table.remark(
        "DFTL: one read of a translation page a request, as the paper counts it (section IV.B.2); with one an entry, as DFTL's own paper has it, long reads pay once a page. \
         The paper's 18.8 % for Web1 is less than one map read of 73 us on a response of 128 us: it may count the cell time of 20 us alone",
    );
    table.remark(
        "FAST and block mapping: under random writes they cannot keep up with the arrivals, and the mean grows with the length of the run; a read-only workload costs them nothing. The paper's ranges are over all its workloads",
    );
    table
}

/// Percent, or how many times as long.
fn above(percent: Option<f64>) -> Cell {
    match percent {
        Some(percent) if percent > 1000.0 => format!("{:.0} times", percent / 100.0).into(),
        _ => signed(percent, 2),
    }
}

/// Share of page translations served by the cached entries, %.
fn hit_ratio(record: &Record) -> Option<f64> {
    let of = |name: &str| extra(record, name);
    let (hits, misses) = match of("qmt_hits") {
        Some(hits) => (hits, of("qmt_misses")?),
        None => (of("cmt_hits")?, of("cmt_misses")?),
    };
    Some(hits / (hits + misses) * 100.0).filter(|share| share.is_finite())
}

fn energies(rows: &[(&Case, &[Record])]) -> Table {
    let mut columns = vec!["workload", "scheme"];
    columns.extend([
        "read",
        "program",
        "erase",
        "PCM read",
        "PCM write",
        "DRAM access",
        "refresh",
        "total",
        "paper's total",
    ]);
    let mut table = Table::new(
        "Energy by component, % of page mapping's total (HAT Figs. 13 and 14)",
        &columns,
    );
    for (case, records) in rows {
        let base = records[0].energy.total_uj;
        for (variant, record) in VARIANTS.iter().zip(*records) {
            let mut row: Vec<Cell> = vec![case.workload.name.as_str().into(), variant.name.into()];
            let components = record.energy.components().map(|(_, uj)| uj);
            let all = components.into_iter().chain([record.energy.total_uj]);
            row.extend(all.map(|uj| number(uj / base * 100.0, 1)));
            let paper = case
                .paper
                .energy
                .and_then(|(hat, dftl)| match variant.name {
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
         with a gap of 0.3 ms (Openmail) there is little to save, and HAT's PCM writes (10.4 uJ each, half a page program) eat it up",
    );
    table
}
