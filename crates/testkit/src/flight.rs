//! A flash whose dies work at once: it knows what every operation waits for, and can lose its power with each die at a
//! point of its own.
//!
//! Scheme and host see every operation done as soon as it is called, as on any flash. Beside that the operations are
//! kept in queues, one a die, each with those that it waits for. A cut takes a prefix of every queue such that nothing in
//! them waits for anything that is not: any state in which real dies can be found, and no other.

use std::convert::Infallible;

use crate::cut::{Change, Tear};
use crate::ram::{KeptEntry, RamFlash, StoredPage};
use floatgate_core::address::{Lpn, Pbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Preload, Slot, SpareArea, SpareRead};
use floatgate_core::ledger::Ledger;
use floatgate_core::pcm::{Pcm, Recalled};
use floatgate_core::rng::SplitMix64;

/// What an operation leaves on the flash.
#[derive(Clone, Debug)]
enum Effect {
    /// A read: it is there because others wait for it.
    Nothing,
    /// The write of an entry of the phase-change memory.
    Entry(Lpn, Option<KeptEntry>),
    /// All entries are as they should be.
    Seal,
    Program(Ppn, Box<StoredPage>),
    Erase(Pbn),
}

impl Effect {
    fn apply(&self, ram: &mut RamFlash) {
        match self {
            Self::Nothing => {}
            Self::Program(to, page) => ram.program_stored(*to, (**page).clone()),
            Self::Erase(block) => ram.erase_block(*block),
            Self::Entry(lpn, entry) => ram.put_entry(*lpn, *entry),
            Self::Seal => ram.seal(),
        }
    }

    /// Whether there was something to tear.
    fn tear(&self, ram: &mut RamFlash, chaos: u64) -> bool {
        let change = match *self {
            Self::Nothing | Self::Entry(..) | Self::Seal => return false,
            Self::Program(to, _) => Change::Program(to),
            Self::Erase(block) => Change::Erase(block),
        };
        Tear::Torn(chaos).apply(ram, change);
        true
    }
}

/// An operation of one die. By number: in the order of the calls.
#[derive(Debug)]
struct Op {
    die: usize,
    /// Its place in the queue of its die.
    place: usize,
    /// Operations that it waits for, by number; its die's order is not named.
    after: Vec<usize>,
    effect: Effect,
}

/// A token: 0 waits for nothing, else a node.
#[derive(Debug)]
enum Node {
    Op(usize),
    Join(u32, u32),
}

/// What a cut has left.
#[derive(Clone, Debug)]
pub struct Wreck {
    /// The flash.
    pub ram: RamFlash,
    /// Whether the host had an answer to the request in work.
    pub is_acknowledged: bool,
    /// Operations that were cut in the middle.
    pub torn: usize,
}

/// A flash with its operations in flight.
#[derive(Debug)]
pub struct FlightFlash {
    /// What scheme and host see: everything is done.
    pub ram: RamFlash,
    /// The flash with what is surely done, and nothing else.
    settled: RamFlash,
    /// By die, then the phase-change memory: how much of its queue that is.
    settled_to: Vec<usize>,
    /// The same; ahead of `settled_to` while that catches up.
    sure: Vec<usize>,
    ops: Vec<Op>,
    /// By die: its operations, by number.
    queues: Vec<Vec<usize>>,
    /// By die: what its next operation waits for, since all of it had to be done first.
    drained: Vec<Vec<usize>>,
    nodes: Vec<Node>,
    /// By block: programs of copies out of it since its last erase, and what else its next one waits for.
    copied_out: Vec<Vec<usize>>,
    /// By page: its last program, by number.
    programmed_by: Vec<Option<usize>>,
    /// By block: programs on other dies that have replaced pages of it since.
    replaced: Vec<Vec<usize>>,
    /// What the completion of the request in work waits for.
    own: Vec<usize>,
    /// Number of the first operation of the latest requests, the oldest first.
    begins: Vec<usize>,
    /// Requests before the one in work that may have left something running.
    reach: usize,
    /// Between two calls a host read fetches the old content of a partly written page.
    is_reading_old: bool,
    old_content: Vec<(Slot, usize)>,
}

impl FlightFlash {
    /// A flash with nothing in flight. What a request leaves running ends at the latest so many requests after it.
    pub fn new(ram: RamFlash, reach: usize) -> Self {
        let geometry = ram.ledger.geometry();
        let (devices, blocks) = (geometry.dies as usize + 1, geometry.blocks() as usize);
        let pages = geometry.pages() as usize;
        Self {
            settled: ram.clone(),
            ram,
            settled_to: vec![0; devices],
            sure: vec![0; devices],
            ops: Vec::new(),
            queues: vec![Vec::new(); devices],
            drained: vec![Vec::new(); devices],
            nodes: Vec::new(),
            copied_out: vec![Vec::new(); blocks],
            programmed_by: vec![None; pages],
            replaced: vec![Vec::new(); blocks],
            own: Vec::new(),
            begins: Vec::new(),
            reach,
            is_reading_old: false,
            old_content: Vec::new(),
        }
    }

    /// The host has the answer to the request in work, and sends the next one.
    pub fn begin_request(&mut self) {
        for op in std::mem::take(&mut self.own) {
            self.ensure(op);
        }
        self.begins.push(self.ops.len());
        if self.begins.len() > self.reach + 1 {
            let first = self.begins.remove(0);
            (first..self.begins[0]).for_each(|op| self.ensure(op));
        }
        self.nodes.clear();
        self.old_content.clear();
        self.settle();
    }

    /// Everything is done.
    pub fn rest(&mut self) {
        (0..self.ops.len()).for_each(|op| self.ensure(op));
        self.begin_request();
    }

    /// Between these calls host reads fetch the old content of partly written pages: the programs wait for them, the
    /// host does not.
    pub fn read_old_content(&mut self, on: bool) {
        self.is_reading_old = on;
    }

    /// An operation is done, so what it waited for is done too.
    fn ensure(&mut self, op: usize) {
        let mut left = vec![op];
        while let Some(op) = left.pop() {
            let (die, place) = (self.ops[op].die, self.ops[op].place);
            let news = self.sure[die]..(place + 1).max(self.sure[die]);
            self.sure[die] = news.end;
            for &op in &self.queues[die][news] {
                left.extend(&self.ops[op].after);
            }
        }
    }

    /// Carries out what is surely done.
    fn settle(&mut self) {
        for (die, queue) in self.queues.iter().enumerate() {
            for &op in &queue[self.settled_to[die]..self.sure[die]] {
                let effect = std::mem::replace(&mut self.ops[op].effect, Effect::Nothing);
                effect.apply(&mut self.settled);
            }
        }
        self.settled_to.clone_from(&self.sure);
    }

    /// Cuts the power: `chance` decides how far each die has come, and which operations are torn.
    pub fn cut(&self, chance: u64) -> Wreck {
        let mut rng = SplitMix64::new(chance);
        let mut done: Vec<usize> = (0..self.queues.len())
            .map(|die| self.point(die, &mut rng))
            .collect();
        self.make_consistent(&mut done);
        let mut ram = self.settled.clone();
        let mut torn = 0;
        for (die, queue) in self.queues.iter().enumerate() {
            for &op in &queue[self.sure[die]..done[die]] {
                self.ops[op].effect.apply(&mut ram);
            }
        }
        for (die, queue) in self.queues.iter().enumerate() {
            let next = queue.get(done[die]).map(|&op| &self.ops[op]);
            let Some(op) = next.filter(|op| self.may_run(op, &done)) else {
                continue;
            };
            if rng.below(2) == 0 {
                torn += usize::from(op.effect.tear(&mut ram, rng.next()));
            }
        }
        ram.find_sequence();
        let is_acknowledged = self.own.iter().all(|&op| self.is_done(op, &done));
        Wreck {
            ram,
            is_acknowledged,
            torn,
        }
    }

    /// How far a die would like to come: mostly up to an operation that changes something, so that this one can be torn.
    fn point(&self, die: usize, rng: &mut SplitMix64) -> usize {
        let queue = &self.queues[die];
        let current = self.begins.last().copied().unwrap_or(0);
        let in_work = queue.partition_point(|&op| op < current);
        let (from, fate) = (self.sure[die], rng.below(6));
        let from = if fate < 3 { from.max(in_work) } else { from };
        let changes: Vec<usize> = (from..queue.len())
            .filter(|&place| !matches!(self.ops[queue[place]].effect, Effect::Nothing))
            .collect();
        let drawn = rng.below(changes.len() as u64 + 1) as usize;
        let chosen = match fate {
            0 | 3 => changes.first(),
            1 => None,
            _ => changes.get(drawn),
        };
        chosen.copied().unwrap_or(queue.len())
    }

    /// Takes back what waits for something that is not done.
    fn make_consistent(&self, done: &mut [usize]) {
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for (die, queue) in self.queues.iter().enumerate() {
                let open = self.sure[die]..done[die];
                let waits = |&place: &usize| !self.may_run(&self.ops[queue[place]], done);
                if let Some(place) = open.clone().find(waits) {
                    done[die] = place;
                    is_changed = true;
                }
            }
        }
    }

    fn is_done(&self, op: usize, done: &[usize]) -> bool {
        let op = &self.ops[op];
        op.place < done[op.die]
    }

    /// Whether everything that an operation waits for on other dies is done.
    fn may_run(&self, op: &Op, done: &[usize]) -> bool {
        op.after.iter().all(|&op| self.is_done(op, done))
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

    fn after(&self, token: u32) -> Vec<usize> {
        let mut after = Vec::new();
        self.waits(token, &mut after);
        after
    }

    fn op(&mut self, die: usize, mut after: Vec<usize>, effect: Effect) -> usize {
        after.append(&mut self.drained[die]);
        let number = self.ops.len();
        let place = self.queues[die].len();
        self.queues[die].push(number);
        self.ops.push(Op {
            die,
            place,
            after,
            effect,
        });
        number
    }

    fn token(&mut self, op: usize) -> u32 {
        self.nodes.push(Node::Op(op));
        self.nodes.len() as u32
    }

    fn die(&self, at: Ppn) -> usize {
        let geometry = self.ram.ledger.geometry();
        geometry.die_of(geometry.block_of(at)) as usize
    }

    fn read(&mut self, from: Ppn, after: u32) -> usize {
        self.op(self.die(from), self.after(after), Effect::Nothing)
    }

    /// The program of a page that `ram` has just got.
    fn program(&mut self, to: Ppn, after: Vec<usize>) -> usize {
        let page = self.ram.stored(to).expect("a page just programmed");
        let op = self.op(self.die(to), after, Effect::Program(to, Box::new(page)));
        self.programmed_by[to.index()] = Some(op);
        op
    }
}

impl AsMut<RamFlash> for FlightFlash {
    fn as_mut(&mut self) -> &mut RamFlash {
        &mut self.ram
    }
}

impl Flash for FlightFlash {
    type Token = u32;
    type Error = Infallible;
    type Pcm = Self;

    fn ledger(&self) -> &Ledger {
        &self.ram.ledger
    }

    fn read_host(&mut self, slot: Slot, from: Ppn, after: u32) -> Result<u32, Infallible> {
        self.ram.read_host(slot, from, ())?;
        let op = self.read(from, after);
        if self.is_reading_old {
            self.old_content.push((slot, op));
        } else {
            self.own.push(op);
        }
        Ok(self.token(op))
    }

    fn program_host(
        &mut self,
        slot: Slot,
        to: Ppn,
        oob: impl SpareArea,
        after: u32,
    ) -> Result<u32, Infallible> {
        self.ram.program_host(slot, to, oob, ())?;
        let mut after = self.after(after);
        let old = self.old_content.iter().filter(|(of, _)| *of == slot);
        after.extend(old.map(|(_, read)| read));
        let op = self.program(to, after);
        self.own.push(op);
        Ok(self.token(op))
    }

    fn absent(&mut self, slot: Slot, after: u32) {
        self.ram.absent(slot, ());
        let after = self.after(after);
        self.own.extend(after);
    }

    fn read_map(
        &mut self,
        from: Ppn,
        take: impl FnOnce(&[u8]),
        after: u32,
    ) -> Result<u32, Infallible> {
        self.ram.read_map(from, take, ())?;
        let op = self.read(from, after);
        Ok(self.token(op))
    }

    fn program_map(
        &mut self,
        to: Ppn,
        oob: impl SpareArea,
        fill: impl FnOnce(&mut [u8]),
        after: u32,
    ) -> Result<u32, Infallible> {
        self.ram.program_map(to, oob, fill, ())?;
        let op = self.program(to, self.after(after));
        Ok(self.token(op))
    }

    /// Two operations: the program waits for the read.
    fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        oob: impl SpareArea,
        cause: Cause,
        after: u32,
    ) -> Result<u32, Infallible> {
        self.ram.copy(from, to, oob, cause, ())?;
        let block = self.ram.ledger.geometry().block_of(from);
        let mut after = self.after(after);
        after.extend(&self.replaced[block.index()]);
        let read = self.op(self.die(from), after, Effect::Nothing);
        let op = self.program(to, vec![read]);
        self.copied_out[block.index()].push(op);
        Ok(self.token(op))
    }

    fn read_oob(
        &mut self,
        from: Ppn,
        cause: Cause,
        after: u32,
    ) -> Result<(Option<SpareRead>, u32), Infallible> {
        let (found, ()) = self.ram.read_oob(from, cause, ())?;
        let op = self.read(from, after);
        Ok((found, self.token(op)))
    }

    /// Waits for all copies out of the block.
    fn erase(&mut self, block: Pbn, cause: Cause, after: u32) -> Result<u32, Infallible> {
        self.ram.erase(block, cause, ())?;
        let mut after = self.after(after);
        after.append(&mut self.copied_out[block.index()]);
        after.append(&mut self.replaced[block.index()]);
        let die = self.ram.ledger.geometry().die_of(block) as usize;
        let op = self.op(die, after, Effect::Erase(block));
        Ok(self.token(op))
    }

    fn replaced(&mut self, old: Ppn, done: u32) {
        let after = self.after(done);
        let block = self.ram.ledger.geometry().block_of(old);
        self.replaced[block.index()].extend(after);
    }

    fn keeps(&mut self, old: Ppn, die: u32) {
        let block = self.ram.ledger.geometry().block_of(old);
        let last = self.queues[die as usize].last();
        self.copied_out[block.index()].extend(last);
    }

    fn drain(&mut self) {
        let last = self.queues.iter().filter_map(|queue| queue.last().copied());
        let last: Vec<usize> = last.collect();
        self.drained.fill(last);
    }

    fn finishes(&mut self, done: u32) {
        let after = self.after(done);
        self.own.extend(after);
    }

    fn join(&mut self, a: u32, b: u32) -> u32 {
        self.nodes.push(Node::Join(a, b));
        self.nodes.len() as u32
    }

    fn pcm(&mut self) -> &mut Self {
        self
    }
}

impl Pcm for FlightFlash {
    type Token = u32;

    fn read_entry(&mut self, lpn: Lpn) -> u32 {
        self.ram.ledger.read_entry(lpn);
        let op = self.op(self.queues.len() - 1, Vec::new(), Effect::Nothing);
        self.token(op)
    }

    /// Waits for the program of the page that it names, whichever request that was of.
    fn write_entry(&mut self, lpn: Lpn, place: Ppn, after: u32) {
        self.ram.write_entry(lpn, place, ());
        let mut after = self.after(after);
        if place.is_some() {
            after.extend(self.programmed_by[place.index()]);
        }
        let entry = self.ram.entry_for(lpn, place);
        self.op(self.queues.len() - 1, after, Effect::Entry(lpn, entry));
    }

    fn recall(&mut self, lpn: Lpn) -> Option<Recalled> {
        let recalled = self.ram.recall(lpn);
        self.op(self.queues.len() - 1, Vec::new(), Effect::Nothing);
        recalled
    }

    fn seal(&mut self) {
        self.ram.seal();
        let op = self.op(self.queues.len() - 1, Vec::new(), Effect::Seal);
        // Who shuts down waits for it.
        self.own.push(op);
    }

    fn is_sealed(&self) -> bool {
        self.ram.is_sealed()
    }
}

impl Preload for FlightFlash {
    fn preload<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        oob_of: impl FnMut(u32) -> O,
    ) -> Result<(), Infallible> {
        self.ram.preload(block, pages, oob_of)
    }

    fn preload_map<O: SpareArea>(
        &mut self,
        block: Pbn,
        pages: u32,
        oob_of: impl FnMut(u32) -> O,
        fill: impl FnMut(u32, &mut [u8]),
    ) -> Result<(), Infallible> {
        self.ram.preload_map(block, pages, oob_of, fill)
    }

    fn preload_entry(&mut self, lpn: Lpn, place: Ppn) {
        self.ram.preload_entry(lpn, place);
    }
}
