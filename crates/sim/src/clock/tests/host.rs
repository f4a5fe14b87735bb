//! A small host model over random requests: issue times, completions, first
//! starts and idle time, all held against one replay of what was issued.

use super::super::list::replay_on;
use super::super::{Closed, Events, Scheduled};
use super::*;

/// A request as the host saw it.
struct Seen {
    arrival: u64,
    issue: u64,
    /// Numbers of its operations, and of its own ones.
    ops: Vec<usize>,
    own: Vec<usize>,
    /// What `idle_since` said before it.
    idle: Option<u64>,
    completion: Option<Completion>,
}

/// Everything issued in a run.
struct Run<C: Clock> {
    clock: C,
    machine: Machine,
    rng: Rng,
    ops: Vec<ListOp>,
    tokens: Vec<C::Token>,
    seen: Vec<Seen>,
}

impl<C: Clock> Run<C> {
    /// A random operation at `at`, after some of the newest ones.
    fn issue(&mut self, at: u64, recent: usize) -> usize {
        let mut new = random_op(&mut self.rng, &self.machine).at(at);
        let mut after = C::Token::default();
        if recent > 0 && self.rng.chance(60) {
            for _ in 0..=self.rng.below(5) {
                let earlier = self.ops.len() - 1 - self.rng.below(recent as u64) as usize;
                new.after.push(earlier);
                after = self.clock.join(after, self.tokens[earlier]);
            }
        }
        self.clock.set_time(at);
        self.tokens.push(self.clock.issue(new.flash_op(), after));
        self.ops.push(new);
        self.ops.len() - 1
    }

    /// A request of some operations, some of them own ones; sometimes none.
    fn request(&mut self, arrival: u64, issue: u64, idle: Option<u64>) {
        let (mut ops, mut own) = (Vec::new(), Vec::new());
        self.clock.set_time(issue);
        self.clock.begin_request(self.seen.len() as u64);
        let joined = self.rng.chance(30);
        let mut all = C::Token::default();
        for _ in 0..self.rng.below(7) {
            let number = self.issue(issue, ops.len());
            ops.push(number);
            if self.rng.chance(50) {
                own.push(number);
                all = self.clock.join(all, self.tokens[number]);
                self.clock
                    .own(if joined { all } else { self.tokens[number] });
            }
        }
        self.clock.end_request();
        self.seen.push(Seen {
            arrival,
            issue,
            ops,
            own,
            idle,
            completion: None,
        });
    }

    /// Idle work between `from` and `until`.
    fn idle(&mut self, from: u64, until: u64) {
        let mut at = from;
        for _ in 0..self.rng.below(3) {
            at += self.rng.below(until - from);
            if at >= until {
                break;
            }
            for done in 0..self.rng.below(6) {
                self.issue(at, done as usize);
            }
        }
    }

    fn note(&mut self, completion: Completion) {
        let seen = &mut self.seen[completion.request as usize];
        assert_eq!(seen.completion, None, "handed out twice");
        seen.completion = Some(completion);
    }

    fn drain(&mut self) {
        let mut done = Vec::new();
        self.clock.drain(&mut done);
        done.into_iter()
            .for_each(|completion| self.note(completion));
    }
}

/// `depth` 0: open loop.
fn run<C: Clock>(machine: &Machine, seed: u64, depth: usize) -> Run<C> {
    let mut run = Run {
        clock: C::new(machine),
        machine: machine.clone(),
        rng: Rng(seed),
        ops: Vec::new(),
        tokens: Vec::<C::Token>::new(),
        seen: Vec::new(),
    };
    let gap = run.rng.pick(&[0, 3, 30_000, 300_000, 3_000_000]);
    let (mut arrival, mut issue, mut in_flight) = (0, 0, 0);
    for number in 0..25 {
        arrival = if run.rng.chance(5) {
            arrival / 2
        } else {
            arrival + run.rng.below(gap + 1)
        };
        issue = arrival.max(issue);
        if depth == 0 {
            if run.rng.chance(50) {
                run.drain();
            }
        } else if in_flight == depth {
            let next = run.clock.next_completion().expect("requests are out");
            issue = issue.max(next.end_ns);
            run.note(next);
            in_flight -= 1;
        }
        let idle = run.clock.idle_since(issue);
        if let Some(from) = idle {
            run.idle(from, issue);
        }
        assert!(number > 0 || idle.is_none());
        run.request(arrival, issue, idle);
        in_flight += 1;
    }
    if depth > 0 && run.rng.chance(50) {
        while let Some(next) = run.clock.next_completion() {
            run.note(next);
        }
    }
    run.clock.finish();
    run.drain();
    run
}

/// Holds a run against the definitions, with the times of one replay.
fn judge<C: Clock>(run: &Run<C>, depth: usize, case: &str) {
    let times = replay_on(&run.machine, &run.ops).expect("a sensible list");
    let mut ends: Vec<u64> = Vec::new();
    let mut issued = 0;
    for (number, seen) in run.seen.iter().enumerate() {
        let end = seen.own.iter().map(|&op| times[op].1).max();
        let end = end.unwrap_or(0).max(seen.issue);
        let last_own = seen.own.last().copied();
        let counted = seen.ops.iter().filter(|&&op| Some(op) <= last_own);
        let first = counted.map(|&op| times[op].0).min().unwrap_or(seen.issue);
        let wanted = Completion {
            end_ns: end,
            request: number as u64,
            first_start_ns: first,
        };
        assert_eq!(seen.completion, Some(wanted), "{case}: request {number}");

        // The first instant, not before arrival and the issue before, at which
        // a place is free: the earliest of those instants and the ends.
        let from = seen.arrival.max(issued);
        let free = |at: u64| depth == 0 || ends.iter().filter(|&&end| end > at).count() < depth;
        let instants = ends.iter().copied().chain([from]).filter(|&at| at >= from);
        let issue = instants.filter(|&at| free(at)).min();
        assert_eq!(Some(seen.issue), issue, "{case}: issue of request {number}");
        issued = seen.issue;

        let latest = ends.iter().copied().max().filter(|&m| m < seen.issue);
        assert_eq!(seen.idle, latest, "{case}: idle before request {number}");
        ends.push(end);
    }
}

fn all_depths<C: Clock>(seeds: u64, fits: impl Fn(&mut Machine) -> bool) {
    for seed in 0..seeds {
        let mut rng = Rng(seed ^ 0x4057);
        let mut machine = random_machine(&mut rng);
        if !fits(&mut machine) {
            continue;
        }
        for depth in [0, 1, 2, 3, 8] {
            let case = format!("seed {seed}, queue depth {depth}, {machine:?}");
            judge(&run::<C>(&machine, seed, depth), depth, &case);
        }
    }
}

#[test]
fn events_serve_a_host() {
    all_depths::<Events>(1500, |_| true);
}

#[test]
fn the_scheduler_serves_a_host_in_the_order_of_issue() {
    all_depths::<Scheduled>(1500, |_| true);
}

#[test]
fn closed_serves_a_host() {
    all_depths::<Closed>(500, |machine| {
        (machine.channels, machine.package_dies) = (machine.dies, 1);
        true
    });
}

#[test]
fn both_clocks_agree_on_requests() {
    for seed in 0..500 {
        let mut machine = random_machine(&mut Rng(seed));
        (machine.channels, machine.package_dies) = (machine.dies, 1);
        let depth = (seed % 4) as usize;
        let closed = run::<Closed>(&machine, seed, depth.max(1));
        let events = run::<Events>(&machine, seed, depth.max(1));
        for (a, b) in closed.seen.iter().zip(&events.seen) {
            assert_eq!(a.completion, b.completion, "seed {seed}");
        }
        assert_eq!(closed.clock.die_busy_ns(), events.clock.die_busy_ns());
        assert_eq!(
            closed.clock.channel_busy_ns(),
            events.clock.channel_busy_ns()
        );
        assert_eq!(closed.clock.pcm_busy_ns(), events.clock.pcm_busy_ns());
        assert_eq!(closed.clock.last_end_ns(), events.clock.last_end_ns());
    }
}
