//! What several schemes share, each once.

pub mod association;
pub mod cached_map;
pub mod hybrid;
pub mod kinds;
pub mod lists;
pub mod map_area;
pub mod map_cache;
pub mod merge_cost;
pub mod page_store;
pub mod pool;
pub mod probe_table;
pub mod tournament;
pub mod translation;
pub mod victims;
pub mod wear;
