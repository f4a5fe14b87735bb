//! The program in a folder of its own, and what came of it.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use floatgate_sim::record::{Document, Outcome, Record};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

/// A folder for one test.
pub struct Place {
    folder: tempfile::TempDir,
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and gives nothing back: tests name files relative to the folder.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path(name), content).expect("a file in the temporary folder");
        self
    }

    /// Runs the program in the folder; the arguments stand as on a command line, without quotes.
    pub fn run(&self, arguments: &str) -> Ran {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        self.run_with(&arguments)
    }

    pub fn run_with(&self, arguments: &[&str]) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_floatgate"))
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .expect("the program runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// What lies in the place.
    pub fn files(&self) -> Vec<String> {
        self.files_in("")
    }

    /// What lies in a folder of it.
    pub fn files_in(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).expect("the folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

impl Ran {
    /// A user error: exit code 2, nothing on standard output, exactly this message.
    #[track_caller]
    pub fn refused(&self, message: &str) {
        assert_eq!(
            (self.code, self.out.as_str(), self.err.as_str()),
            (2, "", &*format!("{message}\n"))
        );
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.err);
        self
    }

    /// What `run` or `compare` printed.
    #[track_caller]
    pub fn document(&self) -> Document {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// The record that `run` printed.
    #[track_caller]
    pub fn record(&self) -> Record {
        let document = self.document();
        let record = document.results.first().and_then(Outcome::record);
        record.expect("a record").clone()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// The program in the background, from its first line on.
pub struct Running {
    child: Child,
    /// What it said when it was ready.
    pub line: String,
}

impl Running {
    pub fn new(place: &Place, arguments: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_floatgate"))
            .args(arguments.split_whitespace())
            .current_dir(place.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        Self { child, line }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a state").is_none()
    }

    /// Asks it to end.
    pub fn signal(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("sent");
    }

    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("an end");
    }

    /// Its exit code and its errors; it has to end within a while.
    pub fn end(mut self) -> (Option<i32>, String) {
        assert!(self.ends_within(Duration::from_secs(20)), "it does not end");
        let mut said = String::new();
        let mut err = self.child.stderr.take().expect("its output");
        err.read_to_string(&mut said).expect("text");
        (self.child.wait().expect("an end").code(), said)
    }

    fn ends_within(&mut self, time: Duration) -> bool {
        let late = Instant::now() + time;
        while self.is_running() {
            if Instant::now() > late {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Asked first, then killed: what a failed test leaves mounted is taken down.
        if self.is_running() {
            self.signal();
            if !self.ends_within(Duration::from_secs(2)) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// A trace of pages that overwrites a small space many times.
pub fn small_trace(place: &Place) {
    place.run("trace generate uniform --set space=2048 --set requests=6000 --set n=2 --set reads=30 --set arrival=fixed --set gap=400000 --page-bytes 2048 --out t.pages").ok();
}

/// The data inside a report.
pub fn report_data(place: &Place, report: &str) -> serde_json::Value {
    let page = std::fs::read_to_string(place.path(report)).expect("the report");
    let data = page.split("id=\"data\">").nth(1);
    let data = data.and_then(|rest| rest.split("</script>").next());
    serde_json::from_str(data.expect("the data")).expect("a document")
}

/// The bundled traces' folder.
pub fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")
}

/// The rows of a Parquet file.
pub fn rows(place: &Place, file: &str) -> Vec<Row> {
    let file = std::fs::File::open(place.path(file)).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(Result::unwrap).collect()
}

/// What a row has in a column.
pub fn cell(row: &Row, name: &str) -> Field {
    let mut columns = row.get_column_iter();
    let (_, field) = columns.find(|(column, _)| *column == name).expect(name);
    field.clone()
}
