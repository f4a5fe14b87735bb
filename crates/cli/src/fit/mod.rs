//! From what a drive was measured to do to what it is: capacity of its flash, a constant overhead, rule of collection and
//! of placement. docs/fit.md tells the method; `commands/fit` is the command.

mod candidates;
pub mod measured;
mod model;
pub mod solve;
mod workload;

pub use candidates::{CANDIDATES, Candidate};
pub use model::{Curve, Laboratory, Model, RESERVE, SCHEME, Size, Writes, simulations};
pub use workload::Workload;
