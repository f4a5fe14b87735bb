//! Floatgate's command with one scheme more.

use floatgate_core::Striped;
use my_ftl::Ring;

fn main() -> std::process::ExitCode {
    floatgate::Cli::new().scheme::<Striped<Ring>>().run()
}
