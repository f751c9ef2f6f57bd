//! The guarantees, as simple as they can be said: a list of all that was published, and what one who receives has a right
//! to at each moment.

use pushlab_log::Publication;
use pushlab_wire::cursor::{Cursor, Epoch};
use std::fmt;

/// The channels of the simulation.
pub const CHANNELS: [&str; 5] = ["a", "b-1", "c.2", "d:3", "e_4"];

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A publication did not come, though nothing says so.
    Lost,
    /// The same from before a subscription: it should have been replayed, or told as a gap.
    SilentGap,
    /// A publication came twice, or to somebody who has no right to it.
    Doubled,
    /// A publication came behind a later one.
    OutOfOrder,
    /// More is queued than the limits allow.
    Overfull,
    /// A cursor or a gap that says what is not so.
    FalseClaim,
    /// Bytes that no client understands, or that say something else than was asked for.
    Malformed,
    /// A request without an answer, or an answer without a request.
    Unanswered,
    /// A connection that nothing wakes, or an exchange that goes on behind its end.
    Stuck,
}

/// What is wrong, in words.
#[derive(Debug)]
pub struct Finding {
    pub kind: Kind,
    pub what: String,
}

pub type Checked<T = ()> = Result<T, Finding>;

/// Something is wrong.
pub fn found<T>(kind: Kind, what: impl Into<String>) -> Checked<T> {
    Err(Finding { kind, what: what.into() })
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

/// All that was published in one life of the server.
pub struct Truth {
    pub epoch: Epoch,
    /// Channel and data, by offset - 1.
    all: Vec<(usize, Box<str>)>,
    offsets: [Vec<u64>; CHANNELS.len()],
}

impl Truth {
    pub fn new(epoch: Epoch) -> Self {
        Self { epoch, all: Vec::new(), offsets: Default::default() }
    }

    pub fn head(&self) -> u64 {
        self.all.len() as u64
    }

    pub fn cursor(&self, offset: u64) -> Cursor {
        Cursor { epoch: self.epoch, offset }
    }

    /// A publication has come out of the log.
    pub fn published(&mut self, publication: &Publication) -> Checked {
        let [_, data] = publication.text.without_cursor();
        let data = String::from_utf8_lossy(&data[..data.len() - 1]);
        let channel = channel_of(publication.channel.as_str())?;
        self.all.push((channel, data.into()));
        self.offsets[channel].push(publication.offset);
        if publication.offset != self.head() {
            return found(Kind::OutOfOrder, format!("publication {} came out as {}", publication.offset, self.head()));
        }
        Ok(())
    }

    /// Whether a cursor is of this life and not of the future.
    pub fn knows(&self, cursor: Cursor) -> bool {
        cursor.epoch == self.epoch && cursor.offset <= self.head()
    }

    /// The first publication of a channel after one offset and up to another.
    pub fn first_in(&self, channel: usize, after: u64, up_to: u64) -> Option<u64> {
        let offsets = &self.offsets[channel];
        let first = *offsets.get(offsets.partition_point(|&offset| offset <= after))?;
        (first <= up_to).then_some(first)
    }

    fn has_later(&self, channel: usize, offset: u64) -> bool {
        self.offsets[channel].last().is_some_and(|&last| last > offset)
    }

    /// Checks what a delivery says.
    pub fn check(&self, channel: usize, offset: u64, data: &str) -> Checked {
        let index = usize::try_from(offset).ok().and_then(|offset| offset.checked_sub(1));
        match index.and_then(|index| self.all.get(index)) {
            Some((published, text)) if *published == channel && **text == *data => Ok(()),
            other => found(Kind::Malformed, format!("delivery {offset} of {channel} says {data}, was {other:?}")),
        }
    }
}

/// The number of a channel.
pub fn channel_of(name: &str) -> Checked<usize> {
    match CHANNELS.iter().position(|known| *known == name) {
        Some(channel) => Ok(channel),
        None => found(Kind::Malformed, format!("no channel is called {name}")),
    }
}

/// Reads a cursor.
pub fn cursor_of(text: &str) -> Checked<Cursor> {
    Cursor::parse(text).or_else(|error| found(Kind::Malformed, format!("{text}: {error}")))
}

/// What one connection, or one reply, is to receive and has received.
#[derive(Debug)]
pub struct Reception {
    /// Channels, and from where on all of each must come.
    channels: Vec<(usize, u64)>,
    /// Channels that were left, of which what was queued may still come: up to these offsets.
    left: Vec<(usize, u64)>,
    /// Only the latest of each channel must come.
    conflates: bool,
    after: Option<Cursor>,
    /// Where the log stood when it was asked for.
    asked_at: u64,
    /// It begins with its gap, if there is one: no cursor follows, or it does not show, as it is the id of the gap's event.
    begins_with_gap: bool,
    has_begun: bool,
    is_gap_told: bool,
    /// Everything up to here has come, or was told to be gone.
    at: u64,
    began_at: u64,
    delivered: Vec<u64>,
    /// The first that was passed over, and how many had been delivered then. It may only be late.
    owed: Option<(u64, usize)>,
}

impl Reception {
    /// What a stream or WebSocket that is asked for now receives.
    pub fn new(channels: &[usize], after: Option<Cursor>, conflates: bool, asked_at: u64) -> Self {
        Self {
            channels: channels.iter().map(|&channel| (channel, 0)).collect(),
            left: Vec::new(),
            conflates,
            after,
            asked_at,
            begins_with_gap: false,
            has_begun: false,
            is_gap_told: false,
            at: 0,
            began_at: 0,
            delivered: Vec::new(),
            owed: None,
        }
    }

    /// It is an event stream's.
    pub fn of_events(mut self) -> Self {
        self.begins_with_gap = true;
        self
    }

    /// A reply begins; without a cursor it is for what came from `now` on.
    pub fn begin_reply(&mut self, now: Option<u64>, truth: &Truth) {
        self.begins_with_gap = true;
        match (self.after, now) {
            (Some(after), _) if truth.knows(after) => self.begin_at(after.offset),
            (None, Some(now)) => self.begin_at(now),
            _ => {}
        }
    }

    fn begin_at(&mut self, offset: u64) {
        self.has_begun = true;
        self.at = offset;
        self.began_at = offset;
    }

    /// Whether it was asked for without a cursor.
    pub fn is_from_now(&self) -> bool {
        self.after.is_none()
    }

    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// From where a client resumes now.
    pub fn position(&self, truth: &Truth) -> Option<Cursor> {
        (self.has_begun || self.is_gap_told).then(|| truth.cursor(self.at))
    }

    /// Everything up to `to` is behind it: what has not come is owed.
    fn pass(&mut self, to: u64, truth: &Truth) {
        for &(channel, from) in &self.channels {
            let missing = truth.first_in(channel, self.at.max(from), to);
            if let Some(missing) = missing.filter(|_| !(self.conflates && truth.has_later(channel, to))) {
                let (first, _) = *self.owed.get_or_insert((missing, self.delivered.len()));
                if missing < first {
                    self.owed = Some((missing, self.delivered.len()));
                }
            }
        }
        self.at = self.at.max(to);
    }

    /// What was passed over does not come any more.
    pub fn close_account(&self) -> Checked {
        let Some((offset, _)) = self.owed else { return Ok(()) };
        let kind = if offset <= self.asked_at { Kind::SilentGap } else { Kind::Lost };
        found(kind, format!("publication {offset} did not come: {self:?}"))
    }

    /// Everything up to the head must have come.
    pub fn close_account_at_head(&mut self, truth: &Truth) -> Checked {
        self.pass(truth.head(), truth);
        self.close_account()
    }

    pub fn gap(&mut self, from: Cursor, to: Cursor, truth: &Truth) -> Checked {
        self.close_account()?;
        let is_first = !self.is_gap_told && self.delivered.is_empty() && Some(from) == self.after;
        let is_possible =
            truth.knows(to) && (is_first || truth.knows(from) && self.at <= from.offset && from.offset < to.offset);
        if !is_possible || !is_first && !self.has_begun {
            return found(Kind::FalseClaim, format!("a gap from {from} to {to}: {self:?}"));
        }
        if !is_first {
            self.pass(from.offset, truth);
            self.close_account()?;
        }
        self.is_gap_told = true;
        self.at = to.offset;
        if is_first && self.begins_with_gap {
            self.begin_at(to.offset);
        }
        Ok(())
    }

    /// A cursor is told: the beginning, a heartbeat, or an answer.
    pub fn cursor(&mut self, cursor: Cursor, truth: &Truth) -> Checked {
        self.close_account()?;
        if self.has_begun {
            if !truth.knows(cursor) || cursor.offset < self.at {
                return found(Kind::FalseClaim, format!("a cursor {cursor}: {self:?}"));
            }
            self.pass(cursor.offset, truth);
            return self.close_account();
        }
        let is_right = match self.after {
            _ if self.is_gap_told => truth.knows(cursor) && cursor.offset == self.at,
            Some(after) if !truth.knows(after) => {
                return found(Kind::SilentGap, format!("no gap after a strange cursor: {cursor}, {self:?}"));
            }
            Some(after) => cursor == after,
            None => truth.knows(cursor) && cursor.offset >= self.asked_at,
        };
        if !is_right {
            return found(Kind::FalseClaim, format!("it begins at {cursor}: {self:?}"));
        }
        self.begin_at(cursor.offset);
        Ok(())
    }

    pub fn message(&mut self, channel: usize, cursor: Cursor, data: &str, truth: &Truth) -> Checked {
        if !self.has_begun && !self.is_gap_told {
            let kind =
                if self.after.is_some_and(|after| !truth.knows(after)) { Kind::SilentGap } else { Kind::Malformed };
            return found(kind, format!("{cursor} before the beginning: {self:?}"));
        }
        if cursor.epoch != truth.epoch {
            return found(Kind::Malformed, format!("{cursor} is of another life"));
        }
        let offset = cursor.offset;
        truth.check(channel, offset, data)?;
        if offset <= self.at {
            let is_late = offset > self.began_at && self.delivered.binary_search(&offset).is_err();
            let kind = if is_late { Kind::OutOfOrder } else { Kind::Doubled };
            return found(kind, format!("{offset} came: {self:?}"));
        }
        let may_come = self.channels.iter().any(|&(c, _)| c == channel)
            || self.left.iter().any(|&(c, up_to)| c == channel && offset <= up_to);
        if !may_come {
            return found(Kind::Doubled, format!("{offset} of {channel} came, which is not subscribed to: {self:?}"));
        }
        if self.owed.is_some_and(|(_, delivered)| self.delivered.len() > delivered) {
            self.close_account()?;
        }
        self.pass(offset - 1, truth);
        self.at = offset;
        self.delivered.push(offset);
        Ok(())
    }

    /// One channel more, from `now` on.
    pub fn subscribe(&mut self, channel: usize, now: u64) {
        if !self.channels.iter().any(|&(c, _)| c == channel) {
            self.channels.push((channel, now));
        }
    }

    /// One channel less; what was queued may still come.
    pub fn unsubscribe(&mut self, channel: usize, now: u64) {
        self.channels.retain(|&(c, _)| c != channel);
        self.left.push((channel, now));
    }

    /// Whether something that it is to receive has been published.
    pub fn is_due(&self, truth: &Truth) -> bool {
        self.channels.iter().any(|&(channel, from)| truth.first_in(channel, self.at.max(from), truth.head()).is_some())
    }
}
