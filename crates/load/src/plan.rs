//! What a worker is told to do, and what it answers: the messages between the lab and its fleet.

use pushlab_dialects::Dialect;
use pushlab_stats::histogram::Histogram;
use pushlab_wire::transport::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::AddAssign;
use std::path::PathBuf;

/// Everything one worker needs for one run. The lab writes it to the worker's standard input as one JSON text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The subject.
    pub target: SocketAddr,
    /// How the clients receive.
    pub transport: Transport,
    /// What they speak; `None` for the native protocol.
    #[serde(default)]
    pub speaks: Option<Speaks>,
    /// Number of virtual clients, the prober not counted.
    pub clients: u32,
    /// The channel everybody uses.
    pub channel: String,
    /// The traffic.
    pub scenario: Scenario,
    /// Time between two polls of a client, for the transports that ask at an interval, in ms. Client i of N asks at
    /// i/N of it, after a phase that the seed gives.
    pub poll_interval_ms: u64,
    /// How long a long poll may be held, in seconds.
    pub poll_wait_s: u64,
    /// The ping client; `None` for a run without.
    pub prober: Option<Prober>,
    /// How long each phase lasts.
    pub phases: Phases,
    /// Connections opened per second; open-loop.
    pub connect_rate: u32,
    /// Event loops, each a thread with a descriptor table of its own. One alone where clients share the connections of
    /// their host.
    pub loops: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Busy-wait added to every turn of the loop, in µs: makes the generator slow on purpose, to test that such
    /// a run is void.
    pub handicap_us: u64,
    /// How the load's intensity changes over the load phase.
    pub shape: Shape,
    /// What heads of HTTP requests carry.
    pub headers: RequestHeaders,
    /// Whether clients that poll at an interval ask for the list of users too: a second request for every poll.
    pub user_list: bool,
    /// Whether publications have a place for the server's receipt mark, which splits latency into the way up and
    /// the way down. The subject must be told to fill it.
    pub receipts: bool,
    /// Where the worker's back end listens for the subject, which is to connect before the clients do. A `feed` by a
    /// back end needs it, nothing else does.
    pub backend_listen: Option<SocketAddr>,
    /// Descriptor of a listener at `backend_listen` that the worker inherits: one that is not in the worker's own network
    /// namespace, for instance. `None` lets it make its own.
    #[serde(default)]
    pub backend_descriptor: Option<i32>,
    /// How connections are set.
    #[serde(default)]
    pub sockets: Sockets,
    /// The certificate, a PEM file, that a subject with TLS shows. Needed with [`Sockets::tls`].
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Source address of prober, collector and feeder, so that a network can tell their packets from the clients';
    /// `None` leaves it to the kernel.
    #[serde(default)]
    pub instruments_from: Option<Ipv4Addr>,
    /// Where the clients live; prober, collector and feeder are always native.
    #[serde(default)]
    pub clients_in: ClientsIn,
    /// Ends the drain as well, ms: so long has nobody received or published anything. `None`: only its own time does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_stall_ms: Option<u64>,
}

impl Plan {
    /// Whether clients publish on the connection that receives; otherwise by POST on a second one.
    pub fn publishes_in_frames(&self) -> bool {
        match &self.speaks {
            None => self.transport.is_bidirectional(),
            Some(speaks) => speaks.dialect.publishes_in_frames(self.transport, &speaks.how),
        }
    }

    /// Whether the prober of a plan with a dialect pings in frames; otherwise by POST.
    pub fn pings_in_frames(&self) -> bool {
        let over = self.prober.as_ref().map(|prober| prober.over);
        over == Some(ProberPath::SameTransport) && self.publishes_in_frames()
    }

    /// The channel that clients publish to and only the collector receives.
    pub fn upstream_channel(&self) -> String {
        format!("{}.up", self.channel)
    }

    /// The channel that a feeder subscribes to: a WebSocket needs one.
    pub fn feeder_channel(&self) -> String {
        format!("{}.feeder", self.channel)
    }

    /// The channel that stands for the list of users. Nobody publishes to it: an empty answer stands for the list.
    pub fn users_channel(&self) -> String {
        format!("{}.users", self.channel)
    }

    /// A channel that nobody publishes to: a WebSocket needs one, even if it only sends echoes.
    pub fn prober_channel(&self) -> String {
        format!("{}.ping", self.channel)
    }
}

/// A dialect as a subject's clients speak it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speaks {
    /// Which.
    pub dialect: Dialect,
    /// What it needs to know of the server's routes: `/socket.io/`.
    pub path: String,
    /// Which of several ways over the transport; empty for the usual one.
    #[serde(default)]
    pub how: String,
    /// Where the first client's conversation with the server is recorded: one JSON text a line.
    #[serde(default)]
    pub recording: Option<PathBuf>,
}

/// How connections are set: what may differ below the same traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sockets {
    /// Nagle's algorithm on the sockets of both sides: a small segment waits while one is unacknowledged.
    pub nagle: bool,
    /// Whether clients' kernels delay acknowledgements on connections that only receive, as most systems do. Linux
    /// delays them, by 40 ms at least, only where both sides talk, and otherwise acknowledges what was read at once.
    pub delayed_acks: bool,
    /// System calls with which our server writes one event: 1 or 2.
    pub writes_per_event: u8,
    /// TLS between clients and subject, with a certificate made for the run.
    pub tls: bool,
    /// Send buffer of the sockets of both sides, bytes; as it is by default otherwise.
    pub send_buffer_bytes: Option<u32>,
    /// Receive buffer of the sockets of both sides, bytes; as the kernel has it otherwise.
    pub receive_buffer_bytes: Option<u32>,
    /// Most HTTP/1.1 connections that the clients of one host may have open together, as browsers have it (6). A
    /// WebSocket does not count, as it does not there. Without it there is no limit.
    pub connections_per_host_max: Option<u32>,
    /// Clients on one host, which share that limit: the tabs of a browser.
    pub clients_per_host: u32,
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            nagle: false,
            delayed_acks: false,
            writes_per_event: 1,
            tls: false,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            connections_per_host_max: None,
            clients_per_host: 1,
        }
    }
}

/// Where clients live: in the worker itself, or in the pages of a browser that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientsIn {
    /// In what.
    pub kind: ClientKind,
    /// Pages over which a browser's clients are spread evenly, 1 to 200; `native` has none.
    pub pages: u32,
    /// Whether the pages are background tabs, whose timers a browser slows down. Otherwise each has a window of its own.
    pub hidden: bool,
}

impl Default for ClientsIn {
    fn default() -> Self {
        Self { kind: ClientKind::Native, pages: 1, hidden: false }
    }
}

impl ClientsIn {
    /// Whether that is a browser.
    pub fn is_browser(&self) -> bool {
        self.kind != ClientKind::Native
    }

    /// Whether it is what nobody need write down.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// In what clients live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientKind {
    /// The worker's own virtual clients.
    #[default]
    Native,
    /// Headless Chromium, or Chrome where that is what there is.
    Chromium,
    /// Headless Firefox.
    Firefox,
}

/// The shape of the traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scenario {
    /// Somebody who receives nothing publishes on a schedule through the server to all clients.
    Feed {
        /// Time between two publications, in µs.
        interval_us: u64,
        /// Size of one publication's data (the JSON text), in bytes.
        payload_bytes: u32,
        /// Who that is; a back end unless it is said.
        #[serde(default, skip_serializing_if = "FeedBy::is_back_end")]
        by: FeedBy,
    },
    /// Closed loop: each of so many publishers, which are no clients, publishes to all as soon as its last publication
    /// has reached everybody. Latency counts from the sending: how long the server keeps publishers waiting shows in the
    /// rate alone.
    FanOut {
        /// Publishers, 1 to 1,024: so many publications are under way.
        publishers: u32,
        /// Size of one publication's data (the JSON text), in bytes.
        payload_bytes: u32,
    },
    /// Every client publishes at an interval and everybody receives everything; client i of N starts at
    /// i/N of the interval, so that the load is even.
    Chat {
        /// Time between two publications of one client, in ms.
        interval_ms: u64,
        /// Size of one publication's data (the JSON text), in bytes.
        payload_bytes: u32,
        /// Largest size, where sizes vary: the text is then of random words, and the seed gives words and sizes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload_bytes_max: Option<u32>,
        /// How many of the clients publish, where not all do; the first so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        publishers: Option<u32>,
    },
    /// Every client is in some rooms, and publications go to one room after the other at a rate of the whole run,
    /// in an order that the seed gives; the members of a room take turns at publishing. Rooms are the channels
    /// `<channel>.0`, `<channel>.1` …; one that nobody was drawn into does not exist, and gets no publication.
    Rooms {
        /// Rooms.
        rooms: u32,
        /// Rooms that each client is in, drawn at random with the seed.
        rooms_per_client: u32,
        /// Time between two publications of the whole run, in µs.
        interval_us: u64,
        /// Size of one publication's data (the JSON text), in bytes.
        payload_bytes: u32,
    },
    /// Every client sends at an interval and gets its own message back; nobody else does. Open-loop.
    Echo {
        /// Time between two messages of one client, in ms.
        interval_ms: u64,
        /// Size of one message's data (the JSON text), in bytes.
        payload_bytes: u32,
    },
    /// Clients publish at an interval to a channel that nobody receives: client to server alone.
    Upstream {
        /// Time between two publications of one client, in ms.
        interval_ms: u64,
        /// Size of one publication's data (the JSON text), in bytes.
        payload_bytes: u32,
    },
    /// Closed loop: every client sends an echo as soon as the answer to the last one has come.
    Request {
        /// Size of one message's data (the JSON text), in bytes.
        payload_bytes: u32,
    },
    /// Connected and silent.
    Idle,
}

impl Scenario {
    /// Whether a back end of the worker's publishes through the server.
    pub fn has_back_end(&self) -> bool {
        matches!(self, Self::Feed { by: FeedBy::BackEnd, .. })
    }

    /// Whether a feeder publishes: one more client, which is not among the clients counted.
    pub fn has_feeder(&self) -> bool {
        matches!(self, Self::Feed { by: FeedBy::Publisher, .. } | Self::FanOut { .. })
    }
}

/// Who publishes a feed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedBy {
    /// A back end that the server connects to.
    #[default]
    BackEnd,
    /// A feeder: one more client, which publishes over the clients' transport. For servers that take no back end.
    Publisher,
}

impl FeedBy {
    fn is_back_end(&self) -> bool {
        *self == Self::BackEnd
    }
}

/// How the load's intensity changes over the load phase: a factor of the scenario's own rate of publications, from 0
/// to 1,000. In scenario `request` it is the share of the clients that ask, 0 to 1. The warm-up has the factor with
/// which the load phase begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Shape {
    /// The same all the time.
    #[default]
    Steady,
    /// From one factor to another, evenly.
    Ramp {
        /// At the beginning.
        from: f64,
        /// At the end.
        to: f64,
    },
    /// A peak.
    Spike {
        /// At the peak; 1 before and after.
        factor: f64,
        /// When it begins, ms after the load phase did.
        at_ms: u64,
        /// How long it lasts, ms.
        length_ms: u64,
    },
    /// One factor after the other, each for an equal part of the load phase.
    Step {
        /// The factors, 1 to 64.
        factors: Vec<f64>,
    },
}

/// What heads of HTTP requests carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestHeaders {
    /// What HTTP demands.
    #[default]
    Minimal,
    /// What a browser sends: user agent, accepted types, languages and encodings, referrer, origin.
    Browser,
}

/// The ping client: measures response time at an interval while the load runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prober {
    /// Time between two pings, in ms.
    pub interval_ms: u64,
    /// Over what it asks.
    pub over: ProberPath,
}

/// Over what the prober asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProberPath {
    /// An echo over the clients' own transport: a WebSocket for those, a POST for the others.
    SameTransport,
    /// A POST to `/echo`, whatever the transport.
    Http,
}

/// How long each phase lasts, in ms. `connect` ends when all are connected, and `drain` at the latest after its time,
/// or when it is known whether a subject that is silent by then hangs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Longest time to connect everybody.
    pub connect_ms: u64,
    /// The load runs and is not counted.
    pub warm_up_ms: u64,
    /// Connected, nothing sent but the prober's pings.
    pub idle_ms: u64,
    /// The load runs and counts.
    pub load_ms: u64,
    /// Longest time for what is under way to arrive.
    pub drain_ms: u64,
    /// Connected and silent again.
    pub after_ms: u64,
}

/// Phases of a run, in order. A run passes through `idle` before `warm-up`: it needs a server that has seen nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Clients connect and subscribe.
    Connect,
    /// Connected, silent, before any load.
    Idle,
    /// Load that is not counted.
    WarmUp,
    /// Load that counts.
    Load,
    /// No more publications; what is under way arrives.
    Drain,
    /// Connected and silent again.
    After,
}

/// A line that the worker writes to its standard output while it runs, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum WorkerEvent {
    /// A phase began.
    Phase {
        /// Which.
        phase: Phase,
        /// Monotonic clock of the host, ns.
        t_ns: u64,
    },
    /// Once a second.
    Progress(Progress),
    /// The end; nothing follows.
    Done {
        /// What was measured.
        result: Box<WorkerResult>,
    },
    /// The run could not go on; nothing follows.
    Failed {
        /// What, where, and what to try.
        reason: String,
    },
}

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Clients connected.
    pub connected: u32,
    /// Publications sent so far.
    pub published: u64,
    /// Deliveries received so far.
    pub delivered: u64,
    /// Median delivery latency of the latest second that every loop has ended, ns; `None` where nothing was delivered.
    pub latency_median_ns: Option<u64>,
    /// 99th percentile of the same second's latency, ns.
    pub latency_p99_ns: Option<u64>,
    /// How long nothing has come from the subject although load was due, ms; 0 if that is not so.
    pub silent_ms: u64,
    /// Deliveries that what was published so far is still to make, or that were lost.
    pub outstanding: u64,
}

/// What one worker measured in one run. Counts and histograms cover the publications whose intended instant lies
/// in the load phase; warm-up is left out. All instants are on the host's monotonic clock.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// When each phase began, and when the last ended: name and ns.
    pub phases: Vec<PhaseMark>,
    /// When the run ended, ns.
    pub end_ns: u64,
    /// Publications that were due in the load phase.
    pub scheduled: u64,
    /// Of those, handed to a socket by clients, the back end or the feeder.
    pub published: u64,
    /// Of those, never sent: the socket was still blocked at the end.
    pub unsent: u64,
    /// Deliveries that should have come: publications × receivers, or the members of each one's room.
    pub expected: u64,
    /// Deliveries received, each counted once.
    pub delivered: u64,
    /// Deliveries of any publication that arrived while the load phase lasted: the throughput, over its length.
    pub arrived: u64,
    /// Expected and never received.
    pub lost: u64,
    /// Received again.
    pub duplicated: u64,
    /// Received after a later one of the same publisher; in rooms, as far as a room's last 64 tell.
    pub reordered: u64,
    /// Deliveries without a stamp, with one that nobody sent, or of a room that the client is not in.
    pub unknown: u64,
    /// Gap frames received.
    pub gaps: u64,
    /// Connections that failed or were cut, and were opened again.
    pub reconnects: u64,
    /// Distinct errors with their counts: connection errors, HTTP statuses, error frames.
    pub errors: Vec<ErrorCount>,
    /// HTTP requests sent in the load phase, those of prober and feeder left out.
    pub requests: u64,
    /// Of those, by clients that publish.
    #[serde(default)]
    pub requests_publishers: u64,
    /// Connections that clients opened in the load phase, those of prober and feeder left out.
    #[serde(default)]
    pub connections_opened: u64,
    /// Bytes written to clients' sockets in the load phase.
    pub bytes_sent: u64,
    /// Bytes read from clients' sockets in the load and drain phases.
    pub bytes_received: u64,
    /// Of those, in the load phase.
    #[serde(default)]
    pub bytes_received_in_load: u64,
    /// Intended instant to delivery, every delivery.
    pub latency: Histogram,
    /// Intended instant to the first subscriber of each publication; feed, fan-out, chat and rooms only, as the two
    /// below.
    pub latency_first: Histogram,
    /// Intended instant to the median subscriber of each publication.
    pub latency_middle: Histogram,
    /// Intended instant to the last subscriber of each publication that reached all.
    pub latency_last: Histogram,
    /// Intended instant to delivery, of clients' own publications alone: the round trip. Chat, rooms and echo only.
    #[serde(default)]
    pub latency_own: Histogram,
    /// Intended instant to the server's receipt mark, once for each delivery that bears one.
    #[serde(default)]
    pub latency_up: Histogram,
    /// The server's receipt mark to delivery.
    #[serde(default)]
    pub latency_down: Histogram,
    /// Prober's response time in the idle phase.
    pub response_idle: Histogram,
    /// Prober's response time in the load phase, from its intended instant; unanswered pings count with the
    /// time waited until the end.
    pub response_load: Histogram,
    /// Time from the TCP connect to the first subscription answer; where a host's connections are limited, waiting for
    /// one included.
    pub connect: Histogram,
    /// How late the generator sent: from the intended instant, or from when the transport let the client send, to the
    /// write; load phase.
    pub lateness: Histogram,
    /// Duration of the turns of the event loops: how long an event may have waited for the generator.
    pub loop_lag: Histogram,
    /// CPU time of the worker's threads in the load phase, ns.
    pub cpu_load_ns: u64,
    /// Per second since the first phase began. The warm-up is in here too, so that steady state can be judged.
    pub seconds: Vec<Second>,
    /// What clients' bytes were for, from the first connection to the end of the run.
    #[serde(default)]
    pub bytes_whole: ClientBytes,
    /// The same of the load and drain phases.
    #[serde(default)]
    pub bytes_load: ClientBytes,
    /// Clients that were not subscribed when the load began, because a host's connections were used up.
    #[serde(default)]
    pub unsubscribed: u32,
    /// How far the instants that a browser's pages told may be off, ns: half of what the round trips leave open, of
    /// the page of which the least is known. `None` for native clients, which read the worker's own clock.
    #[serde(default)]
    pub clock_error_ns: Option<u64>,
    /// Every delivery of the load phase in the order of arrival, where receipts are marked; at most 10,000.
    #[serde(default)]
    pub deliveries: Vec<MarkedDelivery>,
}

/// What the bytes on clients' sockets were for; those of prober, collector and feeder are not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientBytes {
    /// Deliveries that they brought, whenever published; one that came again counts again.
    pub deliveries: u64,
    /// HTTP requests that clients sent, handshakes of WebSockets included.
    pub requests: u64,
    /// From the subject to the clients.
    pub down: ByteUses,
    /// From the clients to the subject.
    pub up: ByteUses,
}

impl AddAssign for ClientBytes {
    fn add_assign(&mut self, more: Self) {
        self.deliveries += more.deliveries;
        self.requests += more.requests;
        self.down += more.down;
        self.up += more.up;
    }
}

/// What the bytes of one direction were for. Together they are all bytes that TCP carried for the sockets: those read
/// (down), and those given to sockets to be sent (up), of which a connection that is cut may not have sent the last.
///
/// The borders are those of layers. A *text* is what the transport carries whole: the text of a WebSocket message, the
/// line of a stream without its end, the data of an event, the body of an answer or a POST. Texts are payload and
/// dialect; heads are heads; all else is framing. So the cursor is dialect in `["msg",channel,cursor,data]`, and framing
/// in an event stream, whose own field `id` carries it. `docs/networks.md` shows it byte by byte.
///
/// A text counts in the phase in which its last byte comes. Where its first ones came in an earlier phase, they were
/// counted there, and framing takes up the difference; over a whole run there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByteUses {
    /// Data of publications and echoes, as delivered or sent: JSON text.
    pub payload: u64,
    /// The rest of the texts: envelope, channel, cursor, the array around the reply to a poll, and messages of the
    /// dialect's own (cursors, gaps, errors, pongs, polls, answers to publications). Also lists of users.
    pub dialect: u64,
    /// What the transport puts around texts: heads, masks and control frames of a WebSocket, heads and ends of chunks,
    /// line ends, all of an event stream but the data, heartbeats without text. Also what came and was no whole
    /// message, and the bodies of refusals.
    pub framing: u64,
    /// Heads of HTTP requests and responses with the blank line, handshakes of WebSockets among them.
    pub heads: u64,
    /// TLS: records, handshakes.
    pub tls: u64,
}

impl ByteUses {
    /// All bytes.
    pub fn total(&self) -> u64 {
        self.payload + self.dialect + self.framing + self.heads + self.tls
    }
}

impl AddAssign for ByteUses {
    fn add_assign(&mut self, more: Self) {
        self.payload += more.payload;
        self.dialect += more.dialect;
        self.framing += more.framing;
        self.heads += more.heads;
        self.tls += more.tls;
    }
}

/// One delivery with the server's receipt mark: a row of a table of messages. Instants are ns after the load phase
/// began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkedDelivery {
    /// Who published: the client's number.
    pub publisher: u32,
    /// To which room, where clients are in rooms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
    /// Which of the publisher's publications in the load phase, from 0; in rooms, which of the room's.
    pub sequence: u32,
    /// Who received: the client's number.
    pub receiver: u32,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When the server received it.
    pub receipt_ns: u64,
    /// When it was delivered.
    pub delivered_ns: u64,
}

/// When a phase began.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PhaseMark {
    /// Which.
    pub phase: Phase,
    /// Monotonic clock, ns.
    pub t_ns: u64,
}

/// An error and how often it came.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCount {
    /// What happened.
    pub error: String,
    /// How often.
    pub count: u64,
}

/// One second of the run; the last may be shorter.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Second {
    /// Publications sent.
    pub published: u64,
    /// Deliveries received.
    pub delivered: u64,
    /// Median delivery latency, ns; `None` where nothing was delivered.
    pub latency_median_ns: Option<u64>,
    /// 99th percentile of delivery latency, ns.
    pub latency_p99_ns: Option<u64>,
    /// Median latency of clients' own publications, ns; `None` where none came back.
    #[serde(default)]
    pub latency_own_median_ns: Option<u64>,
}
