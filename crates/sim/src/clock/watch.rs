//! What a clock tells of the dies to those who record single requests.

use std::collections::VecDeque;

/// Something that became known about a die. Of a request the notes on a die come in the order of its operations there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// It got work of a request, or (none) work in idle time.
    Issued {
        /// The request.
        request: Option<u64>,
        /// The die.
        die: u32,
    },
    /// It turns to work of a request, and was done with all before it at `free_ns`.
    Started {
        /// The request.
        request: u64,
        /// The die.
        die: u32,
        /// End of the work before, ns.
        free_ns: u64,
    },
    /// It is done with work of a request.
    Ended {
        /// The request.
        request: u64,
        /// The die.
        die: u32,
        /// End of the work, ns.
        end_ns: u64,
    },
}

/// The notes of the event engine, which learns of an operation bit by bit.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) notes: Vec<Note>,
    /// By device: for whom each of its operations is whose end is not known.
    queues: Vec<VecDeque<Option<u64>>>,
}

impl Watch {
    pub(super) fn new(devices: usize) -> Self {
        Self {
            notes: Vec::new(),
            queues: vec![VecDeque::new(); devices],
        }
    }

    /// An operation gets into the queue of a device.
    pub(super) fn queued(&mut self, die: u32, request: Option<u64>) {
        self.notes.push(Note::Issued { request, die });
        self.queues[die as usize].push_back(request);
    }

    /// An operation does not get there, since its end is known at once.
    pub(super) fn at_once(&mut self, die: u32, request: Option<u64>, free_ns: u64, end_ns: u64) {
        self.queued(die, request);
        self.started(die, free_ns);
        self.ended(die, end_ns);
    }

    /// The first operation in the queue of a device starts.
    pub(super) fn started(&mut self, die: u32, free_ns: u64) {
        if let Some(&Some(request)) = self.queues[die as usize].front() {
            self.notes.push(Note::Started {
                request,
                die,
                free_ns,
            });
        }
    }

    /// It ends.
    pub(super) fn ended(&mut self, die: u32, end_ns: u64) {
        if let Some(Some(request)) = self.queues[die as usize].pop_front() {
            self.notes.push(Note::Ended {
                request,
                die,
                end_ns,
            });
        }
    }
}
