//! A device served to clients that nobody here wrote: a server of the NBD protocol (the network block device of Linux, QEMU
//! and libnbd) over a Unix socket or TCP; a file in a folder, through FUSE, and a loop device of the kernel on it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`server`] | [`Server`]: the socket, the connections, the end |
//! | [`negotiation`] | the first half of a connection: what is served and how |
//! | [`transmission`] | the second half: requests and replies |
//! | [`control`] | the socket by which a device is watched, cut off and damaged |
//! | [`cut`] | [`CutPlan`]: a power cut as it is asked for |
//! | [`shared::power`] | [`Setup`]: the device as a drive; its power, gone and back |
//! | [`stat`], [`prometheus`] | statistics, and their text form |
//! | [`fuse`] | [`Mounted`]: the device as a file in a folder |
//! | [`loop_device`] | [`LoopDevice`]: the kernel's block device on a file |
//! | [`shared`] | the one device behind its lock, for every front end |
//! | `socket` | a socket in the file system: taken, waited on, removed |
//! | [`tap`] | [`Tap`]: who listens to what the device is asked |
//! | [`log`] | [`log::LogTap`]: a file of all writes with their bytes, and its reader |
//! | [`crash`] | the states that a power cut can leave of what is in a log |
//! | `ublk` | a block device of this machine without a file between (feature `ublk`) |
//! | [`vhost`] | [`VhostUser`]: the disk of a virtual machine |
//! | [`wire`] | the numbers of the protocol; bytes in, bytes out |
//!
//! What a client sends is never trusted: every length has a limit, memory grows with the bytes that have come and not
//! with those that are announced, and nothing of a request is done before all of it was checked. A client that
//! breaks the protocol loses its connection, and nobody else notices. The lock of the device is never held while a
//! socket is waited for.

pub mod control;
pub mod crash;
pub mod cut;
pub mod fuse;
pub mod log;
pub mod loop_device;
pub mod negotiation;
pub mod prometheus;
pub mod server;
pub mod shared;
mod socket;
pub mod stat;
pub mod tap;
pub mod transmission;
#[cfg(feature = "ublk")]
pub mod ublk;
pub mod vhost;
pub mod wire;

pub use cut::CutPlan;
pub use fuse::Mounted;
pub use loop_device::LoopDevice;
pub use server::{Endpoint, Server};
pub use shared::Shared;
pub use shared::power::Setup;
pub use tap::Tap;
pub use vhost::VhostUser;
