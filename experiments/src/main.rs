//! Tables and figures of the papers, measured again: one file of this crate for each.
//!
//! `cargo run --release -p floatgate-experiments -- NAME [--trace FILE] [--json]`
//!
//! Every table has the paper's own number beside ours and says so in its heading.

mod blog_superblock;
mod blog_sweep;
mod faster_table2;
mod hat;
mod kast_bound;
mod lab;
mod lastpp;
mod lastpp_background;
mod table;
mod workload;

use std::process::ExitCode;
use std::time::Instant;

use lab::Lab;
use table::Table;

/// One experiment.
struct Experiment {
    name: &'static str,
    what: &'static str,
    run: fn(&Lab) -> Result<Vec<Table>, String>,
}

const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "lastpp",
        what: "LAST++ beside BAST, FAST, SUPERBLOCK on a recorded trace (LAST++ Figs. 15-17, 19-21, Table V)",
        run: lastpp::run,
    },
    Experiment {
        name: "lastpp-background",
        what: "LAST++ with and without background merges on a recorded trace (LAST++ Fig. 28)",
        run: lastpp_background::run,
    },
    Experiment {
        name: "hat",
        what: "page mapping, HAT, DFTL, FAST, block mapping: response, hits, energy (HAT Tables 1, 5, Figs. 13, 14)",
        run: hat::run,
    },
    Experiment {
        name: "blog-sweep",
        what: "BLogFTL over u, l and the number of log blocks (BLogFTL Tables 4-6, 8)",
        run: blog_sweep::run,
    },
    Experiment {
        name: "blog-superblock",
        what: "SUPERBLOCK against BLogFTL over the share of random writes (BLogFTL Table 7)",
        run: blog_superblock::run,
    },
    Experiment {
        name: "faster-table2",
        what: "mean and deviation of FAST, FASTer and page mapping over the log space (FASTer Table II)",
        run: faster_table2::run,
    },
    Experiment {
        name: "kast-bound",
        what: "KAST over k: association, longest write, merge time (the bound of KAST)",
        run: kast_bound::run,
    },
];

fn help() -> String {
    let mut text = String::from(
        "cargo run --release -p floatgate-experiments -- NAME [--trace FILE] [--json]\n\n\
         NAME is one of these, or all:\n",
    );
    for experiment in EXPERIMENTS {
        text.push_str(&format!("  {:<18} {}\n", experiment.name, experiment.what));
    }
    text.push_str(
        "\n--trace FILE  a recorded trace in any format, or one of the bundled ones: desktop (default), oltp-postgres;\n\
         \x20             experiments with generated workloads take it as a further workload or ignore it (they say so)\n\
         --json        the tables for programs\n",
    );
    text
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Args {
    name: String,
    trace: Option<String>,
    json: bool,
}

fn parse(words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        name: String::new(),
        trace: None,
        json: false,
    };
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => args.json = true,
            "--trace" => args.trace = Some(words.next().ok_or("--trace needs a file")?),
            "--help" | "-h" => args.name = "help".into(),
            option if option.starts_with('-') => return Err(format!("no option {option}")),
            name if args.name.is_empty() => args.name = name.into(),
            other => return Err(format!("{other}: one experiment at a time, or all")),
        }
    }
    if args.name.is_empty() {
        args.name = "help".into();
    }
    Ok(args)
}

fn run(args: &Args) -> Result<(), String> {
    let chosen: Vec<&Experiment> = EXPERIMENTS
        .iter()
        .filter(|e| args.name == "all" || e.name == args.name)
        .collect();
    if chosen.is_empty() {
        return Err(format!("no experiment {:?}\n\n{}", args.name, help()));
    }
    let lab = Lab::new(args.trace.clone());
    let mut documents = Vec::new();
    for experiment in chosen {
        let begin = Instant::now();
        let tables =
            (experiment.run)(&lab).map_err(|text| format!("{}: {text}", experiment.name))?;
        if args.json {
            documents.push(serde_json::json!({
                "experiment": experiment.name,
                "tables": tables.iter().map(Table::json).collect::<Vec<_>>(),
            }));
        } else {
            println!("== {}: {}\n", experiment.name, experiment.what);
            tables.iter().for_each(|table| println!("{}", table.text()));
        }
        eprintln!(
            "{}: {:.1} s",
            experiment.name,
            begin.elapsed().as_secs_f64()
        );
    }
    if args.json {
        println!("{}", serde_json::Value::Array(documents));
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) if args.name == "help" => {
            print!("{}", help());
            return ExitCode::SUCCESS;
        }
        Ok(args) => args,
        Err(text) => {
            eprintln!("error: {text}\n\n{}", help());
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let of = |line: &str| parse(line.split_whitespace().map(str::to_string));
        let args = of("hat --json --trace x.csv").unwrap();
        assert_eq!(
            (args.name.as_str(), args.trace.as_deref(), args.json),
            ("hat", Some("x.csv"), true)
        );
        assert_eq!(of("").unwrap().name, "help");
        assert!(of("hat blog").is_err() && of("--what").is_err() && of("hat --trace").is_err());
    }
}
