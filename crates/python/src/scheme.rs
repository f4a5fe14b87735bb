//! A scheme written in Python: a type like any other for whatever runs schemes, which calls an object of the user's.

use std::collections::BTreeSet;
use std::sync::Mutex;

use floatgate::library::quietly;
use floatgate_core::address::Lpn;
use floatgate_core::described::Described;
use floatgate_core::flash::{Flash, Preload, Slot};
use floatgate_core::ftl::{Ftl, MountError, RecoveryMode, Start, audited};
use floatgate_core::options::NoOptions;
use floatgate_core::report::Table;
use floatgate_core::{Geometry, Refusal, Space};
use floatgate_testkit::checks::{self, Work};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::errors::error_of;
use crate::flash::{lend, set_up, show};
use crate::own::{self, Own};
use crate::pulse::{ask, go_on, interruptible, raised_meanwhile, stop};

/// A part of what a scheme in Rust has to pass: Python is slow.
const LESS: u64 = 10;

/// What the command line calls it.
pub const KEY: &str = "python";

/// A scheme in Python.
#[derive(Debug)]
pub struct PyScheme {
    object: Py<PyAny>,
}

fn calls(py: Python<'_>) -> Py<PyAny> {
    let calls = own::read(|own| own.scheme.as_ref().map(|given| given.calls.clone_ref(py)));
    calls.expect("only used where there is one")
}

/// What Python raised in a method, as it comes out.
fn blamed(object: &Py<PyAny>, method: &str, error: PyErr) -> PyErr {
    Python::attach(|py| {
        let blamed = calls(py).call_method1(py, "blame", (object, method, error.into_value(py)));
        blamed.map_or_else(
            |error| error,
            |error| PyErr::from_value(error.into_bound(py)),
        )
    })
}

/// What Python says with `Refused`, if it is that.
fn refusal(error: &PyErr) -> Option<String> {
    Python::attach(|py| {
        let class = py
            .import("floatgate.errors")
            .ok()?
            .getattr("Refused")
            .ok()?;
        let is_one = error.value(py).is_instance(&class).unwrap_or(false);
        is_one.then(|| error.value(py).to_string())
    })
}

impl PyScheme {
    fn new(space: &Space) -> Result<Self, Refusal> {
        let shape = own::shape(&space.geometry);
        go_on();
        let made = Python::attach(|py| calls(py).call_method1(py, "make", shape));
        match made {
            Ok(object) => Ok(Self { object }),
            Err(error) => match refusal(&error) {
                Some(why) => Err(Refusal::of_all(why)),
                None => stop(error),
            },
        }
    }

    /// Calls a method that works on the flash.
    fn call<F: Flash>(
        &self,
        flash: &mut F,
        method: &'static str,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        go_on();
        let done = lend(flash, None, |py, handle| {
            self.object
                .call_method1(py, method, (handle, page.0, slot.0))
                .map(drop)
        })?;
        done.unwrap_or_else(|error| stop(blamed(&self.object, method, error)));
        Ok(())
    }

    /// Why a device was refused by a method; anything else that it raised ends the work.
    fn refused<E>(
        &self,
        method: &str,
        error: PyErr,
        as_refusal: fn(String) -> Refusal,
    ) -> MountError<E> {
        match refusal(&error) {
            Some(why) => as_refusal(why).into(),
            None => stop(blamed(&self.object, method, error)),
        }
    }
}

/// A name that lives for ever; each of them once.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let kept: &'static str = name.leak();
    names.insert(kept);
    kept
}

impl Described for PyScheme {
    const KEY: &'static str = KEY;
    const TITLE: &'static str = "A scheme in Python";
    const SUMMARY: &'static str = "written in Python: slow";
    const SOURCE: &'static str = "yours";
    type Options = NoOptions;

    fn tables(geometry: &Geometry, _: &NoOptions) -> Vec<Table> {
        let named: Vec<(String, u64, u64)> = ask(|py| {
            let tables = calls(py).call_method1(py, "tables", own::shape(geometry))?;
            tables.extract(py)
        });
        let table = |(name, entries, bits)| Table::dram(interned(name), entries, bits);
        named.into_iter().map(table).collect()
    }
}

impl Ftl for PyScheme {
    type Page = Lpn;

    fn format<F: Preload>(
        space: &Space,
        _: &NoOptions,
        start: Start,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let made = Self::new(space)?;
        let done = lend(flash, Some(set_up::<F>), |py, handle| {
            let asked = (handle, start == Start::Full);
            made.object.call_method1(py, "format", asked).map(drop)
        });
        match done.map_err(MountError::Flash)? {
            Ok(()) => Ok(made),
            Err(error) => Err(made.refused("format", error, Refusal::of_all)),
        }
    }

    fn recover<F: Flash>(
        space: &Space,
        _: &NoOptions,
        mode: RecoveryMode,
        flash: &mut F,
    ) -> Result<Self, MountError<F::Error>> {
        let made = Self::new(space)?;
        let done = lend(flash, None, |py, handle| {
            let asked = (handle, mode == RecoveryMode::FullScan);
            made.object.call_method1(py, "recover", asked).map(drop)
        });
        match done.map_err(MountError::Flash)? {
            Ok(()) => audited(made, flash),
            Err(error) => Err(made.refused("recover", error, Refusal::damaged)),
        }
    }

    fn write_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.call(flash, "write_page", page, slot)
    }

    fn read_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.call(flash, "read_page", page, slot)
    }

    fn trim_page<F: Flash>(
        &mut self,
        flash: &mut F,
        page: Lpn,
        slot: Slot,
    ) -> Result<(), F::Error> {
        self.call(flash, "trim_page", page, slot)
    }

    fn shutdown<F: Flash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        go_on();
        let done = lend(flash, None, |py, handle| {
            self.object
                .call_method1(py, "shutdown", (handle,))
                .map(drop)
        })?;
        done.unwrap_or_else(|error| stop(blamed(&self.object, "shutdown", error)));
        Ok(())
    }

    fn audit<F: Flash>(&self, flash: &F) -> Result<u64, String> {
        go_on();
        let live = show(flash.ledger(), |py, handle| {
            let live = self.object.call_method1(py, "audit", (handle,))?;
            live.extract::<u64>(py)
        });
        live.map_err(|error| {
            let is_exception = Python::attach(|py| error.is_instance_of::<PyException>(py));
            match is_exception {
                true => blamed(&self.object, "audit", error).to_string(),
                false => stop(error),
            }
        })
    }
}

/// One of the checks that every scheme passes, on a scheme in Python: what was tried and what was refused. A finding is
/// raised.
#[pyfunction]
pub fn check_scheme(
    py: Python<'_>,
    own: Own,
    check: &str,
    times: u64,
    seed: u64,
) -> PyResult<(u64, u64)> {
    let whole = Work::default().times(times);
    let work = Work {
        seed,
        random_cases: whole.random_cases / LESS,
        cut_points: whole.cut_points / LESS,
        flights: whole.flights / LESS,
        rot_cases: whole.rot_cases / LESS,
        scripts: whole.scripts / LESS,
    };
    tested(py, own, || {
        let catalog = checks::one::<PyScheme>();
        let rows = match check {
            "every_shape" => checks::every_shape(&catalog),
            "random_devices" => checks::random_devices(&catalog, &work),
            "power_cuts" => checks::power_cuts(&catalog, &work),
            "dies_in_flight" => checks::dies_in_flight(&catalog, &work),
            "unreadable_pages" => checks::unreadable_pages(&catalog, &work),
            "forged_pages" => checks::forged_pages(&catalog, &work),
            "any_bytes" => checks::any_bytes(&catalog, &work),
            other => panic!("no check {other}"),
        };
        let tallies = rows.iter().map(|(_, tally)| (tally.tried, tally.refused));
        tallies.fold((0, 0), |sum, tally| (sum.0 + tally.0, sum.1 + tally.1))
    })
}

/// Replays a line that a check printed: how many points were tried on the way.
#[pyfunction]
pub fn replay_scheme(py: Python<'_>, own: Own, line: &str) -> PyResult<u64> {
    tested(py, own, || {
        let replayed = floatgate_testkit::replay(line, &checks::one::<PyScheme>());
        replayed.map_or_else(|found| panic!("{found}"), |tally| tally.tried)
    })
}

/// Does work that panics with what it finds.
fn tested<T: Send>(py: Python<'_>, own: Own, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let (done, raised) = interruptible(py, None, |_| {
        let done = own::with(own, || quietly(work));
        Ok((done, raised_meanwhile()))
    })?;
    match (done, raised) {
        (_, Some(error)) if !error.is_instance_of::<PyException>(py) => Err(error),
        (Ok(done), _) => Ok(done),
        (Err(found), raised) => {
            let error = error_of(py, "TestFailed", found.trim());
            error.set_cause(py, raised);
            Err(error)
        }
    }
}
