//! Figures of one run from what the link counted, and the kernel of TCP.

use crate::RunRecord;
use pushlab_link::totals::{Counts, Totals};
use pushlab_workload::plan::Phase;

/// What the clients' packets were, both ways together.
pub(super) fn of_clients(totals: &Totals) -> Counts {
    totals.down.clients.plus(&totals.up.clients)
}

fn deliveries(run: &RunRecord) -> Option<f64> {
    let deliveries = run.result.as_ref()?.bytes_load.deliveries;
    (deliveries > 0).then_some(deliveries as f64)
}

fn link_per_delivery(run: &RunRecord, count: fn(&Counts) -> u64) -> Option<f64> {
    Some(count(&of_clients(&run.network.as_ref()?.load)) as f64 / deliveries(run)?)
}

/// Packets or bytes of clients each way in a second, over load and drain, in which what was published arrives, or over the
/// load alone.
fn link_rate(run: &RunRecord, count: fn(&Totals) -> u64) -> Option<f64> {
    let (start, end) = super::usage::counted_span(run)?;
    let network = run.network.as_ref().filter(|_| end > start)?;
    Some(count(&network.load) as f64 * 1e9 / (end - start) as f64)
}

/// Bytes of packets from clients to the subject, kB/s.
pub fn link_bytes_in(run: &RunRecord) -> Option<f64> {
    link_rate(run, |link| link.up.clients.bytes).map(|bytes| bytes / 1e3)
}

/// Bytes of packets from the subject to clients, kB/s.
pub fn link_bytes_out(run: &RunRecord) -> Option<f64> {
    link_rate(run, |link| link.down.clients.bytes).map(|bytes| bytes / 1e3)
}

/// Packets from clients to the subject, in a second.
pub fn link_packets_in(run: &RunRecord) -> Option<f64> {
    link_rate(run, |link| link.up.clients.packets)
}

/// Packets from the subject to clients, in a second.
pub fn link_packets_out(run: &RunRecord) -> Option<f64> {
    link_rate(run, |link| link.down.clients.packets)
}

/// All that the link carried per delivery, both ways, B; known of clients in browsers too.
pub fn bytes_link(run: &RunRecord) -> Option<f64> {
    link_per_delivery(run, |link| link.bytes)
}

/// Packets per delivery, both ways.
pub fn packets_per_delivery(run: &RunRecord) -> Option<f64> {
    link_per_delivery(run, |link| link.packets)
}

/// Packets that only acknowledge, per delivery, both ways.
pub fn acks_per_delivery(run: &RunRecord) -> Option<f64> {
    link_per_delivery(run, |link| link.ack_packets)
}

/// Packets that carried data again, per cent of those with data.
pub fn retransmitted(run: &RunRecord) -> Option<f64> {
    let link = of_clients(&run.network.as_ref()?.load);
    let data = link.data_packets + link.retransmitted_packets;
    (data > 0).then(|| link.retransmitted_packets as f64 * 100.0 / data as f64)
}

/// Packets that the link lost or had no room for, per cent.
pub fn packets_lost(run: &RunRecord) -> Option<f64> {
    let link = of_clients(&run.network.as_ref()?.load);
    (link.packets > 0).then(|| (link.lost_packets + link.queue_full_packets) as f64 * 100.0 / link.packets as f64)
}

/// Segments sent again in load and drain, by the kernel's count for the subject's network namespace.
pub fn tcp_retransmits(run: &RunRecord) -> Option<f64> {
    run.tcp.map(|tcp| tcp.retransmitted as f64)
}

/// How late packets left the link, 99th percentile, ms.
pub fn link_lateness(run: &RunRecord) -> Option<f64> {
    run.network.as_ref()?.lateness.quantile_ms(0.99)
}

/// How long the link waited for a core each time that it had something to do, ms.
pub fn link_wait(run: &RunRecord) -> Option<f64> {
    run.network.as_ref()?.core_wait_ms
}

/// CPU of the link under load, per cent of one core.
pub fn link_cpu(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let cpu_ns = run.network.as_ref().filter(|_| end > start)?.cpu_load_ns;
    Some(cpu_ns as f64 * 100.0 / end.saturating_sub(start) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkRecord;
    use crate::presets;
    use pushlab_link::profile::Profile;
    use pushlab_stats::histogram::Histogram;

    #[test]
    fn what_clients_sent_and_received_is_shared_out_over_the_deliveries() {
        let mut run = RunRecord::blank(presets::load("bigestans-chat").cells().remove(0));
        run.result.as_mut().unwrap().bytes_load.deliveries = 4;
        assert_eq!((bytes_link(&run), packets_per_delivery(&run)), (None, None), "without a link nobody counts");
        let mut load = Totals::default();
        load.down.clients = Counts { packets: 8, bytes: 900, ..Counts::default() };
        load.up.clients = Counts { packets: 4, bytes: 100, ack_packets: 2, ..Counts::default() };
        load.up.instruments = Counts { packets: 50, bytes: 5_000, ..Counts::default() };
        run.network = Some(NetworkRecord {
            profile: Profile::find("local").unwrap().clone(),
            whole: load,
            load,
            lateness: Histogram::new(),
            core_wait_ms: None,
            cpu_load_ns: 0,
            capture: None,
            problem: None,
        });
        assert_eq!((bytes_link(&run), packets_per_delivery(&run)), (Some(250.0), Some(3.0)));
        assert_eq!(acks_per_delivery(&run), Some(0.5));
        run.result.as_mut().unwrap().bytes_load.deliveries = 0;
        assert_eq!(bytes_link(&run), None, "nothing was delivered");
    }
}
