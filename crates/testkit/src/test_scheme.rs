//! The line that gives a scheme its tests.

/// Everything that a scheme must pass, as a module of tests: `test_scheme!(ring: Striped<Ring>);`.
///
/// With a third argument it does another amount of [`Work`](crate::checks::Work); without, [`Work::from_env`](crate::checks::Work::from_env).
#[macro_export]
macro_rules! test_scheme {
    ($name:ident: $scheme:ty) => {
        $crate::test_scheme!($name: $scheme, $crate::checks::Work::from_env());
    };
    ($name:ident: $scheme:ty, $work:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            use $crate::broken::{BREAKS_THE_PROGRAM_RULE, Broken};
            use $crate::checks;

            #[test]
            fn keeps_every_byte_on_every_shape() {
                checks::every_shape(&checks::one::<$scheme>());
            }

            #[test]
            fn keeps_every_byte_with_every_option() {
                checks::every_option(&checks::one::<$scheme>());
            }

            #[test]
            fn keeps_every_byte_on_random_devices() {
                checks::random_devices(&checks::one::<$scheme>(), &$work);
            }

            #[test]
            fn survives_power_cuts_at_every_operation() {
                checks::power_cuts(&checks::one::<$scheme>(), &$work);
            }

            #[test]
            fn survives_power_cuts_with_dies_in_flight() {
                checks::dies_in_flight(&checks::one::<$scheme>(), &$work);
            }

            #[test]
            fn is_not_misled_by_unreadable_pages() {
                checks::unreadable_pages(&checks::one::<$scheme>(), &$work);
            }

            #[test]
            fn does_not_panic_over_forged_pages() {
                checks::forged_pages(&checks::one::<$scheme>(), &$work);
            }

            #[test]
            fn plays_any_bytes_of_a_fuzzer() {
                checks::any_bytes(&checks::one::<$scheme>(), &$work);
            }

            #[test]
            fn prints_lines_that_replay() {
                let broken = checks::one::<Broken<$scheme, BREAKS_THE_PROGRAM_RULE>>();
                checks::failures_replay(&checks::one::<$scheme>(), &broken);
            }
        }
    };
}
