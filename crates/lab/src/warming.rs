//! Whether a subject has warmed up: watched while its warm-up goes on, before anything is measured of it.

use pushlab_experiment::Experiment;
use pushlab_record::WarmUp;
use pushlab_stats::{Steady, steady_state};
use pushlab_watch::Usage;
use pushlab_workload::messages::Progress;

/// Windows, the last of a warm-up, that are tested.
const WINDOWS: usize = 10;

/// What is known of a subject once a second.
#[derive(Debug, Clone, Copy)]
struct Mark {
    delivered: u64,
    cpu_ns: u64,
    latency_ns: Option<u64>,
}

/// Watches a warm-up in windows of a second.
#[derive(Debug, Default)]
pub struct Warming {
    marks: Vec<Mark>,
}

impl Warming {
    /// A second of the warm-up is over.
    pub fn note(&mut self, progress: &Progress, subject: Usage) {
        let Progress { delivered, latency_median_ns: latency_ns, .. } = *progress;
        self.marks.push(Mark { delivered, cpu_ns: subject.cpu_ns, latency_ns });
    }

    /// What CPU time per delivery did in the last windows; the median of latency, where nobody sees the subject's CPU time.
    pub fn end(&self) -> Steady {
        let is_seen = self.marks.last().is_some_and(|mark| mark.cpu_ns > 0);
        let window = |pair: &[Mark]| {
            let deliveries = pair[1].delivered.saturating_sub(pair[0].delivered);
            let cpu_ns = pair[1].cpu_ns.saturating_sub(pair[0].cpu_ns);
            let latency = || pair[1].latency_ns.map_or(f64::NAN, |ns| ns as f64);
            if is_seen { cpu_ns as f64 / deliveries as f64 } else { latency() }
        };
        let windows: Vec<f64> = self.marks.windows(2).map(window).collect();
        steady_state(&windows[windows.len().saturating_sub(WINDOWS)..])
    }

    /// What is kept of a warm-up of this experiment.
    pub fn record(&self, experiment: &Experiment) -> WarmUp {
        WarmUp { length_ms: experiment.phases.warm_up_ms, end: self.end() }
    }

    /// Why the subject has to be warmed up for longer, if it has and may be.
    pub fn is_too_short(&self, experiment: &Experiment) -> Option<String> {
        experiment.is_warmed_until_steady().then(|| self.end()).and_then(|end| {
            let length_s = experiment.phases.warm_up_ms as f64 / 1e3;
            match end {
                Steady::Steady => None,
                Steady::TooShort => {
                    Some(format!("fewer than {WINDOWS} seconds of a warm-up of {length_s:.0} s had deliveries"))
                }
                Steady::Trend { relative_change, .. } => Some(format!(
                    "the cost of a delivery changed by {:.0} % in the last {WINDOWS} s of a warm-up of {length_s:.0} s",
                    relative_change * 100.0
                )),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;

    /// A subject whose deliveries cost so much CPU time, second by second, at 1,000 a second.
    fn warmed(cost_us: impl Fn(u64) -> f64, seconds: u64) -> Warming {
        let mut warming = Warming::default();
        let mut cpu_ns = 1;
        for second in 0..seconds {
            cpu_ns += (cost_us(second) * 1e6) as u64;
            let progress = Progress { delivered: second * 1_000, ..Progress::default() };
            warming.note(&progress, Usage { cpu_ns, rss_bytes: 0 });
        }
        warming
    }

    fn noisy(level: f64, second: u64) -> f64 {
        level * (1.0 + if second.is_multiple_of(3) { 0.02 } else { -0.01 })
    }

    #[test]
    fn a_subject_is_warm_when_the_cost_of_a_delivery_stands_still() {
        let mut experiment = experiments::load("tangen-chat", None).unwrap();
        experiment.phases.warm_up_ms = 12_000;
        experiment.warm_up_max_ms = Some(40_000);
        let compiling = |second: u64| noisy(8.0 + 60.0 * 0.8_f64.powi(second as i32), second);
        let cold = warmed(compiling, 12);
        let why = cold.is_too_short(&experiment).unwrap();
        assert!(why.contains('-') && why.ends_with("warm-up of 12 s"), "{why}");
        assert_eq!(warmed(compiling, 40).is_too_short(&experiment), None, "only the end is looked at");
        assert_eq!(warmed(|second| noisy(8.0, second), 12).is_too_short(&experiment), None);
        assert!(warmed(|_| 8.0, 9).is_too_short(&experiment).unwrap().starts_with("fewer than 10"));
        experiment.warm_up_max_ms = Some(12_000);
        assert_eq!(cold.is_too_short(&experiment), None, "it was warmed up for as long as it may be");
        assert!(matches!(cold.record(&experiment), WarmUp { length_ms: 12_000, end: Steady::Trend { .. } }));
    }

    #[test]
    fn of_whom_no_cpu_time_is_seen_latency_tells() {
        let mut experiment = experiments::load("tangen-chat", None).unwrap();
        experiment.warm_up_max_ms = Some(40_000);
        let mut warming = Warming::default();
        for second in 0..12 {
            let latency_median_ns = Some(2_000_000 - 100_000 * second);
            let progress = Progress { delivered: second, latency_median_ns, ..Progress::default() };
            warming.note(&progress, Usage::default());
        }
        assert!(warming.is_too_short(&experiment).is_some());
    }
}
