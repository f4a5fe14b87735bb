//! What several schemes share, each once.

pub mod association;
pub mod hybrid;
pub mod kinds;
pub mod lists;
pub mod map_area;
pub mod page_store;
pub mod pool;
pub mod scan;
pub mod tournament;
pub mod victims;
