//! How much memory a run needs, how much there is, and how much is held.

use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

use stats_alloc::INSTRUMENTED_SYSTEM;

use crate::errors::{Outcome, Problem};
use crate::table::bytes;

/// Bytes that this process may still take: what the system has available, and less if a control group
/// limits it. None where the system does not say.
pub fn available() -> Option<u64> {
    [system(), control_group(), control_group_v1()]
        .into_iter()
        .flatten()
        .min()
}

/// Bytes that this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Bytes.
    pub bytes: u64,
    counted: bool,
}

impl Held {
    /// At this moment: what is allocated, if the program counts its allocations (as `floatgate` does), else what
    /// of it is resident in memory.
    pub fn now() -> Self {
        let stats = INSTRUMENTED_SYSTEM.stats();
        let counted = stats.allocations > 0;
        let allocated = stats
            .bytes_allocated
            .saturating_sub(stats.bytes_deallocated) as u64;
        Self {
            bytes: if counted { allocated } else { resident() },
            counted,
        }
    }

    /// What came since an earlier moment.
    pub fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            ..self
        }
    }

    /// How it was found out.
    pub fn how(self) -> &'static str {
        if self.counted {
            "bytes allocated"
        } else {
            "growth of the resident set"
        }
    }
}

/// Resident bytes of this process; 0 where the system does not say.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

/// Refuses what does not fit, before the memory is taken.
///
/// # Errors
/// If more is needed than there is.
pub fn check(needed: u64, available: Option<u64>, what: &str) -> Outcome<()> {
    match available.filter(|&available| needed > available) {
        None => Ok(()),
        Some(available) => Err(Problem::new(format!(
            "{what} needs about {} of memory, but only {} are available",
            bytes(needed as f64),
            bytes(available as f64)
        ))
        .help("a smaller device (device.capacity_mib), fewer schemes at a time (--jobs 1), or a larger machine")),
    }
}

fn system() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// What is left of the limits of this process's control group and of those above it.
fn control_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let own = root.join(own);
    own.ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(left_of)
        .min()
}

fn left_of(folder: &Path) -> Option<u64> {
    let limit = number(&folder.join("memory.max"))?;
    let used = number(&folder.join("memory.current"))?;
    Some(limit.saturating_sub(used.saturating_sub(reclaimable(folder))))
}

/// File pages that the kernel would give back.
fn reclaimable(folder: &Path) -> u64 {
    let text = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok())
        .unwrap_or(0)
}

fn control_group_v1() -> Option<u64> {
    let root = Path::new("/sys/fs/cgroup/memory");
    let limit = number(&root.join("memory.limit_in_bytes"))?;
    Some(limit.saturating_sub(number(&root.join("memory.usage_in_bytes"))?))
}

/// A file that holds one number; none for `max`.
fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Share of the free memory that devices may take.
const SHARE: f64 = 0.9;

/// Memory that the devices of all workers share: who does not get enough of it waits.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    free: Mutex<u64>,
    given_back: Condvar,
}

/// Memory taken; dropping it gives it back.
#[derive(Debug)]
pub struct Lease<'a> {
    budget: &'a Budget,
    bytes: u64,
}

impl Budget {
    /// Nine tenths of what is free now.
    pub fn of_what_is_free() -> Self {
        let free = available().map(|free| (free as f64 * SHARE) as u64);
        Self::new(free.unwrap_or(u64::MAX))
    }

    fn new(total: u64) -> Self {
        Self {
            total,
            free: Mutex::new(total),
            given_back: Condvar::new(),
        }
    }

    /// Bytes in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Waits until so much is free.
    ///
    /// # Errors
    /// If there will never be so much.
    pub fn take(&self, bytes: u64) -> Outcome<Lease<'_>> {
        check(bytes, Some(self.total), "the device")?;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = self.given_back.wait_while(free, |free| *free < bytes);
        *enough.unwrap_or_else(PoisonError::into_inner) -= bytes;
        Ok(Lease {
            budget: self,
            bytes,
        })
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let free = &self.budget.free;
        *free.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.budget.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn never_more_memory_is_out_than_there_is() {
        let budget = Budget::new(10);
        let (out, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (budget, out, most) = (&budget, &out, &most);
                scope.spawn(move || {
                    for i in 0..500 {
                        let bytes = 1 + (worker + i) % 6;
                        let lease = budget.take(bytes).unwrap();
                        most.fetch_max(
                            out.fetch_add(bytes, Ordering::SeqCst) + bytes,
                            Ordering::SeqCst,
                        );
                        out.fetch_sub(bytes, Ordering::SeqCst);
                        drop(lease);
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 10);
        assert!(budget.take(11).is_err());
    }

    #[test]
    fn what_is_held_grows_with_a_table() {
        let before = Held::now();
        let table = vec![1_u8; 64 << 20];
        let held = Held::now().since(before);
        assert!(table.iter().all(|&b| b == 1));
        // The program of the tests does not count: pages of other tests may come and go.
        assert_eq!(held.how(), "growth of the resident set");
        assert!(held.bytes > 32 << 20, "{held:?}");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        assert!(check(10, Some(10), "the run").is_ok());
        assert!(check(10, None, "the run").is_ok());
        let problem = check(3 << 30, Some(1 << 30), "the run").unwrap_err();
        assert_eq!(
            problem.message(),
            "the run needs about 3.00 GiB of memory, but only 1.00 GiB are available"
        );
    }
}
