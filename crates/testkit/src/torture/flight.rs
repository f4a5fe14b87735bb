//! Several dies in flight: a cut finds each die at a point of its own.
//!
//! A run on a small device is cut in every request, several times, and each time chance decides how far every die has come,
//! within what [`FlightFlash`] allows. What is left is recovered and checked as after any other cut. A share of these
//! devices goes on: the recovery is cut in the same way, and then the requests after it, with operations of the
//! recovery still running if the host has not read everything before.

use super::cases::random_case_on;
use super::cuts::{Torture, prepare};
use super::model::{INITIAL, PAGE_BYTES, Request, ZEROES};
use super::{Effort, Finding, Tally, Trial, catch, means_for};
use crate::case::Case;
use crate::cut::CutFlash;
use crate::flight::{FlightFlash, Wreck};
use crate::ram::RamFlash;
use floatgate_core::address::LogicalPage;
use floatgate_core::flash::Slot;
use floatgate_core::ftl::{Ftl, MountError, Run};
use floatgate_core::rng::SplitMix64;

/// Cuts of one request of the run, and of one after a recovery or of a recovery.
const CUTS: usize = 6;
const CUTS_LATER: usize = 2;
/// Of so many cut devices one goes on.
const GOES_ON_ONE_IN: u64 = 6;
/// So many requests.
const REQUESTS_LATER: u32 = 3;
/// Cuts in a row.
const CUTS_IN_A_ROW: usize = 4;
/// After so many requests the device is told to shut down; it goes on.
const SHUTDOWN_EVERY: u32 = 7;
/// Dies of a random case: few need more than two to go wrong, some do.
const DIES: [u32; 8] = [1, 2, 2, 2, 3, 3, 4, 4];

/// The cuts of a device's life: the request since it last came up in which the power went (0: in the recovery), and the
/// chance that stopped the dies.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Flights(pub(super) Vec<(u32, u64)>);

impl Flights {
    fn then(&self, at: u32, chance: u64) -> Self {
        let mut flights = self.0.clone();
        flights.push((at, chance));
        Self(flights)
    }

    /// The cuts after which something breaks by itself, at that request since the device came up: a further cut names
    /// it, and is not reached.
    fn until(&self, at: u32) -> Self {
        match self.0[..] {
            [] => Self::default(),
            _ => self.then(at, 0),
        }
    }

    /// A number that only this chain has.
    fn number(&self) -> u64 {
        let mix = |sum: u64, &(at, chance): &(u32, u64)| {
            SplitMix64::new(sum ^ chance.rotate_left(17) ^ u64::from(at)).next()
        };
        self.0.iter().fold(0, mix)
    }
}

struct Life<'a, S: Ftl> {
    torture: Torture<'a, S>,
    /// The one chain of cuts to try, if not all.
    only: Option<&'a Flights>,
    /// The cuts after which something broke. None if it broke before.
    broken_by: Flights,
    tally: Tally,
}

/// No request: what is in work is a recovery.
const NOTHING: Request = Request {
    op: 'S',
    first: 0,
    pages: 0,
    version: 0,
    number: 0,
};

impl<S: Ftl> Life<'_, S> {
    fn run(&mut self) -> Result<(), String> {
        let Torture {
            case,
            space,
            options,
            ..
        } = &self.torture;
        let mut ram = RamFlash::new(&space.geometry, PAGE_BYTES);
        let ftl = catch(|| S::format(space, options, case.start, &mut ram))?
            .map_err(|refusal| format!("refused: {refusal}"))?;
        let requests = case.requests;
        let flash = FlightFlash::new(ram, self.reach());
        self.live(ftl, flash, &Flights::default(), requests, 0)
    }

    /// Requests for which an operation that nobody waits for may go on: long for some devices, short for others.
    fn reach(&self) -> usize {
        [1, 2, 4, 8][self.torture.case.seed as usize % 4]
    }

    /// So many requests, each of them cut. `torn`: operations that were torn before.
    fn live(
        &mut self,
        mut ftl: S,
        mut flash: FlightFlash,
        chain: &Flights,
        requests: u32,
        torn: usize,
    ) -> Result<(), String> {
        let depth = chain.0.len();
        let mut rng = SplitMix64::new(self.torture.case.seed ^ chain.number());
        let mut version = INITIAL + 1 + ((depth as u32) << 20);
        for number in 1..=requests {
            let next = self.only.and_then(|only| only.0.get(depth));
            if next.is_some_and(|&(at, _)| at < number) {
                break;
            }
            let request = match number % SHUTDOWN_EVERY {
                0 => Request { number, ..NOTHING },
                _ => Request::random(&mut rng, self.torture.case, version, number),
            };
            version += request.pages;
            flash.begin_request();
            self.send(&request, &mut ftl, &mut flash)
                .map_err(|error| format!("request {number} {request:?}: {error}"))
                .inspect_err(|_| self.broken_by = chain.until(number))?;
            self.cut_some(&flash, chain, number, &request, torn)?;
            self.torture.acknowledge(&request);
        }
        Ok(())
    }

    fn send(&self, request: &Request, ftl: &mut S, flash: &mut FlightFlash) -> Result<(), String> {
        catch(|| {
            if request.op == 'S' {
                return ftl.shutdown(flash);
            }
            request.arrive(ftl, flash)?;
            if request.op == 'W' && request.version.is_multiple_of(3) {
                self.read_old(request, ftl, flash);
            }
            request.carry_out(ftl, flash)
        })
        .map(|sent| sent.unwrap_or_else(|never| match never {}))?;
        if request.op == 'R' {
            return self.compare_read(request, &flash.ram);
        }
        Ok(())
    }

    /// The first and the last page of a write are written in part: what they hold is read before.
    fn read_old(&self, request: &Request, ftl: &mut S, flash: &mut FlightFlash) {
        flash.ram.new_request(request.pages);
        flash.read_old_content(true);
        for i in [0, request.pages - 1] {
            let lpn = request.first + i;
            if self.torture.shadow[lpn as usize].now != ZEROES {
                let page = Run::page_at(S::Page::from_number(lpn), Slot(i));
                let Ok(()) = ftl.read(flash, &page);
            }
        }
        flash.read_old_content(false);
    }

    /// What was read is something that the page may hold: after a cut there can be more than one such thing.
    fn compare_read(&self, request: &Request, ram: &RamFlash) -> Result<(), String> {
        for (lpn, bytes) in request.pages().zip(ram.buffer()) {
            let version = super::model::version_of(lpn, bytes)?;
            let page = &self.torture.shadow[lpn as usize];
            if !page.may_hold(version) {
                return Err(format!(
                    "page {lpn} reads version {version}; the host knows {page:?}"
                ));
            }
        }
        Ok(())
    }

    /// Cuts what is in work several times, or as the one chain says.
    fn cut_some(
        &mut self,
        flash: &FlightFlash,
        chain: &Flights,
        number: u32,
        request: &Request,
        torn: usize,
    ) -> Result<(), String> {
        let depth = chain.0.len();
        if let Some(only) = self.only {
            return match only.0.get(depth) {
                Some(&(at, chance)) if at == number => {
                    self.cut(flash, &chain.then(at, chance), request, torn)
                }
                _ => Ok(()),
            };
        }
        let cuts = if depth == 0 { CUTS } else { CUTS_LATER };
        let seed = self.torture.case.seed ^ chain.number() ^ u64::from(number) << 40;
        let mut rng = SplitMix64::new(!seed);
        for _ in 0..cuts {
            let chance = rng.next() >> 40;
            self.cut(flash, &chain.then(number, chance), request, torn)?;
        }
        Ok(())
    }

    /// One cut, the last of the chain: the recovery, and with some luck what comes after it.
    fn cut(
        &mut self,
        flash: &FlightFlash,
        chain: &Flights,
        request: &Request,
        torn: usize,
    ) -> Result<(), String> {
        let depth = chain.0.len();
        let (_, chance) = chain.0[depth - 1];
        let wreck = flash.cut(chance);
        let torn = torn + wreck.torn;
        self.tally.tried += 1;
        let known = self.torture.shadow.clone();
        if wreck.is_acknowledged {
            self.torture.acknowledge(request);
        } else {
            self.torture.doubt(request);
        }
        let kept = self.check(&wreck, chain, request, torn);
        let kept = kept.inspect_err(|_| self.broken_by = chain.clone())?;
        let goes_on = match self.only {
            Some(only) => only.0.len() > depth,
            None => self.tally.tried.is_multiple_of(GOES_ON_ONE_IN),
        };
        if !kept {
            self.tally.refused += 1;
        } else if goes_on && depth < CUTS_IN_A_ROW {
            self.go_on(wreck.ram, chain, torn)?;
        }
        self.torture.shadow = known;
        Ok(())
    }

    /// Comes up after the cut, is cut at once, and goes on.
    fn go_on(&mut self, ram: RamFlash, chain: &Flights, torn: usize) -> Result<(), String> {
        let mut flash = FlightFlash::new(ram, self.reach());
        flash.begin_request();
        self.broken_by = chain.until(0);
        let mut ftl = self
            .recover(&mut flash, chain)?
            .map_err(|e| e.to_string())?;
        self.cut_some(&flash, chain, 0, &NOTHING, torn)?;
        // Half of the devices are read first, so that what was in doubt is no more, and all dies rest.
        if chain.number().is_multiple_of(2) {
            let found = self.torture.read_back(&mut ftl, &mut flash)?;
            self.torture.accept(&NOTHING, &found)?;
            flash.rest();
        }
        self.live(ftl, flash, chain, REQUESTS_LATER, torn)
    }

    fn recover<F: floatgate_core::flash::Flash>(
        &self,
        flash: &mut F,
        chain: &Flights,
    ) -> Result<Result<S, MountError<F::Error>>, String> {
        let Torture { space, options, .. } = &self.torture;
        catch(|| S::recover(space, options, means_for(chain.number()), flash))
    }

    /// Recovers a device, checks the contract, and plays on. Whether it came up.
    fn check(
        &self,
        wreck: &Wreck,
        chain: &Flights,
        request: &Request,
        torn: usize,
    ) -> Result<bool, String> {
        let mut flash = CutFlash::new(wreck.ram.clone());
        let mut ftl = match self.recover(&mut flash, chain)? {
            Ok(ftl) => ftl,
            Err(MountError::Refused(why)) if self.torture.allows(&why, torn) => return Ok(false),
            Err(error) => return Err(format!("no recovery: {error}")),
        };
        let found = self.torture.read_back(&mut ftl, &mut flash)?;
        self.torture.compare(request, &found)?;
        self.torture.go_on(ftl, flash, found, chain.number())?;
        Ok(true)
    }
}

pub(crate) fn fly<S: Ftl>(case: &Case, only: Option<&Flights>) -> Result<Tally, Finding> {
    let found = |what, flights| Finding::new(S::KEY, Trial::Flight(case.clone(), flights), what);
    let effort = Effort::default();
    let torture = prepare::<S>(case, &effort, None);
    let mut life = Life {
        torture: torture.map_err(|what| found(what, Flights::default()))?,
        only,
        broken_by: Flights::default(),
        tally: Tally::default(),
    };
    match life.run() {
        Ok(()) => Ok(life.tally),
        Err(what) => Err(found(what, life.broken_by)),
    }
}

/// Flies random devices of a scheme until so many cuts have been tried, or `is_over` says so.
///
/// # Errors
/// The first failure, with a line that [`replay`](crate::replay) takes.
pub fn random_flights<S: Ftl>(
    seed: u64,
    cuts: u64,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<Tally, Finding> {
    let mut rng = SplitMix64::new(seed);
    let mut tally = Tally::default();
    while tally.tried < cuts && !is_over() {
        let requests = 8 + rng.below(32) as u32;
        let case = random_case_on::<S>(&mut rng, &DIES, requests);
        tally += fly::<S>(&case, None)?;
    }
    Ok(tally)
}
