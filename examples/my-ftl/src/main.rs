//! Floatgate's command with two schemes more.

use floatgate_core::Striped;
use floatgate_schemes::page::PageBy;
use my_ftl::Ring;
use my_ftl::placement::Often;

fn main() -> std::process::ExitCode {
    floatgate::Cli::new()
        .scheme::<Striped<Ring>>()
        .scheme::<PageBy<Often>>()
        .run()
}
