//! A device that is saved and loaded goes on exactly as the one that was aged in the same run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use floatgate_catalog as _;
use floatgate_core::catalog::Entry;
use floatgate_core::options::Value;
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{ProgramOrder, Start};
use floatgate_sim::blocks::BlockRow;
use floatgate_sim::config::{Beyond, Device, Host, Recipe, RunConfig};
use floatgate_sim::part::part;
use floatgate_sim::record::Record;
use floatgate_sim::requests::RequestRow;
use floatgate_sim::run::{Besides, Decoded, RunError, Simulated};
use floatgate_trace::{Op, Request};

const PAGE_BYTES: u64 = 4096;

fn pick<T: Clone>(rng: &mut SplitMix64, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

/// A random small device with random options and ageing that the scheme accepts.
fn configuration(scheme: &Entry<Simulated>, rng: &mut SplitMix64) -> RunConfig {
    loop {
        let mut part = part("mt29f16g08").expect("a preset").clone();
        part.pages_per_block = pick(rng, &[4, 8, 16]);
        part.page_bytes = PAGE_BYTES as u32;
        let dies = pick(rng, &[1, 2, 3]);
        let data = 6 + rng.below(10) as u32;
        let pages = u64::from(dies) * u64::from(data) * u64::from(part.pages_per_block);
        let blocks = data + 8 + rng.below(12) as u32;
        let mut device = Device::one_die_a_channel(part, dies, blocks, pages);
        device.channels = 1 + rng.below(dies.into()) as u32;
        device.program_order = pick(rng, &[ProgramOrder::Ascending, ProgramOrder::Any]);
        device.wear_leveling = pick(
            rng,
            &[
                WearLeveling::Off,
                WearLeveling::Dynamic,
                WearLeveling::Static,
            ],
        );
        device.wear_gap = 2;
        let mut options = Vec::new();
        for option in &scheme.info.options {
            let words = option.words(dies);
            if !words.is_empty() && rng.below(3) == 0 {
                let word = pick(rng, &words);
                options.push((option.key.into(), Value::from_word(&word)));
            }
        }
        if let Some(option) = scheme.info.options.iter().find(|o| o.key == "log_blocks")
            && !options.iter().any(|(key, _)| key == option.key)
        {
            options.push((option.key.into(), Value::Int(i64::from(5 * dies))));
        }
        let steps = [
            Recipe::Fill,
            Recipe::Overwrite(0.3),
            Recipe::Overwrite(1.7),
            Recipe::Settle,
            Recipe::Replay,
        ];
        let config = RunConfig {
            device,
            start: pick(rng, &[Start::Empty, Start::Full]),
            ageing: (0..rng.below(4)).map(|_| pick(rng, &steps)).collect(),
            host: Host {
                beyond: Beyond::Compact,
                compact_region_pages: 4,
                ..Host::default()
            },
            scheme: scheme.info.key.into(),
            options,
        };
        if scheme.life.drive(&config).is_ok() {
            return config;
        }
    }
}

/// Reads, writes and trims of parts of pages and of many, near in time and far, all over a sparse address space.
fn requests(config: &RunConfig, rng: &mut SplitMix64, count: u64) -> Vec<Request> {
    let regions = config.device.logical_pages / 4;
    let mut arrival_ns = 0;
    let mut request = |_| {
        arrival_ns += pick(rng, &[0, 1_000, 3_000_000, 900_000_000]);
        let region = rng.below(regions);
        // Four pages of every hundred.
        let offset = region * 4 * PAGE_BYTES * 25 + rng.below(4 * PAGE_BYTES / 512) * 512;
        let end = region * 4 * PAGE_BYTES * 25 + 4 * PAGE_BYTES;
        Request {
            arrival_ns,
            op: pick(rng, &[Op::Read, Op::Write, Op::Write, Op::Trim]),
            volume: 0,
            stream: floatgate_trace::Stream::NONE,
            offset,
            bytes: (1 + rng.below(3 * PAGE_BYTES / 512) * 512).min(end - offset),
        }
    };
    (0..count).map(&mut request).collect()
}

/// A record, the rows of requests, and those of blocks.
type Ran = (Record, Vec<RequestRow>, Vec<BlockRow>);

/// What comes of a run that saves the state of its device.
fn saving(
    life: &Simulated,
    config: &RunConfig,
    trace: &[Request],
) -> Result<(Ran, Vec<u8>), RunError> {
    let mut state = Vec::new();
    let (mut rows, mut blocks) = (Vec::new(), Vec::new());
    let besides = Besides {
        rows: Some(&mut |some| {
            rows.extend_from_slice(some);
            Ok(())
        }),
        blocks: Some(&mut blocks),
        save: Some(&mut |bytes| {
            state = bytes;
            Ok(())
        }),
        ..Besides::default()
    };
    let record = life.run_with(config, &mut Decoded::new(trace), &mut |_| {}, besides)?;
    Ok(((record, rows, blocks), state))
}

fn loading(
    life: &Simulated,
    config: &RunConfig,
    trace: &[Request],
    state: &[u8],
) -> Result<Ran, RunError> {
    let (mut rows, mut blocks) = (Vec::new(), Vec::new());
    let besides = Besides {
        rows: Some(&mut |some| {
            rows.extend_from_slice(some);
            Ok(())
        }),
        blocks: Some(&mut blocks),
        load: Some(state.to_vec()),
        ..Besides::default()
    };
    let record = life.run_with(config, &mut Decoded::new(trace), &mut |_| {}, besides)?;
    Ok((record, rows, blocks))
}

#[test]
fn a_loaded_device_goes_on_as_the_aged_one() {
    for (seed, scheme) in (1..).zip(floatgate_schemes::catalog::<Simulated>().iter()) {
        for round in 0..12 {
            let mut rng = SplitMix64::new(1000 * round + seed);
            let config = configuration(scheme, &mut rng);
            let trace = requests(&config, &mut rng, 400);
            let case = format!("{} in round {round}: {config:?}", scheme.info.key);
            let plain = scheme
                .life
                .run(&config, &mut Decoded::new(&trace), &mut |_| {})
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            let (aged, state) = saving(&scheme.life, &config, &trace)
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(aged.0, plain, "saving changes nothing: {case}");
            let mut loaded = loading(&scheme.life, &config, &trace, &state)
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(loaded.0.ageing.iter().all(|step| step.loaded));
            loaded
                .0
                .ageing
                .iter_mut()
                .for_each(|step| step.loaded = false);
            assert_eq!(loaded, aged, "{case}");
        }
    }
}

/// A state that is cut short or changed in a byte is refused, or is one that the scheme's audit cannot tell from a right
/// one. Nothing takes for ever; a table that does not hang together may make a scheme panic, which the command catches.
#[test]
fn damaged_states_are_refused() {
    let (mut refused, mut all) = (0, 0);
    for (seed, scheme) in (1..).zip(floatgate_schemes::catalog::<Simulated>().iter()) {
        let mut rng = SplitMix64::new(seed);
        let config = configuration(scheme, &mut rng);
        let trace = requests(&config, &mut rng, 100);
        let (_, state) = saving(&scheme.life, &config, &trace).expect("it runs");
        let cut = &state[..rng.below(state.len() as u64) as usize];
        let cut = loading(&scheme.life, &config, &trace, cut);
        assert!(
            matches!(cut, Err(RunError::State(_))),
            "{}",
            scheme.info.key
        );
        let longer = [&state[..], &[0]].concat();
        let longer = loading(&scheme.life, &config, &trace, &longer);
        assert!(
            matches!(longer, Err(RunError::State(_))),
            "{}",
            scheme.info.key
        );
        for _ in 0..60 {
            let mut wrong = state.clone();
            let at = rng.below(wrong.len() as u64) as usize;
            wrong[at] ^= 1 << rng.below(8);
            let ran = catch_unwind(AssertUnwindSafe(|| {
                loading(&scheme.life, &config, &trace, &wrong)
            }));
            all += 1;
            refused += u32::from(matches!(ran, Ok(Err(RunError::State(_))) | Err(_)));
        }
    }
    // Most bytes are those of tables, and most of these are checked against others.
    assert!(refused * 3 > all, "only {refused} of {all} were refused");
}
