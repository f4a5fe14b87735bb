//! What of a run is written in Python: its policies, or its scheme. The types of schemes have no other way to it than the
//! thread that they run on.

use std::cell::RefCell;
use std::sync::OnceLock;

use floatgate::Cli;
use floatgate::errors::{Outcome, Problem};
use floatgate::library::Scheme;
use floatgate_core::{Geometry, ProgramOrder};
use floatgate_schemes::page::PageBy;
use floatgate_schemes::parts::placement::Rules;
use pyo3::prelude::*;

use crate::policies::{ByPlacement, BySelection};
use crate::scheme::{OwnScheme, PyScheme};

/// A placement as the package hands it over.
#[derive(FromPyObject)]
pub struct OwnPlacement {
    /// What answers.
    pub calls: Py<PyAny>,
    /// Its append points.
    pub classes: u32,
    /// The most writes of one question.
    pub chunk: usize,
    /// Class of the blocks of the start state `full`.
    pub class_of_full: u32,
    /// Whether all that one collection moves goes to one class.
    pub moves_together: bool,
}

/// What is written in Python, as the package hands it over.
#[derive(FromPyObject)]
pub struct Own {
    /// Which append point a page takes.
    pub placement: Option<OwnPlacement>,
    /// Which block a collection takes.
    pub selection: Option<Py<PyAny>>,
    /// The whole scheme.
    pub scheme: Option<OwnScheme>,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// Reads what is written in Python, if the work of this thread has any.
pub fn read<T>(read: impl FnOnce(&Own) -> Option<T>) -> Option<T> {
    OWN.with_borrow(|own| own.as_ref().and_then(read))
}

/// Name of the scheme that is written in Python, if one is.
pub fn name() -> Option<String> {
    read(|own| own.scheme.as_ref().map(|scheme| scheme.name.clone()))
}

/// Checks that the scheme of a run follows its policies, if it has any.
///
/// # Errors
/// If it does not know of them.
pub fn check(scheme: &str) -> Outcome<()> {
    let has_policies =
        |own: &Own| (own.placement.is_some() || own.selection.is_some()).then_some(());
    match read(has_policies) {
        Some(()) if scheme != ByPlacement::KEY => Err(Problem::new(format!(
            "placement= and selection= go with the scheme {}, not with {scheme}",
            ByPlacement::KEY
        ))),
        _ => Ok(()),
    }
}

/// Does work with the schemes that it is for.
pub fn with<T>(own: Own, work: impl FnOnce(&'static [Scheme]) -> T) -> T {
    /// Puts back what was there before, however the work ends: a policy may well run a simulation.
    struct Before(Option<Own>);
    impl Drop for Before {
        fn drop(&mut self) {
            OWN.set(self.0.take());
        }
    }
    let schemes = own.schemes();
    let _before = Before(OWN.replace(Some(own)));
    work(schemes)
}

/// What a device looks like to Python: the arguments of `Device`.
pub fn shape(geometry: &Geometry) -> (u32, u32, u32, u32, bool) {
    (
        geometry.logical_pages,
        geometry.dies,
        geometry.blocks_per_die,
        geometry.pages_per_block,
        geometry.program_order == ProgramOrder::Ascending,
    )
}

impl Own {
    /// The schemes of Floatgate, and among them the one that is written in Python or follows what is. All of them, as
    /// a device is sized for all.
    fn schemes(&self) -> &'static [Scheme] {
        static WHOLE: OnceLock<Cli> = OnceLock::new();
        static PLACED: OnceLock<Cli> = OnceLock::new();
        static CHOSEN: OnceLock<Cli> = OnceLock::new();
        let cli = match (&self.scheme, &self.placement, &self.selection) {
            (Some(_), _, _) => WHOLE.get_or_init(|| Cli::new().scheme::<PyScheme>()),
            (_, None, None) => return crate::schemes(),
            (_, Some(_), _) => PLACED.get_or_init(|| Cli::new().scheme::<PageBy<ByPlacement>>()),
            (_, None, Some(_)) => CHOSEN.get_or_init(|| Cli::new().scheme::<PageBy<BySelection>>()),
        };
        cli.schemes()
    }
}
