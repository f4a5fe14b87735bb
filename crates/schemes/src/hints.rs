//! The one corner with `unsafe`: hints to the processor and to the system's memory. Neither can change a
//! result, only how long it takes.
#![allow(unsafe_code)]

use std::ops::Range;

/// Asks for an entry of a table before it is needed. An index past the end is no error.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let entry = table.as_ptr().wrapping_add(index);
        // SAFETY: the instruction is a hint: it reads nothing and faults on no address, whatever it is.
        unsafe { _mm_prefetch(entry.cast::<i8>(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}

/// The same for some entries that follow each other.
pub fn prefetch_all<T>(table: &[T], entries: Range<usize>) {
    const CACHE_LINE_BYTES: usize = 64;
    let step = (CACHE_LINE_BYTES / size_of::<T>().max(1)).max(1);
    entries.step_by(step).for_each(|i| prefetch(table, i));
}

/// A table of `entries` times the same value, in huge pages where the system gives them: random accesses to
/// a large map then miss the translation buffer far less often.
pub fn large_table<T: Copy>(value: T, entries: usize) -> Vec<T> {
    let mut table = Vec::with_capacity(entries);
    advise_huge(&mut table);
    table.resize(entries, value);
    table
}

/// Smallest table worth huge pages, bytes.
const HUGE_FROM_BYTES: usize = 4 << 20;

fn advise_huge<T>(table: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = table.capacity() * size_of::<T>();
        if bytes < HUGE_FROM_BYTES {
            return;
        }
        let start = (table.as_mut_ptr() as usize).next_multiple_of(PAGE);
        let end = (table.as_mut_ptr() as usize + bytes) / PAGE * PAGE;
        // SAFETY: the range lies inside the vector's own allocation, and the advice changes no content. Where it
        // is refused everything goes on as before.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = table;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_any_size_hold_their_value() {
        for entries in [0, 1, 1 << 20, (5 << 20) + 3] {
            let table = large_table(7_u32, entries);
            assert_eq!(table.len(), entries);
            assert!(table.iter().all(|&v| v == 7));
            prefetch(&table, entries);
            prefetch(&table, 0);
        }
    }
}
