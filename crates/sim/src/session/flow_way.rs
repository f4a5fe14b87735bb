//! The way of a command of one of several flows: as the [long way](super::long_way), but when it is issued is decided by
//! the [flows](crate::flows), which also put the parts of a request together again.

use floatgate_core::{Ftl, Lpn};

use super::Session;
use crate::clock::{Clock, Completion};
use crate::flight::InFlight;
use crate::flows::{Command, Device};
use crate::host::{Kind, PageRequest};

impl<S: Ftl<Page = Lpn>, C: Clock> Session<S, C> {
    /// From now on commands come from flows. To be called while nothing is under way.
    pub fn take_flows(&mut self) {
        (self.plain, self.at_once) = (false, false);
    }

    /// A command is complete, and with it the flushes that waited for nothing else.
    fn ended(&mut self, completion: Completion, ended: &mut Vec<Completion>) {
        self.flight.done(completion.request, completion.end_ns);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(self.flash.clock.notes());
            let Completion {
                request,
                first_start_ns,
                end_ns,
            } = completion;
            recorder.done(request, first_start_ns, end_ns);
        }
        ended.push(completion);
        self.flushes_ended(ended);
    }

    fn flushes_ended(&mut self, ended: &mut Vec<Completion>) {
        while let Some((number, flush)) = self.flight.next_flush() {
            if let Some(recorder) = &mut self.recorder {
                recorder.done(number, flush.issue_ns, flush.end_ns);
            }
            ended.push(Completion {
                end_ns: flush.end_ns,
                request: number,
                first_start_ns: flush.issue_ns,
            });
        }
    }
}

impl<S: Ftl<Page = Lpn>, C: Clock> Device for Session<S, C> {
    fn arrives(&mut self, now_ns: u64) {
        Self::arrives(self, now_ns);
    }

    fn next_number(&self) -> u64 {
        self.next
    }

    fn under_way(&self) -> u32 {
        self.flight.open
    }

    fn issue(&mut self, command: &Command, pages: &PageRequest, ended: &mut Vec<Completion>) {
        let kind = pages.kind.expect("a mapped request has a kind");
        let kind = self.kind_with_buffer(kind);
        let (arrival_ns, issue_ns) = (command.arrival_ns, command.issue_ns);
        match kind {
            Kind::Read => self.metrics.read_bytes += command.request.bytes,
            Kind::Write => self.metrics.write_bytes += command.request.bytes,
            _ => {}
        }
        self.streams(kind, Some(&command.request));
        let number = self.next;
        self.next += 1;
        self.metrics.first_arrival_ns.get_or_insert(arrival_ns);
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(kind, arrival_ns, issue_ns, pages);
        }
        self.last_issue_ns = issue_ns;
        self.last_arrival_ns = self.last_arrival_ns.max(arrival_ns);
        let flying = InFlight::new(kind, arrival_ns, issue_ns);
        self.flight.add(number, flying);
        match kind {
            Kind::Flush => self.flushes_ended(ended),
            Kind::EmptyTrim => {
                let at_once = Completion {
                    end_ns: issue_ns,
                    request: number,
                    first_start_ns: issue_ns,
                };
                self.ended(at_once, ended);
            }
            kind => {
                let done = self.hand_over(kind, number, command.now_ns, issue_ns, pages);
                debug_assert!(done.is_none(), "completions are asked for");
            }
        }
    }

    fn look(&mut self) {
        if self.next >= self.next_look {
            Self::look(self);
        }
    }

    fn completes_by(&mut self, by_ns: u64, ended: &mut Vec<Completion>) -> bool {
        let Some(completion) = self.flash.clock.next_completion_by(by_ns) else {
            return false;
        };
        self.ended(completion, ended);
        true
    }

    fn measure(&mut self, request: InFlight, completion: Completion) {
        match request.kind {
            Kind::Flush => self.measure_flush(request, completion.end_ns),
            _ => self.measure_times(request, completion),
        }
    }
}
