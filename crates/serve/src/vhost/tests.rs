//! Chains made by hand: what a driver sends, and what none would.

use floatgate_core::rng::SplitMix64;
use floatgate_device::drive;
use floatgate_device::image::ImageSpec;
use floatgate_schemes::page::Page;
use virtio_queue::desc::{RawDescriptor, split::Descriptor};
use virtio_queue::mock::MockSplitQueue;
use vm_memory::{Bytes, GuestAddress};

use super::request::number;
use super::*;

pub(crate) const BYTES: u64 = 96 * 2048;
/// Where the pieces of a chain lie in the guest.
const HEADER: u64 = 0x1_0000;
const DATA: u64 = 0x2_0000;
const STATUS: u64 = 0x8_0000;
const MEMORY_BYTES: usize = 0x10_0000;
const WRITE_ONLY: u16 = 2;

pub(crate) fn shared() -> Arc<Shared> {
    let device = drive::in_memory::<Page>(&ImageSpec::small(96));
    Arc::new(Shared::new(device.expect("a device"), Vec::new()))
}

/// A guest with its memory.
struct Guest {
    shared: Arc<Shared>,
    memory: GuestMemoryMmap,
    worker: Worker,
}

/// A piece of a chain: address, bytes, flags.
type Piece = (u64, u32, u16);

impl Guest {
    fn new() -> Self {
        let ranges = [(GuestAddress(0), MEMORY_BYTES)];
        Self {
            shared: shared(),
            memory: GuestMemoryMmap::from_ranges(&ranges).expect("memory"),
            worker: Worker::default(),
        }
    }

    fn put(&self, address: u64, bytes: &[u8]) {
        let address = GuestAddress(address);
        self.memory.write_slice(bytes, address).expect("memory");
    }

    fn get(&self, address: u64, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        let address = GuestAddress(address);
        self.memory.read_slice(&mut found, address).expect("memory");
        found
    }

    /// Sends a chain; how many bytes the answer took.
    fn send(&mut self, pieces: &[Piece]) -> u32 {
        let queue = MockSplitQueue::new(&self.memory, 16);
        let pieces: Vec<RawDescriptor> = pieces
            .iter()
            .map(|&(address, bytes, flags)| Descriptor::new(address, bytes, flags, 0).into())
            .collect();
        let chain = queue.build_desc_chain(&pieces).expect("a chain");
        self.worker.answer(&self.shared, false, chain)
    }

    fn header(&self, kind: u32, sector: u64) {
        let header = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()];
        self.put(HEADER, &header.concat());
    }

    /// Sends an ordinary request; its status.
    fn ask(&mut self, kind: u32, sector: u64, data: Piece) -> u8 {
        self.header(kind, sector);
        self.put(STATUS, &[0xee]);
        self.send(&[(HEADER, 16, 0), data, (STATUS, 1, WRITE_ONLY)]);
        self.get(STATUS, 1)[0]
    }

    fn device(&self) -> Vec<u8> {
        let mut all = vec![0; BYTES as usize];
        self.shared.read(0, &mut all).expect("bytes");
        all
    }
}

fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
    let parts = [
        &sector.to_le_bytes()[..],
        &sectors.to_le_bytes(),
        &flags.to_le_bytes(),
    ];
    parts.concat()
}

#[test]
fn what_is_written_is_read_whatever_the_pieces() {
    let mut guest = Guest::new();
    let bytes: Vec<u8> = (0..4096u32).map(|i| (i * 7 / 3) as u8).collect();
    guest.put(DATA, &bytes);
    guest.header(number::OUT, 3);
    // A header in two pieces, data in three, of which one is empty.
    let pieces = [
        (HEADER, 5, 0),
        (HEADER + 5, 11, 0),
        (DATA, 1000, 0),
        (DATA, 0, 0),
        (DATA + 1000, 3096, 0),
        (STATUS, 1, WRITE_ONLY),
    ];
    guest.put(STATUS, &[0xee]);
    assert_eq!(guest.send(&pieces), 1);
    assert_eq!(guest.get(STATUS, 1), [number::OK]);
    assert_eq!(guest.device()[3 * 512..][..4096], bytes);
    // Data and status in one piece, then in pieces of which one ends in the status.
    guest.header(number::IN, 3);
    assert_eq!(
        guest.send(&[(HEADER, 16, 0), (DATA + 8192, 4097, WRITE_ONLY)]),
        4097
    );
    let found = guest.get(DATA + 8192, 4097);
    assert!(found[..4096] == bytes && found[4096] == number::OK);
    assert_eq!(guest.ask(number::FLUSH, 0, (DATA, 0, 0)), number::OK);
    assert_eq!(
        guest.ask(number::GET_ID, 0, (DATA, 20, WRITE_ONLY)),
        number::OK
    );
    assert_eq!(&guest.get(DATA, 9), b"floatgate");
}

#[test]
fn ranges_are_dropped_together_or_not_at_all() {
    let mut guest = Guest::new();
    guest.put(DATA, &[9; 16384]);
    assert_eq!(guest.ask(number::OUT, 0, (DATA, 16384, 0)), number::OK);
    let before = guest.device();
    let last = BYTES / 512;
    for (kind, ranges, status) in [
        // The second lies beyond the end, is of no known kind, or is missing in part.
        (
            number::DISCARD,
            [range(0, 8, 0), range(last, 1, 0)].concat(),
            number::FAILED,
        ),
        (
            number::DISCARD,
            [range(0, 8, 0), range(8, 8, 1)].concat(),
            number::UNSUPPORTED,
        ),
        (
            number::WRITE_ZEROES,
            [range(0, 8, 1), range(8, 8, 2)].concat(),
            number::UNSUPPORTED,
        ),
        (
            number::WRITE_ZEROES,
            [range(0, 8, 1), range(u64::MAX, u32::MAX, 0)].concat(),
            number::FAILED,
        ),
        (
            number::DISCARD,
            range(0, 8, 0)[..15].to_vec(),
            number::FAILED,
        ),
        (number::DISCARD, Vec::new(), number::FAILED),
        (number::DISCARD, range(0, 8, 0).repeat(17), number::FAILED),
    ] {
        guest.put(DATA, &ranges);
        let data = (DATA, ranges.len() as u32, 0);
        assert_eq!(guest.ask(kind, 0, data), status, "{kind} {ranges:?}");
        assert!(guest.device() == before, "{kind} {ranges:?}");
    }
    let ranges = [range(4, 4, 0), range(8, 3, 0)].concat();
    guest.put(DATA, &ranges);
    assert_eq!(guest.ask(number::DISCARD, 0, (DATA, 32, 0)), number::OK);
    let mut wanted = before;
    wanted[4 * 512..8 * 512].fill(0);
    assert!(guest.device() == wanted, "pages that are covered whole");
    guest.put(DATA, &range(13, 6, 1));
    assert_eq!(
        guest.ask(number::WRITE_ZEROES, 0, (DATA, 16, 0)),
        number::OK
    );
    wanted[13 * 512..19 * 512].fill(0);
    assert!(guest.device() == wanted, "zeroes to the sector");
}

#[test]
fn what_is_no_request_harms_nothing() {
    let mut guest = Guest::new();
    guest.put(DATA, &[7; 8192]);
    assert_eq!(guest.ask(number::OUT, 0, (DATA, 8192, 0)), number::OK);
    let before = guest.device();
    let last = BYTES / 512;
    let nowhere = 1 << 40;
    for (kind, sector, data, status) in [
        (number::OUT, last, (DATA, 512, 0), number::FAILED),
        (
            number::OUT,
            u64::MAX / 512 + 1,
            (DATA, 512, 0),
            number::FAILED,
        ),
        (number::OUT, 0, (DATA, 511, 0), number::FAILED),
        (number::OUT, 0, (nowhere, 512, 0), number::FAILED),
        (number::OUT, 0, (u64::MAX - 100, 512, 0), number::FAILED),
        (number::OUT, 0, (DATA, u32::MAX - 4096, 0), number::FAILED),
        (number::IN, 0, (nowhere, 512, WRITE_ONLY), number::FAILED),
        (
            number::IN,
            last - 1,
            (DATA, 1024, WRITE_ONLY),
            number::FAILED,
        ),
        (99, 0, (DATA, 512, 0), number::UNSUPPORTED),
    ] {
        assert_eq!(
            guest.ask(kind, sector, data),
            status,
            "{kind} {sector} {data:?}"
        );
        assert!(guest.device() == before, "{kind} {sector} {data:?}");
    }
    guest.header(number::OUT, 0);
    // No place for an answer; half a header; what is read behind what is written; a status that lies nowhere.
    assert_eq!(guest.send(&[(HEADER, 16, 0), (DATA, 512, 0)]), 0);
    assert_eq!(guest.send(&[(HEADER, 15, 0), (STATUS, 1, WRITE_ONLY)]), 1);
    assert_eq!(guest.get(STATUS, 1), [number::FAILED]);
    guest.put(DATA, &[8; 512]);
    let turned = [(HEADER, 16, 0), (STATUS, 1, WRITE_ONLY), (DATA, 512, 0)];
    assert_eq!(guest.send(&turned), 1);
    assert_eq!(guest.get(STATUS, 1), [number::FAILED]);
    guest.header(number::FLUSH, 0);
    assert_eq!(guest.send(&[(HEADER, 16, 0), (nowhere, 1, WRITE_ONLY)]), 0);
    assert!(guest.device() == before);
}

#[test]
fn random_chains_harm_nothing_that_they_do_not_ask_for() {
    let mut guest = Guest::new();
    let mut rng = SplitMix64::new(17);
    let kinds = [0, 1, 4, 8, 11, 13, 77];
    for _ in 0..20_000 {
        guest.header(kinds[rng.next() as usize % kinds.len()], rng.next() % 400);
        let pieces: Vec<Piece> = (0..1 + rng.next() % 6)
            .map(|piece| {
                let address = match rng.next() % 8 {
                    0 => rng.next(),
                    _ if piece == 0 => HEADER,
                    _ => DATA + rng.next() % 1024,
                };
                let bytes = match rng.next() % 8 {
                    0 => rng.next() as u32,
                    1 => rng.next() as u32 % 40,
                    _ if piece == 0 => 16,
                    _ => 512 * (rng.next() as u32 % 5),
                };
                (address, bytes, rng.next() as u16 & WRITE_ONLY)
            })
            .collect();
        guest.send(&pieces);
    }
    guest.put(DATA, &[3; 1024]);
    assert_eq!(guest.ask(number::OUT, 5, (DATA, 1024, 0)), number::OK);
    assert_eq!(guest.device()[5 * 512..7 * 512], [3; 1024]);
    assert_eq!(guest.shared.close(), Ok(()));
}

#[test]
fn the_guest_switches_the_cache() {
    let backend = Backend::new(shared()).expect("a back end");
    let config = backend.get_config(0, 60);
    assert_eq!(config[..8], (BYTES / 512).to_le_bytes());
    assert_eq!(
        (config[24], config[32], config[44]),
        (2, 1, 4),
        "four sectors a page"
    );
    // A driver that knows no flush cannot have a cache.
    for (acknowledged, wce, through) in [
        (0, 1, true),
        (feature::FLUSH, 1, false),
        (feature::FLUSH | feature::CONFIG_WCE, 1, false),
        (feature::FLUSH | feature::CONFIG_WCE, 0, true),
    ] {
        backend.acked_features(acknowledged);
        backend.set_config(32, &[wce]).expect("a switch");
        assert_eq!(backend.get_config(32, 1), [wce]);
        assert_eq!(backend.is_through(), through, "{acknowledged:x} {wce}");
    }
    backend.set_config(32, &[2]).unwrap_err();
    backend.set_config(0, &[1]).unwrap_err();
    assert_eq!(backend.get_config(250, 6), [0; 6]);
    assert!(backend.get_config(u32::MAX, u32::MAX).is_empty());
    backend.reset_device();
    assert!(!backend.is_through());
}

#[test]
fn a_machine_that_says_nonsense_is_let_go() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("v");
    let (shared, stop) = (shared(), AtomicBool::new(false));
    let server = VhostUser::bind(&path).expect("a socket");
    std::thread::scope(|threads| {
        let serving = threads.spawn(|| server.run(&shared, &stop));
        for _ in 0..20 {
            let mut stream = UnixStream::connect(&path).expect("a connection");
            stream.write_all(&[0xa5; 64]).expect("sent");
            // Hung up, in whatever way.
            let _ = stream.read(&mut [0; 16]);
        }
        // One that says nothing does not keep the server from its end.
        let _silent = UnixStream::connect(&path).expect("a connection");
        std::thread::sleep(2 * ROUND);
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("an end");
    });
    assert!(!path.exists());
    assert_eq!(shared.close(), Ok(()));
}
