//! How much is measured.

use serde::Serialize;
use std::time::Duration;

/// The publications of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// Numbers of everything.
#[derive(Debug, Clone)]
pub struct Scale {
    /// Pairs of fresh processes behind each ratio.
    pub repeats: u32,
    /// Fan-out: subscribers.
    pub subscribers: usize,
    /// Fan-out: loads, all of which count the same.
    pub loads: Vec<Load>,
    /// How long each side is measured, four times in a repeat: limit, ours, ours, limit.
    pub segment: Duration,
    /// How long each side runs before it is measured.
    pub warm_up: Duration,
    /// Polls: connections.
    pub pollers: usize,
    /// Memory: numbers of open connections at which the server is looked at.
    pub connections: Vec<usize>,
}

impl Scale {
    /// What `make bench` runs: about eight minutes.
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
            segment: Duration::from_millis(1000),
            warm_up: Duration::from_millis(300),
            pollers: 200,
            // Even steps, so that no count sits just behind a doubling of some table more often than before one.
            connections: (1..=9).map(|step| step * 2000).collect(),
        }
    }

    /// A first impression.
    pub fn quick() -> Self {
        Self {
            repeats: 2,
            segment: Duration::from_millis(400),
            warm_up: Duration::from_millis(150),
            connections: vec![2000, 6000, 12_000],
            ..Self::full()
        }
    }

    /// Whether it works.
    pub fn tiny() -> Self {
        Self {
            repeats: 1,
            subscribers: 5,
            loads: vec![Load::PerSecond(150), Load::Saturation { window_max: 4 }],
            segment: Duration::from_millis(60),
            warm_up: Duration::from_millis(20),
            pollers: 3,
            connections: vec![20, 40, 80],
        }
    }
}
