//! Files that the command writes: whole or not at all, in the right place, and nothing of the user's destroyed.

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use common::{Place, small_trace};
use floatgate_sim::record::Series;

const GENERATE: &str = "trace generate uniform --set space=64 --set requests=50";

fn program(place: &Place, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command
        .args(arguments.split_whitespace())
        .current_dir(place.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn shell(place: &Place, script: &str) -> Output {
    Command::new("sh")
        .args([
            "-c",
            &script.replace("floatgate", env!("CARGO_BIN_EXE_floatgate")),
        ])
        .current_dir(place.path("."))
        .output()
        .expect("a shell")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn node(path: &Path, kind: FileType, mode: u32, device: u64) -> bool {
    let made = mknodat(CWD, path, kind, Mode::from_raw_mode(mode), device);
    if let Err(error) = made {
        eprintln!("left out: no {kind:?} can be made here: {error}");
    }
    made.is_ok()
}

fn mode_of(path: &Path) -> u32 {
    path.metadata().expect("the file").mode() & 0o7777
}

#[test]
fn a_device_stays_a_device() {
    let place = Place::new();
    small_trace(&place);
    if !node(
        &place.path("null"),
        FileType::CharacterDevice,
        0o666,
        makedev(1, 3),
    ) {
        return;
    }
    place.run("run --trace t.pages --report null --requests-out /dev/null.parquet/no").refused(
        "error: --requests-out /dev/null.parquet/no: cannot write: the folder /dev/null.parquet does not exist\n  \
         help: make the folder first, or name another",
    );
    place.run("run --trace t.pages --report null").ok();
    place
        .run(&format!("{GENERATE} --to recorded --out null"))
        .ok();
    let null = place.path("null").metadata().unwrap();
    assert!(null.file_type().is_char_device());
    assert_eq!(place.files(), ["null", "t.pages"]);
}

#[test]
fn a_fifo_and_standard_output_are_written_into() {
    let place = Place::new();
    place
        .run(&format!("{GENERATE} --to recorded --out whole.csv"))
        .ok();
    let whole = std::fs::read_to_string(place.path("whole.csv")).unwrap();
    assert!(node(&place.path("fifo"), FileType::Fifo, 0o600, 0));
    let fifo = place.path("fifo");
    let reader = std::thread::spawn(move || std::fs::read_to_string(fifo).unwrap());
    place
        .run(&format!("{GENERATE} --to recorded --out fifo"))
        .ok();
    assert_eq!(reader.join().unwrap(), whole);
    // The summary makes room for the trace, in a pipe as in a file.
    let ran = place
        .run(&format!("{GENERATE} --to recorded --out /dev/stdout"))
        .ok();
    assert_eq!(ran.out, whole);
    assert!(ran.err.contains("50 requests"), "{}", ran.err);
    let ran = shell(
        &place,
        &format!("echo before > o; floatgate {GENERATE} --to recorded --out /dev/stdout >> o"),
    );
    assert!(ran.status.success());
    let written = std::fs::read_to_string(place.path("o")).unwrap();
    assert_eq!(written, format!("before\n{whole}"));
}

#[test]
fn a_link_is_followed_and_stays() {
    let place = Place::new();
    std::fs::create_dir(place.path("data")).unwrap();
    place.file("data/old.csv", "old");
    symlink("data/old.csv", place.path("full.csv")).unwrap();
    symlink("data/new.csv", place.path("dangling.csv")).unwrap();
    symlink("full.csv", place.path("twice.csv")).unwrap();
    for (link, target) in [
        ("full.csv", "data/old.csv"),
        ("dangling.csv", "data/new.csv"),
        ("twice.csv", "data/old.csv"),
    ] {
        place.run(&format!("{GENERATE} --out {link}")).ok();
        assert!(place.path(link).is_symlink(), "{link}");
        let written = std::fs::read_to_string(place.path(target)).unwrap();
        assert!(written.starts_with("time_ns,op,offset,size\n"), "{link}");
        place.file("data/old.csv", "old");
    }
    symlink("nowhere/x.csv", place.path("lost.csv")).unwrap();
    let ran = place.run(&format!("{GENERATE} --out lost.csv"));
    assert!(
        ran.err.contains("the folder nowhere does not exist"),
        "{}",
        ran.err
    );
    symlink("circle.csv", place.path("circle.csv")).unwrap();
    assert_eq!(place.run(&format!("{GENERATE} --out circle.csv")).code, 2);
    for folder in ["data", "data/", "no/", ".."] {
        let ran = place.run(&format!("{GENERATE} --to pages --out {folder}"));
        assert!(
            ran.code == 2 && ran.err.contains("it is a folder"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn modes_and_owners() {
    let place = Place::new();
    let ran = shell(
        &place,
        &format!(
            "umask 022; floatgate {GENERATE} --out open.csv; umask 077; floatgate {GENERATE} --out private.csv; \
             touch kept.csv; chmod 0664 kept.csv; floatgate {GENERATE} --out kept.csv; \
             umask 022; echo > secret.csv; chmod 0600 secret.csv; floatgate {GENERATE} --out secret.csv"
        ),
    );
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let modes =
        ["open.csv", "private.csv", "kept.csv", "secret.csv"].map(|f| mode_of(&place.path(f)));
    assert_eq!(modes, [0o644, 0o600, 0o664, 0o600]);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(place.path("kept.csv"), Some(4242), Some(4343)).unwrap();
        place.run(&format!("{GENERATE} --out kept.csv")).ok();
        let kept = place.path("kept.csv").metadata().unwrap();
        assert_eq!(
            (kept.uid(), kept.gid(), kept.mode() & 0o777),
            (4242, 4343, 0o664)
        );
    }
}

#[test]
fn what_may_not_be_written_is_refused_before_the_work() {
    let place = Place::new();
    small_trace(&place);
    place.file("r.html", "mine");
    let set_mode = |name: &str, mode| {
        std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    set_mode("r.html", 0o444);
    set_mode(".", 0o777);
    let mut command = program(&place, "run --trace t.pages --report r.html");
    if rustix::process::geteuid().is_root() {
        // Root may write everything, so this is somebody else.
        command.uid(65534).gid(65534);
    }
    let Ok(ran) = command.output() else {
        return eprintln!("left out: nobody may not run the program here");
    };
    assert_eq!(ran.status.code(), Some(2));
    let err = text(&ran.stderr);
    assert!(
        err.starts_with("error: --report r.html: cannot write: Permission denied"),
        "{err}"
    );
    assert!(err.contains("help: check the permissions"), "{err}");
    assert_eq!(std::fs::read(place.path("r.html")).unwrap(), b"mine");
    // A folder that takes no new file.
    set_mode("r.html", 0o666);
    set_mode(".", 0o555);
    let ran = command.output().unwrap();
    let err = text(&ran.stderr);
    assert!(
        err.contains("no file may be made or replaced in the folder"),
        "{err}"
    );
    // A sticky folder and a file of somebody else.
    if rustix::process::geteuid().is_root() {
        set_mode(".", 0o1777);
        let err = text(&command.output().unwrap().stderr);
        assert!(err.contains("no file may be made or replaced"), "{err}");
    }
    set_mode(".", 0o755);
}

#[test]
fn inputs_and_one_file_twice_are_refused() {
    let place = Place::new();
    small_trace(&place);
    place.file("c.toml", "");
    symlink("t.pages", place.path("link.pages")).unwrap();
    let before = std::fs::read(place.path("t.pages")).unwrap();
    let refused = |command: &str, message: &str| {
        place.run(command).refused(&format!("error: {message}"));
    };
    let read = "this file is read by the same command\n  help: name another file to write";
    refused(
        "trace convert t.pages t.pages",
        &format!("OUT t.pages: {read}"),
    );
    refused(
        "trace convert t.pages link.pages",
        &format!("OUT link.pages: {read}"),
    );
    refused(
        "run --trace link.pages --report t.pages",
        &format!("--report t.pages: {read}"),
    );
    refused(
        "run --config c.toml --trace t.pages --report c.toml",
        &format!("--report c.toml: {read}"),
    );
    refused("fleet . --out t.pages", &format!("--out t.pages: {read}"));
    refused(
        "run --trace t.pages --report ./x.csv --requests-out x.csv",
        "--requests-out x.csv and --report ./x.csv are one file\n  help: name two files",
    );
    assert_eq!(std::fs::read(place.path("t.pages")).unwrap(), before);
    assert_eq!(place.files(), ["c.toml", "link.pages", "t.pages"]);
}

#[test]
fn a_full_disk_leaves_nothing() {
    let place = Place::new();
    place.file("r.csv", "mine");
    let ran =
        place.run("trace generate uniform --set requests=100000 --to recorded --out /dev/full");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("help: free some space") || ran.err.contains("= free some space"),
        "{}",
        ran.err
    );
    // A limit on file sizes would end the process by a signal.
    let ran = shell(
        &place,
        "ulimit -f 16; floatgate trace generate uniform --set requests=100000 --out r.csv",
    );
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        text(&ran.stderr).contains("ulimit -f"),
        "{}",
        text(&ran.stderr)
    );
    assert_eq!(std::fs::read(place.path("r.csv")).unwrap(), b"mine");
    assert_eq!(place.files(), ["r.csv"]);
    on_small_disk(&place, |folder| {
        for command in [
            "trace generate uniform --set requests=100000 --out small/r.csv",
            "trace generate uniform --set requests=1000000 --out small/r.parquet",
            "compare --scheme page --trace oltp-postgres --report small/r.html",
        ] {
            let ran = place.run(command);
            assert_eq!(ran.code, 2, "{command}");
            assert!(ran.err.contains("free some space"), "{}", ran.err);
            assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "{command}");
        }
    });
}

/// Calls `body` with `small`, a file system of 64 KiB, if one can be mounted.
fn on_small_disk(place: &Place, body: impl FnOnce(&Path)) {
    let folder = place.path("small");
    std::fs::create_dir(&folder).unwrap();
    let mounted = shell(place, "mount -t tmpfs -o size=64k tmpfs small");
    if !mounted.status.success() {
        return eprintln!("left out: no file system can be mounted here");
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&folder)));
    assert!(shell(place, "umount -l small").status.success());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// Waits until a temporary file lies in the folder.
fn temporary(place: &Place) -> String {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let found = place
            .files()
            .into_iter()
            .find(|name| name.starts_with(".floatgate-"));
        if let Some(name) = found {
            return name;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no temporary file in a minute");
}

/// A command with its output begun: it waits for more of its trace, if that is the FIFO.
fn waiting(place: &Place, arguments: &str) -> (Child, std::fs::File) {
    if !place.path("fifo.csv").exists() {
        assert!(node(&place.path("fifo.csv"), FileType::Fifo, 0o600, 0));
    }
    // Whoever runs the tests in the background of a script has interrupts ignored, and so would the program.
    let child = Command::new("env")
        .args(["--default-signal=HUP,INT", env!("CARGO_BIN_EXE_floatgate")])
        .args(arguments.split_whitespace())
        .current_dir(place.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let fifo = std::fs::File::options()
        .read(true)
        .write(true)
        .open(place.path("fifo.csv"));
    let mut fifo = fifo.unwrap();
    if arguments.contains("fifo") {
        let trace = format!("time_ns,op,offset,size\n{}", "0,W,0,4096\n".repeat(10_000));
        fifo.write_all(trace.as_bytes()).unwrap();
    }
    (child, fifo)
}

#[test]
fn a_signal_takes_the_temporary_file_along() {
    let place = Place::new();
    place.file("out.csv", "mine").file("out.parquet", "mine");
    for (signal, arguments) in [
        (Signal::INT, "trace convert fifo.csv out.csv"),
        (Signal::TERM, "trace convert fifo.csv out.parquet"),
        (Signal::HUP, "fleet fifo.csv --out out.parquet"),
        (Signal::INT, "fleet fifo.csv --out out.csv"),
        (Signal::INT, "run --trace fifo.csv --requests-out out.csv"),
        (
            Signal::TERM,
            "trace generate uniform --set requests=1000000000 --out out.csv",
        ),
    ] {
        let (mut child, fifo) = waiting(&place, arguments);
        temporary(&place);
        let id = Pid::from_child(&child);
        kill_process(id, signal).unwrap();
        let status = child.wait().unwrap();
        drop(fifo);
        assert_eq!(status.signal(), Some(signal.as_raw()), "{arguments}");
        assert_eq!(
            place.files(),
            ["fifo.csv", "out.csv", "out.parquet"],
            "{arguments}"
        );
        for file in ["out.csv", "out.parquet"] {
            assert_eq!(
                std::fs::read(place.path(file)).unwrap(),
                b"mine",
                "{arguments}"
            );
        }
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let place = Place::new();
    let script = format!(
        "trap '' HUP INT; floatgate {GENERATE} --out a.csv; floatgate trace convert a.csv b.csv & \
                          kill -HUP $!; kill -INT $!; wait $!"
    );
    let ran = shell(&place, &script);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert_eq!(place.files(), ["a.csv", "b.csv"]);
}

#[test]
fn what_a_killed_run_left_is_named() {
    let place = Place::new();
    let (mut child, fifo) = waiting(&place, "trace convert fifo.csv out.csv");
    let name = temporary(&place);
    // Nothing is said while its owner lives.
    let ran = place.run(&format!("{GENERATE} --out other.csv")).ok();
    assert_eq!(ran.err, "");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(fifo);
    let ran = place.run(&format!("{GENERATE} --out other.csv")).ok();
    assert!(
        ran.err.contains(&format!(
            "/{name} is left from a run that was killed; delete it\n"
        )),
        "{}",
        ran.err
    );
    assert!(place.files().contains(&name), "it is the user's to delete");
}

#[test]
fn a_reader_that_goes_is_no_failure() {
    let place = Place::new();
    small_trace(&place);
    for command in [
        "schemes",
        "trace generate uniform --set requests=1000000 --to pages --out /dev/stdout",
        "trace convert oltp-postgres --to pages /dev/stdout",
        "run --trace t.pages --report /dev/stdout 2> told",
    ] {
        // The shell tells what the program ended with, not what `head` did.
        let ran = shell(
            &place,
            &format!("(floatgate {command}; echo $? > code) | head -n 1"),
        );
        assert!(ran.stderr.is_empty(), "{command}: {}", text(&ran.stderr));
        let code = std::fs::read_to_string(place.path("code")).unwrap();
        assert_eq!(code, "0\n", "{command}");
    }
}

#[test]
fn an_interrupted_comparison_leaves_nothing() {
    let place = Place::new();
    let (mut child, fifo) = waiting(&place, "compare --trace fifo.csv --report r.html");
    // It has read what came so far, so it is at work.
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    drop(fifo);
    assert_eq!(place.files(), ["fifo.csv"]);
}

#[test]
fn a_trace_from_a_pipe_is_played() {
    let place = Place::new();
    small_trace(&place);
    let whole = place.run("run --trace t.pages --json").ok().record();
    for arguments in [
        "run --trace /dev/stdin --json",
        "compare --scheme page --trace /dev/stdin --json --no-report",
        "run --trace /dev/stdin --json --set run.warmup=1",
    ] {
        let mut child = program(&place, arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&std::fs::read(place.path("t.pages")).unwrap())
            .unwrap();
        drop(pipe);
        let mut out = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{err}");
        let ran = common::Ran { code: 0, out, err };
        let played = ran.record().counters.host.page_writes;
        assert_eq!(played, whole.counters.host.page_writes, "{arguments}");
    }
}

/// The timeline has the operations of the run, and the run is the same with it, but for when a response is noted in the
/// series: at its end, and not at its begin.
#[test]
fn a_timeline_changes_nothing_and_has_every_operation() {
    let place = Place::new();
    small_trace(&place);
    let run = "run --json --trace t.pages --scheme fast --set device.page_bytes=2048";
    let plain = place.run(run).ok();
    let timed = place.run(&format!("{run} --timeline t.json")).ok();
    let (mut with, mut without) = (timed.record(), plain.record());
    for record in [&mut with, &mut without] {
        record.series = Series::default();
    }
    assert!(with == without, "the records differ");
    let text = std::fs::read_to_string(place.path("t.json")).expect("the file");
    let timeline: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = timeline["traceEvents"].as_array().expect("events");
    let count = |name: &str| -> u64 {
        let named = events.iter().filter(|event| event["name"] == name);
        named
            .map(|event| event["args"]["pages"].as_u64().unwrap_or(1))
            .sum()
    };
    let flash = plain.record().counters.flash;
    assert_eq!(count("host program"), flash.programs.host);
    assert_eq!(count("gc program") + count("gc copies"), flash.programs.gc);
    assert_eq!(count("gc erase"), flash.erases.gc);
    let requests = events.iter().filter(|event| event["ph"] == "b").count();
    assert_eq!(requests, 6000);
    place
        .run(&format!(
            "{run} --timeline t.json.gz --timeline-between 0.5:1"
        ))
        .ok();
    let part = std::fs::metadata(place.path("t.json.gz")).expect("the file");
    assert!(part.len() > 100 && part.len() < text.len() as u64 / 20);
    for (words, told) in [
        ("--timeline t.csv", ".json"),
        ("--timeline-between 1:2", "--timeline"),
        ("--timeline x.json --timeline-between 2:1", "earlier"),
        (
            "--timeline x.json --timeline-between now",
            "two times in seconds",
        ),
    ] {
        let ran = place.run(&format!("{run} {words}"));
        assert_eq!(ran.code, 2, "{words}");
        assert!(ran.err.contains(told), "{words}: {}", ran.err);
    }
    assert!(!place.path("x.json").exists());
}
