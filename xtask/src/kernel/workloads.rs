//! What is done on a mounted file system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::filesystem::Mounted;
use super::tools::{found, line, ran};

/// Something to do, what it needs, and how it is done. It fails if anything is not as it should be.
pub struct Workload {
    /// What it is.
    pub name: &'static str,
    /// The program that it needs, if it is not everywhere.
    pub program: Option<&'static str>,
    /// Does it.
    pub run: fn(&Mounted) -> Result<(), String>,
}

/// In the gate and in the long run.
pub const SHORT: [Workload; 2] = [
    Workload {
        name: "fio, random reads and writes with crc32c",
        program: Some("fio"),
        run: fio,
    },
    Workload {
        name: "SQLite, 200 transactions in WAL and with a rollback journal",
        program: Some("sqlite3"),
        run: sqlite,
    },
];

/// In the long run only.
pub const LONG: [Workload; 2] = [
    Workload {
        name: "PostMark",
        program: Some("postmark"),
        run: postmark,
    },
    Workload {
        name: "PostgreSQL, pgbench",
        program: Some("pg_ctl"),
        run: pgbench,
    },
];

fn fio(mounted: &Mounted) -> Result<(), String> {
    let mut fio = line(
        "fio --name=verify --rw=randrw --bs=4k --size=12M --ioengine=psync --fsync=64 --verify=crc32c --verify_fatal=1",
    );
    // It leaves its state where it stands.
    ran(fio.arg("--directory=.").current_dir(&mounted.folder))?;
    fs::remove_file(mounted.folder.join("verify.0.0")).map_err(|error| error.to_string())
}

fn sqlite(mounted: &Mounted) -> Result<(), String> {
    for mode in ["wal", "delete"] {
        let file = mounted.folder.join(format!("{mode}.db"));
        let mut script = format!(
            "PRAGMA journal_mode={mode}; PRAGMA synchronous=FULL; CREATE TABLE t(n INTEGER PRIMARY KEY, b BLOB);"
        );
        for n in 0..200 {
            script += &format!("INSERT INTO t VALUES({n}, randomblob({}));", 100 + n * 7);
        }
        script += "DELETE FROM t WHERE n % 3 = 0;";
        ran(line("sqlite3").arg(&file).arg(script))?;
        let asked = "PRAGMA integrity_check; SELECT count(*) FROM t;";
        let told = ran(line("sqlite3").arg(&file).arg(asked))?;
        if told.trim() != "ok\n133" {
            return Err(format!("SQLite with {mode}: {told}"));
        }
    }
    Ok(())
}

fn postmark(mounted: &Mounted) -> Result<(), String> {
    let folder = mounted.folder.join("postmark");
    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let script = mounted.folder.join("postmark.cfg");
    let text = format!(
        "set location {}\nset number 2000\nset transactions 4000\nset seed 7\nrun\nquit\n",
        folder.display()
    );
    fs::write(&script, text).map_err(|error| error.to_string())?;
    let told = ran(line("postmark").arg(&script))?;
    match told.contains("deleted") {
        true => Ok(()),
        false => Err(format!("PostMark did not come to its end: {told}")),
    }
}

/// A database of its own, by the user whom PostgreSQL's package makes: it refuses to run as root.
fn pgbench(mounted: &Mounted) -> Result<(), String> {
    let folder = mounted.folder.join("pg");
    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    ran(line("chown postgres").arg(&folder))?;
    let at = folder.display();
    let program = |name| found(name).ok_or(format!("{name} is not installed"));
    let user = |name, words: String| {
        let mut command = line("runuser -u postgres --");
        ran(command.arg(program(name)?).args(words.split_whitespace()))
    };
    user("initdb", format!("--data-checksums --no-sync -D {at}/data"))?;
    let options = format!("-c listen_addresses= -c unix_socket_directories={at}");
    // The server outlives pg_ctl and would keep its pipes.
    let started = line("runuser -u postgres --")
        .arg(program("pg_ctl")?)
        .args(format!("-D {at}/data -l {at}/log -w start -o").split(' '))
        .arg(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !started.is_ok_and(|status| status.success()) {
        return Err("PostgreSQL did not start".into());
    }
    let outcome = user("pgbench", format!("-h {at} -i -q -s 1 postgres"))
        .and_then(|_| user("pgbench", format!("-h {at} -c 2 -T 5 postgres")));
    let stopped = user("pg_ctl", format!("-D {at}/data -w -m fast stop"));
    outcome.and(stopped)?;
    user("pg_checksums", format!("--check -D {at}/data")).map(drop)
}

/// Copies a folder.
pub fn copy(from: &Path, into: &Mounted) -> Result<(), String> {
    into.guard()?;
    ran(line("cp -a").arg(from).arg(into.folder.join("tree"))).map(drop)
}

/// Compares the copy with what was copied.
pub fn compare(from: &Path, copied: &Mounted) -> Result<(), String> {
    copied.guard()?;
    let copy: PathBuf = copied.folder.join("tree");
    ran(line("diff --recursive --brief --no-dereference")
        .arg(from)
        .arg(copy))
    .map(drop)
}
