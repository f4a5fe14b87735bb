//! `floatgate recipe fit`: the commands that measure a drive, as a script. Nothing is run here.

use crate::args::RecipeFitArgs;
use crate::errors::{Outcome, Problem};
use crate::fit::Workload;
use crate::output;

/// The script, with the places that arguments fill.
const FIT: &str = include_str!("../recipes/fit.sh");
/// How each kind of counter is read: bytes of the host, and bytes written to flash.
const OCP: &str = include_str!("../recipes/ocp.sh");
const NONE: &str = include_str!("../recipes/none.sh");
const SERVED: &str = include_str!("../recipes/served.sh");

/// Prints the script.
pub fn fit(args: &RecipeFitArgs) -> Outcome<()> {
    output::print(&script(args)?)
}

fn script(args: &RecipeFitArgs) -> Outcome<String> {
    let is_uri = args.device.starts_with("nbd");
    let plain =
        |what: &str, text: &str| match text.is_empty() || text.contains(|c: char| c.is_control()) {
            true => Err(
                Problem::new(format!("{what}: {text:?} cannot stand in a script"))
                    .help("a name without line breaks"),
            ),
            false => Ok(()),
        };
    plain("DEVICE", &args.device)?;
    plain("--out", &args.out)?;
    if is_uri && args.served.is_none() {
        return Err(Problem::new(format!(
            "{}: a device over NBD has no counters of its own",
            args.device
        ))
        .help("--served SOCKET, the control socket of `floatgate serve`"));
    }
    if let Some(socket) = &args.served {
        plain("--served", socket)?;
    }
    let counters = match (&args.served, &*args.counter) {
        (Some(socket), _) => SERVED.replace("@CONTROL@", &quoted(socket)),
        (None, "ocp") => OCP.into(),
        _ => NONE.into(),
    };
    let mut runs = String::new();
    for level in &args.fill {
        runs += &format!("measure 'fill-{level}' 'uniform' {level} 'random'\n");
    }
    for skew in &args.skew {
        runs += &format!("measure '{skew}' '{skew}' 100 '{}'\n", distribution(skew)?);
    }
    let (engine, target) = match is_uri {
        true => ("nbd", "uri"),
        false => ("libaio", "filename"),
    };
    Ok(FIT
        .replace("@COUNTERS@", counters.trim_end())
        .replace("@RUNS@", runs.trim_end())
        .replace("@ENGINE@", engine)
        .replace("@TARGET@", target)
        .replace("@ROUNDS@", &args.rounds.to_string())
        .replace("@EVERY@", &args.every.to_string())
        .replace("@OUT@", &quoted(&args.out))
        .replace("@DEVICE@", &quoted(&args.device)))
}

/// As the shell takes it for one word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The same workload for fio.
fn distribution(workload: &Workload) -> Outcome<String> {
    match workload {
        Workload::Uniform => Ok("random".into()),
        Workload::FioZipf { theta } if *theta == 1.0 => Err(Problem::new(
            "--skew fio-zipf(1): fio does not take exactly 1",
        )
        .help("fio-zipf(0.99)")),
        Workload::FioZipf { theta } => Ok(format!("zipf:{theta}")),
        Workload::Hot { writes, pages } => Ok(format!(
            "zoned:{writes}/{pages}:{}/{}",
            100 - writes,
            100 - pages
        )),
        Workload::Zipf { theta } => {
            let problem = Problem::new(format!(
                "--skew zipf({theta}): fio spreads its ranks by a hash"
            ));
            Err(problem.help(format!("fio-zipf({theta})")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_what_fio_calls_them() {
        let of = |name: &str| distribution(&Workload::parse(name).unwrap());
        assert_eq!(of("uniform").unwrap(), "random");
        assert_eq!(of("fio-zipf(0.8)").unwrap(), "zipf:0.8");
        assert_eq!(of("hot(90/10)").unwrap(), "zoned:90/10:10/90");
        assert!(
            of("fio-zipf(1)")
                .unwrap_err()
                .to_string()
                .contains("fio-zipf(0.99)")
        );
        assert!(
            of("zipf(0.8)")
                .unwrap_err()
                .to_string()
                .contains("fio-zipf(0.8)")
        );
    }

    #[test]
    fn words_stay_words_in_the_shell() {
        assert_eq!(quoted("a b'; rm -rf $HOME"), "'a b'\\''; rm -rf $HOME'");
    }
}
