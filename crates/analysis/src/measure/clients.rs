//! Figures of one run that its clients counted: publications, deliveries, requests and bytes.

use crate::record::RunRecord;
use pushlab_experiment::traffic;
use pushlab_workload::plan::Phase;
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;

/// Deliveries per second that arrived in the load phase, whenever they were published.
pub fn delivered(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.arrived)
}

/// Deliveries per second that the publications of the load phase are to make.
pub fn due(run: &RunRecord) -> Option<f64> {
    per_load_second(run, |r| r.expected)
}

/// Deliveries that the publications of the load phase made, per cent of those that they were to make.
pub fn delivered_share(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    (result.expected > 0).then(|| result.delivered as f64 * 100.0 / result.expected as f64)
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
    // A browser does not tell, and only our server counts them.
    let is_browser = run.plan.as_ref().is_some_and(|plan| plan.clients_in.is_browser());
    if is_browser && run.counters.is_empty() {
        return None;
    }
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

/// Clients that were subscribed when the load began.
pub fn subscribed(run: &RunRecord) -> Option<f64> {
    let unsubscribed = run.result.as_ref()?.unsubscribed;
    Some(u64::from(run.planned.cell.clients).saturating_sub(unsubscribed) as f64)
}
