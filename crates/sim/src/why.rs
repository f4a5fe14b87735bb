//! Why requests took so long: rows of requests in, a summary out, in memory that does not grow with the run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::histogram::{Histogram, rank};
use crate::host::Kind;
use crate::record::{Explained, Explanation, PartsAt, SizeClass, SlowRequest, Wait};
use crate::requests::{Behind, RequestRow};

/// Percentiles at which the parts of the response are told.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];
/// Rows that are kept for the chains: a request rarely waits for one that came long before.
const KEPT_ROWS: usize = 1 << 16;
/// Requests of a chain that are told of.
const HEAVIEST: usize = 3;

/// Sums over requests of about one response time.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    requests: u64,
    response_ns: u128,
    queueing_ns: u128,
    translation_ns: u128,
    flash_ns: u128,
    gc_ns: u128,
}

impl Parts {
    fn add(&mut self, row: &RequestRow) {
        self.requests += 1;
        self.response_ns += u128::from(row.response_ns());
        self.queueing_ns += u128::from(row.queueing_ns());
        self.translation_ns += u128::from(row.work.translation_ns);
        self.flash_ns += u128::from(row.work.flash_ns);
        self.gc_ns += u128::from(row.work.gc_ns);
    }

    fn at(&self, percentile: f64) -> PartsAt {
        let mean_us = |ns: u128| ns as f64 / 1000.0 / self.requests as f64;
        PartsAt {
            percentile,
            requests: self.requests,
            response_us: mean_us(self.response_ns),
            queueing_us: mean_us(self.queueing_ns),
            translation_us: mean_us(self.translation_ns),
            flash_us: mean_us(self.flash_ns),
            gc_us: mean_us(self.gc_ns),
        }
    }
}

/// Responses of one size.
#[derive(Clone, Debug, Default)]
struct Size {
    count: u64,
    sum_ns: u128,
    max_ns: u64,
    histogram: Histogram<5>,
}

/// Takes the rows of a run, in the order of the trace.
#[derive(Debug, Default)]
pub struct Why {
    parts: BTreeMap<usize, Parts>,
    /// By kind, and by the power of two that the pages reach.
    sizes: BTreeMap<(bool, u32), Size>,
    /// The slowest by response and number, and how many are wanted.
    slowest: BTreeMap<(u64, Reverse<u64>), Slowest>,
    wanted: usize,
    recent: VecDeque<(Rc<RequestRow>, Chain)>,
}

/// A slow request.
#[derive(Clone, Debug)]
pub struct Slowest {
    /// Its row.
    pub row: RequestRow,
    /// What is told of it.
    pub slow: SlowRequest,
}

/// The requests of which each waited for the one before, from the last that did not wait for any.
#[derive(Clone, Debug, Default)]
struct Chain {
    requests: u64,
    behind_background: bool,
    /// Those with the most work, the latest first.
    heaviest: Vec<Rc<RequestRow>>,
}

impl Chain {
    /// The chain behind a request that waited for `row`, which has this chain behind it.
    fn and(&self, row: &Rc<RequestRow>) -> Self {
        let mut heaviest = Vec::with_capacity(HEAVIEST + 1);
        heaviest.push(Rc::clone(row));
        heaviest.extend(self.heaviest.iter().cloned());
        if heaviest.len() > HEAVIEST {
            let lightest = (0..heaviest.len()).min_by_key(|&i| heaviest[i].work.sum_ns());
            heaviest.remove(lightest.unwrap_or(0));
        }
        Self {
            requests: self.requests + 1,
            behind_background: self.behind_background,
            heaviest,
        }
    }
}

impl Why {
    /// Nothing seen yet; of the slowest requests so many are kept.
    pub fn new(slowest: usize) -> Self {
        Self {
            wanted: slowest,
            ..Self::default()
        }
    }

    /// Takes rows.
    pub fn add(&mut self, rows: &[RequestRow]) {
        rows.iter().for_each(|row| self.add_row(row));
    }

    fn add_row(&mut self, row: &RequestRow) {
        let response_ns = row.response_ns();
        if matches!(row.kind, Kind::Read | Kind::Write) {
            let class = Histogram::<5>::class_of(response_ns);
            self.parts.entry(class).or_default().add(row);
            let key = (
                row.kind == Kind::Write,
                row.pages.max(1).next_power_of_two(),
            );
            let size = self.sizes.entry(key).or_default();
            size.count += 1;
            size.sum_ns += u128::from(response_ns);
            size.max_ns = size.max_ns.max(response_ns);
            size.histogram.add(response_ns, 1);
        }
        if self.wanted > 0 {
            self.keep(row, response_ns);
        }
    }

    fn keep(&mut self, row: &RequestRow, response_ns: u64) {
        let chain = self.chain(row);
        let key = (response_ns, Reverse(row.request));
        let is_full = self.slowest.len() == self.wanted;
        let least = self.slowest.first_key_value().map(|(&least, _)| least);
        if !is_full || least.is_some_and(|least| least < key) {
            if is_full {
                self.slowest.pop_first();
            }
            let slow = SlowRequest {
                request: explanation(row),
                waited: wait(row, &chain),
            };
            self.slowest.insert(key, Slowest { row: *row, slow });
        }
        if self.recent.len() == KEPT_ROWS {
            self.recent.pop_front();
        }
        self.recent.push_back((Rc::new(*row), chain));
    }

    /// The requests that a request waited for.
    fn chain(&self, row: &RequestRow) -> Chain {
        match row.waited.map(|waited| waited.behind) {
            None => Chain::default(),
            Some(Behind::Background) => Chain {
                behind_background: true,
                ..Chain::default()
            },
            Some(Behind::Request(number)) => {
                let recent = self.recent(number);
                recent.map_or_else(Chain::default, |(row, chain)| chain.and(row))
            }
        }
    }

    fn recent(&self, number: u64) -> Option<&(Rc<RequestRow>, Chain)> {
        // Rows come in the order of the trace, without a gap.
        let first = self.recent.front()?.0.request;
        self.recent.get(number.checked_sub(first)? as usize)
    }

    /// The summary.
    pub fn explained(&self) -> Explained {
        let sizes = self.sizes.iter().map(|(&(is_write, pages), size)| {
            let p99_ns = size.histogram.ranked_ns(rank(99.0, size.count));
            SizeClass {
                op: if is_write { "W" } else { "R" }.into(),
                pages_from: pages / 2 + 1,
                pages_to: pages,
                count: size.count,
                mean_us: size.sum_ns as f64 / 1000.0 / size.count as f64,
                p99_us: us(p99_ns.unwrap_or(0).min(size.max_ns)),
                max_us: us(size.max_ns),
            }
        });
        Explained {
            percentiles: self.percentiles(),
            sizes: sizes.collect(),
            slowest: self
                .slowest
                .values()
                .rev()
                .map(|slowest| slowest.slow.clone())
                .collect(),
        }
    }

    /// The slowest request; of equals the first.
    pub fn slowest(&self) -> Option<&Slowest> {
        self.slowest.last_key_value().map(|(_, slowest)| slowest)
    }

    fn percentiles(&self) -> Vec<PartsAt> {
        let n = self.parts.values().map(|parts| parts.requests).sum();
        let at = |q: f64| {
            let mut below = 0;
            let mut classes = self.parts.values();
            let found = classes.find(|parts| {
                below += parts.requests;
                below >= rank(q, n)
            });
            found.map(|parts| parts.at(q))
        };
        PERCENTILES.into_iter().filter_map(at).collect()
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

fn wait(row: &RequestRow, chain: &Chain) -> Option<Wait> {
    let waited = row.waited?;
    Some(Wait {
        waited_us: us(waited.ns),
        die: waited.die,
        behind_number: match waited.behind {
            Behind::Request(number) => Some(number),
            Behind::Background => None,
        },
        chain_requests: chain.requests,
        behind_background: chain.behind_background,
        heaviest: chain.heaviest.iter().map(|row| explanation(row)).collect(),
    })
}

fn explanation(row: &RequestRow) -> Explanation {
    let (work, merges) = (&row.work, &row.merges);
    Explanation {
        number: row.request,
        op: row.op().into(),
        first_lpn: row.first_lpn,
        pages: row.pages,
        arrival_s: row.arrival_ns as f64 / 1e9,
        response_us: us(row.response_ns()),
        queueing_us: us(row.queueing_ns()),
        translation_us: us(work.translation_ns),
        flash_us: us(work.flash_ns),
        gc_us: us(work.gc_ns),
        merges_switch: merges.switch,
        merges_partial: merges.partial,
        merges_full: merges.full,
        merges_dead: merges.dead,
        merges_other: merges.other,
        dies: row.dies,
        die_last: row.die_last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merges::MergeKinds;
    use crate::requests::{Waited, Work};

    /// Request `i` comes at 10 us * i and takes `response_us`; it waits for the one before on die 3.
    fn row(i: u64, response_us: u64, is_write: bool, pages: u32) -> RequestRow {
        let arrival_ns = i * 10_000;
        RequestRow {
            request: i,
            kind: if is_write { Kind::Write } else { Kind::Read },
            first_lpn: 7,
            pages,
            arrival_ns,
            issue_ns: arrival_ns,
            start_ns: arrival_ns + 400,
            end_ns: arrival_ns + response_us * 1000,
            work: Work {
                translation_ns: 1000,
                flash_ns: 2000,
                gc_ns: response_us * 10,
            },
            merges: MergeKinds::default(),
            dies: 1,
            die_last: Some(3),
            waited: (i > 0).then(|| Waited {
                ns: 400,
                die: 3,
                behind: Behind::Request(i - 1),
            }),
        }
    }

    #[test]
    fn the_slowest_come_first_with_the_heaviest_they_waited_for() {
        let mut why = Why::new(2);
        let responses = [5, 100, 7, 9, 8, 300, 8, 100];
        let rows: Vec<RequestRow> = (0..)
            .zip(responses)
            .map(|(i, us)| row(i, us, true, 1))
            .collect();
        why.add(&rows[..3]);
        why.add(&rows[3..]);
        let slowest = why.explained().slowest;
        let numbers: Vec<u64> = slowest.iter().map(|slow| slow.request.number).collect();
        assert_eq!(numbers, [5, 1], "of equals the first");
        let waited = |i: usize| slowest[i].waited.as_ref().expect("it waited");
        let heaviest =
            |i: usize| -> Vec<u64> { waited(i).heaviest.iter().map(|of| of.number).collect() };
        // Work grows with the response: of 4, 3, 2, 1, 0 the lightest are 0 and 2.
        assert_eq!((waited(0).chain_requests, heaviest(0)), (5, vec![4, 3, 1]));
        assert_eq!((waited(1).chain_requests, heaviest(1)), (1, vec![0]));
        assert_eq!((waited(0).waited_us, waited(0).die), (0.4, 3));
        assert_eq!(
            (waited(0).behind_number, waited(0).behind_background),
            (Some(4), false)
        );
    }

    #[test]
    fn parts_and_sizes_by_hand() {
        let mut why = Why::new(0);
        let rows = (0..1000).map(|i| {
            row(
                i,
                if i < 990 { 10 } else { 1000 },
                i % 2 == 0,
                1 + (i % 4) as u32,
            )
        });
        why.add(&rows.collect::<Vec<_>>());
        let explained = why.explained();
        let parts = |i: usize| {
            let at = explained.percentiles[i];
            (
                at.percentile,
                at.requests,
                at.response_us,
                at.queueing_us,
                at.gc_us,
            )
        };
        assert_eq!(parts(2), (99.0, 990, 10.0, 0.4, 0.1));
        assert_eq!(parts(4), (100.0, 10, 1000.0, 0.4, 10.0));
        let sizes: Vec<(&str, u32, u32, u64, f64)> = explained
            .sizes
            .iter()
            .map(|s| (s.op.as_str(), s.pages_from, s.pages_to, s.count, s.max_us))
            .collect();
        // Reads have 2 or 4 pages, writes 1 or 3.
        let expected = [
            ("R", 2, 2, 250, 1000.0),
            ("R", 3, 4, 250, 1000.0),
            ("W", 1, 1, 250, 1000.0),
            ("W", 3, 4, 250, 1000.0),
        ];
        assert_eq!(sizes, expected);
        assert!(explained.slowest.is_empty());
    }
}
