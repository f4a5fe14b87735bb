//! What an image is, and what lies in its pages.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use floatgate_core::Lpn;
use serde::Serialize;

use super::disk::Disk;
use super::format::{Header, PageFault, role_name, spares_words};
use super::reader::{Reader, Slot};
use super::{ImageError, entries, io};
use crate::nand::{BlockState, PlaceKind};

/// A summary of an image.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // named as they print
pub struct ImageInfo {
    pub path: PathBuf,
    pub format_version: u32,
    pub uuid: String,
    /// Seconds since 1970, 0 if not known.
    pub created: u64,
    pub clean: bool,
    pub scheme: String,
    pub options: Vec<String>,
    pub part: String,
    pub dies: u32,
    /// With spare blocks.
    pub blocks_per_die: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    pub logical_pages: u32,
    pub program_order: &'static str,
    pub spare_blocks: u32,
    pub pair_guard: String,
    pub wear_leveling: String,
    pub wear_gap: u32,
    pub erase_limit: u32,
    pub pages_programmed: u64,
    /// By their headers alone.
    pub pages_unreadable: u64,
    pub bad_blocks: u64,
    pub erases_min: u32,
    pub erases_mean: f64,
    pub erases_max: u32,
    pub last_sequence: u64,
    /// The region for phase-change memory, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcm: Option<PcmInfo>,
    pub file_bytes: u64,
    /// On the disk, holes left out.
    pub allocated_bytes: u64,
}

/// What an image keeps in its phase-change memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PcmInfo {
    /// Entries that name a place.
    pub entries: u64,
    /// Entries that are damaged.
    pub damaged: u64,
    /// Closed when they were complete: the next start reads no spare area.
    pub is_complete: bool,
}

/// What the header of an image says.
///
/// # Errors
/// If the file is not an image, cannot be read, or is in use.
pub fn header_of(path: &Path) -> Result<Header, ImageError> {
    let reader = Reader::open(path, false)?;
    reader.check_length()?;
    Ok(reader.header)
}

/// Describes an image by its headers.
///
/// # Errors
/// If the file is not an image, cannot be read, or is in use.
pub fn info(path: &Path) -> Result<ImageInfo, ImageError> {
    let reader = open(path)?;
    let (h, g) = (&reader.header, &reader.header.geometry);
    let (pair_guard, wear_leveling) = spares_words(&h.spares);
    let metadata = reader.disk.metadata().map_err(|e| io("read", path, e))?;
    let mut info = ImageInfo {
        path: path.to_path_buf(),
        format_version: h.version(),
        uuid: h.uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
        created: h.created,
        clean: h.clean,
        scheme: h.scheme.clone(),
        options: h.options.lines().map(String::from).collect(),
        part: h.part.clone(),
        dies: g.dies,
        blocks_per_die: g.blocks_per_die,
        pages_per_block: g.pages_per_block,
        page_bytes: h.page_bytes,
        logical_pages: g.logical_pages,
        program_order: g.program_order.name(),
        spare_blocks: h.spares.spare_blocks,
        pair_guard,
        wear_leveling,
        wear_gap: h.spares.wear_gap,
        erase_limit: h.erase_limit,
        pages_programmed: 0,
        pages_unreadable: 0,
        bad_blocks: 0,
        erases_min: u32::MAX,
        erases_mean: 0.0,
        erases_max: 0,
        last_sequence: 0,
        pcm: pcm_of(&reader).map_err(|e| io("read", path, e))?,
        file_bytes: reader.file_bytes,
        allocated_bytes: metadata.blocks() * 512,
    };
    let mut erases = 0;
    for block in 0..g.blocks() {
        let seen = reader.block(block).map_err(|e| io("read", path, e))?;
        for slot in &seen.slots {
            info.pages_programmed +=
                u64::from(matches!(slot, Slot::Programmed(_) | Slot::Fault(_)));
            info.pages_unreadable += u64::from(matches!(slot, Slot::Fault(_)));
        }
        info.bad_blocks += u64::from(seen.record.state != BlockState::Good);
        info.erases_min = info.erases_min.min(seen.record.erases);
        info.erases_max = info.erases_max.max(seen.record.erases);
        info.last_sequence = info.last_sequence.max(seen.last_sequence);
        erases += u64::from(seen.record.erases);
    }
    info.erases_mean = erases as f64 / f64::from(g.blocks());
    Ok(info)
}

fn pcm_of(reader: &Reader) -> std::io::Result<Option<PcmInfo>> {
    let Some(seen) = reader.region()? else {
        return Ok(None);
    };
    let header = &reader.header;
    Ok(Some(PcmInfo {
        entries: seen.entries,
        damaged: seen.damaged.len() as u64,
        is_complete: header.clean && seen.is_sealed_at(header.durable),
    }))
}

/// An image as the next start will find it.
fn open(path: &Path) -> Result<Reader, ImageError> {
    let mut reader = Reader::open(path, false)?;
    reader.check_length()?;
    if !reader.header.clean {
        reader.find_end().map_err(|e| io("read", path, e))?;
    }
    Ok(reader)
}

impl std::fmt::Display for ImageInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut line = |name: &str, value: String| writeln!(f, "{name:<18}{value}");
        line("image", self.path.display().to_string())?;
        line(
            "format",
            format!("version {}, uuid {}", self.format_version, self.uuid),
        )?;
        let state = if self.clean {
            "closed in order"
        } else {
            "not closed in order"
        };
        line("state", state.into())?;
        line(
            "scheme",
            format!("{} {}", self.scheme, self.options.join(" ")),
        )?;
        if !self.part.is_empty() {
            line("part", self.part.clone())?;
        }
        line(
            "chip",
            format!(
                "{} dies x {} blocks x {} pages x {} bytes, {} order",
                self.dies,
                self.blocks_per_die,
                self.pages_per_block,
                self.page_bytes,
                self.program_order
            ),
        )?;
        let bytes = u64::from(self.logical_pages) * u64::from(self.page_bytes);
        line(
            "logical",
            format!("{} pages, {bytes} bytes", self.logical_pages),
        )?;
        line(
            "below the scheme",
            format!(
                "{} spare blocks a die, pair guard {}, wear levelling {} (gap {})",
                self.spare_blocks, self.pair_guard, self.wear_leveling, self.wear_gap
            ),
        )?;
        line(
            "pages",
            format!(
                "{} programmed, {} unreadable",
                self.pages_programmed, self.pages_unreadable
            ),
        )?;
        line("bad blocks", self.bad_blocks.to_string())?;
        line(
            "erases a block",
            format!(
                "{} to {}, mean {:.1}",
                self.erases_min, self.erases_max, self.erases_mean
            ),
        )?;
        line("programs", self.last_sequence.to_string())?;
        if let Some(pcm) = &self.pcm {
            let complete = if pcm.is_complete {
                "complete"
            } else {
                "not complete"
            };
            line(
                "PCM",
                format!(
                    "{} map entries, {} damaged, {complete}",
                    pcm.entries, pcm.damaged
                ),
            )?;
        }
        line(
            "file",
            format!(
                "{} bytes, {} on the disk",
                self.file_bytes, self.allocated_bytes
            ),
        )
    }
}

/// Which pages to dump.
#[derive(Clone, Copy, Debug, Default)]
pub struct DumpSelection {
    /// Only this physical block.
    pub block: Option<u32>,
    /// Only pages of this logical page.
    pub lpn: Option<u32>,
    /// Erased pages too.
    pub erased: bool,
    /// This many bytes of each page.
    pub data_bytes: usize,
    /// At most this many rows; 0 for all.
    pub rows_max: usize,
}

/// One page of a dump.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[allow(missing_docs)] // named as they print
pub struct PageRow {
    pub block: u32,
    pub page: u32,
    /// `good`, `erased`, `stale` (erased, not freed yet), `unfinished` (after something that did not reach the disk),
    /// `lost`, or what is wrong.
    pub state: &'static str,
    pub lpn: Option<u32>,
    pub sequence: Option<u64>,
    pub role: Option<&'static str>,
    pub tag: Option<u32>,
    /// Block as the scheme numbers it.
    pub virtual_block: Option<u32>,
    /// `plain`, `mapped`, `moved` or `backup`.
    pub place: Option<&'static str>,
    pub generation: Option<u64>,
    /// The first bytes, in hexadecimal.
    pub data: Option<String>,
}

/// Pages of an image.
#[derive(Clone, Debug, Serialize)]
pub struct Dump {
    /// The pages, in physical order.
    pub rows: Vec<PageRow>,
    /// Whether there are more.
    pub cut: bool,
    /// What phase-change memory says of the logical page that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryRow>,
}

/// An entry of phase-change memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[allow(missing_docs)] // named as they print
pub struct EntryRow {
    pub lpn: u32,
    /// `good`, `none`, or `damaged`.
    pub state: &'static str,
    /// The page as the scheme numbers it: block, page.
    pub place: Option<(u32, u32)>,
    /// Erases of that block when it was programmed.
    pub era: Option<u32>,
    pub sequence: Option<u64>,
    pub tag: Option<u32>,
}

/// Lists pages with their spare areas.
///
/// # Errors
/// If the file is not an image, cannot be read, or is in use.
pub fn dump(path: &Path, selection: &DumpSelection) -> Result<Dump, ImageError> {
    let reader = open(path)?;
    let blocks = reader.header.geometry.blocks();
    let (first, end) = match selection.block {
        Some(block) => (block.min(blocks), block.saturating_add(1).min(blocks)),
        None => (0, blocks),
    };
    let mut dump = Dump {
        rows: Vec::new(),
        cut: false,
        entry: match selection.lpn {
            Some(lpn) => entry_of(&reader, lpn).map_err(|e| io("read", path, e))?,
            None => None,
        },
    };
    for block in first..end {
        let seen = reader.block(block).map_err(|e| io("read", path, e))?;
        for (page, slot) in (0..).zip(&seen.slots) {
            let row = row_of(&reader, selection, block, page, slot);
            let row = row.map_err(|e| io("read", path, e))?;
            let wanted = (selection.erased || row.state != "erased")
                && (selection.lpn.is_none() || row.lpn == selection.lpn);
            if !wanted {
                continue;
            }
            if selection.rows_max > 0 && dump.rows.len() == selection.rows_max {
                dump.cut = true;
                return Ok(dump);
            }
            dump.rows.push(row);
        }
    }
    Ok(dump)
}

fn entry_of(reader: &Reader, lpn: u32) -> std::io::Result<Option<EntryRow>> {
    let geometry = &reader.header.geometry;
    if !reader.header.pcm || lpn >= geometry.logical_pages {
        return Ok(None);
    }
    let mut bytes = [0; entries::ENTRY_BYTES];
    reader.disk.read(&mut bytes, reader.layout.entry_at(lpn))?;
    let found = entries::decode(Lpn(lpn), &bytes);
    let entry = found.ok().flatten();
    let pages = geometry.pages_per_block;
    Ok(Some(EntryRow {
        lpn,
        state: match found {
            Ok(Some(_)) => "good",
            Ok(None) => "none",
            Err(_) => "damaged",
        },
        place: entry.map(|entry| (entry.place.0 / pages, entry.place.0 % pages)),
        era: entry.map(|entry| entry.era),
        sequence: entry.map(|entry| entry.sequence),
        tag: entry.map(|entry| entry.tag),
    }))
}

fn row_of(
    reader: &Reader,
    selection: &DumpSelection,
    block: u32,
    page: u32,
    slot: &Slot,
) -> std::io::Result<PageRow> {
    let mut row = PageRow {
        block,
        page,
        state: "erased",
        lpn: None,
        sequence: None,
        role: None,
        tag: None,
        virtual_block: None,
        place: None,
        generation: None,
        data: None,
    };
    let header = match slot {
        Slot::Erased => return Ok(row),
        Slot::Stale(_) => {
            row.state = "stale";
            return Ok(row);
        }
        Slot::Unfinished => {
            row.state = "unfinished";
            return Ok(row);
        }
        Slot::Fault(fault) => {
            row.state = match fault {
                PageFault::Checksum => "torn header",
                PageFault::Misplaced { .. } => "misplaced",
                PageFault::Role { .. } => "unknown role",
                PageFault::Field => "bad field",
            };
            return Ok(row);
        }
        Slot::Programmed(header) => header,
    };
    let mut data = vec![0; reader.header.page_bytes as usize];
    reader.data(header.page, &mut data)?;
    let spare = &header.spare;
    row.state = match (header.fits(&data), spare.lost) {
        (false, _) => "torn",
        (true, true) => "lost",
        (true, false) => "good",
    };
    row.lpn = Some(spare.oob.lpn.0).filter(|_| spare.oob.lpn.is_some());
    row.sequence = Some(spare.sequence);
    row.role = Some(role_name(spare.oob.role));
    row.tag = Some(spare.oob.tag);
    row.place = Some(match spare.place.kind {
        PlaceKind::Plain => "plain",
        PlaceKind::Mapped => "mapped",
        PlaceKind::Moved => "moved",
        PlaceKind::Backup => "backup",
    });
    if spare.place.kind != PlaceKind::Plain {
        row.virtual_block = Some(spare.place.block);
        row.generation = Some(spare.place.generation);
    }
    if selection.data_bytes > 0 {
        let shown = &data[..selection.data_bytes.min(data.len())];
        row.data = Some(shown.iter().map(|byte| format!("{byte:02x}")).collect());
    }
    Ok(row)
}

impl std::fmt::Display for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{:>7} {:>5}  {:<12} {:>10} {:>12}  {:<14} {:>10}  {:<7} {:>7} {:>10}  data",
            "block",
            "page",
            "state",
            "lpn",
            "sequence",
            "role",
            "tag",
            "place",
            "virtual",
            "generation"
        )?;
        for row in &self.rows {
            let number = |n: Option<u64>| n.map_or_else(|| "-".into(), |n| n.to_string());
            writeln!(
                f,
                "{:>7} {:>5}  {:<12} {:>10} {:>12}  {:<14} {:>10}  {:<7} {:>7} {:>10}  {}",
                row.block,
                row.page,
                row.state,
                number(row.lpn.map(u64::from)),
                number(row.sequence),
                row.role.unwrap_or("-"),
                number(row.tag.map(u64::from)),
                row.place.unwrap_or("-"),
                number(row.virtual_block.map(u64::from)),
                number(row.generation),
                row.data.as_deref().unwrap_or("")
            )?;
        }
        if self.cut {
            writeln!(f, "... more")?;
        }
        if let Some(entry) = &self.entry {
            write!(
                f,
                "PCM entry of logical page {}: {}",
                entry.lpn, entry.state
            )?;
            if let (Some((block, page)), Some(era), Some(sequence)) =
                (entry.place, entry.era, entry.sequence)
            {
                write!(
                    f,
                    ", block {block} of the scheme after {era} erases, page {page}, sequence {sequence}"
                )?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
