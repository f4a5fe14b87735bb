//! Listeners: what a device was asked and what was done to it, told to whoever records it.

/// A request, as it came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Bytes are read.
    Read {
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
    /// Bytes are written.
    Write {
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
        /// Whether they are to survive a crash of the machine when the request is answered.
        fua: bool,
    },
    /// A range is to read as zeroes.
    WriteZeroes {
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
    /// A range is dropped.
    Trim {
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
    /// All that was acknowledged is to survive a crash of the machine.
    Flush,
}

/// A change of the device's bytes, or a promise about them, as it was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// Bytes were written.
    Write {
        /// First byte.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
        /// Whether they survive a crash of the machine from now on.
        fua: bool,
    },
    /// The pages that the range covers whole were dropped.
    Trim {
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
    /// All that was done before survives a crash of the machine.
    Flush,
}

/// A listener. It is called under the device's lock, so it hears of everything in the order in which the device does
/// it; it has no say in what is done.
pub trait Tap: Send {
    /// A request has come in, so many nanoseconds after the device was put up. Its outcome is not known yet.
    fn asked(&mut self, _at_ns: u64, _asked: Asked) {}

    /// A change was done. A long request is several changes, between which other clients' may lie.
    fn done(&mut self, _change: &Change<'_>) {}

    /// A client said so, at this point in the order of things: "transaction 17 is committed".
    fn marked(&mut self, _text: &str) {}

    /// The power went, or the device has got another content.
    fn cut(&mut self) {}

    /// The device was shut down.
    ///
    /// # Errors
    /// What kept the listener from recording all it heard.
    fn close(self: Box<Self>) -> Result<(), String>;
}
