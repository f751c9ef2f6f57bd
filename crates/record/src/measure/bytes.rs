//! What a delivered message costs on the wire, part by part.

use super::clients::counted;
use super::link::of_clients;
use crate::RunRecord;
use pushlab_workload::plan::Http;
use pushlab_workload::result::{ByteUses, ClientBytes};

/// Bytes of load and drain for each delivery, both directions together, those of prober and collector left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breakdown {
    /// Data of publications and echoes.
    pub payload: f64,
    /// What the dialect puts around them, and messages of its own.
    pub dialect: f64,
    /// What the transport puts around that: frame heads, field names of an event stream, chunk heads.
    pub framing: f64,
    /// Heads of HTTP requests and responses.
    pub http_heads: f64,
    /// HTTP/2's own: heads of frames, and frames that carry no message; `None` with HTTP/1.1.
    pub http2_frames: Option<f64>,
    /// TLS: records, handshakes; `None` without TLS.
    pub tls: Option<f64>,
    /// What is below the sockets; `None` without a link, which alone sees packets.
    pub link: Option<LinkBytes>,
}

/// The part of packets that clients do not see, for each delivery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkBytes {
    /// Headers of packets that carry data for the first time.
    pub tcp_ip_headers: f64,
    /// Packets without data that only acknowledge.
    pub acknowledgements: f64,
    /// Packets that open, close and reset connections.
    pub connections: f64,
    /// Packets whose data was sent before.
    pub retransmissions: f64,
    /// All that the link carried.
    pub total: f64,
}

impl Breakdown {
    /// All parts together.
    pub fn sum(&self) -> f64 {
        let link = self
            .link
            .map_or(0.0, |link| link.tcp_ip_headers + link.acknowledgements + link.connections + link.retransmissions);
        let optional = self.http2_frames.unwrap_or(0.0) + self.tls.unwrap_or(0.0);
        self.payload + self.dialect + self.framing + self.http_heads + optional + link
    }

    /// What the link carried beyond the sum; below zero where the parts are more than it carried.
    pub fn unaccounted(&self) -> Option<f64> {
        let rest = self.link?.total - self.sum();
        // Shares of whole bytes do not always add up to the last digit.
        Some(if rest.abs() < 1e-6 { 0.0 } else { rest })
    }
}

/// The parts of one run; `None` where nothing was delivered, or nobody counted.
pub fn breakdown(run: &RunRecord) -> Option<Breakdown> {
    breakdown_over(run, run.result.as_ref()?.bytes_load.deliveries)
}

/// The same for each of so many publications or deliveries.
fn breakdown_over(run: &RunRecord, count: u64) -> Option<Breakdown> {
    let bytes_load = counted(run)?.bytes_load;
    let share = |bytes: u64| bytes as f64 / count as f64;
    let of = |uses: fn(&ByteUses) -> u64| share(uses(&bytes_load.down)) + share(uses(&bytes_load.up));
    // An older stored plan does not say it of the target.
    let has_tls = run.plan.as_ref().is_some_and(|plan| plan.sockets.tls || plan.target.tls.is_some());
    let has_http2 = run.plan.as_ref().is_some_and(|plan| plan.http() != Http::Http11);
    (count > 0).then(|| Breakdown {
        payload: of(|uses| uses.payload),
        dialect: of(|uses| uses.dialect),
        framing: of(|uses| uses.framing),
        http_heads: of(|uses| uses.heads),
        http2_frames: has_http2.then(|| of(|uses| uses.http2_frames)),
        tls: has_tls.then(|| of(|uses| uses.tls)),
        link: run.network.as_ref().map(|network| {
            let link = of_clients(&network.load);
            LinkBytes {
                tcp_ip_headers: share(link.data_header_bytes),
                acknowledgements: share(link.ack_bytes),
                connections: share(link.control_bytes),
                retransmissions: share(link.retransmitted_bytes),
                total: share(link.bytes),
            }
        }),
    })
}

/// Payload per delivery, B.
pub fn bytes_payload(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.payload)
}

/// What the dialect adds per delivery, B.
pub fn bytes_dialect(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.dialect)
}

/// What the transport's framing adds per delivery, B.
pub fn bytes_framing(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.framing)
}

/// Heads of HTTP per delivery, B.
pub fn bytes_http_heads(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.http_heads)
}

/// Head of a request, B: the mean of those in load and drain.
pub fn bytes_request_heads(run: &RunRecord) -> Option<f64> {
    heads_per_request(run, |bytes| bytes.up)
}

/// Head of a response, B: those in load and drain over the number of requests.
pub fn bytes_response_heads(run: &RunRecord) -> Option<f64> {
    heads_per_request(run, |bytes| bytes.down)
}

fn heads_per_request(run: &RunRecord, way: fn(&ClientBytes) -> ByteUses) -> Option<f64> {
    let bytes = &run.result.as_ref()?.bytes_load;
    (bytes.requests > 0).then(|| way(bytes).heads as f64 / bytes.requests as f64)
}

/// What HTTP/2 frames per delivery, B.
pub fn bytes_http2_frames(run: &RunRecord) -> Option<f64> {
    breakdown(run)?.http2_frames
}

/// What TLS adds per delivery, B.
pub fn bytes_tls(run: &RunRecord) -> Option<f64> {
    breakdown(run)?.tls
}

/// Headers of TCP and IP per delivery, B.
pub fn bytes_tcp_ip_headers(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.link?.tcp_ip_headers)
}

/// Acknowledgements per delivery, B.
pub fn bytes_acknowledgements(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.link?.acknowledgements)
}

/// Opening and closing of connections per delivery, B.
pub fn bytes_connections(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.link?.connections)
}

/// What was sent again per delivery, B.
pub fn bytes_retransmissions(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.link?.retransmissions)
}

/// What no part explains per delivery, B.
pub fn bytes_unaccounted(run: &RunRecord) -> Option<f64> {
    breakdown(run)?.unaccounted()
}

/// All parts per delivery, B.
pub fn bytes_sum(run: &RunRecord) -> Option<f64> {
    Some(breakdown(run)?.sum())
}

/// All parts per publication, B; `None` where clients neither sent nor received anything.
pub fn bytes_per_publication(run: &RunRecord) -> Option<f64> {
    let sum = breakdown_over(run, run.result.as_ref()?.published)?.sum();
    (sum > 0.0).then_some(sum)
}

/// HTTP heads and transport framing per delivery, both ways, bytes.
pub fn transport_overhead(run: &RunRecord) -> Option<f64> {
    let ClientBytes { deliveries, down, up, .. } = &counted(run)?.bytes_load;
    let parts = [down.heads, down.framing, up.heads, up.framing];
    (*deliveries > 0).then(|| parts.into_iter().map(|bytes| bytes as f64).sum::<f64>() / *deliveries as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_experiment::cell::{Cell, SlowPolicy};
    use pushlab_wire::transport::Transport;
    use pushlab_workload::result::LoadResult;

    fn record(bytes_load: ClientBytes) -> RunRecord {
        let cell = Cell {
            experiment: "chat".to_owned(),
            subject: "pushlab".to_owned(),
            transport: Transport::Sse,
            policy: SlowPolicy::Close,
            variant: None,
            network: None,
            clients: 2,
            deliveries_per_s: None,
            payload_bytes: None,
        };
        RunRecord { result: Some(LoadResult { bytes_load, ..LoadResult::default() }), ..RunRecord::blank(cell) }
    }

    #[test]
    fn both_directions_are_shared_out_over_the_deliveries() {
        let down = ByteUses { payload: 100, dialect: 40, framing: 10, heads: 6, ..ByteUses::default() };
        let up = ByteUses { payload: 50, dialect: 20, framing: 10, heads: 200, ..ByteUses::default() };
        let run = record(ClientBytes { deliveries: 2, requests: 1, down, up });
        let found = breakdown(&run).unwrap();
        assert_eq!((found.payload, found.dialect, found.framing, found.http_heads), (75.0, 30.0, 10.0, 103.0));
        assert_eq!((found.tls, found.link, bytes_sum(&run)), (None, None, Some(218.0)));
        assert_eq!(bytes_unaccounted(&run), None);
        assert_eq!(breakdown(&record(ClientBytes { deliveries: 0, ..ClientBytes::default() })), None);
        assert_eq!(breakdown(&RunRecord { result: None, ..run }), None);
    }

    #[test]
    fn heads_are_told_apart_by_direction_and_shared_out_over_requests() {
        let (down, up) =
            (ByteUses { heads: 600, ..ByteUses::default() }, ByteUses { heads: 900, ..ByteUses::default() });
        let run = record(ClientBytes { deliveries: 100, requests: 4, down, up });
        assert_eq!((bytes_request_heads(&run), bytes_response_heads(&run)), (Some(225.0), Some(150.0)));
        let none = record(ClientBytes { deliveries: 100, requests: 0, down, up });
        assert_eq!((bytes_request_heads(&none), bytes_response_heads(&none)), (None, None));
    }

    #[test]
    fn a_message_that_nobody_receives_has_its_bytes_too() {
        let up = ByteUses { payload: 50, dialect: 20, framing: 10, heads: 200, ..ByteUses::default() };
        let down = ByteUses { heads: 120, ..ByteUses::default() };
        let mut run = record(ClientBytes { deliveries: 0, requests: 4, down, up });
        assert_eq!(bytes_per_publication(&run), None);
        run.result.as_mut().unwrap().published = 4;
        assert_eq!((bytes_per_publication(&run), bytes_sum(&run)), (Some(100.0), None));
        run.result.as_mut().unwrap().bytes_load = ClientBytes::default();
        assert_eq!(bytes_per_publication(&run), None, "a back end publishes, and nobody receives");
    }

    fn linked(total: f64) -> Breakdown {
        let link =
            LinkBytes { tcp_ip_headers: 52.0, acknowledgements: 26.0, connections: 2.0, retransmissions: 0.5, total };
        Breakdown {
            payload: 100.0,
            dialect: 20.0,
            framing: 3.0,
            http_heads: 0.5,
            http2_frames: Some(1.0),
            tls: Some(22.0),
            link: Some(link),
        }
    }

    #[test]
    fn what_is_not_in_a_part_is_unaccounted_for() {
        assert_eq!((linked(230.0).sum(), linked(230.0).unaccounted()), (227.0, Some(3.0)));
        assert_eq!(linked(220.0).unaccounted(), Some(-7.0), "more than there was is told");
        let plain = Breakdown { tls: None, link: None, ..linked(0.0) };
        assert_eq!((plain.sum(), plain.unaccounted()), (124.5, None));
    }
}
