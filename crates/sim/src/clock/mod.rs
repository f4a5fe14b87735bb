//! Clocks: when the operations of a scheme start and end
//! (docs/spec/timing.md).
//!
//! A scheme issues operations in the order in which it decides them and gets a
//! [`Clock::Token`] for the end of each; a clock turns these into nanoseconds.
//! Operations of a die run in the order of issue, transfers share the bus of
//! their channel, first come, first served.
//!
//! * [`Closed`] computes every end at the moment of issue. It is exact where no
//!   two dies can want the same bus ([`Closed::fits`]).
//! * [`Events`] is exact always: it keeps the operations whose end still
//!   depends on what may come, and settles them as time passes.
//! * [`Scheduled`] lets operations overtake each other, as a [`Schedule`] says.
//! * [`list`] replays a list that is known whole (the conformance vectors). It
//!   is written for plainness, straight from the rules, and judges the others.

mod channel;
mod closed;
mod device;
mod events;
pub mod list;
mod machine;
mod pcm;
mod schedule;
mod scheduled;
mod shape;
mod token;
mod watch;

use floatgate_core::report::Cause;

pub use closed::{Closed, KnownEnd};
pub use events::Events;
pub use machine::{
    Allocation, FlashOp, MAX_DIES, Machine, Mode, OpKind, Phases, Programming, Sensing, TIME_MAX_NS,
};
pub use schedule::{Policy, Schedule, ScheduleStats, Suspend};
pub use scheduled::{NodeToken, Scheduled};
pub use token::EventToken;
pub use watch::{Does, Note, Operation};

#[cfg(test)]
mod tests;

/// The end of a host request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Completion {
    // The order of the fields is the order in which completions compare.
    /// `e_j`: end of the request's last own operation, its issue if it has
    /// none (docs/spec/timing.md, section 4).
    pub end_ns: u64,
    /// The running number given to [`Clock::begin_request`].
    pub request: u64,
    /// `b_j`: earliest start of the operations issued for the request up to its
    /// last own one, its issue if there is none (docs/spec/metrics.md, section 3).
    pub first_start_ns: u64,
}

impl Completion {
    /// Of a request issued at `issue_ns`; `first_start_ns`: earliest known start of its operations, `u64::MAX` if there is
    /// none. A request that waits for no operation can be over before the first one of those it sets off starts.
    #[inline(always)]
    const fn of(request: u64, issue_ns: u64, first_start_ns: u64, end_ns: u64) -> Self {
        Self {
            end_ns,
            request,
            first_start_ns: if first_start_ns <= end_ns {
                first_start_ns
            } else {
                issue_ns
            },
        }
    }
}

/// A timing engine.
///
/// # Protocol
/// For a host request `j`: [`set_time`](Self::set_time)`(s_j)`,
/// [`begin_request`](Self::begin_request), the operations with
/// [`own`](Self::own) directly after the own ones,
/// [`end_request`](Self::end_request). For idle or timed work: `set_time`, the
/// operations. Never more than one request is open; a request that is cut into
/// parts (docs/spec/timing.md, "Addresses past the end") is opened once for all
/// of them.
///
/// # Time
/// `at` never goes down from one *operation* to the next
/// (docs/spec/timing.md, section 4), and never below what was granted: after [`advance`](Self::advance)`(t)`
/// no operation may have `at < t`. `set_time` by itself grants nothing, so a
/// time set for a request that issues no operation binds nobody.
///
/// # Tokens
/// A token stands for an end. Schemes keep it within one request or one
/// background merge; the engines honour it until [`reset`](Self::reset): an
/// engine forgets an end only when it is over, and then it delays nothing.
pub trait Clock: Sized {
    /// The end of an operation, or of several; the default waits for nothing.
    type Token: Copy + Default + std::fmt::Debug;

    /// True if every end is known, for good, when the operation is issued.
    const EXACT_AT_ISSUE: bool;

    /// Whether operations of a die may overtake each other. Then each must name its page, so that runs of copies are issued
    /// one by one.
    const REORDERS: bool = false;

    /// An idle machine at time 0. The machine should be
    /// [valid](Machine::validate); one without channels or dies gets one.
    fn new(machine: &Machine) -> Self;

    /// Sets `at` (ns) of the operations issued from now on, and the issue time
    /// of the requests begun from now on.
    fn set_time(&mut self, at_ns: u64);

    /// Issues an operation, released not before `at` and the end of `after`. Where PCM [reads
    /// first](floatgate_core::pcm::PcmSetup), its reads wait for nothing, and its writes cannot be waited for.
    ///
    /// # Panics
    /// If `op.die` is not a die of the machine, or not a chip of its PCM.
    fn issue(&mut self, op: FlashOp, after: Self::Token) -> Self::Token;

    /// Issues `pages` page copies inside one die, the first one after `after`:
    /// one copy-back each, or a read and a program that waits for it. The end
    /// of the last one.
    fn copies(
        &mut self,
        die: u32,
        pages: u32,
        copyback: bool,
        cause: Cause,
        after: Self::Token,
    ) -> Self::Token {
        let of = |kind| FlashOp::new(kind, die).because(cause);
        let mut last = after;
        for page in 0..pages {
            // The die's own order chains the copies.
            let after = if page == 0 {
                after
            } else {
                Self::Token::default()
            };
            last = if copyback {
                self.issue(of(OpKind::CopyBack), after)
            } else {
                let read = self.issue(of(OpKind::Read), after);
                self.issue(of(OpKind::Program), read)
            };
        }
        last
    }

    /// The later of two ends.
    fn join(&mut self, a: Self::Token, b: Self::Token) -> Self::Token;

    /// Opens host request `request`, issued at the time set. Numbers should go
    /// up; they only name the completion.
    fn begin_request(&mut self, request: u64);

    /// The open request is complete only when `token` is over. To be called
    /// when the own operation is the newest one: all operations that the
    /// request has issued so far count for its first start.
    fn own(&mut self, token: Self::Token);

    /// The open request has work beside the flash, from its issue to `end_ns`: it started at its issue, and is not
    /// complete before.
    fn own_beside(&mut self, end_ns: u64);

    /// Closes the open request.
    fn end_request(&mut self);

    /// Closes the open request and hands out its completion at once, if the clock knows it for good; if not, it
    /// is handed out like any other. [`EXACT_AT_ISSUE`](Self::EXACT_AT_ISSUE): it always does.
    fn end_request_known(&mut self) -> Option<Completion> {
        self.end_request();
        None
    }

    /// Appends the completions that are settled and not yet handed out, each
    /// request once, in no order to rely on (the same in every run).
    /// [`Events`] hands out what it knows, which after [`catch_up`](Self::catch_up)
    /// is at least what is complete at the time granted so far, and comes to know everything in time;
    /// [`Closed`] hands out everything.
    fn drain(&mut self, out: &mut Vec<Completion>);

    /// Hands out the earliest completion (of equal ones the lowest number) of
    /// the closed requests that were not handed out, granting only asks before
    /// it; `None` if there is none. It is final provided that no operation is
    /// issued with `at` before its end: a host with queue depth `Q` has `Q`
    /// requests out and can issue nothing before one of them completes.
    ///
    /// ```text
    /// s = max(a_j, s_(j-1));
    /// while in_flight >= Q { s = max(s, next_completion().end_ns); in_flight -= 1 }
    /// ```
    fn next_completion(&mut self) -> Option<Completion> {
        self.next_completion_by(TIME_MAX_NS)
    }

    /// The same of a host that issues at `by_ns` unless a completion, which may come at that very time, lets it issue
    /// earlier: `None` if there is none up to then. Grants no ask later than `by_ns`.
    fn next_completion_by(&mut self, by_ns: u64) -> Option<Completion>;

    /// Comes to know every completion up to `at_ns`, which must not lie after the issue of what follows. Grants no ask
    /// later than the latest completion, as [`idle_since`](Self::idle_since).
    fn settle(&mut self, at_ns: u64);

    /// How many of the completions that are settled and not yet handed out come not after `at_ns`.
    fn complete_by(&self, at_ns: u64) -> u64;

    /// The latest completion `m` of all requests closed so far, handed out or
    /// not, if they are all complete before `until_ns`; else `None`, also if
    /// there was no request. Grants no ask later than `m`, so idle work with
    /// `at` from `m` on may follow. (Not so [`advance`](Self::advance): it
    /// would settle transfers that idle work can still precede.)
    fn idle_since(&mut self, until_ns: u64) -> Option<u64>;

    /// Grants every ask at or before `at` of the newest operation, on all channels.
    fn catch_up(&mut self);

    /// Grants every ask at or before `until_ns`: from now on no operation may
    /// have `at` before it.
    fn advance(&mut self, until_ns: u64);

    /// Grants everything: no further operation comes before the latest end.
    fn finish(&mut self);

    /// The end, if it is settled. A token whose end is forgotten because it is
    /// over counts as ended at 0.
    fn known_end(&self, token: Self::Token) -> Option<u64>;

    /// Busy time of each die so far: the phases of its operations, counted at
    /// issue; waiting for the bus is not in it (docs/spec/metrics.md, section 3).
    fn die_busy_ns(&self) -> Vec<u64>;

    /// Busy time of each channel's bus so far, counted at issue.
    fn channel_busy_ns(&self) -> Vec<u64>;

    /// Busy time of each die, then of each channel.
    fn busy_ns(&self) -> Vec<u64> {
        let mut busy_ns = self.die_busy_ns();
        busy_ns.extend(self.channel_busy_ns());
        busy_ns
    }

    /// Busy time of all PCM chips so far, counted at issue.
    fn pcm_busy_ns(&self) -> u64;

    /// Latest end of any operation, PCM included, of those that are settled
    /// (all of them after [`finish`](Self::finish)); 0 if there is none.
    fn last_end_ns(&self) -> u64;

    /// From now on takes notes of what becomes of single requests on the dies, and keeps the `operations` if they are
    /// wanted. To be called while nothing is under way, and again after a [`reset`](Self::reset).
    fn watch(&mut self, operations: bool);

    /// What was issued since the call before was for that request, or (none) in idle time.
    fn watched(&mut self, request: Option<u64>);

    /// The notes taken since they were taken out last; the PCM chips count as the dies after the last; chips that read first are not in them.
    fn notes(&mut self) -> &mut Vec<Note>;

    /// The operations whose end has become known since they were taken out last, if they are kept; of a die in their
    /// order. Chips that read first are not in them. [`Closed`] keeps none: it would pay for it in every run.
    fn operations(&mut self) -> Option<&mut Vec<Operation>> {
        None
    }

    /// What came of the schedule, if it has one.
    fn schedule_stats(&self) -> Option<ScheduleStats> {
        None
    }

    /// All dies and buses are free at 0 again, statistics are 0, requests and
    /// completions are forgotten (docs/spec/metrics.md, section 7: after a warm-up).
    /// Tokens from before are void.
    fn reset(&mut self);
}
