//! The schemes of Floatgate: one file each, the parts they share, and the list of them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`page`], [`block`], ... | one scheme a file; each opens with its paper, its state, its rules, its deviations |
//! | [`parts`] | what several schemes share, each once; there for schemes of other crates too |
//! | [`hints`] | hints to the processor and the system: the only place with `unsafe` |
//!
//! [`catalog`] is the list: a new scheme is one file and one line there.

pub mod bast;
pub mod block;
pub mod blog;
pub mod cdftl;
pub mod dftl;
pub mod fast;
pub mod faster;
pub mod fmax;
pub mod gftl;
pub mod hat;
pub mod hints;
pub mod kast;
pub mod last;
pub mod last_plus_plus;
pub mod leaftl;
pub mod page;
pub mod parts;
pub mod sftl;
pub mod superblock;
pub mod tpftl;

use floatgate_core::Striped;
use floatgate_core::catalog::{Catalog, Life};

/// All schemes, in the order in which tables show them. A scheme made for one die is listed as [`Striped`].
pub fn catalog<L: Life>() -> Catalog<L> {
    Catalog::new()
        .with::<page::Page>()
        .with::<Striped<block::Block>>()
        .with::<Striped<bast::Bast>>()
        .with::<Striped<fmax::Fmax>>()
        .with::<Striped<fast::Fast>>()
        .with::<Striped<faster::Faster>>()
        .with::<Striped<kast::Kast>>()
        .with::<Striped<gftl::Gftl>>()
        .with::<Striped<superblock::Superblock>>()
        .with::<Striped<last::Last>>()
        .with::<last_plus_plus::LastPlusPlus>()
        .with::<dftl::Dftl>()
        .with::<tpftl::Tpftl>()
        .with::<sftl::Sftl>()
        .with::<cdftl::Cdftl>()
        .with::<hat::Hat>()
        .with::<Striped<leaftl::LeaFtl>>()
        .with::<Striped<blog::Blog>>()
}
