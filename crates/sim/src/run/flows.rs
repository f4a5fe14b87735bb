//! A run of [flows](crate::flows) in place of one trace.

use floatgate_core::{Ftl, Lpn};

use super::{Job, PLAYED_EACH, Progress, RunError, check_backlog, hand_over};
use crate::clock::Clock;
use crate::flows::{Flows, Play, Stopped};
use crate::record;
use crate::session::{Session, options_of};

impl From<Stopped> for RunError {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Trace(error) => Self::Trace(error),
            Stopped::Beyond(text) => Self::Beyond(text),
        }
    }
}

/// Checks the flows of a run, if it has some, before anything is aged for them.
pub(super) fn check<S: Ftl<Page = Lpn>>(job: &Job<'_>) -> Result<(), RunError> {
    if let Some(flows) = &job.besides.flows {
        flows.check(job.config)?;
        // In which order their writes come is not known in advance.
        S::live(&options_of::<S>(job.config)?)?;
    }
    Ok(())
}

pub(super) fn play<S: Ftl<Page = Lpn>, C: Clock>(
    session: &mut Session<S, C>,
    job: &mut Job<'_>,
    flows: &mut Flows,
) -> Result<record::Flows, RunError> {
    session.take_flows();
    let link = flows.link;
    let mut play = Play::new(flows, job.config)?;
    loop {
        let played = play.step(session, PLAYED_EACH)?;
        (job.progress)(Progress::Played(played));
        if played < PLAYED_EACH {
            break;
        }
        hand_over(session, job, PLAYED_EACH as usize)?;
        check_backlog(session, &job.config.host, || {
            format!("{:.3} s into the run", play.now_s())
        })?;
    }
    Ok(record::Flows::of(link, &play.measured()))
}
