//! Everything that Floatgate's own schemes must pass.

use floatgate_core::Striped;
use my_ftl::Ring;

floatgate_testkit::test_scheme!(ring: Striped<Ring>);
