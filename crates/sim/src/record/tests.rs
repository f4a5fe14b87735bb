use floatgate_core::options::OptionValue;
use floatgate_core::report::Memory;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Catalog, ProgramOrder, Start, Striped};
use floatgate_schemes::{block::Block, dftl::Dftl, hat::Hat, page::Page};
use serde_json::{Value, json};

use super::names::{LevelingName, MemoryName, OrderName, StartName};
use super::*;
use crate::config;
use crate::part::part;
use crate::run::{Decoded, Simulated};
use floatgate_trace::{Op, Request};

fn record(scheme: &str) -> Record {
    let mut part = part("mt29f16g08").expect("a preset").clone();
    part.pages_per_block = 8;
    let config = crate::config::RunConfig {
        device: config::Device::one_die_a_channel(part, 1, 16, 64),
        start: Start::Full,
        ageing: vec![config::Recipe::Fill],
        host: config::Host::default(),
        scheme: scheme.into(),
        options: Vec::new(),
    };
    let request = |i: u64| Request {
        arrival_ns: i * 700_001,
        op: if i.is_multiple_of(3) {
            Op::Read
        } else {
            Op::Write
        },
        volume: 0,
        stream: floatgate_trace::Stream::NONE,
        offset: (i * 37 % 64) * 4096,
        bytes: 4096,
    };
    let requests: Vec<Request> = (0..500).map(request).collect();
    // Not all of the schemes: each is compiled once more for this.
    let all = Catalog::<Simulated>::new()
        .with::<Page>()
        .with::<Striped<Block>>()
        .with::<Dftl>()
        .with::<Hat>();
    let scheme = all.get(scheme).expect("a scheme").life;
    let ran = scheme.run(&config, &mut Decoded::new(&requests), &mut |_| {});
    ran.expect("it runs")
}

#[test]
fn a_record_read_back_is_the_same_to_the_last_bit() {
    for scheme in ["page", "block", "dftl", "hat"] {
        let record = record(scheme);
        let text = serde_json::to_string(&record).expect("it is plain data");
        let back: Record = serde_json::from_str(&text).expect("it was written so");
        assert_eq!(back, record, "{scheme}");
        assert!(
            !record.counters.extra.is_empty() || scheme == "page",
            "{scheme}"
        );
    }
}

/// One access for each entry touched (docs/spec/metrics.md section 4): pages of the host, and moved pages.
#[test]
fn the_energy_of_dram_comes_from_the_accesses_that_the_scheme_counts() {
    let page = record("page");
    let accesses = page.stats.dram_accesses.expect("its table is in DRAM");
    let moved = page.counters.flash.programs.gc as f64;
    assert_eq!(accesses, 500.0 + moved);
    // 3.3 V, 125 mA, 66 ns an access.
    let expected = accesses * 3.3 * 125.0 * 66.0 * 1e-6;
    assert!((page.energy.dram_access_uj - expected).abs() < 1e-9 * expected);
    let block = record("block");
    assert_eq!(block.stats.dram_accesses, None);
    assert_eq!(block.energy.dram_access_uj, 0.0);
}

#[test]
fn components_of_the_energy_are_all_of_it() {
    let energy = record("hat").energy;
    let fields = serde_json::to_value(energy).expect("it is plain data");
    let fields = fields.as_object().expect("a struct");
    let named = energy.components().map(|(name, uj)| {
        let key = format!("{}_uj", name.replace(' ', "_"));
        assert_eq!(fields[&key], json!(uj), "{key}");
        key
    });
    assert_eq!(fields.len(), named.len() + 1, "and the total");
}

#[test]
fn a_name_of_a_schemes_own_never_hides_a_field() {
    let own = own_beside(&Series::default(), [("erases", 1), ("queue_length", 2)]);
    let names: Vec<&str> = own.keys().map(String::as_str).collect();
    assert_eq!(names, ["own_erases", "queue_length"]);
}

#[derive(Serialize, Deserialize)]
struct Names {
    #[serde(with = "StartName")]
    start: Start,
    #[serde(with = "OrderName")]
    order: ProgramOrder,
    #[serde(with = "MemoryName")]
    memory: Memory,
    #[serde(with = "LevelingName")]
    leveling: WearLeveling,
}

#[test]
fn choices_have_the_names_that_the_core_gives_them() {
    let starts = [Start::Empty, Start::Full];
    let orders = [ProgramOrder::Ascending, ProgramOrder::Any];
    let memories = [Memory::Sram, Memory::Dram, Memory::Pcm, Memory::Flash];
    let levelings = [
        WearLeveling::Off,
        WearLeveling::Dynamic,
        WearLeveling::Static,
    ];
    for (i, memory) in memories.into_iter().enumerate() {
        let names = Names {
            start: starts[i % 2],
            order: orders[i % 2],
            memory,
            leveling: levelings[i % 3],
        };
        let expected: Value = json!({
            "start": names.start.name(),
            "order": names.order.name(),
            "memory": names.memory.name(),
            "leveling": names.leveling.show(),
        });
        assert_eq!(serde_json::to_value(&names).ok(), Some(expected));
    }
}
