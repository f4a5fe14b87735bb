//! The pulse of long work: now and then it asks Python whether to go on, and tells it how far it is.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use floatgate::errors::Outcome;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::errors::raised;

/// Time between two looks: a person takes it for at once.
const BETWEEN: Duration = Duration::from_millis(50);

/// What unwinds the threads of work that is to end.
struct Stopped;

thread_local! {
    /// What Python raised while work was under way: Ctrl-C, or an error of a function that was called.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Ends work that is under way, as Python has raised this. Most places that call Python return nothing that could carry an
/// error; unwinding from there removes unfinished files and ends threads as any failure does.
pub fn stop(error: PyErr) -> ! {
    let text = error.to_string();
    RAISED.set(Some(error));
    resume_unwind(Box::new(text));
}

/// Ends work that has gone on after Ctrl-C, as tests do: they take the end of a scheme for a finding.
pub fn go_on() {
    let is_over = RAISED.with_borrow(|raised| {
        let is_more = |error: &PyErr| Python::attach(|py| !error.is_instance_of::<PyException>(py));
        raised.as_ref().is_some_and(is_more)
    });
    if is_over {
        resume_unwind(Box::new(Stopped));
    }
}

/// What Python raised since this was asked last.
pub fn raised_meanwhile() -> Option<PyErr> {
    RAISED.take()
}

/// Asks Python something in the midst of work; what it raises [ends](stop) the work.
pub fn ask<T>(question: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    Python::attach(question).unwrap_or_else(|error| stop(error))
}

/// Asks and tells, not too often.
pub struct Pulse {
    tell: Option<Py<PyAny>>,
    total: u64,
    done: u64,
    last: Instant,
}

impl Pulse {
    /// From now on `phase` is at work, on so many requests.
    pub fn begin(&mut self, total: u64) {
        (self.total, self.done) = (total, 0);
    }

    /// So many more requests are done; `phase` says of what.
    pub fn beat(&mut self, phase: &str, more: u64) {
        self.done += more;
        if self.last.elapsed() < BETWEEN {
            return;
        }
        self.last = Instant::now();
        ask(|py| {
            py.check_signals()?;
            let tell = self.tell.as_ref();
            tell.map_or(Ok(()), |tell| {
                tell.call1(py, (phase, self.done, self.total)).map(drop)
            })
        });
    }
}

/// Does work that has threads of its own; only this one hears of Ctrl-C. The work calls what it is given now and then, by
/// any of its threads.
///
/// # Errors
/// As [`interruptible`].
pub fn interruptible_threads<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&(dyn Fn() + Sync)) -> Outcome<T> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let beat = || {
        if stop.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
    };
    interruptible(py, None, |pulse| {
        std::thread::scope(|scope| {
            let working = scope.spawn(|| work(&beat));
            let asked = catch_unwind(AssertUnwindSafe(|| {
                while !working.is_finished() {
                    std::thread::sleep(BETWEEN);
                    pulse.beat("plays", 0);
                }
            }));
            stop.store(asked.is_err(), Ordering::Relaxed);
            let done = working.join().unwrap_or_else(|panic| resume_unwind(panic));
            asked.unwrap_or_else(|panic| resume_unwind(panic));
            done
        })
    })
}

/// Does work without holding the interpreter; it ends early if Python wants it to. `tell` is called with what is at
/// work, how much of it is done and how much there is.
///
/// # Errors
/// What Python raised meanwhile, or the problem of the work.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    tell: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Pulse) -> Outcome<T> + Send,
) -> PyResult<T> {
    let mut pulse = Pulse {
        tell,
        total: 0,
        done: 0,
        last: Instant::now(),
    };
    raised_meanwhile();
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&mut pulse))));
    // Schemes are guarded against their own panics: there the unwinding ends as a failure of the run.
    if let Some(error) = raised_meanwhile() {
        return Err(error);
    }
    match done {
        Ok(done) => done.map_err(|problem| raised(py, &problem)),
        Err(panic) => resume_unwind(panic),
    }
}
