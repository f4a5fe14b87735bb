//! Why a configuration, a shape or an option cannot be taken.

/// Why a configuration cannot run; raised before anything is simulated or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The configuration key at fault, where one can be named.
    pub key: Option<String>,
    /// What is wrong, with the numbers, and what would be right.
    pub message: String,
}

impl Refusal {
    /// A refusal that names its key.
    pub fn new(key: &str, message: String) -> Self {
        Self {
            key: Some(key.to_string()),
            message,
        }
    }

    /// A recovery has found what no power cut leaves: pages that have rotted, or that no scheme has written.
    pub fn damaged(found: impl std::fmt::Display) -> Self {
        Self {
            key: None,
            message: format!(
                "{found}: the flash is damaged beyond what a power cut leaves, and nobody can tell any more what its \
                 pages hold; `floatgate image check` and `floatgate image dump` show what is still on it"
            ),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
