//! Makes rows of requests while they are played.
//!
//! Work and merges are told from the difference of the counters before and after the request, waits from what the clock
//! notes about the dies, so a run that records nothing pays a few tests a request.

use std::collections::VecDeque;

use floatgate_core::report::{Cause, FlashCounters};

use crate::clock::{FlashOp, Machine, Mode, Note, OpKind};
use crate::flash::Fine;
use crate::host::{Kind, PageRequest};
use crate::merges::MergeKinds;
use crate::requests::{Behind, RequestRow, Waited, Work};

/// How long each operation takes on a machine that is idle.
#[derive(Clone, Copy, Debug)]
struct Durations {
    read_ns: u64,
    /// Part of `read_ns` that is the transfer of a whole page.
    read_data_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    oob_read_ns: u64,
    copyback_ns: u64,
    pcm_read_ns: u64,
    pcm_write_ns: u64,
}

impl Durations {
    fn of(machine: &Machine) -> Self {
        let of = |kind| machine.duration_ns(FlashOp::new(kind, 0));
        let read = FlashOp::new(OpKind::Read, 0);
        Self {
            read_ns: of(OpKind::Read),
            read_data_ns: if machine.mode == Mode::Flat {
                0
            } else {
                machine.data_ns(read)
            },
            program_ns: of(OpKind::Program),
            erase_ns: of(OpKind::Erase),
            oob_read_ns: of(OpKind::OobRead),
            copyback_ns: of(OpKind::CopyBack),
            pcm_read_ns: of(OpKind::PcmRead),
            pcm_write_ns: of(OpKind::PcmWrite),
        }
    }

    /// The work of everything counted so far.
    fn work(&self, c: &FlashCounters, fine: &Fine) -> Work {
        let times = |n: u64, ns: u64| n.wrapping_mul(ns);
        // A copy-back is counted as a read and a program; it moves no data.
        let copies = |reads: u64, programs: u64, copybacks: u64| {
            times(reads - copybacks, self.read_ns)
                .wrapping_add(times(programs - copybacks, self.program_ns))
                .wrapping_add(times(copybacks, self.copyback_ns))
        };
        let map = copies(c.reads.map, c.programs.map, fine.map_copybacks);
        let gc = copies(
            c.reads.gc,
            c.programs.gc,
            fine.copybacks - fine.map_copybacks,
        );
        let host = copies(c.reads.host, c.programs.host, 0);
        let more = |ns: &[u64; 3], cause: Cause| ns[cause as usize];
        let cells_ns =
            |cause| more(&fine.sensing_ns, cause).wrapping_add(more(&fine.programming_ns, cause));
        let (short_count_ns, short_ns) = match self.read_data_ns {
            0 => (0, 0),
            whole_ns => (times(fine.short_reads, whole_ns), fine.short_read_data_ns),
        };
        Work {
            translation_ns: map
                .wrapping_add(cells_ns(Cause::Map))
                .wrapping_add(times(c.oob_reads.map, self.oob_read_ns))
                .wrapping_add(times(c.erases.map, self.erase_ns))
                .wrapping_add(times(c.pcm_reads, self.pcm_read_ns))
                .wrapping_add(times(c.pcm_writes, self.pcm_write_ns)),
            flash_ns: host
                .wrapping_add(fine.one_bit.work_ns[0])
                .wrapping_add(cells_ns(Cause::Host))
                .wrapping_sub(short_count_ns)
                .wrapping_add(short_ns)
                .wrapping_add(times(c.oob_reads.host, self.oob_read_ns)),
            gc_ns: gc
                .wrapping_add(fine.one_bit.work_ns[1])
                .wrapping_add(cells_ns(Cause::Gc))
                .wrapping_add(times(c.oob_reads.gc, self.oob_read_ns))
                .wrapping_add(times(c.erases.gc, self.erase_ns)),
        }
    }
}

/// A die that a request in the making has work on.
#[derive(Clone, Copy, Debug)]
struct Touched {
    die: u32,
    /// Whose work came last there before.
    behind: Option<Behind>,
    /// When that was done, once it is known.
    free_ns: Option<u64>,
    /// Latest known end of the request's own work there.
    end_ns: u64,
}

/// A row in the making.
#[derive(Clone, Debug)]
struct Pending {
    row: RequestRow,
    dies: Vec<Touched>,
    done: bool,
}

impl Pending {
    fn touch(&mut self, die: u32, behind: Option<Behind>) {
        if self.touched(die).is_none() {
            self.dies.push(Touched {
                die,
                behind,
                free_ns: None,
                end_ns: 0,
            });
        }
    }

    fn touched(&mut self, die: u32) -> Option<&mut Touched> {
        self.dies.iter_mut().find(|touched| touched.die == die)
    }

    fn complete(&mut self, start_ns: u64, end_ns: u64) {
        let row = &mut self.row;
        (row.start_ns, row.end_ns) = (start_ns, end_ns);
        let dies = self.dies.iter();
        row.dies = dies.len() as u32;
        // A die that the request left work behind on ends later.
        let last = dies.clone().filter(|die| die.end_ns >= end_ns);
        row.die_last = last
            .min_by_key(|die| (die.end_ns, die.die))
            .map(|die| die.die);
        let issue_ns = row.issue_ns;
        let waits = dies.filter_map(|die| {
            // What began only after the completion did not delay it.
            let free_ns = die.free_ns.filter(|&ns| ns > issue_ns && ns < end_ns)?;
            Some(Waited {
                ns: free_ns - issue_ns,
                die: die.die,
                behind: die.behind?,
            })
        });
        row.waited = waits.max_by_key(|waited| (waited.ns, std::cmp::Reverse(waited.die)));
        self.done = true;
    }
}

/// Makes rows of requests, in the order of the trace.
#[derive(Debug)]
pub(crate) struct Recorder {
    durations: Durations,
    /// Work and merges when the scheme was looked at last, and the counters that told.
    work: Work,
    merges: MergeKinds,
    counters: FlashCounters,
    /// By die: whose work was issued there last.
    last_on: Vec<Option<Behind>>,
    background: (Work, MergeKinds),
    /// Number of the request at the front.
    first: u64,
    pending: VecDeque<Pending>,
    rows: Vec<RequestRow>,
}

impl Recorder {
    pub(crate) fn new(machine: &Machine, next: u64) -> Self {
        Self {
            durations: Durations::of(machine),
            work: Work::default(),
            merges: MergeKinds::default(),
            counters: FlashCounters::default(),
            last_on: vec![None; machine.dies.max(1) as usize],
            background: Default::default(),
            first: next,
            pending: VecDeque::new(),
            rows: Vec::new(),
        }
    }

    /// The next request is issued.
    pub(crate) fn issued(
        &mut self,
        kind: Kind,
        arrival_ns: u64,
        issue_ns: u64,
        pages: &PageRequest,
    ) {
        let (first_lpn, count) = match kind {
            Kind::Flush | Kind::Drain | Kind::EmptyTrim => (0, 0),
            _ => (
                pages.segments.first().map_or(0, |segment| segment.first.0),
                pages.pages,
            ),
        };
        let row = RequestRow {
            request: self.first + self.pending.len() as u64,
            kind,
            first_lpn,
            pages: count,
            arrival_ns,
            issue_ns,
            start_ns: issue_ns,
            end_ns: issue_ns,
            work: Work::default(),
            merges: MergeKinds::default(),
            dies: 0,
            die_last: None,
            waited: None,
        };
        self.pending.push_back(Pending {
            row,
            dies: Vec::new(),
            done: false,
        });
    }

    /// The scheme begins to work on the request issued last: what came since it was looked at last belongs to none.
    pub(crate) fn begins(
        &mut self,
        counters: &FlashCounters,
        fine: &Fine,
        merges: impl FnOnce() -> MergeKinds,
    ) {
        let (work, merges) = self.look(counters, fine, merges);
        self.background.0 += work;
        self.background.1 += merges;
    }

    /// The scheme has done all it does for it.
    pub(crate) fn worked(
        &mut self,
        counters: &FlashCounters,
        fine: &Fine,
        merges: impl FnOnce() -> MergeKinds,
    ) {
        let (work, merges) = self.look(counters, fine, merges);
        if let Some(pending) = self.pending.back_mut() {
            (pending.row.work, pending.row.merges) = (work, merges);
        }
    }

    /// Work and merges since the call before.
    fn look(
        &mut self,
        counters: &FlashCounters,
        fine: &Fine,
        merges: impl FnOnce() -> MergeKinds,
    ) -> (Work, MergeKinds) {
        let work = self.durations.work(counters, fine);
        let worked = work.since(std::mem::replace(&mut self.work, work));
        let before = std::mem::replace(&mut self.counters, *counters);
        // A merge writes or erases something, and to ask every die for its merges takes long.
        if (before.programs, before.erases) == (counters.programs, counters.erases) {
            return (worked, MergeKinds::default());
        }
        let merges = merges();
        let merged = merges.since(std::mem::replace(&mut self.merges, merges));
        (worked, merged)
    }

    /// Takes what the clock has noted.
    pub(crate) fn note(&mut self, notes: &mut Vec<Note>) {
        for note in notes.drain(..) {
            match note {
                Note::Issued { request, die } => {
                    // The PCM device is no die.
                    let Some(last) = self.last_on.get_mut(die as usize) else {
                        continue;
                    };
                    let now = request.map_or(Behind::Background, Behind::Request);
                    let behind = last.replace(now);
                    if let Some(pending) = request.and_then(|request| self.pending(request)) {
                        pending.touch(die, behind);
                    }
                }
                Note::Started {
                    request,
                    die,
                    free_ns,
                } => {
                    if let Some(touched) = self.touched(request, die) {
                        touched.free_ns.get_or_insert(free_ns);
                    }
                }
                Note::Ended {
                    request,
                    die,
                    end_ns,
                } => {
                    if let Some(touched) = self.touched(request, die) {
                        touched.end_ns = end_ns;
                    }
                }
            }
        }
    }

    fn pending(&mut self, request: u64) -> Option<&mut Pending> {
        let place = request.checked_sub(self.first)?;
        self.pending.get_mut(place as usize)
    }

    fn touched(&mut self, request: u64, die: u32) -> Option<&mut Touched> {
        self.pending(request)?.touched(die)
    }

    /// A request is complete.
    pub(crate) fn done(&mut self, request: u64, start_ns: u64, end_ns: u64) {
        let Some(pending) = self.pending(request) else {
            return;
        };
        pending.complete(start_ns, end_ns);
        while let Some(front) = self.pending.front().filter(|front| front.done) {
            self.rows.push(front.row);
            self.pending.pop_front();
            self.first += 1;
        }
    }

    pub(crate) fn rows(&mut self) -> &mut Vec<RequestRow> {
        &mut self.rows
    }

    /// Work and merges that belong to no request.
    pub(crate) fn background(&self) -> (Work, MergeKinds) {
        self.background
    }
}
