//! A compressed stream into a file.

use std::io::{self, BufWriter, Write};

use crate::Compression;
use crate::outfile::OutFile;

/// A compressing stream that must be finished.
#[expect(
    missing_debug_implementations,
    reason = "encoders have nothing to show"
)]
#[allow(missing_docs)]
pub enum Sink {
    Plain(BufWriter<OutFile>),
    Gzip(flate2::write::GzEncoder<BufWriter<OutFile>>),
    Xz(liblzma::write::XzEncoder<BufWriter<OutFile>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<OutFile>>),
    Bzip2(bzip2::write::BzEncoder<BufWriter<OutFile>>),
}

impl Sink {
    /// A stream into a file.
    ///
    /// # Errors
    /// If the encoder cannot be made.
    pub fn new(file: OutFile, compression: Compression) -> io::Result<Sink> {
        let out = BufWriter::with_capacity(128 * 1024, file);
        Ok(match compression {
            Compression::None => Sink::Plain(out),
            Compression::Gzip => Sink::Gzip(flate2::write::GzEncoder::new(
                out,
                flate2::Compression::default(),
            )),
            Compression::Xz => Sink::Xz(liblzma::write::XzEncoder::new(out, 6)),
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(out, 9)?;
                encoder.include_checksum(true)?;
                Sink::Zstd(encoder)
            }
            Compression::Bzip2 => Sink::Bzip2(bzip2::write::BzEncoder::new(
                out,
                bzip2::Compression::best(),
            )),
        })
    }

    /// Writes the end of the stream; the file is not finished by that.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<OutFile> {
        let out = match self {
            Sink::Plain(out) => out,
            Sink::Gzip(encoder) => encoder.finish()?,
            Sink::Xz(encoder) => encoder.finish()?,
            Sink::Zstd(encoder) => encoder.finish()?,
            Sink::Bzip2(encoder) => encoder.finish()?,
        };
        out.into_inner().map_err(|e| e.into_error())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Plain(out) => out.write(bytes),
            Sink::Gzip(out) => out.write(bytes),
            Sink::Xz(out) => out.write(bytes),
            Sink::Zstd(out) => out.write(bytes),
            Sink::Bzip2(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(out) => out.flush(),
            Sink::Gzip(out) => out.flush(),
            Sink::Xz(out) => out.flush(),
            Sink::Zstd(out) => out.flush(),
            Sink::Bzip2(out) => out.flush(),
        }
    }
}
