//! The devices of a sweep. What is not varied stays the same from cell to cell, what follows from the trace included:
//! dies, capacity and blocks are those that suit all cells that could share them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use floatgate_catalog::Scheme;
use floatgate_sim::config::{Host, RunConfig};

use super::cases::{Case, Scans};
use crate::commands::variant::Variant;
use crate::config::resolve::Plan;
use crate::config::sizing;
use crate::errors::Outcome;
use crate::table::{bytes, some};

/// One capacity for several shapes of device is taken if it is at most this share above what the largest of
/// them needs for itself.
const COMMON_CAPACITY_SHARE: u64 = 16;

/// Sizes the plans of all cases; one that cannot be sized becomes the problem.
pub fn size(cases: &mut [Case], scans: &Scans, schemes: &[Scheme], chosen: &[Variant<'_>]) {
    let traces = cases.iter().map(|case| case.trace + 1).max().unwrap_or(0);
    for trace in 0..traces {
        let mut of_trace: Vec<&mut Case> = cases.iter_mut().filter(|c| c.trace == trace).collect();
        dies(&mut of_trace, scans);
        capacity(&mut of_trace, scans);
    }
    for case in cases.iter_mut() {
        let needed = needed_bytes(case, scans);
        let settings = &case.settings;
        change(&mut case.plan, |plan| {
            sizing::capacity(plan, settings, needed)
        });
    }
    blocks(cases, schemes, chosen);
}

/// Changes a plan that there is.
fn change(plan: &mut Outcome<Plan>, by: impl FnOnce(&mut Plan) -> Outcome<()>) {
    if let Ok(inner) = plan
        && let Err(problem) = by(inner)
    {
        *plan = Err(problem);
    }
}

/// Bytes that the host must see: as asked for, or what the trace touches.
fn needed_bytes(case: &Case, scans: &Scans) -> u64 {
    match &case.plan {
        Ok(plan) if plan.capacity_from_trace => scans.bytes(case.trace, plan),
        Ok(plan) => plan.device.logical_pages * u64::from(plan.device.part.page_bytes),
        Err(_) => 0,
    }
}

/// As many dies as suit all cases whose dies follow from the capacity.
fn dies(cases: &mut [&mut Case], scans: &Scans) {
    let mut common: Option<(u32, u32)> = None;
    for case in cases.iter_mut() {
        let needed = needed_bytes(case, scans);
        let Ok(mut plan) = case.plan.clone() else {
            continue;
        };
        if plan.dies_from_capacity {
            match sizing::capacity(&mut plan, &case.settings, needed) {
                Ok(()) => {
                    let given = case.settings.small("device.channels").unwrap_or(1);
                    let (dies, channels) = common.unwrap_or((u32::MAX, 1));
                    common = Some((dies.min(plan.device.dies), channels.max(given)));
                }
                Err(problem) => case.plan = Err(problem),
            }
        }
    }
    let Some((dies, channels)) = common else {
        return;
    };
    for case in cases {
        if let Ok(plan) = &mut case.plan
            && plan.dies_from_capacity
        {
            plan.device.dies = dies.max(channels);
            plan.dies_from_capacity = false;
        }
    }
}

/// The same capacity for all cases that need the same bytes, whatever unit it is rounded up to.
fn capacity(cases: &mut [&mut Case], scans: &Scans) {
    let unit_bytes = |plan: &Plan| {
        let part = &plan.device.part;
        u64::from(plan.device.dies) * u64::from(part.pages_per_block) * u64::from(part.page_bytes)
    };
    let may_grow = |case: &Case| {
        let plan = case.plan.as_ref().ok();
        plan.filter(|plan| plan.capacity_may_grow).map(unit_bytes)
    };
    let mut units: HashMap<u64, Vec<u64>> = HashMap::new();
    for case in cases.iter() {
        if let Some(unit) = may_grow(case) {
            units
                .entry(needed_bytes(case, scans))
                .or_default()
                .push(unit);
        }
    }
    for case in cases {
        let needed = needed_bytes(case, scans);
        if let (Ok(plan), Some(common)) = (
            &mut case.plan,
            units.get(&needed).and_then(|units| common(needed, units)),
        ) && plan.capacity_may_grow
        {
            plan.device.logical_pages = common / u64::from(plan.device.part.page_bytes);
            plan.capacity_from_trace = false;
        }
    }
}

/// The smallest multiple of all units that is not below `needed`, if it is not much larger.
fn common(needed: u64, units: &[u64]) -> Option<u64> {
    let least = |a: u64, b: u64| (a / gcd(a, b)).checked_mul(b);
    let unit = units.iter().try_fold(1, |all, &unit| least(all, unit))?;
    let alone = units
        .iter()
        .map(|unit| needed.next_multiple_of(*unit))
        .max()?;
    let common = needed.max(1).checked_next_multiple_of(unit)?;
    (common - alone <= alone / COMMON_CAPACITY_SHARE).then_some(common)
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

/// The blocks that the neediest takes of all cases which ask for the same spare blocks on the same device.
fn blocks(cases: &mut [Case], schemes: &[Scheme], chosen: &[Variant<'_>]) {
    let mut known: HashMap<String, Outcome<u32>> = HashMap::new();
    let mut most: HashMap<String, u32> = HashMap::new();
    for case in cases.iter_mut().filter(|case| follows_from_share(case)) {
        let settings = &case.settings;
        change(&mut case.plan, |plan| {
            // Trying schemes out takes a while; what the host does makes no difference.
            let own = chosen.iter().map(|variant| variant.under(settings));
            let own = own.collect::<Outcome<Vec<_>>>()?;
            let named: Vec<_> = own.iter().map(Variant::named).collect();
            let all = sizing::tried(plan, settings, schemes, &named);
            let configs = all.iter().map(|(scheme, settings)| RunConfig {
                host: Host::default(),
                ..plan.run_of(scheme, settings)
            });
            let what = format!("{} {:?}", plan.spare_percent, configs.collect::<Vec<_>>());
            let blocks = match known.entry(what) {
                Entry::Occupied(entry) => entry.get().clone(),
                Entry::Vacant(entry) => {
                    let sized = sizing::blocks(plan, settings, schemes, &named);
                    entry.insert(sized.map(|()| plan.device.blocks)).clone()
                }
            }?;
            let most = most.entry(shape(case.trace, plan)).or_default();
            *most = blocks.max(*most);
            Ok(())
        });
    }
    for case in cases.iter_mut().filter(|case| follows_from_share(case)) {
        if let Ok(plan) = &mut case.plan {
            plan.device.blocks = most[&shape(case.trace, plan)];
        }
    }
}

fn follows_from_share(case: &Case) -> bool {
    case.plan.as_ref().is_ok_and(|plan| plan.blocks_from_share)
}

/// What devices have in common that get the same blocks.
fn shape(trace: usize, plan: &Plan) -> String {
    let (device, part) = (&plan.device, &plan.device.part);
    format!(
        "{trace} {} {} {} {} {}",
        device.logical_pages,
        part.page_bytes,
        part.pages_per_block,
        device.dies,
        plan.spare_percent
    )
}

/// All devices in one line.
pub fn describe(cases: &[Case]) -> String {
    let plans: Vec<&Plan> = cases.iter().filter_map(|c| c.plan.as_ref().ok()).collect();
    let mut texts: Vec<String> = plans.iter().map(|plan| plan.describe()).collect();
    texts.sort_unstable();
    texts.dedup();
    if let [one] = &texts[..] {
        return one.clone();
    }
    let span = |of: &dyn Fn(&Plan) -> u64, text: &dyn Fn(u64) -> String| {
        let (min, max) = extremes(plans.iter().map(|plan| of(plan)));
        match min == max {
            true => text(min),
            false => format!("{} to {}", text(min), text(max)),
        }
    };
    let number = |n: u64| n.to_string();
    format!(
        "{}, {} logical, dies: {}, {} blocks a die of which {} spare, {} pages of {} a block, {} log blocks a die where a scheme has them",
        some(texts.len() as u64, "device"),
        span(&logical_bytes, &|n| bytes(n as f64)),
        span(&|plan| plan.device.dies.into(), &number),
        span(&|plan| plan.device.blocks.into(), &number),
        span(&spare_blocks, &number),
        span(&|plan| plan.device.part.pages_per_block.into(), &number),
        span(&|plan| plan.device.part.page_bytes.into(), &|n| bytes(
            n as f64
        )),
        span(&Plan::log_blocks_per_die, &number),
    )
}

/// Smallest and largest.
fn extremes(values: impl Iterator<Item = u64>) -> (u64, u64) {
    values.fold((u64::MAX, 0), |(min, max), n| (min.min(n), max.max(n)))
}

fn logical_bytes(plan: &Plan) -> u64 {
    plan.device.logical_pages * u64::from(plan.device.part.page_bytes)
}

fn spare_blocks(plan: &Plan) -> u64 {
    u64::from(plan.device.blocks).saturating_sub(plan.data_blocks_per_die())
}

/// Whatever is not as one might think.
pub fn notes(cases: &[Case]) -> Vec<String> {
    let plans = || cases.iter().filter_map(|case| case.plan.as_ref().ok());
    let grown = |plan: &&Plan| {
        let share = plan.data_blocks_per_die() as f64 * plan.spare_percent / 100.0;
        plan.blocks_from_share && spare_blocks(plan) > share.ceil() as u64
    };
    let mut notes = Vec::new();
    let percent =
        |plan: &Plan| spare_blocks(plan) as f64 * 100.0 / plan.data_blocks_per_die() as f64;
    let widest = plans()
        .filter(grown)
        .max_by(|a, b| percent(a).total_cmp(&percent(b)));
    if let Some(plan) = widest {
        notes.push(format!(
            "there are more spare blocks than asked for, up to {:.1} % where {} % were: as few as every scheme accepts with every value of the other keys, so that cells differ only in what is varied. --set device.blocks_per_die={} sets their number.",
            percent(plan), plan.spare_percent, plan.device.blocks
        ));
    }
    let first = cases.iter().map(|case| case.trace).min();
    let rounded = |case: &&Case| {
        let given = ["device.capacity", "device.logical_pages"];
        Some(case.trace) == first && given.iter().all(|path| case.settings.get(path).is_none())
    };
    let of_trace = cases
        .iter()
        .filter(rounded)
        .filter_map(|case| case.plan.as_ref().ok());
    let (min, max) = extremes(of_trace.map(logical_bytes));
    if min < max {
        notes.push(format!(
            "the capacity differs from cell to cell, {} to {}: it is rounded up to whole blocks on every die, or the trace is laid out otherwise.",
            bytes(min as f64), bytes(max as f64)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_capacity_where_it_costs_little() {
        assert_eq!(common(1000, &[16, 32, 64]), Some(1024));
        assert_eq!(common(1000, &[48, 64]), None);
        assert_eq!(common(10_000, &[48, 64]), Some(10_176));
        assert_eq!(common(1000, &[997, 1009]), None);
        assert_eq!(common(1, &[u64::MAX, u64::MAX - 1]), None);
    }
}
