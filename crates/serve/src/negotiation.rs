//! The first half of a connection: client and server agree on what is served and how.

use std::io::{self, Read, Write};

use crate::shared::Export;
use crate::wire::{
    Fields, GREETING, OPTION, OPTION_REPLY, Wire, export, handshake, info, option, reply,
};

/// Longest option that is looked at; names have at most 4096 bytes.
const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Options of one connection; a client needs less than ten.
const OPTIONS_MAX: u32 = 1000;
/// Longest request for a read or a write.
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// The one context of `BLOCK_STATUS`, and its number.
const CONTEXT: &[u8] = b"base:allocation";
/// The number of that context.
pub const CONTEXT_ID: u32 = 1;

/// What both sides agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Agreed {
    /// Reads are answered in chunks.
    pub structured: bool,
    /// `BLOCK_STATUS` may be asked for.
    pub context: bool,
}

/// What the client is told of the export.
fn flags_of(told: &Export) -> u16 {
    let always = export::HAS_FLAGS
        | export::SEND_FLUSH
        | export::SEND_FUA
        | export::SEND_TRIM
        | export::SEND_WRITE_ZEROES
        | export::SEND_DF
        // There is one device behind one lock: a flush on any connection covers them all.
        | export::CAN_MULTI_CONN
        | export::SEND_FAST_ZERO;
    match told.is_read_only {
        true => always | export::READ_ONLY,
        false => always,
    }
}

/// Negotiates. `None` if the client does not want anything.
///
/// # Errors
/// If the client has gone, is silent for too long, or does not keep to the protocol.
pub fn negotiate<S: Read + Write>(
    wire: &mut Wire<S>,
    served: &Export,
) -> io::Result<Option<Agreed>> {
    wire.say(&GREETING.to_be_bytes());
    wire.say(&OPTION.to_be_bytes());
    let ours = handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES;
    wire.say(&(ours as u16).to_be_bytes());
    let flags = u32::from_be_bytes(wire.array()?);
    if flags & !ours != 0 {
        return Err(malformed());
    }
    let mut agreed = Agreed::default();
    let mut data = Vec::new();
    for _ in 0..OPTIONS_MAX {
        let head: [u8; 16] = wire.array()?;
        let mut head = Fields(&head);
        let (Some(OPTION), Some(kind), Some(length)) = (head.u64(), head.u32(), head.u32()) else {
            return Err(malformed());
        };
        if length > OPTION_BYTES_MAX {
            answer(wire, kind, reply::ERR_TOO_BIG, &[]);
            wire.send()?;
            return Err(malformed());
        }
        wire.take_into(&mut data, length as usize)?;
        match kind {
            option::EXPORT_NAME => {
                if !data.is_empty() {
                    // There is no reply to say so.
                    return Err(malformed());
                }
                wire.say(&served.bytes.to_be_bytes());
                wire.say(&flags_of(served).to_be_bytes());
                if flags & handshake::NO_ZEROES == 0 {
                    wire.say(&[0; 124]);
                }
                return Ok(Some(agreed));
            }
            option::ABORT => {
                answer(wire, kind, reply::ACK, &[]);
                // The client need not wait for it.
                let _ = wire.send();
                return Ok(None);
            }
            option::LIST if data.is_empty() => {
                // One export; its name is the empty one, after its length.
                answer(wire, kind, reply::SERVER, &[0; 4]);
                answer(wire, kind, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                agreed.structured = true;
                answer(wire, kind, reply::ACK, &[]);
            }
            option::LIST | option::STRUCTURED_REPLY => {
                answer(wire, kind, reply::ERR_INVALID, b"this option has no data");
            }
            option::INFO | option::GO => {
                if describe(wire, kind, &data, served) && kind == option::GO {
                    return Ok(Some(agreed));
                }
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                let set = contexts(wire, kind, &data, agreed.structured);
                if kind == option::SET_META_CONTEXT {
                    agreed.context = set;
                }
            }
            _ => answer(wire, kind, reply::ERR_UNSUPPORTED, &[]),
        }
    }
    Err(malformed())
}

/// The client does not keep to the protocol.
pub fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not the NBD protocol")
}

fn answer<S: Read + Write>(wire: &mut Wire<S>, to: u32, kind: u32, data: &[u8]) {
    wire.say(&OPTION_REPLY.to_be_bytes());
    wire.say(&to.to_be_bytes());
    wire.say(&kind.to_be_bytes());
    wire.say(&(data.len() as u32).to_be_bytes());
    wire.say(data);
}

/// Answers `INFO` and `GO`; whether there is such an export.
fn describe<S: Read + Write>(wire: &mut Wire<S>, to: u32, data: &[u8], served: &Export) -> bool {
    let mut fields = Fields(data);
    let name = fields.text();
    let wanted = fields.u16().and_then(|n| fields.bytes(2 * usize::from(n)));
    let (Some(name), Some(_), true) = (name, wanted, fields.is_done()) else {
        answer(wire, to, reply::ERR_INVALID, b"malformed");
        return false;
    };
    if !name.is_empty() {
        let text = b"there is one export; its name is empty";
        answer(wire, to, reply::ERR_UNKNOWN, text);
        return false;
    }
    let mut told = Vec::with_capacity(14);
    told.extend(info::EXPORT.to_be_bytes());
    told.extend(served.bytes.to_be_bytes());
    told.extend(flags_of(served).to_be_bytes());
    answer(wire, to, reply::INFO, &told);
    // Told whether or not it was asked for: a client may ignore it.
    told.clear();
    told.extend(info::BLOCK_SIZE.to_be_bytes());
    for bytes in [served.sector_bytes, served.page_bytes, REQUEST_BYTES_MAX] {
        told.extend(bytes.to_be_bytes());
    }
    answer(wire, to, reply::INFO, &told);
    answer(wire, to, reply::ACK, &[]);
    true
}

/// Answers `LIST_META_CONTEXT` and `SET_META_CONTEXT`; whether our context was named.
fn contexts<S: Read + Write>(
    wire: &mut Wire<S>,
    to: u32,
    data: &[u8],
    is_structured: bool,
) -> bool {
    let is_set = to == option::SET_META_CONTEXT;
    let mut fields = Fields(data);
    let (name, count) = (fields.text(), fields.u32());
    let (Some(name), Some(count)) = (name, count) else {
        answer(wire, to, reply::ERR_INVALID, b"malformed");
        return false;
    };
    let mut is_named = !is_set && count == 0;
    for _ in 0..count {
        // Each takes four bytes at least, so the loop ends with the data.
        let Some(query) = fields.text() else {
            answer(wire, to, reply::ERR_INVALID, b"malformed");
            return false;
        };
        is_named |= query == CONTEXT || !is_set && query == b"base:";
    }
    if !fields.is_done() || is_set && !is_structured {
        let text = b"malformed, or before structured replies";
        answer(wire, to, reply::ERR_INVALID, text);
        return false;
    }
    if !name.is_empty() {
        answer(wire, to, reply::ERR_UNKNOWN, &[]);
        return false;
    }
    if is_named {
        let id = if is_set { CONTEXT_ID } else { 0 };
        let told = [&id.to_be_bytes()[..], CONTEXT].concat();
        answer(wire, to, reply::META_CONTEXT, &told);
    }
    answer(wire, to, reply::ACK, &[]);
    is_named
}
