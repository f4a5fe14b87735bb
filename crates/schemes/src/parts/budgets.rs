//! Checks and tables that schemes with the same kind of option share.

use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::refusal::Refusal;
use floatgate_core::report::{Table, bits_for};

/// An instance's share of the required option `log_blocks`, at least `minimum` blocks.
///
/// # Errors
/// If it is missing, cannot be divided by the dies, or is too small.
pub fn log_budget(space: &Space, log_blocks: Option<u32>, minimum: u32) -> Result<u32, Refusal> {
    let Some(log_blocks) = log_blocks else {
        let text = "log_blocks is required: the log blocks of the whole device";
        return Err(Refusal::new("log_blocks", text.into()));
    };
    let share = space.share("log_blocks", log_blocks)?;
    if share < minimum {
        let text = format!(
            "log_blocks = {log_blocks}: at least {minimum} on each of {} dies",
            space.geometry.dies
        );
        return Err(Refusal::new("log_blocks", text));
    }
    Ok(share)
}

/// Entries of a map cache of `bytes`, 8 bytes each, unless their number is given. No device has more pages.
pub fn cache_entries(bytes: u64, entries: Option<u64>) -> u64 {
    entries.unwrap_or(bytes / 8).min(u64::from(u32::MAX))
}

/// Checks that a map cache holds an entry.
///
/// # Errors
/// If it does not.
pub fn check_cache(
    bytes_key: &str,
    bytes: u64,
    entries_key: &str,
    entries: Option<u64>,
) -> Result<(), Refusal> {
    if cache_entries(bytes, entries) > 0 {
        return Ok(());
    }
    let (key, text) = match entries {
        Some(_) => (entries_key, format!("{entries_key} = 0: at least 1 entry")),
        None => (
            bytes_key,
            format!("{bytes_key} = {bytes}: at least 8, the bytes of one entry"),
        ),
    };
    Err(Refusal::new(key, text))
}

/// The tables of BAST and its kin: a block map, and for each log page its LPN and a 32-bit link (LAST++
/// Table II's 2.09 MB for 256 GB and 1,024 log blocks).
pub fn hybrid_tables(geometry: &Geometry, log_blocks: u32) -> Vec<Table> {
    let blocks = u64::from(geometry.logical_blocks());
    let log_pages = u64::from(log_blocks) * u64::from(geometry.pages_per_block);
    vec![
        Table::sram("block map", blocks, bits_for(blocks)),
        Table::sram(
            "log-page map",
            log_pages,
            bits_for(u64::from(geometry.logical_pages)) + 32,
        ),
    ]
}
