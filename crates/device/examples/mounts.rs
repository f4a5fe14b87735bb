//! What a start of `hat` on a used image of 1 GiB reads: after a kill by the full scan, after a kill with its table in
//! phase-change memory, after a clean close.
//!
//!     cargo run --release -p floatgate-device --example mounts -- FOLDER [WRITES]

use std::path::Path;
use std::time::Instant;

use floatgate_core::ProgramOrder;
use floatgate_core::described::Described;
use floatgate_core::ftl::RecoveryMode;
use floatgate_core::rng::SplitMix64;
use floatgate_device::image::{Durability, ImageSpec, create, open};
use floatgate_device::{BlockDevice, ImageNand, Spares, SparesOptions};
use floatgate_schemes::hat::{Hat, HatOptions};

const PAGE_BYTES: usize = 4096;
const PAGES: u64 = 1 << 18;

fn mount(path: &Path, what: &str, mode: RecoveryMode) -> BlockDevice<Hat, Spares<ImageNand>> {
    let start = Instant::now();
    let nand = ImageNand::open(path, Durability::Machine).expect("the image");
    let opened = start.elapsed().as_secs_f64();
    let spares = Spares::mount(nand, SparesOptions::default()).expect("the chip");
    let device = BlockDevice::open(spares, &HatOptions::default(), mode).expect("the device");
    let did = device.flash_layer().ledger.counters;
    println!(
        "{what:<24} {:>9} OOB reads {:>9} PCM reads {:>7} PCM writes  {:.2} s, {opened:.2} s of it to open the file",
        did.oob_reads.sum(),
        did.pcm_reads,
        did.pcm_writes,
        start.elapsed().as_secs_f64()
    );
    device
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder for the image");
    let writes: u64 = arguments
        .next()
        .map_or(200_000, |n| n.parse().expect("a number"));
    let path = Path::new(&folder).join(format!("mounts-{}.img", std::process::id()));
    let spec = ImageSpec {
        dies: 4,
        blocks_per_die: 560,
        pages_per_block: 128,
        page_bytes: PAGE_BYTES as u32,
        logical_pages: PAGES,
        program_order: ProgramOrder::Ascending,
        spares: SparesOptions::default(),
        scheme: Hat::KEY.into(),
        options: String::new(),
        part: String::new(),
        erase_limit: 0,
    };
    create::<Hat>(&path, &spec).expect("an image");
    let mut device = open::<Hat>(&path, Durability::Process).expect("the image");
    let (mut rng, data) = (SplitMix64::new(1), [0x5A; PAGE_BYTES]);
    let sectors_a_page = (PAGE_BYTES / device.sector_bytes()) as u64;
    for number in 0..PAGES + writes {
        let page = if number < PAGES {
            number
        } else {
            rng.below(PAGES)
        };
        device.write(page * sectors_a_page, &data).expect("a write");
    }
    drop(device);
    // The first start must not put right what the second would find.
    drop(mount(&path, "killed, table in PCM", RecoveryMode::Fastest));
    drop(mount(&path, "killed, full scan", RecoveryMode::FullScan));
    let device = mount(&path, "again, table in PCM", RecoveryMode::Fastest);
    let chip = device.shut_down().expect("a shutdown");
    chip.into_nand().close().expect("a close");
    drop(mount(&path, "closed in order", RecoveryMode::Fastest));
    std::fs::remove_file(&path).expect("the image");
}
