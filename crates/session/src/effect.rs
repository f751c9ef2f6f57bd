//! What an exchange asks its caller to do, and what it is told for that.

use crate::answer::HeadOut;
use crate::channels::ChannelSet;
use crate::framing::Framing;
use crate::gate::Shown;
use crate::rules::Rules;
use crate::spread::Spread;
use pushlab_access::Peer;
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::deflate::{Deflater, InflateDecoder};
use pushlab_wire::fields::FieldList;
use pushlab_wire::receipt::Receipt;
use pushlab_wire::transport::Transport;
use std::sync::Arc;
use std::time::Duration;

/// What an exchange needs its caller to do next, one thing at a time. The bytes that it sends are in the [`Output`],
/// and leave before the exchange ends or waits.
#[derive(Debug)]
#[must_use]
pub enum Effect {
    /// Do nothing.
    Nothing,
    /// Send the answer, which is complete in the output, then call
    /// [`Exchange::answered`](crate::exchange::Exchange::answered). The exchange no longer receives publications.
    Answered,
    /// Publish [`Output::publication`], then call [`Exchange::published`](crate::exchange::Exchange::published).
    Publish,
    /// Read the log, then call [`Exchange::replayed`](crate::exchange::Exchange::replayed).
    Read(Query),
    /// Offer it what is published to the channels that it read, from the point that it has read to.
    Receive,
    /// Add a channel to its subscription or remove one, then call
    /// [`Exchange::resubscribed`](crate::exchange::Exchange::resubscribed).
    Resubscribe {
        /// The channel's name, unchecked.
        channel: String,
        /// Whether to add it; otherwise, remove it.
        is_more: bool,
    },
    /// Look which of its channels it may still have, then call
    /// [`Exchange::keep_allowed`](crate::exchange::Exchange::keep_allowed).
    Reconsider,
    /// Give a ticket for this token, then call [`Exchange::answer_ticket`](crate::exchange::Exchange::answer_ticket).
    Ticket(Box<str>),
    /// Make this page, then call [`Exchange::answer`](crate::exchange::Exchange::answer).
    Page(Page),
    /// Ask the application, then call [`Exchange::respond`](crate::exchange::Exchange::respond).
    Ask(Box<Question>),
    /// Stop waiting for the application, which has taken too long, then call
    /// [`Exchange::not_responded`](crate::exchange::Exchange::not_responded).
    Cancel,
    /// End the connection after what is in the output.
    End,
    /// End the connection at once.
    Cut,
}

/// What to read from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// Whether to read [`Output::channels`]; otherwise, those to which it already subscribes.
    pub is_new_set: bool,
    /// Whether it goes on to receive what is published to these channels.
    pub is_subscription: bool,
    /// After which cursor; `None` means from now on.
    pub after: Option<Cursor>,
    /// How many of the newest messages of each channel are wanted, whatever the reader has: then without a cursor. `None`
    /// means those after the cursor.
    pub newest: Option<u32>,
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
    /// As it was sent, except that `HEAD` becomes `GET`.
    pub method: String,
    /// Decoded, without the query.
    pub path: String,
    /// Parameters of the query, decoded.
    pub query: Vec<(String, String)>,
    /// Fields of the head, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The values of `X-Forwarded-For`, which need not be text.
    pub forwarded: Vec<Vec<u8>>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the browser sent it over TLS, to this server or to a proxy in front of it.
    pub is_tls: bool,
    /// Who sent it, by the credentials it carries, if there is an access file.
    pub person: Option<Shown>,
}

/// What exchanges leave for their caller. All of them share one, so that it costs no memory for each; the caller takes
/// what is here before it turns to another exchange.
#[derive(Debug, Default)]
pub struct Output {
    /// The head of an answer over HTTP/2, which leaves before the bytes; empty if there is none.
    pub head: FieldList,
    /// The head is that of an interim answer (RFC 9110, section 15.2): it does not begin the answer, which has a head of its
    /// own.
    pub is_interim: bool,
    /// The bytes to send. Over HTTP/2 they are of the body.
    pub bytes: Vec<u8>,
    /// The framing, if these bytes are one event or one reply.
    pub event: Option<Framing>,
    /// Whether these bytes are of deliveries, which their receiver need not have taken before it is read from.
    pub is_delivery: bool,
    /// How long to wait from now on before [`Exchange::expire`](crate::exchange::Exchange::expire), if that has
    /// changed.
    pub patience: Option<Duration>,
    /// The transport that it counts as from now on, if that has changed.
    pub transport: Option<Transport>,
    /// A channel, unchecked, and one line of JSON to publish to it.
    pub publication: (String, String),
    /// Channels to read.
    pub channels: ChannelSet,
    /// What happened.
    pub counts: Counts,
    /// Compresses messages and replies.
    pub deflater: Deflater,
    /// Bytes that compressed messages became, those of replies that were compressed for one peer, and as many as checking
    /// signatures costs as much as: work of which the bytes that came say nothing. The caller takes it.
    pub coded_bytes: usize,
    /// Reads compressed messages.
    pub(crate) inflater: InflateDecoder,
}

impl Output {
    /// Where the head of an answer goes.
    #[inline]
    pub(crate) fn head_out(&mut self, is_http2: bool) -> HeadOut<'_> {
        if is_http2 { HeadOut::Fields(&mut self.head) } else { HeadOut::Text(&mut self.bytes) }
    }
}

/// What happened in exchanges.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// HTTP requests, including upgrades.
    pub requests: u64,
    /// Publications made for clients.
    pub received: u64,
    /// Deliveries made by replies and replays.
    pub sent: u64,
    /// Gaps reported to clients.
    pub gaps: u64,
    /// Requests and frames answered with an error.
    pub errors: u64,
    /// Connections ended because the peer was silent or too slow.
    pub timeouts: u64,
}

/// The time at which a step is taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Time {
    /// Seconds since 1970, by the clock that tokens are checked against; 0 where there are none.
    pub unix_s: u64,
    /// Since the event loop began, ns.
    pub ns: u64,
}

/// What an exchange is told for one step, and where it leaves what it has to say.
#[derive(Debug)]
pub struct Context<'a> {
    /// The server's rules.
    pub rules: &'a Rules,
    /// The other end of the socket, if there is an access file.
    pub peer: Option<&'a Arc<Peer>>,
    /// Whether another process takes new connections, so that each ends behind its answer.
    pub is_leaving: bool,
    /// Where the server is stopping: when its clients are to come back.
    pub drain: Option<&'a mut Spread>,
    /// The time.
    pub time: Time,
    /// The log's epoch.
    pub epoch: Epoch,
    /// Publications up to here have been offered to all who receive them.
    pub offered_to: u64,
    /// When the bytes read now were received, if that is to be marked.
    pub receipt: Option<Receipt>,
    /// Where it leaves what it has to say.
    pub output: &'a mut Output,
}

impl Context<'_> {
    /// Whether the server is stopping.
    pub(crate) fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// After how many milliseconds one more client is to come back, if the server is stopping.
    pub(crate) fn return_after_ms(&mut self) -> Option<u64> {
        self.drain.as_mut().map(|spread| spread.next_ms())
    }

    /// A position in the log.
    pub(crate) fn cursor(&self, offset: u64) -> Cursor {
        Cursor { epoch: self.epoch, offset }
    }
}
