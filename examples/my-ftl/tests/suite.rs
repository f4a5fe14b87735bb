//! The suite that all schemes pass.

use floatgate_core::Striped;
use floatgate_core::suite::{cases, run};
use my_ftl::Ring;

#[test]
fn ring_keeps_every_byte() {
    for case in cases() {
        if let Err(error) = run::<Striped<Ring>>(&case) {
            panic!("{error}\n  replay: {case}");
        }
    }
}
