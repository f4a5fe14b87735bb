//! What is told of intervals and states.

use floatgate_serve::crash::history::Change;
use floatgate_serve::crash::{History, Plan, State};
use floatgate_serve::log::Ended;
use serde_json::{Value, json};

use super::Found;
use super::explore::Bad;
use crate::args::CrashExploreArgs;
use crate::errors::Outcome;
use crate::output;
use crate::table::{Table, bytes, count};

/// Losses of a state that are told one by one.
const TOLD_MAX: usize = 12;

/// Lists the intervals and how many states of each are in the plan.
pub fn list(args: &CrashExploreArgs, history: &History, plan: &Plan) -> Outcome<()> {
    let mut states = vec![0u64; history.intervals.len()];
    for state in &plan.states {
        states[state.interval] += 1;
    }
    let mut rows = Vec::new();
    let mut table = Table::new(&[
        "interval",
        "changes",
        "FUA",
        "trims",
        "bytes",
        "marks before",
        "states",
    ]);
    for (number, (interval, states)) in history.intervals.iter().zip(states).enumerate() {
        let of = |is: &dyn Fn(&Change) -> bool| interval.changes.iter().filter(|c| is(c)).count();
        let (fua, trims) = (of(&|c| c.fua), of(&|c| c.place.is_none()));
        let written = interval.changes.iter().filter(|c| c.place.is_some());
        let written: u64 = written.map(|change| change.bytes).sum();
        let changes = interval.changes.len();
        table.row([
            number.to_string(),
            count(changes as u64),
            fua.to_string(),
            trims.to_string(),
            bytes(written as f64),
            count(interval.marks as u64),
            count(states),
        ]);
        rows.push(json!({"interval": number, "changes": changes, "fua": fua, "trims": trims, "bytes": written,
            "marks": interval.marks, "states": states}));
    }
    if args.json {
        return output::print_json(
            &json!({"log": about(args, history), "intervals": rows, "states": states_of(plan)}),
        );
    }
    output::print(&format!(
        "{}\n\n{}\n{}\n",
        heading(args, history),
        table.render(),
        outlook(plan)
    ))
}

fn about(args: &CrashExploreArgs, history: &History) -> Value {
    json!({
        "file": args.log.to_string_lossy(),
        "device_bytes": history.header.device_bytes,
        "intervals": history.intervals.len(),
        "changes": changes(history),
        "marks": history.marks.len(),
        "ended": match history.ended {
            Ended::ShutDown => "shut down",
            Ended::Cut => "power cut",
            Ended::Killed => "killed",
        },
    })
}

fn states_of(plan: &Plan) -> Value {
    json!({"planned": plan.states.len(), "equal": plan.equal, "all": plan.is_exhaustive})
}

fn changes(history: &History) -> usize {
    history.intervals.iter().map(|i| i.changes.len()).sum()
}

fn heading(args: &CrashExploreArgs, history: &History) -> String {
    let end = match history.ended {
        Ended::ShutDown => "",
        Ended::Cut => "; it ends where the power was cut",
        Ended::Killed => "; it ends where its writer was killed",
    };
    format!(
        "{}: {}, {} changes in {} intervals between flushes, {} marks{end}",
        args.log.display(),
        bytes(history.header.device_bytes as f64),
        count(changes(history) as u64),
        count(history.intervals.len() as u64),
        count(history.marks.len() as u64),
    )
}

fn outlook(plan: &Plan) -> String {
    let all = match plan.is_exhaustive {
        true => "all that there are",
        false => "a choice: --states takes more, --seed others",
    };
    let states = count(plan.states.len() as u64);
    format!("{states} states, {all}")
}

/// Tells what came of the checks.
pub fn tell(args: &CrashExploreArgs, history: &History, plan: &Plan, found: &Found) -> Outcome<()> {
    if args.json {
        let value = json!({
            "log": about(args, history),
            "states": states_of(plan),
            "checked": found.checked,
            "bad": found.bad.iter().map(|bad| told(args, history, bad)).collect::<Vec<_>>(),
            "least": found.least.as_ref().map(|(bad, _)| told(args, history, bad)),
            "seconds": found.seconds,
        });
        return output::print_json(&value);
    }
    let mut text = format!("{}\n", heading(args, history));
    if args.keep_going && found.bad.len() > 1 {
        for bad in &found.bad {
            text += &format!("bad: {}  ({})\n", bad.state, bad.why);
        }
    }
    if let Some((bad, checks)) = &found.least {
        text += &format!("\nBAD: {}\n", described(history, &bad.state));
        text += &format!("the check: {}\n", bad.why);
        for line in bad.words.lines() {
            text += &format!("  | {line}\n");
        }
        if *checks > 0 {
            text += &format!("reduced to these losses; checks that it took: {checks}\n");
        }
        text += &format!("again:\n  {}\n\n", repeat(args, &bad.state));
    }
    let how_many = count(found.bad.len() as u64);
    text += &match (&found.least, &args.state) {
        (None, Some(_)) => "good\n".into(),
        (None, None) => format!("none bad in {:.1} s: {}\n", found.seconds, outlook(plan)),
        (Some(_), _) => format!(
            "{how_many} bad of {} checked in {:.1} s\n",
            count(found.checked as u64),
            found.seconds
        ),
    };
    output::print(&text)
}

fn told(args: &CrashExploreArgs, history: &History, bad: &Bad) -> Value {
    let interval = &history.intervals[bad.state.interval];
    let lost = bad.state.dropped.iter().map(|&at| {
        let change = &interval.changes[at as usize - 1];
        let kind = if change.place.is_some() {
            "write"
        } else {
            "trim"
        };
        json!({"change": at, "kind": kind, "offset": change.offset, "bytes": change.bytes})
    });
    json!({
        "state": bad.state.to_string(),
        "marks": bad.state.marks(interval),
        "lost": lost.collect::<Vec<_>>(),
        "why": bad.why,
        "words": bad.words,
        "repeat": repeat(args, &bad.state),
    })
}

/// The line that checks one state again.
fn repeat(args: &CrashExploreArgs, state: &State) -> String {
    let log = quoted(&args.log.to_string_lossy());
    let check = args.check.as_deref().unwrap_or_default();
    format!(
        "floatgate crash-explore {log} --check {} --state {state}",
        quoted(check)
    )
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A state in words.
pub fn described(history: &History, state: &State) -> String {
    let interval = &history.intervals[state.interval];
    let changes = interval.changes.len();
    let mut text = format!(
        "interval {} after {} of {changes} changes",
        state.interval, state.cut
    );
    let marks = state.marks(interval);
    if let Some(last) = marks.checked_sub(1).and_then(|n| history.marks.get(n)) {
        text += &format!(
            ", {} marks said, the last one {last:?}",
            count(marks as u64)
        );
    }
    let lost = state.dropped.len();
    text += &match lost {
        0 => ", nothing before the cut lost".into(),
        _ => format!(", {} lost", count(lost as u64)),
    };
    let change = |at: u32| {
        let change = &interval.changes[at as usize - 1];
        let kind = if change.place.is_some() {
            "write"
        } else {
            "trim"
        };
        format!(
            "{at}, a {kind} of {} bytes at {}",
            change.bytes, change.offset
        )
    };
    for &at in state.dropped.iter().take(TOLD_MAX) {
        text += &format!("\n  lost: {}", change(at));
    }
    if lost > TOLD_MAX {
        text += &format!("\n  and {} more", lost - TOLD_MAX);
    }
    if let Some((at, sectors)) = state.torn {
        text += &format!(
            "\n  torn: {}, of which {sectors} sectors are there",
            change(at)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("a/b.log"), "a/b.log");
        assert_eq!(quoted("echo 'x' {}"), r"'echo '\''x'\'' {}'");
        assert_eq!(quoted(""), "''");
    }
}
