//! Chips of phase-change memory that read first (docs/spec/hat.md, section 9).
//!
//! A read is due when it is issued, and goes before all writes of its chip that have not begun by then; a write that has
//! begun is carried out. Reads keep their order among themselves, and so do writes. Nothing waits for a write, so none
//! needs an end when it is issued: writes are begun when the next read asks which of them came before it.

use std::collections::VecDeque;

use super::machine::add_ns;

/// A chip that reads first.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadFirst {
    /// End of the last access that has begun.
    free_ns: u64,
    /// Writes that have not begun: before which time each of them may not.
    writes: VecDeque<u64>,
}

impl ReadFirst {
    /// A write that may begin at `release_ns`, behind those before it.
    pub(super) fn write(&mut self, release_ns: u64) {
        self.writes.push_back(release_ns);
    }

    /// A read at `at_ns`, which must not lie before that of the read before: its start and end. All writes that may begin
    /// before then must be known.
    pub(super) fn read(&mut self, at_ns: u64, read_ns: u64, write_ns: u64) -> (u64, u64) {
        self.begin_writes(at_ns, write_ns);
        let start_ns = at_ns.max(self.free_ns);
        self.free_ns = add_ns(start_ns, read_ns);
        (start_ns, self.free_ns)
    }

    /// Begins the writes that begin before `until_ns`; at that instant a read still goes first.
    pub(super) fn begin_writes(&mut self, until_ns: u64, write_ns: u64) {
        while let Some(&release_ns) = self.writes.front() {
            let start_ns = release_ns.max(self.free_ns);
            if start_ns >= until_ns {
                return;
            }
            self.free_ns = add_ns(start_ns, write_ns);
            self.writes.pop_front();
        }
    }

    /// End of the last access that has begun.
    pub(super) fn free_ns(&self) -> u64 {
        self.free_ns
    }
}
