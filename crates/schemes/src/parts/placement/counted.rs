//! The counters of the classes.

use std::sync::OnceLock;

use floatgate_core::geometry::Geometry;
use floatgate_core::report::{Combine, SchemeCounters};
use floatgate_core::state;

use super::{Laboratory, Rules, Separation};

/// What is counted of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// Pages of the host programmed into its units.
    host: u64,
    /// Moved pages programmed into its units.
    gc: u64,
    /// Units taken for its append point.
    taken: u64,
    /// Units collected.
    collected: u64,
    /// Valid pages in them then.
    live: u64,
}

state!(Class {
    host,
    gc,
    taken,
    collected,
    live
});

/// The counters, by class.
#[derive(Debug)]
pub struct Counted {
    classes: Vec<Class>,
}

state!(Counted { classes });

impl Counted {
    pub(super) fn new(classes: u32) -> Self {
        Self {
            classes: vec![Class::default(); classes as usize],
        }
    }

    #[inline]
    pub(super) fn host(&mut self, class: u32) {
        self.classes[class as usize].host += 1;
    }

    #[inline]
    pub(super) fn moved(&mut self, class: u32) {
        self.classes[class as usize].gc += 1;
    }

    pub(super) fn taken(&mut self, class: u32) {
        self.classes[class as usize].taken += 1;
    }

    pub(super) fn collected(&mut self, class: u32, valid: u32) {
        self.classes[class as usize].collected += 1;
        self.classes[class as usize].live += u64::from(valid);
    }

    pub(super) fn reset(&mut self) {
        self.classes.fill(Class::default());
    }
}

/// Most numbers that a name can bear: a class of 64 handles, all persistently isolated, and of as many for moved pages.
const NUMBERS: usize = 129;

/// A counter's name with a number behind it, made once.
fn numbered(name: &'static str, number: u32) -> &'static str {
    const NAMES: [&str; 8] = [
        "class_host",
        "class_gc",
        "class_taken",
        "class_collected",
        "class_live",
        "handle_media",
        "handle_write_amplification",
        "class_live_share",
    ];
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let names = NAMES.iter();
        names
            .flat_map(|name| (0..NUMBERS).map(move |i| format!("{name}_{i}")))
            .collect()
    });
    let place = NAMES.iter().position(|&known| known == name);
    let known = place.and_then(|place| all.get(place * NUMBERS + number as usize));
    known.map_or(name, String::as_str)
}

impl<R: Rules> Laboratory<R> {
    /// Adds the counters of classes and handles, and what follows from them.
    pub fn count(&self, counters: &mut SchemeCounters) {
        if !self.plan.is_counted {
            return;
        }
        for (i, class) in (0..).zip(&self.counted.classes) {
            counters.extra(numbered("class_host", i), class.host);
            counters.extra(numbered("class_gc", i), class.gc);
            counters.extra(numbered("class_taken", i), class.taken);
            counters.extra(numbered("class_collected", i), class.collected);
            counters.extra(numbered("class_live", i), class.live);
            let pages = class.collected * u64::from(self.books.unit_pages());
            if pages > 0 {
                let share = class.live as f64 / pages as f64;
                counters.stat(numbered("class_live_share", i), share, Combine::Mean);
            }
        }
        let classes = &self.counted.classes;
        let mut amplified = Vec::new();
        self.separation
            .counters(&mut |name, number, value| match number {
                None => counters.extra(name, value),
                Some(i) => {
                    counters.extra(numbered(name, i), value);
                    let host = classes[i as usize].host;
                    if name == "handle_media" && host > 0 {
                        amplified.push((i, value as f64 / host as f64));
                    }
                }
            });
        for (i, factor) in amplified {
            counters.stat(
                numbered("handle_write_amplification", i),
                factor,
                Combine::Mean,
            );
        }
    }

    /// Counts from 0 again.
    pub fn reset_counters(&mut self) {
        self.counted.reset();
        self.separation.reset_counters();
        self.moved = 0;
    }

    /// Memory of the tables in bytes.
    pub fn ram_bytes(geometry: &Geometry) -> u64 {
        let (logical, pages) = (
            u64::from(geometry.logical_pages),
            u64::from(geometry.pages()),
        );
        // Map, last writes and counts, and what a separation may keep of each page; who lies where; units.
        (4 + 12 + 32) * logical + 4 * pages + 256 * u64::from(geometry.blocks())
    }
}
