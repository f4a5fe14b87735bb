//! Devices whose configuration is hidden: written through the block interface, and known only by two counters.

use std::fmt::Write;

use floatgate::fit::{CANDIDATES, Candidate, Workload};
use floatgate_catalog::Catalog;
use floatgate_core::ProgramOrder;
use floatgate_core::rng::SplitMix64;
use floatgate_device::image::ImageSpec;
use floatgate_device::spares::pairs::PairGuard;
use floatgate_device::{Drive, SparesOptions};

const PAGE_BYTES: u32 = 512;
const GC_LOW: u32 = 2;
/// Written in each run, in sizes of what it writes to, and readings of the counters in that time.
pub const ROUNDS: u32 = 4;
const READINGS: usize = 64;
const LEVELS: [u32; 6] = [50, 60, 70, 80, 90, 100];
pub const SKEWS: [&str; 4] = [
    "fio-zipf(0.8)",
    "fio-zipf(0.95)",
    "hot(80/20)",
    "hot(90/10)",
];

/// What is hidden.
#[derive(Clone, Debug)]
pub struct Hidden {
    pub candidate: Candidate,
    pub dies: u32,
    pub pages_per_block: u32,
    pub blocks_per_die: u32,
    pub logical_pages: u32,
    /// What the device counts for each byte of a page, as parity would.
    pub overhead: f64,
    /// Of the writes.
    pub seed: u64,
}

impl Hidden {
    /// Draws a configuration with about so many pages.
    pub fn draw(seed: u64, pages: u32) -> Self {
        let mut rng = SplitMix64::new(seed);
        let candidate = CANDIDATES[rng.below(CANDIDATES.len() as u64) as usize];
        let dies = 1 + rng.below(2) as u32;
        let pages_per_block = [64, 128, 256][rng.below(3) as usize];
        let blocks = pages / pages_per_block / dies;
        // 7 to 60 % spare, small ones as often as large ones.
        let mut share = || rng.below(1 << 20) as f64 / f64::from(1 << 20);
        let spare = 0.07 * (0.6_f64 / 0.07).powf(share());
        Self {
            candidate,
            dies,
            pages_per_block,
            blocks_per_die: (f64::from(blocks) * (1.0 + spare)).round() as u32 + GC_LOW,
            logical_pages: blocks * pages_per_block * dies,
            overhead: 1.0 + 0.08 * share(),
            seed,
        }
    }

    /// Bytes that can hold data: all blocks but those that are kept erased; collecting in batches wins half a one.
    pub fn capacity(&self) -> f64 {
        let blocks = f64::from(self.blocks_per_die - GC_LOW) + 0.5;
        blocks * f64::from(self.dies * self.pages_per_block * PAGE_BYTES)
    }

    fn device(&self, schemes: &Catalog) -> Box<dyn Drive> {
        let options = self.candidate.options();
        let mut lines = format!("gc_low={GC_LOW}\n");
        for (key, value) in options {
            let value = value.to_string();
            writeln!(lines, "{key}={}", value.trim_matches('"')).unwrap();
        }
        let spec = ImageSpec {
            dies: self.dies,
            blocks_per_die: self.blocks_per_die,
            pages_per_block: self.pages_per_block,
            page_bytes: PAGE_BYTES,
            logical_pages: self.logical_pages.into(),
            program_order: ProgramOrder::Ascending,
            spares: SparesOptions {
                pair_guard: PairGuard::Off,
                ..SparesOptions::default()
            },
            scheme: "page".into(),
            options: lines,
            part: String::new(),
            erase_limit: 0,
        };
        let scheme = schemes.get("page").unwrap();
        scheme.life.stored.in_memory(&spec).unwrap()
    }

    /// The table of a fill sweep and a skew sweep, as the script of `floatgate recipe fit` would make it.
    pub fn measured(&self, schemes: &Catalog) -> String {
        let mut outside = Outside {
            drive: self.device(schemes),
            overhead: self.overhead,
            host_bytes: 0,
            table: "run,workload,logical_bytes,span_bytes,host_bytes,media_bytes\n".into(),
        };
        let fills = LEVELS.map(|level| (format!("fill-{level}"), Workload::Uniform, level));
        let skews = SKEWS.map(|skew| (skew.to_string(), Workload::parse(skew).unwrap(), 100));
        for (i, (name, workload, level)) in fills.iter().chain(&skews).enumerate() {
            let span = self.logical_pages * level / 100;
            // Not the numbers that the model draws.
            outside.run(name, workload, span, 1000 * self.seed + 10 * i as u64);
        }
        outside.table
    }
}

/// All that is known of a device from outside.
struct Outside {
    drive: Box<dyn Drive>,
    overhead: f64,
    host_bytes: u64,
    table: String,
}

impl Outside {
    fn run(&mut self, name: &str, workload: &Workload, span: u32, seed: u64) {
        self.drive.trim(0, self.drive.sectors()).unwrap();
        (0..span).for_each(|page| self.write(page));
        let pages = workload
            .pages(span, (ROUNDS * span) as usize, seed)
            .unwrap();
        let logical = self.drive.sectors() * self.drive.sector_bytes() as u64;
        for (i, some) in pages.chunks(pages.len().div_ceil(READINGS)).enumerate() {
            if i > 0 {
                self.read_counters(name, workload, logical, span);
            }
            some.iter().for_each(|&page| self.write(page));
        }
        self.read_counters(name, workload, logical, span);
    }

    fn write(&mut self, page: u32) {
        let data = [page as u8; PAGE_BYTES as usize];
        let sectors_a_page = u64::from(PAGE_BYTES) / self.drive.sector_bytes() as u64;
        self.drive
            .write(u64::from(page) * sectors_a_page, &data)
            .unwrap();
        self.host_bytes += u64::from(PAGE_BYTES);
    }

    fn read_counters(&mut self, name: &str, workload: &Workload, logical: u64, span: u32) {
        let programmed = self.drive.figures().chip.programs * u64::from(PAGE_BYTES);
        let media = (programmed as f64 * self.overhead) as u64;
        let span = u64::from(span) * u64::from(PAGE_BYTES);
        writeln!(
            self.table,
            "{name},{workload},{logical},{span},{},{media}",
            self.host_bytes
        )
        .unwrap();
    }
}
