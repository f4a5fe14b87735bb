//! What may not be reordered: operations on the same pages and blocks.
//!
//! * A program comes after those before it in its block, and after the erase of the block.
//! * An erase comes after all programs issued before it on its die, and after the reads of its block.
//! * A read of a page whose program is not over gets it from the controller, which holds the data until then: it takes no
//!   time. Where the program is the copy of a collection, it reads the page that the copy is made from, in the usual time.
//!   Collection itself waits for the program.
//! * Where the pages of a word line are programmed at once, the program of each is over when that of the last one is.
//!
//! With these, what the flash holds at any time is what some order of the calls could have left.

use super::super::{FlashOp, OpKind, Programming};
use super::nodes::{End, NONE, NodeToken, Nodes};
use floatgate_core::report::Cause;

/// A block with operations that are not over.
#[derive(Clone, Copy, Debug)]
struct Block {
    last_program: NodeToken,
    erase: NodeToken,
    /// Reads that an erase has to wait for.
    reads: u32,
    /// The erase that waits for them.
    erase_waits: u32,
    /// The first page that was issued and is programmed with one that is not; `NONE` if there is none.
    in_registers: u32,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            last_program: NodeToken::NOTHING,
            erase: NodeToken::NOTHING,
            reads: 0,
            erase_waits: NONE,
            in_registers: NONE,
        }
    }
}

/// The pages and blocks of a machine.
#[derive(Clone, Debug)]
pub(super) struct Hazards {
    pages_per_block: u32,
    one_shot: u32,
    blocks: Vec<Block>,
    /// By page: its newest program.
    programs: Vec<NodeToken>,
}

impl Hazards {
    pub(super) fn new(pages_per_block: u32, one_shot: u32) -> Self {
        Self {
            pages_per_block: pages_per_block.max(1),
            one_shot: one_shot.max(1),
            blocks: Vec::new(),
            programs: Vec::new(),
        }
    }

    fn block(&mut self, page: u32) -> &mut Block {
        let block = (page / self.pages_per_block) as usize;
        if block >= self.blocks.len() {
            self.blocks.resize(block + 1, Block::default());
        }
        &mut self.blocks[block]
    }

    /// The node of a program of that page that is not over.
    fn program_of(&self, nodes: &Nodes, page: u32) -> Option<u32> {
        match nodes.end(*self.programs.get(page as usize)?) {
            End::Of(place) => Some(place),
            End::Known(_) => None,
        }
    }

    /// A program of a page is issued. The pages that were in the registers until now are programmed by it too, if it
    /// completes their word line or begins another one.
    fn programs(&mut self, token: NodeToken, page: u32, one_shot: u32) {
        if page as usize >= self.programs.len() {
            self.programs.resize(page as usize + 1, NodeToken::NOTHING);
        }
        self.programs[page as usize] = token;
        let size = self.pages_per_block;
        let line = |page: u32| page % size / one_shot;
        let held = self.block(page).in_registers;
        let is_last = page % size % one_shot == one_shot - 1;
        let stays = !is_last && held != NONE && line(held) == line(page);
        if held != NONE && !stays {
            self.programs[held as usize..page as usize].fill(token);
        }
        if !stays {
            self.block(page).in_registers = if is_last { NONE } else { page };
        }
    }

    /// Whether the controller still holds the page that an operation reads for the host or the map.
    pub(super) fn is_held(&self, nodes: &Nodes, op: FlashOp) -> bool {
        let reads = matches!(op.kind, OpKind::Read | OpKind::OobRead) && op.cause != Cause::Gc;
        let program = || self.program_of(nodes, op.page);
        reads && program().is_some_and(|program| nodes.op(program).cause != Cause::Gc)
    }

    /// An operation is issued, in that place.
    pub(super) fn issued(&mut self, nodes: &mut Nodes, place: u32, issued: FlashOp) {
        let FlashOp { page, kind, .. } = issued;
        if kind == OpKind::CopyBack && issued.from != NONE {
            self.reads(nodes, place, issued.from);
        }
        if page == NONE {
            return;
        }
        match kind {
            OpKind::Read | OpKind::OobRead => {
                self.reads(nodes, place, page);
                let block = self.block(page);
                if nodes.end(block.erase) == End::Known(0) {
                    block.reads += 1;
                    nodes.op_mut(place).holds_block = true;
                }
            }
            OpKind::Program | OpKind::CopyBack => {
                let one_shot = match issued.programming {
                    Programming::OneBit => 1,
                    _ => self.one_shot,
                };
                self.programs(nodes.token(place), page, one_shot);
                let block = self.block(page);
                let (before, erase) = (block.last_program, block.erase);
                block.last_program = nodes.token(place);
                nodes.wait(place, before);
                nodes.wait(place, erase);
            }
            OpKind::Erase => {
                let block = self.block(page);
                let (before, erase) = (block.last_program, block.erase);
                block.erase = nodes.token(place);
                block.in_registers = NONE;
                let is_first = nodes.end(erase) == End::Known(0);
                if is_first && block.reads > 0 {
                    block.erase_waits = place;
                    nodes.get_mut(place).waits += 1;
                }
                nodes.wait(place, before);
                nodes.wait(place, erase);
            }
            OpKind::PcmRead | OpKind::PcmWrite => {}
        }
    }

    fn reads(&self, nodes: &mut Nodes, place: u32, page: u32) {
        let Some(program) = self.program_of(nodes, page) else {
            return;
        };
        if nodes.op(place).cause == Cause::Gc {
            let token = nodes.token(program);
            nodes.wait(place, token);
        }
    }

    /// A read that its block's erase waits for is over: the erase, if it waits for no other read.
    pub(super) fn read_is_over(&mut self, page: u32) -> Option<u32> {
        let block = self.block(page);
        block.reads -= 1;
        if block.reads > 0 {
            return None;
        }
        let waits = std::mem::replace(&mut block.erase_waits, NONE);
        (waits != NONE).then_some(waits)
    }

    pub(super) fn clear(&mut self) {
        self.blocks.fill(Block::default());
        self.programs.fill(NodeToken::NOTHING);
    }
}
