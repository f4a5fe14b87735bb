//! `floatgate serve`: a device for clients that speak NBD.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use floatgate_catalog::Catalog;
use floatgate_device::Drive;
use floatgate_serve::{Endpoint, Server, Shared};
use serde::Serialize;

use super::{bytes, image, listeners};
use crate::args::ServeArgs;
use crate::errors::{Outcome, Problem};
use crate::{output, signals};

/// What is told when clients can connect.
#[derive(Serialize)]
struct Ready<'a> {
    uri: &'a str,
    scheme: &'a str,
    bytes: u64,
    page_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<String>,
}

/// Serves until a signal.
pub fn run(args: &ServeArgs, catalog: &Catalog) -> Outcome<()> {
    let endpoint = endpoint(args)?;
    listeners::check(&args.listen)?;
    let mut drive: Box<dyn Drive> = match (&args.file, args.memory) {
        (Some(file), _) => bytes::mount(file, catalog)?,
        (None, capacity) => image::in_memory(args, capacity.unwrap_or_default(), catalog)?,
    };
    let stop = signals::asked_to_end();
    let server = Server::bind(&endpoint).map_err(|error| not_bound(&endpoint, &error))?;
    if let Endpoint::Tcp(address) = endpoint
        && !address.ip().is_loopback()
    {
        output::tell("Note: whoever reaches this port can read and write the device");
    }
    let taps = listeners::begin(&args.listen, &mut *drive)?;
    let ready = Ready {
        uri: server.uri(),
        scheme: drive.scheme(),
        bytes: drive.sectors() * drive.sector_bytes() as u64,
        page_bytes: drive.page_bytes(),
        read_only: drive.read_only(),
    };
    if args.json {
        let line = serde_json::to_string(&ready);
        let line = line.map_err(|error| Problem::bug(error.to_string()))?;
        output::print(&format!("{line}\n"))?;
    } else {
        let why = ready.read_only.as_ref();
        let why = why.map_or(String::new(), |why| format!(", read-only: {why}"));
        output::print(&format!(
            "{}  {}, {} bytes{why}\n",
            ready.uri, ready.scheme, ready.bytes
        ))?;
    }
    let shared = Arc::new(Shared::new(drive, taps));
    std::thread::scope(|threads| {
        threads.spawn(|| shared.keep_time(&stop));
        server.run(&shared, args.connections as usize, &stop);
    });
    shared.close().map_err(|why| {
        Problem::new(format!("the device was not shut down in order: {why}"))
            .help("what was flushed is there; the next mount recovers as after a power cut")
    })
}

fn endpoint(args: &ServeArgs) -> Outcome<Endpoint> {
    let Some(tcp) = &args.tcp else {
        let default = || match &args.file {
            Some(file) => {
                let mut name = file.clone().into_os_string();
                name.push(".sock");
                PathBuf::from(name)
            }
            None => PathBuf::from("floatgate.sock"),
        };
        return Ok(Endpoint::Unix(args.socket.clone().unwrap_or_else(default)));
    };
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let address = match tcp.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::new(loopback, port)),
        Err(_) => tcp.parse(),
    };
    address.map(Endpoint::Tcp).map_err(|_| {
        Problem::new(format!("--tcp {tcp}: no port, and no address with a port"))
            .help("as 10809, 127.0.0.1:10809, [::1]:10809")
    })
}

fn not_bound(endpoint: &Endpoint, error: &std::io::Error) -> Problem {
    let (place, help) = match endpoint {
        Endpoint::Unix(path) => (
            format!("--socket {}", path.display()),
            "name another file (a socket's path has at most 107 bytes)",
        ),
        Endpoint::Tcp(address) => (format!("--tcp {address}"), "take another port"),
    };
    Problem::new(format!("{place}: {error}")).help(help)
}
