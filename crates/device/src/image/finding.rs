//! What a check of an image finds.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something that a power cut leaves behind and the next mount repairs.
    Note,
    /// Something that no device leaves behind: data is lost, or the image was changed.
    Error,
}

/// One inconsistency.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Its name, for programs.
    pub kind: &'static str,
    /// Physical block, where there is one.
    pub block: Option<u32>,
    /// Page of that block, where there is one.
    pub page: Option<u32>,
    /// What was found.
    pub text: String,
}
