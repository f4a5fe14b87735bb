//! Wear with and without levelling on a skewed workload: nine of ten writes go to a tenth of the pages, and
//! half of the pages are written once and never again.

mod common;

use common::{Host, PAGE_BYTES, chip, options_of};
use floatgate_catalog as _;
use floatgate_core::Pbn;
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Ftl, Lpn};
use floatgate_device::nand::Nand;
use floatgate_device::{BlockDevice, RamNand, Spares, SparesOptions};

const GAP: u32 = 16;

struct Skewed(WearLeveling);

#[derive(Debug)]
struct Wear {
    min: u32,
    max: u32,
    mean: f64,
    deviation: f64,
    swaps: u64,
    moved: u64,
    programs: u64,
}

floatgate_core::life! {
    /// The workload, for every scheme.
    struct Plays = fn Skewed::play_on(Skewed) -> Wear;
}

impl Skewed {
    fn play_on<S: Ftl<Page = Lpn>>(self) -> Wear {
        let spares = SparesOptions {
            wear_leveling: self.0,
            wear_gap: GAP,
            ..SparesOptions::default()
        };
        let shape = chip(1, 70, 16, 48, &spares);
        let chip = Spares::format(RamNand::new(&shape, PAGE_BYTES), spares).unwrap();
        let mut host = Host::new(BlockDevice::<S, _>::create(chip, &options_of::<S>(1)).unwrap());
        let pages = host.shadow.len() as u64;
        for page in 0..pages {
            host.write(2 * page, 2).unwrap();
        }
        let mut rng = SplitMix64::new(8);
        for _ in 0..40_000 {
            let range = if rng.below(10) < 9 {
                pages / 10
            } else {
                pages / 2
            };
            host.write(2 * rng.below(range), 2).unwrap();
        }
        host.verify_all().unwrap();
        host.device.audit().unwrap();
        let layer = host.device.flash_layer();
        let chip = layer.nand().nand();
        let erases: Vec<u32> = (0..shape.blocks())
            .map(|b| chip.erase_count(Pbn(b)))
            .collect();
        let mean = erases.iter().sum::<u32>() as f64 / erases.len() as f64;
        let square = |&e: &u32| (f64::from(e) - mean).powi(2);
        let stats = layer.nand().stats();
        Wear {
            min: *erases.iter().min().unwrap(),
            max: *erases.iter().max().unwrap(),
            mean,
            deviation: (erases.iter().map(square).sum::<f64>() / erases.len() as f64).sqrt(),
            swaps: stats.wear_swaps,
            moved: stats.wear_moved_pages,
            programs: layer.ledger.counters.programs.sum(),
        }
    }
}

#[test]
fn static_levelling_keeps_the_spread_within_the_gap() {
    for key in ["page", "bast", "fast", "dftl", "block"] {
        let catalog = floatgate_schemes::catalog::<Plays>();
        let play = catalog.find(key).unwrap().life.0;
        let of = |leveling| play(Skewed(leveling));
        let (off, dynamic, fixed) = (
            of(WearLeveling::Off),
            of(WearLeveling::Dynamic),
            of(WearLeveling::Static),
        );
        for (name, wear) in [("off", &off), ("dynamic", &dynamic), ("static", &fixed)] {
            println!(
                "{key:<6}{name:<8} erases {:>5} to {:>5}, mean {:>7.1}, deviation {:>7.1}; \
                 {:>4} swaps, {:>6} pages moved, {:>7} programs of the scheme",
                wear.min,
                wear.max,
                wear.mean,
                wear.deviation,
                wear.swaps,
                wear.moved,
                wear.programs
            );
        }
        assert_eq!(off.programs, dynamic.programs, "the scheme does not notice");
        assert_eq!(off.programs, fixed.programs, "the scheme does not notice");
        assert!(dynamic.max <= off.max && fixed.deviation < off.deviation / 2.0);
        // The block that is erased last is one ahead of the check that follows.
        assert!(fixed.max - fixed.min <= GAP + 1, "{key}: {fixed:?}");
    }
}
