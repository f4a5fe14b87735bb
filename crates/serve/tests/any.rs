//! Ranges that are no multiples of sectors, against an array of bytes: what is written is there, what lies beside it stays,
//! whoever else writes.

use std::sync::{Arc, Mutex};

use floatgate_catalog as _;
use floatgate_core::rng::SplitMix64;
use floatgate_device::drive;
use floatgate_device::image::ImageSpec;
use floatgate_schemes::page::Page;
use floatgate_serve::Shared;
use floatgate_serve::tap::{Asked, Change, Tap};

const BYTES: u64 = 96 * 2048;

/// Plays what it hears of again, and notes what is no multiple of sectors.
struct Echo(Arc<Mutex<(Vec<u8>, bool)>>);

impl Tap for Echo {
    fn asked(&mut self, _: u64, asked: Asked) {
        let (offset, bytes) = match asked {
            Asked::Read { offset, bytes }
            | Asked::Write { offset, bytes, .. }
            | Asked::WriteZeroes { offset, bytes }
            | Asked::Trim { offset, bytes } => (offset, bytes),
            Asked::Flush => (0, 0),
        };
        self.0.lock().expect("no panic").1 |= offset % 512 != 0 || bytes % 512 != 0;
    }

    fn done(&mut self, change: &Change<'_>) {
        let mut heard = self.0.lock().expect("no panic");
        match *change {
            Change::Write { offset, data, .. } => {
                heard.1 |= offset % 512 != 0 || data.len() % 512 != 0;
                heard.0[offset as usize..][..data.len()].copy_from_slice(data);
            }
            Change::Trim { offset, bytes } => {
                let (first, end) = (
                    offset.next_multiple_of(2048),
                    (offset + bytes) / 2048 * 2048,
                );
                if first < end {
                    heard.0[first as usize..end as usize].fill(0);
                }
            }
            Change::Flush => {}
        }
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}

fn shared(taps: Vec<Box<dyn Tap>>) -> Shared {
    let device = drive::in_memory::<Page>(&ImageSpec::small(96));
    Shared::new(device.expect("a device"), taps)
}

#[test]
fn any_range_is_written_and_read_and_made_zero() {
    let heard = Arc::new(Mutex::new((vec![0; BYTES as usize], false)));
    let shared = shared(vec![Box::new(Echo(Arc::clone(&heard)))]);
    let mut wanted = vec![0; BYTES as usize];
    let mut rng = SplitMix64::new(5);
    let mut buffer = Vec::new();
    for _ in 0..2000 {
        let offset = rng.next() % BYTES;
        let most = [1, 600, 3000, 9000][rng.next() as usize % 4];
        let bytes = (rng.next() % most).min(BYTES - offset);
        let range = offset as usize..(offset + bytes) as usize;
        match rng.next() % 4 {
            0 => {
                let found = shared.read_any(offset, range.len(), &mut buffer);
                assert!(found.expect("bytes") == &wanted[range], "{offset} {bytes}");
            }
            1 => {
                let may_drop = rng.next().is_multiple_of(2);
                shared.zero_any(offset, bytes, may_drop).expect("zeroes");
                wanted[range].fill(0);
            }
            _ => {
                wanted[range.clone()].fill(rng.next() as u8);
                let through = rng.next().is_multiple_of(16);
                let written = shared.write_any(offset, &wanted[range], through);
                written.expect("written");
            }
        }
    }
    let found = shared.read_any(0, BYTES as usize, &mut buffer);
    assert!(found.expect("bytes") == wanted);
    let heard = heard.lock().expect("no panic");
    assert!(heard.0 == wanted, "listeners hear of what is done");
    assert!(!heard.1, "in whole sectors");
}

#[test]
fn writers_of_one_sector_do_not_lose_each_others_bytes() {
    let shared = shared(Vec::new());
    std::thread::scope(|threads| {
        for writer in 0..4u64 {
            let shared = &shared;
            threads.spawn(move || {
                for round in 0..500 {
                    let data = [round as u8; 100];
                    shared
                        .write_any(writer * 100, &data, false)
                        .expect("written");
                    let mut buffer = Vec::new();
                    let found = shared.read_any(writer * 100, 100, &mut buffer);
                    assert_eq!(found.expect("bytes"), data, "{writer}, {round}");
                }
            });
        }
    });
}
