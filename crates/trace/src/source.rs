//! Bytes from files and streams: decompression by magic number, progress.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// A compression, recognised by its first bytes when reading and by the file name when writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// None.
    None,
    /// gzip, also with several members (`.gz`).
    Gzip,
    /// xz, also with several streams (`.xz`).
    Xz,
    /// Zstandard, also with several frames (`.zst`).
    Zstd,
    /// bzip2, also with several streams (`.bz2`).
    Bzip2,
}

impl Compression {
    /// By the first bytes of a file.
    pub fn from_magic(bytes: &[u8]) -> Compression {
        match bytes {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // A skippable frame of Zstandard.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bzip2,
            _ => Compression::None,
        }
    }

    /// By the ending of a file name.
    pub fn from_name(name: &str) -> Compression {
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("gz") => Compression::Gzip,
            Some("xz") => Compression::Xz,
            Some("zst") => Compression::Zstd,
            Some("bz2") => Compression::Bzip2,
            _ => Compression::None,
        }
    }
}

/// The name without the ending of a compression.
pub(crate) fn base_name(name: &str) -> &str {
    match Compression::from_name(name) {
        Compression::None => name,
        _ => name.rsplit_once('.').map_or(name, |(head, _)| head),
    }
}

/// Counts the bytes that pass.
struct Counting<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// An opened source.
pub(crate) struct Source {
    /// The decompressed bytes.
    pub stream: Box<dyn Read + Send>,
    pub compression: Compression,
    /// Bytes read so far, before decompression.
    pub count: Arc<AtomicU64>,
}

/// Larger windows are refused: 256 MiB covers every preset of xz (up to 64 MiB) and
/// `zstd --ultra` (128 MiB).
const WINDOW_LIMIT: u64 = 256 << 20;

/// Wraps a stream of bytes, compressed or not.
pub(crate) fn open(raw: Box<dyn Read + Send>) -> io::Result<Source> {
    let count = Arc::new(AtomicU64::new(0));
    let mut counting = Counting {
        inner: raw,
        count: Arc::clone(&count),
    };
    let mut head = [0; 6];
    let mut got = 0;
    while got < head.len() {
        match counting.read(&mut head[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let compression = Compression::from_magic(&head[..got]);
    let raw =
        io::BufReader::with_capacity(64 * 1024, Cursor::new(head[..got].to_vec()).chain(counting));
    let stream: Box<dyn Read + Send> = match compression {
        Compression::None => Box::new(raw),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(
                WINDOW_LIMIT,
                liblzma::stream::CONCATENATED,
            )?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(raw, stream))
        }
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(raw)?),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(raw)),
    };
    Ok(Source {
        stream,
        compression,
        count,
    })
}

/// The length of a file; `None` for a pipe.
pub(crate) fn length(file: &File) -> Option<u64> {
    file.metadata()
        .ok()
        .filter(|m| m.is_file())
        .map(|m| m.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        assert_eq!(base_name("a.5ns.xz"), "a.5ns");
        assert_eq!(base_name("a.5ns"), "a.5ns");
        assert_eq!(Compression::from_name("x.zst"), Compression::Zstd);
    }

    #[test]
    fn magic_numbers() {
        assert_eq!(Compression::from_magic(b"\x1f\x8b\x08"), Compression::Gzip);
        assert_eq!(Compression::from_magic(b"BZh91A"), Compression::Bzip2);
        assert_eq!(Compression::from_magic(b"BZhx"), Compression::None);
        assert_eq!(Compression::from_magic(b""), Compression::None);
    }
}
