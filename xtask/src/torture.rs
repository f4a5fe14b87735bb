//! `cargo xtask torture`: every scheme under random power cuts.

use std::process::ExitCode;

use clap::Args;

use crate::kernel;
use crate::process::{cargo, run};
use crate::steps::Steps;

#[derive(Debug, Args)]
pub struct TortureArgs {
    /// How long
    #[arg(long, default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,
    /// Only this scheme
    #[arg(long)]
    scheme: Option<String>,
    /// Where the random numbers begin
    #[arg(long)]
    seed: Option<u64>,
    /// Plays the line that a failure printed, and nothing else
    #[arg(long, value_name = "LINE", conflicts_with_all = ["minutes", "scheme", "seed"])]
    replay: Option<String>,
    /// No cuts of a model but this machine's kernel: ext4, xfs and btrfs on attached devices of every scheme, used by fio,
    /// SQLite, PostMark and PostgreSQL, the process killed ten times in a row. Needs root, FUSE and loop devices
    #[arg(long, conflicts_with_all = ["minutes", "seed", "replay"])]
    kernel: bool,
    /// Guests under QEMU whose disk is a device: QEMU and the device are killed, and what the guest had fsynced is
    /// there when it boots again
    #[arg(long, conflicts_with_all = ["minutes", "seed", "replay"])]
    guests: bool,
}

/// A number of minutes, not below 0.
pub fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().ok();
    let fits = |minutes: &f64| minutes.is_finite() && *minutes >= 0.0;
    minutes.filter(fits).ok_or("a number of minutes".into())
}

/// Prints the cut points tried, or the line that replays a failure.
pub fn torture(args: &TortureArgs) -> ExitCode {
    if args.kernel || args.guests {
        let mut steps = Steps::default();
        let command = ["build", "--release", "--locked", "--bin", "floatgate"];
        if steps.step("build the command", || run(&mut cargo(command))) {
            let scheme = args.scheme.as_deref();
            steps.step("programs of others", kernel::programs_of_the_long_run);
            if args.kernel {
                steps.step("this machine's kernel", || kernel::long(scheme));
            }
            if args.guests {
                steps.step("guests under QEMU", || kernel::guests(scheme));
            }
        }
        return steps.report();
    }
    let mut words = vec![("--minutes", args.minutes.to_string())];
    words.extend(args.scheme.clone().map(|scheme| ("--scheme", scheme)));
    words.extend(args.seed.map(|seed| ("--seed", seed.to_string())));
    if let Some(line) = &args.replay {
        words = vec![("--replay", line.clone())];
    }
    let torture = "run --release --locked --bin floatgate -- torture";
    let mut command = cargo(torture.split(' '));
    for (name, value) in words {
        command.arg(name).arg(value);
    }
    // Its exit code tells wrong arguments from a loss.
    let code = command.status().ok().and_then(|status| status.code());
    let code = code.and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
