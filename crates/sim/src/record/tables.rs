//! The scheme's tables, as the papers count them (docs/spec/metrics.md section 5).

use floatgate_core::report::{Memory, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::MemoryName;

/// The scheme's tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tables {
    /// Table by table.
    pub tables: Vec<TableSize>,
    /// All together, bytes.
    pub bytes: f64,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableSize {
    /// What it maps.
    pub name: String,
    /// Entries.
    pub entries: u64,
    /// Bits of one entry.
    pub bits_per_entry: u64,
    /// Its size, bytes.
    pub bytes: f64,
    /// Where it lies.
    #[serde(with = "MemoryName")]
    pub memory: Memory,
}

impl Tables {
    pub(crate) fn of(tables: &[Table]) -> Self {
        let size = |table: &Table| TableSize {
            name: table.name.into(),
            entries: table.entries,
            bits_per_entry: table.bits_per_entry,
            bytes: table.bits() as f64 / 8.0,
            memory: table.memory,
        };
        Self {
            tables: tables.iter().map(size).collect(),
            bytes: tables.iter().map(Table::bits).sum::<u64>() as f64 / 8.0,
        }
    }

    /// Bytes of the tables that lie in one of these places.
    pub fn bytes_in(&self, places: &[Memory]) -> f64 {
        let inside = self.tables.iter().filter(|t| places.contains(&t.memory));
        inside.map(|table| table.bytes).sum()
    }
}
