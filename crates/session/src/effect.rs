//! What an exchange does to the world, and what it knows of it.

use crate::channels::ChannelSet;
use crate::framing::Framing;
use crate::rules::Rules;
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::receipt::Receipt;
use pushlab_wire::transport::Transport;
use std::time::Duration;

/// What an exchange needs next of whoever carries it: one thing at a time. What it says stands in the [`Output`], and
/// leaves before the exchange ends, or waits.
#[derive(Debug)]
#[must_use]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// Its answer stands whole in the output: it receives nothing more, and goes on with
    /// [`Exchange::answered`](crate::exchange::Exchange::answered).
    Answered,
    /// To publish [`Output::publication`], then [`Exchange::published`](crate::exchange::Exchange::published).
    Publish,
    /// To read the log, then [`Exchange::replayed`](crate::exchange::Exchange::replayed).
    Read(Query),
    /// To receive what is published to the channels that it read, from where it has read to.
    Receive,
    /// To subscribe to one channel more, or one less, then
    /// [`Exchange::resubscribed`](crate::exchange::Exchange::resubscribed).
    Resubscribe {
        /// The channel's name, unchecked.
        channel: String,
        /// One more.
        is_more: bool,
    },
    /// The page of this, then [`Exchange::answer`](crate::exchange::Exchange::answer).
    Page(Page),
    /// To ask the application, then [`Exchange::respond`](crate::exchange::Exchange::respond).
    Ask(Box<Question>),
    /// The application is asked no more: it has taken too long. Then
    /// [`Exchange::not_responded`](crate::exchange::Exchange::not_responded).
    Cancel,
    /// The connection ends behind what stands in the output.
    End,
    /// The connection ends at once.
    Cut,
}

/// What to read of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// Of [`Output::channels`]; else of those to which it subscribes already.
    pub is_new_set: bool,
    /// It goes on to receive what is published to these channels.
    pub is_subscription: bool,
    /// After which cursor; `None` is from now on.
    pub after: Option<Cursor>,
    /// At most about so many bytes.
    pub max_bytes: usize,
}

/// A page about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// The counters, as JSON.
    Stats,
    /// The counters, for Prometheus.
    Metrics,
}

/// A request for the application.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    /// As it was sent, but `HEAD` comes as `GET`.
    pub method: String,
    /// Decoded, without the query.
    pub path: String,
    /// Parameters of the query, decoded.
    pub query: Vec<(String, String)>,
    /// Fields of the head, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Its browser sent it over TLS, to this server or to a proxy before it.
    pub is_tls: bool,
}

/// What exchanges leave for whoever carries them. It is one for all of them, so that none costs memory for it; whoever
/// carries out an effect takes what stands here first.
#[derive(Debug, Default)]
pub struct Output {
    /// What it says.
    pub bytes: Vec<u8>,
    /// That is one event, or one reply, of this framing.
    pub event: Option<Framing>,
    /// How long it may be left alone from now on, if that has changed.
    pub patience: Option<Duration>,
    /// What it counts as from now on, if that has changed.
    pub transport: Option<Transport>,
    /// A channel, unchecked, and one line of JSON to publish to it.
    pub publication: (String, String),
    /// Channels to read.
    pub channels: ChannelSet,
    /// What happened.
    pub counts: Counts,
}

/// What happened in exchanges.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// HTTP requests, upgrades among them.
    pub requests: u64,
    /// Publications made for clients.
    pub received: u64,
    /// Deliveries made by replies and replays.
    pub sent: u64,
    /// Gaps told.
    pub gaps: u64,
    /// Requests and frames answered with an error.
    pub errors: u64,
    /// Ends because nothing was said, or not in time.
    pub timeouts: u64,
}

/// What an exchange knows of the world for one step, and where it leaves what it says.
#[derive(Debug)]
pub struct Context<'a> {
    /// The server's rules.
    pub rules: &'a Rules,
    /// The server is stopping.
    pub is_draining: bool,
    /// The log's epoch.
    pub epoch: Epoch,
    /// Publications up to here have been offered to all who receive them.
    pub offered_to: u64,
    /// When what is read now was received, where that is to be marked.
    pub receipt: Option<Receipt>,
    /// Where it leaves what it says.
    pub output: &'a mut Output,
}

impl Context<'_> {
    /// A position in the log.
    pub(crate) fn cursor(&self, offset: u64) -> Cursor {
        Cursor { epoch: self.epoch, offset }
    }
}
