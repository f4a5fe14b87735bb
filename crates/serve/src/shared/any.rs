//! Ranges that are no multiples of sectors, as readers and writers of a file ask for. A sector that a range covers in
//! part is read, changed and written while the device is locked, so that no other client's write to the same sector
//! is lost. Listeners hear of whole sectors.

use super::{Failure, Shared};
use crate::power::Step;
use crate::stat::Kind;
use crate::tap::{Asked, Change};

/// A part of a range: whole sectors, or bytes of one.
struct Part {
    at: u64,
    bytes: u64,
    is_whole: bool,
}

impl Shared {
    /// Reads any range of the device; the bytes lie in the buffer, which is reused.
    ///
    /// # Errors
    /// As [`Shared::read`].
    pub fn read_any<'a>(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Failure> {
        let (first, end) = self.around(offset, bytes as u64);
        buffer.resize((end - first) as usize, 0);
        self.read(first, buffer)?;
        Ok(&buffer[(offset - first) as usize..][..bytes])
    }

    /// Writes any range of the device.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn write_any(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), Failure> {
        let (first, end) = self.around(offset, data.len() as u64);
        let bytes = end - first;
        self.timed(Kind::Write, data.len() as u64, |until_ns| {
            self.asked(Asked::Write {
                offset: first,
                bytes,
                fua,
            })?;
            for part in self.parts(offset, data.len() as u64) {
                let data = &data[(part.at - offset) as usize..][..part.bytes as usize];
                match part.is_whole {
                    true => self.write_pieces(part.at, data, fua, until_ns)?,
                    false => {
                        self.patch(&part, fua, until_ns, |bytes| bytes.copy_from_slice(data))?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Makes any range of the device read as zeroes.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn zero_any(&self, offset: u64, bytes: u64, may_drop: bool) -> Result<(), Failure> {
        for part in self.parts(offset, bytes) {
            if part.is_whole {
                self.write_zeroes(part.at, part.bytes, may_drop)?;
            } else {
                let (offset, end) = self.around(part.at, part.bytes);
                let (bytes, fua) = (end - offset, false);
                self.timed(Kind::WriteZeroes, part.bytes, |until_ns| {
                    self.asked(Asked::Write { offset, bytes, fua })?;
                    self.patch(&part, fua, until_ns, |bytes| bytes.fill(0))
                })?;
            }
        }
        Ok(())
    }

    /// The sectors that a range touches: their first byte, and the first behind them.
    fn around(&self, offset: u64, bytes: u64) -> (u64, u64) {
        let sector = u64::from(self.export.sector_bytes);
        let first = offset / sector * sector;
        (first, (offset + bytes).next_multiple_of(sector))
    }

    /// A range as at most three parts.
    fn parts(&self, offset: u64, bytes: u64) -> impl Iterator<Item = Part> + use<> {
        let sector = u64::from(self.export.sector_bytes);
        let (mut at, end) = (offset, offset + bytes);
        std::iter::from_fn(move || {
            let whole = (end / sector * sector).saturating_sub(at);
            let is_whole = at.is_multiple_of(sector) && whole > 0;
            let bytes = match is_whole {
                true => whole,
                false => (sector - at % sector).min(end - at),
            };
            let part = Part {
                at,
                bytes,
                is_whole,
            };
            at += bytes;
            (bytes > 0).then_some(part)
        })
    }

    /// Changes bytes of one sector.
    fn patch(
        &self,
        part: &Part,
        fua: bool,
        until_ns: &mut u64,
        edit: impl FnOnce(&mut [u8]),
    ) -> Result<(), Failure> {
        let (offset, end) = self.around(part.at, part.bytes);
        let mut sector = vec![0; (end - offset) as usize];
        let mut state = self.lock()?;
        let now_ns = self.now_ns();
        state.power.check_readable(offset, end - offset)?;
        state.on(now_ns, until_ns, |drive| {
            drive.tick(now_ns)?;
            drive.read(self.sector(offset), &mut sector)
        })?;
        edit(&mut sector[(part.at - offset) as usize..][..part.bytes as usize]);
        let data = &sector;
        let change = Change::Write { offset, data, fua };
        let step = Step::of(&change);
        let place = self.sector(state.power.place_of(&step, self.export));
        state.change(step, now_ns, until_ns, |drive| match fua {
            true => drive.write_through(place, data),
            false => drive.write(place, data),
        })?;
        state.taps.iter_mut().for_each(|tap| tap.done(&change));
        state.note_done();
        Ok(())
    }
}
