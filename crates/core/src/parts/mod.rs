//! What several schemes share, each once.

pub mod hybrid;
pub mod lists;
pub mod log_table;
pub mod map_area;
pub mod page_store;
pub mod pool;
pub mod relation;
pub mod sub_table;
pub mod tournament;
pub mod victims;
