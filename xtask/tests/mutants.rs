//! Every planted bug still fits the source.

use std::path::Path;

#[path = "../src/mutants/table.rs"]
mod table;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn every_entry_fits_the_source() {
    let bugs = table::read(root()).unwrap_or_else(|error| panic!("{error}"));
    let planted = table::plant(root(), &bugs).unwrap_or_else(|error| panic!("{error}"));
    for bug in &bugs {
        assert!(planted[&bug.file].contains(&format!("::planted({})", bug.id)));
        assert!(bug.equivalent.as_ref().is_none_or(|why| why.len() > 20));
    }
}

#[test]
fn every_entry_names_schemes_that_exist() {
    let library = root().join("crates/schemes/src/lib.rs");
    let library = std::fs::read_to_string(library).unwrap();
    for bug in table::read(root()).unwrap() {
        for scheme in &bug.schemes {
            let module = scheme.replace("++", "_plus_plus");
            let listed = format!("pub mod {module};");
            assert!(library.contains(&listed), "bug {}: {scheme}", bug.id);
        }
    }
}
