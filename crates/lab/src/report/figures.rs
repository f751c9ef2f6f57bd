//! A cell's figures over its repeats.

use super::model::{Figure, Point};
use crate::measure::{self, Measure};
use crate::record::{Outcome, RunRecord};
use pushlab_stats::{Band, STRESS_CPU_PERCENT, interval_of_mean, regime};

/// Level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// One run's values of a measure, over the runs that count.
pub fn values(runs: &[&RunRecord], measure: Measure) -> Vec<f64> {
    runs.iter().filter(|r| r.counts()).filter_map(|r| measure(r)).filter(|v| v.is_finite()).collect()
}

/// Mean and interval over the runs that count.
pub fn figure(runs: &[&RunRecord], measure: Measure, seed: u64) -> Option<Figure> {
    let interval = interval_of_mean(&values(runs, measure), CONFIDENCE, seed).ok()?;
    // No measured quantity is negative, though the interval of a skewed one may reach below.
    Some(Figure { value: interval.value, low: interval.low.max(0.0), high: interval.high, runs: interval.runs })
}

/// Everything about one cell but its timeline.
pub fn point(clients: u32, runs: &[&RunRecord], seed: u64) -> Point {
    let figure = |measure: Measure| figure(runs, measure, seed);
    let sum = |count: fn(&RunRecord) -> u64| runs.iter().filter(|r| r.counts()).map(|r| count(r)).sum();
    let response_median = figure(measure::response_median);
    let cpu = figure(measure::cpu);
    let mut doubts: Vec<String> = runs.iter().flat_map(|r| &r.doubts).map(|d| d.code.to_string()).collect();
    doubts.sort();
    doubts.dedup();
    Point {
        clients,
        runs: runs.iter().filter(|r| r.counts()).count() as u32,
        failures: runs.iter().filter_map(|r| failure(r)).collect(),
        voids: runs.iter().filter(|r| r.is_void()).map(|r| void(r)).collect(),
        regime: cpu.map(|f| regime(f.value, STRESS_CPU_PERCENT)),
        band: response_median.map(|f| Band::of_response_ms(f.value)),
        response_median,
        response_mean: figure(measure::response_mean),
        response_p99: figure(measure::response_p99),
        response_idle_median: figure(measure::response_idle_median),
        latency_median: figure(measure::latency_median),
        latency_mean: figure(measure::latency_mean),
        latency_p99: figure(measure::latency_p99),
        latency_first: figure(measure::latency_first),
        latency_last: figure(measure::latency_last),
        cpu,
        cpu_idle: figure(measure::cpu_idle),
        cpu_per_delivery: figure(measure::cpu_per_delivery),
        memory: figure(measure::memory),
        memory_after: figure(measure::memory_after),
        delivered: figure(measure::delivered),
        published: figure(measure::published),
        bytes_per_delivery: figure(measure::bytes_per_delivery),
        generator_cpu: figure(measure::generator_cpu),
        lost: sum(|r| r.result.as_ref().map_or(0, |x| x.lost)),
        duplicated: sum(|r| r.result.as_ref().map_or(0, |x| x.duplicated)),
        reordered: sum(|r| r.result.as_ref().map_or(0, |x| x.reordered)),
        doubts,
        timeline: None,
    }
}

fn failure(run: &RunRecord) -> Option<String> {
    match &run.outcome {
        Outcome::Completed => None,
        Outcome::Failed { reason, .. } => Some(format!("repeat {}: {reason}", run.planned.repeat)),
    }
}

fn void(run: &RunRecord) -> String {
    let reasons: Vec<String> =
        run.doubts.iter().filter(|d| d.is_void()).map(|d| format!("{}: {}", d.code, d.detail)).collect();
    format!("repeat {}: {}", run.planned.repeat, reasons.join("; "))
}
