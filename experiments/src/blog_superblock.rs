//! BLogFTL Table 7: SUPERBLOCK against BLogFTL over the share of random writes.

use floatgate_core::Start;
use floatgate_sim::clock::Mode;
use floatgate_sim::config::{Arrivals, Host, Recipe, RunConfig};
use serde_json::Value;

use crate::lab::{Job, Lab, at, config, device};
use crate::table::{Cell, Table, number, signed};
use crate::workload::Workload;

pub fn run(lab: &Lab) -> Result<Vec<Table>, String> {
    // scratch exploration
    let host = Host { arrivals: Arrivals::Closed, queue_depth: 1, ..Host::default() };
    let mut tables = Vec::new();
    for n in [1u32, 2, 4] {
        for fill in [false, true] {
            for region in [128u32, 512, 688, 1108] {
                let base = device("k9g4g08u0a", 1, 1108, 512 + 4, Mode::Flat);
                let mut workloads = Vec::new();
                for share in [0, 20, 60, 100] {
                    let params = [
                        ("space", (region * 128).to_string()),
                        ("requests", (262_144 / n).to_string()),
                        ("n", n.to_string()),
                        ("random", share.to_string()),
                    ];
                    let params: Vec<(&str, &str)> = params.iter().map(|(a, b)| (*a, b.as_str())).collect();
                    workloads.push(Workload::generated(share.to_string(), "randomness", &params, 2048)?);
                }
                let mut jobs = Vec::new();
                for workload in &workloads {
                    for scheme in ["superblock", "blog"] {
                        let options = [("log_blocks", "512".to_string())];
                        let run = config(&base, &host, Start::Empty, scheme, &options);
                        let run = if fill { RunConfig { ageing: vec![Recipe::Fill], ..run } } else { run };
                        jobs.push(Job { label: scheme.into(), config: run, requests: &workload.requests });
                    }
                }
                let records = lab.run(&jobs)?;
                let mut table = Table::new(format!("n {n} fill {fill} region {region}"), &["job", "copies", "erases", "us", "s1", "s2", "s3", "switch"]);
                for (i, r) in records.iter().enumerate() {
                    let mut row: Vec<Cell> = vec![format!("{} {}", jobs[i].label, workloads[i / 2].name).into()];
                    for path in ["derived.copies", "derived.erases", "time.response.write.mean_us", "counters.extra.situation1", "counters.extra.situation2", "counters.extra.situation3", "counters.merges.switch"] {
                        row.push(number(at(r, path), 0));
                    }
                    table.row(row);
                }
                tables.push(table);
            }
        }
    }
    let _ = (signed(1.0, 0), Value::Null);
    Ok(tables)
}
