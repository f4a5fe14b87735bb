//! Streams for the processes of a trace.

use crate::error::Fault;
use crate::options::StreamFrom;
use crate::volumes::Names;
use crate::{Op, Request, Stream};

/// Gives writes the streams of their processes, if that was asked for.
///
/// Processes are numbered in the order of their first writes: one that only reads would use up a number, and a drive
/// has few of them.
#[derive(Default)]
pub(crate) struct Processes(Option<Names>);

impl Processes {
    pub fn new(from: StreamFrom) -> Self {
        Self(match from {
            StreamFrom::Trace => None,
            StreamFrom::Process => Some(Names::of_processes()),
        })
    }

    /// The request, with the stream of its process if it is a write.
    #[inline]
    pub fn give<N: AsRef<[u8]>>(
        &mut self,
        mut request: Request,
        process: impl FnOnce() -> N,
    ) -> Result<Request, Fault> {
        if let Some(names) = &mut self.0
            && request.op == Op::Write
        {
            let number = names.number(process().as_ref())?;
            request.stream = crate::formats::stream_of(number.into())?;
        }
        Ok(request)
    }

    /// The process of a stream.
    pub fn name(&self, stream: Stream) -> Option<String> {
        Some(self.0.as_ref()?.name(stream.number()?))
    }
}
