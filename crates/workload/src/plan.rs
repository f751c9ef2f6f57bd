//! What a worker is told to do.

pub use crate::clients_in::{ClientKind, ClientsIn};
use crate::payload::Content;
use crate::phase::{Periodic, Repetition};
use crate::scenario::{Scenario, Shape};
use crate::turns::Turns;
use core::net::{Ipv4Addr, SocketAddr};
use pushlab_dialects::Dialect;
use pushlab_wire::transport::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything one worker needs for one run. The lab writes it to the worker's standard input as one JSON text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The subject.
    pub target: Target,
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
    /// How many of the newest messages a poll of `polling` brings, whether or not the client has them; `None`: what is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_newest_count: Option<u32>,
    /// How long after its publications a client asks, for the transports that ask at an interval, in ms: client 0 does, and
    /// client i of N follows at i/N of the interval. `None`: in the phase that the seed gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_after_publication_ms: Option<u64>,
    /// The ping client; `None` for a run without.
    pub prober: Option<Prober>,
    /// How long each phase lasts.
    pub phases: Phases,
    /// Connections opened per second; open-loop.
    pub connect_rate: u32,
    /// Event loops, each a thread with a descriptor table of its own. One alone where clients share the connections of
    /// their host.
    pub loops: u32,
    /// Processes that host the loops, each at least one; they share everything that the plan says of all clients.
    #[serde(default = "one")]
    pub workers: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Which repetition it is, so that over all of them what is periodic begins everywhere in its period. `None`, as in
    /// plans of before: publications begin with the warm-up, and polls where the seed says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<Repetition>,
    /// Busy-wait added to every turn of the loop, µs, to test that a slow generator voids its run.
    #[serde(alias = "handicap_us")]
    pub injected_delay_us: u64,
    /// What publications are made of.
    #[serde(default, skip_serializing_if = "Content::is_default")]
    pub content: Content,
    /// How the load's intensity changes over the load phase.
    pub shape: Shape,
    /// Whether it begins when it is told to, since others go beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_told_to_begin: bool,
    /// The run's turns, where it takes turns with those beside it: then its shape is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// What heads of HTTP requests carry.
    pub headers: RequestHeaders,
    /// Whether clients ask for compression, and from how many bytes on they compress what they send in frames; `None`
    /// where they ask for none. Not the prober's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_from: Option<u32>,
    /// Whether clients that poll at an interval ask for the list of users too: a second request for every poll.
    pub user_list: bool,
    /// Whether publications have a place for the server's receipt mark, which divides latency by direction.
    pub receipts: bool,
    /// Where the worker's back end listens for the subject, which is to connect before the clients do. A `feed` by a
    /// back end needs it, nothing else does.
    pub backend_listen: Option<SocketAddr>,
    /// Descriptor of a listener at `backend_listen` that the worker inherits, as from another namespace; `None`: its own.
    #[serde(default)]
    pub backend_descriptor: Option<i32>,
    /// How connections are set.
    #[serde(default)]
    pub sockets: Sockets,
    /// The addresses that clients come from.
    #[serde(default)]
    pub sources: Sources,
    /// Source address of prober, collector and feeder, which tells their packets from the clients'; `None`: the kernel's.
    #[serde(default)]
    pub instruments_from: Option<Ipv4Addr>,
    /// The core of the prober alone; `None` where it shares those of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prober_core: Option<usize>,
    /// Where the clients live; prober, collector and feeder are always native.
    #[serde(default)]
    pub clients_in: ClientsIn,
    /// What a browser's pages load so that they speak as `speaks` says, in this order: libraries, then their adapter.
    /// None but our own for the bare dialect. `None` where the subject has no client for pages.
    ///
    /// A plan that is sent names no files, since it may come from another machine: whoever starts a worker names them.
    #[serde(skip)]
    pub page_scripts: Option<Vec<PathBuf>>,
    /// Ends the drain as well, ms: so long has nobody received or published anything. `None`: only its own time does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_stall_ms: Option<u64>,
}

fn one() -> u32 {
    1
}

impl Plan {
    /// Whether clients publish on the connection that receives; otherwise by POST on a second one.
    pub fn publishes_in_frames(&self) -> bool {
        match &self.speaks {
            None => self.transport.is_bidirectional(),
            Some(speaks) => speaks.dialect.publishes_in_frames(self.transport, &speaks.how),
        }
    }

    /// What clients speak, and who of them shares a connection of HTTP/2.
    pub fn http(&self) -> Http {
        match self.sockets.http_version {
            HttpVersion::Http11 => Http::Http11,
            HttpVersion::Http2 => Http::Http2 { clients_per_connection: self.sockets.clients_per_host },
        }
    }

    /// How many of the newest messages of their channel clients ask for, if they do: of all transports, polling alone can.
    pub fn newest_count(&self) -> Option<u32> {
        self.poll_newest_count.filter(|_| self.transport == Transport::Polling)
    }

    /// Whether each echo is a request of its own that opens an event stream: over `sse` alone.
    pub fn echoes_in_streams(&self) -> bool {
        self.transport == Transport::Sse && matches!(self.scenario, Scenario::Echo { streamed: true, .. })
    }

    /// How long after its publications a client asks, ns, where that is fixed; `None` too where clients ask at no interval.
    pub fn poll_after_publication_ns(&self) -> Option<u64> {
        let after_ms = self.poll_after_publication_ms.filter(|_| self.transport.is_interval_driven())?;
        Some(after_ms.saturating_mul(1_000_000))
    }

    /// Whether the prober receives what the clients do.
    pub fn prober_is_subscribed(&self) -> bool {
        self.prober.as_ref().is_some_and(|prober| prober.subscribed)
    }

    /// Whether the prober of a plan with a dialect pings in frames; otherwise by POST.
    pub fn pings_in_frames(&self) -> bool {
        let over = self.prober.as_ref().map(|prober| prober.over);
        over == Some(ProberPath::SameTransport) && self.publishes_in_frames()
    }

    /// When what clients ask for at an interval begins to be asked for, ns after the run began.
    pub fn poll_phase_ns(&self) -> u64 {
        let period_ns = self.poll_interval_ms.saturating_mul(1_000_000);
        match &self.repetition {
            Some(repetition) => repetition.phase_ns(Periodic::Polls, self.seed, period_ns),
            None => fastrand::Rng::with_seed(self.seed ^ 0x70_6f_6c_6c).u64(0..period_ns.max(1)),
        }
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

/// Where the subject is, and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredTarget")]
pub struct Target {
    /// Where connections go.
    pub address: SocketAddr,
    /// What requests call it (RFC 9110, section 7.2): `example.org:8443`.
    pub authority: String,
    /// What every path of the native protocol begins with: `/push`. Empty at the root; a dialect has
    /// [`Speaks::path`] instead.
    pub path: String,
    /// TLS, if it speaks it.
    pub tls: Option<TlsTarget>,
}

impl Target {
    /// A subject at the root of an address, without TLS.
    pub fn plain(address: SocketAddr) -> Self {
        Self { address, authority: address.to_string(), path: String::new(), tls: None }
    }

    /// `https` with TLS, `http` without.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// A target as a stored plan has it, which may be older: then it is the address alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredTarget {
    Address(SocketAddr),
    Whole { address: SocketAddr, authority: String, path: String, tls: Option<TlsTarget> },
}

impl From<StoredTarget> for Target {
    fn from(stored: StoredTarget) -> Self {
        match stored {
            StoredTarget::Address(address) => Self::plain(address),
            StoredTarget::Whole { address, authority, path, tls } => Self { address, authority, path, tls },
        }
    }
}

/// How a subject with TLS is known to be the one that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsTarget {
    /// What its certificate must name: a host, which the handshake asks for (RFC 6066, section 3), or an IP address.
    pub server_name: String,
    /// Who may vouch for that.
    pub trust: Trust,
}

/// Whose signature under a certificate is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// That of these certificates, PEM, and of nobody else: the one made for the run.
    Certificate(String),
    /// That of the authorities which this system trusts.
    System,
}

/// The addresses that clients come from. The kernel has about 28,000 ports for each pair of addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sources {
    /// What the kernel chooses; on loopback, from 1,000 clients on, addresses out of 127.0.0.0/8 that differ from
    /// process to process, each for [`CLIENTS_PER_SOURCE`].
    #[default]
    Usual,
    /// Consecutive addresses.
    From {
        /// That of client 0.
        first: Ipv4Addr,
        /// Clients that come from one address.
        clients_each: u32,
    },
}

/// Clients behind one source address, as a rule: fewer than half of the ports, so that connecting stays fast. The kernel
/// tries ports of one parity first, and once these are taken looks through all of them for each further connection:
/// 5,000 of 19,000 clients then took a millisecond each.
pub const CLIENTS_PER_SOURCE: u32 = 10_000;

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
    /// Where the first client's conversation with the server is recorded: one JSON text a line. Not sent, like
    /// [`Plan::page_scripts`].
    #[serde(skip)]
    pub recording: Option<PathBuf>,
}

/// The version of HTTP, and who shares a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1.
    Http11,
    /// HTTP/2: with TLS by ALPN, without by prior knowledge (RFC 9113, section 3).
    Http2 {
        /// Clients that share one connection.
        clients_per_connection: u32,
    },
}

/// The version of HTTP that clients speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2.
    #[serde(rename = "2")]
    Http2,
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
    /// How long clients delay acknowledgements, ms, 1 to 500: until a second segment comes, or so long after the first
    /// one did. The emulated link does that, so it takes a network, and Linux acknowledges as it does without
    /// `delayed_acks`. Windows of 2014 waited for 200 ms.
    pub ack_delay_ms: Option<u32>,
    /// The version of HTTP that clients speak, including their WebSockets (RFC 8441), the feeder, the collector and a prober
    /// over the same transport. HTTP/2 is negotiated by ALPN with TLS, and used with prior knowledge without. It works only
    /// with the native protocol.
    pub http_version: HttpVersion,
    /// System calls with which our server writes one event: 1 or 2.
    pub writes_per_event: u8,
    /// TLS between clients and a subject that the lab starts, with a certificate made for the run.
    pub tls: bool,
    /// Send buffer of the sockets of both sides, bytes; as it is by default otherwise.
    pub send_buffer_bytes: Option<u32>,
    /// Receive buffer of the sockets of both sides, bytes; as the kernel has it otherwise.
    pub receive_buffer_bytes: Option<u32>,
    /// Whether a connection of HTTP/1.1 carries one request after another. If not, every poll and every POST of a client
    /// opens a connection, which ends with the answer; event streams and WebSockets last all the same. Speaks the native
    /// protocol or the dialect of bare servers. While the kernel remembers closed connections (a minute), there are 28,000
    /// ports for each address that clients come from; on loopback it takes them again after a second.
    pub keep_alive: bool,
    /// Most HTTP/1.1 connections that the clients of one host may have open together, as browsers have it (6). A
    /// WebSocket does not count, as it does not there, nor a connection of HTTP/2. Without it there is no limit.
    pub connections_per_host_max: Option<u32>,
    /// Clients on one host, like the tabs of a browser. They share `connections_per_host_max`, and over HTTP/2 one
    /// connection, which carries as many concurrent streams as the subject allows (ours: 100).
    pub clients_per_host: u32,
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            nagle: false,
            delayed_acks: false,
            ack_delay_ms: None,
            http_version: HttpVersion::default(),
            writes_per_event: 1,
            tls: false,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            keep_alive: true,
            connections_per_host_max: None,
            clients_per_host: 1,
        }
    }
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

/// The ping client: measures response time while the load runs, at random instants or in a closed loop. Where connections
/// are not kept alive, each of its requests opens one; then one ping is under way at a time, and those that are due
/// meanwhile wait, which counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prober {
    /// Mean time between two pings, in ms. They are sent at random instants, with exponentially distributed times in
    /// between, of at most five times the mean.
    pub interval_ms: u64,
    /// Over what it asks.
    pub over: ProberPath,
    /// Whether a ping leaves `interval_ms` after the answer to the last, in place of random instants. A server that answers
    /// late is then asked less often, so that its response times look better than they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed_loop: bool,
    /// Whether its connection, a WebSocket, also receives what the clients do, so that an answer waits behind it. In the
    /// bare dialect a ping is then a publication to a channel of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subscribed: bool,
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

/// Plans for tests.
#[cfg(test)]
pub(crate) mod fixtures {
    use super::*;

    /// So many clients and loops, and half a minute of load.
    pub fn plan(clients: u32, scenario: Scenario) -> Plan {
        Plan {
            target: Target::plain("127.0.0.1:1".parse().unwrap()),
            transport: Transport::Sse,
            speaks: None,
            clients,
            channel: "a".into(),
            scenario,
            poll_interval_ms: 500,
            poll_wait_s: 25,
            backend_listen: None,
            backend_descriptor: None,
            sockets: Sockets::default(),
            sources: Sources::Usual,
            instruments_from: None,
            prober_core: None,
            clients_in: ClientsIn::default(),
            page_scripts: None,
            is_told_to_begin: false,
            turns: None,
            drain_stall_ms: None,
            shape: Shape::Steady,
            headers: RequestHeaders::Minimal,
            compression_from: None,
            content: Content::Filler,
            poll_newest_count: None,
            poll_after_publication_ms: None,
            user_list: false,
            receipts: false,
            prober: None,
            phases: Phases { connect_ms: 1, warm_up_ms: 1, idle_ms: 1, load_ms: 30_000, drain_ms: 1, after_ms: 1 },
            connect_rate: 100,
            loops: 8,
            workers: 1,
            seed: 1,
            repetition: None,
            injected_delay_us: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_begin_anywhere_in_their_interval_and_over_the_repeats_everywhere() {
        let plan = |seed, repetition| Plan { seed, repetition, ..fixtures::plan(1, Scenario::Idle) };
        let mut counts = [0u32; 10];
        (0..10_000).for_each(|seed| counts[(plan(seed, None).poll_phase_ns() / 50_000_000) as usize] += 1);
        // Each is binomial with a standard deviation of 30.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        let repetition = |number| Some(Repetition { number, of: 10, seed: 3 });
        let mut parts: Vec<u64> =
            (1..=10).map(|n| plan(u64::from(n), repetition(n)).poll_phase_ns() / 50_000_000).collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_target_is_read_as_it_was_written_and_as_plans_once_had_it() {
        let plain = Target::plain("[::1]:8000".parse().unwrap());
        let named = |trust| Target {
            authority: "example.org".to_owned(),
            path: "/push".to_owned(),
            tls: Some(TlsTarget { server_name: "example.org".to_owned(), trust }),
            ..plain.clone()
        };
        for target in [plain.clone(), named(Trust::System), named(Trust::Certificate("own.pem".into()))] {
            let text = serde_json::to_string(&target).unwrap();
            assert_eq!(serde_json::from_str::<Target>(&text).unwrap(), target, "{text}");
        }
        assert_eq!(serde_json::from_str::<Target>("\"[::1]:8000\"").unwrap(), plain);
        assert_eq!((plain.scheme(), named(Trust::System).scheme()), ("http", "https"));
    }
}
