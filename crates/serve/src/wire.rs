//! The numbers of the NBD protocol, and the bytes of its replies. All numbers on the wire are big-endian.

use std::io;

/// First word of the server's greeting.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Second word of the greeting, and first of every option.
pub const OPTION: u64 = 0x4948_4156_454f_5054;
/// First word of a reply to an option.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// First word of a request.
pub const REQUEST: u32 = 0x2560_9513;
/// First word of a simple reply.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// First word of a chunk of a structured reply.
pub const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Handshake flags of both sides.
pub mod handshake {
    /// Options may be refused without ending the connection.
    pub const FIXED_NEWSTYLE: u32 = 1;
    /// No padding after the answer to `EXPORT_NAME`.
    pub const NO_ZEROES: u32 = 2;
}

/// Options of a client.
pub mod option {
    #![allow(missing_docs)]
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Kinds of replies to options.
pub mod reply {
    #![allow(missing_docs)]
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUPPORTED: u32 = 1 << 31 | 1;
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// What a reply of kind [`reply::INFO`] tells.
pub mod info {
    #![allow(missing_docs)]
    pub const EXPORT: u16 = 0;
    pub const BLOCK_SIZE: u16 = 3;
}

/// What the export can do.
pub mod export {
    #![allow(missing_docs)]
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Commands.
pub mod command {
    #![allow(missing_docs)]
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISCONNECT: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub mod flag {
    #![allow(missing_docs)]
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Kinds of chunks of structured replies.
pub mod chunk {
    #![allow(missing_docs)]
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = 1 << 15 | 1;
    /// Flag: the last chunk of the reply.
    pub const DONE: u16 = 1;
}

/// States of the context `base:allocation`: a hole that reads as zeroes.
pub const HOLE_AND_ZERO: u32 = 3;

/// The head of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its flags.
    pub flags: u16,
    /// Its command.
    pub command: u16,
    /// What the client knows it by.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// Bytes of the head of a request.
pub const REQUEST_BYTES: usize = 28;

impl Request {
    /// The head of a request, if it begins like one.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        (fields.u32()? == REQUEST).then_some(())?;
        Some(Self {
            flags: fields.u16()?,
            command: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }
}

/// The fields of a message, taken one after the other. None once it is too short.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// A number of two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text after its length.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.bytes(length as usize)
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

/// A connection's two directions. What is written waits until the next byte must come from the client: a client with many
/// requests on their way gets the replies in one piece, and never waits for one that lies here.
#[derive(Debug)]
pub struct Wire<S> {
    stream: S,
    input: Box<[u8]>,
    /// What of the input was not taken yet.
    begin: usize,
    end: usize,
    output: Vec<u8>,
}

/// Bytes that one read of the socket takes at most.
const INPUT_BYTES: usize = 256 << 10;
/// Replies that wait are sent when they are so many bytes.
const OUTPUT_BYTES: usize = 256 << 10;

impl<S: io::Read + io::Write> Wire<S> {
    /// A connection on which nothing was said.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            input: vec![0; INPUT_BYTES].into(),
            begin: 0,
            end: 0,
            output: Vec::with_capacity(OUTPUT_BYTES),
        }
    }

    /// The socket.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Takes the next bytes of the client.
    ///
    /// # Errors
    /// If the client has gone, or is silent for too long.
    pub fn take(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            if self.begin == self.end {
                self.send()?;
                (self.begin, self.end) = (0, 0);
                self.end = match self.stream.read(&mut self.input) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                    Err(error) => return Err(error),
                };
            }
            let count = into.len().min(self.end - self.begin);
            let (now, later) = into.split_at_mut(count);
            now.copy_from_slice(&self.input[self.begin..][..count]);
            self.begin += count;
            into = later;
        }
        Ok(())
    }

    /// Takes an array of bytes.
    ///
    /// # Errors
    /// As [`Wire::take`].
    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.take(&mut bytes)?;
        Ok(bytes)
    }

    /// Takes so many bytes into a buffer, which grows only as they come: a client's word for a length is not memory.
    ///
    /// # Errors
    /// As [`Wire::take`].
    pub fn take_into(&mut self, buffer: &mut Vec<u8>, count: usize) -> io::Result<()> {
        buffer.clear();
        while buffer.len() < count {
            let from = buffer.len();
            buffer.resize(count.min(from + INPUT_BYTES), 0);
            self.take(&mut buffer[from..])?;
        }
        Ok(())
    }

    /// Says something to the client, soon.
    pub fn say(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Says more than should wait here.
    ///
    /// # Errors
    /// If the client has gone.
    pub fn say_long(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.output.len() + bytes.len() <= OUTPUT_BYTES {
            self.say(bytes);
            return Ok(());
        }
        self.send()?;
        self.stream.write_all(bytes)
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// If the client has gone.
    pub fn send(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            self.stream.write_all(&self.output)?;
            self.output.clear();
        }
        Ok(())
    }

    /// Sends what waits if it is much.
    ///
    /// # Errors
    /// If the client has gone.
    pub fn send_if_much(&mut self) -> io::Result<()> {
        match self.output.len() >= OUTPUT_BYTES {
            true => self.send(),
            false => Ok(()),
        }
    }
}
