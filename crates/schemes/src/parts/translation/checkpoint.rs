//! What the OOB of every translation page says of the map as a whole, so that a recovery knows how far it can
//! trust the map on flash.

use floatgate_core::state;
/// The state of the map when a translation page was programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checkpoint {
    /// Every change of the map with a lower sequence number is in the translation pages on flash.
    pub pending: u64,
    /// Sequence number before which all blocks were closed: that of the last recovery.
    pub closed: u64,
    /// Version of this translation page: how often it has been written since the map was made. A move leaves it as it is.
    pub version: u32,
    /// The sum of the versions of all translation pages, modulo 2^32: if the newest copies do not add up to it, one is missing
    /// or older than it was.
    pub writes: u32,
    /// Entries of a translation page.
    pub entries: u32,
    /// What else the promise rests on: options of the scheme, never 0.
    pub writer: u8,
}

state!(Checkpoint {
    pending,
    closed,
    version,
    writes,
    entries,
    writer,
});

impl Checkpoint {
    const BYTES: usize = 29;

    /// Writes it into the scheme's bytes of an OOB.
    pub fn put(&self, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&self.pending.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.closed.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.writes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.entries.to_le_bytes());
        bytes[24] = self.writer;
        bytes[25..29].copy_from_slice(&self.version.to_le_bytes());
    }

    /// Reads it from the scheme's bytes of an OOB; all zeroes where there are none.
    pub fn of(bytes: &[u8]) -> Self {
        let mut own = [0; Self::BYTES];
        let there = bytes.len().min(Self::BYTES);
        own[..there].copy_from_slice(&bytes[..there]);
        let word = |at: usize| own[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Self {
            pending: long(0),
            closed: long(8),
            version: word(25),
            writes: word(16),
            entries: word(20),
            writer: own[24],
        }
    }

    /// Whether a map with those entries a page and that writer can be read from such a page.
    pub fn fits(&self, entries: u32, writer: u8) -> bool {
        self.entries == entries && self.writer == writer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_what_it_wrote() {
        let checkpoint = Checkpoint {
            pending: 0x0102_0304_0506_0708,
            closed: u64::MAX - 5,
            version: 70_000,
            writes: u32::MAX - 3,
            entries: 512,
            writer: 7,
        };
        let mut bytes = [0; floatgate_core::flash::SCHEME_OOB_BYTES];
        checkpoint.put(&mut bytes);
        assert_eq!(Checkpoint::of(&bytes), checkpoint);
        assert_eq!(Checkpoint::of(&[]), Checkpoint::default());
    }
}
