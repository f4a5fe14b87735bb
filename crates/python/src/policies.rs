//! Policies written in Python: which append point a page takes, which block a collection takes. The scheme `page` asks them
//! once a chunk of writes and once a collection. What they see is a copy in bytes that Python owns, so that it stays good
//! whatever is done with it; what they answer is checked in Python (python/floatgate/_policies.py).

use std::collections::VecDeque;

use floatgate_core::address::{Lpn, Pbn};
use floatgate_core::ftl::Coming;
use floatgate_core::state::{Passed, State, StateError, Tape};
use floatgate_core::{Geometry, Refusal};
use floatgate_schemes::parts::placement::{
    AnySeparation, AnyVictims, Books, ByChunk, Chunked, House, Keeps, PageOptions, Placement, Plan,
    Rules, SeparationKey, VictimKey, VictimRule,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::own::{self, OwnPlacement};
use crate::pulse::ask;

fn of_placement<T>(read: impl FnOnce(&OwnPlacement) -> T) -> T {
    let found = own::read(|own| own.placement.as_ref().map(read));
    found.expect("only used where there is one")
}

/// The columns of a table with these rows, one after the other.
fn columns<const N: usize>(
    py: Python<'_>,
    rows: impl ExactSizeIterator<Item = [u64; N]>,
) -> PyResult<Bound<'_, PyBytes>> {
    const CELL: usize = size_of::<u64>();
    let n = rows.len();
    PyBytes::new_with(py, n * N * CELL, |bytes| {
        for (i, row) in rows.enumerate() {
            for (column, cell) in row.into_iter().enumerate() {
                let at = (column * n + i) * CELL;
                bytes[at..at + CELL].copy_from_slice(&cell.to_le_bytes());
            }
        }
        Ok(())
    })
}

/// A cell that holds no value.
const NONE: u64 = u64::MAX;

/// What a device looks like to a policy.
fn begin(calls: &Py<PyAny>, py: Python<'_>, shape: &Geometry) -> PyResult<()> {
    calls.call_method1(py, "begin", own::shape(shape)).map(drop)
}

/// A placement in Python.
#[derive(Debug)]
pub struct Asked {
    calls: Py<PyAny>,
}

/// Nobody knows what Python keeps.
impl State for Asked {
    fn pass(&mut self, _: &mut Tape<'_>) -> Passed {
        Err(StateError::NotSupported)
    }
}

impl ByChunk for Asked {
    fn plan(options: &PageOptions) -> Result<Plan, Refusal> {
        if options.separation != SeparationKey::Streams {
            let text = "separation: there is a placement= already, which says where pages go";
            return Err(Refusal::new("separation", text.into()));
        }
        if options.placement == Placement::Hint {
            let text = "placement = hint: only with separation = hint, not with a placement=";
            return Err(Refusal::new("placement", text.into()));
        }
        Ok(of_placement(|given| Plan {
            classes: given.classes,
            least_low: if given.moves_together {
                2
            } else {
                given.classes + 1
            },
            beside_low: given.classes,
            class_of_full: given.class_of_full,
            first_moved: 0,
            is_apart: false,
            feeds_one: given.moves_together,
            is_counted: true,
            keeps: Keeps {
                last: true,
                count: true,
                handle: false,
            },
        }))
    }

    fn chunk(_: &PageOptions) -> usize {
        of_placement(|given| given.chunk)
    }

    fn new(_: &PageOptions, shape: &Geometry) -> Self {
        ask(|py| {
            let calls = of_placement(|given| given.calls.clone_ref(py));
            begin(&calls, py, shape)?;
            Ok(Self { calls })
        })
    }

    fn of_host(&mut self, writes: &[Coming], books: &Books, classes: &mut Vec<u32>) {
        let row = |write: &Coming| {
            let unit = books.unit_of(write.page);
            [
                write.page.0.into(),
                write.request_pages.into(),
                write.stream.map_or(NONE, u64::from),
                books.last(write.page),
                books.count(write.page).into(),
                unit.map_or(NONE, |unit| books.unit(unit).class.into()),
            ]
        };
        ask(|py| {
            let rows = columns(py, writes.iter().map(row))?;
            let named = self.calls.call_method1(py, "place", (books.now(), rows))?;
            take(named.bind(py), classes)
        });
    }

    fn of_moved(&mut self, victim: Pbn, pages: &[Lpn], books: &Books, classes: &mut Vec<u32>) {
        let row = |&page: &Lpn| [page.0.into(), books.last(page), books.count(page).into()];
        ask(|py| {
            let rows = columns(py, pages.iter().map(row))?;
            let from = books.unit(victim).class;
            let asked = (books.now(), victim.0, from, rows);
            let named = self.calls.call_method1(py, "place_moved", asked)?;
            take(named.bind(py), classes)
        });
    }
}

/// Adds the classes that Python names, a byte each.
fn take(named: &Bound<'_, PyAny>, classes: &mut Vec<u32>) -> PyResult<()> {
    let named = named.cast::<PyBytes>()?;
    classes.extend(named.as_bytes().iter().map(|&class| u32::from(class)));
    Ok(())
}

/// A selection in Python, or one of the rules of the scheme.
#[derive(Debug)]
pub struct Chosen {
    house: AnyVictims,
    own: Option<Py<PyAny>>,
    /// By group: what was chosen for its next collections.
    next: Vec<VecDeque<Pbn>>,
}

impl State for Chosen {
    fn pass(&mut self, tape: &mut Tape<'_>) -> Passed {
        match &self.own {
            Some(_) => Err(StateError::NotSupported),
            None => self.house.pass(tape),
        }
    }
}

impl Chosen {
    fn is_own() -> bool {
        own::read(|own| own.selection.as_ref().map(|_| ())).is_some()
    }

    /// What Python chooses among these, as its places in the list.
    fn ask(own: &Py<PyAny>, units: &[Pbn], group: u32, books: &Books) -> Vec<u32> {
        let row = |&number: &Pbn| {
            let unit = books.unit(number);
            [
                number.0.into(),
                unit.valid.into(),
                unit.class.into(),
                unit.erases,
                unit.alloc_no,
                unit.born,
                books.unit_age(unit),
                unit.lasts,
                unit.counts,
            ]
        };
        ask(|py| {
            let rows = columns(py, units.iter().map(row))?;
            let asked = (group, books.now(), books.unit_pages(), rows);
            own.call_method1(py, "select", asked)?.extract(py)
        })
    }
}

impl VictimRule for Chosen {
    fn check(options: &PageOptions, plan: &Plan) -> Result<(), Refusal> {
        if Self::is_own() && options.gc_policy != VictimKey::Greedy {
            let text = "gc_policy: there is a selection= already, which says what is collected";
            return Err(Refusal::new("gc_policy", text.into()));
        }
        AnyVictims::check(options, plan)
    }

    fn new(options: &PageOptions, plan: &Plan, shape: &Geometry) -> Self {
        let own = Self::is_own().then(|| {
            ask(|py| {
                let own = own::read(|own| own.selection.as_ref().map(|own| own.clone_ref(py)));
                let own = own.expect("there is one");
                begin(&own, py, shape)?;
                Ok(own)
            })
        });
        Self {
            house: AnyVictims::new(options, plan, shape),
            own,
            next: vec![VecDeque::new(); shape.dies as usize],
        }
    }

    fn weighs_writes(options: &PageOptions) -> bool {
        Self::is_own() || AnyVictims::weighs_writes(options)
    }

    fn choose(&mut self, group: u32, books: &Books) -> Option<Pbn> {
        let Some(own) = &self.own else {
            return self.house.choose(group, books);
        };
        let next = &mut self.next[group as usize];
        if next.is_empty() {
            let units: Vec<Pbn> = books.candidates(group).collect();
            if units.is_empty() {
                return None;
            }
            let chosen = Self::ask(own, &units, group, books);
            next.extend(chosen.into_iter().map(|place| units[place as usize]));
        }
        next.pop_front()
    }

    fn taken(&mut self, unit: Pbn) {
        self.house.taken(unit);
    }

    fn lost(&mut self, unit: Pbn, clock: u64) {
        self.house.lost(unit, clock);
    }

    fn closed(&mut self, unit: Pbn, invalid: u32, clock: u64) {
        self.house.closed(unit, invalid, clock);
    }

    fn collecting(&mut self, unit: Pbn) {
        self.house.collecting(unit);
    }

    fn erased(&mut self, unit: Pbn) {
        self.house.erased(unit);
    }

    fn audit(&self, books: &Books) -> Result<(), String> {
        self.house.audit(books)
    }
}

/// `page` with a placement in Python, and perhaps a selection.
#[derive(Debug)]
pub struct ByPlacement;

impl Rules for ByPlacement {
    const KEY: &'static str = House::KEY;
    const TITLE: &'static str = House::TITLE;
    const SUMMARY: &'static str = House::SUMMARY;
    const SOURCE: &'static str = House::SOURCE;
    type Separation = Chunked<Asked>;
    type Victims = Chosen;
}

/// `page` with a selection in Python.
#[derive(Debug)]
pub struct BySelection;

impl Rules for BySelection {
    const KEY: &'static str = House::KEY;
    const TITLE: &'static str = House::TITLE;
    const SUMMARY: &'static str = House::SUMMARY;
    const SOURCE: &'static str = House::SOURCE;
    type Separation = AnySeparation;
    type Victims = Chosen;
}
