//! What one reading of a process tree holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One reading of a process tree: the root process and all its descendants.
///
/// Counters (`cpu_*`, `ctx_*`, `loopback`) are cumulative, so the difference of two samples is what happened between
/// them, and a missed sample loses detail, not amounts. `None` means *not read this time*: the reader was not due,
/// or cannot read ([`ReaderCost::failure`](crate::ReaderCost) says why).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Instant of the reading, ns of the caller's clock.
    pub t_ns: u64,
    /// Living processes of the tree; zombies do not count.
    pub processes: u32,
    /// Their threads.
    pub threads: u32,
    /// CPU time used by the tree since it began, ns, processes that have ended included. Never goes backwards.
    /// Of a thread running at this instant, up to one scheduler tick (1 to 10 ms) may be missing until the next.
    pub cpu_ns: u64,
    /// User part, ns, in steps of the 10 ms tick; user and system need not add up to `cpu_ns`.
    pub cpu_user_ns: u64,
    /// System part, ns, in steps of the 10 ms tick.
    pub cpu_system_ns: u64,
    /// Resident memory, bytes, summed: pages shared between processes count once for each.
    pub rss_bytes: u64,
    /// Proportional memory, bytes: a page shared by n processes counts 1/n for each.
    pub pss_bytes: Option<u64>,
    /// Open descriptors; threads with descriptor tables of their own included.
    pub descriptors: Option<u64>,
    /// Times that threads gave up the CPU because they had to wait.
    pub ctx_voluntary: Option<u64>,
    /// Times that the scheduler took the CPU away.
    pub ctx_involuntary: Option<u64>,
    /// Traffic on the loopback interface of the root's network namespace, other processes' included.
    pub loopback: Option<Loopback>,
    /// TCP sockets on the configured local ports.
    pub tcp: Option<TcpStates>,
}

/// Cumulative traffic of a loopback interface. What is sent there is received there, so one direction is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loopback {
    /// Octets, IP and TCP headers included, link header not.
    pub bytes: u64,
    /// Packets as the interface saw them: up to 64 KiB each, because segmentation offload keeps them whole.
    pub packets: u64,
}

/// TCP sockets by state (RFC 9293), over the configured local ports, IPv4 and IPv6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpStates {
    /// Open connections.
    pub established: u32,
    /// Opening, our side first.
    pub syn_sent: u32,
    /// Opening, peer's side first.
    pub syn_received: u32,
    /// Closing, our FIN not acknowledged.
    pub fin_wait_1: u32,
    /// Closing, our FIN acknowledged.
    pub fin_wait_2: u32,
    /// Closed by us, lingering so that late segments are recognised.
    pub time_wait: u32,
    /// Not connected.
    pub closed: u32,
    /// Closed by the peer, not yet by the subject: a number that grows is a leak.
    pub close_wait: u32,
    /// Closed by both, our FIN not acknowledged.
    pub last_ack: u32,
    /// Listening sockets.
    pub listen: u32,
    /// Both sides closed at once.
    pub closing: u32,
    /// Connections that wait for `accept`, over all listening sockets.
    pub accept_queue: u32,
    /// Bytes written by the subject and not yet acknowledged by the peers.
    pub send_queue_bytes: u64,
    /// Bytes received and not yet read by the subject; a peer's FIN counts as one.
    pub receive_queue_bytes: u64,
    /// Sums over the open connections; `None` when there were more than the configured number.
    pub totals: Option<TcpTotals>,
}

impl TcpStates {
    /// Connections in any state, listening sockets not counted.
    pub fn connections(&self) -> u32 {
        let states = [
            self.established,
            self.syn_sent,
            self.syn_received,
            self.fin_wait_1,
            self.fin_wait_2,
            self.time_wait,
            self.closed,
            self.close_wait,
            self.last_ack,
            self.closing,
        ];
        states.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Sums of `tcp_info` over the connections open now. They shrink when a connection closes: not counters of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpTotals {
    /// Payload bytes sent and acknowledged (`tcpi_bytes_acked`; the handshake may add one for each connection).
    pub sent_bytes: u64,
    /// Payload bytes received (`tcpi_bytes_received`; a FIN adds one).
    pub received_bytes: u64,
    /// Segments sent again.
    pub retransmits: u64,
}
