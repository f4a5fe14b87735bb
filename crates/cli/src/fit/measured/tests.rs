//! Tables as they should be, and as they should not.

use super::*;

const HEAD: &str = "run,workload,logical_bytes,span_bytes,host_bytes,media_bytes,seconds\n";

fn read(lines: &str) -> Outcome<Vec<Run>> {
    parse("m.csv", format!("{HEAD}{lines}"))
}

#[track_caller]
fn refused(lines: &str, line: usize, words: &str) {
    let told = read(lines).unwrap_err().to_string();
    assert!(
        told.contains(&format!("m.csv:{line}:")) && told.contains(words),
        "{told}"
    );
    assert!(told.contains("help: "), "{told}");
}

#[test]
fn the_last_quarter_of_a_run_is_taken() {
    let mut lines = String::new();
    for i in 0..=40 {
        // What is written before the last quarter costs twice.
        let media = if i <= 30 {
            200 * i
        } else {
            6000 + 150 * (i - 30)
        };
        lines += &format!("a,uniform,9000,8000,{},{media},{i}\n", 100 * i);
    }
    let runs = read(&lines).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].told, Told::Amplification(1.5));
    assert_eq!(runs[0].noise, Some(0.0));
    assert_eq!(
        (runs[0].span_bytes, runs[0].logical_bytes),
        (8000.0, Some(9000.0))
    );
}

#[test]
fn one_row_is_a_sum_and_two_are_a_difference() {
    let runs = read(
        "a,uniform,,8000,1000,1700,\n# a remark\n\nb,hot(80/20),,8000,100,900,\r\nb,hot(80/20),,8000,1100,2400,\r\n",
    );
    let runs = runs.unwrap();
    assert_eq!(runs[0].told, Told::Amplification(1.7));
    assert_eq!(runs[1].told, Told::Amplification(1.5));
    assert_eq!(runs[1].noise, None);
    let runs = read("a,uniform,,8000,1000,,4\n").unwrap();
    assert_eq!(runs[0].told, Told::Throughput(250.0));
}

#[test]
fn noise_is_that_of_the_windows() {
    let mut lines = String::new();
    let mut media = 0;
    for i in 0..=64 {
        lines += &format!("a,uniform,,8000,{},{media},\n", 100 * i);
        media += if i / 2 % 2 == 0 { 190 } else { 210 };
    }
    // Eight windows of 1.9 and 2.1 in turn: sqrt(8 / 7) * 0.1 / sqrt(8) / 2.
    let noise = read(&lines).unwrap()[0].noise.unwrap();
    assert!((noise - 0.0189).abs() < 1e-4, "{noise}");
}

#[test]
fn what_is_wrong_is_pointed_at() {
    refused("a,uniform,9,8,100\n", 2, "5 cells in place of 7");
    refused(
        "a,uniform,,8,100,150,\nb,unifrom,,8,100,150,\n",
        3,
        "workload \"unifrom\"",
    );
    refused("a,uniform,,8,1e99,150,\n", 2, "is no number of bytes");
    refused("a,uniform,,8,-1,150,\n", 2, "is no number of bytes");
    refused("a,uniform,,8,100,,1e-300\n", 2, "is no number of seconds");
    refused("a,uniform,,8,100,150,x\n", 2, "is no number of seconds");
    refused("a,uniform,,,100,150,\n", 2, "span_bytes is empty");
    refused("a,uniform,7,8,100,150,\n", 2, "at most logical_bytes");
    refused(
        "a,uniform,,8,100,150,\na,uniform,,8,90,160,\n",
        3,
        "less than in its line before",
    );
    refused(
        "a,uniform,,8,100,150,\na,uniform,,8,190,,\n",
        3,
        "empty in some",
    );
    refused(
        "a,uniform,,8,100,150,\na,uniform,,7,190,200,\n",
        3,
        "another name",
    );
    refused(
        "a,uniform,,8,100,50,\n",
        2,
        "50 bytes written to flash for 100",
    );
    refused("a,uniform,,8,100,,\n", 2, "neither media_bytes nor seconds");
    refused("a,uniform,,8,0,0,\n", 2, "nothing was written");
    refused(
        "a,uniform,9,8,1,1,\nb,uniform,10,8,1,1,\n",
        1,
        "not the same in all runs",
    );
    refused("", 1, "no runs");
}

#[test]
fn columns_are_known_by_name() {
    let told = |head: &str| parse("m.csv", head.into()).unwrap_err().to_string();
    assert!(told("").contains("there is nothing in it"));
    assert!(told("workload,span_byte,host_bytes,seconds\n").contains("is span_bytes meant?"));
    assert!(told("workload,span_bytes,seconds\n").contains("no column host_bytes"));
    assert!(told("workload,span_bytes,host_bytes\n").contains("neither a column media_bytes"));
    assert!(told("workload,workload,span_bytes\n").contains("twice"));
    let runs = parse(
        "m.csv",
        "host_bytes, media_bytes,span_bytes,workload\n10, 12,8,uniform\n20,30,8,uniform\n".into(),
    );
    let names: Vec<String> = runs.unwrap().into_iter().map(|run| run.name).collect();
    assert_eq!(names, ["1", "2"]);
}
