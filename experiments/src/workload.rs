//! Workloads in memory: recorded ones by name or file, generated ones.

use floatgate_sim::config::Host;
use floatgate_trace::{Op, OpenOptions, Request, generate, open, open_reader};
use rustc_hash::FxHashSet;

/// The traces inside the program.
const BUNDLED: [(&str, &str, &[u8]); 2] = [
    (
        "desktop",
        "desktop.csv.xz",
        include_bytes!("../../traces/desktop.csv.xz"),
    ),
    (
        "oltp-postgres",
        "oltp-postgres.csv.xz",
        include_bytes!("../../traces/oltp-postgres.csv.xz"),
    ),
];

/// Requests read at a time.
const BATCH: usize = 1 << 16;

/// A workload in memory.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// Its requests.
    pub requests: Vec<Request>,
}

impl Workload {
    /// A bundled trace or a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(name: &str) -> Result<Self, String> {
        let options = OpenOptions::default();
        let reader = match BUNDLED.iter().find(|(bundled, ..)| *bundled == name) {
            Some(&(_, file, bytes)) => open_reader(file, Box::new(bytes), &options),
            None => open(name, &options),
        };
        let mut reader = reader.map_err(|e| e.to_string())?;
        let mut requests = Vec::new();
        while reader
            .next_batch(&mut requests, BATCH)
            .map_err(|e| e.to_string())?
            > 0
        {}
        // A path says too much in a table.
        let short = std::path::Path::new(name)
            .file_name()
            .map_or(name.into(), |n| n.to_string_lossy().into_owned());
        Ok(Self {
            name: short,
            requests,
        })
    }

    /// A generated workload in whole pages.
    ///
    /// # Errors
    /// If the generator does not take the parameters.
    pub fn generated(
        name: impl Into<String>,
        generator: &str,
        params: &[(&str, &str)],
        page_bytes: u32,
    ) -> Result<Self, String> {
        let pages = generate::build(generator, params).map_err(|e| e.to_string())?;
        Ok(Self {
            name: name.into(),
            requests: pages
                .map(|request| request.to_request(page_bytes))
                .collect(),
        })
    }

    /// Bytes that its writes ask for.
    pub fn written_bytes(&self) -> u64 {
        self.requests
            .iter()
            .filter(|r| r.op == Op::Write)
            .map(|r| r.bytes)
            .sum()
    }

    /// Pages that the regions touched by its reads and writes have.
    pub fn touched_pages(&self, host: &Host, page_bytes: u32) -> u64 {
        let region_pages = u64::from(host.region_pages(page_bytes));
        let region_bytes = region_pages * u64::from(page_bytes);
        let mut regions = FxHashSet::default();
        for r in self
            .requests
            .iter()
            .filter(|r| matches!(r.op, Op::Read | Op::Write) && r.bytes > 0)
        {
            let last = (r.end() - 1) / region_bytes;
            regions.extend((r.offset / region_bytes..=last).map(|region| (r.volume, region)));
        }
        regions.len() as u64 * region_pages
    }

    /// The same writes, each request of `n` pages as `n` requests of one page; nothing but writes.
    pub fn page_writes(&self, page_bytes: u32) -> Self {
        let page_bytes = u64::from(page_bytes);
        let mut requests = Vec::new();
        for r in self
            .requests
            .iter()
            .filter(|r| r.op == Op::Write && r.bytes > 0)
        {
            for page in r.offset / page_bytes..=(r.end() - 1) / page_bytes {
                requests.push(Request {
                    offset: page * page_bytes,
                    bytes: page_bytes,
                    ..*r
                });
            }
        }
        Self {
            name: self.name.clone(),
            requests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, bytes: u64) -> Request {
        Request {
            arrival_ns: 0,
            op: Op::Write,
            volume: 0,
            offset,
            bytes,
        }
    }

    #[test]
    fn a_write_becomes_the_pages_it_touches() {
        let workload = Workload {
            name: "t".into(),
            requests: vec![write(2047, 2), write(1 << 20, 2048)],
        };
        let offsets: Vec<u64> = workload
            .page_writes(2048)
            .requests
            .iter()
            .map(|r| r.offset)
            .collect();
        assert_eq!(offsets, [0, 2048, 1 << 20]);
        assert_eq!(workload.touched_pages(&Host::default(), 2048), 1024);
        assert_eq!(workload.written_bytes(), 2050);
    }
}
