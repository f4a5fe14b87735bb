//! The second half of a connection: requests and their replies, one after the other.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::negotiation::{Agreed, CONTEXT_ID, REQUEST_BYTES_MAX, malformed};
use crate::shared::{Export, Extent, Failure, Misplaced, Shared};
use crate::wire::{
    HOLE_AND_ZERO, REQUEST_BYTES, Request, SIMPLE_REPLY, STRUCTURED_REPLY, Wire, chunk, command,
    flag,
};

/// Extents that one reply of `BLOCK_STATUS` tells at most; the client asks on from where it ends.
const EXTENTS_MAX: usize = 4096;
/// Buffers that a request left larger are given back.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// One client after the negotiation.
struct Client<'a, S> {
    wire: &'a mut Wire<S>,
    shared: &'a Shared,
    export: &'a Export,
    agreed: Agreed,
    data: Vec<u8>,
    extents: Vec<Extent>,
}

/// Serves requests until the client is done or `stop` is set.
///
/// # Errors
/// If the client has gone, or does not keep to the protocol.
pub fn serve<S: Read + Write>(
    wire: &mut Wire<S>,
    shared: &Shared,
    export: &Export,
    agreed: Agreed,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut client = Client {
        wire,
        shared,
        export,
        agreed,
        data: Vec::new(),
        extents: Vec::new(),
    };
    while !stop.load(Ordering::Relaxed) {
        let head: [u8; REQUEST_BYTES] = client.wire.array()?;
        // Where a request does not begin like one, nothing tells where the next begins.
        let request = Request::decode(&head).ok_or_else(malformed)?;
        if request.command == command::DISCONNECT {
            break;
        }
        client.request(&request)?;
        client.wire.send_if_much()?;
        client.data.shrink_to(BUFFER_BYTES_KEPT);
    }
    client.wire.send()
}

impl<S: Read + Write> Client<'_, S> {
    fn request(&mut self, request: &Request) -> io::Result<()> {
        if request.command == command::WRITE {
            if request.length > REQUEST_BYTES_MAX {
                // Its bytes follow; more than was agreed on are not waited for.
                return Err(malformed());
            }
            // Taken before anything is judged: what follows is the next request.
            self.wire
                .take_into(&mut self.data, request.length as usize)?;
        }
        match self.checked(request) {
            Err(failure) => self.fail(request, failure),
            Ok(()) if request.command == command::READ => self.say_data(request),
            Ok(()) if request.command == command::BLOCK_STATUS => {
                self.say_extents(request);
                Ok(())
            }
            Ok(()) => {
                self.say_simple(request, 0);
                Ok(())
            }
        }
    }

    /// Does what is asked, if it makes sense; what was read or found lies in the buffers then.
    fn checked(&mut self, request: &Request) -> Result<(), Failure> {
        self.check(request)?;
        let Request {
            flags,
            offset,
            length,
            ..
        } = *request;
        let bytes = u64::from(length);
        match request.command {
            command::READ => {
                self.data.clear();
                self.data.resize(length as usize, 0);
                return self.shared.read(offset, &mut self.data);
            }
            command::WRITE => {
                return self
                    .shared
                    .write(offset, &self.data, flags & flag::FUA != 0);
            }
            command::FLUSH => return self.shared.flush(),
            command::TRIM => self.shared.trim(offset, bytes)?,
            command::WRITE_ZEROES => {
                let may_drop = flags & flag::NO_HOLE == 0;
                if flags & flag::FAST_ZERO != 0 && !(may_drop && self.is_whole_pages(request)) {
                    // It would be a write of zeroes, no faster than the client's own.
                    return Err(Failure::Unsupported);
                }
                self.shared.write_zeroes(offset, bytes, may_drop)?;
            }
            _ => {
                let extents_max = match flags & flag::REQ_ONE {
                    0 => EXTENTS_MAX,
                    _ => 1,
                };
                return self
                    .shared
                    .extents(offset, length, extents_max, &mut self.extents);
            }
        }
        match flags & flag::FUA {
            0 => Ok(()),
            _ => self.shared.flush(),
        }
    }

    fn check(&self, request: &Request) -> Result<(), Failure> {
        let is_write = matches!(
            request.command,
            command::WRITE | command::TRIM | command::WRITE_ZEROES
        );
        // FUA means nothing to what changes nothing, but is no mistake.
        let known = flag::FUA
            | match request.command {
                command::READ if self.agreed.structured => flag::DF,
                command::READ | command::WRITE | command::FLUSH | command::TRIM => 0,
                command::WRITE_ZEROES => flag::NO_HOLE | flag::FAST_ZERO,
                command::BLOCK_STATUS if self.agreed.context => flag::REQ_ONE,
                _ => return Err(Failure::Invalid),
            };
        if request.flags & !known != 0 {
            return Err(Failure::Invalid);
        }
        if is_write && self.export.is_read_only {
            return Err(Failure::NotPermitted);
        }
        if request.command == command::FLUSH {
            return match (request.offset, request.length) {
                (0, 0) => Ok(()),
                _ => Err(Failure::Invalid),
            };
        }
        if request.command == command::READ && request.length > REQUEST_BYTES_MAX {
            return Err(Failure::TooLong);
        }
        match self.export.check(request.offset, request.length.into()) {
            Err(Misplaced::Beyond)
                if matches!(request.command, command::WRITE | command::WRITE_ZEROES) =>
            {
                Err(Failure::NoSpace)
            }
            Ok(()) if request.command == command::BLOCK_STATUS && request.length == 0 => {
                Err(Failure::Invalid)
            }
            outcome => Ok(outcome?),
        }
    }

    fn is_whole_pages(&self, request: &Request) -> bool {
        let page = u64::from(self.export.page_bytes);
        request.offset.is_multiple_of(page) && u64::from(request.length) % page == 0
    }

    fn say_simple(&mut self, request: &Request, error: u32) {
        self.wire.say(&SIMPLE_REPLY.to_be_bytes());
        self.wire.say(&error.to_be_bytes());
        self.wire.say(&request.cookie.to_be_bytes());
    }

    /// Begins the one chunk of a structured reply.
    fn say_chunk(&mut self, request: &Request, kind: u16, bytes: usize) {
        self.wire.say(&STRUCTURED_REPLY.to_be_bytes());
        self.wire.say(&chunk::DONE.to_be_bytes());
        self.wire.say(&kind.to_be_bytes());
        self.wire.say(&request.cookie.to_be_bytes());
        self.wire.say(&(bytes as u32).to_be_bytes());
    }

    fn fail(&mut self, request: &Request, failure: Failure) -> io::Result<()> {
        let error = failure as u32;
        let needs_chunk = matches!(request.command, command::READ | command::BLOCK_STATUS);
        if self.agreed.structured && needs_chunk {
            // Number, and the length of a text of which there is none.
            self.say_chunk(request, chunk::ERROR, 6);
            self.wire.say(&error.to_be_bytes());
            self.wire.say(&0u16.to_be_bytes());
        } else {
            self.say_simple(request, error);
        }
        Ok(())
    }

    fn say_data(&mut self, request: &Request) -> io::Result<()> {
        if !self.agreed.structured {
            self.say_simple(request, 0);
        } else if self.data.is_empty() {
            self.say_chunk(request, chunk::NONE, 0);
        } else {
            self.say_chunk(request, chunk::OFFSET_DATA, 8 + self.data.len());
            self.wire.say(&request.offset.to_be_bytes());
        }
        self.wire.say_long(&self.data)
    }

    fn say_extents(&mut self, request: &Request) {
        self.say_chunk(request, chunk::BLOCK_STATUS, 4 + 8 * self.extents.len());
        self.wire.say(&CONTEXT_ID.to_be_bytes());
        for extent in &self.extents {
            let state = u32::from(extent.is_hole) * HOLE_AND_ZERO;
            self.wire.say(&extent.bytes.to_be_bytes());
            self.wire.say(&state.to_be_bytes());
        }
    }
}
