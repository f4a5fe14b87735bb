//! `floatgate serve`: a device for clients that speak NBD, and for a virtual machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use floatgate_catalog::Catalog;
use floatgate_serve::{Endpoint, Server, Shared, VhostUser};

use super::listeners;
use super::ready::{self, Ready};
use crate::args::ServeArgs;
use crate::errors::{Outcome, Problem};
use crate::{output, signals};

/// What to do where a socket cannot be made.
const OTHER_SOCKET: &str = "name another file (a socket's path has at most 107 bytes)";

/// Serves until a signal.
pub fn run(args: &ServeArgs, catalog: &Catalog) -> Outcome<()> {
    let endpoint = endpoint(args)?;
    let setup = ready::setup(&args.device, catalog)?;
    let mut drive = ready::open(&args.device, catalog)?;
    let stop = signals::asked_to_end();
    let mut ready = Ready::new(&*drive);
    let nbd = match &endpoint {
        Some(endpoint) => Some(bind_nbd(endpoint)?),
        None => None,
    };
    let vhost_user = match &args.vhost_user {
        Some(path) => Some(bind_vhost_user(path)?),
        None => None,
    };
    ready.uri = nbd.as_ref().map(|server| server.uri().into());
    let path = args.vhost_user.as_ref();
    ready.vhost_user = path.map(|path| path.display().to_string());
    let taps = listeners::begin(&args.device.listen, &mut *drive)?;
    let (shared, control) = ready::put_up(&args.device, drive, taps, setup)?;
    let mut outcome = Ok(());
    std::thread::scope(|threads| {
        threads.spawn(|| shared.keep_time(&stop));
        if let Some(control) = control {
            threads.spawn(|| control.run(&shared, &stop, &stop));
        }
        if let Some(server) = vhost_user {
            threads.spawn(|| server.run(&shared, &stop));
        }
        if let Some(server) = nbd {
            threads.spawn(|| server.run(&shared, args.connections as usize, &stop));
        }
        outcome = begin(args, &shared, &stop, ready);
        if outcome.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
    });
    outcome.and(ready::shut_down(&shared))
}

/// Tells that clients can connect.
#[cfg(not(feature = "ublk"))]
fn begin(args: &ServeArgs, _: &Arc<Shared>, _: &AtomicBool, ready: Ready) -> Outcome<()> {
    ready.print(args.json)
}

/// Tells that clients can connect; a block device is one of them, and is served from here to its end.
#[cfg(feature = "ublk")]
fn begin(
    args: &ServeArgs,
    shared: &Arc<Shared>,
    stop: &AtomicBool,
    mut ready: Ready,
) -> Outcome<()> {
    if !args.ublk {
        return ready.print(args.json);
    }
    let as_json = args.json;
    let tell = move |path: &str| {
        ready.block_device = Some(path.into());
        // Nobody may be there to read it.
        let _ = ready.print(as_json);
    };
    let served = floatgate_serve::ublk::serve(shared, stop, tell);
    // Who deletes the block device ends the server.
    stop.store(true, Ordering::Relaxed);
    served.map_err(|why| {
        Problem::new(format!("--ublk: {why}")).help(
            "the kernel needs its ublk driver (Linux 6.0 and later; modprobe ublk_drv), and you must be root",
        )
    })
}

fn bind_nbd(endpoint: &Endpoint) -> Outcome<Server> {
    let server = Server::bind(endpoint).map_err(|error| not_bound(endpoint, &error))?;
    if let Endpoint::Tcp(address) = endpoint
        && !address.ip().is_loopback()
    {
        output::tell("Note: whoever reaches this port can read and write the device");
    }
    Ok(server)
}

fn bind_vhost_user(path: &Path) -> Outcome<VhostUser> {
    VhostUser::bind(path).map_err(|error| {
        let place = format!("--vhost-user {}", path.display());
        Problem::new(format!("{place}: {error}")).help(OTHER_SOCKET)
    })
}

/// Where NBD is served, if it is.
fn endpoint(args: &ServeArgs) -> Outcome<Option<Endpoint>> {
    let Some(tcp) = &args.tcp else {
        let default = || match &args.device.file {
            Some(file) => {
                let mut name = file.clone().into_os_string();
                name.push(".sock");
                PathBuf::from(name)
            }
            None => PathBuf::from("floatgate.sock"),
        };
        let path = match &args.socket {
            Some(path) => path.clone(),
            None if args.has_other_front_end() => return Ok(None),
            None => default(),
        };
        return Ok(Some(Endpoint::Unix(path)));
    };
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let address = match tcp.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::new(loopback, port)),
        Err(_) => tcp.parse(),
    };
    address.map(Endpoint::Tcp).map(Some).map_err(|_| {
        Problem::new(format!("--tcp {tcp}: no port, and no address with a port"))
            .help("as 10809, 127.0.0.1:10809, [::1]:10809")
    })
}

fn not_bound(endpoint: &Endpoint, error: &std::io::Error) -> Problem {
    let (place, help) = match endpoint {
        Endpoint::Unix(path) => (format!("--socket {}", path.display()), OTHER_SOCKET),
        Endpoint::Tcp(address) => (format!("--tcp {address}"), "take another port"),
    };
    Problem::new(format!("{place}: {error}")).help(help)
}
