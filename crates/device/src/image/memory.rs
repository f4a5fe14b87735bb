//! An image that no disk has: its bytes in memory, the end of the process takes them with it.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::disk::Disk;

/// Bytes that are had or not had as a whole: those never written take no memory.
const CHUNK_BYTES: usize = 1 << 16;

type Chunk = Option<Box<[u8; CHUNK_BYTES]>>;

/// Bytes in memory that behave as a file does.
pub struct MemoryDisk {
    chunks: Mutex<Vec<Chunk>>,
    bytes: u64,
}

impl std::fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.bytes;
        write!(f, "MemoryDisk({bytes} bytes)")
    }
}

/// A piece of a range that lies in one chunk.
struct Piece {
    chunk: usize,
    /// Where it begins in the chunk.
    from: usize,
    /// Where it begins in the range.
    done: usize,
    bytes: usize,
}

impl MemoryDisk {
    /// So many zeroes.
    ///
    /// # Errors
    /// If there is no memory even for a list of so many.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let count = bytes.div_ceil(CHUNK_BYTES as u64) as usize;
        let mut chunks = Vec::new();
        chunks.try_reserve_exact(count)?;
        chunks.resize(count, None);
        Ok(Self {
            chunks: Mutex::new(chunks),
            bytes,
        })
    }

    fn chunks<T>(&self, work: impl FnOnce(&mut [Chunk]) -> T) -> T {
        // Bytes are copied under the lock and nothing else, so there is nothing that a panic could leave half done.
        work(&mut self.chunks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn pieces(&self, at: u64, bytes: usize) -> io::Result<impl Iterator<Item = Piece> + use<>> {
        let end = at.checked_add(bytes as u64);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (at, mut done) = (at as usize, 0);
        Ok(std::iter::from_fn(move || {
            let (chunk, from) = ((at + done) / CHUNK_BYTES, (at + done) % CHUNK_BYTES);
            let piece = Piece {
                chunk,
                from,
                done,
                bytes: (CHUNK_BYTES - from).min(bytes - done),
            };
            done += piece.bytes;
            (piece.bytes > 0).then_some(piece)
        }))
    }
}

fn blank() -> Box<[u8; CHUNK_BYTES]> {
    let bytes = vec![0; CHUNK_BYTES].into_boxed_slice();
    bytes.try_into().expect("of that length")
}

impl Disk for MemoryDisk {
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let pieces = self.pieces(at, bytes.len())?;
        self.chunks(|chunks| {
            for piece in pieces {
                let into = &mut bytes[piece.done..][..piece.bytes];
                match &chunks[piece.chunk] {
                    Some(chunk) => into.copy_from_slice(&chunk[piece.from..][..piece.bytes]),
                    None => into.fill(0),
                }
            }
        });
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let pieces = self.pieces(at, bytes.len())?;
        self.chunks(|chunks| {
            for piece in pieces {
                let chunk = chunks[piece.chunk].get_or_insert_with(blank);
                let from = &bytes[piece.done..][..piece.bytes];
                chunk[piece.from..][..piece.bytes].copy_from_slice(from);
            }
        });
        Ok(())
    }

    fn punch(&self, at: u64, bytes: u64) -> io::Result<()> {
        let pieces = self.pieces(at, bytes as usize)?;
        self.chunks(|chunks| {
            for piece in pieces {
                match &mut chunks[piece.chunk] {
                    chunk if piece.bytes == CHUNK_BYTES => *chunk = None,
                    Some(chunk) => chunk[piece.from..][..piece.bytes].fill(0),
                    None => {}
                }
            }
        });
        Ok(())
    }

    /// Nothing survives a crash of the machine, and nobody is told that it does: see
    /// [`Durability::Process`](super::Durability::Process).
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn next_data(&self, at: u64) -> Option<u64> {
        let chunk_bytes = CHUNK_BYTES as u64;
        self.chunks(|chunks| {
            let first = (at / chunk_bytes) as usize;
            let mut behind = (first..).zip(chunks.iter().skip(first));
            let (chunk, _) = behind.find(|(_, chunk)| chunk.is_some())?;
            Some(at.max(chunk as u64 * chunk_bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::rng::SplitMix64;

    const BYTES: usize = 5 * CHUNK_BYTES + 100;

    /// Random reads, writes and holes beside a plain array.
    #[test]
    fn it_is_an_array_of_bytes() {
        let seed = 0x00D1_5C00;
        println!("seed {seed:#x}");
        let mut rng = SplitMix64::new(seed);
        let disk = MemoryDisk::new(BYTES as u64).expect("memory");
        let mut array = vec![0u8; BYTES];
        for _ in 0..2000 {
            let at = rng.below(BYTES as u64) as usize;
            let longest = [100, CHUNK_BYTES, BYTES][rng.below(3) as usize];
            let bytes = rng.below(longest as u64) as usize;
            let range = at..(at + bytes).min(BYTES);
            match rng.below(3) {
                0 => {
                    let data = vec![rng.next() as u8; range.len()];
                    disk.write(&data, at as u64).expect("inside");
                    array[range].copy_from_slice(&data);
                }
                1 => {
                    disk.punch(at as u64, range.len() as u64).expect("inside");
                    array[range].fill(0);
                }
                _ => {
                    let mut data = vec![7; range.len()];
                    disk.read(&mut data, at as u64).expect("inside");
                    assert_eq!(data, array[range]);
                }
            }
            let next = disk.next_data(at as u64);
            let hole = at..next.map_or(BYTES, |next| next as usize);
            assert!(array[hole].iter().all(|&byte| byte == 0), "data in a hole");
        }
    }

    #[test]
    fn its_end_is_an_error_and_holes_take_no_memory() {
        let disk = MemoryDisk::new(BYTES as u64).expect("memory");
        let end = BYTES as u64;
        for outcome in [
            disk.write(&[1, 2], end - 1),
            disk.read(&mut [0; 2], end - 1),
            disk.punch(u64::MAX, 2),
        ] {
            let error = outcome.expect_err("beyond the end");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
        assert_eq!(disk.next_data(0), None);
        disk.write(&[1], 3 * CHUNK_BYTES as u64 + 5)
            .expect("inside");
        assert_eq!(disk.next_data(0), Some(3 * CHUNK_BYTES as u64));
        disk.punch(0, end).expect("inside");
        assert_eq!(disk.next_data(0), None);
        assert!(MemoryDisk::new(u64::MAX).is_err());
    }
}
