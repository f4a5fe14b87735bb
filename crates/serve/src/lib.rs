//! A device served to clients that nobody here wrote: a server of the NBD protocol (the network block device of Linux, QEMU
//! and libnbd) over a Unix socket or TCP.
//!
//! | module | what it holds |
//! |---|---|
//! | [`server`] | [`Server`]: the socket, the connections, the end |
//! | [`negotiation`] | the first half of a connection: what is served and how |
//! | [`transmission`] | the second half: requests and replies |
//! | [`shared`] | the one device behind its lock, for every front end |
//! | [`tap`] | [`Tap`]: who listens to what the device is asked |
//! | [`log`] | [`log::LogTap`]: a file of all writes with their bytes, and its reader |
//! | [`crash`] | the states that a power cut can leave of what is in a log |
//! | [`wire`] | the numbers of the protocol; bytes in, bytes out |
//!
//! What a client sends is never trusted: every length has a limit, memory grows with the bytes that have come and not
//! with those that are announced, and nothing of a request is done before all of it was checked. A client that
//! breaks the protocol loses its connection, and nobody else notices. The lock of the device is never held while a
//! socket is waited for.

pub mod crash;
pub mod log;
pub mod negotiation;
pub mod server;
pub mod shared;
pub mod tap;
pub mod transmission;
pub mod wire;

pub use server::{Endpoint, Server};
pub use shared::Shared;
pub use tap::Tap;
