//! `floatgate image read`, `write`, `import`, `export`: bytes in and out without a server.

use std::io::{Read, Write};
use std::path::Path;

use floatgate_catalog::Catalog;
use floatgate_device::image::Durability;
use floatgate_device::stored::mount_image;
use floatgate_device::{DeviceError, Drive};
use floatgate_trace::TraceError;
use floatgate_trace::outfile::Destination;

use super::image::unusable;
use crate::args::{ImageExportArgs, ImageImportArgs, ImageReadArgs, ImageWriteArgs};
use crate::errors::{Outcome, Problem};
use crate::output::{check_files, unless_unread};

/// Bytes of one request to the device.
const PIECE_BYTES: usize = 1 << 20;

/// Mounts the device in an image, for use through its file alone.
pub fn mount(path: &Path, catalog: &Catalog) -> Outcome<Box<dyn Drive>> {
    mount_image(path, Durability::Machine, catalog).map_err(failed)
}

/// Writes a range of a device to a file.
pub fn read(args: &ImageReadArgs, catalog: &Catalog) -> Outcome<()> {
    copy_out(
        &args.file,
        args.offset,
        args.length,
        ("--output", &args.output),
        catalog,
    )
}

/// Writes all of a device to a file.
pub fn export(args: &ImageExportArgs, catalog: &Catalog) -> Outcome<()> {
    copy_out(&args.file, 0, None, ("the output", &args.output), catalog)
}

fn copy_out(
    image: &Path,
    offset: u64,
    length: Option<u64>,
    (flag, output): (&str, &Path),
    catalog: &Catalog,
) -> Outcome<()> {
    let output = match output.as_os_str() == "-" {
        true => Path::new("/dev/stdout"),
        false => output,
    };
    check_files(&[(flag, output)], &[image])?;
    let mut drive = mount(image, catalog)?;
    let length = length.unwrap_or_else(|| bytes_of(&*drive).saturating_sub(offset));
    check_range(&*drive, offset, length)?;
    let not_written = |error: TraceError| Problem::new(error.to_string());
    let file = Destination::of(output).and_then(Destination::create);
    let mut file = file.map_err(not_written)?;
    let mut copied = Ok(());
    let mut buffer = vec![0; PIECE_BYTES];
    let (mut at, end) = (offset, offset + length);
    while at < end && copied.is_ok() {
        let piece = &mut buffer[..(end - at).min(PIECE_BYTES as u64) as usize];
        // What is left behind is no file: it gets its name only when it is finished.
        drive
            .read(at / drive.sector_bytes() as u64, piece)
            .map_err(|error| lost(at, piece.len(), &error))?;
        copied = file.write_all(piece);
        at += piece.len() as u64;
    }
    let written = copied.and_then(|()| file.finish());
    let written = written.map_err(|error| TraceError::output(output, &error));
    unless_unread(written).map_err(not_written)?;
    drive.close().map_err(failed)
}

/// Writes a file's bytes into a device.
pub fn write(args: &ImageWriteArgs, catalog: &Catalog) -> Outcome<()> {
    let mut drive = mount(&args.file, catalog)?;
    let room = bytes_of(&*drive).saturating_sub(args.offset);
    let bytes = input_bytes(&args.input, room)?;
    check_range(&*drive, args.offset, bytes.len() as u64)?;
    put(&mut *drive, args.offset, &bytes)?;
    drive.close().map_err(failed)
}

/// Makes a file's bytes those of the device.
pub fn import(args: &ImageImportArgs, catalog: &Catalog) -> Outcome<()> {
    let mut drive = mount(&args.file, catalog)?;
    let (total, sector) = (bytes_of(&*drive), drive.sector_bytes() as u64);
    let not_read = |error| Problem::new(format!("cannot read {}: {error}", args.input.display()));
    let mut input = std::fs::File::open(&args.input).map_err(not_read)?;
    let length = input.metadata().map_err(not_read)?.len();
    if length > total {
        return Err(too_long(&args.input, total));
    }
    let mut buffer = Vec::with_capacity(PIECE_BYTES);
    let mut at = 0;
    loop {
        buffer.clear();
        let taken = (&mut input)
            .take(PIECE_BYTES as u64)
            .read_to_end(&mut buffer);
        if taken.map_err(not_read)? == 0 {
            break;
        }
        buffer.resize(buffer.len().next_multiple_of(sector as usize), 0);
        // A file that grows while it is read.
        if at + buffer.len() as u64 > total {
            return Err(too_long(&args.input, total));
        }
        put(&mut *drive, at, &buffer)?;
        at += buffer.len() as u64;
    }
    clear(&mut *drive, at, total)?;
    drive.flush().map_err(failed)?;
    drive.close().map_err(failed)
}

/// Makes the rest of a device zero: whole pages are trimmed, the rest of a page is written.
fn clear(drive: &mut dyn Drive, from: u64, end: u64) -> Outcome<()> {
    let page = drive.page_bytes() as u64;
    let whole = from.next_multiple_of(page).min(end);
    put(drive, from, &vec![0; (whole - from) as usize])?;
    let sector = drive.sector_bytes() as u64;
    let piece = (PIECE_BYTES as u64).next_multiple_of(page);
    let mut at = whole;
    while at < end {
        let bytes = piece.min(end - at);
        drive.trim(at / sector, bytes / sector).map_err(failed)?;
        at += bytes;
    }
    Ok(())
}

fn put(drive: &mut dyn Drive, offset: u64, bytes: &[u8]) -> Outcome<()> {
    let mut at = offset;
    for piece in bytes.chunks(PIECE_BYTES) {
        let sector = at / drive.sector_bytes() as u64;
        drive.write(sector, piece).map_err(failed)?;
        at += piece.len() as u64;
    }
    Ok(())
}

fn bytes_of(drive: &dyn Drive) -> u64 {
    drive.sectors() * drive.sector_bytes() as u64
}

/// The bytes of a file or of standard input, if they are not more than there is room for.
fn input_bytes(path: &Path, room: u64) -> Outcome<Vec<u8>> {
    let source: std::io::Result<Box<dyn Read>> = match path.as_os_str() == "-" {
        true => Ok(Box::new(std::io::stdin())),
        false => std::fs::File::open(path).map(|file| Box::new(file) as _),
    };
    let mut bytes = Vec::new();
    let taken = source.and_then(|source| source.take(room + 1).read_to_end(&mut bytes));
    taken.map_err(|error| Problem::new(format!("cannot read {}: {error}", path.display())))?;
    match bytes.len() as u64 > room {
        true => Err(too_long(path, room)),
        false => Ok(bytes),
    }
}

fn too_long(path: &Path, room: u64) -> Problem {
    Problem::new(format!(
        "{} is longer than the {room} bytes that it can fill",
        path.display()
    ))
    .help("nothing was written; a smaller --offset, less input, or an image with more capacity")
}

fn check_range(drive: &dyn Drive, offset: u64, length: u64) -> Outcome<()> {
    let (total, sector) = (bytes_of(drive), drive.sector_bytes() as u64);
    for (what, bytes) in [("the offset", offset), ("the length", length)] {
        if bytes % sector != 0 {
            let text = format!("{what}, {bytes} bytes, is no multiple of a sector");
            let below = bytes / sector * sector;
            return Err(Problem::new(text).help(format!(
                "sectors have {sector} bytes: {below} or {}",
                below + sector
            )));
        }
    }
    if offset.checked_add(length).is_none_or(|end| end > total) {
        let text = format!("{length} bytes from {offset} go beyond the end of the device");
        return Err(Problem::new(text).help(format!("the device has {total} bytes")));
    }
    Ok(())
}

fn lost(at: u64, bytes: usize, error: &DeviceError) -> Problem {
    let end = at + bytes as u64;
    Problem::new(format!("bytes {at} to {end}: {error}"))
        .help("`floatgate image scrub` lists the pages that are lost; `image read` gets the others")
}

/// A device that failed, in words.
pub fn failed(error: DeviceError) -> Problem {
    match error {
        DeviceError::Image(error) => unusable(error),
        other => Problem::new(other.to_string()),
    }
}
