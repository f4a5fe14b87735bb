//! A flash for tests that writes down every operation and what it waits for.

use std::convert::Infallible;

use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Preload, Slot, SpareArea, SpareRead};
use floatgate_core::geometry::Geometry;
use floatgate_core::ledger::Ledger;
use floatgate_core::pcm::Pcm;

/// One operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Op {
    /// What it does: `read_host`, `program_host`, `copy`, `copy_map`, `read_map`, `program_map`, `read_oob`, `erase`,
    /// `pcm_read`, `pcm_write`, `absent`, `background`.
    pub kind: &'static str,
    /// The logical page or mapping page of a program or copy, the slot of a page without an operation, the
    /// time of background work; else 0.
    pub number: u64,
    /// Die of a flash operation.
    pub die: u32,
    /// Operations that it waits for, by index, ascending.
    pub after: Vec<usize>,
}

/// A token: 0 waits for nothing, else a node.
#[derive(Debug)]
enum Node {
    Op(usize),
    Join(u32, u32),
}

/// A flash that only remembers what it was told.
#[derive(Debug)]
pub struct Recorder {
    ledger: Ledger,
    nodes: Vec<Node>,
    /// The operations so far.
    pub ops: Vec<Op>,
}

impl Recorder {
    /// An erased flash.
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            ledger: Ledger::new(geometry, 4096),
            nodes: Vec::new(),
            ops: Vec::new(),
        }
    }

    /// The operations so far, each with those that it waits for.
    pub fn kinds_and_waits(&self) -> Vec<(&str, &[usize])> {
        let ops = self.ops.iter();
        ops.map(|op| (op.kind, &op.after[..])).collect()
    }

    fn waits(&self, token: u32, after: &mut Vec<usize>) {
        match token.checked_sub(1).map(|node| &self.nodes[node as usize]) {
            None => {}
            Some(&Node::Op(op)) => after.push(op),
            Some(&Node::Join(a, b)) => {
                self.waits(a, after);
                self.waits(b, after);
            }
        }
    }

    fn op(&mut self, kind: &'static str, number: u64, die: u32, after: u32) -> u32 {
        let mut waits = Vec::new();
        self.waits(after, &mut waits);
        waits.sort_unstable();
        waits.dedup();
        self.ops.push(Op {
            kind,
            number,
            die,
            after: waits,
        });
        self.nodes.push(Node::Op(self.ops.len() - 1));
        self.nodes.len() as u32
    }

    fn die(&self, at: Ppn) -> u32 {
        let geometry = self.ledger.geometry();
        geometry.die_of(geometry.block_of(at))
    }
}

impl Flash for Recorder {
    type Token = u32;
    type Error = Infallible;
    type Pcm = Self;

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn read_host(&mut self, slot: Slot, from: Ppn, after: u32) -> Result<u32, Infallible> {
        self.ledger.read(from, Cause::Host);
        Ok(self.op("read_host", slot.0.into(), self.die(from), after))
    }

    fn program_host(
        &mut self,
        _: Slot,
        to: Ppn,
        oob: impl SpareArea,
        after: u32,
    ) -> Result<u32, Infallible> {
        self.ledger.program(to, Cause::Host);
        let number = oob.oob().lpn.0.into();
        Ok(self.op("program_host", number, self.die(to), after))
    }

    fn absent(&mut self, slot: Slot, after: u32) {
        self.op("absent", slot.0.into(), 0, after);
    }

    fn read_map(
        &mut self,
        from: Ppn,
        _: impl FnOnce(&[u8]),
        after: u32,
    ) -> Result<u32, Infallible> {
        self.ledger.read(from, Cause::Map);
        Ok(self.op("read_map", 0, self.die(from), after))
    }

    fn program_map(
        &mut self,
        to: Ppn,
        oob: impl SpareArea,
        _: impl FnOnce(&mut [u8]),
        after: u32,
    ) -> Result<u32, Infallible> {
        self.ledger.program(to, Cause::Map);
        let number = oob.oob().lpn.0.into();
        Ok(self.op("program_map", number, self.die(to), after))
    }

    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        oob: impl SpareArea,
        cause: Cause,
        after: u32,
    ) -> Result<u32, Infallible> {
        self.ledger.read(from, cause);
        self.ledger.program(to, cause);
        let kind = if cause == Cause::Map {
            "copy_map"
        } else {
            "copy"
        };
        Ok(self.op(kind, oob.oob().lpn.0.into(), self.die(to), after))
    }

    fn read_oob(
        &mut self,
        from: Ppn,
        cause: Cause,
        after: u32,
    ) -> Result<(Option<SpareRead>, u32), Infallible> {
        self.ledger.read_oob(cause);
        Ok((None, self.op("read_oob", 0, self.die(from), after)))
    }

    fn erase(&mut self, block: Pbn, cause: Cause, after: u32) -> Result<u32, Infallible> {
        self.ledger.erase(block, cause);
        let die = self.ledger.geometry().die_of(block);
        Ok(self.op("erase", 0, die, after))
    }

    fn join(&mut self, a: u32, b: u32) -> u32 {
        self.nodes.push(Node::Join(a, b));
        self.nodes.len() as u32
    }

    fn pcm(&mut self) -> &mut Self {
        self
    }

    fn background(&mut self, at_ns: u64) {
        self.op("background", at_ns, 0, 0);
    }
}

impl Pcm for Recorder {
    type Token = u32;

    fn read_entry(&mut self, lpn: Lpn) -> u32 {
        self.op("pcm_read", lpn.0.into(), 0, 0)
    }

    fn write_entry(&mut self, lpn: Lpn, _place: Ppn, after: u32) {
        self.op("pcm_write", lpn.0.into(), 0, after);
    }
}

impl Preload for Recorder {
    fn preload<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        _: impl FnMut(u32) -> O,
    ) -> Result<(), Infallible> {
        self.ledger.preload(block, pages);
        Ok(())
    }

    fn preload_map<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        _: impl FnMut(u32) -> O,
        _: impl FnMut(u32, &mut [u8]),
    ) -> Result<(), Infallible> {
        self.ledger.preload(block, pages);
        Ok(())
    }
}
