//! How much is measured.

use crate::baseline::Baseline;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Publications on their way in an open loop, at most: a subject that is this far behind has not failed, but more
/// would only measure its queue.
const OPEN_WINDOW_MAX: u64 = 256;

/// The publications of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// So many a second, at scheduled instants: an open loop.
    PerSecond(u32),
    /// As fast as they are delivered, with so many on their way: a closed loop, because an open one would measure
    /// how queues grow.
    Saturation {
        /// Publications that are not delivered yet, at most.
        window_max: u32,
    },
}

/// What is to be published now.
pub struct Due {
    /// Publications.
    pub count: u64,
    /// Those that leave later than a whole interval after their instant.
    pub late: u64,
    /// Time until something more may be due.
    pub next: Duration,
}

impl Load {
    /// What it asks for.
    pub fn due(self, elapsed: Duration, published: u64, under_way: u64) -> Due {
        match self {
            Self::Saturation { window_max } => {
                let count = u64::from(window_max).saturating_sub(under_way);
                Due { count, late: 0, next: Duration::from_millis(10) }
            }
            Self::PerSecond(rate) => {
                let scheduled = (elapsed.as_secs_f64() * f64::from(rate)) as u64 + 1;
                let count = scheduled.saturating_sub(published).min(OPEN_WINDOW_MAX.saturating_sub(under_way));
                let next =
                    Duration::from_secs_f64((published + count) as f64 / f64::from(rate)).saturating_sub(elapsed);
                Due { count, late: count.saturating_sub(1), next: next.min(Duration::from_millis(10)) }
            }
        }
    }
}

/// Numbers of everything.
#[derive(Debug, Clone)]
pub struct Scale {
    /// Pairs of fresh processes behind each ratio.
    pub repeats: u32,
    /// Fan-out: subscribers.
    pub subscribers: usize,
    /// Fan-out: loads, all of which count the same.
    pub loads: Vec<Load>,
    /// How long a side is measured at a time; in the sequence of [`ORDER`] for each load and repeat. This and `warm_up`
    /// exceed 200 ms, the shortest RTO: after a longer silence Linux acknowledges each of the next sixteen packets at
    /// once (`tcp_event_data_recv`), and a delivery may cost half as much again. Both sides must meet that as often.
    pub segment: Duration,
    /// How long each side runs before it is measured.
    pub warm_up: Duration,
    /// HTTP/2 and HTTP/1.1 with TLS: loads, all of which count the same. Both sides must be able to take them.
    pub secure_loads: Vec<Load>,
    /// Rooms: subscribers, of the two figures that bear their numbers.
    pub rooms: [u32; 2],
    /// One room beside the peers: subscribers, of the three figures that bear their numbers.
    pub peers: [u32; 3],
    /// Floods: how long the other client is alone, and how long the attack is looked at.
    pub quiet: Duration,
    /// See above.
    pub flood: Duration,
    /// Floods: connections of an attacker who has the server keep things, as many as a table of descriptors takes.
    pub hoarders: usize,
    /// Handover: subscribers, and publications a second.
    pub movers: usize,
    /// See above.
    pub movers_rate: u32,
    /// Polls: connections.
    pub pollers: usize,
    /// Memory: numbers of open connections at which the server is looked at.
    pub connections: Vec<usize>,
    /// The same for connections with TLS.
    pub secure_connections: Vec<usize>,
    /// Memory: connections on which further streams are opened.
    pub connections_with_streams: usize,
    /// Fan-out and polls: what our server is compared with.
    pub baseline: Baseline,
    /// Fan-out: whether the limit stands in for our server too, which must give 1.
    pub is_null_test: bool,
}

/// The sequence of segments, `true` for the baseline's: each side meets the same drift, and follows itself as often as
/// the other does. The first of one side and the first of the other follow each other, and so on: pairs.
pub const ORDER: [bool; 8] = [true, false, false, true, false, true, true, false];

impl Scale {
    /// What `make bench` runs: under three quarters of an hour.
    pub fn full() -> Self {
        Self {
            repeats: 5,
            subscribers: 1000,
            loads: vec![
                Load::PerSecond(50),
                Load::PerSecond(150),
                Load::PerSecond(300),
                Load::Saturation { window_max: 16 },
            ],
            secure_loads: vec![Load::PerSecond(20), Load::PerSecond(50)],
            segment: Duration::from_millis(500),
            warm_up: Duration::from_millis(300),
            rooms: [1000, 19_000],
            peers: [100, 1000, 9000],
            quiet: Duration::from_secs(2),
            flood: Duration::from_secs(3),
            hoarders: 19_000,
            movers: 5000,
            movers_rate: 10,
            pollers: 200,
            // Even steps, so that no count sits just behind a doubling of some table more often than before one.
            connections: (1..=9).map(|step| step * 2000).collect(),
            secure_connections: (1..=9).map(|step| step * 500).collect(),
            connections_with_streams: 1000,
            baseline: Baseline::Limit,
            is_null_test: false,
        }
    }

    /// A first impression.
    pub fn quick() -> Self {
        Self {
            repeats: 2,
            segment: Duration::from_millis(250),
            warm_up: Duration::from_millis(250),
            quiet: Duration::from_secs(1),
            flood: Duration::from_secs(2),
            connections: vec![2000, 6000, 12_000],
            secure_connections: vec![500, 1500, 3000],
            ..Self::full()
        }
    }

    /// Whether it works.
    pub fn tiny() -> Self {
        Self {
            repeats: 1,
            subscribers: 5,
            loads: vec![Load::PerSecond(150), Load::Saturation { window_max: 4 }],
            secure_loads: vec![Load::PerSecond(150)],
            segment: Duration::from_millis(40),
            warm_up: Duration::from_millis(20),
            rooms: [5, 10],
            peers: [2, 5, 10],
            quiet: Duration::from_millis(20),
            flood: Duration::from_millis(50),
            hoarders: 4,
            movers: 5,
            movers_rate: 200,
            pollers: 3,
            connections: vec![20, 40, 80],
            secure_connections: vec![5, 10, 20],
            connections_with_streams: 2,
            baseline: Baseline::Limit,
            is_null_test: false,
        }
    }
}
