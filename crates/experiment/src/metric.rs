//! The table of metrics: the one list that figures, charts, assertions, exports and comparisons share.

use Better::{Higher, Lower, Neither};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// It describes, and is not judged.
    Neither,
}

/// A metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Stable name: in assertions, files and exports.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// What is better.
    pub better: Better,
    /// What exactly is measured.
    pub description: &'static str,
}

impl Metric {
    /// The metric of this name, or of this short name.
    pub fn find(name: &str) -> Option<&'static Self> {
        let full = ALIASES.iter().find(|(short, _)| *short == name).map_or(name, |(_, full)| full);
        METRICS.iter().find(|metric| metric.name == full)
    }

    /// Names and short names, for messages.
    pub fn names() -> impl Iterator<Item = &'static str> {
        METRICS.iter().map(|metric| metric.name).chain(ALIASES.iter().map(|(short, _)| *short))
    }

    /// Whether charts of it are drawn on a logarithmic scale: what is measured in time is.
    pub fn is_logarithmic(&self) -> bool {
        matches!(self.unit, "ms" | "µs")
    }

    /// What its margin of equivalence is called in an experiment's `margins`, beside its own name.
    pub fn kind(&self) -> Kind {
        match self.unit {
            "ms" | "ms/s" => Kind::Latency,
            "B" | "B/s" | "kB/s" => Kind::Bytes,
            "KiB" | "MiB" | "MiB/h" => Kind::Memory,
            "µs" | "µs/s" => Kind::Cpu,
            "%" if self.name.contains("cpu") => Kind::Cpu,
            _ => Kind::Count,
        }
    }

    /// Whether it is a difference, which may be below zero.
    pub fn may_be_negative(&self) -> bool {
        matches!(
            self.name,
            "latency_own_trend"
                | "memory_growth"
                | "memory_heap_growth"
                | "memory_kernel"
                | "memory_own"
                | "memory_per_client"
                | "overhead_per_delivery"
                | "bytes_unaccounted"
        )
    }
}

/// Kinds of metrics, by how much two servers may differ and still be as good as each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes on the wire, which hardly vary.
    Bytes,
    /// CPU.
    Cpu,
    /// Memory.
    Memory,
    /// Times.
    Latency,
    /// Rates, numbers and shares.
    Count,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Bytes, Self::Cpu, Self::Memory, Self::Latency, Self::Count];

    /// Its name in `margins`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Latency => "latency",
            Self::Count => "count",
        }
    }

    /// The margin where an experiment says nothing, per cent. Bytes are what the protocol makes them; whoever chooses by
    /// CPU or memory sizes machines in steps larger than a tenth; a fifth of a latency is what networks add and take.
    pub fn margin_percent(self) -> f64 {
        match self {
            Self::Bytes => 2.0,
            Self::Cpu | Self::Memory => 10.0,
            Self::Latency => 20.0,
            Self::Count => 5.0,
        }
    }
}

/// The rows of the table in docs/experiments.md.
pub fn documented() -> String {
    let row = |metric: &Metric| {
        let short: String =
            ALIASES.iter().filter(|(_, full)| *full == metric.name).map(|(short, _)| format!(" (`{short}`)")).collect();
        let unit = if metric.unit.is_empty() { "–" } else { metric.unit };
        let better = match metric.better {
            Lower => "lower",
            Higher => "higher",
            Neither => "–",
        };
        format!("| `{}`{short} | {unit} | {better} | {}: {} |\n", metric.name, metric.title, metric.description)
    };
    METRICS.iter().map(row).collect()
}

/// The unit of a metric; empty for an unknown one.
pub fn unit(name: &str) -> &'static str {
    Metric::find(name).map_or("", |metric| metric.unit)
}

/// Short names for assertions.
pub const ALIASES: &[(&str, &str)] = &[
    ("latency", "latency_median"),
    ("p99", "latency_p99"),
    ("own", "latency_own_mean"),
    ("response", "response_median"),
    ("throughput", "delivered"),
];

/// The table itself: gives its rows to a macro that makes something of each, such as the function that takes a metric
/// from a run. A row is `name "Title", "unit", Better, "description";`.
#[macro_export]
macro_rules! for_each_metric {
    ($make:ident) => {
        $make! {
            response_median "Response time, median", "ms", Lower, "of a ping while the load runs";
            response_mean "Response time, mean", "ms", Lower, "of a ping while the load runs";
            response_p99 "Response time, p99", "ms", Lower, "of a ping while the load runs";
            response_idle_median "Response time when idle, median", "ms", Lower, "of a ping before the load, everybody connected";
            response_idle_mean "Response time when idle, mean", "ms", Lower, "of a ping before the load, everybody connected";
            latency_median "Delivery latency, median", "ms", Lower, "intended instant to subscriber, of every delivery that was expected";
            latency_mean "Delivery latency, mean", "ms", Lower, "intended instant to subscriber, every delivery";
            latency_p99 "Delivery latency, p99", "ms", Lower, "intended instant to subscriber, of every delivery that was expected";
            jitter "Jitter, mean", "ms", Lower, "difference between the latency of a message and that of the next; of browsers alone";
            latency_first "Latency of the first subscriber", "ms", Lower, "median over the publications";
            latency_last "Latency of the last subscriber", "ms", Lower, "median over the publications; one that did not reach all counts as longer than any";
            latency_own_median "Round trip of own messages, median", "ms", Lower, "a client's own publication back to it";
            latency_own_mean "Round trip of own messages, mean", "ms", Lower, "a client's own publication back to it";
            latency_own_sd "Round trip of own messages, standard deviation", "ms", Lower,
                "of all of a client's own publications in the load phase";
            latency_own_trend "Round trip of own messages, trend", "ms/s", Lower,
                "slope of the line of least squares through the load phase's seconds";
            latency_same_node_median "Latency within a node, median", "ms", Lower,
                "in a cluster that marks relayed messages: intended instant to subscriber, of the deliveries from the server that the publisher is connected to";
            latency_same_node_p99 "Latency within a node, p99", "ms", Lower, "the same deliveries";
            latency_cross_node_median "Latency across nodes, median", "ms", Lower,
                "in a cluster that marks relayed messages: intended instant to subscriber, of the deliveries that crossed from one server to another";
            latency_cross_node_p99 "Latency across nodes, p99", "ms", Lower, "the same deliveries";
            latency_up_mean "Latency client to server, mean", "ms", Lower, "intended instant to the server's receipt";
            latency_down_mean "Latency server to client, mean", "ms", Lower, "the server's receipt to the subscriber";
            cpu "Server CPU", "%", Lower, "per cent of one core, mean of the load phase";
            cpu_median "Server CPU, median", "%", Lower, "per cent of one core, median of the load phase's seconds";
            cpu_idle "Server CPU when idle", "%", Lower, "per cent of one core, everybody connected and silent";
            cpu_after "Server CPU after the load", "%", Lower, "per cent of one core, everybody connected and silent again";
            cpu_baseline "Server CPU alone", "%", Lower, "per cent of one core, before any client";
            cpu_per_delivery "CPU time per delivery", "µs", Lower, "server's CPU time of load and drain over deliveries";
            cpu_per_publication "CPU time per publication", "µs", Lower,
                "server's CPU time of load and drain over the publications of the load: receiving them, and delivering them if there is anybody";
            cpu_per_client "CPU time per client", "µs/s", Lower,
                "server's CPU time per second of the load phase, divided by the number of clients";
            memory "Server memory, highest", "MiB", Lower, "resident, highest of load and drain";
            memory_idle "Server memory when idle", "MiB", Lower, "resident, everybody connected and silent";
            memory_loaded "Server memory at the end of the load", "MiB", Lower, "resident, as the load ends";
            memory_after "Server memory after the load", "MiB", Lower, "resident, everybody still connected";
            memory_growth "Growth of server memory", "MiB/h", Lower,
                "trend of resident memory over the load phase, from a minute on; a soak that leaks has one above zero";
            memory_heap "Used heap of the server", "MiB", Lower,
                "used by objects in the heap of its runtime, including those not yet collected, mean of the load phase";
            memory_heap_total "Total heap of the server", "MiB", Lower, "the heap of its runtime, mean of the load phase";
            memory_heap_growth "Growth of the server's used heap", "MiB/h", Lower,
                "trend of memory_heap over the load phase, from a minute on";
            memory_external "Memory outside the server's heap", "MiB", Lower,
                "held outside the heap of its runtime by objects in it, such as buffers, mean of the load phase";
            memory_baseline "Server memory alone", "MiB", Lower, "resident, before any client";
            memory_own "Server memory of the work", "MiB", Lower, "highest of load and drain, less that of the server alone";
            memory_per_client "Memory per idle client", "KiB", Lower,
                "resident, all clients connected and silent, less that of the server alone, over the number of clients";
            memory_kernel "Kernel memory of connections", "MiB", Lower,
                "growth of slab, page tables, stacks and socket buffers on the server's machine with all clients connected; covers both ends where the load runs on the same machine";
            delivered "Deliveries", "/s", Higher, "per second, received and checked by the clients";
            back_median "Time to come back, median", "ms", Lower,
                "of a storm: from when clients may come back until half of them are subscribed again";
            back_p99 "Time to come back, p99", "ms", Lower, "of a storm: until 99 % of the clients are subscribed again";
            caught_up_median "Caught up, median", "ms", Lower,
                "of a storm: from when clients may come back until half of them have what they missed";
            caught_up_p99 "Caught up, p99", "ms", Lower, "of a storm: until 99 % of the clients have what they missed";
            caught_up_p999 "Caught up, p99.9", "ms", Lower, "of a storm: until 99.9 % of the clients have what they missed";
            caught_up "Clients caught up", "%", Higher, "of a storm: clients that had all they missed before the drain ended";
            lost "Lost", "", Lower,
                "deliveries of the load phase that never came; in a storm without those to clients that were told of a gap";
            doubled "Doubled", "", Lower, "deliveries of the load phase that came again, and in a storm of earlier ones";
            told_when "Clients told when to come back", "", Neither,
                "of a storm: clients that the server told, as it ended, how long to wait before they come back; they obeyed";
            gaps_told "Clients told of a gap", "", Lower, "of a storm: clients that were told, when they came back, that messages are gone";
            recovered_falsely "False recoveries", "", Lower,
                "of a storm: clients that were subscribed again and told of no gap, though messages never came to them";
            due "Deliveries due", "/s", Neither, "per second: publications of the load phase, times who is to receive them";
            delivered_share "Deliveries of those due", "%", Higher,
                "of the publications of the load phase, what reached its receivers before the drain ended";
            published "Publications", "/s", Higher, "per second, sent by clients, the back end or the feeder";
            upstream_share "Share of messages from clients", "%", Neither,
                "of a feed in which clients publish too: of all messages that clients send and receive in the load phase, those that they send";
            server_received "Publications at the server", "/s", Higher, "per second, by the server's own count";
            server_sent "Deliveries from the server", "/s", Higher, "per second, by the server's own count";
            bytes_per_delivery "Bytes per delivery", "B", Lower, "received by clients, transport framing and HTTP heads included";
            bytes_per_publication "Bytes per publication", "B", Lower,
                "bytes that clients received and sent per publication of the load, with framing, headers and TLS, and with those of packets where there is a link";
            overhead_per_delivery "Overhead per delivery", "B", Lower,
                "bytes that clients received and sent per delivery, less the publication's own";
            traffic_per_delivery "Traffic per delivery", "B", Lower,
                "bytes that clients received and sent per delivery, the publication's own included";
            bytes_per_client "Bytes per client", "B/s", Lower,
                "bytes that clients sent and received per second of the load phase, divided by their number, HTTP heads and framing included";
            bytes_server "Bytes at the server per delivery", "B", Lower,
                "read and written by the server per delivery, by its own count: for native clients and browsers alike, with the traffic of prober and feeder, without the lab's reading of its counters";
            bytes_payload "Bytes of payload", "B", Neither, "data of publications and echoes per delivery, both ways";
            bytes_dialect "Bytes of the dialect", "B", Lower,
                "envelope, channel, cursor and messages of the dialect's own per delivery, both ways";
            bytes_framing "Bytes of framing", "B", Lower,
                "frame heads, field names of event streams and chunk heads per delivery, both ways";
            bytes_http_heads "Bytes of HTTP heads", "B", Lower, "heads of requests and responses per delivery, both ways";
            bytes_http2_frames "Bytes of HTTP/2 frames", "B", Lower,
                "frame headers, padding, and frames other than HEADERS, CONTINUATION and DATA, per delivery, both ways";
            bytes_tls "Bytes of TLS", "B", Lower, "records and handshakes per delivery, both ways";
            bytes_tcp_ip_headers "Bytes of TCP/IP headers", "B", Lower,
                "headers of packets that carry data for the first time, per delivery, both ways; over a link alone";
            bytes_acknowledgements "Bytes of acknowledgements", "B", Lower,
                "packets that only acknowledge, per delivery, both ways; over a link alone";
            bytes_connections "Bytes of connections", "B", Lower,
                "packets that open, close and reset connections, per delivery, both ways; over a link alone";
            bytes_retransmissions "Bytes of retransmissions", "B", Lower,
                "packets whose data was sent before, per delivery, both ways; over a link alone";
            bytes_unaccounted "Bytes unaccounted for", "B", Neither,
                "what the link carried for clients less the sum of the parts, per delivery: what was under way when the load began";
            bytes_sum "Bytes of all parts", "B", Lower, "sum of the parts that were measured, per delivery, both ways";
            bytes_link "Bytes on the link", "B", Lower, "all packets between clients and server, per delivery, both ways; over a link alone";
            transport_overhead "Heads and framing per delivery", "B", Lower,
                "HTTP heads and transport framing that clients received and sent, per delivery: what the dialect adds is left out";
            packets_per_delivery "Packets per delivery", "", Lower, "between clients and server, both ways; over a network only";
            acks_per_delivery "Acknowledgements per delivery", "", Lower, "packets that carry no data, both ways; over a network only";
            retransmitted "Packets sent again", "%", Lower, "of those that carry data, both ways, as the link saw them";
            packets_lost "Packets lost", "%", Neither, "by the network itself: for its loss and for want of room in its queue";
            tcp_retransmits "Segments retransmitted", "", Lower,
                "in load and drain, by the kernel's count for the server's network namespace: without a network, the machine's";
            link_bytes_in "Bytes on the wire into the server", "kB/s", Lower, "packets of clients, load and drain; over a network only";
            link_bytes_out "Bytes on the wire out of the server", "kB/s", Lower, "packets to clients, load and drain; over a network only";
            link_packets_in "Packets into the server", "/s", Lower, "of clients, load and drain; over a network only";
            link_packets_out "Packets out of the server", "/s", Lower, "to clients, load and drain; over a network only";
            server_bytes_in "Bytes into the server", "kB/s", Lower, "application bytes that clients sent, HTTP heads included";
            server_bytes_out "Bytes out of the server", "kB/s", Lower, "application bytes that clients received, HTTP heads included";
            requests "HTTP requests", "/s", Lower, "per second, of all clients";
            requests_idle "HTTP requests when idle", "/s", Lower, "per second, of all clients, everybody connected and silent";
            empty_polls "Polls that bring nothing", "%", Lower,
                "of the answers to clients' polls in the load phase, those without a message that is new to the client; every answer to a poll for the list of users is one; of native clients alone";
            bytes_request_heads "Head of a request", "B", Lower,
                "heads of clients' HTTP requests over their number, load and drain";
            bytes_response_heads "Head of a response", "B", Lower,
                "heads of the responses to clients over the number of their HTTP requests, load and drain";
            bytes_opening "Bytes of opening", "B", Lower,
                "received and sent for each client until everybody was subscribed: request, response, TLS and first messages; only where the server pushes";
            requests_server "HTTP requests at the server", "/s", Lower,
                "per second, by the server's own count; the lab's own are left out";
            requests_publisher "Requests of a publisher", "", Lower, "HTTP requests of publishing clients per 100 publications";
            requests_receiver "Requests of a receiver", "", Lower, "HTTP requests of one client that only receives per 100 publications";
            connections "TCP connections", "", Neither, "most open at the server at once in the load phase, the lab's own left out";
            connections_least "TCP connections, least", "", Neither, "fewest open at the server at once in the load phase, the lab's own left out";
            connections_opened "Connections opened", "/s", Lower, "per second of the load phase, by clients";
            subscribed "Clients subscribed", "", Higher, "when the load began: fewer where a host's connections are limited";
            connect "Time to subscribe", "ms", Lower, "TCP connect to the first answer, median";
            collections "Garbage collections", "/s", Neither,
                "of the server per second of the load phase, by its runtime's own log";
            collections_full "Full garbage collections", "/s", Neither,
                "of the server per second of the load phase: those of the whole heap";
            collector_time "Time of the garbage collector", "%", Lower,
                "share of the load phase in which the server stood still for it";
            collector_pause_max "Longest pause for the garbage collector", "ms", Lower,
                "of the server in the load phase; none where it never paused";
            event_loop_lag_p99 "Event-loop lag, p99", "ms", Lower,
                "how late a timer of the server fired, in the load phase, counting every time at which one was due";
            event_loop_lag_max "Event-loop lag, highest", "ms", Lower, "the same, the longest";
            queued "Bytes queued", "MiB", Lower, "most that waited in the server for slow subscribers";
            generator_cpu "Generator CPU", "%", Neither, "per cent of one core: near 100 the generator is the limit";
            generator_busiest "Generator's busiest thread", "%", Neither,
                "CPU of the busiest thread in its busiest second of the load phase, per cent of one core: near 100 it held up what it measured";
            generator_cpu_per_delivery "Generator CPU per delivery", "µs", Neither,
                "CPU time of the whole generator in the load phase, decompression included, divided by the deliveries that arrived in it";
            compressed "Deliveries compressed", "%", Neither,
                "of those received, those that came in a compressed message or body; only where clients asked for it";
            link_cpu "CPU of the link", "%", Neither, "per cent of one core, which it shares with the generator";
            link_lateness "Lateness of the link, p99", "ms", Neither, "how long after it was due a packet left the link; what is read late is in link_wait";
            link_wait "Wait of the link for a core", "ms", Neither, "each time that it had something to do, mean";
            lateness "Generator lateness, p99", "ms", Neither,
                "how late publications left, once their connection could take them";
            generator_share "Generator's share of latency", "%", Neither,
                "of the mean delivery latency: how late publications left, and how long deliveries on a sample of the connections had been received by the kernel before they were read";
            prober_share "Prober's share of response time", "%", Neither,
                "of the mean response time under load: how late pings left, and how long answers had been received by the kernel before they were read";
            clock_error "Error of clocks", "ms", Neither,
                "how far off a latency may be that begins on one clock and ends on another: those of workers on several machines, or of a browser's pages; elsewhere there is only one clock";
        }
    };
}

macro_rules! metrics {
    ($($name:ident $title:literal, $unit:literal, $better:ident, $description:literal;)*) => {
        /// Every metric there is.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: stringify!($name),
            title: $title,
            unit: $unit,
            better: $better,
            description: $description,
        }),*];
    };
}

for_each_metric!(metrics);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_units() {
        let kind = |name: &str| Metric::find(name).unwrap().kind();
        assert_eq!([kind("cpu"), kind("cpu_per_delivery"), kind("cpu_per_client")], [Kind::Cpu; 3]);
        assert_eq!([kind("bytes_sum"), kind("bytes_per_client"), kind("server_bytes_in")], [Kind::Bytes; 3]);
        assert_eq!([kind("memory"), kind("memory_per_client"), kind("queued")], [Kind::Memory; 3]);
        assert_eq!([kind("latency_p99"), kind("response_mean"), kind("connect")], [Kind::Latency; 3]);
        assert_eq!([kind("delivered"), kind("subscribed")], [Kind::Count; 2]);
    }

    #[test]
    fn every_short_name_stands_for_a_metric() {
        for (short, full) in ALIASES {
            assert_eq!(Metric::find(short).map(|m| m.name), Some(*full));
        }
        assert!(Metric::find("speed").is_none());
    }
}
