//! `floatgate schema`.

use floatgate_sim::record::schema;

use crate::errors::Outcome;
use crate::output;

/// Prints the JSON schema of what the other commands print for programs.
pub fn run() -> Outcome<()> {
    output::print_json(&schema())
}
