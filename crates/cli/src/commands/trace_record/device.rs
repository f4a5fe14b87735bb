//! A block device as the kernel numbers it.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use super::said;
use crate::errors::{Outcome, Problem};

/// A disk, or a part of one.
pub struct Device {
    /// Major and minor number of the disk, which is what the kernel tells of a request.
    pub disk: (u32, u32),
    /// The partition's first sector and its sectors, of 512 bytes.
    part: Option<(u64, u64)>,
}

impl Device {
    pub fn of(path: &Path) -> Outcome<Self> {
        let shown = path.display();
        let unusable = |why: String| {
            Problem::new(format!("{shown}: {why}"))
                .help("name a block device, as /dev/sda or /dev/nvme0n1p2; lsblk lists them")
        };
        let found = std::fs::metadata(path).map_err(|error| unusable(error.to_string()))?;
        if !found.file_type().is_block_device() {
            return Err(unusable("it is no block device".into()));
        }
        let number = found.rdev();
        let entry = format!("/sys/dev/block/{}:{}", major(number), minor(number));
        let entry = PathBuf::from(entry);
        if !entry.join("partition").exists() {
            let disk = (major(number), minor(number));
            return Ok(Self { disk, part: None });
        }
        let of_part = || {
            // The folder behind the link lies in that of its disk.
            let folder = entry.canonicalize().ok()?;
            let disk = said(&folder.parent()?.join("dev")).ok()?;
            let (disk_major, disk_minor) = disk.split_once(':')?;
            let number = |name: &str| said(&folder.join(name)).ok()?.parse().ok();
            Some(Self {
                disk: (disk_major.parse().ok()?, disk_minor.parse().ok()?),
                part: Some((number("start")?, number("size")?)),
            })
        };
        of_part().ok_or_else(|| unusable("its disk is not in /sys".into()))
    }

    /// Where a request lies in bytes, if it is one of ours. A flush is of the whole disk.
    pub fn offset(&self, sector: u64, sectors: u64) -> Option<u64> {
        let Some((first, size)) = self.part.filter(|_| sectors > 0) else {
            return sector.checked_mul(512);
        };
        let inside = sector.checked_sub(first)?;
        (inside + sectors <= size).then_some(inside * 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_counts_from_its_beginning() {
        let part = Device {
            disk: (8, 0),
            part: Some((2048, 100)),
        };
        assert_eq!(part.offset(2048, 8), Some(0));
        assert_eq!(part.offset(2140, 8), Some(92 * 512));
        assert_eq!(part.offset(2141, 8), None);
        assert_eq!(part.offset(0, 8), None);
        assert_eq!(part.offset(0, 0), Some(0));
    }
}
