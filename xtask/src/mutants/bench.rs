//! One suite, with a bug or without: until its first test fails, or to its end, or to a time limit.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::scratch::VARIABLE;
use super::suites::{Binaries, Suite};
use super::table::Bug;

/// Kilobytes of memory: a bug may ask for all there is.
const MEMORY_KB: u32 = 6_000_000;
/// Times the limit of processor time that may pass on a clock: the machine may have more to do.
const WAIT_TIMES: u32 = 10;
/// The signal at the limit of processor time.
#[cfg(unix)]
const SIGXCPU: i32 = 24;

/// How a suite ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing was noticed.
    Passed,
    /// This was the first that noticed something.
    Failed(String),
}

impl Binaries {
    /// Runs one suite, on these schemes if any are named, until its first test fails, or to its end. `limit`: of
    /// processor time.
    pub fn run(&self, suite: &Suite, schemes: &str, bug: Option<&Bug>, limit: Duration) -> End {
        let binary = match self.of(suite) {
            Ok(binary) => binary,
            Err(why) => return End::Failed(why),
        };
        let mut command = limited(&binary, limit);
        command
            .current_dir(self.source().join("crates").join(suite.krate))
            .args(suite.args)
            .envs(suite.env.iter().copied())
            .env("FLOATGATE_TEST_SCHEMES", schemes)
            .env_remove(VARIABLE);
        if let Some(bug) = bug {
            command.env(VARIABLE, bug.id.to_string());
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        match child {
            Ok(child) => watch(child, limit * WAIT_TIMES),
            Err(error) => End::Failed(format!("{}: {error}", binary.display())),
        }
    }
}

/// A program that may take neither all memory nor all time.
#[cfg(unix)]
fn limited(program: &Path, limit: Duration) -> Command {
    let mut shell = Command::new("sh");
    let seconds = limit.as_secs() + 1;
    let script = format!("ulimit -v {MEMORY_KB}; ulimit -t {seconds}; exec \"$0\" \"$@\"");
    shell.arg("-c").arg(script).arg(program);
    shell
}

#[cfg(not(unix))]
fn limited(program: &Path, _limit: Duration) -> Command {
    let _ = MEMORY_KB;
    Command::new(program)
}

/// What the end of a test binary says that named no test.
fn ended(status: ExitStatus) -> End {
    #[cfg(unix)]
    if std::os::unix::process::ExitStatusExt::signal(&status) == Some(SIGXCPU) {
        return End::Failed("by time limit".into());
    }
    match status.success() {
        true => End::Passed,
        false => End::Failed(status.to_string()),
    }
}

/// Waits for the first failure of a test binary, or its end.
fn watch(mut child: Child, limit: Duration) -> End {
    let (send, lines) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            // Nobody listens any more once a test has failed.
            lines.all(|line| send.send(line).is_ok())
        });
    }
    let start = Instant::now();
    let end = loop {
        match lines.recv_timeout(limit.saturating_sub(start.elapsed())) {
            Ok(line) => {
                if let Some(test) = failed_test(&line) {
                    break End::Failed(test.into());
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                break End::Failed("by time limit".into());
            }
            Err(RecvTimeoutError::Disconnected) => {
                return match child.wait() {
                    Ok(status) => ended(status),
                    Err(error) => End::Failed(error.to_string()),
                };
            }
        }
    };
    // It may have ended in the meantime.
    let _ = child.kill();
    let _ = child.wait();
    end
}

/// The test that a line of a test binary says has failed.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_found() {
        assert_eq!(failed_test("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(failed_test("test a::b ... ok"), None);
        assert_eq!(failed_test("test result: FAILED. 1 passed"), None);
    }

    #[test]
    #[cfg(unix)]
    fn a_hang_ends() {
        let mut sleep = Command::new("sleep");
        let child = sleep.arg("60").stdout(Stdio::piped()).spawn().unwrap();
        let end = watch(child, Duration::from_millis(50));
        assert!(matches!(end, End::Failed(why) if why == "by time limit"));
    }
}
