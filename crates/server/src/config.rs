//! What a server is told: where to listen, its limits, what to do with slow subscribers.

use crate::inbox::InboxLimits;
use crate::rolling::Handover;
use pushlab_access::LiveAccess;
use pushlab_access::proxies::TrustedProxies;
use pushlab_application::Application;
use pushlab_application::back_end::BackEnd;
use pushlab_application::pool;
use pushlab_engine::Io;
use pushlab_log::{Account, Log, MemoryLog};
use pushlab_session::gate::Gate;
use pushlab_session::pass::Pass;
use pushlab_session::queue::{Policy, QueueRules};
use pushlab_session::rules::Rules;
use pushlab_session::site::Site;
use pushlab_tls::certificate::TlsFiles;
use pushlab_wire::channel::Channel;
use pushlab_wire::cursor::Epoch;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Configuration of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address of all transports; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Event loops, each a thread with a listener of its own.
    pub cores: usize,
    /// Where there are several event loops: whether each leaves the process's descriptor table for one of its own, so that
    /// the limit of descriptors counts for each by itself. For a process that does nothing else: the table of a loop has
    /// copies of what is open when it starts.
    pub has_own_descriptor_tables: bool,
    /// Named limits.
    pub limits: Limits,
    /// What a slow subscriber meets.
    pub policy: Policy,
    /// A back end to publish from.
    pub feed: Option<Feed>,
    /// A built-in publisher.
    pub tick: Option<Tick>,
    /// Whether to write into a publication, where it has a place for that, when it was received: see
    /// [`pushlab_wire::receipt`]. Costs a reading of the clock and a search of the data for each.
    pub mark_receipts: bool,
    /// Nagle's algorithm on accepted sockets: a small segment waits while another is unacknowledged.
    pub nagle: bool,
    /// Whether each event, and each reply to a poll, leaves in two writes: its transport's head, then the rest. To
    /// measure what that does together with `nagle`; in everyday use it only costs.
    pub splits_events: bool,
    /// How fan-out writes to sockets; `None` means io_uring where the kernel and the sandbox allow it. Connections with
    /// TLS, and events that leave in two writes, never use io_uring.
    pub io: Option<Io>,
    /// Groups with at least this many members are served through io_uring.
    pub min_uring_members: usize,
    /// The first call of a ring fails after it has handed this many sends to the kernel.
    #[cfg(test)]
    pub uring_breaks_after: Option<u32>,
    /// Speaks TLS on the port, on every transport.
    pub tls: Option<TlsFiles>,
    /// Speaks HTTP/2 with clients that want it, beside HTTP/1.1.
    pub speaks_http2: bool,
    /// What gives publications their order and keeps history; `None` means a log in this process's memory.
    pub log: Option<Arc<dyn MakeLog>>,
    /// What answers on the paths that are no transport's.
    pub application: Option<Arc<dyn Application>>,
    /// Channels whose names begin with one of these are published to from within the server's process alone, as are those
    /// of `feed` and `tick`; clients may subscribe to them.
    pub reserved_channels: Vec<String>,
    /// Channels whose names begin with one of these are for the server's own pages, and for programs: a page of another
    /// site cannot subscribe to them.
    pub same_origin_channels: Vec<String>,
    /// Which pages are the server's own, and which others may use its transports.
    pub site: Site,
    /// What a client has to show to use the transports, if anything. The application asks for it itself: see
    /// [`Guarded`](pushlab_application::guarded::Guarded).
    pub pass: Option<Pass>,
    /// Who may do what, and how much: the rules of an access file, which may be replaced while the server runs. Without
    /// any, whoever reaches the transports may use all of them.
    pub access: Option<Arc<LiveAccess>>,
    /// Open WebSockets at `/echo` whose messages come back unchanged: for tests of clients and of this server.
    pub echoes: bool,
    /// Proxies that are believed about who a client is; behind any other, every client appears to be the proxy.
    pub trusted_proxies: TrustedProxies,
    /// Listeners that exist already, on the address of `listen`: made by whoever started the process.
    pub listeners: Vec<Arc<OwnedFd>>,
    /// Where it takes over from a server that runs, and hands over to the next; `None`: nowhere. A log that is kept in this
    /// process's memory alone can be handed over.
    pub handover: Option<Handover>,
    /// Compress publications and replies of at least this size, bytes, for clients that ask for it: by permessage-deflate
    /// on WebSockets, by gzip on streams and polls; `None`: never.
    pub compression_from: Option<usize>,
}

/// Makes a server's log.
pub trait MakeLog: Send + Sync {
    /// Makes a log for this epoch and within these limits.
    fn make(&self, epoch: Epoch, limits: pushlab_log::Limits) -> Box<dyn Log>;
}

impl fmt::Debug for dyn MakeLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a log")
    }
}

impl Config {
    /// The log.
    pub(crate) fn new_log(&self, epoch: Epoch, account: &Arc<Account>) -> Box<dyn Log> {
        let limits = self.limits.history(account);
        match &self.log {
            Some(maker) => maker.make(epoch, limits),
            None => Box::new(MemoryLog::new(epoch, limits)),
        }
    }

    /// The rules that the protocol keeps to.
    pub(crate) fn rules(&self) -> Rules {
        let limits = &self.limits;
        Rules {
            gate: self.gate(),
            has_application: self.application.is_some() || self.access.is_some(),
            echoes: self.echoes,
            is_tls: self.tls.is_some(),
            max_head_bytes: limits.max_head_bytes,
            max_body_bytes: limits.max_body_bytes,
            max_message_bytes: limits.max_message_bytes,
            compression_from: self.compression_from,
            max_channels: limits.max_channels_per_connection,
            max_reply_bytes: limits.max_reply_bytes,
            max_wait: limits.max_poll_wait,
            head_timeout: limits.head_timeout,
            answer_timeout: limits.answer_timeout,
            write_timeout: limits.write_timeout,
            idle_timeout: limits.idle_timeout,
            heartbeat: limits.heartbeat,
            first_heartbeat: limits.first_heartbeat,
        }
    }

    /// What answers on the paths that are no transport's: the application, and what back ends ask for.
    pub(crate) fn whole_application(&self) -> Option<Arc<dyn Application>> {
        match &self.access {
            None => self.application.clone(),
            Some(access) => Some(Arc::new(BackEnd::new(access.clone(), self.gate(), self.application.clone()))),
        }
    }

    /// Who may do what.
    fn gate(&self) -> Gate {
        let feed = self.feed.as_ref().map(|feed| feed.channel.to_string());
        let tick = self.tick.as_ref().map(|tick| tick.channel.to_string());
        Gate {
            site: self.site.clone(),
            pass: self.pass.clone(),
            access: self.access.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
            own_channels: feed.into_iter().chain(tick).collect(),
            reserved: self.reserved_channels.clone(),
            same_origin: self.same_origin_channels.clone(),
        }
    }

    /// When a slow subscriber's queue is full, and what happens then.
    pub(crate) fn queue_rules(&self) -> QueueRules {
        let Limits { max_queue_messages: max_messages, max_queue_bytes: max_bytes, .. } = self.limits;
        QueueRules { max_messages, max_bytes, policy: self.policy }
    }
}

/// A back end to connect to. Every text message from it is published as it comes.
#[derive(Debug, Clone)]
pub struct Feed {
    /// Resolved addresses, in the order in which to try them.
    pub addresses: Vec<SocketAddr>,
    /// `Host` of the request.
    pub host: String,
    /// Path and query of the request.
    pub target: String,
    /// Where to publish.
    pub channel: Channel,
}

/// A built-in publisher of `{"id":n,"msg":"~stamp~"}`.
#[derive(Debug, Clone)]
pub struct Tick {
    /// Time between two publications.
    pub interval: Duration,
    /// Where to publish.
    pub channel: Channel,
}

/// Every limit of a server. Worst-case memory of a limit stands with it.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections of the whole server; a further one is answered 503 and closed, with TLS closed unheard. Each takes
    /// 0.5 KiB when idle, with TLS 4 KiB, and then 64 KiB more while its socket takes nothing.
    pub max_connections: usize,
    /// Concurrent streams of an HTTP/2 connection; each also counts towards `max_connections`. A further one is refused.
    pub max_streams_per_connection: u32,
    /// A request's head, bytes; 431 beyond.
    pub max_head_bytes: usize,
    /// A request's body, bytes; 413 beyond.
    pub max_body_bytes: usize,
    /// A WebSocket message, bytes; close code 1009 beyond.
    pub max_message_bytes: usize,
    /// Channels of one connection.
    pub max_channels_per_connection: usize,
    /// Channels of the server that have history; messages on a further channel are delivered but not kept, until
    /// a channel's history has expired.
    pub max_channels: usize,
    /// History of a channel, messages.
    pub max_history_messages: usize,
    /// History of a channel, bytes.
    pub max_history_bytes: usize,
    /// History of all channels, bytes: the memory that history may take. Beyond, one of the channels that hold most
    /// gives its oldest messages.
    pub max_history_total_bytes: usize,
    /// Age of history.
    pub max_history_age: Duration,
    /// Messages queued for a slow subscriber. The queue shares messages with history: 8 bytes each of its own.
    pub max_queue_messages: usize,
    /// Bytes queued for a slow subscriber: a connection never holds more than this of its own.
    pub max_queue_bytes: usize,
    /// Bytes kept for all peers together, outside history, each counted once: queues of slow subscribers, unread
    /// replies, partial requests and messages. Beyond this, the connections that hold the most are closed until the
    /// rest fits.
    pub max_queued_total_bytes: usize,
    /// Bytes of replies that a peer has asked for and not taken; beyond, nothing is read from it until it has. With the last
    /// of these replies and what was read behind what it answers, a connection takes 0.4 MiB.
    pub max_unread_replies_bytes: usize,
    /// A reply to a poll, bytes; the rest comes with the next.
    pub max_reply_bytes: usize,
    /// Publications on their way to an event loop; 503 or an `overloaded` error beyond, and a feed is not read.
    pub max_inbox_messages: usize,
    /// Bytes of these publications, which history may have let go; the same beyond. An event loop that is held up for
    /// long holds as much.
    pub max_inbox_bytes: usize,
    /// Requests that wait for a thread of the application, of each of both kinds (`Application::may_wait`); 503 beyond.
    /// Each takes its head and its body.
    pub max_waiting_requests: usize,
    /// An application's answer, bytes; 500 beyond. It exists in memory once, and while they are made as many as there
    /// are threads of the application.
    pub max_answer_bytes: usize,
    /// Bytes of an application's answers that peers have not taken yet, in all; 503 beyond. Those of up to 64 KiB do not
    /// count, of which a connection holds one.
    pub max_held_answers_bytes: usize,
    /// Kernel's send buffer of a connection, bytes; `None` leaves it to the kernel (4 MiB and more when slow).
    pub max_send_buffer_bytes: Option<usize>,
    /// Kernel's receive buffer of a connection, bytes; `None` leaves it to the kernel (6 MiB at most by default).
    pub max_receive_buffer_bytes: Option<usize>,
    /// Longest time a poll is held.
    pub max_poll_wait: Duration,
    /// Time for a request to arrive in full; 408 beyond.
    pub head_timeout: Duration,
    /// Time for an application to answer; 503 beyond, 504 if what it may yet do changes something. What it answers later
    /// is dropped.
    pub answer_timeout: Duration,
    /// Time for a peer to take an application's answer whole, however steadily it reads; closed beyond.
    pub take_timeout: Duration,
    /// Time a connection may stay open between two requests.
    pub idle_timeout: Duration,
    /// Time between two heartbeats; a WebSocket that stays silent for two is closed (code 4002).
    pub heartbeat: Duration,
    /// Time until the first heartbeat of a stream whose client asks for an early one, if it is shorter: it shows that
    /// nothing on the way holds back what comes behind the first bytes.
    pub first_heartbeat: Duration,
    /// Time without progress on a connection that has something queued.
    pub write_timeout: Duration,
    /// Time for connections to end after a stop.
    pub drain_timeout: Duration,
    /// Over how long clients come back after a stop, told each its own instant; `None` is chosen from how many there are
    /// and how many connections the server has accepted in a second.
    pub drain_window: Option<Duration>,
}

impl Limits {
    /// The limits of an inbox.
    pub(crate) fn inbox(&self) -> InboxLimits {
        InboxLimits { max_messages: self.max_inbox_messages, max_bytes: self.max_inbox_bytes }
    }

    /// The limits of the application's pool.
    pub(crate) fn pool(&self) -> pool::Limits {
        pool::Limits {
            max_waiting_requests: self.max_waiting_requests,
            max_answer_bytes: self.max_answer_bytes,
            max_held_answers_bytes: self.max_held_answers_bytes,
            max_kept_bytes: self.max_queued_total_bytes / 2,
        }
    }

    /// The limits of a connection that speaks HTTP/2.
    pub(crate) fn http2(&self) -> pushlab_http2::limits::Limits {
        pushlab_http2::limits::Limits {
            max_streams: self.max_streams_per_connection,
            max_head_bytes: u32::try_from(self.max_head_bytes).unwrap_or(u32::MAX),
            ..pushlab_http2::limits::Limits::default()
        }
    }

    /// The limits of history.
    pub(crate) fn history(&self, account: &Arc<Account>) -> pushlab_log::Limits {
        pushlab_log::Limits {
            max_channels: self.max_channels,
            max_channel_messages: self.max_history_messages,
            max_channel_bytes: self.max_history_bytes,
            max_bytes: self.max_history_total_bytes,
            max_age: self.max_history_age,
            account: Arc::clone(account),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 19_900,
            max_streams_per_connection: 100,
            max_head_bytes: 16 * 1024,
            max_body_bytes: 64 * 1024,
            max_message_bytes: 64 * 1024,
            max_channels_per_connection: 64,
            max_channels: 100_000,
            max_history_messages: 10_000,
            max_history_bytes: 8 << 20,
            max_history_total_bytes: 256 << 20,
            max_history_age: Duration::from_secs(300),
            max_queue_messages: 4096,
            max_queue_bytes: 1 << 20,
            max_queued_total_bytes: 256 << 20,
            max_unread_replies_bytes: 64 * 1024,
            max_reply_bytes: 256 * 1024,
            max_inbox_messages: 8192,
            max_inbox_bytes: 64 << 20,
            max_waiting_requests: 1024,
            max_answer_bytes: 32 << 20,
            max_held_answers_bytes: 64 << 20,
            max_send_buffer_bytes: Some(256 * 1024),
            max_receive_buffer_bytes: None,
            max_poll_wait: Duration::from_secs(60),
            head_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            take_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(75),
            heartbeat: Duration::from_secs(25),
            first_heartbeat: Duration::from_secs(1),
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            drain_window: None,
        }
    }
}
