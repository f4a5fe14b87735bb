//! The laboratory of power cuts: it finds a flush that was forgotten, and nothing in what keeps its promises: SQLite, ext4,
//! xfs. `FLOATGATE_CRASH_LONG=1` takes more transactions and more states.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{Place, Ran};
use floatgate_device::drive;
use floatgate_device::image::ImageSpec;
use floatgate_schemes::page::Page;
use floatgate_serve::log::LogTap;
use floatgate_serve::{Endpoint, Server, Shared, Tap};

const PAGE_BYTES: u64 = 4096;

/// A fresh device, served by this process, with its log.
struct Hosted {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hosted {
    fn new(place: &Place, mib: u64) -> Self {
        let pages = (mib << 20) / PAGE_BYTES;
        let spec = ImageSpec {
            blocks_per_die: (pages / 64) as u32 + 64,
            pages_per_block: 64,
            page_bytes: PAGE_BYTES as u32,
            ..ImageSpec::small(pages)
        };
        let mut device = drive::in_memory::<Page>(&spec).expect("a device");
        let tap = LogTap::begin(&place.path("log"), &mut *device).expect("a log");
        let tap: Box<dyn Tap> = Box::new(tap);
        let shared = Arc::new(Shared::new(device, vec![tap]));
        let stop = Arc::new(AtomicBool::new(false));
        let server = Server::bind(&Endpoint::Unix(place.path("s"))).expect("a socket");
        let (ours, flag) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::spawn(move || server.run(&ours, 4, &flag));
        Self {
            shared,
            stop,
            thread: Some(thread),
        }
    }

    /// Runs a script that says what is done; each line is a mark before the script goes on.
    fn hear(&self, arguments: &[&str]) {
        let mut child = Command::new("python3")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut answers = child.stdin.take().expect("its input");
        let said = BufReader::new(child.stdout.take().expect("its output"));
        for line in said.lines() {
            self.shared.mark(&line.expect("a line")).expect("marked");
            // It may have ended without waiting.
            let _ = answers.write_all(b"\n");
        }
        assert!(child.wait().expect("an end").success(), "{arguments:?}");
    }

    fn close(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("a server");
        thread.join().expect("the server ends");
        self.shared.close().expect("an end in order");
    }
}

/// The export as a file, through FUSE.
struct Shown {
    child: Child,
    folder: PathBuf,
}

impl Shown {
    fn new(place: &Place) -> Self {
        let folder = place.path("shown");
        std::fs::create_dir(&folder).expect("a folder");
        let child = Command::new("nbdfuse")
            .arg(folder.join("disk"))
            .arg("--unix")
            .arg(place.path("s"))
            .spawn()
            .expect("nbdfuse runs");
        let shown = Self { child, folder };
        let start = Instant::now();
        while !shown.file().exists() {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "nbdfuse shows nothing"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        shown
    }

    fn file(&self) -> PathBuf {
        self.folder.join("disk")
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = Command::new("fusermount3")
            .arg("-u")
            .arg(&self.folder)
            .status();
        let _ = self.child.wait();
    }
}

/// A file system on the export, mounted through a loop device.
struct Mounted {
    device: String,
    point: PathBuf,
}

impl Mounted {
    fn new(place: &Place, shown: &Shown, kind: &str) -> Self {
        let file = shown.file();
        let device = told(Command::new("losetup").args(["--find", "--show"]).arg(file));
        let point = place.path("point");
        std::fs::create_dir(&point).expect("a folder");
        let mounted = Self { device, point };
        let quiet: &[&str] = match kind {
            "ext4" => &["-q", "-F", "-J", "size=4"],
            _ => &["-q", "-f"],
        };
        let make = format!("mkfs.{kind}");
        told(Command::new(make).args(quiet).arg(&mounted.device));
        told(
            Command::new("mount")
                .args(["-t", kind, &mounted.device])
                .arg(&mounted.point),
        );
        told(Command::new("mountpoint").arg("-q").arg(&mounted.point));
        mounted
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg(&self.point)
            .stderr(Stdio::null())
            .status();
        let _ = Command::new("losetup")
            .args(["--detach", &self.device])
            .status();
    }
}

/// What a command says, which must end well.
fn told(command: &mut Command) -> String {
    let ran = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

/// Whether all of these can be used here; tells what is missing.
fn has(programs: &[&str], needs_root: bool) -> bool {
    if needs_root && !rustix::process::geteuid().is_root() {
        eprintln!("skipped: mounting needs root");
        return false;
    }
    if needs_root && !Path::new("/dev/loop-control").exists() {
        eprintln!("skipped: there are no loop devices");
        return false;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = [PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")];
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(sbin).collect();
    let missing = |program: &&&str| !folders.iter().any(|folder| folder.join(program).exists());
    let missing = programs.iter().find(missing);
    if let Some(program) = missing {
        eprintln!("skipped: {program} is not installed");
    }
    missing.is_none() && Path::new("/dev/fuse").exists()
}

fn script(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash");
    folder.join(name).to_string_lossy().into_owned()
}

fn is_long() -> bool {
    std::env::var_os("FLOATGATE_CRASH_LONG").is_some()
}

/// A few, or many.
fn some(few: usize, many: usize) -> String {
    (if is_long() { many } else { few }).to_string()
}

fn explore(place: &Place, check: &str, more: &[&str]) -> Ran {
    let arguments = ["crash-explore", "log", "--check", check];
    place.run_with(&[&arguments[..], more].concat())
}

fn journal(flags: &[&str]) -> Place {
    let place = Place::new();
    let hosted = Hosted::new(&place, 1);
    {
        let shown = Shown::new(&place);
        let file = shown.file();
        let arguments = ["write", &file.to_string_lossy()];
        let path = script("journal.py");
        hosted.hear(&[&[&*path], &arguments[..], flags].concat());
    }
    hosted.close();
    place
}

#[test]
fn a_flush_that_was_forgotten_is_found_and_told_in_a_line() {
    if !has(&["python3", "nbdfuse", "fusermount3"], false) {
        return;
    }
    let check = format!(
        "python3 {} check {{}} $FLOATGATE_MARKS",
        script("journal.py")
    );
    let place = journal(&[]);
    let good = explore(&place, &check, &["--states", &some(150, 5000), "--json"]);
    assert_eq!(good.code, 0, "{good:?}");
    assert!(good.json()["checked"].as_u64() >= Some(100), "{}", good.out);
    let place = journal(&["--forget-flush"]);
    let bad = explore(&place, &check, &["--save", "bad.raw", "--json"]);
    assert_eq!(bad.code, 1, "{bad:?}");
    let least = &bad.json()["least"];
    // The commit record is there and one sector of the journal is not.
    let lost = least["lost"].as_array().expect("a list");
    assert_eq!(lost.len(), 1, "{least}");
    assert!((8 * 512..11 * 512).contains(&lost[0]["offset"].as_u64().expect("a number")));
    // The line repeats it, and the file that was saved is the same state.
    let line = least["repeat"].as_str().expect("a line");
    let program = env!("CARGO_BIN_EXE_floatgate");
    let line = line.replacen("floatgate", program, 1);
    let again = Command::new("sh")
        .args(["-c", &line])
        .current_dir(place.path(""))
        .output();
    assert_eq!(again.expect("it runs").status.code(), Some(1), "{line}");
    let state = least["state"].as_str().expect("a state");
    let saved = place.run(&format!(
        "crash-explore log --state {state} --save again.raw"
    ));
    assert_eq!(saved.code, 0, "{saved:?}");
    let read = |name: &str| std::fs::read(place.path(name)).expect("a file");
    assert!(read("bad.raw") == read("again.raw") && read("bad.raw").len() == 1 << 20);
    // The state before anything was lost is a good one.
    let whole = state.split(":drop").next().expect("a state");
    let whole = explore(&place, &check, &["--state", whole]);
    assert_eq!(
        (whole.code, whole.out.trim().ends_with("good")),
        (0, true),
        "{whole:?}"
    );
}

/// Records a workload on a file system, from its making to its unmounting.
fn recorded(kind: &str, mib: u64, workload: &[&str]) -> Place {
    let place = Place::new();
    let hosted = Hosted::new(&place, mib);
    {
        let shown = Shown::new(&place);
        let mounted = Mounted::new(&place, &shown, kind);
        let (path, point) = (script("transactions.py"), mounted.point.to_string_lossy());
        let (what, rest) = workload.split_first().expect("a workload");
        hosted.hear(&[&[&*path, what, &*point], rest].concat());
    }
    hosted.close();
    place
}

const TOOLS: [&str; 6] = [
    "python3",
    "nbdfuse",
    "fusermount3",
    "losetup",
    "mkfs.ext4",
    "e2fsck",
];

fn sqlite(mode: &str, synchronous: &str, few: usize) -> Ran {
    let count = some(12, 300);
    let place = recorded("ext4", 64, &["sqlite", mode, synchronous, &count]);
    let check = format!("{} ext4 sqlite", script("mounted.sh"));
    let states = some(few, 3000);
    explore(
        &place,
        &check,
        &["--after", "done 0", "--states", &states, "--json"],
    )
}

#[test]
fn sqlite_keeps_its_promise_and_without_syncs_it_does_not() {
    if !has(&TOOLS, true) {
        return;
    }
    // In rollback mode FULL does not sync the folder after the journal's end: SQLite says so and offers EXTRA.
    for (mode, synchronous) in [("WAL", "FULL"), ("DELETE", "EXTRA")] {
        let ran = sqlite(mode, synchronous, 30);
        assert_eq!(ran.code, 0, "{mode}: {ran:?}");
    }
    for (mode, synchronous) in [("WAL", "OFF"), ("DELETE", "FULL")] {
        let ran = sqlite(mode, synchronous, 100);
        assert_eq!(ran.code, 1, "{mode}: {ran:?}");
        let words = ran.json()["least"]["words"].to_string();
        assert!(
            words.contains("is lost") || words.contains("no such table"),
            "{words}"
        );
    }
}

#[test]
fn ext4_and_xfs_keep_every_file_that_was_synced() {
    let tools = [&TOOLS[..], &["mkfs.xfs", "xfs_repair"]].concat();
    if !has(&tools, true) {
        return;
    }
    // The smallest that mkfs.xfs makes is 300 MiB.
    for (kind, mib) in [("ext4", 64), ("xfs", 304)] {
        let place = recorded(kind, mib, &["files", &some(16, 300)]);
        let check = format!("{} {kind} files", script("mounted.sh"));
        let states = some(30, 2000);
        let ran = explore(
            &place,
            &check,
            &["--after", "done 0", "--states", &states, "--json"],
        );
        assert_eq!(ran.code, 0, "{kind}: {ran:?}");
    }
}

#[test]
fn mistakes_of_the_command_line_are_told() {
    let place = Place::new();
    let hosted = Hosted::new(&place, 1);
    hosted.shared.mark("ready").expect("marked");
    hosted.shared.write(0, &[1; 1024], false).expect("written");
    hosted.shared.flush().expect("flushed");
    hosted.close();
    let whole = std::fs::read(place.path("log")).expect("the log");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    place.file("damaged", damaged).file("text", "precious");
    for (arguments, told) in [
        ("text --check true", "no write log"),
        ("none --check true", "No such file"),
        ("damaged --check true", "of the file is damaged"),
        ("log", "required"),
        ("log --check true --intervals 5..9", "no state to check"),
        ("log --check true --after redy", "the first is \"ready\""),
        ("log --check true --state 0:drop=3", "not one of 1 to 1"),
        ("log --check /none", "no such command"),
        ("log --state 0 --save log", "read by the same command"),
        ("log --list --state 0", "cannot be used with"),
    ] {
        let ran = place.run(&format!("crash-explore {arguments}"));
        assert_eq!(ran.code, 2, "{arguments}: {ran:?}");
        assert!(ran.err.contains(told), "{arguments}: {}", ran.err);
    }
    assert_eq!(std::fs::read(place.path("log")).expect("there"), whole);
    // A log that was cut off is one, and says so.
    place.file("short", &whole[..whole.len() - 3]);
    let list = place.run("crash-explore short --list --json").ok().json();
    assert_eq!(list["log"]["ended"], "killed");
    assert_eq!(list["intervals"][0]["states"], 2);
    let slow = place.run_with(&[
        "crash-explore",
        "log",
        "--check",
        "sleep 60",
        "--timeout",
        "1",
    ]);
    assert_eq!(
        (slow.code, slow.out.contains("took more than 1 s")),
        (1, true),
        "{slow:?}"
    );
    // `serve --log` never writes over a log.
    let refused = place.run("serve --memory 1MiB --socket t --log log");
    assert_eq!(
        (refused.code, refused.err.contains("this file exists")),
        (2, true),
        "{refused:?}"
    );
}
