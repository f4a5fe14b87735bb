//! `floatgate recovery`.

use floatgate_catalog::Scheme;
use floatgate_core::Start;
use floatgate_core::described::RecoveryCost;
use floatgate_core::options::{Setting, Value as Word};
use floatgate_sim::config::{Device, Host, RunConfig};
use floatgate_sim::part::{PARTS, part};
use floatgate_sim::record::recovery::{RecoveryDevice, RecoveryDocument, RecoveryRow};
use floatgate_sim::recovery::time_ns;

use super::schemes::find;
use crate::args::RecoveryArgs;
use crate::errors::{Outcome, Problem};
use crate::output;
use crate::table::{Table, count, micros};

/// Blocks beside the data blocks, in percent of these: room for every scheme's log blocks and reserve.
const SPARE_PERCENT: u64 = 7;
/// Data blocks for each log block: 1,024 log blocks at 256 GiB.
const DATA_BLOCKS_A_LOG_BLOCK: u64 = 512;
const LOG_BLOCKS_A_DIE_MIN: u64 = 8;
/// Entries in a map page unless an option says otherwise.
const MAP_ENTRIES_A_PAGE: u32 = 512;

/// Prints what bringing a device back takes, scheme by scheme.
pub fn run(args: &RecoveryArgs, schemes: &[Scheme]) -> Outcome<()> {
    let device = device_of(args)?;
    let shown: Vec<&Scheme> = match args.scheme.is_empty() {
        true => schemes.iter().collect(),
        false => args
            .scheme
            .iter()
            .map(|name| find(schemes, name))
            .collect::<Outcome<_>>()?,
    };
    let mut rows = Vec::new();
    for scheme in shown {
        for variant in variants(scheme, &device) {
            rows.extend(rows_of(args, scheme, &device, variant)?);
        }
    }
    match args.json {
        true => output::print_json(&RecoveryDocument {
            device: RecoveryDevice::of(&device),
            rows,
        }),
        false => print_table(&device, &rows),
    }
}

fn device_of(args: &RecoveryArgs) -> Outcome<Device> {
    let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    let mut part = part(&args.part).cloned().ok_or_else(|| {
        Problem::new(format!("no part {}", args.part)).help(format!("one of {}", known.join(", ")))
    })?;
    if let Some(bytes) = args.page {
        part.page_bytes = u32::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes <= 1 << 24)
            .ok_or_else(|| Problem::new(format!("--page {bytes}: at most 16 MiB")))?;
    }
    part.pages_per_block = args.pages_per_block.unwrap_or(part.pages_per_block);
    let unit = u64::from(args.dies) * u64::from(part.pages_per_block);
    let logical_pages = args
        .size
        .div_ceil(part.page_bytes.into())
        .next_multiple_of(unit);
    let data = logical_pages / unit;
    let spare = (data * SPARE_PERCENT)
        .div_ceil(100)
        .max(2 * LOG_BLOCKS_A_DIE_MIN);
    let blocks = u32::try_from(data + spare).unwrap_or(u32::MAX);
    let device = Device::one_die_a_channel(part, args.dies, blocks, logical_pages);
    device
        .geometry()
        .map_err(|refusal| Problem::new(refusal.message))?;
    Ok(device)
}

fn data_blocks(device: &Device) -> u64 {
    device.logical_pages / u64::from(device.part.pages_per_block)
}

/// Each value of the options that change the means of recovery.
fn variants(scheme: &Scheme, device: &Device) -> Vec<Vec<(String, Word)>> {
    let has = |key: &str| scheme.info.options.iter().any(|option| option.key == key);
    let mut variants = vec![Vec::new()];
    let mut offer = |key: &str, values: &[Word]| {
        if has(key) {
            let with = |value: &Word, others: &Vec<(String, Word)>| {
                let mut options = others.clone();
                options.push((key.to_string(), value.clone()));
                options
            };
            variants = values
                .iter()
                .flat_map(|value| variants.iter().map(move |others| with(value, others)))
                .collect();
        }
    };
    offer("map_blocks", &[Word::Int(0), Word::Int(map_blocks(device))]);
    offer("summary_pages", &[Word::Bool(false), Word::Bool(true)]);
    let modes = ["NOFLUSH", "TIMEOUT", "PAGE", "REQ"];
    offer("integrity", &modes.map(|mode| Word::Text(mode.into())));
    variants
}

/// As few map blocks as hold the map of a die, with an entry for every block.
fn map_blocks(device: &Device) -> i64 {
    let pages = device.blocks.div_ceil(MAP_ENTRIES_A_PAGE) + 1;
    i64::from(pages.div_ceil(device.part.pages_per_block)) + 1
}

fn rows_of(
    args: &RecoveryArgs,
    scheme: &Scheme,
    device: &Device,
    variant: Vec<(String, Word)>,
) -> Outcome<Vec<RecoveryRow>> {
    let words: Vec<String> = variant
        .iter()
        .map(|(key, value)| match value {
            Word::Bool(on) => format!("{key}={on}"),
            Word::Int(number) => format!("{key}={number}"),
            Word::Text(word) => format!("{key}={word}"),
        })
        .collect();
    let mut options = variant;
    if let Some(option) = scheme.info.filled_from(Setting::LogBlocks) {
        let dies = u64::from(device.dies);
        let share = data_blocks(device) / DATA_BLOCKS_A_LOG_BLOCK / dies;
        let by_size = share.max(LOG_BLOCKS_A_DIE_MIN) * dies;
        let log_blocks = args.log_blocks.map_or(by_size, u64::from);
        if !log_blocks.is_multiple_of(dies) {
            let text = format!("--log-blocks {log_blocks} cannot be divided by {dies} dies");
            return Err(Problem::new(text));
        }
        options.push((option.key.into(), Word::Int(log_blocks as i64)));
    }
    let config = RunConfig {
        device: device.clone(),
        start: Start::Full,
        ageing: Vec::new(),
        host: Host::default(),
        scheme: scheme.info.key.into(),
        options,
    };
    let costs = scheme
        .life
        .simulated
        .recovery_costs(&config)
        .map_err(|refusal| Problem::new(format!("{}: {refusal}", scheme.info.key)))?;
    let machine = device.machine();
    let row = |cost: &RecoveryCost| {
        let time_ns = time_ns(&machine, cost);
        RecoveryRow::of(scheme.info.key, words.join(" "), cost, time_ns)
    };
    Ok(costs.iter().map(row).collect())
}

fn after(row: &RecoveryRow) -> &'static str {
    match row.is_after_shutdown {
        true => "a shutdown",
        false => "a cut",
    }
}

fn print_table(device: &Device, rows: &[RecoveryRow]) -> Outcome<()> {
    let mut table = Table::new(&[
        "<scheme",
        "<options",
        "<means",
        "<after",
        "OOB reads",
        "page reads",
        "PCM reads",
        "programs",
        "erases",
        "<time",
    ]);
    for row in rows {
        let mut cells = vec![
            row.scheme.clone(),
            row.options.clone(),
            row.means.clone(),
            after(row).to_string(),
        ];
        let counts = [
            row.oob_reads,
            row.page_reads,
            row.pcm_reads,
            row.programs,
            row.erases,
        ];
        cells.extend(counts.map(count));
        cells.push(micros(row.time_ns as f64 / 1000.0));
        table.row(cells);
    }
    let part = &device.part;
    output::print(&format!(
        "{}\n{} dies of {} blocks of {} pages of {} bytes ({}), a die a channel. At most, with every block full.\n",
        table.render(),
        device.dies,
        count(device.blocks.into()),
        part.pages_per_block,
        part.page_bytes,
        part.name
    ))
}
