//! Counters, as `/stats` and `/metrics` show them. A new one is a row of the table below, and nothing else.

use pushlab_wire::exposition::{Exposition, Kind};
use pushlab_wire::transport::{TRANSPORTS, Transport};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// What is said of the connections by transport.
macro_rules! connections_doc {
    () => {
        "Open connections by transport. Transports that ask count in the seconds around a request only."
    };
}

/// The description of the refused tokens.
macro_rules! refused_tokens_doc {
    () => {
        "Tokens, tickets and back-end keys refused, by cause."
    };
}

macro_rules! counters {
    (
        counters { $($(#[doc = $doc:literal])+ $name:ident => $metric:literal),* $(,)? }
        gauges { $($(#[doc = $gauge_doc:literal])+ $gauge:ident => $gauge_metric:literal),* $(,)? }
    ) => {
        /// Counters of one event loop. Only that loop writes, once a turn; anybody reads.
        #[derive(Default)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: AtomicU64,)*
            $($(#[doc = $gauge_doc])+ pub $gauge: AtomicI64,)*
            /// Whether it fans out by io_uring.
            pub uses_uring: AtomicBool,
            /// The most kept for one of its connections since this was last determined, bytes.
            pub heaviest: AtomicU64,
            /// The most connections that it accepted in a second.
            pub best_second: AtomicU64,
            /// Open connections by transport: gauges.
            pub connections: [AtomicI64; TRANSPORTS],
        }

        /// A snapshot of all event loops together.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $name: u64,)*
            $($(#[doc = $gauge_doc])+ pub $gauge: i64,)*
            #[doc = connections_doc!()]
            pub connections: BTreeMap<&'static str, i64>,
            #[doc = refused_tokens_doc!()]
            pub refused_tokens: BTreeMap<&'static str, u64>,
            /// How the event loops fan out: `uring`, `write`, or `uring and write` if some have lost their ring.
            pub io: &'static str,
            /// How many of them use io_uring.
            #[serde(skip)]
            pub(crate) loops_with_uring: usize,
            /// Channels with history.
            pub history_channels: usize,
            /// Bytes of history.
            pub history_bytes: usize,
            /// Bytes kept for peers outside history.
            pub kept_bytes: usize,
            /// The position after the latest publication.
            pub cursor: String,
            /// Monotonic clock of the host when this was read, ns.
            pub t_ns: u64,
        }

        impl Stats {
            /// Adds one event loop's counters.
            pub fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.load(Relaxed);)*
                $(self.$gauge += counters.$gauge.load(Relaxed);)*
                self.loops_with_uring += usize::from(counters.uses_uring.load(Relaxed));
                for transport in Transport::ALL {
                    *self.connections.entry(transport.name()).or_default() +=
                        counters.connections[transport.index()].load(Relaxed);
                }
            }

            /// Writes them as Prometheus' metrics: the names are those of the table, the texts its comments.
            pub(crate) fn write(&self, page: &mut Exposition) {
                $(
                    page.family($metric, Kind::Counter, concat!($($doc),+).trim()).sample(&[], self.$name as f64);
                )*
                $(
                    page.family($gauge_metric, Kind::Gauge, concat!($($gauge_doc),+).trim())
                        .sample(&[], self.$gauge as f64);
                )*
                let mut connections = page.family("pushlab_connections", Kind::Gauge, connections_doc!());
                for (transport, open) in &self.connections {
                    connections.sample(&[("transport", transport)], *open as f64);
                }
                let mut refused =
                    page.family("pushlab_tokens_refused_total", Kind::Counter, refused_tokens_doc!());
                for (cause, count) in &self.refused_tokens {
                    refused.sample(&[("cause", cause)], *count as f64);
                }
                page.family("pushlab_history_channels", Kind::Gauge, "Channels with history.")
                    .sample(&[], self.history_channels as f64);
                page.family("pushlab_history_bytes", Kind::Gauge, "Bytes of history.")
                    .sample(&[], self.history_bytes as f64);
                page.family("pushlab_kept_bytes", Kind::Gauge, "Bytes kept for peers outside history.")
                    .sample(&[], self.kept_bytes as f64);
            }
        }
    };
}

counters! {
    counters {
        /// Publications received.
        received => "pushlab_publications_received_total",
        /// Deliveries handed to the kernel.
        sent => "pushlab_deliveries_sent_total",
        /// HTTP requests, upgrades among them.
        requests => "pushlab_http_requests_total",
        /// Bytes read from sockets.
        bytes_received => "pushlab_received_bytes_total",
        /// Bytes written to sockets.
        bytes_sent => "pushlab_sent_bytes_total",
        /// Connections accepted.
        accepted => "pushlab_connections_accepted_total",
        /// Connections refused because there were too many.
        refused => "pushlab_connections_refused_total",
        /// Messages dropped or conflated for slow subscribers.
        dropped => "pushlab_messages_dropped_total",
        /// Connections closed because they were too slow, or held the most when all together held too much.
        closed_slow => "pushlab_connections_closed_slow_total",
        /// Connections closed because they said nothing, or not in time.
        closed_timeout => "pushlab_connections_closed_timeout_total",
        /// Connections whose TLS failed: the peer broke it, never spoke it, or refused our certificate.
        tls_failures => "pushlab_tls_failures_total",
        /// Gaps told to subscribers.
        gaps => "pushlab_gaps_total",
        /// Requests and frames answered with an error, and feed or tick messages that were not published.
        errors => "pushlab_errors_total",
        /// Messages that came from the feed.
        feed_received => "pushlab_feed_messages_received_total",
        /// Turns of the event loop.
        turns => "pushlab_loop_turns_total",
    }
    gauges {
        /// Open connections in all.
        open => "pushlab_open_connections",
        /// Open HTTP/2 connections. Each of their streams also counts in `pushlab_open_connections`.
        http2 => "pushlab_http2_connections",
        /// Polls held right now.
        held_polls => "pushlab_held_polls",
        /// Requests that the application has not answered yet.
        awaiting => "pushlab_awaiting_requests",
        /// Bytes queued for slow subscribers.
        queued_bytes => "pushlab_queued_bytes",
        /// Connections that have something queued.
        slow_subscribers => "pushlab_slow_subscribers",
    }
}

/// Adds to a counter that only the calling thread writes.
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

/// Adds to a gauge that only the calling thread writes.
pub fn shift(gauge: &AtomicI64, n: i64) {
    gauge.store(gauge.load(Relaxed) + n, Relaxed);
}
