//! The user's check, run on one state.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::errors::{Outcome, Problem};

/// Most bytes of a check's last words.
const WORDS_BYTES: u64 = 2000;

/// A command, and how long it may take.
pub struct Check {
    command: String,
    timeout: Duration,
    pub stop: Arc<AtomicBool>,
}

/// What a check came to.
pub enum Verdict {
    Good,
    Bad {
        /// How it ended.
        why: String,
        /// The end of what it said.
        words: String,
    },
    /// A signal came to us.
    Stopped,
}

impl Check {
    pub fn new(command: &str, timeout: u32, stop: Arc<AtomicBool>) -> Self {
        Self {
            command: command.into(),
            timeout: Duration::from_secs(timeout.into()),
            stop,
        }
    }

    /// Runs it on a state, its output in a file.
    pub fn run(&self, state: &Path, marks: &Path, output: &Path) -> Outcome<Verdict> {
        let failed = |error: std::io::Error| Problem::new(format!("the check cannot run: {error}"));
        let mut out = File::create(output).map_err(failed)?;
        let child = Command::new("sh")
            .arg("-c")
            .arg(self.command.replace("{}", &state.to_string_lossy()))
            .env("FLOATGATE_STATE", state)
            .env("FLOATGATE_MARKS", marks)
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(out.try_clone().map_err(failed)?)
            // What it starts ends with it.
            .process_group(0)
            .spawn();
        let ended = self.wait(child.map_err(failed)?).map_err(failed)?;
        let why = match ended {
            None if self.stop.load(Ordering::Relaxed) => return Ok(Verdict::Stopped),
            None => format!("took more than {} s", self.timeout.as_secs()),
            Some(status) if status.success() => return Ok(Verdict::Good),
            Some(status) => match (status.code(), status.signal()) {
                // What a shell says of a command that is not there, or may not be run.
                (Some(code @ (126 | 127)), _) => {
                    let text = format!("the check ended with {code}: {}", words(&out_of(&mut out)));
                    return Err(Problem::new(text).help("126 and 127 mean that there is no such command; test it by hand on a state of --save"));
                }
                (Some(code), _) => format!("exit code {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or_default()),
            },
        };
        let words = words(&out_of(&mut File::open(output).map_err(failed)?));
        Ok(Verdict::Bad { why, words })
    }

    /// How it ended, or nothing if it had to be ended.
    fn wait(&self, mut child: Child) -> std::io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if start.elapsed() > self.timeout || self.stop.load(Ordering::Relaxed) {
                let group = Pid::from_child(&child);
                // Asked first, so that a script can unmount what it mounted.
                let _ = kill_process_group(group, Signal::TERM);
                std::thread::sleep(Duration::from_millis(300));
                let _ = kill_process_group(group, Signal::KILL);
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(16));
        }
    }
}

/// The end of what was written to a file.
fn out_of(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    let length = file.metadata().map_or(0, |found| found.len());
    let from = length.saturating_sub(WORDS_BYTES);
    if file.seek(SeekFrom::Start(from)).is_ok() {
        let _ = file.take(WORDS_BYTES).read_to_end(&mut bytes);
    }
    bytes
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
