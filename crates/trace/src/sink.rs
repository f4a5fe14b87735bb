//! Files being written: a compressed stream, and a temporary file that takes its name when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::Compression;

/// A compressing stream that must be finished.
pub(crate) enum Sink {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Xz(liblzma::write::XzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
    Bzip2(bzip2::write::BzEncoder<BufWriter<File>>),
}

impl Sink {
    pub(crate) fn new(file: File, compression: Compression) -> io::Result<Sink> {
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

    pub(crate) fn finish(self) -> io::Result<()> {
        let out = match self {
            Sink::Plain(out) => out,
            Sink::Gzip(encoder) => encoder.finish()?,
            Sink::Xz(encoder) => encoder.finish()?,
            Sink::Zstd(encoder) => encoder.finish()?,
            Sink::Bzip2(encoder) => encoder.finish()?,
        };
        out.into_inner().map_err(|e| e.into_error())?.sync_all()
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

/// A temporary file in the folder of `path`.
pub(crate) fn new_file(path: &Path) -> io::Result<(File, tempfile::TempPath)> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".floatgate-")
        .suffix(".tmp")
        .tempfile_in(folder)?;
    Ok(file.into_parts())
}

/// Gives a temporary file its name and returns its length.
pub(crate) fn give_name(temporary: tempfile::TempPath, path: &Path) -> io::Result<u64> {
    make_readable(&temporary)?;
    temporary.persist(path).map_err(|e| e.error)?;
    Ok(std::fs::metadata(path).map_or(0, |m| m.len()))
}

/// Temporary files are private; a trace gets the permissions of an ordinary new file.
fn make_readable(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
