//! Operations that are not over, and joins of their ends.
//!
//! Each has a place in one list that is used again when it is over; a token names the place and how often it was used
//! before. What is over delays nobody any more, so a token that names an older use counts as the time 0.

use floatgate_core::report::Cause;

use super::super::OpKind;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// The end of an operation or of several: a known time, or the name of a node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct NodeToken(u64);

const PENDING: u64 = 1 << 63;

impl NodeToken {
    pub(super) const NOTHING: Self = Self(0);

    pub(super) const fn known(ns: u64) -> Self {
        Self(ns & !PENDING)
    }

    const fn node(place: u32, uses: u32) -> Self {
        Self(PENDING | ((uses as u64 & 0x7fff_ffff) << 32) | place as u64)
    }
}

/// An end that is still awaited, or one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At that time, ns; 0 also for all that is over.
    Known(u64),
    /// That of the node in this place.
    Of(u32),
}

/// Who hears of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follower {
    Node(u32),
    /// The request in that place.
    Request(u32),
}

/// What an operation is, apart from when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) kind: OpKind,
    pub(super) cause: Cause,
    /// Its die; PCM chips come after the last.
    pub(super) device: u32,
    /// The page it reads, programs, or copies to; the first of the block it erases; `NONE` if nobody has said.
    pub(super) page: u32,
    /// Class by the policy: 0 goes first.
    pub(super) class: u8,
    /// Bus, cell, bus, cell.
    pub(super) phases_ns: [u64; 4],
    /// The phase that is next, or being done.
    pub(super) phase: u8,
    /// How often it was interrupted.
    pub(super) suspended: u32,
    /// Whether the erase of its block waits for it.
    pub(super) holds_block: bool,
    /// For whom it was issued: the place among the requests and the number of the request; `NONE` in idle time.
    pub(super) request: (u32, u64),
    /// Which operation of the request it is.
    pub(super) ordinal: u32,
    /// `u64::MAX` until it starts.
    pub(super) start_ns: u64,
}

impl Op {
    /// Whether its phase holds the bus, and not the cells alone.
    pub(super) fn is_on_bus(&self) -> bool {
        self.phase.is_multiple_of(2)
    }
}

/// An operation, or a join of ends.
#[derive(Clone, Debug)]
pub(super) struct Node {
    uses: u32,
    /// Number among all operations.
    pub(super) number: u64,
    /// Ends that it still waits for.
    pub(super) waits: u32,
    /// Latest known end of those it waits for, its `at` at least.
    pub(super) release_ns: u64,
    /// When its phase is over; `u64::MAX` if none is under way, or it is interrupted.
    pub(super) due_ns: u64,
    /// What it is; `None` is a join.
    pub(super) op: Option<Op>,
    followers: Vec<Follower>,
}

/// All nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Nodes {
    pub(super) fn get(&self, place: u32) -> &Node {
        &self.nodes[place as usize]
    }

    pub(super) fn get_mut(&mut self, place: u32) -> &mut Node {
        &mut self.nodes[place as usize]
    }

    /// The operation of a node that is one.
    pub(super) fn op(&self, place: u32) -> &Op {
        self.get(place)
            .op
            .as_ref()
            .expect("the node of an operation")
    }

    pub(super) fn op_mut(&mut self, place: u32) -> &mut Op {
        let node = &mut self.nodes[place as usize];
        node.op.as_mut().expect("the node of an operation")
    }

    pub(super) fn add(&mut self, number: u64, release_ns: u64, op: Option<Op>) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node {
                uses: 0,
                number: 0,
                waits: 0,
                release_ns: 0,
                due_ns: u64::MAX,
                op: None,
                followers: Vec::new(),
            });
            self.nodes.len() as u32 - 1
        });
        let node = &mut self.nodes[place as usize];
        (node.number, node.release_ns, node.op) = (number, release_ns, op);
        (node.waits, node.due_ns) = (0, u64::MAX);
        place
    }

    pub(super) fn token(&self, place: u32) -> NodeToken {
        NodeToken::node(place, self.get(place).uses)
    }

    pub(super) fn end(&self, token: NodeToken) -> End {
        if token.0 & PENDING == 0 {
            return End::Known(token.0);
        }
        let place = token.0 as u32;
        match self.nodes.get(place as usize) {
            Some(node) if NodeToken::node(place, node.uses) == token => End::Of(place),
            _ => End::Known(0),
        }
    }

    /// A node waits for an end.
    pub(super) fn wait(&mut self, place: u32, token: NodeToken) {
        match self.end(token) {
            End::Known(ns) => {
                let node = self.get_mut(place);
                node.release_ns = node.release_ns.max(ns);
            }
            End::Of(other) => {
                self.follow(other, Follower::Node(place));
                self.get_mut(place).waits += 1;
            }
        }
    }

    pub(super) fn follow(&mut self, place: u32, follower: Follower) {
        self.get_mut(place).followers.push(follower);
    }

    /// The node is over: its place is free, its followers are handed out; [`give_back`](Self::give_back) the list.
    pub(super) fn over(&mut self, place: u32) -> Vec<Follower> {
        let node = &mut self.nodes[place as usize];
        node.uses = node.uses.wrapping_add(1);
        node.due_ns = u64::MAX;
        node.op = None;
        self.free.push(place);
        std::mem::take(&mut self.nodes[place as usize].followers)
    }

    /// The list of followers of a node that is over, to be used again if nobody has taken the place.
    pub(super) fn give_back(&mut self, place: u32, mut followers: Vec<Follower>) {
        followers.clear();
        let node = &mut self.nodes[place as usize];
        if node.followers.is_empty() {
            node.followers = followers;
        }
    }

    /// Nodes in use.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// All are over. Tokens from before count as 0.
    pub(super) fn clear(&mut self) {
        self.free.clear();
        for (place, node) in self.nodes.iter_mut().enumerate() {
            node.uses = node.uses.wrapping_add(1);
            node.followers.clear();
            (node.op, node.due_ns) = (None, u64::MAX);
            self.free.push(place as u32);
        }
    }
}
