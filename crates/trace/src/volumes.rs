//! Numbers for volumes and processes that a trace names by text.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::Stream;
use crate::error::Fault;

/// More volumes than any known trace has (Tencent: 5,584); stops on damaged files.
const MAX_VOLUMES: usize = 1 << 20;
/// Longer names are refused.
const MAX_NAME: usize = 256;

/// What is numbered.
#[derive(Clone, Copy, Default)]
enum What {
    #[default]
    Volume,
    Process,
}

/// The volumes of a trace.
pub(crate) type Volumes = Names;

/// Names in the order of their first appearance; a name's number is its place.
#[derive(Default)]
pub(crate) struct Names {
    what: What,
    numbers: HashMap<Box<[u8]>, u32, FxBuildHasher>,
    names: Vec<String>,
    last: Vec<u8>,
    last_number: u32,
}

impl Names {
    /// Names of processes; there are as many as there can be streams.
    pub fn of_processes() -> Self {
        Self {
            what: What::Process,
            ..Self::default()
        }
    }

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
                self.check_new(name)?;
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

    #[cold]
    fn check_new(&self, name: &[u8]) -> Result<(), Fault> {
        let (one, many, max, hint) = match self.what {
            What::Volume => (
                "volume",
                "volumes",
                MAX_VOLUMES,
                "check which column holds the volume",
            ),
            What::Process => (
                "process",
                "processes that write",
                Stream::MAX as usize + 1,
                "there are no more streams; leave streams by process out",
            ),
        };
        if name.len() > MAX_NAME {
            return Err(Fault::new(format!(
                "a {one} name is longer than {MAX_NAME} bytes"
            )));
        }
        if self.names.len() >= max {
            return Err(Fault::new(format!("more than {max} {many}")).hint(hint));
        }
        Ok(())
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

    #[test]
    fn no_more_processes_than_streams() {
        let mut processes = Names::of_processes();
        for i in 0..=Stream::MAX {
            assert_eq!(processes.number(i.to_string().as_bytes()).unwrap(), i);
        }
        let fault = processes.number(b"one more").unwrap_err();
        assert_eq!(fault.message, "more than 65535 processes that write");
        assert_eq!(processes.number(b"7").unwrap(), 7);
    }
}
