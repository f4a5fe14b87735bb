//! The socket, the connections, the end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::negotiation::negotiate;
use crate::shared::Shared;
use crate::socket::{OwnSocket, ROUND, wait};
use crate::transmission::serve;
use crate::wire::Wire;

/// How long a client may be silent while it negotiates, and may leave its replies unread: a place is not held for
/// nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long clients may take to read their last replies when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// Where clients find the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// A socket in the file system, for this user alone.
    Unix(PathBuf),
    /// A port. Whoever reaches it can read and write the device.
    Tcp(SocketAddr),
}

/// A socket that clients can connect to.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    uri: String,
}

#[derive(Debug)]
enum Listener {
    Unix(OwnSocket),
    Tcp(TcpListener),
}

/// A client's socket.
#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A connection as the server keeps it.
struct Connection {
    stream: Stream,
    thread: JoinHandle<()>,
}

impl Server {
    /// Takes the socket. The file of a server that was killed is replaced; any other file is left alone.
    ///
    /// # Errors
    /// If the address is taken, or cannot be used.
    pub fn bind(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => {
                let socket = OwnSocket::bind(path)?;
                socket.listener().set_nonblocking(true)?;
                Ok(Self {
                    uri: format!("nbd+unix:///?socket={}", escaped(&socket.whole_path()?)),
                    listener: Listener::Unix(socket),
                })
            }
            Endpoint::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(Self {
                    uri: format!("nbd://{}/", listener.local_addr()?),
                    listener: Listener::Tcp(listener),
                })
            }
        }
    }

    /// What clients are told to connect to.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Serves the device to so many clients at a time until `stop` is set. The device stays up: it may have other front
    /// ends.
    pub fn run(self, shared: &Arc<Shared>, connections_max: usize, stop: &Arc<AtomicBool>) {
        let mut connections: Vec<Connection> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            connections.retain(|connection| !connection.thread.is_finished());
            // The others wait in the socket's own queue.
            let has_place = connections.len() < connections_max;
            if has_place {
                wait(&self.listener);
                if let Ok(stream) = self.accept() {
                    connections.extend(welcome(stream, shared, stop));
                }
            } else {
                std::thread::sleep(ROUND);
            }
        }
        drop(self);
        // What was asked is still done and answered; nothing more is taken.
        part(&connections, Shutdown::Read);
        let end = Instant::now() + GRACE;
        while connections.iter().any(|one| !one.thread.is_finished()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        part(&connections, Shutdown::Both);
        for connection in connections {
            // One that panicked has been told of, and the lock knows.
            let _ = connection.thread.join();
        }
    }

    fn accept(&self) -> io::Result<Stream> {
        match &self.listener {
            Listener::Unix(socket) => Ok(Stream::Unix(socket.listener().accept()?.0)),
            Listener::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

/// Gives a client its thread. A client for whom there is none is let go.
fn welcome(stream: Stream, shared: &Arc<Shared>, stop: &Arc<AtomicBool>) -> Option<Connection> {
    let theirs = stream.try_clone().ok()?;
    let (shared, stop) = (Arc::clone(shared), Arc::clone(stop));
    let thread = std::thread::Builder::new().spawn(move || {
        // How a connection ends is the client's affair. It is hung up on within a round, when the server lets go of
        // its own handle.
        let _ = converse(theirs, &shared, &stop);
    });
    Some(Connection {
        stream,
        thread: thread.ok()?,
    })
}

fn converse(stream: Stream, shared: &Shared, stop: &AtomicBool) -> io::Result<()> {
    let export = &shared.export();
    stream.begin()?;
    let mut wire = Wire::new(stream);
    if let Some(agreed) = negotiate(&mut wire, export)? {
        wire.send()?;
        // A client with nothing to do may keep its connection.
        wire.stream().wait_for_ever()?;
        let outcome = serve(&mut wire, shared, export, agreed, stop);
        // What was done is told even to a client that is then let go.
        wire.send()?;
        outcome?;
    }
    Ok(())
}

fn part(connections: &[Connection], how: Shutdown) {
    for connection in connections {
        connection.stream.shut(how);
    }
}

/// A path as a part of a URI.
fn escaped(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(byte);
    path.as_os_str()
        .as_bytes()
        .iter()
        .map(|byte| match plain(byte) {
            true => char::from(*byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.listener().as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Stream {
    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => Ok(Self::Unix(stream.try_clone()?)),
            Self::Tcp(stream) => Ok(Self::Tcp(stream.try_clone()?)),
        }
    }

    fn begin(&self) -> io::Result<()> {
        let limit = Some(PATIENCE);
        match self {
            Self::Unix(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)
            }
        }
    }

    fn wait_for_ever(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(None),
            Self::Tcp(stream) => stream.set_read_timeout(None),
        }
    }

    fn shut(&self, how: Shutdown) {
        // It may have gone already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(into),
            Self::Tcp(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
