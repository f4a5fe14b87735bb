//! `floatgate config`.

use floatgate_catalog::Scheme;

use crate::args::ConfigArgs;
use crate::config::document;
use crate::errors::Outcome;
use crate::output;

/// Prints a configuration to start from, or its JSON schema.
pub fn run(args: &ConfigArgs, schemes: &[Scheme]) -> Outcome<()> {
    if args.schema {
        return output::print_json(&document::schema(schemes));
    }
    output::print(&document::example(schemes))
}
