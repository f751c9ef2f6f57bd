//! What a worker measured.

use crate::plan::Phase;
use pushlab_stats::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

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
