//! Log blocks as the papers draw them, for worked examples.

use floatgate_testkit::ram::RamFlash;

use super::{Hybrid, Log, Watch};

/// A log block as the papers draw it: its pages by position, those that are not valid in parentheses.
pub fn drawn<W: Watch>(hybrid: &Hybrid<W>, flash: &RamFlash, log: Log) -> String {
    let page = |position| {
        let lpn = hybrid.log_page(log, position).0;
        if hybrid.is_valid_at(log, position) {
            format!("{lpn}")
        } else {
            format!("({lpn})")
        }
    };
    let pages: Vec<String> = (0..hybrid.written(flash, log)).map(page).collect();
    format!("[{}]", pages.join(","))
}
