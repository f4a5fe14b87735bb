//! What several schemes share, each once.

pub mod association;
pub mod bits;
pub mod cached_map;
pub mod degrees;
pub mod heat;
pub mod hybrid;
pub mod kinds;
pub mod lists;
pub mod log_table;
pub mod map_area;
pub mod map_cache;
pub mod merge_cost;
pub mod oob_tables;
pub mod page_store;
pub mod partitions;
pub mod pool;
pub mod probe_table;
pub mod relation;
pub mod sub_table;
pub mod superblocks;
pub mod tournament;
pub mod translation;
pub mod victims;
