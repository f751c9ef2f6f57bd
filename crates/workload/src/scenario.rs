//! The shape of the traffic, and how its intensity changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        /// Time between two publications of one client, in ms, where clients send too: of the same size, to a channel
        /// that nobody receives. Deliveries and latency are the feed's alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        upstream_interval_ms: Option<u64>,
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
    /// i/N of the interval, so that the load is even, or all publish at the same instants.
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
        /// Whether all publish at the same instants: one burst an interval.
        #[serde(default, skip_serializing_if = "is_even")]
        in_bursts: bool,
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
        /// Whether over `sse` each message opens an event stream of its own, which brings it back as its first event and is
        /// then closed. Otherwise it is a POST, as over the other transports that do not send in frames. At most 4 KiB then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        streamed: bool,
    },
    /// Clients publish at an interval to a channel without subscribers: client to server alone.
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
    /// All clients are cut off at once as the load phase begins, by the load or because the server is started again, and
    /// may come back as it ends. A feeder publishes what they miss while they are away, and a little in the warm-up, so
    /// that each knows where it was. What happens in the drain is the storm: everybody connects, and catches up.
    Storm {
        /// Publications that each client misses, 1 to 10,000: all those of the load phase, in its middle half.
        missed: u32,
        /// Size of one publication's data (the JSON text), in bytes.
        payload_bytes: u32,
        /// Time over which clients come back, one after the other, in ms, up to 600,000; at once unless it is said. A server
        /// that drains has them come back so.
        #[serde(default)]
        return_over_ms: u64,
        /// What cuts clients off; by default, the load.
        #[serde(default, skip_serializing_if = "Outage::is_cut")]
        outage: Outage,
    },
    /// Connected and silent.
    Idle,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_even(in_bursts: &bool) -> bool {
    !*in_bursts
}

impl Scenario {
    /// Whether a back end of the worker's publishes through the server.
    pub fn has_back_end(&self) -> bool {
        matches!(self, Self::Feed { by: FeedBy::BackEnd, .. })
    }

    /// Whether a feeder publishes: one more client, which is not among the clients counted.
    pub fn has_feeder(&self) -> bool {
        matches!(self, Self::Feed { by: FeedBy::Publisher, .. } | Self::FanOut { .. } | Self::Storm { .. })
    }
}

/// What cuts off the clients of a storm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outage {
    /// The load resets their connections; the server stays.
    #[default]
    Cut,
    /// The server is asked to end (SIGTERM), and started again at the same address once it has ended.
    Restart,
    /// The server is killed, and started again at the same address.
    Kill,
    /// A second process takes over from the first (`pushlab serve --handover`), which then ends by itself.
    Takeover,
}

impl Outage {
    /// Whether the server stays.
    pub fn is_cut(&self) -> bool {
        *self == Self::Cut
    }

    /// What it is, in a sentence about the server.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cut => "the cut",
            Self::Restart => "the restart",
            Self::Kill => "the kill",
            Self::Takeover => "the takeover",
        }
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
    /// At random instants (a Poisson process), at the scenario's rate on average: the times between two publications are
    /// independent and exponentially distributed.
    Poisson,
}
