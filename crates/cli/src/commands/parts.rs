//! `floatgate parts`.

use floatgate_sim::part::{PARTS, Part};

use crate::args::JsonArgs;
use crate::errors::Outcome;
use crate::output;
use crate::table::{Table, bytes, count, micros};

/// Prints the flash parts.
pub fn run(args: &JsonArgs) -> Outcome<()> {
    if args.json {
        return output::print_json(&PARTS);
    }
    let mut table = Table::new(&[
        "<part",
        "page",
        "spare",
        "pages a block",
        "planes",
        "tR",
        "tPROG",
        "tBERS",
        "endurance",
        "<order",
        "<source",
    ]);
    PARTS.iter().for_each(|part| table.row(cells(part)));
    output::print(&table.render())
}

fn cells(part: &Part) -> [String; 11] {
    let us = |ns: u64| micros(ns as f64 / 1000.0);
    [
        part.name.into(),
        bytes(part.page_bytes.into()),
        bytes(part.oob_bytes.into()),
        part.pages_per_block.to_string(),
        part.planes.to_string(),
        us(part.t_r_ns),
        match part.one_shot {
            1 => us(part.t_prog_ns),
            pages => format!("{} for {pages}", us(part.t_prog_ns)),
        },
        us(part.t_bers_ns),
        part.endurance
            .map_or_else(|| "-".into(), |n| count(n.into())),
        part.program_order.into(),
        part.source.into(),
    ]
}
