//! Figures of one run that are times: of pings, of deliveries, of the generator itself.

use super::expected::{Times, own_quantile_ms};
use crate::RunRecord;
use pushlab_stats::Quantile;
use pushlab_workload::plan::Phase;

const SECOND_NS: u64 = 1_000_000_000;

/// Measurements that a share needs.
pub const SHARE_COUNT_MIN: u64 = 20;

/// Prober's response time under load, median, ms.
pub fn response_median(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::Response, Quantile::MEDIAN)
}

/// Prober's response time under load, mean, ms. What was never answered counts with the time waited, at the least.
pub fn response_mean(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    let all = [&result.response_load, &result.response_unanswered];
    let sum_ms: f64 = all.iter().filter_map(|pings| Some(pings.mean_ms()? * pings.count() as f64)).sum();
    let count: u64 = all.iter().map(|pings| pings.count()).sum();
    (count > 0).then(|| sum_ms / count as f64)
}

/// Prober's response time under load, 99th percentile, ms.
pub fn response_p99(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::Response, Quantile::P99)
}

/// Prober's response time before the load, mean, ms.
pub fn response_idle_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.response_idle.mean_ms()
}

/// Prober's response time before the load, median, ms.
pub fn response_idle_median(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::ResponseIdle, Quantile::MEDIAN)
}

/// Until half of a storm's clients are subscribed again, ms.
pub fn back_median(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::Back, Quantile::MEDIAN)
}

/// Until 99 % of a storm's clients are subscribed again, ms.
pub fn back_p99(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::Back, Quantile::P99)
}

/// Until half of a storm's clients have what they missed, ms.
pub fn caught_up_median(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::CaughtUp, Quantile::MEDIAN)
}

/// Until 99 % of a storm's clients have what they missed, ms.
pub fn caught_up_p99(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::CaughtUp, Quantile::P99)
}

/// Until 99.9 % of a storm's clients have what they missed, ms.
pub fn caught_up_p999(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::CaughtUp, Quantile::P999)
}

/// Delivery latency, median, ms.
pub fn latency_median(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::Deliveries, Quantile::MEDIAN)
}

/// Delivery latency, mean, ms.
pub fn latency_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency.mean_ms()
}

/// Delivery latency, 99th percentile, ms.
pub fn latency_p99(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::Deliveries, Quantile::P99)
}

/// Latency of each publication's first subscriber, median, ms.
pub fn latency_first(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::First, Quantile::MEDIAN)
}

/// Latency of each publication's last subscriber, median, ms.
pub fn latency_last(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::Last, Quantile::MEDIAN)
}

/// Round trip of clients' own publications, median, ms.
pub fn latency_own_median(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::Own, Quantile::MEDIAN)
}

/// Round trip of clients' own publications, mean, ms.
pub fn latency_own_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_own.mean_ms()
}

/// Standard deviation of the round trips of clients' own publications, ms.
pub fn latency_own_sd(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_own.stdev().map(|ns| ns / 1e6)
}

/// By how much those round trips grow in a second of the load, ms: the line of least squares through the medians of its
/// whole seconds.
pub fn latency_own_trend(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    let origin = result.phases.first()?.t_ns;
    let (start, end) = run.phase_span(Phase::Load)?;
    let is_in_load = |second: u64| second >= start && second + SECOND_NS <= end;
    let medians: Vec<(f64, f64)> = (0_u64..)
        .zip(&result.seconds)
        .filter(|(index, _)| is_in_load(origin + index * SECOND_NS))
        .filter_map(|(index, second)| Some((index as f64, second.latency_own_median_ns? as f64 / 1e6)))
        .collect();
    slope(&medians)
}

/// Of the line of least squares; `None` for fewer than three points.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let product: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (points.len() >= 3 && square > 0.0).then(|| product / square)
}

/// Latency of deliveries within one server of a cluster, median, ms.
pub fn latency_same_node_median(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::SameNode, Quantile::MEDIAN)
}

/// The same, 99th percentile, ms.
pub fn latency_same_node_p99(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::SameNode, Quantile::P99)
}

/// Latency of deliveries from one server of a cluster to another, median, ms.
pub fn latency_cross_node_median(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::CrossNode, Quantile::MEDIAN)
}

/// The same, 99th percentile, ms.
pub fn latency_cross_node_p99(run: &RunRecord) -> Option<f64> {
    own_quantile_ms(run, Times::CrossNode, Quantile::P99)
}

/// From the intended instant to the server, mean, ms.
pub fn latency_up_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_up.mean_ms()
}

/// From the server to the client, mean, ms.
pub fn latency_down_mean(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.latency_down.mean_ms()
}

/// Of one client's messages in their order, which a record does not keep: browsers alone tell it.
pub fn jitter(_: &RunRecord) -> Option<f64> {
    None
}

/// TCP connect to the first subscription answer, median, ms.
pub fn connect(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.connect.quantile_ms(0.5)
}

/// How late publications left, 99th percentile, ms.
pub fn lateness(run: &RunRecord) -> Option<f64> {
    run.result.as_ref()?.lateness.quantile_ms(0.99)
}

/// The generator's own share of delivery latency, per cent: how late publications left, and how long deliveries on a
/// sample of the connections waited to be read. A ratio of means, so that each counts by its time.
pub fn generator_share(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    let own_ms = result.read_wait.mean_ms().filter(|_| result.read_wait.count() >= SHARE_COUNT_MIN)?
        + result.lateness.mean_ms().unwrap_or(0.0);
    result.latency.mean_ms().filter(|latency_ms| *latency_ms > 0.0).map(|latency_ms| own_ms * 100.0 / latency_ms)
}

/// The prober's own share of response time under load, per cent.
pub fn prober_share(run: &RunRecord) -> Option<f64> {
    let result = run.result.as_ref()?;
    let own_ms = result.response_own.mean_ms().filter(|_| result.response_own.count() >= SHARE_COUNT_MIN)?;
    result
        .response_load
        .mean_ms()
        .filter(|response_ms| *response_ms > 0.0)
        .map(|response_ms| own_ms * 100.0 / response_ms)
}

/// How far a latency may be off that begins on one clock and ends on another, ms.
pub fn clock_error(run: &RunRecord) -> Option<f64> {
    Some(run.result.as_ref()?.clock_error_ns? as f64 / 1e6)
}
