//! What every scheme must pass, a user's own included.
//!
//! | module | what it holds |
//! |---|---|
//! | [`ram`], [`cut`] | a flash that stores bytes in memory; the same with a power supply that fails |
//! | [`recorder`] | a flash that writes down what it is asked |
//! | [`suite`] | random requests against a shadow copy of the bytes, on many shapes |
//! | [`torture`] | power cuts at every operation, and rotten flash |
//! | [`tested`] | [`Tested`]: all of this for a scheme chosen by name |

pub mod cut;
pub mod ram;
pub mod recorder;
pub mod suite;
pub mod tested;
pub mod torture;

pub use tested::Tested;
