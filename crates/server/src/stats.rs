//! Counters, as `/stats` shows them.

use pushlab_wire::transport::{TRANSPORTS, Transport};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of one event loop. Only that loop writes, once a turn; anybody reads.
        #[derive(Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: AtomicU64,)*
            /// Open connections by transport: gauges.
            pub connections: [AtomicI64; TRANSPORTS],
            /// Open connections in all: a gauge.
            pub open: AtomicI64,
            /// Polls held right now: a gauge.
            pub held_polls: AtomicI64,
            /// Bytes queued for slow subscribers: a gauge.
            pub queued_bytes: AtomicI64,
            /// Connections that have something queued: a gauge.
            pub slow_subscribers: AtomicI64,
        }

        /// A snapshot of all event loops together.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            /// Open connections by transport. Transports that ask count in the seconds around a request only.
            pub connections: BTreeMap<&'static str, i64>,
            /// Open connections in all.
            pub open: i64,
            /// Polls held right now.
            pub held_polls: i64,
            /// Bytes queued for slow subscribers.
            pub queued_bytes: i64,
            /// Connections that have something queued.
            pub slow_subscribers: i64,
            /// Channels with history.
            pub history_channels: usize,
            /// Bytes of history.
            pub history_bytes: usize,
            /// The position after the latest publication.
            pub cursor: String,
            /// Monotonic clock of the host when this was read, ns.
            pub t_ns: u64,
        }

        impl Stats {
            /// Adds one event loop's counters.
            pub fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.load(Relaxed);)*
                for transport in Transport::ALL {
                    *self.connections.entry(transport.name()).or_default() +=
                        counters.connections[transport.index()].load(Relaxed);
                }
                self.open += counters.open.load(Relaxed);
                self.held_polls += counters.held_polls.load(Relaxed);
                self.queued_bytes += counters.queued_bytes.load(Relaxed);
                self.slow_subscribers += counters.slow_subscribers.load(Relaxed);
            }
        }
    };
}

counters! {
    /// Publications received.
    received,
    /// Deliveries handed to the kernel.
    sent,
    /// HTTP requests, upgrades among them.
    requests,
    /// Bytes read from sockets.
    bytes_received,
    /// Bytes written to sockets.
    bytes_sent,
    /// Connections accepted.
    accepted,
    /// Connections refused because there were too many.
    refused,
    /// Messages dropped or conflated for slow subscribers.
    dropped,
    /// Connections closed because they were too slow.
    closed_slow,
    /// Connections closed because they said nothing, or not in time.
    closed_timeout,
    /// Gaps told.
    gaps,
    /// Requests and frames answered with an error.
    errors,
    /// Messages that came from the feed.
    feed_received,
    /// Turns of the event loop.
    turns,
}

/// Adds to a counter that only the calling thread writes.
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

/// Adds to a gauge that only the calling thread writes.
pub fn shift(gauge: &AtomicI64, n: i64) {
    gauge.store(gauge.load(Relaxed) + n, Relaxed);
}
