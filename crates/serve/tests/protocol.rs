//! Hand-made bytes against the server: what it answers, what it refuses, and that no client harms the device or another.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use floatgate_catalog as _;
use floatgate_core::rng::SplitMix64;
use floatgate_device::drive;
use floatgate_device::image::{self, Durability, ImageSpec};
use floatgate_schemes::page::Page;
use floatgate_serve::{Endpoint, Server, Shared};

const PAGES: u64 = 96;
const PAGE: u64 = 2048;
const BYTES: u64 = PAGES * PAGE;

fn spec() -> ImageSpec {
    ImageSpec::small(PAGES)
}

/// A server of a small device in memory.
struct Served {
    folder: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Served {
    fn new(connections: usize) -> Self {
        let device = drive::in_memory::<Page>(&spec()).expect("a device");
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::bind(&Endpoint::Unix(folder.path().join("s"))).expect("a socket");
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let shared = Arc::new(Shared::new(device, Vec::new()));
            server.run(&shared, connections, &flag);
            shared.close()
        });
        Self {
            folder,
            stop,
            thread: Some(thread),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.socket()).expect("a connection");
        let limit = Some(std::time::Duration::from_secs(20));
        stream.set_read_timeout(limit).expect("a limit");
        Client(stream)
    }

    /// A client after `GO`, with structured replies and block status.
    fn client(&self) -> Client {
        let mut client = self.connect();
        client.greet();
        client.option(8, &[]);
        assert_eq!(client.reply(), (8, 1, vec![]));
        client.option(10, &query(b"base:allocation"));
        let told = [&1u32.to_be_bytes()[..], b"base:allocation"].concat();
        assert_eq!(client.reply(), (10, 4, told));
        assert_eq!(client.reply(), (10, 1, vec![]));
        client.option(7, &[0; 6]);
        let (.., export) = client.reply();
        assert_eq!(export[..10], [&[0, 0][..], &BYTES.to_be_bytes()].concat());
        let sizes = [512u32, 2048, 32 << 20].map(u32::to_be_bytes).concat();
        assert_eq!(client.reply(), (7, 3, [&[0, 3][..], &sizes].concat()));
        assert_eq!(client.reply(), (7, 1, vec![]));
        client
    }

    fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().expect("a thread").join();
        ended.expect("no panic").expect("closed in order");
        assert!(!self.socket().exists(), "the socket's file is removed");
    }
}

fn query(context: &[u8]) -> Vec<u8> {
    let mut data = vec![0, 0, 0, 0, 0, 0, 0, 1];
    data.extend((context.len() as u32).to_be_bytes());
    data.extend(context);
    data
}

struct Client(UnixStream);

impl Client {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).expect("an answer");
        bytes
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("4"))
    }

    fn greet(&mut self) {
        assert_eq!(self.take(18), b"NBDMAGICIHAVEOPT\0\x03");
        self.0.write_all(&3u32.to_be_bytes()).expect("sent");
    }

    fn option(&mut self, kind: u32, data: &[u8]) {
        let length = data.len() as u32;
        let head = [
            &b"IHAVEOPT"[..],
            &kind.to_be_bytes(),
            &length.to_be_bytes(),
            data,
        ];
        self.0.write_all(&head.concat()).expect("sent");
    }

    fn reply(&mut self) -> (u32, u32, Vec<u8>) {
        assert_eq!(self.take(8), 0x0003_e889_0455_65a9_u64.to_be_bytes());
        let (to, kind, length) = (self.u32(), self.u32(), self.u32());
        (to, kind, self.take(length as usize))
    }

    fn ask(&mut self, command: u16, flags: u16, offset: u64, length: u32, data: &[u8]) {
        let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(77u64.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(data);
        self.0.write_all(&bytes).expect("sent");
    }

    /// Asks for something that is answered simply.
    fn simple(&mut self, command: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> u32 {
        self.ask(command, flags, offset, length, data);
        assert_eq!(self.u32(), 0x6744_6698);
        let error = self.u32();
        assert_eq!(self.take(8), 77u64.to_be_bytes());
        error
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> u32 {
        self.simple(1, 0, offset, data.len() as u32, data)
    }

    /// Kind and payload of the one chunk of an answer.
    fn chunk(&mut self, command: u16, flags: u16, offset: u64, length: u32) -> (u16, Vec<u8>) {
        self.ask(command, flags, offset, length, &[]);
        let head = self.take(16);
        assert_eq!(head[..6], [0x66, 0x8e, 0x33, 0xef, 0, 1]);
        assert_eq!(head[8..], 77u64.to_be_bytes());
        let length = self.u32();
        (
            u16::from_be_bytes([head[6], head[7]]),
            self.take(length as usize),
        )
    }

    fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let (kind, data) = self.chunk(0, 0, offset, length);
        assert_eq!((kind, &data[..8]), (1, &offset.to_be_bytes()[..]));
        data[8..].to_vec()
    }

    fn error(&mut self, command: u16, flags: u16, offset: u64, length: u32) -> u32 {
        let (kind, data) = self.chunk(command, flags, offset, length);
        assert_eq!((kind, data.len()), (1 << 15 | 1, 6));
        u32::from_be_bytes(data[..4].try_into().expect("4"))
    }

    /// Bytes and states of the extents of a range.
    fn status(&mut self, flags: u16, offset: u64, length: u32) -> Vec<(u32, u32)> {
        let (kind, data) = self.chunk(7, flags, offset, length);
        assert_eq!((kind, &data[..4]), (5, &[0, 0, 0, 1][..]));
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("4"));
        data[4..]
            .chunks(8)
            .map(|pair| (number(&pair[..4]), number(&pair[4..])))
            .collect()
    }

    fn is_hung_up(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn bytes_come_back_and_flushes_cover_all_connections() {
    let served = Served::new(4);
    let (mut a, mut b) = (served.client(), served.client());
    let data: Vec<u8> = (0..6144u32).map(|i| (i / 7) as u8).collect();
    assert_eq!(a.write(512, &data), 0);
    assert_eq!(b.read(512, 6144), data);
    assert_eq!(b.read(0, 512), [0; 512]);
    assert_eq!(b.simple(3, 0, 0, 0, &[]), 0);
    assert_eq!(a.simple(1, 1, 0, 512, &data[..512]), 0, "FUA");
    assert_eq!(b.read(0, 512), data[..512]);
    served.end();
}

#[test]
fn zeroes_and_holes_are_told_truthfully() {
    let served = Served::new(4);
    let mut client = served.client();
    assert_eq!(client.status(0, 0, BYTES as u32), [(BYTES as u32, 3)]);
    assert_eq!(client.write(0, &vec![7; 5 * PAGE as usize]), 0);
    let rest = (BYTES - 5 * PAGE) as u32;
    assert_eq!(
        client.status(0, 0, BYTES as u32),
        [(5 * 2048, 0), (rest, 3)]
    );
    // Zeroes over half a page, two whole ones, half a page: the whole ones are dropped.
    assert_eq!(client.simple(6, 0, 1024, 6144, &[]), 0);
    let extents = [(2048, 0), (4096, 3), (4096, 0), (rest, 3)];
    assert_eq!(client.status(0, 0, BYTES as u32), extents);
    assert_eq!(client.status(8, 0, BYTES as u32), extents[..1], "only one");
    let found = client.read(0, 5 * PAGE as u32);
    assert_eq!(found[..1024], [7; 1024]);
    assert_eq!(found[1024..7168], [0; 6144]);
    assert_eq!(found[7168..], [7; 3072]);
    // Without a hole they are written; fast they are only where pages are dropped.
    assert_eq!(client.simple(6, 2, 8192, 2048, &[]), 0);
    assert_eq!(client.status(0, 8192, 2048), [(2048, 0)]);
    assert_eq!(client.simple(6, 16, 512, 512, &[]), 95);
    assert_eq!(client.simple(6, 18, 0, 2048, &[]), 95);
    assert_eq!(client.simple(6, 16, 0, 2048, &[]), 0);
    assert_eq!(client.read(0, 2048), [0; 2048]);
    // A trim of parts drops nothing.
    assert_eq!(client.simple(4, 0, 6656, 512, &[]), 0);
    assert_eq!(client.read(7168, 1024), [7; 1024]);
    served.end();
}

#[test]
fn what_an_earlier_life_left_is_no_hole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.img");
    image::create::<Page>(&path, &spec()).expect("an image");
    let mount = || drive::mount::<Page>(&path, Durability::Process).expect("a device");
    let mut device = mount();
    assert!(device.is_hole(0) && device.is_hole(5));
    device.write(0, &[7; 4096]).expect("written");
    assert!(!device.is_hole(0) && device.is_hole(5));
    // As after a power cut: the register knows nothing of these writes.
    drop(device);
    let mut device = mount();
    assert!(!device.is_hole(0) && !device.is_hole(1));
    device.trim(0, 4).expect("trimmed");
    assert!(device.is_hole(0) && !device.is_hole(1));
    device.write(0, &[8; 512]).expect("written");
    assert!(!device.is_hole(0));
    device.close().expect("closed");
}

#[test]
fn what_makes_no_sense_is_refused_and_the_next_request_is_served() {
    let served = Served::new(4);
    let mut client = served.client();
    assert_eq!(client.error(0, 0, BYTES, 512), 22);
    assert_eq!(client.error(0, 0, u64::MAX - 511, 512), 22);
    assert_eq!(client.error(0, 0, 1, 512), 22);
    assert_eq!(client.error(0, 0, 0, 511), 22);
    assert_eq!(client.error(0, 2, 0, 512), 22, "a flag of another command");
    assert_eq!(client.error(0, 0, 0, u32::MAX), 75);
    assert_eq!(client.error(7, 0, 0, 0), 22);
    assert_eq!(client.simple(1, 0, BYTES - 512, 1024, &[9; 1024]), 28);
    assert_eq!(client.simple(1, 0, 100, 512, &[9; 512]), 22);
    assert_eq!(client.simple(6, 0, BYTES, 512, &[]), 28);
    assert_eq!(client.simple(4, 0, BYTES, 512, &[]), 22);
    assert_eq!(client.simple(3, 0, 512, 0, &[]), 22);
    assert_eq!(client.simple(5, 0, 0, 512, &[]), 22, "CACHE is not offered");
    assert_eq!(client.simple(99, 0, 0, 0, &[]), 22);
    assert_eq!(client.read(BYTES - 1024, 1024), [0; 1024]);
    served.end();
}

#[test]
fn options_are_answered_and_mistakes_survived() {
    let served = Served::new(4);
    let mut client = served.connect();
    client.greet();
    client.option(3, &[]);
    assert_eq!(client.reply(), (3, 2, vec![0; 4]));
    assert_eq!(client.reply(), (3, 1, vec![]));
    client.option(5, &[]);
    assert_eq!(client.reply().1, 1 << 31 | 1, "no TLS");
    client.option(10, &query(b"base:allocation"));
    assert_eq!(client.reply().1, 1 << 31 | 3, "before structured replies");
    for data in [
        &[0xFF; 6][..],
        &[0; 5],
        &[0, 0, 0, 0, 0, 9],
        &[0, 0, 0, 0, 0, 0, 0],
    ] {
        client.option(7, data);
        assert_eq!(client.reply().1, 1 << 31 | 3, "{data:?}");
    }
    client.option(6, &[0, 0, 0, 1, b'x', 0, 0]);
    assert_eq!(client.reply().1, 1 << 31 | 6);
    // Of an old client, which asks by name and gets simple replies.
    client.option(1, &[]);
    assert_eq!(client.take(8), BYTES.to_be_bytes());
    assert_eq!(client.take(2), [0b1001, 0b1110_1101]);
    client.ask(0, 0, 0, 512, &[]);
    assert_eq!(client.u32(), 0x6744_6698);
    assert_eq!(client.take(4 + 8 + 512)[12..], [0; 512]);
    assert_eq!(
        client.simple(7, 0, 0, 512, &[]),
        22,
        "not without its context"
    );
    client.ask(2, 0, 0, 0, &[]);
    assert!(client.is_hung_up());
    served.end();
}

#[test]
fn a_client_that_breaks_the_protocol_loses_its_connection_only() {
    let served = Served::new(4);
    let mut good = served.client();
    assert_eq!(good.write(0, &[5; 512]), 0);
    let mut long_option = b"IHAVEOPT".to_vec();
    long_option.extend([0, 0, 0, 7, 0xFF, 0xFF, 0xFF, 0xFF]);
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), long_option] {
        let mut bad = served.connect();
        bad.greet();
        bad.0.write_all(&bytes).expect("sent");
        assert!(bad.is_hung_up());
    }
    let mut bad = served.client();
    bad.ask(1, 0, 0, u32::MAX, &[]);
    assert!(bad.is_hung_up(), "more than was agreed on");
    // A write of which half has come is none.
    let mut bad = served.client();
    bad.ask(1, 0, 0, 1024, &[6; 512]);
    drop(bad);
    assert_eq!(good.read(0, 1024), [[5; 512], [0; 512]].concat());
    served.end();
}

#[test]
fn random_bytes_harm_nobody() {
    let served = Served::new(4);
    let mut good = served.client();
    assert_eq!(good.write(0, &[5; 2048]), 0);
    let mut rng = SplitMix64::new(17);
    for round in 0..200 {
        // Half of them get through the negotiation first.
        let mut bad = match round % 2 {
            0 => served.connect(),
            _ => served.client(),
        };
        let mut bytes = Vec::new();
        for _ in 0..rng.next() % 20 {
            // What begins like a read or a status goes further than noise.
            if rng.next().is_multiple_of(2) {
                bytes.extend(0x2560_9513_u32.to_be_bytes());
                bytes.extend((rng.next() as u16 & 0x1F).to_be_bytes());
                let command = [0u16, 3, 5, 7, 900][(rng.next() % 5) as usize];
                bytes.extend(command.to_be_bytes());
            } else if rng.next().is_multiple_of(2) {
                bytes.extend(b"IHAVEOPT\0\0\0");
                bytes.push((rng.next() % 12) as u8);
                bytes.extend([0, 0, 0, (rng.next() % 32) as u8]);
            }
            for _ in 0..rng.next() % 4 {
                bytes.extend((rng.next() >> (rng.next() % 64)).to_be_bytes());
            }
        }
        // It may be hung up on before all is sent.
        let _ = bad.0.write_all(&bytes);
    }
    assert_eq!(good.read(0, 2048), [5; 2048]);
    served.end();
}

#[test]
fn more_clients_than_places_wait_their_turn() {
    let served = Served::new(1);
    let mut first = served.client();
    let mut second = served.connect();
    let limit = std::time::Duration::from_millis(400);
    second.0.set_read_timeout(Some(limit)).expect("a limit");
    let mut byte = [0];
    assert!(second.0.read(&mut byte).is_err(), "no greeting yet");
    first.ask(2, 0, 0, 0, &[]);
    assert!(first.is_hung_up());
    let limit = std::time::Duration::from_secs(20);
    second.0.set_read_timeout(Some(limit)).expect("a limit");
    second.greet();
    served.end();
}

#[test]
fn a_socket_left_behind_is_replaced_and_anything_else_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let server = Server::bind(&Endpoint::Unix(path.clone())).expect("replaced");
    assert!(
        Server::bind(&Endpoint::Unix(path.clone())).is_err(),
        "in use"
    );
    drop(server);
    assert!(!path.exists());
    std::fs::write(&path, "precious").expect("a file");
    assert!(Server::bind(&Endpoint::Unix(path.clone())).is_err());
    assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
}
