//! Panics of a scheme.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A panic is a failure like any other, with a line that replays it.
///
/// # Errors
/// What the panic said.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panic: {}", text.unwrap_or("without a message"))
    })
}
