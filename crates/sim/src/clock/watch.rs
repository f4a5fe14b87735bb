//! What a clock tells of the dies to those who record single requests.

use std::collections::VecDeque;

use floatgate_core::report::Cause;

use super::OpKind;

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

/// What an operation on a timeline does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// One operation.
    One(OpKind),
    /// Copies inside a die, one after the other: reads and programs, or copy-backs.
    Copies {
        /// How many.
        pages: u32,
        /// Whether they are copy-backs.
        inside: bool,
    },
}

/// An operation from its start to its end, waits for the bus included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The die; the PCM chips come after the last.
    pub die: u32,
    /// What it does.
    pub does: Does,
    /// Why.
    pub cause: Cause,
    /// The request for which it was issued; none in idle time.
    pub request: Option<u64>,
    /// When it starts, ns.
    pub start_ns: u64,
    /// When it ends, ns.
    pub end_ns: u64,
}

/// The notes of the event engine, which learns of an operation bit by bit.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) notes: Vec<Note>,
    /// Operations whose end is known, if they are kept.
    pub(super) operations: Vec<Operation>,
    keeps_operations: bool,
    /// By device: its operations whose end is not known. Their times are set when they start and end.
    queues: Vec<VecDeque<Operation>>,
}

impl Watch {
    pub(super) fn new(devices: usize, keeps_operations: bool) -> Self {
        Self {
            notes: Vec::new(),
            operations: Vec::new(),
            keeps_operations,
            queues: vec![VecDeque::new(); devices],
        }
    }

    /// An operation gets into the queue of its device.
    pub(super) fn queued(&mut self, operation: Operation) {
        let Operation { die, request, .. } = operation;
        self.notes.push(Note::Issued { request, die });
        self.queues[die as usize].push_back(operation);
    }

    /// An operation does not get there, since its end is known at once.
    pub(super) fn at_once(&mut self, operation: Operation, free_ns: u64) {
        let Operation {
            die,
            start_ns,
            end_ns,
            ..
        } = operation;
        self.queued(operation);
        self.started(die, free_ns, start_ns);
        self.ended(die, end_ns);
    }

    /// The first operation in the queue of a device starts; the device was free from `free_ns` on.
    pub(super) fn started(&mut self, die: u32, free_ns: u64, start_ns: u64) {
        let Some(operation) = self.queues[die as usize].front_mut() else {
            return;
        };
        operation.start_ns = start_ns;
        if let Some(request) = operation.request {
            self.notes.push(Note::Started {
                request,
                die,
                free_ns,
            });
        }
    }

    /// It ends.
    pub(super) fn ended(&mut self, die: u32, end_ns: u64) {
        let Some(mut operation) = self.queues[die as usize].pop_front() else {
            return;
        };
        operation.end_ns = end_ns;
        if self.keeps_operations {
            self.operations.push(operation);
        }
        if let Some(request) = operation.request {
            self.notes.push(Note::Ended {
                request,
                die,
                end_ns,
            });
        }
    }
}
