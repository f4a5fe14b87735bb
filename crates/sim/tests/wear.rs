//! Wear levelling below every scheme: what it does to wear, and that it does nothing else.

mod common;

use common::config;
use floatgate_catalog as _;
use floatgate_core::Ftl;
use floatgate_core::catalog::SchemeInfo;
use floatgate_core::report::{FlashCounters, SchemeCounters};
use floatgate_core::rng::SplitMix64;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Lpn, ProgramOrder};
use floatgate_sim::clock::{Clock, Closed, Events};
use floatgate_sim::host::Kind;
use floatgate_sim::session::Session;

const GAP: u32 = 16;
const WRITES: u32 = 60_000;

/// Nine of ten writes go to a tenth of the pages, one to a half of them, and the other half rests.
#[derive(Clone, Copy)]
struct Skewed {
    leveling: WearLeveling,
    order: ProgramOrder,
    events: bool,
}

struct Worn {
    flash: FlashCounters,
    scheme: SchemeCounters,
    erases: Vec<u32>,
    swaps: u64,
    moved: u64,
    busy_ns: u64,
}

impl Worn {
    fn max(&self) -> u32 {
        self.erases.iter().copied().max().unwrap()
    }

    fn spread(&self) -> u32 {
        self.max() - self.erases.iter().copied().min().unwrap()
    }

    fn deviation(&self) -> f64 {
        let n = self.erases.len() as f64;
        let mean = self.erases.iter().sum::<u32>() as f64 / n;
        let squares = self.erases.iter().map(|&e| (f64::from(e) - mean).powi(2));
        (squares.sum::<f64>() / n).sqrt()
    }
}

floatgate_core::life! {
    /// The workload, for every scheme.
    struct Plays = fn Skewed::play_on(Skewed) -> Worn;
}

impl Skewed {
    fn play_on<S: Ftl<Page = Lpn>>(self) -> Worn {
        if self.events {
            self.play::<S, Events>()
        } else {
            self.play::<S, Closed>()
        }
    }
}

impl Skewed {
    fn play<S: Ftl<Page = Lpn>, C: Clock>(self) -> Worn {
        let takes_log_blocks = SchemeInfo::of::<S>()
            .options
            .iter()
            .any(|o| o.key == "log_blocks");
        let options: &[(&str, &str)] = if takes_log_blocks {
            &[("log_blocks", "8")]
        } else {
            &[]
        };
        let mut config = config(2, 48, 16, 32, options);
        config.device.wear_leveling = self.leveling;
        config.device.wear_gap = GAP;
        config.device.program_order = self.order;
        let mut session = Session::<S, C>::new(&config).expect("a valid configuration");
        let pages = u64::from(session.geometry().logical_pages);
        let mut rng = SplitMix64::new(7);
        for _ in 0..WRITES {
            let range = if rng.below(10) < 9 {
                pages / 10
            } else {
                pages / 2
            };
            session.page_request(Kind::Write, Lpn(rng.below(range) as u32), 1, 0);
        }
        session.finish();
        session
            .check_laws()
            .unwrap_or_else(|law| panic!("{}: {law}", S::KEY));
        let flash = &session.flash;
        let wear = flash.wear.as_deref();
        Worn {
            flash: flash.ledger.counters,
            scheme: session.ftl.counters(),
            erases: flash.erase_counts(),
            swaps: wear.map_or(0, |wear| wear.swaps),
            moved: wear.map_or(0, |wear| wear.moved_pages),
            busy_ns: session.metrics.last_completion_ns,
        }
    }
}

fn worn(key: &str, leveling: WearLeveling, order: ProgramOrder, events: bool) -> Worn {
    let skewed = Skewed {
        leveling,
        order,
        events,
    };
    let catalog = floatgate_schemes::catalog::<Plays>();
    catalog.find(key).expect("a scheme").life.0(skewed)
}

/// The counters without the moves of static levelling.
fn without_moves(worn: &Worn) -> FlashCounters {
    let mut flash = worn.flash;
    flash.reads.gc -= worn.moved;
    flash.programs.gc -= worn.moved;
    flash.erases.gc -= worn.swaps;
    flash
}

#[test]
fn every_scheme_wears_evenly_and_does_what_it_always_does() {
    println!(
        "| scheme | off: sd | spread | dynamic: sd | spread | static: sd | spread | swaps | pages moved |"
    );
    for key in floatgate_schemes::catalog::<Plays>().keys() {
        let of = |leveling| worn(key, leveling, ProgramOrder::Ascending, false);
        let off = of(WearLeveling::Off);
        let dynamic = of(WearLeveling::Dynamic);
        let fixed = of(WearLeveling::Static);
        println!(
            "| `{key}` | {:.1} | {} | {:.1} | {} | {:.1} | {} | {} | {} |",
            off.deviation(),
            off.spread(),
            dynamic.deviation(),
            dynamic.spread(),
            fixed.deviation(),
            fixed.spread(),
            fixed.swaps,
            fixed.moved
        );
        assert_eq!(off.flash, dynamic.flash, "{key}");
        assert_eq!(off.flash, without_moves(&fixed), "{key}");
        assert_eq!(off.scheme, dynamic.scheme, "{key}");
        assert_eq!(off.scheme, fixed.scheme, "{key}");
        assert_eq!((dynamic.swaps, dynamic.moved), (0, 0), "{key}");
        assert_eq!(off.busy_ns, dynamic.busy_ns, "{key}");
        for worn in [&off, &dynamic, &fixed] {
            let erases: u32 = worn.erases.iter().sum();
            assert_eq!(u64::from(erases), worn.flash.erases.sum(), "{key}");
        }
        // Dynamic levelling evens out the blocks in turn; those with resting content stay behind.
        assert!(dynamic.max() <= off.max(), "{key}");
        // A little above the gap: content moves when the next block is erased, and once it has rested.
        assert!(fixed.spread() <= GAP + 4, "{key}: {}", fixed.spread());
    }
}

#[test]
fn both_clocks_and_both_orders_level_alike() {
    for key in ["page", "fast", "dftl", "last++"] {
        for order in [ProgramOrder::Ascending, ProgramOrder::Any] {
            let closed = worn(key, WearLeveling::Static, order, false);
            let events = worn(key, WearLeveling::Static, order, true);
            assert_eq!(closed.erases, events.erases, "{key}");
            assert_eq!(closed.flash, events.flash, "{key}");
            assert_eq!(closed.busy_ns, events.busy_ns, "{key}");
            assert!(closed.swaps > 0, "{key}");
        }
    }
}
