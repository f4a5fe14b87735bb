//! The suite that all schemes pass.

use floatgate_core::Striped;
use floatgate_testkit::suite::{cases, run};
use floatgate_testkit::torture::{Effort, random_cuts};
use my_ftl::Ring;

#[test]
fn ring_keeps_every_byte() {
    for case in cases() {
        if let Err(error) = run::<Striped<Ring>>(&case) {
            panic!("{error}\n  replay: {case}");
        }
    }
}

#[test]
fn ring_survives_power_cuts_at_every_operation() {
    let tally = random_cuts::<Striped<Ring>>(1, 20_000, &Effort::default(), &mut || false);
    let tally = tally.unwrap_or_else(|lost| panic!("{lost}"));
    println!("{} cut points", tally.tried);
    assert_eq!(tally.refused, 0);
}
