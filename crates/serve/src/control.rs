//! The control socket: a JSON object a line in, one a line out. Whoever may use it can cut the power and damage the
//! device, so the socket is for its owner alone.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cut::{CutAt, CutPlan, drawn, unflushed_of};
use crate::shared::Shared;
use crate::socket::{OwnSocket, ROUND, wait};

/// Bytes of a line.
const LINE_MAX: u64 = 64 << 10;
/// Clients at a time; others wait.
const CLIENTS_MAX: usize = 8;

/// What can be asked for.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
enum Command {
    Stat {},
    Mark {
        text: String,
    },
    Cut {
        at: Option<At>,
        #[serde(default = "some")]
        unflushed: String,
        #[serde(default)]
        tear: bool,
        #[serde(default)]
        seed: u64,
    },
    On {},
    Snapshot {
        file: PathBuf,
    },
    Restore {
        file: PathBuf,
    },
    Misdirect {
        #[serde(default = "one")]
        write: u64,
        to: Option<u64>,
        #[serde(default)]
        seed: u64,
    },
    Unreadable {
        offset: u64,
        bytes: u64,
    },
    Shutdown {},
}

/// When the power is to go, from now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    write: Option<u64>,
    flush: Option<u64>,
    flash: Option<u64>,
    after: Option<u64>,
    random: Option<u64>,
    within: Option<u64>,
}

fn some() -> String {
    "some".into()
}

fn one() -> u64 {
    1
}

impl At {
    fn place(&self) -> Result<CutAt, String> {
        let named = [
            self.write.map(CutAt::Write),
            self.flush.map(CutAt::Flush),
            self.flash.map(CutAt::Flash),
            self.after.map(CutAt::After),
        ];
        let mut named = named.into_iter().flatten();
        match (named.next(), named.next(), self.random, self.within) {
            (Some(CutAt::Write(0) | CutAt::Flush(0) | CutAt::Flash(0)), None, ..) => {
                Err("at: the first is 1".into())
            }
            (Some(at), None, None, None) => Ok(at),
            (None, None, Some(seed), Some(within)) => drawn(seed, within),
            _ => Err("at: one of {\"write\":N}, {\"flush\":N}, {\"flash\":N}, {\"after\":N} and {\"random\":SEED,\"within\":N}".into()),
        }
    }
}

/// Does what a line asks for, and says what came of it.
pub fn answer(line: &[u8], shared: &Shared, stop: &AtomicBool) -> Value {
    let done = serde_json::from_slice::<Command>(line)
        .map_err(|error| format!("not understood: {error}"))
        .and_then(|command| done(command, shared, stop));
    match done {
        Ok(mut told) => {
            told["ok"] = true.into();
            told
        }
        Err(why) => json!({"ok": false, "error": why}),
    }
}

fn done(command: Command, shared: &Shared, stop: &AtomicBool) -> Result<Value, String> {
    let none = json!({});
    match command {
        Command::Stat {} => as_json(&shared.stat()?),
        Command::Mark { text } => {
            let marked = shared.mark(&text);
            marked.map_err(|_| "the device is undefined")?;
            Ok(none)
        }
        Command::Cut {
            at,
            unflushed,
            tear,
            seed,
        } => {
            let at = at.map(|at| at.place()).transpose()?;
            let plan = CutPlan {
                // Where it is counted from is known to the device alone.
                at: CutAt::After(0),
                unflushed: unflushed_of(&unflushed)?,
                tear,
                seed,
            };
            let plan = shared.cut(at, plan)?;
            Ok(json!({"cut": plan.to_string(), "is_armed": at.is_some()}))
        }
        Command::On {} => as_json(&shared.power_on()?),
        Command::Snapshot { file } => Ok(json!({"file_bytes": shared.snapshot(&file)?})),
        Command::Restore { file } => as_json(&shared.restore(&file)?),
        Command::Misdirect { write, to, seed } => {
            shared.misdirect(write, to, seed)?;
            Ok(none)
        }
        Command::Unreadable { offset, bytes } => {
            shared.make_unreadable(offset, bytes)?;
            Ok(none)
        }
        Command::Shutdown {} => {
            stop.store(true, Ordering::Relaxed);
            Ok(none)
        }
    }
}

fn as_json(told: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(told).map_err(|error| error.to_string())
}

/// The socket, taken.
#[derive(Debug)]
pub struct Control(OwnSocket);

impl Control {
    /// Takes the socket. The file of a server that was killed is replaced; any other file is left alone.
    ///
    /// # Errors
    /// If the address is taken, or cannot be used.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let socket = OwnSocket::bind(path)?;
        socket.listener().set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Answers until `over` is set; `shutdown` sets `asked`, on which the device is to be shut down in order. It wants a
    /// thread of its own.
    pub fn run(self, shared: &Arc<Shared>, over: &Arc<AtomicBool>, asked: &Arc<AtomicBool>) {
        let mut clients: Vec<JoinHandle<()>> = Vec::new();
        while !over.load(Ordering::Relaxed) {
            clients.retain(|client| !client.is_finished());
            if clients.len() >= CLIENTS_MAX {
                std::thread::sleep(ROUND);
                continue;
            }
            if !wait(self.0.listener()) {
                continue;
            }
            let Ok((stream, _)) = self.0.listener().accept() else {
                continue;
            };
            let (shared, over) = (Arc::clone(shared), Arc::clone(over));
            let asked = Arc::clone(asked);
            let thread = std::thread::Builder::new().spawn(move || {
                // How a connection ends is the client's affair.
                let _ = converse(&stream, &shared, &over, &asked);
            });
            clients.extend(thread);
        }
        for client in clients {
            let _ = client.join();
        }
    }
}

fn converse(
    stream: &UnixStream,
    shared: &Shared,
    over: &AtomicBool,
    asked: &AtomicBool,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(ROUND))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let left = LINE_MAX + 1 - line.len() as u64;
        match reader.by_ref().take(left).read_until(b'\n', &mut line) {
            // The last line may end with the connection.
            Ok(0) if line.is_empty() => return Ok(()),
            Ok(0) => return tell(stream, &answer(&line, shared, asked)),
            Ok(_) => {}
            Err(error) if is_timeout(&error) => continue,
            Err(error) => return Err(error),
        }
        if line.last() != Some(&b'\n') {
            if line.len() as u64 > LINE_MAX {
                return tell(
                    stream,
                    &json!({"ok": false, "error": format!("a line has {LINE_MAX} bytes at most")}),
                );
            }
            continue;
        }
        if !line.trim_ascii().is_empty() {
            tell(stream, &answer(&line, shared, asked))?;
        }
        line.clear();
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn tell(mut stream: &UnixStream, told: &Value) -> io::Result<()> {
    stream.write_all(format!("{told}\n").as_bytes())
}

/// Sends a line to a control socket and returns the answer.
///
/// # Errors
/// If nobody answers there.
pub fn ask(path: &Path, line: &str) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes())?;
    let mut told = String::new();
    BufReader::new(stream).read_line(&mut told)?;
    serde_json::from_str(&told).map_err(io::Error::other)
}
