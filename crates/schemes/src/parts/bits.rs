//! Numbers of any width packed one after the other without a gap, lowest bit first (the lowest bit of byte 0 is
//! the first): page tables in OOBs, snapshots.

/// Widest number that can be packed: it and the bits of a byte begun before it fit 64.
const WIDTH_MAX: u32 = 57;

/// Packs numbers into bytes. What is behind the last number's byte is left alone.
#[derive(Debug)]
pub struct BitWriter<'a> {
    bytes: std::slice::IterMut<'a, u8>,
    held: u64,
    bits: u32,
}

impl<'a> BitWriter<'a> {
    /// Packs from the first byte on.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self {
            bytes: bytes.iter_mut(),
            held: 0,
            bits: 0,
        }
    }

    /// Appends a number of `width` bits.
    ///
    /// # Panics
    /// If the bytes are used up.
    pub fn put(&mut self, value: u64, width: u32) {
        debug_assert!(width <= WIDTH_MAX && value >> width == 0);
        self.held |= value << self.bits;
        self.bits += width;
        while self.bits >= 8 {
            self.put_byte();
            self.bits -= 8;
        }
    }

    fn put_byte(&mut self) {
        *self.bytes.next().expect("the numbers fit the bytes") = self.held as u8;
        self.held >>= 8;
    }

    /// Writes the last bits, with zeroes up to the end of their byte.
    pub fn finish(mut self) {
        if self.bits > 0 {
            self.put_byte();
        }
    }
}

/// The number of `width` bits that begins at bit `first`.
///
/// # Panics
/// If the bytes end before.
pub fn bits_at(bytes: &[u8], first: u64, width: u32) -> u64 {
    debug_assert!(width <= WIDTH_MAX && first + u64::from(width) <= 8 * bytes.len() as u64);
    let mut window = [0; 8];
    let from = &bytes[(first / 8) as usize..];
    let len = from.len().min(8);
    window[..len].copy_from_slice(&from[..len]);
    u64::from_le_bytes(window) >> (first % 8) & ((1 << width) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_come_back() {
        let mut rng = floatgate_core::rng::SplitMix64::new(9);
        for width in 0..=WIDTH_MAX {
            let count = 8 * 64 / u64::from(width.max(1));
            let values: Vec<u64> = (0..count)
                .map(|_| rng.next() & ((1 << width) - 1))
                .collect();
            let mut bytes = [0xFF; 64];
            let mut writer = BitWriter::new(&mut bytes);
            values.iter().for_each(|&value| writer.put(value, width));
            writer.finish();
            for (i, &value) in (0..).zip(&values) {
                assert_eq!(bits_at(&bytes, i * u64::from(width), width), value);
            }
            let used = (count * u64::from(width)).div_ceil(8) as usize;
            assert!(bytes[used..].iter().all(|&byte| byte == 0xFF));
        }
    }
}
