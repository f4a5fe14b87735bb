//! `floatgate serve`: a device for clients that speak NBD.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use floatgate_catalog::Catalog;
use floatgate_serve::{Endpoint, Server, Shared};

use super::ready::{self, Ready};
use crate::args::ServeArgs;
use crate::errors::{Outcome, Problem};
use crate::{output, signals};

/// Serves until a signal.
pub fn run(args: &ServeArgs, catalog: &Catalog) -> Outcome<()> {
    let endpoint = endpoint(args)?;
    let drive = ready::open(&args.device, catalog)?;
    let stop = signals::asked_to_end();
    let server = Server::bind(&endpoint).map_err(|error| not_bound(&endpoint, &error))?;
    if let Endpoint::Tcp(address) = endpoint
        && !address.ip().is_loopback()
    {
        output::tell("Note: whoever reaches this port can read and write the device");
    }
    let mut ready = Ready::new(&*drive);
    ready.uri = Some(server.uri().into());
    ready.print(args.json)?;
    let shared = Arc::new(Shared::new(drive, Vec::new()));
    std::thread::scope(|threads| {
        threads.spawn(|| shared.keep_time(&stop));
        server.run(&shared, args.connections as usize, &stop);
    });
    ready::shut_down(&shared)
}

fn endpoint(args: &ServeArgs) -> Outcome<Endpoint> {
    let Some(tcp) = &args.tcp else {
        let default = || match &args.device.file {
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
