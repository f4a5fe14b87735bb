use super::*;
use crate::{Stream, generate};

/// A trace of pages of one byte each, so that pages, units and bytes are the same.
fn pages(trace: &[(Op, u64, u64)], options: StatsOptions) -> Statistics {
    let mut stats = Stats::new(StatsOptions {
        page_bytes: 1,
        size_unit: 1,
        ..options
    });
    for (i, &(op, offset, bytes)) in trace.iter().enumerate() {
        stats.add(&Request {
            arrival_ns: i as u64 * 10,
            op,
            volume: 0,
            stream: crate::Stream::NONE,
            offset,
            bytes,
        });
    }
    stats.finish()
}

fn bounds(list: &[u64]) -> StatsOptions {
    StatsOptions {
        interval_bounds: list.to_vec(),
        ..StatsOptions::default()
    }
}

#[test]
fn the_worked_example() {
    let trace = [(0, 1), (4, 2), (0, 1), (6, 2), (5, 1), (0, 1), (0, 1)]
        .map(|(lpn, n)| (Op::Write, lpn, n));
    let s = pages(&trace, bounds(&[0, 2, 5]));
    assert_eq!((s.page_writes, s.distinct_pages_written), (9, 5));
    let by_write: Vec<u64> = s.intervals.bounds.iter().map(|b| b.by_write).collect();
    let by_page: Vec<u64> = s.intervals.bounds.iter().map(|b| b.by_page).collect();
    assert_eq!((by_write, s.intervals.number), (vec![1, 2, 4], 4));
    assert_eq!((by_page, s.intervals.pages), (vec![0, 1, 2], 2));
    let sizes: Vec<_> = s
        .write_sizes
        .iter()
        .map(|c| {
            (
                c.size,
                c.requests,
                c.unit_writes,
                c.distinct_units,
                c.original_sum,
            )
        })
        .collect();
    assert_eq!(sizes, [(1, 5, 5, 2, 5), (2, 2, 4, 4, 8)]);
    assert_eq!(s.write_sizes[0].update_frequency(), 1.5);
    assert_eq!(s.write_sizes[1].update_frequency(), 0.0);
    assert_eq!(s.write_sizes[1].mean_original(), 4.0);
}

#[test]
fn check_values_of_tpcc() {
    let requests = generate::build(
        "tpcc",
        &[("space", "4096"), ("writes", "20000"), ("seed", "1")],
    )
    .unwrap();
    let mut stats = Stats::new(StatsOptions {
        hot_below: 2000,
        cold_above: 10_000,
        log_window: Some(1001),
        skew_shares: vec![1000, 3000],
        ..bounds(&[100, 1000, 2000, 5000, 10_000])
    });
    for request in requests {
        stats.add(&request.to_request(4096));
    }
    let s = stats.finish();
    assert_eq!((s.page_writes, s.distinct_pages_written), (20_759, 1746));
    let c = s.classes;
    assert_eq!((c.hot, c.warm, c.cold, c.once), (626, 856, 26, 238));
    let part = |i: usize| s.skew[i].page_writes as f64 / s.page_writes as f64 * 100.0;
    assert_eq!(format!("{:.2} {:.2}", part(0), part(1)), "51.57 73.20");
    let by_write: Vec<u64> = s.intervals.bounds.iter().map(|b| b.by_write).collect();
    let by_page: Vec<u64> = s.intervals.bounds.iter().map(|b| b.by_page).collect();
    assert_eq!(by_write, [3412, 13_072, 15_506, 18_065, 18_885]);
    assert_eq!(by_page, [0, 187, 626, 1345, 1482]);
    assert_eq!((s.intervals.number, s.intervals.pages), (19_013, 1508));
    // Intervals below 1001 are those of at most 1000.
    assert_eq!(s.intervals.within_log_window, Some(13_072));
}

#[test]
fn counts_and_shares() {
    let trace = [
        (Op::Write, 0, 4),
        (Op::Read, 4, 4),
        (Op::Read, 100, 2),
        (Op::Trim, 0, 1000),
        (Op::WriteZeroes, 7, 1),
        (Op::Flush, 0, 0),
        (Op::Write, 102, 1),
    ];
    let s = pages(
        &trace,
        StatsOptions {
            logical_pages: Some(50),
            ..StatsOptions::default()
        },
    );
    assert_eq!(
        (
            s.requests,
            s.reads,
            s.writes,
            s.trims,
            s.write_zeroes,
            s.flushes
        ),
        (7, 2, 2, 1, 1, 1)
    );
    assert_eq!(
        (s.bytes_read, s.bytes_written, s.bytes_trimmed),
        (6, 5, 1000)
    );
    assert_eq!(
        (s.read_share, s.mean_read_bytes, s.mean_write_bytes),
        (Some(0.5), Some(3.0), Some(2.5))
    );
    assert_eq!((s.footprint_pages, s.device_span), (11, 103));
    assert_eq!((s.sequential_reads, s.sequential_writes), (1, 1));
    assert_eq!(
        (s.sequential_share, s.written_share_of_device),
        (Some(0.5), Some(0.1))
    );
    assert_eq!(
        (s.duration_ns, s.mean_gap_ns, s.median_gap_ns),
        (60, Some(10.0), Some(10))
    );
    assert_eq!(s.volumes.len(), 1);
    let json = serde_json::to_string(&s).unwrap();
    let back: Statistics = serde_json::from_str(&json).unwrap();
    assert_eq!(back, s);
}

#[test]
fn partial_pages_count_once_each() {
    let mut stats = Stats::new(StatsOptions::default());
    stats.add(&Request {
        arrival_ns: 0,
        op: Op::Write,
        volume: 3,
        stream: crate::Stream::NONE,
        offset: 4095,
        bytes: 2,
    });
    assert!(stats.memory_bytes() > 0);
    let s = stats.finish();
    assert_eq!(
        (s.page_writes, s.footprint_bytes, s.volumes[0].volume),
        (2, 8192, 3)
    );
    assert_eq!((s.write_sizes[0].size, s.write_reuse), (2, Some(1.0)));
}

#[test]
fn an_empty_trace() {
    let s = Stats::new(StatsOptions::default().with_log_window(10)).finish();
    assert_eq!((s.requests, s.duration_ns, s.median_gap_ns), (0, 0, None));
    assert_eq!((s.classes.hot_below, s.classes.cold_above), (10, 20));
}

#[test]
fn class_borders_belong_to_warm() {
    // Page 0 has the intervals 1 and 3: its mean is 2.
    let trace = [0, 1, 0, 1, 2, 3, 0].map(|lpn| (Op::Write, lpn, 1));
    let classes = |hot_below, cold_above| {
        let s = pages(
            &trace,
            StatsOptions {
                hot_below,
                cold_above,
                ..StatsOptions::default()
            },
        );
        (
            s.classes.hot,
            s.classes.warm,
            s.classes.cold,
            s.classes.once,
        )
    };
    assert_eq!(classes(2, 2), (1, 1, 0, 2));
    assert_eq!(classes(3, 3), (2, 0, 0, 2));
    assert_eq!(classes(1, 1), (0, 1, 1, 2));
}

/// Against the rule written out: for each page write, when its page is written next.
#[test]
fn survivors_that_die_in_the_next_window() {
    let mut random = generate::SplitMix64::new(5);
    let trace: Vec<(Op, u64, u64)> = (0..3000)
        .map(|_| {
            let reach = 1 + random.below(400);
            (Op::Write, random.below(reach), 1 + random.below(3))
        })
        .collect();
    let writes: Vec<u64> = trace
        .iter()
        .flat_map(|&(_, first, n)| first..first + n)
        .collect();
    let sizes = [
        LogSize::Percent(10.0),
        LogSize::Pages(1),
        LogSize::Pages(100),
        LogSize::Pages(5000),
    ];
    let s = pages(
        &trace,
        StatsOptions {
            log_sizes: sizes.into(),
            ..StatsOptions::default()
        },
    );
    let windows: Vec<u64> = s.second_chances.iter().map(|c| c.log_window).collect();
    assert_eq!(windows, [s.footprint_pages / 10, 1, 100, 5000 / 4 * 4]);
    for chance in &s.second_chances {
        let window = chance.log_window as usize;
        let (mut survivors, mut dying) = (0, 0);
        for (t, page) in writes.iter().enumerate() {
            let next = writes[t + 1..].iter().position(|other| other == page);
            // The number of page writes to it, that one included.
            let distance = next.map(|between| between + 1);
            survivors += u64::from(distance.is_none_or(|distance| distance > window));
            dying += u64::from(
                distance.is_some_and(|distance| distance > window && distance <= 2 * window),
            );
        }
        assert_eq!(
            (chance.survivors, chance.dying),
            (survivors, dying),
            "window {window}"
        );
        let share = dying as f64 / survivors as f64;
        assert_eq!(chance.dying_share, Some(share));
    }
    assert!(s.second_chances[0].dying > 100);
    assert_eq!("7.5%".parse(), Ok(LogSize::Percent(7.5)));
    assert_eq!("4_096".parse(), Ok(LogSize::Pages(4096)));
    assert!(
        "0".parse::<LogSize>().is_err()
            && "-1%".parse::<LogSize>().is_err()
            && "x".parse::<LogSize>().is_err()
    );
}

#[test]
fn streams_are_of_writes() {
    let mut stats = Stats::new(StatsOptions::default());
    for (op, stream, bytes) in [
        (Op::Write, Stream::new(4), 4096),
        (Op::Write, None, 512),
        (Op::Write, Stream::new(1), 8192),
        (Op::Read, Stream::new(4), 4096),
        (Op::Write, Stream::new(4), 4096),
    ] {
        stats.add(&Request {
            arrival_ns: 0,
            op,
            volume: 0,
            stream: stream.unwrap_or_default(),
            offset: 0,
            bytes,
        });
    }
    let of = |stream, writes, bytes_written| StreamStatistics {
        stream,
        writes,
        bytes_written,
    };
    assert_eq!(stats.finish().streams, [of(1, 1, 8192), of(4, 2, 8192)]);
}
