//! Figures of one run, from its record.

use crate::record::RunRecord;
use pushlab_load::plan::Phase;
use pushlab_probe::Sample;
use pushlab_stats::Histogram;

const MIB: f64 = 1024.0 * 1024.0;
/// Measurements that a 99th percentile needs to be more than the maximum.
const P99_COUNT_MIN: u64 = 100;

/// A figure that a run may have; `None` when it was not measured.
pub type Measure = fn(&RunRecord) -> Option<f64>;

/// CPU over a span, per cent of one core, from cumulative readings.
pub fn cpu_percent(samples: &[Sample], (start, end): (u64, u64)) -> Option<f64> {
    let inside: Vec<&Sample> = samples.iter().filter(|s| s.t_ns >= start && s.t_ns <= end).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    (last.t_ns > first.t_ns).then(|| (last.cpu_ns - first.cpu_ns) as f64 * 100.0 / (last.t_ns - first.t_ns) as f64)
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

/// Subject's CPU under load, per cent of one core.
pub fn cpu(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.phase_span(Phase::Load)?)
}

/// Subject's CPU before the load, per cent of one core.
pub fn cpu_idle(run: &RunRecord) -> Option<f64> {
    cpu_percent(&run.subject, run.phase_span(Phase::Idle)?)
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
    let cpu_us = cpu_percent(&run.subject, (start, end))? / 100.0 * (end - start) as f64 / 1e3;
    (delivered > 0).then(|| cpu_us / delivered as f64)
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
    let (start, end) = run.phase_span(Phase::After)?;
    let inside = run.subject.iter().rev().find(|s| s.t_ns >= start && s.t_ns <= end)?;
    Some(inside.rss_bytes as f64 / MIB)
}

/// Deliveries per second that arrived in the load phase, whenever they were published.
pub fn delivered(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    (end > start).then(|| run.result.as_ref().map(|r| r.arrived as f64 * 1e9 / (end - start) as f64))?
}

/// Publications per second that were sent in the load phase.
pub fn published(run: &RunRecord) -> Option<f64> {
    let (start, end) = run.phase_span(Phase::Load)?;
    (end > start).then(|| run.result.as_ref().map(|r| r.published as f64 * 1e9 / (end - start) as f64))?
}

/// Bytes that clients received per delivery, transport framing and HTTP heads included.
pub fn bytes_per_delivery(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    (result.delivered > 0).then(|| result.bytes_received as f64 / result.delivered as f64)
}

fn p99(histogram: &Histogram) -> Option<f64> {
    (histogram.count() >= P99_COUNT_MIN).then(|| histogram.quantile_ms(0.99))?
}
