//! Numbers for volumes that a trace names by text.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::error::Fault;

/// More volumes than any known trace has (Tencent: 5,584); stops on damaged files.
const MAX_VOLUMES: usize = 1 << 20;
/// Longer names are refused.
const MAX_NAME: usize = 256;

/// Volume names in the order of their first appearance; a volume's number is its place.
#[derive(Default)]
pub(crate) struct Volumes {
    numbers: HashMap<Box<[u8]>, u32, FxBuildHasher>,
    names: Vec<String>,
    last: Vec<u8>,
    last_number: u32,
}

impl Volumes {
    /// The number of a name; a new one for a new name.
    #[inline]
    pub fn number(&mut self, name: &[u8]) -> Result<u32, Fault> {
        if name == &self.last[..] && !self.names.is_empty() {
            return Ok(self.last_number);
        }
        self.lookup(name)
    }

    fn lookup(&mut self, name: &[u8]) -> Result<u32, Fault> {
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                if name.len() > MAX_NAME {
                    return Err(Fault::new(format!(
                        "a volume name is longer than {MAX_NAME} bytes"
                    )));
                }
                if self.names.len() >= MAX_VOLUMES {
                    return Err(Fault::new(format!("more than {MAX_VOLUMES} volumes"))
                        .hint("check which column holds the volume"));
                }
                let number = self.names.len() as u32;
                self.numbers.insert(name.into(), number);
                self.names.push(crate::error::excerpt(name));
                number
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number = number;
        Ok(number)
    }

    /// The name of a number; the number itself in formats that number their volumes.
    pub fn name(&self, number: u32) -> String {
        match self.names.get(number as usize) {
            Some(name) => name.clone(),
            None => number.to_string(),
        }
    }

    /// All names so far.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_order_of_appearance() {
        let mut volumes = Volumes::default();
        assert_eq!(volumes.number(b"b").unwrap(), 0);
        assert_eq!(volumes.number(b"").unwrap(), 1);
        assert_eq!(volumes.number(b"b").unwrap(), 0);
        assert_eq!(volumes.name(0), "b");
        assert_eq!(volumes.name(7), "7");
        assert!(volumes.number(&[b'x'; 300]).is_err());
    }
}
