//! Figures of one run from the server's own counters.

use crate::{CounterSample, RunRecord};
use pushlab_workload::plan::{Phase, ProberPath};
use pushlab_workload::result::LoadResult;

const MIB: f64 = 1024.0 * 1024.0;

/// Growth per second of a counter of the server, in the load phase.
pub fn counter_rate(run: &RunRecord, get: fn(&CounterSample) -> u64) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside: Vec<&CounterSample> = run.counters.iter().filter(|c| c.t_ns >= start && c.t_ns <= end).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    let growth = get(last).saturating_sub(get(first));
    (last.t_ns > first.t_ns).then(|| growth as f64 * 1e9 / (last.t_ns - first.t_ns) as f64)
}

/// Publications per second that the server received in the load phase.
pub fn server_received(run: &RunRecord) -> Option<f64> {
    counter_rate(run, |c| c.received)
}

/// Deliveries per second that the server sent in the load phase.
pub fn server_sent(run: &RunRecord) -> Option<f64> {
    counter_rate(run, |c| c.sent)
}

/// Bytes that the server read and wrote per delivery, by its own count over the load phase.
pub fn bytes_server(run: &RunRecord) -> Option<f64> {
    let bytes = counter_rate(run, |counters| counters.bytes_received + counters.bytes_sent)?;
    let delivered = counter_rate(run, |counters| counters.sent)?;
    (delivered > 0.0).then(|| bytes / delivered)
}

/// HTTP requests per second that the server counted in the load phase, but for those of the lab's own instruments:
/// the reader of its counters, a prober that posts, and a feeder that does. Polls of a feeder are in it.
pub fn requests_server(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    let inside: Vec<u64> = run.counters.iter().map(|c| c.t_ns).filter(|t_ns| (start..=end).contains(t_ns)).collect();
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    // Each reading counts itself, so from the first to the last there is one less.
    let readings = inside.len().saturating_sub(1) as f64 / seconds(*inside.first()?, *inside.last()?);
    let plan = run.plan.as_ref()?;
    let posts = plan.prober.as_ref().filter(|p| p.over == ProberPath::Http || !plan.transport.is_bidirectional());
    let pings = posts.and(run.result.as_ref()).map_or(0, LoadResult::pings);
    let has_posting_feeder = plan.scenario.has_feeder() && !plan.transport.is_bidirectional();
    let fed = run.result.as_ref().filter(|_| has_posting_feeder).map_or(0, |result| result.published);
    let own = readings + (pings + fed) as f64 / seconds(start, end);
    counter_rate(run, |counters| counters.requests).filter(|_| own.is_finite()).map(|rate| (rate - own).max(0.0))
}

/// Most bytes queued in the server for slow subscribers, load and drain, MiB.
pub fn queued(run: &RunRecord) -> Option<f64> {
    let (start, _) = run.phase_span(Phase::Load)?;
    let (_, end) = run.phase_span(Phase::Drain)?;
    let inside = run.counters.iter().filter(|c| c.t_ns >= start && c.t_ns <= end);
    inside.map(|c| c.queued_bytes).max().map(|bytes| bytes as f64 / MIB)
}
