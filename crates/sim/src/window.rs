//! What the flash did while one request was in work: the operations between its arrival and its completion, and what
//! kept the die busy for which it waited longest.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::clock::Operation;
use crate::requests::RequestRow;
use crate::timeline::{CAUSES, cause_index, is_within};

/// Takes the operations of a run and keeps those of the window.
#[derive(Clone, Debug)]
pub struct Window {
    row: RequestRow,
    most: usize,
    /// The latest by their end and in the order in which they came: the end of the window tells more than its begin.
    kept: BTreeMap<(u64, u64), Operation>,
    seen: u64,
    waited_ns: [u64; CAUSES.len()],
}

impl Window {
    /// The window of a request, with at most so many operations.
    pub fn new(row: RequestRow, most: usize) -> Self {
        Self {
            row,
            most,
            kept: BTreeMap::new(),
            seen: 0,
            waited_ns: [0; CAUSES.len()],
        }
    }

    /// The request.
    pub fn row(&self) -> &RequestRow {
        &self.row
    }

    /// From its arrival to its completion, ns.
    pub fn between_ns(&self) -> Range<u64> {
        self.row.arrival_ns..self.row.end_ns
    }

    /// Takes operations of the run.
    pub fn operations(&mut self, operations: &[Operation]) {
        let between_ns = self.between_ns();
        for operation in operations {
            if !is_within(&between_ns, operation.start_ns, operation.end_ns) {
                continue;
            }
            self.count_wait(operation);
            self.kept.insert((operation.end_ns, self.seen), *operation);
            self.seen += 1;
            if self.kept.len() > self.most {
                self.kept.pop_first();
            }
        }
    }

    /// Adds the part of an operation during which the request waited for its die.
    fn count_wait(&mut self, operation: &Operation) {
        let Some(waited) = self.row.waited.filter(|of| of.die == operation.die) else {
            return;
        };
        let begin_ns = operation.start_ns.max(self.row.issue_ns);
        let end_ns = operation.end_ns.min(self.row.issue_ns + waited.ns);
        self.waited_ns[cause_index(operation.cause)] += end_ns.saturating_sub(begin_ns);
    }

    /// The operations that lie at least in part in the window, by their ends.
    pub fn kept(&self) -> impl Iterator<Item = &Operation> {
        self.kept.values()
    }

    /// Earlier operations of the window that are not kept, since they are too many.
    pub fn left_out(&self) -> u64 {
        self.seen - self.kept.len() as u64
    }

    /// How long the die for which the request waited longest was busy for each of [`CAUSES`] meanwhile, ns. That can be
    /// less than the wait: work issued before can itself have waited, for a bus or for another die.
    pub fn waited_ns(&self) -> [u64; CAUSES.len()] {
        self.waited_ns
    }
}

#[cfg(test)]
mod tests {
    use floatgate_core::report::Cause;

    use super::*;
    use crate::clock::{Does, OpKind};
    use crate::host::Kind;
    use crate::merges::MergeKinds;
    use crate::requests::{Behind, Waited, Work};

    /// A read that comes at 100, gets to the device at 150, waits for die 1 until 400 and is done at 500.
    fn row() -> RequestRow {
        RequestRow {
            request: 7,
            kind: Kind::Read,
            first_lpn: 3,
            pages: 1,
            arrival_ns: 100,
            issue_ns: 150,
            start_ns: 400,
            end_ns: 500,
            work: Work::default(),
            merges: MergeKinds::default(),
            dies: 1,
            die_last: Some(1),
            waited: Some(Waited {
                ns: 250,
                die: 1,
                behind: Behind::Request(6),
            }),
        }
    }

    fn operation(die: u32, cause: Cause, start_ns: u64, end_ns: u64) -> Operation {
        Operation {
            die,
            does: Does::One(OpKind::Program),
            cause,
            request: None,
            start_ns,
            end_ns,
        }
    }

    fn played(most: usize) -> Window {
        let mut window = Window::new(row(), most);
        window.operations(&[
            operation(1, Cause::Host, 20, 90),
            operation(1, Cause::Map, 90, 160),
            operation(0, Cause::Gc, 130, 300),
        ]);
        window.operations(&[
            operation(1, Cause::Gc, 180, 390),
            operation(1, Cause::Host, 400, 500),
            operation(0, Cause::Gc, 499, 900),
            operation(1, Cause::Gc, 500, 700),
        ]);
        window
    }

    fn starts(window: &Window) -> Vec<u64> {
        window.kept().map(|of| of.start_ns).collect()
    }

    #[test]
    fn what_lies_in_part_between_arrival_and_completion_is_kept() {
        let window = played(10);
        assert_eq!(starts(&window), [90, 130, 180, 400, 499]);
        assert_eq!(window.left_out(), 0);
        // Of the map 150 to 160, of the collection 180 to 390; what another die did is no part of the wait.
        assert_eq!(window.waited_ns(), [0, 210, 10]);
    }

    #[test]
    fn of_too_many_the_latest_are_kept_and_the_wait_is_that_of_all() {
        let window = played(2);
        assert_eq!(starts(&window), [400, 499]);
        assert_eq!(window.left_out(), 3);
        assert_eq!(window.waited_ns(), played(10).waited_ns());
    }
}
