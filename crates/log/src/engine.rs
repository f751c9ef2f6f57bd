//! What any log can do, wherever it keeps publications.

use crate::publication::Publication;
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::cursor::Cursor;
use pushlab_wire::receipt::Receipt;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Gives publications their order and keeps history. A log that can answer at once does so ([`Turn::Done`]); one that
/// must ask elsewhere returns a ticket, and the answer comes from [`Log::settled`].
///
/// Every ticket is settled once, if only as [`Settled::Failed`]: whoever waits for it is remembered until then.
///
/// *Invariant*: publications come out in the order of their offsets, whether as an answer or from [`Log::settled`], and
/// a replay takes account of everything that came out before it.
pub trait Log: Send {
    /// Appends a publication.
    ///
    /// # Errors
    /// If the name is not a valid channel name.
    fn append(&mut self, entry: Entry<'_>, now_ns: u64) -> Result<Turn<Arc<Publication>>, BadChannel>;

    /// What was published to these channels after a cursor, in order, at most about `max_bytes` but at least one
    /// message.
    fn read(&mut self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Turn<Replay>;

    /// The newest `count` publications of each of these channels, or as many as history holds, all in order; of each channel
    /// at most about `max_bytes` but at least one message.
    fn newest(&mut self, channels: &[Channel], count: u32, max_bytes: usize) -> Turn<Replay>;

    /// The next answer that was pending, or the next publication made elsewhere.
    fn settled(&mut self) -> Option<Settled> {
        None
    }

    /// Gives it what to call, from any thread, when [`Log::settled`] has something. This comes once, before any other
    /// call.
    fn attach(&mut self, notify: Notify) {
        drop(notify);
    }

    /// The position after the latest publication that came out.
    fn head(&self) -> Cursor;

    /// Drops history that is too old.
    fn expire(&mut self, now_ns: u64);

    /// Channels with history, and the bytes of all history.
    fn history_size(&self) -> (usize, usize);

    /// What another process needs to go on with it, of what came after an offset; `None` if it is kept elsewhere. What is
    /// pending is not in it.
    fn export(&self, after: u64) -> Option<Part> {
        let _ = after;
        None
    }
}

/// A part of a log on its way to another process.
#[derive(Debug, Default)]
pub struct Part {
    /// The position after the latest publication.
    pub head: u64,
    /// Publications up to here may be missing from channels that have no history.
    pub forgotten_to: u64,
    /// Channels that have lost publications, and up to which offset.
    pub evicted: Vec<(Channel, u64)>,
    /// What history holds, channel by channel: whoever takes it over puts it in order, and holds up nobody.
    pub messages: Vec<Arc<Publication>>,
}

/// Signals that a log has settled something.
pub type Notify = Box<dyn Fn() + Send + Sync>;

/// What is to be published.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The channel's name, unchecked.
    pub channel: &'a str,
    /// One line of valid JSON.
    pub data: &'a str,
    /// Written into the data where it has a place for one.
    pub receipt: Option<Receipt>,
}

/// An answer, or the ticket for it.
#[derive(Debug)]
pub enum Turn<T> {
    /// The answer.
    Done(T),
    /// The answer comes in a later turn.
    Pending(Ticket),
}

/// Identifies one request to a log among all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(NonZeroU64);

impl Ticket {
    /// The one of this number.
    pub fn numbered(number: u64) -> Self {
        // So that an optional one takes no more room.
        Self(NonZeroU64::MIN.saturating_add(number))
    }
}

/// What comes from a log in a later turn.
#[derive(Debug)]
pub enum Settled {
    /// A publication, and its ticket if it was asked for here.
    Published(Arc<Publication>, Option<Ticket>),
    /// What a reader has missed.
    Read(Replay, Ticket),
    /// What was asked for failed. If that was a publication, it is not known whether it was made.
    Failed(Ticket),
}

/// What a reader has missed.
#[derive(Debug, Default)]
pub struct Replay {
    /// Where the reader was and where the messages go on, if something in between is gone.
    pub gap: Option<(Cursor, Cursor)>,
    /// Messages after that, in order.
    pub messages: Vec<Arc<Publication>>,
    /// Everything up to here is in `messages`, or is not for this reader.
    pub up_to: u64,
    /// Whether nothing more has been published.
    pub is_whole: bool,
}
