//! What happened, so that a test can tell that all of it did.

/// Something that is to happen in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    Delivery,
    Gap,
    Reply,
    Answer,
    Error,
    /// A heartbeat with a position, or a ping.
    Heartbeat,
    Beginning,
    /// A stream or WebSocket that went on behind a cursor.
    Resumption,
    /// A close frame.
    Close,
    /// Messages that were dropped or conflated.
    Drop,
    SlowEnd,
    /// What was missed came in more than one part.
    Part,
    /// What was missed was read for another before.
    Merged,
    /// A frame of which the socket took only a part.
    BegunFrame,
    HeldPoll,
    /// Frames that were not looked at before replies to others had been taken.
    HoldingBack,
    /// The head of an answer over HTTP/2.
    Http2Answer,
    /// A delivery that was compressed.
    Compressed,
    /// The log answered in a later turn.
    LateAnswer,
    LogFailure,
    Timeout,
    Stop,
    Restart,
}

const EVENTS: [Happening; 23] = [
    Happening::Delivery,
    Happening::Gap,
    Happening::Reply,
    Happening::Answer,
    Happening::Error,
    Happening::Heartbeat,
    Happening::Beginning,
    Happening::Resumption,
    Happening::Close,
    Happening::Drop,
    Happening::SlowEnd,
    Happening::Part,
    Happening::Merged,
    Happening::BegunFrame,
    Happening::HeldPoll,
    Happening::HoldingBack,
    Happening::Http2Answer,
    Happening::Compressed,
    Happening::LateAnswer,
    Happening::LogFailure,
    Happening::Timeout,
    Happening::Stop,
    Happening::Restart,
];

/// How often each event happened.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally([u64; EVENTS.len()]);

impl Tally {
    pub fn count(&mut self, event: Happening) {
        self.count_some(event, 1);
    }

    pub fn count_some(&mut self, event: Happening, count: u64) {
        self.0[event as usize] += count;
    }

    /// Adds another, which is empty then.
    pub fn take(&mut self, other: &mut Self) {
        for (sum, more) in self.0.iter_mut().zip(std::mem::take(other).0) {
            *sum += more;
        }
    }

    /// Each event and how often it happened.
    pub fn all(&self) -> impl Iterator<Item = (Happening, u64)> {
        EVENTS.into_iter().zip(self.0)
    }
}
