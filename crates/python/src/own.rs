//! What of a run is written in Python: its policies, or its scheme. The types of schemes have no other way to it than the
//! thread that they run on.

use std::cell::RefCell;

use floatgate_core::{Geometry, ProgramOrder};
use pyo3::prelude::*;

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

/// A scheme as the package hands it over.
#[derive(FromPyObject)]
pub struct OwnScheme {
    /// Makes one for a device, and tells what went wrong.
    pub calls: Py<PyAny>,
    /// Name of the user's class.
    pub name: String,
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

/// Does work that it is for.
pub fn with<T>(own: Own, work: impl FnOnce() -> T) -> T {
    /// Puts back what was there before, however the work ends: a policy may well run a simulation.
    struct Before(Option<Own>);
    impl Drop for Before {
        fn drop(&mut self) {
            OWN.set(self.0.take());
        }
    }
    let _before = Before(OWN.replace(Some(own)));
    work()
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
