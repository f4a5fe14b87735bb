//! Everything that Floatgate's own schemes must pass.

use floatgate_core::Striped;
use floatgate_schemes::page::PageBy;
use my_ftl::Ring;
use my_ftl::placement::Often;

floatgate_testkit::test_scheme!(ring: Striped<Ring>);
floatgate_testkit::test_scheme!(often: PageBy<Often>);
