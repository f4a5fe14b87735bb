//! What every scheme must pass, a user's own included: one line of [`test_scheme!`] gives a scheme all of it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`checks`] | the tests of [`test_scheme!`], for one scheme or many |
//! | [`suite`] | random requests against a shadow copy of the bytes, on many shapes |
//! | [`torture`] | power cuts at every operation, rotten flash, replay lines |
//! | [`case`], [`bench`] | a small device in one line of text; a scheme on it, for worked examples |
//! | [`ram`], [`cut`] | a flash that stores bytes in memory; the same with a power supply that fails |
//! | [`flight`] | a flash whose dies work at once, and stop each at a point of its own |
//! | [`recorder`] | a flash that writes down what it is asked |
//! | [`broken`] | a scheme with a bug put in, to see that the kit finds it |
//! | [`tested`] | [`Tested`]: all of this for a scheme chosen by name |

pub mod bench;
pub mod broken;
pub mod case;
mod catch;
pub mod checks;
pub mod cut;
pub mod flight;
pub mod ram;
pub mod recorder;
pub mod suite;
mod test_scheme;
pub mod tested;
pub mod torture;

pub use catch::catch;
pub use tested::{Tested, play, replay};
