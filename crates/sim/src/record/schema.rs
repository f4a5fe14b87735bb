//! The JSON schema of everything that carries [`SCHEMA`], made from the structs.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::bench::BenchDocument;
use super::fleet::FleetDocument;
use super::papers::PapersDocument;
use super::recovery::RecoveryDocument;
use super::sweep::SweepDocument;
use super::{Document, SCHEMA};

/// The JSON schema (draft 2020-12): any of the documents that the command prints. Each has its definition under
/// `$defs`, by the name of its struct.
pub fn schema() -> Value {
    // What is written, not what would be read: a field that is always there is required.
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let documents = [
        generator.subschema_for::<Document>(),
        generator.subschema_for::<FleetDocument>(),
        generator.subschema_for::<SweepDocument>(),
        generator.subschema_for::<PapersDocument>(),
        generator.subschema_for::<BenchDocument>(),
        generator.subschema_for::<RecoveryDocument>(),
    ];
    let about = "`floatgate run`, `compare`, `fleet`, `sweep`, `papers`, `bench` and `recovery` with `--json` print one of these. \
                 Fields may be added without a new version.";
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("What Floatgate prints for programs, version {SCHEMA}"),
        "description": about,
        "anyOf": documents,
        "$defs": generator.take_definitions(true),
    })
}
