//! The flash as a scheme in Python sees it: its type erased, lent for the length of one call. Whoever keeps it finds that it
//! is over.

mod erased;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use floatgate_core::Geometry;
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Role, SCHEME_OOB_BYTES, Slot};
use floatgate_core::ledger::Ledger;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use scoped_tls_hkt::{ReborrowMut, scoped_thread_local};

pub use self::erased::set_up;
use self::erased::{Answer, Erased, Failed, Lent, Op, SetUp, Shown, Spare};
use crate::errors::error_of;

/// Names of the roles of pages, by their numbers.
const ROLES: [&str; Role::ALL.len()] = [
    "data",
    "log",
    "log-sequential",
    "log-hot",
    "log-cold",
    "map",
    "summary",
    "log-chance",
    "log-isolation",
];

/// What is lent to the call that this thread is in.
struct Loan<'a> {
    flash: &'a mut (dyn Erased + 'a),
}

impl<'a, 'b: 'a> ReborrowMut<'a> for Loan<'b> {
    type Result = Loan<'a>;
    fn reborrow_mut(&'a mut self) -> Loan<'a> {
        Loan {
            flash: &mut *self.flash,
        }
    }
}

scoped_thread_local!(static mut LOAN: for<'a> Loan<'a>);

thread_local! {
    /// The number of the loan that is open, and of the last one; 0 for none.
    static OPEN: Cell<u64> = const { Cell::new(0) };
    static LAST: Cell<u64> = const { Cell::new(0) };
}

fn open_loan<T>(flash: &mut dyn Erased, work: impl FnOnce(FlashHandle) -> T) -> T {
    /// Closes the loan, however the work ends.
    struct Close(u64);
    impl Drop for Close {
        fn drop(&mut self) {
            OPEN.set(self.0);
        }
    }
    let number = LAST.get() + 1;
    LAST.set(number);
    let _close = Close(OPEN.replace(number));
    LOAN.set(Loan { flash }, || work(FlashHandle { number }))
}

/// Lends a flash to a call of Python. What the flash or its misuse has to say comes before what Python returns.
///
/// # Errors
/// That of the flash.
pub fn lend<F: Flash, T>(
    flash: &mut F,
    set_up: Option<SetUp<F>>,
    call: impl FnOnce(Python<'_>, FlashHandle) -> PyResult<T>,
) -> Result<PyResult<T>, F::Error> {
    let mut lent = Lent::new(flash, set_up);
    let done = open_loan(&mut lent, |handle| Python::attach(|py| call(py, handle)));
    if let Some(error) = lent.error {
        return Err(error);
    }
    Ok(match (lent.broken, done) {
        // Python may have swallowed the exception.
        (Some(how), Ok(_)) => Err(Python::attach(|py| error_of(py, "PolicyError", &how))),
        (_, done) => done,
    })
}

/// The same where it can only be looked at.
pub fn show<T>(
    ledger: &Ledger,
    call: impl FnOnce(Python<'_>, FlashHandle) -> PyResult<T>,
) -> PyResult<T> {
    let mut shown = Shown(ledger);
    open_loan(&mut shown, |handle| Python::attach(|py| call(py, handle)))
}

/// The end of an operation of the flash.
#[pyclass(frozen, name = "Token", module = "floatgate._floatgate")]
pub struct Token {
    number: u64,
    place: u32,
}

/// What the spare area of a page says.
#[pyclass(frozen, get_all, name = "Oob", module = "floatgate._floatgate")]
pub struct SpareArea {
    /// The logical page.
    page: u32,
    /// What the page is for.
    role: &'static str,
    /// A few bits for the scheme.
    tag: u32,
    /// Grows with every program on the device.
    sequence: u64,
    /// The scheme's own bytes.
    spare: Py<PyBytes>,
}

/// A flash, for the length of the call that it is given to.
#[pyclass(frozen, name = "Flash", module = "floatgate._floatgate")]
pub struct FlashHandle {
    number: u64,
}

fn misuse(py: Python<'_>, what: &str) -> PyErr {
    error_of(py, "PolicyError", what)
}

impl FlashHandle {
    /// Does something with the flash, if it is lent still.
    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn Erased) -> PyResult<T>,
    ) -> PyResult<T> {
        if OPEN.get() != self.number {
            return Err(misuse(
                py,
                "this flash is over: it is good in the call that it was given to, and in its thread",
            ));
        }
        LOAN.with(|loan| work(loan.flash))
    }

    /// Asks the flash for an operation; a panic says that the scheme has broken one of its rules.
    fn ask(&self, py: Python<'_>, op: Op<'_>, after: Option<&Token>) -> PyResult<Answer> {
        let place = self.place(py, after)?;
        self.with(py, |flash| {
            check(py, flash.ledger().geometry(), &op)?;
            if flash.is_broken() {
                return Err(misuse(py, "the flash has failed: nothing more can be done"));
            }
            let done = catch_unwind(AssertUnwindSafe(|| flash.ask(op, place)));
            match done {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(Failed::Flash)) => Err(error_of(
                    py,
                    "FlashFailed",
                    "the flash has failed, or its power is gone",
                )),
                Ok(Err(Failed::Misuse(what))) => Err(misuse(py, what)),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                    let how = format!("a rule of the flash: {}", text.unwrap_or("broken"));
                    let error = misuse(py, &how);
                    flash.breaks(how);
                    Err(error)
                }
            }
        })
    }

    /// The same where only the token is of interest.
    fn does(&self, py: Python<'_>, op: Op<'_>, after: Option<&Token>) -> PyResult<Token> {
        let answer = self.ask(py, op, after)?;
        Ok(self.token(&answer))
    }

    /// What the ledger says of a block.
    fn told(&self, py: Python<'_>, block: u32, of: fn(&Ledger, Pbn) -> u32) -> PyResult<u32> {
        let block = Pbn(block);
        self.with(py, |flash| {
            let ledger = flash.ledger();
            check(py, ledger.geometry(), &Op::Erase(block, Cause::Gc))?;
            Ok(of(ledger, block))
        })
    }

    fn token(&self, answer: &Answer) -> Token {
        Token {
            number: self.number,
            place: answer.token,
        }
    }

    fn place(&self, py: Python<'_>, token: Option<&Token>) -> PyResult<u32> {
        match token {
            None => Ok(0),
            Some(token) if token.number == self.number => Ok(token.place),
            Some(_) => Err(misuse(
                py,
                "this token is over: it is good in the call in which it was made",
            )),
        }
    }
}

/// Whether there are such pages and blocks.
fn check(py: Python<'_>, geometry: &Geometry, op: &Op<'_>) -> PyResult<()> {
    let page = |at: &Ppn| {
        let pages = geometry.pages();
        let text = format!("no page {}: the flash has {pages}, from 0 on", at.0);
        (at.0 < pages)
            .then_some(())
            .ok_or_else(|| misuse(py, &text))
    };
    let block = |at: &Pbn| {
        let blocks = geometry.blocks();
        let text = format!("no block {}: the flash has {blocks}, from 0 on", at.0);
        (at.0 < blocks)
            .then_some(())
            .ok_or_else(|| misuse(py, &text))
    };
    match op {
        Op::ReadHost(_, at) | Op::ReadMap(at) | Op::ReadOob(at) | Op::Replaced(at) => page(at),
        Op::ProgramHost(_, at, _) | Op::ProgramMap(at, ..) => page(at),
        Op::Copy(from, to, ..) => page(from).and_then(|()| page(to)),
        Op::Erase(at, _) => block(at),
        Op::Keeps(at, die) => page(at).and_then(|()| match *die < geometry.dies {
            true => Ok(()),
            false => Err(misuse(py, &format!("no die {die}"))),
        }),
        Op::Preload(at, pages) => block(at).and_then(|()| {
            let fits = pages.len() <= geometry.pages_per_block as usize
                && pages.iter().all(|&page| page < geometry.logical_pages);
            match fits {
                true => Ok(()),
                false => Err(misuse(
                    py,
                    "preload: more pages than a block has, or no logical pages",
                )),
            }
        }),
        _ => Ok(()),
    }
}

/// The spare area of a page that is programmed.
fn spare(py: Python<'_>, page: u32, role: &str, tag: u32, bytes: Option<&[u8]>) -> PyResult<Spare> {
    let bytes = bytes.unwrap_or_default();
    let Some(place) = ROLES.iter().position(|&name| name == role) else {
        let text = format!("no role {role:?}; there are {}", ROLES.join(", "));
        return Err(misuse(py, &text));
    };
    if bytes.len() > SCHEME_OOB_BYTES {
        let text = format!("spare: {} bytes, at most {SCHEME_OOB_BYTES}", bytes.len());
        return Err(misuse(py, &text));
    }
    Ok(Spare {
        oob: Oob::new(Lpn(page), Role::ALL[place]).tagged(tag),
        bytes: bytes.to_vec(),
    })
}

/// What an operation is done for.
fn cause(is_map: bool) -> Cause {
    match is_map {
        true => Cause::Map,
        false => Cause::Gc,
    }
}

#[pymethods]
impl FlashHandle {
    /// Reads a page into the host's buffer.
    #[pyo3(signature = (slot, at, after=None))]
    fn read(&self, py: Python<'_>, slot: u32, at: u32, after: Option<&Token>) -> PyResult<Token> {
        self.does(py, Op::ReadHost(Slot(slot), Ppn(at)), after)
    }

    /// Programs a page from the host's buffer.
    #[pyo3(signature = (slot, at, page, *, role="data", tag=0, spare=None, after=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn program(
        &self,
        py: Python<'_>,
        slot: u32,
        at: u32,
        page: u32,
        role: &str,
        tag: u32,
        spare: Option<&[u8]>,
        after: Option<&Token>,
    ) -> PyResult<Token> {
        let spare = self::spare(py, page, role, tag, spare)?;
        self.does(py, Op::ProgramHost(Slot(slot), Ppn(at), &spare), after)
    }

    /// A page of the request that needs no operation.
    #[pyo3(signature = (slot, after=None))]
    fn absent(&self, py: Python<'_>, slot: u32, after: Option<&Token>) -> PyResult<Token> {
        self.does(py, Op::Absent(Slot(slot)), after)
    }

    /// Copies a page.
    #[pyo3(signature = (source, to, page, *, role="data", tag=0, spare=None, after=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn copy(
        &self,
        py: Python<'_>,
        source: u32,
        to: u32,
        page: u32,
        role: &str,
        tag: u32,
        spare: Option<&[u8]>,
        after: Option<&Token>,
    ) -> PyResult<Token> {
        let spare = self::spare(py, page, role, tag, spare)?;
        let cause = cause(role == "map");
        self.does(py, Op::Copy(Ppn(source), Ppn(to), &spare, cause), after)
    }

    /// Erases a block.
    #[pyo3(signature = (block, *, map=false, after=None))]
    fn erase(
        &self,
        py: Python<'_>,
        block: u32,
        map: bool,
        after: Option<&Token>,
    ) -> PyResult<Token> {
        self.does(py, Op::Erase(Pbn(block), cause(map)), after)
    }

    /// Reads the spare area of a page.
    #[pyo3(signature = (at, after=None))]
    fn read_oob(
        &self,
        py: Python<'_>,
        at: u32,
        after: Option<&Token>,
    ) -> PyResult<(Option<SpareArea>, Token)> {
        let answer = self.ask(py, Op::ReadOob(Ppn(at)), after)?;
        let area = answer.spare.as_ref().map(|found| SpareArea {
            page: found.read.oob.lpn.0,
            role: ROLES[found.read.oob.role as usize],
            tag: found.read.oob.tag,
            sequence: found.read.sequence,
            spare: PyBytes::new(py, &found.bytes).unbind(),
        });
        Ok((area, self.token(&answer)))
    }

    /// Reads a page of mapping information.
    #[pyo3(signature = (at, after=None))]
    fn read_map<'py>(
        &self,
        py: Python<'py>,
        at: u32,
        after: Option<&Token>,
    ) -> PyResult<(Option<Bound<'py, PyBytes>>, Token)> {
        let answer = self.ask(py, Op::ReadMap(Ppn(at)), after)?;
        let bytes = answer.bytes.as_ref().map(|bytes| PyBytes::new(py, bytes));
        Ok((bytes, self.token(&answer)))
    }

    /// Programs a page of mapping information.
    #[pyo3(signature = (at, number, data, *, tag=0, spare=None, after=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn program_map(
        &self,
        py: Python<'_>,
        at: u32,
        number: u32,
        data: &[u8],
        tag: u32,
        spare: Option<&[u8]>,
        after: Option<&Token>,
    ) -> PyResult<Token> {
        let spare = self::spare(py, number, "map", tag, spare)?;
        self.does(py, Op::ProgramMap(Ppn(at), &spare, data), after)
    }

    /// The program that is over with `done` has replaced a page on another die.
    fn replaced(&self, py: Python<'_>, old: u32, done: &Token) -> PyResult<()> {
        self.does(py, Op::Replaced(Ppn(old)), Some(done)).map(drop)
    }

    /// A page is needed until a die has done all that it was called for.
    fn keeps(&self, py: Python<'_>, old: u32, die: u32) -> PyResult<()> {
        self.does(py, Op::Keeps(Ppn(old), die), None).map(drop)
    }

    /// What comes begins when all that was called is done.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        self.does(py, Op::Drain, None).map(drop)
    }

    /// The pages of the request are not safe before that.
    fn finishes(&self, py: Python<'_>, done: &Token) -> PyResult<()> {
        self.does(py, Op::Finishes, Some(done)).map(drop)
    }

    /// A token that is done when both are.
    fn join(&self, py: Python<'_>, a: &Token, b: &Token) -> PyResult<Token> {
        let other = self.place(py, Some(b))?;
        self.does(py, Op::Join(other), Some(a))
    }

    /// Fills a block of the start state.
    fn preload(&self, py: Python<'_>, block: u32, pages: Vec<u32>) -> PyResult<()> {
        self.does(py, Op::Preload(Pbn(block), &pages), None)
            .map(drop)
    }

    /// Pages of a block up to the last that is programmed.
    fn written(&self, py: Python<'_>, block: u32) -> PyResult<u32> {
        self.told(py, block, Ledger::write_pointer)
    }

    /// Erases of a block.
    fn erases(&self, py: Python<'_>, block: u32) -> PyResult<u32> {
        self.told(py, block, Ledger::erase_count)
    }
}
