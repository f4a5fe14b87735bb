//! What flushes cost on an image: random writes of 4 KiB with a flush after every 1, 8, 64 of them, or none.
//!
//!     cargo run --release -p floatgate-device --example flushes -- FOLDER [WRITES [EVERY]]

use std::path::Path;
use std::time::Instant;

use floatgate_core::ProgramOrder;
use floatgate_core::ftl::Ftl;
use floatgate_core::rng::SplitMix64;
use floatgate_core::{Lpn, Striped};
use floatgate_device::SparesOptions;
use floatgate_device::image::{Durability, ImageSpec, create, open};
use floatgate_schemes::{fast::Fast, page::Page};

const PAGE_BYTES: usize = 4096;

fn spec<S: Ftl<Page = Lpn>>(options: &str) -> ImageSpec {
    ImageSpec {
        dies: 1,
        blocks_per_die: 300,
        pages_per_block: 64,
        page_bytes: PAGE_BYTES as u32,
        logical_pages: 64 * 256,
        program_order: ProgramOrder::Ascending,
        spares: SparesOptions::default(),
        scheme: S::KEY.into(),
        options: options.into(),
        part: String::new(),
        erase_limit: 0,
    }
}

fn measure<S: Ftl<Page = Lpn>>(folder: &Path, options: &str, every: u64, writes: u64) {
    let path = folder.join(format!("flushes-{}.img", std::process::id()));
    create::<S>(&path, &spec::<S>(options)).expect("an image");
    let mut device = open::<S>(&path, Durability::Machine).expect("the image");
    let (mut rng, data) = (SplitMix64::new(1), [0x5A; PAGE_BYTES]);
    let sectors_a_page = (PAGE_BYTES / device.sector_bytes()) as u64;
    let pages = device.sectors() / sectors_a_page;
    let start = Instant::now();
    for number in 1..=writes {
        let page = rng.below(pages);
        device.write(page * sectors_a_page, &data).expect("a write");
        if every > 0 && number % every == 0 {
            device.flush().expect("a flush");
        }
    }
    let elapsed = start.elapsed().as_secs_f64();
    let erases = device.flash_layer().ledger.counters.erases.gc;
    let each = if every > 0 {
        format!("every {every}")
    } else {
        "never".into()
    };
    println!(
        "{:<6} flush {each:<9} {:>9.0} writes/s  {writes:>8} writes  {erases:>6} erases",
        S::KEY,
        writes as f64 / elapsed
    );
    drop(device);
    let _ = std::fs::remove_file(&path);
}

fn main() {
    let mut words = std::env::args().skip(1);
    let folder = words.next().expect("a folder for the images");
    let writes = words
        .next()
        .map_or(20_000, |word| word.parse().expect("a number"));
    let only = words.next();
    for every in [1, 8, 64, 0] {
        if only.as_ref().is_some_and(|only| *only != every.to_string()) {
            continue;
        }
        measure::<Page>(Path::new(&folder), "", every, writes);
        measure::<Striped<Fast>>(Path::new(&folder), "log_blocks=8", every, writes);
    }
}
