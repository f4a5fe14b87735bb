//! Several flows at once, from the command line and from a file.

mod common;

use common::Place;

const HOST: &str = "run --scheme page --set host.queue_depth=4 --set host.arbitration=weighted";
const READERS: &str = "trace=uniform:space=8192:requests=6000:reads=100";

#[test]
fn a_file_and_the_command_line_say_the_same() {
    let place = Place::new();
    let flows = format!(
        "--flow name=a,{READERS}:seed=1,queue_depth=16,weight=3 --flow name=b,{READERS}:seed=2,queue_depth=16"
    );
    let asked = place.run(&format!("{HOST} {flows} --alone --json")).ok();
    let record = asked.record();
    let said = record.flows.as_ref().expect("flows");
    let [a, b] = &said.each[..] else {
        panic!("two flows: {said:?}");
    };
    let ratio = a.requests_together as f64 / b.requests_together as f64;
    assert!((ratio - 3.0).abs() < 0.1, "{ratio}");
    assert!(a.slowdown < b.slowdown && b.slowdown > Some(1.0));
    assert!(said.fairness.is_some() && said.jain.is_some());
    assert_eq!(a.first_page + a.pages, b.first_page);
    let table = |name: &str, more: &str| {
        let trace = READERS.strip_prefix("trace=").expect("a trace");
        let seed = if name == "a" { 1 } else { 2 };
        format!(
            "[[flow]]\nname = \"{name}\"\ntrace = \"{trace}:seed={seed}\"\nqueue_depth = 16\n{more}\n"
        )
    };
    let text = table("a", "weight = 3") + &table("b", "");
    place.file("flows.toml", text);
    let from_file = place.run(&format!("{HOST} --config flows.toml --alone --json"));
    assert_eq!(from_file.ok().out, asked.out);
    let text = place.run(&format!("{HOST} {flows}")).ok().out;
    assert!(text.contains("\nflow  requests"), "{text}");
    assert!(!text.contains("fairness"), "{text}");
}

#[test]
fn bad_flows_are_shown() {
    let place = Place::new();
    place.file("twice.toml", "[[flow]]\ntrace = \"desktop\"\nwieght = 2\n");
    place.file("table.toml", "[flow]\ntrace = \"desktop\"\n");
    place.file(
        "one.toml",
        "[host]\n[[flow]]\ntrace = \"desktop\"\nshare = 0.5\n",
    );
    let files = place.files();
    for (command, says, at) in [
        (
            "--flow trace=desktop,depth=2",
            "no key flow.depth",
            "--flow trace=desktop,depth=2",
        ),
        ("--flow trace", "\"trace\" is no key=value", "--flow trace"),
        (
            "--flow name=a",
            "flow.trace: a flow needs a trace",
            "--flow name=a",
        ),
        (
            "--flow trace=desktop,name=a --flow trace=desktop,name=a",
            "two flows are called a",
            "--flow",
        ),
        (
            "--flow trace=desktop,from=0.5,share=0.6",
            "flow.share: from and share are more",
            "--flow",
        ),
        (
            "--flow trace=desktop,weight=2",
            "flow.weight: counts only with",
            "--flow",
        ),
        (
            "--flow trace=desktop,priority=urgent",
            "flow.priority: counts only with",
            "--flow",
        ),
        (
            "--flow trace=desktop,queue_depth=-1",
            "flow.queue_depth = -1: takes a whole number",
            "--flow",
        ),
        (
            "--flow trace=desktop --trace desktop",
            "there is a trace beside the flows",
            "--trace desktop",
        ),
        (
            "--flow trace=desktop --set host.arrivals=closed",
            "each flow has a queue_depth",
            "--set host.arrivals=closed",
        ),
        (
            "--flow trace=desktop --set run.ageing=replay",
            "\"replay\" plays one trace",
            "--set run.ageing=replay",
        ),
        (
            "--flow trace=desktop --set host.arbitration=weighted",
            "without host.queue_depth",
            "--set host.arbitration",
        ),
        (
            "--flow trace=desktop --set host.max_request_kib=1",
            "less than a page",
            "--set host.max_request_kib=1",
        ),
        (
            "--set host.burst=2",
            "host.burst is about flows",
            "--set host.burst=2",
        ),
        (
            "--set flow.weight=2",
            "flow.KEY: which flow?",
            "--set flow.weight=2",
        ),
        ("--alone", "--alone is about flows", ""),
        (
            "--config twice.toml",
            "no key flow.wieght",
            "twice.toml:3:1",
        ),
        (
            "--config table.toml",
            "flow is a list of tables",
            "table.toml:1:2",
        ),
        (
            "--config one.toml",
            "flow.share: from and share go together",
            "one.toml:4:9",
        ),
    ] {
        let ran = place.run(&format!("run --scheme page --report r.html {command}"));
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{command}: {}",
            ran.err
        );
        assert!(ran.err.contains(says), "{command}: {}", ran.err);
        assert!(
            ran.err.contains(&format!("--> {at}")) || at.is_empty(),
            "{command}: {}",
            ran.err
        );
        assert_eq!(place.files(), files, "{command}");
    }
    for command in [
        "compare --scheme page",
        "sweep --scheme page --vary device.dies=1,2",
    ] {
        let ran = place.run(&format!("{command} --config one.toml"));
        assert_eq!(ran.code, 2, "{command}");
        assert!(
            ran.err
                .contains("[[flow]] is for `floatgate run` alone\n  --> one.toml:2:"),
            "{}",
            ran.err
        );
    }
}
