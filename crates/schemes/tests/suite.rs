//! Does every scheme keep what it was given, on every shape of device and with every option? One suite for all, run over
//! the catalog; a scheme that is not tested here has no entry there.

use floatgate_catalog as _;
use floatgate_core::Catalog;
use floatgate_testkit::Tested;
use floatgate_testkit::checks::{self, Work};

fn all() -> Catalog<Tested> {
    floatgate_schemes::catalog()
}

/// None of ours refuses one of the plain devices.
#[test]
fn every_scheme_keeps_every_byte() {
    for (scheme, tally) in checks::every_shape(&all()) {
        assert_eq!(tally.refused, 0, "{scheme}");
    }
}

#[test]
fn every_option_keeps_every_byte() {
    checks::every_option(&all());
}

#[test]
fn random_devices_and_options_keep_every_byte() {
    checks::random_devices(&all(), &Work::from_env());
}
