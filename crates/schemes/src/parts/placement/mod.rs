//! Where a page goes: append points, separations, victim rules (docs/spec/placement.md). The schemes `page` and `hat` stand
//! on [`Store`], which is plain page mapping where the options ask for no more, and the laboratory otherwise.
//!
//! | file | what it holds |
//! |---|---|
//! | `separation`, `separations` | [`Separation`]: which append point a page takes; the rules, one a file |
//! | `chunked` | [`Chunked`]: a separation that is asked for many pages at once |
//! | `victim`, `victims` | [`VictimRule`]: which unit is collected; the rules, one a file |
//! | `books` | [`Books`]: pages, units and groups, which every rule can look at |
//! | `laboratory` | [`Laboratory`]: writes, collections, trims by these rules |
//! | `recovery`, `audit`, `counted` | the time after a power cut; checks; counters |
//! | `store` | [`Store`]: plain page mapping or the laboratory |
//!
//! A rule of another crate is a type with one of the two traits; [`Rules`] names the two that belong together, and
//! [`PageBy`](crate::page::PageBy) makes a scheme of them.

mod audit;
mod books;
mod chunked;
mod counted;
mod idle;
mod laboratory;
mod options;
mod recovery;
mod separation;
mod separations;
mod spare;
mod store;
mod victim;
mod victims;

pub use books::{Books, Unit};
pub use chunked::{ByChunk, Chunked};
pub use laboratory::Laboratory;
pub use options::{PageOptions, Placement, Units, within};
pub use separation::{Keeps, Plan, Separation, classes};
pub use separations::{AnySeparation, SeparationKey, dac, fk, hint, plain, sepbit, sfs};
pub use store::{House, Rules, Store};
pub use victim::VictimRule;
pub use victims::{AnyVictims, VictimKey};

#[cfg(test)]
mod tests;
