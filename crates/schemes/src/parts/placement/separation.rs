//! What a separation is: which append point a page takes.

use std::fmt::Debug;
use std::sync::Arc;

use floatgate_core::Refusal;
use floatgate_core::address::{Lpn, Pbn};
use floatgate_core::ftl::Coming;
use floatgate_core::geometry::Geometry;
use floatgate_core::report::Table;
use floatgate_core::state::State;

use super::{Books, PageOptions};

/// The numbers of a separation: classes, reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Append points of a group.
    pub classes: u32,
    /// Least erased units that a group must keep.
    pub least_low: u32,
    /// Units that the reserve has beside those.
    pub beside_low: u32,
    /// Class of the units of the start state `full`.
    pub class_of_full: u32,
    /// The lowest class that takes moved pages.
    pub first_moved: u32,
    /// Whether no class takes both moved pages and those of the host.
    pub is_apart: bool,
    /// Whether the moved pages of one victim all go to one class.
    pub feeds_one: bool,
    /// Whether its classes are counted in `extra`.
    pub is_counted: bool,
    /// What the OOB of a page must hold for it.
    pub keeps: Keeps,
}

/// What OOBs hold of a page besides the class of its unit, for the time after a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeps {
    /// The number of its last host write.
    pub last: bool,
    /// Its host writes.
    pub count: bool,
    /// The handle under which it was written.
    pub handle: bool,
}

/// A rule that tells append points apart. It sees the [`Books`] and keeps what else it needs.
pub trait Separation: State + Debug + Send + Sized + 'static {
    /// Classes and reserve under these options.
    ///
    /// # Errors
    /// A refusal that names the option at fault.
    fn plan(options: &PageOptions) -> Result<Plan, Refusal>;

    /// The rule at the start; `shape` has groups as dies and units as blocks.
    fn new(options: &PageOptions, shape: &Geometry) -> Self;

    /// Every logical page has been written once, in order.
    fn starts_full(&mut self, pages: u32) {
        let _ = pages;
    }

    /// The class of the host's page `lpn`, which is about to be written to a group.
    fn of_host(&mut self, lpn: Lpn, group: u32, books: &Books) -> u32;

    /// The class of a valid page of a victim of that class.
    fn of_moved(&mut self, lpn: Lpn, from_class: u32, group: u32, books: &Books) -> u32;

    /// A victim is chosen; its pages have not moved yet.
    fn collects(&mut self, victim: Pbn, group: u32, books: &Books) {
        let _ = (victim, group, books);
    }

    /// The host's page has been written.
    fn wrote(&mut self, lpn: Lpn, books: &Books) {
        let _ = (lpn, books);
    }

    /// A mapped page is dropped by the host.
    fn trims(&mut self, lpn: Lpn) {
        let _ = lpn;
    }

    /// A page has been moved.
    fn moved(&mut self, lpn: Lpn) {
        let _ = lpn;
    }

    /// Whether writes may name a stream.
    fn uses_streams(options: &PageOptions) -> bool {
        let _ = options;
        false
    }

    /// The stream of the writes to come.
    fn stream(&mut self, stream: Option<u32>) {
        let _ = stream;
    }

    /// The group that the request has asked for (`placement = hint`).
    fn group(&self) -> u32 {
        0
    }

    /// A page could not go to the group asked for.
    fn missed_group(&mut self) {}

    /// Whether it needs to know all writes of the run in advance.
    fn needs_future(options: &PageOptions) -> bool {
        let _ = options;
        false
    }

    /// The number of the write with which each numbered write ends, from number 0 on; `u64::MAX` for none.
    fn foretell(&mut self, deaths: Arc<[u64]>) {
        let _ = deaths;
    }

    /// How many requests ahead it wants to know what is written.
    fn looks_ahead(options: &PageOptions) -> usize {
        let _ = options;
        0
    }

    /// The writes of the next requests, if they are known: see [`Ftl::ahead`](floatgate_core::Ftl::ahead).
    fn ahead(&mut self, writes: &[Coming]) {
        let _ = writes;
    }

    /// The handle of a page, for its OOB.
    fn handle(&self, lpn: Lpn) -> u32 {
        let _ = lpn;
        0
    }

    /// The handle of the page that is being written.
    fn handle_in_work(&self) -> u32 {
        0
    }

    /// A page has been found after a power cut, with the handle of its OOB.
    ///
    /// # Errors
    /// A refusal if there is no such handle.
    fn found(&mut self, lpn: Lpn, handle: u32) -> Result<(), Refusal> {
        let _ = (lpn, handle);
        Ok(())
    }

    /// Its own counters: name, number of the class or handle if it has one, value.
    fn counters(&self, count: &mut dyn FnMut(&'static str, Option<u32>, u64)) {
        let _ = count;
    }

    /// Counts from 0 again.
    fn reset_counters(&mut self) {}

    /// Checks its state against the books.
    ///
    /// # Errors
    /// What does not agree.
    fn audit(&self, books: &Books) -> Result<(), String> {
        let _ = books;
        Ok(())
    }

    /// Its tables as docs/spec/placement.md counts them, beside the class of each unit.
    fn tables(options: &PageOptions, shape: &Geometry) -> Vec<Table> {
        let _ = (options, shape);
        Vec::new()
    }
}

/// The classes of `dac`, `sfs` and `fk`.
///
/// # Errors
/// A refusal if there can be no such number of them.
pub fn classes(options: &PageOptions, default: u32) -> Result<u32, Refusal> {
    match options.classes {
        0 => Ok(default),
        classes => super::options::within("classes", classes, 2, 16).map(|()| classes),
    }
}
