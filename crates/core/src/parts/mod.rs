//! What several schemes share, each once.

pub mod hybrid;
pub mod lists;
pub mod map_area;
pub mod merge_cost;
pub mod page_store;
pub mod pool;
pub mod probe_table;
pub mod victims;
