//! What a device is asked is recorded as a trace: one of ours that is served, and one of this machine.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Place, Running};

/// Whether a program can be started here; tells if not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn a_served_device_records_what_it_is_asked() {
    if !has("qemu-io") {
        return;
    }
    for trace in ["t.csv", "t.parquet"] {
        let place = Place::new();
        let server = Running::new(
            &place,
            &format!("serve --memory 8MiB --socket s --record {trace} --log l"),
        );
        let mut client = Command::new("qemu-io");
        client.args(["-t", "none", "-f", "raw"]);
        for command in [
            "write -P 7 4096 65536",
            "write -P 8 0 4096",
            "write -f -P 9 8192 512",
            "flush",
            "read 4096 8192",
            "discard 16384 4096",
        ] {
            client.args(["-c", command]);
        }
        let ran = client
            .arg("nbd+unix:///?socket=s")
            .current_dir(place.path(""))
            .output();
        assert!(ran.expect("qemu-io runs").status.success());
        server.signal();
        assert_eq!(server.end().0, Some(0));
        place.run(&format!("trace convert {trace} all.csv")).ok();
        let all = std::fs::read_to_string(place.path("all.csv")).expect("a trace");
        let told: Vec<String> = all
            .lines()
            .skip(1)
            .map(|line| line.split_once(',').expect("columns").1.to_owned())
            .collect();
        // A client flushes at its end as often as it likes.
        let is_there = |line: &str| told.iter().filter(|told| *told == line).count();
        for line in [
            "W,4096,65536",
            "W,0,4096",
            "W,8192,512",
            "R,4096,8192",
            "T,16384,4096",
        ] {
            assert_eq!(is_there(line), 1, "{line}: {told:?}");
        }
        assert!(is_there("F,0,0") >= 2, "{told:?}");
        let writes = told.iter().filter(|line| line.starts_with('W')).count();
        assert_eq!(writes, 3, "{told:?}");
        // The simulator takes it, and the write log of the same run has the same writes.
        let run = place
            .run(&format!("run --scheme fast --trace {trace} --json"))
            .ok();
        let accepted = format!("\"accepted\": {}", told.len());
        assert!(run.out.contains(&accepted), "{accepted}: {}", run.out);
        let list = place.run("crash-explore l --list --json").ok().json();
        assert_eq!(list["log"]["changes"], 4, "{list}");
        assert_eq!(list["log"]["ended"], "shut down");
    }
}

/// The kernel's tracing, mounted for as long as the test takes where nobody has done so.
struct Tracefs {
    is_ours: bool,
}

const TRACING: &str = "/sys/kernel/tracing";

impl Tracefs {
    fn new() -> Option<Self> {
        let event = Path::new(TRACING).join("events/block/block_rq_issue");
        let is_there = event.exists();
        if !is_there {
            let mount = Command::new("mount")
                .args(["-t", "tracefs", "none", TRACING])
                .status();
            if !mount.is_ok_and(|status| status.success()) {
                eprintln!("skipped: there is no tracefs");
                return None;
            }
        }
        let tracefs = Self { is_ours: !is_there };
        if !event.exists() {
            eprintln!("skipped: the kernel has no block events");
            return None;
        }
        Some(tracefs)
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = Command::new("umount").arg(TRACING).status();
        }
    }
}

/// A loop device over a file.
struct Loop(String);

impl Loop {
    fn new(place: &Place) -> Option<Self> {
        let file = std::fs::File::create(place.path("disk.raw")).expect("a file");
        file.set_len(16 << 20).expect("room");
        let ran = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(place.path("disk.raw"))
            .output()
            .ok()?;
        let name = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        let is_loop = ran.status.success() && name.starts_with("/dev/loop");
        is_loop.then_some(Self(name))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_device_of_this_machine_is_recorded() {
    let place = Place::new();
    if !rustix::process::geteuid().is_root() {
        place.run("trace record /dev/null -o t.csv").refused(
            "error: listening to the kernel's block requests needs root\n  help: run it with sudo",
        );
        eprintln!("skipped: recording needs root");
        return;
    }
    let refused = place.run("trace record /dev/null -o t.csv --seconds 1");
    assert_eq!(
        (refused.code, refused.err.contains("no block device")),
        (2, true)
    );
    let (Some(_tracefs), Some(disk)) = (Tracefs::new(), Loop::new(&place)) else {
        eprintln!("skipped: no tracing, or no loop device");
        return;
    };
    let work = format!(
        "dd if=/dev/zero of={0} bs=4096 count=64 oflag=direct conv=fsync && dd if={0} of=/dev/null bs=8192 count=4 skip=1 iflag=direct && blkdiscard --offset 1048576 --length 65536 {0}",
        disk.0
    );
    let arguments = [
        "trace", "record", &disk.0, "-o", "t.csv", "--json", "--", "sh", "-c", &work,
    ];
    let ran = place.run_with(&arguments).ok();
    assert_eq!(ran.json()["events_lost"], 0, "{ran:?}");
    let text = std::fs::read_to_string(place.path("t.csv")).expect("a trace");
    for n in 0..64 {
        let line = format!(",W,{},4096\n", n * 4096);
        assert_eq!(text.matches(&line).count(), 1, "{line}: {text}");
    }
    for n in 1..5 {
        let line = format!(",R,{},8192\n", n * 8192);
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(text.contains(",T,1048576,65536\n"), "{text}");
    let groups = std::fs::read_dir(Path::new(TRACING).join("instances")).expect("the groups");
    let left = groups.flatten().find(|group| {
        group
            .file_name()
            .to_string_lossy()
            .starts_with("floatgate.")
    });
    assert!(left.is_none(), "{left:?} is left behind");
    place.run("run --scheme page --trace t.csv --json").ok();
}
