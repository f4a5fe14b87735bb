//! What several schemes share, each once, and what the next one may want. What only one scheme can want
//! stands beside it, in its folder.

pub mod association;
pub mod bits;
pub mod buckets;
pub mod budgets;
pub mod cached_map;
pub mod degrees;
pub mod heat;
pub mod hybrid;
pub mod kinds;
pub mod logged;
pub mod map_area;
pub mod map_cache;
pub mod newer;
pub mod on_demand;
pub mod page_store;
pub mod paged_map;
pub mod placement;
pub mod pool;
pub mod probe_table;
pub mod relation;
pub mod scan;
pub mod start;
pub mod tournament;
pub mod translation;
pub mod victims;

pub use floatgate_core::lists;
