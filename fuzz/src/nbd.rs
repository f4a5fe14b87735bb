//! The target `nbd`: what a client of the server says.
//!
//! | byte | what it says |
//! |---|---|
//! | 0 | bit 0: the rest is the client's bytes from the first on; else it has negotiated, and the rest is requests |
//! | | bit 1: replies are structured; bit 2: so is block status |
//! | 6 each | one request: command, flags, offset (2), length (2); bit 7 of the flags: not in sectors but in bytes |
//!
//! What the server answers to requests with simple replies is held against a plain array; whatever was said, the device
//! is sound afterwards, and holds what was acknowledged.

use std::io::{Cursor, Read, Write};
use std::sync::atomic::AtomicBool;

use floatgate_device::image::ImageSpec;
use floatgate_device::{Drive, drive};
use floatgate_schemes::page::Page;
use floatgate_serve::Shared;
use floatgate_serve::negotiation::{Agreed, negotiate};
use floatgate_serve::transmission::serve;
use floatgate_serve::wire::{Fields, Wire};

const PAGE_BYTES: usize = 2048;
const PAGES: u64 = 48;
const SECTOR_BYTES: usize = 512;
const DEVICE_BYTES: usize = PAGES as usize * PAGE_BYTES;
/// Some requests reach beyond the device: offsets and lengths are sectors modulo these.
const OFFSETS: u16 = (DEVICE_BYTES / SECTOR_BYTES) as u16 + 20;
const LENGTHS: u16 = 40;
const COMMAND_WRITE: u16 = 1;
/// Requests of one input.
const REQUESTS_MAX: usize = 400;

fn device() -> Box<dyn Drive> {
    let spec = ImageSpec {
        blocks_per_die: 16,
        page_bytes: PAGE_BYTES as u32,
        ..ImageSpec::small(PAGES)
    };
    drive::in_memory::<Page>(&spec).expect("a small device in memory")
}

/// A client whose bytes are known beforehand.
struct Client {
    says: Cursor<Vec<u8>>,
    hears: Vec<u8>,
}

impl Read for Client {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.says.read(into)
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.hears.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Request {
    command: u16,
    flags: u16,
    offset: u64,
    bytes: u32,
    fill: u8,
}

impl Request {
    fn decode(number: usize, bytes: &[u8]) -> Self {
        let pair = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (offset, length) = match bytes[1] >> 7 {
            0 => {
                let sectors = [pair(2) % OFFSETS, pair(4) % LENGTHS];
                let [offset, length] = sectors.map(|count| u64::from(count) * SECTOR_BYTES as u64);
                (offset, length as u32)
            }
            _ => (u64::from(pair(2)), pair(4).into()),
        };
        Self {
            command: u16::from(bytes[0] % 9),
            flags: u16::from(bytes[1] & 0x3f),
            offset,
            bytes: length,
            fill: number as u8 | 1,
        }
    }

    fn encode(&self, cookie: u64, into: &mut Vec<u8>) {
        into.extend(0x2560_9513_u32.to_be_bytes());
        into.extend(self.flags.to_be_bytes());
        into.extend(self.command.to_be_bytes());
        into.extend(cookie.to_be_bytes());
        into.extend(self.offset.to_be_bytes());
        into.extend(self.bytes.to_be_bytes());
        if self.command == COMMAND_WRITE {
            into.resize(into.len() + self.bytes as usize, self.fill);
        }
    }
}

/// What the device has to hold.
struct Model(Vec<u8>);

impl Model {
    /// What an acknowledged request does. One that has no business being acknowledged panics here.
    fn apply(&mut self, request: &Request, told: &mut Fields<'_>) {
        let range = request.offset as usize..request.offset as usize + request.bytes as usize;
        match request.command {
            0 => {
                let data = told
                    .bytes(range.len())
                    .expect("data after a reply to a read");
                assert!(data == &self.0[range], "a read tells what was written");
            }
            1 => self.0[range].fill(request.fill),
            3 => {}
            4 => {
                let first = range.start.next_multiple_of(PAGE_BYTES);
                let end = range.end / PAGE_BYTES * PAGE_BYTES;
                // What a page's other sectors hold stays.
                if first < end {
                    self.0[first..end].fill(0);
                }
            }
            6 => self.0[range].fill(0),
            other => panic!("command {other} was acknowledged"),
        }
    }
}

/// Plays a client; then the device is as it should be.
pub fn nbd(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let shared = Shared::new(device(), Vec::new());
    let mut model = None;
    if choice & 1 != 0 {
        converse(&shared, None, bytes.to_vec());
    } else {
        let agreed = Agreed {
            structured: choice & 2 != 0,
            // Nobody can agree on it without chunks.
            context: choice & 6 == 6,
        };
        let requests = bytes.chunks_exact(6).take(REQUESTS_MAX).enumerate();
        let requests: Vec<Request> = requests.map(|(i, one)| Request::decode(i, one)).collect();
        let mut says = Vec::new();
        for (cookie, request) in requests.iter().enumerate() {
            request.encode(cookie as u64, &mut says);
        }
        let hears = converse(&shared, Some(agreed), says);
        if !agreed.structured {
            model = Some(compared(&requests, &hears));
        }
    }
    let mut found = vec![0; DEVICE_BYTES];
    shared.read(0, &mut found).expect("the device is sound");
    assert!(
        model.is_none_or(|model| model.0 == found),
        "what was acknowledged is there"
    );
    shared.flush().expect("the device can be flushed");
    shared.close().expect("the device can be shut down");
}

/// One connection from its first byte to its end; what the client heard.
fn converse(shared: &Shared, agreed: Option<Agreed>, says: Vec<u8>) -> Vec<u8> {
    let export = shared.export();
    let mut wire = Wire::new(Client {
        says: Cursor::new(says),
        hears: Vec::new(),
    });
    let agreed = match agreed {
        Some(agreed) => Some(agreed),
        None => negotiate(&mut wire, &export).unwrap_or_default(),
    };
    if let Some(agreed) = agreed {
        // How a conversation ends is the client's affair.
        let _ = serve(&mut wire, shared, &export, agreed, &AtomicBool::new(false));
    }
    let _ = wire.send();
    wire.stream().hears.clone()
}

/// The device as the replies say it is, each reply compared on the way.
fn compared(requests: &[Request], hears: &[u8]) -> Model {
    let mut model = Model(vec![0; DEVICE_BYTES]);
    let mut told = Fields(hears);
    for (cookie, request) in requests.iter().enumerate() {
        if request.command == 2 {
            // The client has taken its leave.
            break;
        }
        let magic = told.u32().expect("a reply to each request");
        assert_eq!(magic, 0x6744_6698, "a simple reply");
        let error = told.u32().expect("an error or none");
        assert_eq!(
            told.u64(),
            Some(cookie as u64),
            "replies come in the order of requests"
        );
        match error {
            0 => model.apply(request, &mut told),
            1 | 5 | 12 | 22 | 28 | 75 | 95 | 108 => {}
            other => panic!("error {other} is none of NBD"),
        }
    }
    assert!(told.is_done(), "nothing is said that was not asked for");
    model
}
