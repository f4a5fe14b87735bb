//! Closed formulas for write amplification, to hold the simulator against (docs/spec/analytic.md).

/// Lambert's `W0(x)` for `x` in `-1/e .. 0`, by Newton's method.
fn lambert_w0(x: f64) -> f64 {
    let mut w: f64 = if x < -0.25 {
        -1.0 + (2.0 * (1.0 + std::f64::consts::E * x)).max(0.0).sqrt()
    } else {
        x
    };
    for _ in 0..100 {
        let e = w.exp();
        let step = (w * e - x) / (e * (w + 1.0) - (w + 2.0) * (w * e - x) / (2.0 * w + 2.0));
        w -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    w
}

/// Write amplification of page mapping with FIFO victims under uniform single-page writes; `a` = physical
/// over logical pages (Desnoyers 2012, Eq. 4; Xiang and Kurkoski 2012).
pub fn fifo(a: f64) -> f64 {
    a / (a + lambert_w0(-a * (-a).exp()))
}

/// The same with greedy victims and `pages` pages a block (Desnoyers 2012, Eq. 12).
pub fn greedy(a: f64, pages: u32) -> f64 {
    let k = 1.0 + 1.0 / (2.0 * f64::from(pages));
    fifo(k * a) / k
}

/// FIFO victims with two classes: a share `r` of the writes goes to a share `f` of the pages
/// (Desnoyers 2012, Eq. 14).
pub fn fifo_hot_cold(a: f64, r: f64, f: f64) -> f64 {
    let side = |amp: f64| {
        1.0 + r / (((r / f) * (a / amp)).exp() - 1.0)
            + (1.0 - r) / ((((1.0 - r) / (1.0 - f)) * (a / amp)).exp() - 1.0)
    };
    // `side` grows more slowly than its argument beyond the solution: bisection.
    let (mut low, mut high) = (1.0, 1e6);
    for _ in 0..200 {
        let mid = (low + high) / 2.0;
        if side(mid) > mid {
            low = mid
        } else {
            high = mid
        }
    }
    (low + high) / 2.0
}

/// d-choices as `page` has it (blocks without an invalid page are passed over), mean field; `b` pages a
/// block (Van Houdt 2013).
pub fn d_choices(a: f64, b: usize, d: i32) -> f64 {
    let mut m = vec![0.0_f64; b + 1];
    // Start: all blocks at the mean number of valid pages, between two neighbours.
    let mean = b as f64 / a;
    m[mean as usize] = 1.0 - mean.fract();
    m[mean as usize + 1] = mean.fract();
    let mut amplification = 1.0;
    for _ in 0..400_000 {
        let p = victim_distribution(&m, d);
        let e: f64 = p.iter().enumerate().map(|(j, p)| j as f64 * p).sum();
        amplification = b as f64 / (b as f64 - e);
        let r = (b as f64 - e) * a / b as f64;
        let step = 0.5 / (2.0 * r * b as f64);
        let mut change = 0.0_f64;
        let old = m.clone();
        for j in 0..=b {
            let gain = if j < b {
                r * (j + 1) as f64 * old[j + 1]
            } else {
                1.0
            };
            let delta = gain - p[j] - r * j as f64 * old[j];
            m[j] += step * delta;
            change = change.max(delta.abs());
        }
        if change < 1e-9 {
            break;
        }
    }
    amplification
}

fn victim_distribution(m: &[f64], d: i32) -> Vec<f64> {
    let b = m.len() - 1;
    let candidates: f64 = m[..b].iter().sum();
    let mut above = 1.0;
    let mut p = vec![0.0; b + 1];
    for j in 0..b {
        let next = (above - m[j] / candidates).max(0.0);
        p[j] = f64::powi(above, d) - f64::powi(next, d);
        above = next;
    }
    p
}

/// BAST under uniform single-page writes over `blocks` logical blocks with `log_blocks` log blocks that
/// rarely fill, `pages` pages a block.
pub fn bast(blocks: f64, log_blocks: f64, pages: f64) -> f64 {
    1.0 + pages * (1.0 - log_blocks / blocks)
}

/// Pages that can hold data on a die of `page`, for the formulas' `T` (collection in batches wins half a
/// block on average).
pub fn usable_pages(blocks: u32, gc_low: u32, pages: u32) -> f64 {
    (f64::from(blocks) - f64::from(gc_low) + 0.5) * f64::from(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64) {
        assert!(
            (value - expected).abs() < 6e-4 * expected,
            "{value}, expected {expected}"
        );
    }

    #[test]
    fn formulas_give_their_published_values() {
        let a = |s: f64| 1.0 / (1.0 - s);
        for (s, value) in [(0.07, 6.600), (0.10, 4.816), (0.20, 2.598)] {
            close(greedy(a(s), 64), value);
        }
        close(greedy(a(0.07), 32), 6.013);
        for (s, value) in [(0.07, 7.318), (0.10, 5.179), (0.20, 2.693)] {
            close(fifo(a(s)), value);
        }
        for (s, value) in [(0.07, 7.682), (0.10, 5.538), (0.20, 3.034)] {
            close(fifo_hot_cold(a(s), 0.8, 0.2), value);
        }
        for (d, value) in [(10, 4.980), (3, 5.782), (2, 6.503)] {
            close(d_choices(a(0.10), 64, d), value);
        }
        close(d_choices(a(0.10), 64, 1), 8.767);
        close(bast(1000.0, 300.0, 64.0), 45.80);
    }
}
