//! Every byte of an image, as documented in `docs/image-format.md`; all numbers are little-endian.

use floatgate_core::flash::Oob;
use floatgate_core::options::OptionValue;
use floatgate_core::wear::WearLeveling;
use floatgate_core::{Geometry, Lpn, ProgramOrder, Refusal, Role};

use super::{ImageError, entries};
use crate::nand::{BlockState, Place, PlaceKind, SCHEME_BYTES, Spare};
use crate::register::PAGE_ENTRIES as REGISTER_ENTRIES;
use crate::spares::SparesOptions;
use crate::spares::pairs::PairGuard;

/// First bytes of an image.
pub const MAGIC: [u8; 8] = *b"FLOATGAT";
/// Version of the format without a region for phase-change memory.
pub const VERSION: u32 = 2;
/// Version of the format with one. A program that does not know of it must not change such an image.
pub const VERSION_WITH_PCM: u32 = 3;
/// Bytes of a header; there are two, one after the other.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a block record; each block has two.
pub const RECORD_BYTES: usize = 64;
/// Bytes of a page header: a divisor of a page of the page cache, so that no header is torn.
pub const PAGE_HEADER_BYTES: usize = 256;
/// Bytes of a page of the register: entries, version, page number, checksum.
pub const REGISTER_BYTES: usize = 8 * REGISTER_ENTRIES + 16;
/// Blocks that an image may have: a wrong number in a header must not cost gigabytes before it is refused.
pub const BLOCKS_MAX: u32 = 1 << 22;
/// Largest page.
pub const PAGE_BYTES_MAX: u32 = 1 << 20;
/// Sections of the file start at multiples of this, so that holes cover whole file system blocks.
pub const ALIGN: u64 = 4096;

const TEXTS_AT: usize = 100;
const HEADER_CRC_AT: usize = HEADER_BYTES - 4;
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"FGBK");
const RECORD_CRC_AT: usize = RECORD_BYTES - 4;
const PAGE_MAGIC: u32 = u32::from_le_bytes(*b"FGPG");
const PAGE_CRC_AT: usize = PAGE_HEADER_BYTES - 8;
const PAGE_HEADER_CRC_AT: usize = PAGE_HEADER_BYTES - 4;

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Closed cleanly: every page was on the disk.
    pub clean: bool,
    /// Of a clean close: the register tells of everything.
    pub exact: bool,
    /// Grows with every rewrite of the header; the higher of two valid copies counts.
    pub sequence: u64,
    /// Every operation up to that number was on the disk when the header was written.
    pub durable: u64,
    /// Whether there is a region for phase-change memory.
    pub pcm: bool,
    /// Shape of the chip, spare blocks included.
    pub geometry: Geometry,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Spare blocks and the other settings of the layers below the scheme.
    pub spares: SparesOptions,
    /// Seconds since 1970, 0 if not known.
    pub created: u64,
    /// UUID of the image.
    pub uuid: [u8; 16],
    /// Erases that the chip is rated for, 0 if not known.
    pub erase_limit: u32,
    /// Key of the scheme.
    pub scheme: String,
    /// Parameters of the chip model, as text.
    pub part: String,
    /// The scheme's options, `key=value` lines.
    pub options: String,
}

impl Header {
    /// Checks that [`Header::encode`] can store it.
    ///
    /// # Errors
    /// A refusal that names the key.
    pub fn check(&self) -> Result<(), Refusal> {
        if !(1..=PAGE_BYTES_MAX).contains(&self.page_bytes) {
            let text = format!(
                "page_bytes = {}: from 1 to {PAGE_BYTES_MAX}",
                self.page_bytes
            );
            return Err(Refusal::new("page_bytes", text));
        }
        if self.geometry.blocks() > BLOCKS_MAX {
            let text = format!(
                "{} blocks: an image has at most {BLOCKS_MAX}; take more pages a block",
                self.geometry.blocks()
            );
            return Err(Refusal::new("capacity", text));
        }
        let texts = self.scheme.len() + self.part.len() + self.options.len();
        if texts > HEADER_CRC_AT - TEXTS_AT {
            let text = format!(
                "scheme, part and options take {texts} bytes of text: at most {}",
                HEADER_CRC_AT - TEXTS_AT
            );
            return Err(Refusal::new("options", text));
        }
        crate::spares::virtual_geometry(&self.geometry, &self.spares).map(drop)
    }

    /// Version of its format.
    pub fn version(&self) -> u32 {
        if self.pcm { VERSION_WITH_PCM } else { VERSION }
    }

    /// The bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let g = &self.geometry;
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 8, &self.version().to_le_bytes());
        put(
            &mut bytes,
            12,
            &(u32::from(self.clean) << u32::from(self.exact)).to_le_bytes(),
        );
        put(&mut bytes, 16, &self.sequence.to_le_bytes());
        let numbers = [
            g.dies,
            g.blocks_per_die,
            g.pages_per_block,
            g.logical_pages,
            self.page_bytes,
        ];
        for (i, number) in numbers.iter().enumerate() {
            put(&mut bytes, 24 + 4 * i, &number.to_le_bytes());
        }
        bytes[44] = u8::from(g.program_order == ProgramOrder::Any);
        bytes[45] = code_of(&PAIR_GUARDS, &self.spares.pair_guard);
        bytes[46] = code_of(&WEAR_LEVELINGS, &self.spares.wear_leveling);
        put(&mut bytes, 48, &self.spares.spare_blocks.to_le_bytes());
        put(&mut bytes, 52, &self.spares.wear_gap.to_le_bytes());
        put(&mut bytes, 56, &self.created.to_le_bytes());
        put(&mut bytes, 64, &self.uuid);
        put(&mut bytes, 80, &self.erase_limit.to_le_bytes());
        put(&mut bytes, 92, &self.durable.to_le_bytes());
        let mut at = TEXTS_AT;
        for (i, text) in [&self.scheme, &self.part, &self.options]
            .into_iter()
            .enumerate()
        {
            put(&mut bytes, 84 + 2 * i, &(text.len() as u16).to_le_bytes());
            put(&mut bytes, at, text.as_bytes());
            at += text.len();
        }
        let crc = crc32c::crc32c(&bytes[..HEADER_CRC_AT]);
        put(&mut bytes, HEADER_CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Reads one copy.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, ImageError> {
        if bytes[..8] != MAGIC {
            return Err(ImageError::Magic);
        }
        let version = u32_at(bytes, 8);
        if !matches!(version, VERSION | VERSION_WITH_PCM) {
            return Err(ImageError::Version { version });
        }
        if u32_at(bytes, HEADER_CRC_AT) != crc32c::crc32c(&bytes[..HEADER_CRC_AT]) {
            return Err(ImageError::HeaderChecksum);
        }
        // The checksum guards against accidents; what comes from elsewhere is checked all the same.
        let bad = |what: &str| ImageError::Header { what: what.into() };
        let order = match bytes[44] {
            0 => ProgramOrder::Ascending,
            1 => ProgramOrder::Any,
            _ => return Err(bad("no such program order")),
        };
        let [dies, blocks, pages, logical, page_bytes] =
            std::array::from_fn(|i| u32_at(bytes, 24 + 4 * i));
        let geometry = Geometry::new(dies, blocks, pages, logical.into(), order)
            .map_err(|refusal| bad(&refusal.message))?;
        let spares = SparesOptions {
            spare_blocks: u32_at(bytes, 48),
            wear_gap: u32_at(bytes, 52),
            pair_guard: *of_code(&PAIR_GUARDS, bytes[45])
                .ok_or_else(|| bad("no such pair guard"))?,
            wear_leveling: *of_code(&WEAR_LEVELINGS, bytes[46])
                .ok_or_else(|| bad("no such wear levelling"))?,
        };
        let [scheme, part, options] = texts(bytes).ok_or_else(|| bad("a text that is none"))?;
        let header = Self {
            clean: matches!(u32_at(bytes, 12), 1 | 2),
            exact: u32_at(bytes, 12) == 2,
            sequence: u64_at(bytes, 16),
            durable: u64_at(bytes, 92),
            pcm: version == VERSION_WITH_PCM,
            geometry,
            page_bytes,
            spares,
            created: u64_at(bytes, 56),
            uuid: array_at(bytes, 64),
            erase_limit: u32_at(bytes, 80),
            scheme,
            part,
            options,
        };
        if header.durable >= 1 << 62 {
            return Err(bad("a number of operations that no device has done"));
        }
        header.check().map_err(|refusal| bad(&refusal.message))?;
        Ok(header)
    }
}

fn texts(bytes: &[u8; HEADER_BYTES]) -> Option<[String; 3]> {
    let mut at = TEXTS_AT;
    let mut found = [const { String::new() }; 3];
    for (i, text) in found.iter_mut().enumerate() {
        let end = at + usize::from(u16::from_le_bytes(array_at(bytes, 84 + 2 * i)));
        let raw = bytes.get(at..end).filter(|_| end <= HEADER_CRC_AT)?;
        *text = std::str::from_utf8(raw).ok()?.to_string();
        at = end;
    }
    Some(found)
}

/// Where the sections of an image lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pages_per_block: u64,
    page_bytes: u64,
    /// Where the register begins.
    register_at: u64,
    /// Where the region for phase-change memory begins, if there is one.
    pcm_at: u64,
    /// Where the first block begins.
    blocks_at: u64,
    /// Bytes of the page headers of a block, holes included.
    headers_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

impl Layout {
    /// The layout of an image with that header.
    pub fn of(header: &Header) -> Self {
        let pcm_bytes = match header.pcm {
            true => entries::region_bytes(header.geometry.logical_pages),
            false => 0,
        };
        Self::with_pcm(&header.geometry, header.page_bytes, pcm_bytes)
    }

    fn with_pcm(geometry: &Geometry, page_bytes: u32, pcm_bytes: u64) -> Self {
        let (pages, page_bytes) = (u64::from(geometry.pages_per_block), u64::from(page_bytes));
        let blocks = u64::from(geometry.blocks());
        let register_at = aligned(record_at(geometry.blocks(), 0));
        let register_pages = u64::from(geometry.logical_pages).div_ceil(REGISTER_ENTRIES as u64);
        let pcm_at = register_at + 2 * register_pages * REGISTER_BYTES as u64;
        let blocks_at = pcm_at + pcm_bytes;
        let headers_bytes = aligned(pages * PAGE_HEADER_BYTES as u64);
        let block_bytes = headers_bytes + aligned(pages * page_bytes);
        Self {
            pages_per_block: pages,
            page_bytes,
            register_at,
            pcm_at,
            blocks_at,
            headers_bytes,
            block_bytes,
            file_bytes: blocks_at + blocks * block_bytes,
        }
    }

    /// Where copy 0 or 1 of a page of the register lies.
    pub fn register_at(&self, page: usize, copy: u64) -> u64 {
        self.register_at + (2 * page as u64 + copy) * REGISTER_BYTES as u64
    }

    /// Where the seal of the entries of phase-change memory lies.
    pub fn seal_at(&self) -> u64 {
        self.pcm_at
    }

    /// Where the entry of a logical page lies.
    pub fn entry_at(&self, lpn: u32) -> u64 {
        let (page, entry) = (
            lpn as usize / entries::PAGE_ENTRIES,
            lpn as usize % entries::PAGE_ENTRIES,
        );
        let at = (1 + page) * entries::PAGE_BYTES + entry * entries::ENTRY_BYTES;
        self.pcm_at + at as u64
    }

    /// Where a block begins: with the headers of its pages.
    pub fn block_at(&self, block: u32) -> u64 {
        self.blocks_at + u64::from(block) * self.block_bytes
    }

    /// Where the header of a page lies.
    pub fn header_at(&self, page: u32) -> u64 {
        let (block, page) = self.split(page);
        self.block_at(block) + page * PAGE_HEADER_BYTES as u64
    }

    /// Where the bytes of a page lie.
    pub fn data_at(&self, page: u32) -> u64 {
        let (block, page) = self.split(page);
        self.block_at(block) + self.headers_bytes + page * self.page_bytes
    }

    fn split(&self, page: u32) -> (u32, u64) {
        let page = u64::from(page);
        (
            (page / self.pages_per_block) as u32,
            page % self.pages_per_block,
        )
    }
}

/// Where record 0 or 1 of a block lies.
pub fn record_at(block: u32, copy: u64) -> u64 {
    2 * HEADER_BYTES as u64 + (2 * u64::from(block) + copy) * RECORD_BYTES as u64
}

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN)
}

/// State of a block; all zero until its first change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BlockRecord {
    /// Grows with every rewrite; its last bit says which copy is written.
    pub version: u64,
    /// Number of the operation that wrote it.
    pub op: u64,
    /// Erases so far.
    pub erases: u32,
    /// Whether the block may be used.
    pub state: BlockState,
}

impl BlockRecord {
    /// The bytes.
    pub fn encode(&self, block: u32) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        put(&mut bytes, 0, &RECORD_MAGIC.to_le_bytes());
        put(&mut bytes, 4, &block.to_le_bytes());
        put(&mut bytes, 8, &self.version.to_le_bytes());
        put(&mut bytes, 16, &self.erases.to_le_bytes());
        bytes[20] = self.state as u8;
        put(&mut bytes, 24, &self.op.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..RECORD_CRC_AT]);
        put(&mut bytes, RECORD_CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Reads one copy; `None` if it was never written.
    ///
    /// # Errors
    /// What is wrong.
    pub fn decode(bytes: &[u8; RECORD_BYTES], block: u32) -> Result<Option<Self>, &'static str> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if u32_at(bytes, RECORD_CRC_AT) != crc32c::crc32c(&bytes[..RECORD_CRC_AT]) {
            return Err("checksum");
        }
        if u32_at(bytes, 0) != RECORD_MAGIC || u32_at(bytes, 4) != block {
            return Err("it belongs to another place");
        }
        let state = BlockState::from_code(bytes[20]).ok_or("no such state")?;
        Ok(Some(Self {
            version: u64_at(bytes, 8),
            op: u64_at(bytes, 24),
            erases: u32_at(bytes, 16),
            state,
        }))
    }
}

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// Erases of its block when it was programmed: a page from before the last erase counts as erased.
    pub era: u32,
    /// Its physical page number: a page in a wrong place is invalid.
    pub page: u32,
    /// Number of the operation that programmed it.
    pub op: u64,
    /// The spare area.
    pub spare: Spare,
    /// Checksum over this header up to here and the page's bytes.
    pub page_crc: u32,
}

/// What is wrong with the header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// Torn or rotten.
    Checksum,
    /// Valid, but it belongs to another page.
    Misplaced {
        /// Which.
        page: u32,
    },
    /// Valid, with a role that no scheme knows.
    Role {
        /// Its code.
        code: u8,
    },
    /// Valid, but another field is impossible.
    Field,
}

impl PageHeader {
    /// A header for those bytes.
    pub fn new(era: u32, page: u32, op: u64, spare: &Spare, data: &[u8]) -> Self {
        let mut header = Self {
            era,
            page,
            op,
            spare: *spare,
            page_crc: 0,
        };
        header.page_crc = page_crc(&header.encode(), data);
        header
    }

    /// The bytes.
    pub fn encode(&self) -> [u8; PAGE_HEADER_BYTES] {
        let mut bytes = [0; PAGE_HEADER_BYTES];
        let (spare, place) = (&self.spare, &self.spare.place);
        put(&mut bytes, 0, &PAGE_MAGIC.to_le_bytes());
        put(&mut bytes, 4, &self.era.to_le_bytes());
        put(&mut bytes, 8, &self.page.to_le_bytes());
        put(&mut bytes, 12, &spare.oob.lpn.0.to_le_bytes());
        put(&mut bytes, 16, &spare.sequence.to_le_bytes());
        bytes[24] = spare.oob.role as u8;
        bytes[25] = u8::from(spare.lost);
        bytes[26] = place.kind as u8;
        put(&mut bytes, 28, &spare.oob.tag.to_le_bytes());
        put(&mut bytes, 32, &place.block.to_le_bytes());
        put(&mut bytes, 36, &place.page.to_le_bytes());
        put(&mut bytes, 38, &place.moved.to_le_bytes());
        put(&mut bytes, 40, &place.generation.to_le_bytes());
        put(&mut bytes, 48, &spare.bytes);
        put(&mut bytes, 112, &place.origin.to_le_bytes());
        put(&mut bytes, 116, &place.origin_erases.to_le_bytes());
        put(&mut bytes, 120, &self.op.to_le_bytes());
        put(&mut bytes, 128, &spare.stamp.to_le_bytes());
        put(&mut bytes, PAGE_CRC_AT, &self.page_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..PAGE_HEADER_CRC_AT]);
        put(&mut bytes, PAGE_HEADER_CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Reads the header of a page; `None` if the page is erased.
    ///
    /// # Errors
    /// What is wrong.
    pub fn decode(bytes: &[u8; PAGE_HEADER_BYTES], page: u32) -> Result<Option<Self>, PageFault> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let crc = crc32c::crc32c(&bytes[..PAGE_HEADER_CRC_AT]);
        if u32_at(bytes, PAGE_HEADER_CRC_AT) != crc || u32_at(bytes, 0) != PAGE_MAGIC {
            return Err(PageFault::Checksum);
        }
        let here = u32_at(bytes, 8);
        if here != page {
            return Err(PageFault::Misplaced { page: here });
        }
        let role = *of_code(&Role::ALL, bytes[24]).ok_or(PageFault::Role { code: bytes[24] })?;
        let kind = *of_code(&PLACE_KINDS, bytes[26]).ok_or(PageFault::Field)?;
        // Numbers that leave no room for later ones are none that a device has given.
        let numbers = [16, 120, 128].map(|at| u64_at(bytes, at));
        if bytes[25] > 1 || numbers.iter().any(|&number| number >= 1 << 62) {
            return Err(PageFault::Field);
        }
        let oob = Oob {
            lpn: Lpn(u32_at(bytes, 12)),
            role,
            tag: u32_at(bytes, 28),
        };
        let place = Place {
            kind,
            block: u32_at(bytes, 32),
            page: u16::from_le_bytes(array_at(bytes, 36)),
            moved: u16::from_le_bytes(array_at(bytes, 38)),
            generation: u64_at(bytes, 40),
            origin: u32_at(bytes, 112),
            origin_erases: u32_at(bytes, 116),
        };
        let spare = Spare {
            oob,
            sequence: u64_at(bytes, 16),
            stamp: u64_at(bytes, 128),
            bytes: array_at::<SCHEME_BYTES>(bytes, 48),
            lost: bytes[25] == 1,
            place,
        };
        Ok(Some(Self {
            era: u32_at(bytes, 4),
            page: here,
            op: u64_at(bytes, 120),
            spare,
            page_crc: u32_at(bytes, PAGE_CRC_AT),
        }))
    }

    /// Whether these are the bytes that the page was programmed with.
    pub fn fits(&self, data: &[u8]) -> bool {
        page_crc(&self.encode(), data) == self.page_crc
    }
}

/// A page of the register; like a block's record it has two copies, and the last bit of the version says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterPage {
    /// Grows with every rewrite.
    pub version: u64,
    /// The entries.
    pub entries: [u64; REGISTER_ENTRIES],
}

impl RegisterPage {
    /// The bytes.
    pub fn encode(&self, page: usize) -> [u8; REGISTER_BYTES] {
        let mut bytes = [0; REGISTER_BYTES];
        for (i, entry) in self.entries.iter().enumerate() {
            put(&mut bytes, 8 * i, &entry.to_le_bytes());
        }
        put(&mut bytes, REGISTER_BYTES - 16, &self.version.to_le_bytes());
        put(&mut bytes, REGISTER_BYTES - 8, &(page as u32).to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..REGISTER_BYTES - 4]);
        put(&mut bytes, REGISTER_BYTES - 4, &crc.to_le_bytes());
        bytes
    }

    /// Reads one copy; `None` if it was never written.
    ///
    /// # Errors
    /// What is wrong.
    pub fn decode(bytes: &[u8; REGISTER_BYTES], page: usize) -> Result<Option<Self>, &'static str> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if u32_at(bytes, REGISTER_BYTES - 4) != crc32c::crc32c(&bytes[..REGISTER_BYTES - 4]) {
            return Err("checksum");
        }
        if u32_at(bytes, REGISTER_BYTES - 8) != page as u32 {
            return Err("it belongs to another place");
        }
        Ok(Some(Self {
            version: u64_at(bytes, REGISTER_BYTES - 16),
            entries: std::array::from_fn(|i| u64_at(bytes, 8 * i)),
        }))
    }
}

fn page_crc(header: &[u8; PAGE_HEADER_BYTES], data: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..PAGE_CRC_AT]), data)
}

const PAIR_GUARDS: [PairGuard; 3] = [PairGuard::Off, PairGuard::Flushed, PairGuard::Always];
const WEAR_LEVELINGS: [WearLeveling; 3] = [
    WearLeveling::Off,
    WearLeveling::Dynamic,
    WearLeveling::Static,
];
const PLACE_KINDS: [PlaceKind; 4] = [
    PlaceKind::Plain,
    PlaceKind::Mapped,
    PlaceKind::Moved,
    PlaceKind::Backup,
];

/// The name shown to users and in JSON. A new role must be added to `Role::ALL` too, and here, where the compiler
/// requires it.
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Data => "data",
        Role::Log => "log",
        Role::LogSequential => "log-sequential",
        Role::LogHot => "log-hot",
        Role::LogCold => "log-cold",
        Role::Map => "map",
        Role::Summary => "summary",
        Role::LogChance => "log-chance",
        Role::LogIsolation => "log-isolation",
    }
}

/// The words of the two options, for users and JSON.
pub fn spares_words(spares: &SparesOptions) -> (String, String) {
    (spares.pair_guard.show(), spares.wear_leveling.show())
}

fn code_of<T: PartialEq>(all: &[T], value: &T) -> u8 {
    all.iter().position(|one| one == value).unwrap_or(0) as u8
}

fn of_code<T>(all: &[T], code: u8) -> Option<&T> {
    all.get(usize::from(code))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_kinds_stand_at_their_codes() {
        for (code, role) in Role::ALL.into_iter().enumerate() {
            assert_eq!(role as usize, code, "{}", role_name(role));
        }
        for (code, kind) in PLACE_KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, code);
        }
    }

    #[test]
    fn a_page_header_knows_its_bytes_and_its_place() {
        let mut spare = Spare::new(Oob::new(Lpn(7), Role::Summary), 99);
        spare.bytes[63] = 5;
        spare.place = Place {
            kind: PlaceKind::Moved,
            block: 3,
            page: 9,
            moved: 4,
            generation: 1 << 40,
            origin: 77,
            origin_erases: 8,
        };
        let header = PageHeader::new(2, 41, 17, &spare, b"content");
        let bytes = header.encode();
        assert_eq!(PageHeader::decode(&bytes, 41), Ok(Some(header)));
        assert_eq!(
            PageHeader::decode(&bytes, 42),
            Err(PageFault::Misplaced { page: 41 })
        );
        assert!(header.fits(b"content") && !header.fits(b"contend"));
        for bit in 0..8 * PAGE_HEADER_BYTES {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PageHeader::decode(&torn, 41), Err(PageFault::Checksum));
        }
        assert_eq!(PageHeader::decode(&[0; PAGE_HEADER_BYTES], 1), Ok(None));
    }
}
