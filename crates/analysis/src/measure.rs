//! Figures of one run, from its record.

pub use crate::bytes::{
    bytes_acknowledgements, bytes_connections, bytes_dialect, bytes_framing, bytes_http_heads, bytes_link,
    bytes_payload, bytes_retransmissions, bytes_sum, bytes_tcp_ip_headers, bytes_tls, bytes_unaccounted,
};
pub use crate::link_figures::{
    acks_per_delivery, link_bytes_in, link_bytes_out, link_cpu, link_lateness, link_packets_in, link_packets_out,
    link_wait, packets_lost, packets_per_delivery, requests_server, retransmitted, subscribed, tcp_retransmits,
    transport_overhead,
};
use crate::record::{CounterSample, RunRecord};
use pushlab_experiment::traffic;
use pushlab_probe::Sample;
use pushlab_stats::Histogram;
use pushlab_workload::plan::{Phase, Plan};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;

const MIB: f64 = 1024.0 * 1024.0;
const KIB_PER_MIB: f64 = 1024.0;
const SECOND_NS: u64 = 1_000_000_000;
/// Seconds of a load phase that are looked at: more than a day of an imported record is no measurement.
const MAX_SECONDS: usize = 1 << 17;
const HOUR_NS: f64 = 3.6e12;
/// Shortest load phase whose memory has a trend worth telling.
const TREND_NS_MIN: u64 = 60 * SECOND_NS;
/// Measurements that a 99th percentile needs to be more than the maximum.
const P99_COUNT_MIN: u64 = 100;

/// A figure that a run may have; `None` when it was not measured.
pub type Measure = fn(&RunRecord) -> Option<f64>;

macro_rules! measures {
    ($($name:ident $title:literal, $unit:literal, $better:ident, $description:literal;)*) => {
        /// Every metric's name, and what takes it from a run.
        pub const MEASURES: &[(&str, Measure)] = &[$((stringify!($name), $name)),*];
    };
}

pushlab_experiment::for_each_metric!(measures);

/// CPU over a span, per cent of one core, from cumulative readings.
pub fn cpu_percent(samples: &[Sample], (start, end): (u64, u64)) -> Option<f64> {
    let inside: Vec<&Sample> = samples.iter().filter(|s| s.t_ns >= start && s.t_ns <= end).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    (last.t_ns > first.t_ns)
        .then(|| last.cpu_ns.saturating_sub(first.cpu_ns) as f64 * 100.0 / (last.t_ns - first.t_ns) as f64)
}

/// Prober's response time under load, median, ms.
pub fn response_median(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.response_load.quantile_ms(0.5)
}

/// Prober's response time under load, mean, ms.
pub fn response_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.response_load.mean_ms()
}

/// Prober's response time under load, 99th percentile, ms.
pub fn response_p99(run: &RunRecord) -> Option<f64> {
    p99(&run.result.as_ref()?.response_load)
}

/// Of one client's messages in their order, which a record does not keep: browsers alone tell it.
pub fn jitter(_: &RunRecord) -> Option<f64> {
    None
}

/// Prober's response time before the load, mean, ms.
pub fn response_idle_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.response_idle.mean_ms()
}

/// Prober's response time before the load, median, ms.
pub fn response_idle_median(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.response_idle.quantile_ms(0.5)
}

/// Delivery latency, median, ms.
pub fn latency_median(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency.quantile_ms(0.5)
}

/// Delivery latency, mean, ms.
pub fn latency_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency.mean_ms()
}

/// Delivery latency, 99th percentile, ms.
pub fn latency_p99(run: &RunRecord) -> Option<f64> {
    p99(&run.result.as_ref()?.latency)
}

/// Latency of each publication's first subscriber, median, ms.
pub fn latency_first(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_first.quantile_ms(0.5)
}

/// Latency of each publication's last subscriber, median, ms.
pub fn latency_last(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_last.quantile_ms(0.5)
}

/// Round trip of clients' own publications, median, ms.
pub fn latency_own_median(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_own.quantile_ms(0.5)
}

/// Round trip of clients' own publications, mean, ms.
pub fn latency_own_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_own.mean_ms()
}

/// From the intended instant to the server, mean, ms.
pub fn latency_up_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_up.mean_ms()
}

/// From the server to the client, mean, ms.
pub fn latency_down_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_down.mean_ms()
}

/// TCP connect to the first subscription answer, median, ms.
pub fn connect(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.connect.quantile_ms(0.5)
}

/// How late publications left, 99th percentile, ms.
pub fn lateness(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.lateness.quantile_ms(0.99)
}

/// Subject's CPU under load, per cent of one core.
pub fn cpu(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.phase_span(Phase::Load)?)
}

/// Subject's CPU before the load, per cent of one core.
pub fn cpu_idle(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.phase_span(Phase::Idle)?)
}

/// How far the instants that a browser's pages told may be off, ms.
pub fn clock_error(run: &RunRecord) -> Option<f64> {
    Some(run.result.as_ref()?.clock_error_ns? as f64 / 1e6)
}

/// Generator's CPU under load, per cent of one core.
pub fn generator_cpu(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    (end > start).then(|| run.result.as_ref().map(|r| r.cpu_load_ns as f64 * 100.0 / (end - start) as f64))?
}

/// Subject's CPU time per delivery, µs: load and drain, in which the publications of the load are delivered.
pub fn cpu_per_delivery(run: &RunRecord) -> Option<f64> {
    let (start, _) = run.phase_span(Phase::Load)?;
    let (_, end) = run.phase_span(Phase::Drain)?;
    let delivered = run.result.as_ref()?.delivered;
    let cpu_us = cpu_percent(&run.subject, (start, end))? / 100.0 * end.saturating_sub(start) as f64 / 1e3;
    (delivered > 0).then(|| cpu_us / delivered as f64)
}

/// Subject's CPU under load, per cent of one core: the median of its seconds.
pub fn cpu_median(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let seconds = (start..end).step_by(SECOND_NS as usize).take(MAX_SECONDS).filter(|from| from + SECOND_NS <= end);
    let shares: Vec<f64> = seconds.filter_map(|from| cpu_percent(&run.subject, (from, from + SECOND_NS))).collect();
    pushlab_stats::median(&shares)
}

/// CPU of the subject alone, before any client, per cent of one core.
pub fn cpu_baseline(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.baseline?)
}

/// Resident memory of the subject alone, before any client, MiB.
pub fn memory_baseline(run: &RunRecord) -> Option<f64> {
    memory_at_end(run, run.baseline?)
}

/// Subject's resident memory with all clients connected and silent, MiB.
pub fn memory_idle(run: &RunRecord) -> Option<f64> {
    memory_at_end(run, run.phase_span(Phase::Idle)?)
}

/// Growth of the subject's resident memory from before any client until all are connected and silent, over their
/// number, KiB.
pub fn memory_per_client(run: &RunRecord) -> Option<f64> {
    let clients = run.planned.cell.clients;
    let growth = memory_idle(run)? - memory_baseline(run)?;
    (clients > 0).then(|| growth * KIB_PER_MIB / f64::from(clients))
}

/// Trend of resident memory over a load phase of at least a minute, MiB per hour.
pub fn memory_growth(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside = run.subject.iter().filter(|s| s.t_ns >= start && s.t_ns <= end);
    let points: Vec<(f64, f64)> =
        inside.map(|s| ((s.t_ns - start) as f64 / HOUR_NS, s.rss_bytes as f64 / MIB)).collect();
    let found = (end.saturating_sub(start) >= TREND_NS_MIN).then(|| pushlab_stats::trend(&points, 0.95))?.ok()?;
    Some(found.per_unit)
}

/// What the kernel holds more with all clients connected than before the first, MiB: both ends of each connection.
pub fn memory_kernel(run: &RunRecord) -> Option<f64> {
    let growth = run.kernel?.idle_bytes as f64 - run.kernel?.before_bytes as f64;
    Some(growth / MIB)
}

/// Subject's highest resident memory under load, MiB.
pub fn memory(run: &RunRecord) -> Option<f64> {
    let (start, _) = run.phase_span(Phase::Load)?;
    let (_, end) = run.phase_span(Phase::Drain)?;
    let inside = run.subject.iter().filter(|s| s.t_ns >= start && s.t_ns <= end);
    inside.map(|s| s.rss_bytes).max().map(|bytes| bytes as f64 / MIB)
}

/// Subject's resident memory after the load, MiB.
pub fn memory_after(run: &RunRecord) -> Option<f64> {
    memory_at_end(run, run.phase_span(Phase::After)?)
}

fn memory_at_end(run: &RunRecord, (start, end): (u64, u64)) -> Option<f64> {
    let last = run.subject.iter().rev().find(|s| s.t_ns >= start && s.t_ns <= end)?;
    Some(last.rss_bytes as f64 / MIB)
}

/// Deliveries per second that arrived in the load phase, whenever they were published.
pub fn delivered(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.arrived)
}

/// Deliveries per second that the publications of the load phase are to make.
pub fn due(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.expected)
}

/// Publications per second that were sent in the load phase.
pub fn published(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.published)
}

/// HTTP requests per second that clients sent in the load phase.
pub fn requests(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.requests)
}

/// Connections per second that clients opened in the load phase.
pub fn connections_opened(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.connections_opened)
}

fn per_load_second(run: &RunRecord, count: fn(&LoadResult) -> u64) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let result = run.result.as_ref().filter(|_| end > start)?;
    Some(count(result) as f64 * 1e9 / (end - start) as f64)
}

/// HTTP requests of clients that publish, for every 100 of their publications.
pub fn requests_publisher(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    (result.published > 0).then(|| result.requests_publishers as f64 * 100.0 / result.published as f64)
}

/// HTTP requests of one client that only receives, for every 100 publications.
pub fn requests_receiver(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    let receivers = u64::from(run.planned.cell.clients).checked_sub(publishers(run)?)?;
    let requests = result.requests.saturating_sub(result.requests_publishers) as f64;
    (receivers > 0 && result.published > 0).then(|| requests * 100.0 / receivers as f64 / result.published as f64)
}

fn publishers(run: &RunRecord) -> Option<u64> {
    let plan = run.plan.as_ref()?;
    Some(match plan.scenario {
        Scenario::Chat { publishers: Some(publishers), .. } => u64::from(publishers),
        Scenario::Feed { .. } | Scenario::FanOut { .. } | Scenario::Idle => 0,
        _ => u64::from(plan.clients),
    })
}

/// The result of clients whose bytes were counted: a browser's are its own.
fn counted(run: &RunRecord) -> Option<&LoadResult> {
    let is_browser = run.plan.as_ref().is_some_and(|plan| plan.clients_in.is_browser());
    run.result.as_ref().filter(|_| !is_browser)
}

/// Bytes that the server read and wrote per delivery, by its own count over the load phase.
pub fn bytes_server(run: &RunRecord) -> Option<f64> {
    let bytes = counter_rate(run, |counters| counters.bytes_received + counters.bytes_sent)?;
    let delivered = counter_rate(run, |counters| counters.sent)?;
    (delivered > 0.0).then(|| bytes / delivered)
}

/// Bytes that clients received per delivery, transport framing, HTTP heads and TLS included: load and drain.
pub fn bytes_per_delivery(run: &RunRecord) -> Option<f64> {
    let result = counted(run)?;
    let bytes = &result.bytes_load;
    if bytes.deliveries > 0 {
        return Some(bytes.down.total() as f64 / bytes.deliveries as f64);
    }
    // A record from before bytes were told apart.
    (result.delivered > 0).then(|| result.bytes_received as f64 / result.delivered as f64)
}

/// Bytes that clients received and sent per delivery.
pub fn traffic_per_delivery(run: &RunRecord) -> Option<f64> {
    let result = counted(run)?;
    let bytes = &result.bytes_load;
    if bytes.deliveries > 0 {
        return Some((bytes.down.total() as f64 + bytes.up.total() as f64) / bytes.deliveries as f64);
    }
    (result.delivered > 0).then(|| (result.bytes_received + result.bytes_sent) as f64 / result.delivered as f64)
}

/// Bytes that clients received and sent per delivery, less the publication's own.
pub fn overhead_per_delivery(run: &RunRecord) -> Option<f64> {
    Some(traffic_per_delivery(run)? - traffic::mean_payload_bytes(&run.plan.as_ref()?.scenario)?)
}

/// Bytes per second that clients sent in the load phase, kB: the server's own count holds the lab's traffic, too.
pub fn server_bytes_in(run: &RunRecord) -> Option<f64> {
    counted(run).and_then(|_| per_load_second(run, |r| r.bytes_sent)).map(|bytes| bytes / 1e3)
}

/// Bytes per second that clients received in the load phase, kB.
pub fn server_bytes_out(run: &RunRecord) -> Option<f64> {
    counted(run).and_then(|_| per_load_second(run, |r| r.bytes_received_in_load)).map(|bytes| bytes / 1e3)
}

/// Publications per second that the server received in the load phase.
pub fn server_received(run: &RunRecord) -> Option<f64> {
    counter_rate(run, |c| c.received)
}

/// Deliveries per second that the server sent in the load phase.
pub fn server_sent(run: &RunRecord) -> Option<f64> {
    counter_rate(run, |c| c.sent)
}

/// Growth per second of a counter of the server, in the load phase.
pub fn counter_rate(run: &RunRecord, get: fn(&CounterSample) -> u64) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside: Vec<&CounterSample> = run.counters.iter().filter(|c| c.t_ns >= start && c.t_ns <= end).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    let growth = get(last).saturating_sub(get(first));
    (last.t_ns > first.t_ns).then(|| growth as f64 * 1e9 / (last.t_ns - first.t_ns) as f64)
}

/// Most TCP connections open at the server at once in the load phase, but for those of the lab's own instruments:
/// the prober, a feeder and the reader of the server's counters.
pub fn connections(run: &RunRecord) -> Option<f64> {
    let feeders = |plan: &Plan| {
        let clients = match plan.scenario {
            Scenario::FanOut { publishers, .. } => publishers,
            _ => u32::from(plan.scenario.has_feeder()),
        };
        // One that receives, and one that posts.
        clients * if plan.publishes_in_frames() { 1 } else { 2 }
    };
    let reader = u32::from(!run.counters.is_empty());
    let instruments = reader + run.plan.as_ref().map_or(0, |plan| u32::from(plan.prober.is_some()) + feeders(plan));
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside = run.subject.iter().filter(|s| s.t_ns >= start && s.t_ns <= end);
    let most = inside.filter_map(|s| s.tcp).map(|tcp| tcp.established).max()?;
    Some(f64::from(most.saturating_sub(instruments)))
}

/// Most bytes queued in the server for slow subscribers, load and drain, MiB.
pub fn queued(run: &RunRecord) -> Option<f64> {
    let (start, _) = run.phase_span(Phase::Load)?;
    let (_, end) = run.phase_span(Phase::Drain)?;
    let inside = run.counters.iter().filter(|c| c.t_ns >= start && c.t_ns <= end);
    inside.map(|c| c.queued_bytes).max().map(|bytes| bytes as f64 / MIB)
}

fn p99(histogram: &Histogram) -> Option<f64> {
    (histogram.count() >= P99_COUNT_MIN).then(|| histogram.quantile_ms(0.99))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_workload::result::PhaseMark;

    #[test]
    fn memory_of_a_client_is_what_it_adds_to_the_server_alone() {
        let mut cell = presets::load("tangen-chat", None).unwrap().cells().remove(0);
        cell.clients = 64;
        let mut run = RunRecord::blank(cell);
        let mark = |phase, t_ns| PhaseMark { phase, t_ns };
        run.result = Some(LoadResult {
            phases: vec![mark(Phase::Connect, 20), mark(Phase::Idle, 30), mark(Phase::Load, 40)],
            end_ns: 50,
            ..LoadResult::default()
        });
        let sample = |t_ns, kib: u64| Sample { t_ns, rss_bytes: kib * 1024, ..Sample::default() };
        run.subject = vec![sample(5, 1000), sample(25, 9000), sample(35, 1160), sample(45, 9000)];
        assert_eq!(memory_per_client(&run), None, "nobody looked at the server alone");
        run.baseline = Some((0, 10));
        assert_eq!(memory_per_client(&run), Some(2.5));
        run.planned.cell.clients = 0;
        assert_eq!(memory_per_client(&run), None);
    }
}
