//! Work on all processors: some tasks at a time, the longest first.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::Settings;

/// Tasks at a time: as given, or as set, or one a processor; never more than there are.
pub fn workers(given: Option<u32>, settings: &Settings, tasks: usize) -> usize {
    let given = given
        .or_else(|| settings.small("compare.jobs"))
        .map(|n| n as usize);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    given.unwrap_or(processors).clamp(1, tasks.max(1))
}

/// Does every task once, `workers` at a time, those of the largest `cost` first: the last ones under way are
/// short then. Results stand in the order of the tasks.
pub fn all<T: Send>(
    tasks: usize,
    workers: usize,
    cost: impl Fn(usize) -> u64,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut order: Vec<usize> = (0..tasks).collect();
    order.sort_by_key(|&task| std::cmp::Reverse(cost(task)));
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..tasks).map(|_| None).collect::<Vec<Option<T>>>());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(&task) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(task);
                    // No worker panics while it holds the lock.
                    let mut results = results.lock().unwrap_or_else(|e| e.into_inner());
                    results[task] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_order_and_the_longest_begin() {
        let begun = Mutex::new(Vec::new());
        let costs = [3, 9, 1, 9];
        let squares = all(
            4,
            1,
            |task| costs[task],
            |task| {
                begun.lock().unwrap().push(task);
                task * task
            },
        );
        assert_eq!(squares, [0, 1, 4, 9]);
        assert_eq!(begun.into_inner().unwrap(), [1, 3, 0, 2]);
        assert_eq!(all(1000, 8, |_| 0, |task| task).len(), 1000);
    }
}
