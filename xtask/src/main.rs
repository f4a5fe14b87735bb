//! The project's own chores: `cargo xtask test` passes the tests, whatever that needs.

mod fuzz;
mod gate;
mod instructions;
mod kernel;
mod mutants;
mod process;
mod python;
mod scheme;
mod steps;
mod torture;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use steps::Steps;

/// The chores of Floatgate.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_version_flag = true
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Everything a change must pass; ends with a table of steps and their times
    Test(gate::TestArgs),
    /// Power cuts at random, on every scheme; prints a line that replays a failure
    Torture(torture::TortureArgs),
    /// libFuzzer on everything that reads bytes
    Fuzz(fuzz::FuzzArgs),
    /// Plants bugs in a copy of the source, one after the other, and tells which of them the tests notice
    Mutants(mutants::MutantsArgs),
    /// A crate for a scheme of your own, copied from the example, that builds where it lies
    Scheme(scheme::SchemeArgs),
    /// Counts the instructions that a host write costs, against xtask/instructions.json; part of test
    Instructions,
    /// Builds the wheel for Python, installs it below the target folder and runs its tests; part of test
    Python,
}

fn main() -> ExitCode {
    match Arguments::parse().chore {
        Chore::Test(args) => gate::test(&args),
        Chore::Torture(args) => torture::torture(&args),
        Chore::Fuzz(args) => fuzz::chore(&args),
        Chore::Mutants(args) => mutants::mutants(&args),
        Chore::Scheme(args) => scheme::scheme(&args),
        Chore::Instructions => {
            let mut steps = Steps::default();
            steps.step("instructions", instructions::check);
            steps.report()
        }
        Chore::Python => {
            let mut steps = Steps::default();
            steps.step(python::STEP, python::check);
            steps.report()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn refused(words: &[&str]) -> clap::Error {
        let words = ["cargo xtask"].iter().chain(words);
        Arguments::try_parse_from(words).expect_err("no such argument")
    }

    #[test]
    fn the_arguments_are_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_no_chore_knows_is_an_error_with_exit_code_2() {
        for words in [
            &["tset"][..],
            &["test", "--quickly"],
            &["test", "core"],
            &["torture", "--minutes", "x"],
            &["fuzz", "--target", "nothing"],
            &["fuzz", "--minutes", "-1"],
            &["mutants", "--only", "x"],
            &["mutants", "--jobs", "0"],
            &["instructions", "--quick"],
        ] {
            assert_eq!(refused(words).exit_code(), 2, "{words:?}");
        }
    }

    #[test]
    fn every_chore_has_help_of_its_own() {
        for chore in [
            "test",
            "torture",
            "fuzz",
            "mutants",
            "instructions",
            "python",
        ] {
            let help = refused(&[chore, "--help"]);
            assert_eq!(help.kind(), ErrorKind::DisplayHelp);
            assert_eq!(help.exit_code(), 0);
            assert!(help.to_string().contains(&format!("cargo xtask {chore}")));
        }
    }
}
