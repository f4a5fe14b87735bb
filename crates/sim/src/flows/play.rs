//! The flows played: commands from their queues to the device in the order of time, completions back.

use std::collections::VecDeque;

use super::arbiter::Arbiter;
use super::device::{Command, Device};
use super::queue::{Part, Queue};
use super::{Flows, Measured, Stopped, Together};
use crate::clock::{Completion, TIME_MAX_NS};
use crate::config::RunConfig;
use crate::flight::InFlight;
use crate::host::{Kind, PageRequest};

/// A request of which a part was taken and that is not complete.
#[derive(Clone, Copy, Debug)]
struct Whole {
    flow: usize,
    request: InFlight,
    /// Parts that were taken and are not complete.
    parts: u32,
    bytes: u64,
    all_taken: bool,
    end_ns: u64,
    first_start_ns: u64,
}

/// Flows on their way through a run.
pub(crate) struct Play<'a> {
    queues: Vec<Queue<'a>>,
    arbiter: Arbiter,
    /// Commands under way at most; 0: no limit.
    depth: u32,
    wholes: Vec<Whole>,
    free: Vec<u32>,
    /// Whose part each command is, by its number from `first` on; those complete leave from the front.
    commands: VecDeque<Option<u32>>,
    first: u64,
    ended: Vec<Completion>,
    pages: PageRequest,
    last_issue_ns: u64,
    /// Whether every flow has begun, and one is over: between the two they work together.
    all_begun: bool,
    one_over: bool,
}

impl<'a> Play<'a> {
    pub(crate) fn new(flows: &'a mut Flows, run: &RunConfig) -> Result<Self, Stopped> {
        let configs = flows.flows.iter().map(|flow| &flow.config);
        let arbiter = Arbiter::new(&flows.link, configs);
        let link = flows.link;
        let queues = flows.flows.iter_mut();
        let queues: Result<Vec<_>, _> = queues.map(|flow| Queue::new(flow, &link, run)).collect();
        Ok(Self {
            queues: queues?,
            arbiter,
            depth: run.host.queue_depth,
            wholes: Vec::new(),
            free: Vec::new(),
            commands: VecDeque::new(),
            first: 0,
            ended: Vec::new(),
            pages: PageRequest::default(),
            last_issue_ns: 0,
            all_begun: false,
            one_over: false,
        })
    }

    /// Plays the next `most` commands, or as many as there are; then everything comes to its end. How many they were.
    pub(crate) fn step(&mut self, device: &mut dyn Device, most: u64) -> Result<u64, Stopped> {
        for played in 0..most {
            if !self.next(device)? {
                return Ok(played);
            }
        }
        Ok(most)
    }

    /// What was measured, flow by flow.
    pub(crate) fn measured(self) -> Vec<Measured> {
        let queues = self.queues.into_iter();
        queues.map(|queue| queue.measured).collect()
    }

    /// Plays a command, if there is one.
    fn next(&mut self, device: &mut dyn Device) -> Result<bool, Stopped> {
        self.commands_from(device.next_number());
        let now_ns = self.time_of_timers();
        // What does not reach the scheme tells it no time either.
        if self.may_reach_scheme() {
            device.arrives(now_ns);
        }
        let Some(issue_ns) = self.wait(device) else {
            return Ok(false);
        };
        let waits = |queue: &Queue<'_>| queue.waits_since_ns().is_some_and(|ns| ns <= issue_ns);
        let flow = self.arbiter.next(|flow| waits(&self.queues[flow]));
        let flow = flow.expect("a command waits at its issue");
        let queue = &mut self.queues[flow];
        let part = queue.take(&mut self.pages)?;
        let part = part.expect("a command waits at its issue");
        let number = self.register(flow, &part, issue_ns);
        self.queues[flow].follow(&part, number)?;
        let command = Command {
            request: part.request,
            arrival_ns: part.arrival_ns,
            issue_ns,
            now_ns,
        };
        self.commands.push_back(Some(number));
        self.last_issue_ns = issue_ns;
        device.issue(&command, &self.pages, &mut self.ended);
        self.complete(device);
        device.look();
        Ok(true)
    }

    /// Commands are numbered from there if none is known.
    fn commands_from(&mut self, number: u64) {
        if self.commands.is_empty() {
            self.first = number;
        }
    }

    /// The time that timers of the scheme go by: none of the commands to come arrives before. A closed loop has none
    /// (docs/spec/timing.md, section 4).
    fn time_of_timers(&self) -> u64 {
        if self.queues.iter().all(Queue::is_closed) {
            return 0;
        }
        let queues = self.queues.iter().filter(|queue| !queue.is_over());
        let arrivals = queues.map(|queue| queue.waits_since_ns().unwrap_or(self.last_issue_ns));
        arrivals.min().unwrap_or(self.last_issue_ns)
    }

    /// Whether the command that comes next may be work for the scheme.
    fn may_reach_scheme(&mut self) -> bool {
        let (queues, pages) = (&mut self.queues, &mut self.pages);
        queues.iter_mut().any(|queue| queue.reaches_scheme(pages))
    }

    /// The latest issue, s.
    pub(crate) fn now_s(&self) -> f64 {
        self.last_issue_ns as f64 / 1e9
    }

    /// The first instant at which a command waits and the device has room; none if no command is left.
    fn wait(&mut self, device: &mut dyn Device) -> Option<u64> {
        let mut now_ns = self.last_issue_ns;
        loop {
            let first_ns = self.queues.iter().filter_map(Queue::waits_since_ns).min();
            let has_room = self.depth == 0 || device.under_way() < self.depth;
            let issue_ns = first_ns.filter(|_| has_room).map(|ns| ns.max(now_ns));
            // What is complete then leaves its place, and may bring another command.
            let by_ns = issue_ns.unwrap_or(TIME_MAX_NS);
            if !device.completes_by(by_ns, &mut self.ended) {
                return issue_ns;
            }
            let last = self.ended.iter().map(|completion| completion.end_ns);
            now_ns = last.fold(now_ns, u64::max);
            self.complete(device);
        }
    }

    /// Notes a command that is taken; the number of its request among those under way.
    fn register(&mut self, flow: usize, part: &Part, issue_ns: u64) -> u32 {
        let queue = &mut self.queues[flow];
        let kind = self.pages.kind.expect("a mapped request has a kind");
        let measured = &mut queue.measured;
        measured.commands += 1;
        measured.first_arrival_ns.get_or_insert(part.arrival_ns);
        let bytes = part.request.bytes;
        match kind {
            Kind::Read => {
                measured.read_bytes += bytes;
                measured.page_reads += u64::from(self.pages.pages);
            }
            Kind::Write => {
                measured.write_bytes += bytes;
                measured.page_writes += u64::from(self.pages.pages);
            }
            _ => {}
        }
        let request = InFlight::new(kind, part.arrival_ns, issue_ns);
        let number = part.of.unwrap_or_else(|| self.begin(flow, request));
        let whole = &mut self.wholes[number as usize];
        whole.parts += 1;
        whole.bytes += bytes;
        whole.all_taken = part.is_last;
        let begun = |queue: &Queue<'_>| queue.measured.commands > 0;
        self.all_begun = self.all_begun || self.queues.iter().all(begun);
        number
    }

    /// The number of a request of which nothing was taken so far.
    fn begin(&mut self, flow: usize, request: InFlight) -> u32 {
        let whole = Whole {
            flow,
            request,
            parts: 0,
            bytes: 0,
            all_taken: false,
            end_ns: 0,
            first_start_ns: u64::MAX,
        };
        if let Some(number) = self.free.pop() {
            self.wholes[number as usize] = whole;
            return number;
        }
        self.wholes.push(whole);
        self.wholes.len() as u32 - 1
    }

    /// Takes what has ended: parts to their requests, and requests that are complete to the measurements.
    fn complete(&mut self, device: &mut dyn Device) {
        for at in 0..self.ended.len() {
            let completion = self.ended[at];
            let command = &mut self.commands[(completion.request - self.first) as usize];
            let number = command.take().expect("a command ends once");
            while let Some(None) = self.commands.front() {
                self.commands.pop_front();
                self.first += 1;
            }
            let whole = &mut self.wholes[number as usize];
            whole.parts -= 1;
            whole.end_ns = whole.end_ns.max(completion.end_ns);
            whole.first_start_ns = whole.first_start_ns.min(completion.first_start_ns);
            if whole.parts == 0 && whole.all_taken {
                let whole = *whole;
                self.free.push(number);
                self.measure(&whole, completion.request, device);
            }
        }
        self.ended.clear();
    }

    fn measure(&mut self, whole: &Whole, number: u64, device: &mut dyn Device) {
        let completion = Completion {
            end_ns: whole.end_ns,
            request: number,
            first_start_ns: whole.first_start_ns,
        };
        device.measure(whole.request, completion);
        let queue = &mut self.queues[whole.flow];
        queue.completed(whole.end_ns);
        let measured = &mut queue.measured;
        let kind = whole.request.kind;
        measured.completed(kind, whole.request.arrival_ns, whole.end_ns);
        if self.all_begun && !self.one_over && matches!(kind, Kind::Read | Kind::Write) {
            let Together { requests, bytes } = &mut measured.together;
            *requests += 1;
            *bytes += whole.bytes;
        }
        self.one_over |= self.queues[whole.flow].is_over();
    }
}
