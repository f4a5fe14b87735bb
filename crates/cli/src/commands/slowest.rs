//! The window of the slowest request. Which request that is is known when the run is over; so the run is made again, and
//! keeps what the flash did between the arrival and the completion of that request.

use floatgate_sim::clock::Operation;
use floatgate_sim::requests::RequestRow;
use floatgate_sim::run::{Besides, RunError};
use floatgate_sim::why;
use floatgate_sim::window::Window;

use super::single::Ready;
use crate::errors::Outcome;
use crate::progress::Bar;
use crate::report::slowest::Slowest;
use crate::states::DeviceFiles;

/// Operations that are drawn; more cannot be told apart.
const BARS: usize = 2000;

/// Plays the trace again for the slowest request of a run that has no flows.
///
/// # Errors
/// As [`Ready::play`].
pub fn window(ready: &Ready<'_>, slowest: &why::Slowest) -> Outcome<Slowest> {
    let config = ready.config();
    let mut window = Window::new(slowest.row, BARS);
    let bar = Bar::new(ready.requests(), "requests, for the slowest one");
    let played = ready.play(|scheme, device, source, _| {
        let mut again = None;
        let mut rows = |rows: &[RequestRow]| {
            let same = |row: &&RequestRow| row.request == slowest.row.request;
            again = again.or_else(|| rows.iter().find(same).copied());
            Ok(())
        };
        let mut operations = |operations: &[Operation]| {
            window.operations(operations);
            Ok(())
        };
        let besides = Besides {
            rows: Some(&mut rows),
            operations: Some(&mut operations),
            ..Besides::default()
        };
        // The first run has saved the state already.
        let device = DeviceFiles {
            save: None,
            ..device
        };
        device.run(scheme, config, source, &mut |step| bar.step(step), besides)?;
        let times = |row: &RequestRow| (row.arrival_ns, row.end_ns);
        match again.is_some_and(|row| times(&row) == times(&slowest.row)) {
            true => Ok(()),
            false => Err(RunError::Law(format!(
                "request {} took another time when the run was made again",
                slowest.row.request
            ))),
        }
    });
    bar.done();
    played?;
    Ok(Slowest::of(
        &slowest.slow,
        &window,
        &config.device.machine(),
    ))
}
