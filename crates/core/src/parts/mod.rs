//! What several schemes share, each once.

pub mod degrees;
pub mod hybrid;
pub mod lists;
pub mod map_area;
pub mod oob_tables;
pub mod page_store;
pub mod partitions;
pub mod pool;
pub mod superblocks;
pub mod victims;
