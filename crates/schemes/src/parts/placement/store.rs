//! Plain page mapping, or the laboratory where the options ask for more: what `page` and `hat` stand on.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Ppn};
use floatgate_core::flash::{Flash, Preload, Slot};
use floatgate_core::ftl::{Coming, MountError, Start};
use floatgate_core::geometry::{Geometry, Space};
use floatgate_core::report::{SchemeCounters, Table, bits_for};
use floatgate_core::state::{Passed, State, Tape};

use super::laboratory::checked;
use super::{AnySeparation, AnyVictims, Laboratory, PageOptions, Separation, Units, VictimRule};
use crate::parts::page_store::{Known, Moves, PageStore, StoreOptions};

/// Two rules that belong together, and the scheme they make.
pub trait Rules: Debug + Send + Sized + 'static {
    /// Name of the scheme on the command line.
    const KEY: &'static str;
    /// Name shown to users.
    const TITLE: &'static str;
    /// One sentence: what it is.
    const SUMMARY: &'static str;
    /// Where it comes from.
    const SOURCE: &'static str;
    /// The text of its file, `include_str!("...")`.
    const TEXT: &'static str = "";
    /// Which append point a page takes.
    type Separation: Separation;
    /// Which unit a collection takes.
    type Victims: VictimRule;

    /// Plain page mapping, if the options ask for nothing else; rules of one's own always do.
    fn plain(options: &PageOptions, geometry: &Geometry) -> Option<StoreOptions> {
        let _ = (options, geometry);
        None
    }
}

/// The rules of this crate, as the options choose them.
#[derive(Debug)]
pub struct House;

impl Rules for House {
    const KEY: &'static str = "page";
    const TITLE: &'static str = "Page mapping";
    const SUMMARY: &'static str = "the whole page table in memory: the yardstick";
    const SOURCE: &'static str = "HAT (MSST 2010) II.B.1; LAST++ (TOS 2016) 2.1";
    const TEXT: &'static str = include_str!("../../page.rs");
    type Separation = AnySeparation;
    type Victims = AnyVictims;

    fn plain(options: &PageOptions, geometry: &Geometry) -> Option<StoreOptions> {
        options.plain(geometry)
    }
}

/// Kept out of the way of plain page mapping, which is simulated by the hundred million pages.
#[cold]
#[inline(never)]
fn write_placed<R: Rules, F: Flash>(
    lab: &mut Laboratory<R>,
    flash: &mut F,
    slot: Slot,
    lpn: Lpn,
    after: F::Token,
    moves: &mut impl Moves<F>,
) -> Result<F::Token, F::Error> {
    lab.write(flash, slot, lpn, after, moves)
}

/// Page mapping by rules.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of it, and the plain one is the one that must be fast"
)]
pub enum Store<R: Rules = House> {
    /// As docs/spec/page.md has it.
    Plain(PageStore),
    /// As docs/spec/placement.md has it.
    Placed(Box<Laboratory<R>>),
}

impl<R: Rules> State for Store<R> {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        match self {
            Self::Plain(store) => store.pass(tape),
            Self::Placed(lab) => lab.pass(tape),
        }
    }
}

impl<R: Rules> Store<R> {
    /// Whether a device of that shape can have these options.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    pub fn check(space: &Space, options: &PageOptions) -> Result<(), Refusal> {
        match R::plain(options, &space.geometry) {
            Some(plain) => PageStore::check(space, &plain),
            None => checked::<R>(&space.geometry, options).map(|_| ()),
        }
    }

    /// Checks the options and makes the start state.
    ///
    /// # Errors
    /// The refusal of an option, or an error of the flash.
    pub fn format<F: Preload>(
        space: &Space,
        options: &PageOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        match R::plain(options, &space.geometry) {
            Some(plain) => PageStore::format(space, &plain, start, flash).map(Self::Plain),
            None => Laboratory::format(space, options, start, flash)
                .map(|lab| Self::Placed(Box::new(lab))),
        }
    }

    /// Makes the tables from what a flash holds. What is `known` saves plain page mapping the OOBs; the laboratory needs
    /// them all, for what they say beside the page's number.
    ///
    /// # Errors
    /// The refusal of an option, or of what is damaged; an error of the flash.
    pub fn recover<F: Flash>(
        space: &Space,
        options: &PageOptions,
        known: &Known<'_>,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        match R::plain(options, &space.geometry) {
            Some(plain) => PageStore::recover(space, &plain, known, flash).map(Self::Plain),
            None => Laboratory::recover(space, options, flash, &mut ())
                .map(|lab| Self::Placed(Box::new(lab))),
        }
    }

    /// Whether a recovery can do without the OOBs of pages that are known.
    pub fn uses_known(options: &PageOptions, geometry: &Geometry) -> bool {
        R::plain(options, geometry).is_some()
    }

    /// Whether writes may name a stream.
    pub fn uses_streams(options: &PageOptions) -> bool {
        R::Separation::uses_streams(options)
    }

    /// Whether it can run where requests come live.
    ///
    /// # Errors
    /// The refusal of a separation that must know the whole run in advance.
    pub fn live(options: &PageOptions) -> Result<(), Refusal> {
        if R::Separation::needs_future(options) {
            let text = "separation = fk: it needs the whole run in advance, which is not known where requests come live";
            return Err(Refusal::new("separation", text.into()));
        }
        Ok(())
    }

    /// The stream of the writes to come.
    pub fn stream(&mut self, stream: Option<u32>) {
        if let Self::Placed(lab) = self {
            lab.stream(stream);
        }
    }

    /// With which write each write ends, by number.
    pub fn foretell(&mut self, deaths: Arc<[u64]>) {
        if let Self::Placed(lab) = self {
            lab.foretell(deaths);
        }
    }

    /// How many requests ahead it wants to know what is written.
    pub fn looks_ahead(options: &PageOptions) -> usize {
        R::Separation::looks_ahead(options)
    }

    /// The writes of the next requests.
    pub fn ahead(&mut self, writes: &[Coming]) {
        if let Self::Placed(lab) = self {
            lab.ahead(writes);
        }
    }

    /// Writes a page; returns when it is programmed.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline(always)]
    pub fn write<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: Lpn,
        after: F::Token,
        moves: &mut impl Moves<F>,
    ) -> Result<F::Token, F::Error> {
        match self {
            Self::Plain(store) => store.write(flash, slot, lpn, after, moves),
            Self::Placed(lab) => write_placed(lab, flash, slot, lpn, after, moves),
        }
    }

    /// Collects in idle time, if the options ask for it.
    ///
    /// # Errors
    /// Those of the flash.
    #[cold]
    #[inline(never)]
    pub fn idle<F: Flash>(
        &mut self,
        flash: &mut F,
        idle_ns: &Range<u64>,
        moves: &mut impl Moves<F>,
    ) -> Result<(), F::Error> {
        match self {
            Self::Plain(store) => store.idle(flash, idle_ns, moves),
            Self::Placed(lab) => lab.idle(flash, idle_ns, moves),
        }
    }

    /// Drops a page. Returns where it was.
    pub fn trim(&mut self, lpn: Lpn) -> Ppn {
        match self {
            Self::Plain(store) => store.trim(lpn),
            Self::Placed(lab) => lab.trim(lpn),
        }
    }

    /// Where a page lies on the flash, or `NONE`.
    #[inline(always)]
    pub fn place(&self, lpn: Lpn) -> Ppn {
        match self {
            Self::Plain(store) => store.place(lpn),
            Self::Placed(lab) => lab.books.flash_page(lab.books.place(lpn)),
        }
    }

    /// The map entry of a page will be wanted soon.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        if let Self::Plain(store) = self {
            store.prefetch(lpn);
        }
    }

    /// The shape of the device.
    pub fn geometry(&self) -> &Geometry {
        match self {
            Self::Plain(store) => store.geometry(),
            Self::Placed(lab) => &lab.books.units_of.geometry,
        }
    }

    /// Pages that collections have moved since the start or the last [`Store::reset_counters`].
    pub fn moved(&self) -> u64 {
        match self {
            Self::Plain(store) => store.moved(),
            Self::Placed(lab) => lab.moved,
        }
    }

    /// Counts from 0 again.
    pub fn reset_counters(&mut self) {
        match self {
            Self::Plain(store) => store.reset_moved(),
            Self::Placed(lab) => lab.reset_counters(),
        }
    }

    /// Adds the counters of classes and handles.
    pub fn count(&self, counters: &mut SchemeCounters) {
        if let Self::Placed(lab) = self {
            lab.count(counters);
        }
    }

    /// Erased blocks of all dies.
    pub fn erased_blocks(&self) -> u32 {
        match self {
            Self::Plain(store) => store.erased_blocks(),
            Self::Placed(lab) => {
                let groups = 0..lab.books.shape().dies;
                let units: u32 = groups.map(|group| lab.books.erased(group)).sum();
                units * lab.books.units_of.blocks_each()
            }
        }
    }

    /// The tables beside the page map, as docs/spec/placement.md counts them.
    pub fn tables(geometry: &Geometry, options: &PageOptions) -> Vec<Table> {
        let (Ok(plan), Ok(units)) = (R::Separation::plan(options), Units::of(geometry, options))
        else {
            return Vec::new();
        };
        if R::plain(options, geometry).is_some() || !plan.is_counted {
            return Vec::new();
        }
        let shape = &units.virtual_geometry;
        let class = bits_for(plan.classes.into());
        let mut tables = vec![Table::sram(
            "classes of units",
            shape.blocks().into(),
            class,
        )];
        tables.extend(R::Separation::tables(options, shape));
        tables
    }

    /// Memory of the tables in bytes.
    pub fn ram_bytes(geometry: &Geometry, options: &PageOptions) -> u64 {
        match R::plain(options, geometry) {
            Some(_) => PageStore::ram_bytes(geometry),
            None => Laboratory::<R>::ram_bytes(geometry),
        }
    }

    /// Checks the tables; returns the live pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        match self {
            Self::Plain(store) => store.audit(flash),
            Self::Placed(lab) => lab.audit(flash),
        }
    }
}
