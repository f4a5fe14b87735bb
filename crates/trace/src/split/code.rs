//! A request in a few bytes, coded relative to the one before it.

use crate::{Op, Request, Stream};

/// The most bytes that a request takes in the file.
pub const REQUEST_BYTES_MAX: usize = 1 + 3 * 10 + 3;
/// What a request is coded relative to: the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    pub arrival_ns: u64,
    pub end: u64,
}

const OPS: [Op; 5] = [Op::Read, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush];
/// Set in the first byte if a stream follows the size.
const STREAM: u8 = 16;
/// Set in the first byte if offset and size are in sectors.
const SECTORS: u8 = 8;
const SECTOR_SHIFT: u32 = 9;

/// A request in a few bytes: operation; arrival and offset as differences to the request before; size.
pub fn encode(request: &Request, before: &mut Before, out: &mut Vec<u8>) {
    let sectors = (request.offset | request.bytes).trailing_zeros() >= SECTOR_SHIFT;
    let (mark, shift) = if sectors {
        (SECTORS, SECTOR_SHIFT)
    } else {
        (0, 0)
    };
    let stream = request.stream.number();
    let named = if stream.is_some() { STREAM } else { 0 };
    out.push(request.op as u8 | mark | named);
    put(zigzag(request.arrival_ns, before.arrival_ns), out);
    put(zigzag(request.offset >> shift, before.end >> shift), out);
    put(request.bytes >> shift, out);
    if let Some(stream) = stream {
        put(stream.into(), out);
    }
    *before = Before {
        arrival_ns: request.arrival_ns,
        end: request.end(),
    };
}

/// The next request of some bytes that [`encode`] made.
pub fn decode(bytes: &[u8], at: &mut usize, before: &mut Before) -> Request {
    let tag = bytes[*at];
    *at += 1;
    let shift = if tag & SECTORS != 0 { SECTOR_SHIFT } else { 0 };
    let arrival_ns = unzigzag(get(bytes, at), before.arrival_ns);
    let offset = unzigzag(get(bytes, at), before.end >> shift) << shift;
    let request = Request {
        arrival_ns,
        op: OPS[(tag & 7) as usize],
        volume: 0,
        offset,
        bytes: get(bytes, at) << shift,
        stream: match tag & STREAM {
            0 => Stream::NONE,
            _ => Stream::new(get(bytes, at)).unwrap_or_default(),
        },
    };
    *before = Before {
        arrival_ns,
        end: request.end(),
    };
    request
}

/// The difference as a number that is small if the difference is, whatever its sign.
fn zigzag(value: u64, before: u64) -> u64 {
    let difference = value.wrapping_sub(before) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn unzigzag(code: u64, before: u64) -> u64 {
    before.wrapping_add((code >> 1) ^ (code & 1).wrapping_neg())
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_the_limits_come_back_as_they_were() {
        let extremes = [0, 1, 511, 512, 4096, u64::MAX / 2, u64::MAX - 512, u64::MAX];
        let mut bytes = Vec::new();
        let (mut wrote, mut read) = (Before::default(), Before::default());
        let mut requests = Vec::new();
        for arrival_ns in extremes {
            for offset in extremes {
                for size in extremes {
                    if let (op, Some(_)) = (OPS[requests.len() % 5], offset.checked_add(size)) {
                        requests.push(Request {
                            arrival_ns,
                            op,
                            volume: 0,
                            stream: crate::Stream::NONE,
                            offset,
                            bytes: size,
                        });
                    }
                }
            }
        }
        for request in &requests {
            let start = bytes.len();
            encode(request, &mut wrote, &mut bytes);
            assert!(bytes.len() - start <= REQUEST_BYTES_MAX);
        }
        let mut at = 0;
        for request in &requests {
            assert_eq!(decode(&bytes, &mut at, &mut read), *request);
        }
        assert_eq!(at, bytes.len());
    }

    #[test]
    fn a_usual_request_takes_few_bytes() {
        let mut bytes = Vec::new();
        let mut before = Before::default();
        for i in 0..100 {
            let request = Request {
                arrival_ns: i * 100_000,
                op: Op::Write,
                volume: 0,
                stream: crate::Stream::NONE,
                offset: i * 4096,
                bytes: 4096,
            };
            encode(&request, &mut before, &mut bytes);
        }
        assert!(bytes.len() <= 600, "{} bytes", bytes.len());
    }
}
