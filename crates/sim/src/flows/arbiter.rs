//! Who goes next.
//!
//! NVMe 1.4, section 4.13, has two ways: round robin over the queues, a burst of commands each, and weighted round robin with
//! an urgent class, where weights belong to three classes. Here a weight belongs to a flow, which is the same for flows that
//! are alone in their class.

use super::{Arbitration, FlowConfig, Link};

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Arbiter {
    /// Class of each flow, the first to go is 0, and commands in one turn.
    flows: Vec<(u8, u64)>,
    /// By class: the flow whose turn it is, and how many more commands it may have.
    turns: [(usize, u64); 4],
}

impl Arbiter {
    pub(super) fn new<'a>(link: &Link, flows: impl Iterator<Item = &'a FlowConfig>) -> Self {
        let burst = u64::from(link.burst.max(1));
        let of = |flow: &FlowConfig| match link.arbitration {
            Arbitration::RoundRobin => (0, burst),
            Arbitration::Priority => (flow.priority as u8, burst),
            Arbitration::Weighted if flow.priority == super::Priority::Urgent => (0, burst),
            Arbitration::Weighted => (1, burst * u64::from(flow.weight.max(1))),
        };
        let flows: Vec<_> = flows.map(of).collect();
        // The first turn goes to the first flow of the class: the one after the last.
        let turns = [(flows.len().saturating_sub(1), 0); 4];
        Self { flows, turns }
    }

    /// The flow whose command goes, of those that are `ready`: who has nothing to send loses the rest of its turn.
    pub(super) fn next(&mut self, ready: impl Fn(usize) -> bool) -> Option<usize> {
        let is_ready = |&flow: &usize| ready(flow);
        let first = (0..self.flows.len()).filter(is_ready);
        let class = first.map(|flow| self.flows[flow].0).min()?;
        let (flow, left) = &mut self.turns[usize::from(class)];
        if *left == 0 || self.flows[*flow].0 != class || !ready(*flow) {
            let n = self.flows.len();
            let others = (1..=n).map(|step| (*flow + step) % n);
            let mut in_class = others.filter(|&flow| self.flows[flow].0 == class);
            *flow = in_class.find(is_ready)?;
            *left = self.flows[*flow].1;
        }
        *left -= 1;
        Some(*flow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Priority;
    use super::*;

    fn order(arbitration: Arbitration, flows: &[(Priority, u32)], ready: &[&str]) -> String {
        let link = Link {
            arbitration,
            burst: 2,
            ..Link::default()
        };
        let configs: Vec<FlowConfig> = flows
            .iter()
            .enumerate()
            .map(|(i, &(priority, weight))| FlowConfig {
                priority,
                weight,
                ..FlowConfig::even("", i, flows.len())
            })
            .collect();
        let mut arbiter = Arbiter::new(&link, configs.iter());
        let names = "abc";
        let took = ready.iter().map(|ready| {
            let next = arbiter.next(|flow| ready.contains(&names[flow..=flow]));
            next.map_or("-", |flow| &names[flow..=flow])
        });
        took.collect()
    }

    #[test]
    fn turns_are_bursts_and_end_when_there_is_nothing_to_send() {
        let flows = [(Priority::Medium, 1); 3];
        let ready = ["abc", "abc", "abc", "ac", "ac", "abc", "abc", "", "b"];
        assert_eq!(order(Arbitration::RoundRobin, &flows, &ready), "aabccaa-b");
    }

    #[test]
    fn weights_share_what_urgent_flows_leave() {
        let flows = [
            (Priority::Low, 2),
            (Priority::Urgent, 1),
            (Priority::High, 1),
        ];
        let mut ready = vec!["ac"; 12];
        ready.insert(5, "abc");
        assert_eq!(
            order(Arbitration::Weighted, &flows, &ready),
            "aaaacbcaaaacc"
        );
    }

    #[test]
    fn the_highest_priority_goes_first() {
        let flows = [(Priority::Low, 1), (Priority::High, 1), (Priority::High, 1)];
        let ready = ["abc", "abc", "abc", "abc", "a", "ab", "a"];
        assert_eq!(order(Arbitration::Priority, &flows, &ready), "bbccaba");
    }
}
