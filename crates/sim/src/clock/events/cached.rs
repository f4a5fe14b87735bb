//! Cache commands (docs/chips.md): a die has a second register a plane, so that data crosses the bus while the cells work.
//!
//! * Program after program: the data of the next page comes in once the cells have begun with the page before. They begin
//!   with the next when they are done and its data is there.
//! * Read after read: once the page before is in the second register, from which it goes out, the cells sense the next one; its command
//!   has been sent by then. It goes out when it is sensed and the page before is gone.
//!
//! Anything else finds the die as it would be without. A run of copies reads and programs in turn, so it gains nothing.

use super::super::OpKind;
use super::super::channel::FirstAsk;
use super::super::device::Former;
use super::super::machine::add_ns;
use super::super::shape::copy_shape;
use super::Events;

impl Events {
    /// Kind of a single operation of that shape.
    fn kind_of(&self, shape: u32) -> Option<OpKind> {
        match OpKind::ALL.get(shape as usize) {
            Some(&kind) => Some(kind),
            None if shape <= copy_shape(true) || shape == self.gate => None,
            None => Some(self.unusual_kind(shape)),
        }
    }

    /// Notes what the head of a device, whose end is known now, leaves open. Its last bus hold was asked for at `ask_ns`.
    pub(super) fn leave_open(&mut self, device: u32, ask_ns: u64, end_ns: u64) {
        let head = self.devices[device as usize].head;
        let index = self.devices[device as usize].record(head).shape;
        let shape = &self.shapes[index as usize];
        let cell_ns = shape.steps[usize::from(shape.len.max(1)) - 1].cell_ns;
        self.devices[device as usize].former = match self.kind_of(index) {
            Some(OpKind::Read) => Former::Read(ask_ns),
            Some(OpKind::Program) => Former::Program(end_ns - cell_ns.min(end_ns)),
            _ => Former::Other,
        };
    }

    /// Lets the head of a device begin before the operation before it is over, if that is what the cache commands are for.
    /// It waits for nothing else.
    pub(super) fn release_cached(&mut self, device: u32) -> bool {
        let queue = &mut self.devices[device as usize];
        let former = std::mem::take(&mut queue.former);
        let (free_ns, head) = (queue.free_ns, queue.head);
        let (channel, lane) = (queue.channel, queue.lane);
        let record = queue.record(head);
        let (number, index, copies) = (record.number, record.shape, record.copies);
        let time_ns = record.time_ns;
        let kind = self.kind_of(index);
        let shape = self.shapes[index as usize];
        let first = match (former, kind) {
            (Former::Read(from_ns), Some(OpKind::Read)) if time_ns < free_ns => {
                let start_ns = time_ns.max(from_ns);
                let sensed_ns = add_ns(start_ns, shape.total_ns - shape.bus_ns);
                let last = shape.len - 1;
                let commands_ns = shape.bus_ns - shape.steps[usize::from(last)].bus_ns;
                self.overlaps(device, free_ns - start_ns + commands_ns);
                self.start(device, start_ns);
                FirstAsk {
                    step: last,
                    ask_ns: sensed_ns.max(free_ns),
                    started: true,
                    cells_ns: 0,
                }
            }
            (Former::Program(from_ns), Some(OpKind::Program))
                if time_ns < free_ns && shape.len == 1 && shape.starts_on_bus =>
            {
                let ask_ns = time_ns.max(from_ns);
                // Its start is that of its data on the bus; what overlaps is known then.
                FirstAsk {
                    step: 0,
                    ask_ns,
                    started: false,
                    cells_ns: free_ns,
                }
            }
            _ => return false,
        };
        self.ask((channel, lane), number, (index, copies), first);
        true
    }

    /// A die is busy with two operations at once for so long.
    pub(super) fn overlaps(&mut self, device: u32, ns: u64) {
        let busy_ns = &mut self.die_busy_ns[device as usize];
        *busy_ns = busy_ns.saturating_sub(ns);
    }
}
