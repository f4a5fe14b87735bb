//! Pages of the host that are read and programmed for somebody else than the request that is under way: old content of
//! partly written pages, and what a buffer between host and flash reads and writes.

use floatgate_core::Ppn;
use floatgate_core::flash::{Cause, Slot};

use super::SimFlash;
use crate::clock::{Clock, OpKind};

/// For whom pages of the host are read and programmed.
#[derive(Debug)]
pub(super) enum Role<T> {
    /// For the request, which waits for them.
    Request,
    /// Reads fetch the old content of its partly written pages.
    OldContent,
    /// For a buffer. By slot: what the program of the page waits for; then the end of its operation.
    Buffer {
        tokens: Vec<T>,
        /// Whether the request waits for the operations themselves.
        owned: bool,
    },
}

impl<C: Clock> SimFlash<C> {
    /// Between these calls a host read fetches the old content of a partly written page.
    pub fn read_old_content(&mut self, on: bool) {
        self.role = match on {
            true => Role::OldContent,
            false => Role::Request,
        };
        // Programs look for what was read until the request ends.
        self.is_unusual = true;
    }

    /// From now on host pages are read and programmed for a buffer: a program waits for the token of its slot, and the
    /// request for the operations if they are `owned`.
    pub(crate) fn serve_buffer(&mut self, tokens: Vec<C::Token>, owned: bool) {
        self.role = Role::Buffer { tokens, owned };
        self.is_unusual = true;
    }

    /// Host pages are the request's own again. The tokens by slot: the end of what was done for it, or what was there
    /// before if nothing was.
    pub(crate) fn buffer_served(&mut self) -> Vec<C::Token> {
        self.is_unusual = self.old_content[0].is_some();
        match std::mem::replace(&mut self.role, Role::Request) {
            Role::Buffer { tokens, .. } => tokens,
            Role::Request | Role::OldContent => Vec::new(),
        }
    }

    /// Reads a page for somebody; to be called if that is not just the request.
    #[cold]
    #[inline(never)]
    pub(super) fn read_for(&mut self, slot: Slot, at: (u32, Ppn), after: C::Token) -> C::Token {
        let token = self.issue(OpKind::Read, at, Cause::Host, after);
        match &mut self.role {
            Role::Request => self.clock.own(token),
            Role::OldContent => {
                let place = usize::from(self.old_content[0].is_some());
                self.old_content[place] = Some((slot, token));
            }
            Role::Buffer { .. } => self.ends_for_buffer(slot, token),
        }
        token
    }

    /// The same for a program.
    #[cold]
    #[inline(never)]
    pub(super) fn program_for(&mut self, slot: Slot, to: (u32, Ppn), after: C::Token) -> C::Token {
        let at = slot.0 as usize;
        let before = match &self.role {
            // A scheme with a buffer of its own may number the slots by that.
            Role::Buffer { tokens, .. } => tokens.get(at).copied().unwrap_or_default(),
            Role::Request | Role::OldContent => self.old_content_of(slot),
        };
        let after = self.clock.join(after, before);
        let token = self.issue(OpKind::Program, to, Cause::Host, after);
        match &mut self.role {
            Role::Buffer { .. } => self.ends_for_buffer(slot, token),
            Role::Request | Role::OldContent => self.clock.own(token),
        }
        token
    }

    /// Nothing is to be done for a page once `after` is over.
    #[cold]
    #[inline(never)]
    pub(super) fn absent_for(&mut self, slot: Slot, after: C::Token) {
        match &mut self.role {
            Role::Buffer { .. } => self.ends_for_buffer(slot, after),
            Role::Request | Role::OldContent => self.clock.own(after),
        }
    }

    fn ends_for_buffer(&mut self, slot: Slot, end: C::Token) {
        let Role::Buffer { tokens, owned } = &mut self.role else {
            return;
        };
        if let Some(token) = tokens.get_mut(slot.0 as usize) {
            *token = end;
        }
        if *owned {
            self.clock.own(end);
        }
    }

    fn old_content_of(&mut self, slot: Slot) -> C::Token {
        let reads = self.old_content.into_iter().flatten();
        let reads = reads.filter(|(of, _)| *of == slot);
        reads.fold(C::Token::default(), |all, (_, read)| {
            self.clock.join(all, read)
        })
    }
}
