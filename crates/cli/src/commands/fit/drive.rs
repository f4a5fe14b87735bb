//! The drive as a configuration: a device of the model's size with the drive's ratio of flash to data.

use crate::errors::{Outcome, Problem};
use crate::fit::measured::Run;
use crate::fit::solve::Fitted;
use crate::fit::{Model, RESERVE, SCHEME};

/// Bytes of a page of the configured device.
const PAGE_BYTES: u32 = 4096;

/// TOML for `floatgate run --config`.
///
/// # Errors
/// If the host sees more than the flash that was found can hold.
pub fn configuration(file: &str, runs: &[Run], model: &Model, best: &Fitted) -> Outcome<String> {
    let spans = runs.iter().map(|run| run.span_bytes).fold(0.0, f64::max);
    let logical = runs
        .iter()
        .find_map(|run| run.logical_bytes)
        .unwrap_or(spans);
    let (size, ratio) = (model.size, best.capacity / logical);
    let blocks = size.blocks_for(ratio);
    if blocks < size.blocks + RESERVE + 1 {
        let text = format!(
            "--out: logical_bytes is {logical}, and the flash that was found holds {:.0}",
            best.capacity
        );
        return Err(Problem::new(text).help("measure the drive when it is full, too"));
    }
    let pages = f64::from(size.space());
    let overhead = best.overhead.map_or(String::new(), |overhead| {
        format!("# The drive writes {overhead:.4} bytes for each byte of pages: multiply write amplification by that.\n")
    });
    let draws = best
        .candidate
        .draws
        .map_or(String::new(), |draws| format!("gc_d = {draws}\n"));
    Ok(format!(
        "# The drive of {}, found by `floatgate fit`: {}, {:.0} bytes of flash for {logical:.0} of the host.\n\
         # A page here stands for {:.0} bytes of the drive. Times are those of the part, not the drive's.\n\
         {overhead}\n\
         [device]\n\
         part = \"slc_large_block\"\n\
         dies = 1\n\
         page_bytes = {PAGE_BYTES}\n\
         pages_per_block = {}\n\
         logical_pages = {pages}\n\
         blocks_per_die = {blocks}\n\n\
         [scheme]\n\
         name = \"{SCHEME}\"\n\n\
         [schemes.{SCHEME}]\n\
         gc_policy = \"{}\"\n\
         streams = \"{}\"\n\
         gc_low = {RESERVE}\n\
         {draws}\n\
         [run]\n\
         ageing = [\"overwrite:3\"]\n",
        file.escape_debug(),
        best.candidate.name,
        best.capacity,
        logical / pages,
        size.pages,
        best.candidate.policy,
        best.candidate.streams(),
    ))
}
