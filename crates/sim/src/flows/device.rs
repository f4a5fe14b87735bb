//! What flows and device say to each other.

use floatgate_trace::Request;

use crate::clock::Completion;
use crate::flight::InFlight;
use crate::host::PageRequest;

/// A request of a flow, or a part of one, on its way to the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// Where it lies on the device.
    pub request: Request,
    /// When it came into the queue of its flow.
    pub arrival_ns: u64,
    /// When the device takes it.
    pub issue_ns: u64,
    /// The time that the scheme was [told](Device::arrives).
    pub now_ns: u64,
}

/// A device that takes the commands of flows.
pub(crate) trait Device {
    /// Tells the scheme the time, for timed work; once before every command that may be work
    /// for it, and before completions are asked for.
    fn arrives(&mut self, now_ns: u64);

    /// The number that the next command will have.
    fn next_number(&self) -> u64;

    /// Commands that were taken and are not complete.
    fn under_way(&self) -> u32;

    /// Takes a command. What is complete at once goes to `ended`.
    fn issue(&mut self, command: &Command, pages: &PageRequest, ended: &mut Vec<Completion>);

    /// Looks at what waits, from time to time; after every command.
    fn look(&mut self);

    /// Comes to the next completion that is not after `by_ns`, at which a command comes at the latest; whether there is
    /// one. With it flushes may end.
    fn completes_by(&mut self, by_ns: u64, ended: &mut Vec<Completion>) -> bool;

    /// Takes the times of a whole request into the measurements.
    fn measure(&mut self, request: InFlight, completion: Completion);
}
