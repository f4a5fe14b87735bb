//! The separations, one a file. A new one is its file and its line in the list below.

pub mod dac;
pub mod fk;
pub mod hint;
pub mod plain;
pub mod sepbit;
pub mod sfs;

use std::sync::Arc;

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn};
use floatgate_core::ftl::Coming;
use floatgate_core::geometry::Geometry;
use floatgate_core::report::Table;
use floatgate_core::state::{Passed, State, Tape};

use super::separation::{Plan, Separation};
use super::{Books, PageOptions};

/// Makes the option's words and the type that stands for any of the rules.
macro_rules! separations {
    ($($(#[doc = $doc:literal])+ $name:ident($rule:ty) = $word:literal;)+) => {
        floatgate_core::choice! {
            /// Which append point a page takes.
            pub enum SeparationKey {
                /// As the option `streams` says.
                Streams = "streams",
                $($(#[doc = $doc])+ $name = $word,)+
            }
        }

        /// Any of the separations.
        #[derive(Debug)]
        pub enum AnySeparation { $($(#[doc = $doc])+ $name($rule),)+ }

        /// Calls a method of the rule that there is.
        macro_rules! rule {
            ($any:expr, $r:ident => $call:expr) => { match $any { $(AnySeparation::$name($r) => $call,)+ } };
        }

        /// Calls a function of the rule that the options name.
        macro_rules! named {
            ($options:expr, $call:ident($arguments:tt)) => {
                match $options.separation() {
                    SeparationKey::Streams => unreachable!("spelt out by the call above"),
                    $(SeparationKey::$name => named!(@ $rule, $call, $arguments),)+
                }
            };
            (@ $ty:ty, $f:ident, ($arguments:expr)) => { <$ty>::$f($arguments) };
            (@ $ty:ty, $f:ident, ($one:expr, $two:expr)) => { <$ty>::$f($one, $two) };
        }

        impl AnySeparation {
            fn make(options: &PageOptions, shape: &Geometry) -> Self {
                match options.separation() {
                    SeparationKey::Streams => unreachable!("spelt out by the call above"),
                    $(SeparationKey::$name => Self::$name(<$rule>::new(options, shape)),)+
                }
            }
        }
    };
}

separations! {
    /// One append point for all pages.
    None(plain::Together) = "none";
    /// Moved pages apart from those of the host.
    Split(plain::Apart) = "split";
    /// Dynamic data clustering (Chiang, Lee, Chang 1999).
    Dac(dac::Dac) = "dac";
    /// By hotness, in groups found by iteration (Min et al. 2012).
    Sfs(sfs::Sfs) = "sfs";
    /// By the time until a page is invalid, as it can be guessed (Wang et al. 2022).
    SepBit(sepbit::SepBit) = "sepbit";
    /// By the time until a page is invalid, as it is known.
    Fk(fk::FutureKnowledge) = "fk";
    /// As the host says (NVMe flexible data placement).
    Hint(hint::Hint) = "hint";
}

impl State for AnySeparation {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        rule!(self, r => r.pass(tape))
    }
}

impl Separation for AnySeparation {
    fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
        named!(options, plan((options)))
    }

    fn new(options: &PageOptions, shape: &Geometry) -> Self {
        Self::make(options, shape)
    }

    fn starts_full(&mut self, pages: u32) {
        rule!(self, r => r.starts_full(pages));
    }

    #[inline]
    fn of_host(&mut self, lpn: Lpn, group: u32, books: &Books) -> u32 {
        rule!(self, r => r.of_host(lpn, group, books))
    }

    #[inline]
    fn of_moved(&mut self, lpn: Lpn, from_class: u32, group: u32, books: &Books) -> u32 {
        rule!(self, r => r.of_moved(lpn, from_class, group, books))
    }

    fn collects(&mut self, victim: Pbn, group: u32, books: &Books) {
        rule!(self, r => r.collects(victim, group, books));
    }

    #[inline]
    fn wrote(&mut self, lpn: Lpn, books: &Books) {
        rule!(self, r => r.wrote(lpn, books));
    }

    fn trims(&mut self, lpn: Lpn) {
        rule!(self, r => r.trims(lpn));
    }

    #[inline]
    fn moved(&mut self, lpn: Lpn) {
        rule!(self, r => r.moved(lpn));
    }

    fn uses_streams(options: &PageOptions) -> bool {
        named!(options, uses_streams((options)))
    }

    fn stream(&mut self, stream: Option<u32>) {
        rule!(self, r => r.stream(stream));
    }

    fn group(&self) -> u32 {
        rule!(self, r => r.group())
    }

    fn missed_group(&mut self) {
        rule!(self, r => r.missed_group());
    }

    fn needs_future(options: &PageOptions) -> bool {
        named!(options, needs_future((options)))
    }

    fn foretell(&mut self, deaths: Arc<[u64]>) {
        rule!(self, r => r.foretell(deaths));
    }

    fn looks_ahead(options: &PageOptions) -> usize {
        named!(options, looks_ahead((options)))
    }

    fn ahead(&mut self, writes: &[Coming]) {
        rule!(self, r => r.ahead(writes));
    }

    fn handle(&self, lpn: Lpn) -> u32 {
        rule!(self, r => r.handle(lpn))
    }

    fn handle_in_work(&self) -> u32 {
        rule!(self, r => r.handle_in_work())
    }

    fn found(&mut self, lpn: Lpn, handle: u32) -> Result<(), Refusal> {
        rule!(self, r => r.found(lpn, handle))
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, Option<u32>, u64)) {
        rule!(self, r => r.counters(count));
    }

    fn reset_counters(&mut self) {
        rule!(self, r => r.reset_counters());
    }

    fn audit(&self, books: &Books) -> Result<(), String> {
        rule!(self, r => r.audit(books))
    }

    fn tables(options: &PageOptions, shape: &Geometry) -> Vec<Table> {
        named!(options, tables((options, shape)))
    }
}
