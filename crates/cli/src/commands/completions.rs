//! `floatgate completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::errors::Outcome;
use crate::output;

/// Prints the completion script of a shell.
pub fn run(shell: Shell) -> Outcome<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "floatgate", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
