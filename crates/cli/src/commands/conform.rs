//! `floatgate conform`: schemes and clock against vectors, to the last digit.

use std::path::Path;

use floatgate_catalog::Scheme;
use floatgate_sim::conform::{
    Difference, check_timing, config_of, differences, is_timing, parse_requests, timing_json,
};
use floatgate_sim::record::Counters;
use serde_json::{Value, json};

use super::schemes::find;
use crate::args::ConformArgs;
use crate::config::sizing::{Failure, guarded};
use crate::errors::{EXIT_DIFFERENT, EXIT_USER, Outcome, Problem};
use crate::output;

/// What came of one vector.
enum Verdict {
    Equal,
    Different(Vec<Difference>),
    /// The scheme gave no counters, or the clock other times.
    Failed(String),
    /// The file cannot be used.
    Unusable(Problem),
}

/// Runs the vectors; exit code 1 on a difference, 2 if a file cannot be used.
pub fn run(args: &ConformArgs, schemes: &[Scheme]) -> Outcome<u8> {
    let mut code = 0;
    let mut results = Vec::new();
    for file in &args.files {
        if args.print {
            match counters(file, schemes) {
                Ok(vector) => output::print(&format!("{vector}\n"))?,
                Err(problem) => {
                    output::tell(&problem.to_string());
                    code = EXIT_USER;
                }
            }
            continue;
        }
        let verdict = check(file, schemes);
        code = code.max(code_of(&verdict));
        if args.json {
            results.push(verdict_json(file, &verdict));
        } else {
            output::print(&verdict_text(file, &verdict))?;
        }
    }
    if args.json {
        output::print_json(&results)?;
    }
    Ok(code)
}

fn code_of(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Equal => 0,
        Verdict::Different(_) | Verdict::Failed(_) => EXIT_DIFFERENT,
        Verdict::Unusable(_) => EXIT_USER,
    }
}

fn verdict_text(file: &Path, verdict: &Verdict) -> String {
    let name = file.display();
    match verdict {
        Verdict::Equal => format!("equal     {name}\n"),
        Verdict::Failed(text) => format!("DIFFERENT {name}\n    {text}\n"),
        Verdict::Unusable(problem) => format!("UNUSABLE  {name}\n    {problem}\n"),
        Verdict::Different(found) => {
            let lines: Vec<String> = found
                .iter()
                .map(|d| format!("    {}: expected {}, got {}\n", d.key, d.expected, d.got))
                .collect();
            format!("DIFFERENT {name}\n{}", lines.concat())
        }
    }
}

fn verdict_json(file: &Path, verdict: &Verdict) -> Value {
    let (word, differences, message) = match verdict {
        Verdict::Equal => ("equal", vec![], None),
        Verdict::Different(found) => {
            let found = found
                .iter()
                .map(|d| json!({"key": d.key, "expected": d.expected, "got": d.got}))
                .collect();
            ("different", found, None)
        }
        Verdict::Failed(text) => ("different", vec![], Some(text.clone())),
        Verdict::Unusable(problem) => ("unusable", vec![], Some(problem.message().to_string())),
    };
    json!({"file": file.display().to_string(), "verdict": word, "differences": differences, "message": message})
}

fn read(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file)
        .map_err(|error| Problem::new(format!("cannot read {}: {error}", file.display())))
}

fn vector_of(file: &Path) -> Outcome<Value> {
    serde_json::from_str(&read(file)?).map_err(|error| {
        Problem::new(format!("{}: this is no JSON: {error}", file.display()))
            .help("vectors are described in docs/spec/vectors/README.md")
    })
}

fn check(file: &Path, schemes: &[Scheme]) -> Verdict {
    let vector = match vector_of(file) {
        Ok(vector) => vector,
        Err(problem) => return Verdict::Unusable(problem),
    };
    if is_timing(&vector) {
        return match check_timing(vector) {
            Ok(()) => Verdict::Equal,
            Err(text) => Verdict::Failed(text),
        };
    }
    let Some(expected) = vector.get("counters") else {
        return Verdict::Unusable(Problem::new(format!(
            "{}: no \"counters\" in the vector",
            file.display()
        )));
    };
    match play(file, &vector, schemes) {
        Ok(Ok(got)) => match differences(expected, &got) {
            found if found.is_empty() => Verdict::Equal,
            found => Verdict::Different(found),
        },
        Ok(Err(text)) => Verdict::Failed(text),
        Err(problem) => Verdict::Unusable(problem),
    }
}

/// The counters that come out, or why none do; the outer error is about the file.
fn play(file: &Path, vector: &Value, schemes: &[Scheme]) -> Outcome<Result<Counters, String>> {
    let name = file.display();
    let config = config_of(vector)
        .map_err(|refusal| Problem::new(format!("{name}: {}", refusal.message)))?;
    let scheme = find(schemes, &config.scheme)?;
    let text = file.with_extension("txt");
    let requests = parse_requests(&read(&text)?)
        .map_err(|error| Problem::new(format!("{}, {error}", text.display())))?;
    let result = guarded(|| Ok(scheme.life.simulated.conform(&config, &requests)));
    Ok(match result {
        Ok(counters) => counters,
        Err(Failure::Bug(text)) => Err(text),
        Err(Failure::Refused(refusal)) => Err(refusal.message),
        Err(Failure::Trace(text)) => Err(text),
    })
}

/// The vector with what came out in the place of what should.
fn counters(file: &Path, schemes: &[Scheme]) -> Outcome<Value> {
    let mut vector = vector_of(file)?;
    let failed = |text: String| Problem::new(format!("{}: {text}", file.display()));
    if is_timing(&vector) {
        let got = timing_json(vector.clone()).map_err(failed)?;
        for key in ["times", "total"] {
            vector[key] = got[key].clone();
        }
        return Ok(vector);
    }
    let got = play(file, &vector, schemes)?.map_err(failed)?;
    vector["counters"] = serde_json::to_value(got).map_err(|error| failed(error.to_string()))?;
    Ok(vector)
}
