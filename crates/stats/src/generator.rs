//! Whether the generator measured the subject or itself.

use crate::warning::{Warning, WarningCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the generator may do before figures are left out, or the run is void.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GeneratorLimits {
    /// CPU in any one second, per cent of a core, from which a thread of the generator counts as saturated, and, per cent of
    /// each core it was given, all of them together. Default 95: a full core rarely shows 100 over a window.
    pub cpu_percent_max: f64,
    /// 99th percentile of the duration of a loop's turn, ms, above which the run is void: so long may an event have waited.
    /// Default 10, as for lateness.
    #[serde(alias = "loop_lag_p99_ms_max")]
    pub turn_p99_ms_max: f64,
    /// 99th percentile of lateness (intended instant to write), ms, above which the run is void. Default 10: a
    /// tenth of what a person notices, and two slots of a feed at 200 publications a second.
    pub lateness_p99_ms_max: f64,
    /// The generator's own share of mean latency, or the prober's of mean response time, per cent, above which that is left
    /// out, if it is more than 1 ms. Default 10.
    pub share_percent_max: f64,
}

impl Default for GeneratorLimits {
    fn default() -> Self {
        Self { cpu_percent_max: 95.0, turn_p99_ms_max: 10.0, lateness_p99_ms_max: 10.0, share_percent_max: 10.0 }
    }
}

/// CPU in the second in which it was highest.
#[derive(Debug, Clone, PartialEq)]
pub struct BusySecond {
    /// Whose: `event loop 2`.
    pub whose: String,
    /// How much, per cent of one core.
    pub percent: f64,
    /// When the second began, s after the load phase did.
    pub from_s: f64,
}

/// What the generator did during a load phase. What is NaN or `None` was not measured, and raises nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratorLoad {
    /// Of the thread that was busiest, in its busiest second.
    pub thread: Option<BusySecond>,
    /// Of all threads together, in theirs.
    pub all: Option<BusySecond>,
    /// Cores it was given; at least 1.
    pub cores: u32,
    /// 99th percentile of the duration of its loops' turns, ms.
    pub turn_p99_ms: f64,
    /// 99th percentile of its publications' lateness, ms; 0 when it published nothing.
    pub lateness_p99_ms: f64,
    /// Share of the publications due in the load phase that left after it, or never.
    pub left_after: f64,
}

/// Share of a load's publications that may leave after the load phase before the load was another one.
const LEFT_AFTER_MAX: f64 = 0.05;

impl GeneratorLoad {
    /// What was full for a second, if anything was.
    fn saturated(&self, limits: &GeneratorLimits) -> Option<String> {
        let limit = limits.cpu_percent_max;
        let cores = self.cores.max(1);
        let full = |of: &Option<BusySecond>, cores: u32| {
            of.clone().filter(|second| second.percent >= limit * f64::from(cores))
        };
        let said = |BusySecond { whose, percent, from_s }, of: &str| {
            format!("{whose} used {percent:.0} % of {of} in the second from {from_s:.1} s on, limit {limit:.0} %")
        };
        let all = || {
            let second = full(&self.all, cores)?;
            Some(said(
                BusySecond { percent: second.percent / f64::from(cores), ..second },
                &if cores == 1 { "its core".to_owned() } else { format!("{cores} cores") },
            ))
        };
        full(&self.thread, 1).map(|second| said(second, "a core")).or_else(all)
    }
}

/// Warnings about the generator: saturated CPU; lateness; and long turns without saturation, whose cause is elsewhere but
/// which are in every latency all the same. Where CPU was saturated it is the cause of both, and latencies are left out
/// anyway; only where much of the load came after its time was the load another one than planned.
pub fn generator_warnings(load: &GeneratorLoad, limits: &GeneratorLimits) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let saturated = load.saturated(limits);
    let is_saturated = saturated.is_some();
    warnings.extend(saturated.map(|detail| Warning::new(WarningCode::GeneratorSaturated, detail)));
    if load.turn_p99_ms > limits.turn_p99_ms_max && !is_saturated {
        let (turn, limit) = (load.turn_p99_ms, limits.turn_p99_ms_max);
        let cpu = load.all.as_ref().map_or(String::new(), |all| format!(", at CPU {:.0} % at most", all.percent));
        let detail = format!("turns of the loop took p99 {turn:.1} ms, limit {limit} ms{cpu}");
        warnings.push(Warning::new(WarningCode::LongTurns, detail));
    }
    let is_another_load = load.left_after > LEFT_AFTER_MAX;
    if load.lateness_p99_ms > limits.lateness_p99_ms_max && (!is_saturated || is_another_load) {
        let (late, limit) = (load.lateness_p99_ms, limits.lateness_p99_ms_max);
        let mut detail = format!("lateness p99 {late:.1} ms, limit {limit} ms");
        if is_another_load {
            detail.push_str(&format!(
                "; {:.0} % of publications were sent after the load phase, or never",
                load.left_after * 100.0
            ));
        }
        warnings.push(Warning::new(WarningCode::Lateness, detail));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm() -> GeneratorLoad {
        GeneratorLoad {
            thread: None,
            all: Some(second("all", 40.0)),
            cores: 1,
            turn_p99_ms: 0.3,
            lateness_p99_ms: 0.5,
            left_after: 0.0,
        }
    }

    fn second(whose: &str, percent: f64) -> BusySecond {
        BusySecond { whose: whose.to_owned(), percent, from_s: 2.0 }
    }

    fn codes(load: GeneratorLoad) -> Vec<WarningCode> {
        generator_warnings(&load, &GeneratorLimits::default()).into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn a_calm_generator_raises_nothing() {
        assert_eq!(codes(calm()), []);
        assert_eq!(codes(GeneratorLoad { all: None, turn_p99_ms: f64::NAN, left_after: f64::NAN, ..calm() }), []);
    }

    #[test]
    fn one_full_thread_among_many_cores_is_saturated() {
        let load = GeneratorLoad { thread: Some(second("event loop 2", 95.0)), cores: 32, ..calm() };
        let warnings = generator_warnings(&load, &GeneratorLimits::default());
        let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
        assert_eq!(warning.code, WarningCode::GeneratorSaturated);
        assert_eq!(warning.detail, "event loop 2 used 95 % of a core in the second from 2.0 s on, limit 95 %");
        assert_eq!(codes(GeneratorLoad { thread: Some(second("event loop 2", 94.9)), ..load }), []);
    }

    #[test]
    fn threads_that_fill_their_cores_together_are_saturated() {
        let of = |percent, cores| codes(GeneratorLoad { all: Some(second("all", percent)), cores, ..calm() });
        assert_eq!(of(95.0, 1), [WarningCode::GeneratorSaturated]);
        assert_eq!(of(180.0, 2), []);
        assert_eq!(of(190.0, 2), [WarningCode::GeneratorSaturated]);
    }

    #[test]
    fn long_turns_and_saturation_are_told_apart() {
        let slow = GeneratorLoad { turn_p99_ms: 11.0, ..calm() };
        assert_eq!(codes(slow.clone()), [WarningCode::LongTurns]);
        let full = Some(second("event loop 0", 99.0));
        assert_eq!(codes(GeneratorLoad { thread: full, ..slow }), [WarningCode::GeneratorSaturated]);
    }

    #[test]
    fn lateness_is_void_above_its_limit_not_at_it() {
        assert_eq!(codes(GeneratorLoad { lateness_p99_ms: 10.0, ..calm() }), []);
        let late = GeneratorLoad { lateness_p99_ms: 10.1, ..calm() };
        let warnings = generator_warnings(&late, &GeneratorLimits::default());
        assert!(warnings.len() == 1 && warnings[0].is_void(), "{warnings:?}");
        let lenient = GeneratorLimits { lateness_p99_ms_max: 50.0, ..GeneratorLimits::default() };
        assert!(generator_warnings(&late, &lenient).is_empty());
    }

    #[test]
    fn a_full_second_explains_lateness_unless_the_load_was_another_one() {
        use WarningCode::{GeneratorSaturated, Lateness};
        let full = Some(second("the feeder", 99.0));
        let late = GeneratorLoad { thread: full, lateness_p99_ms: 900.0, left_after: 0.05, ..calm() };
        assert_eq!(codes(late.clone()), [GeneratorSaturated], "it caught up: counts stand");
        assert_eq!(codes(GeneratorLoad { left_after: 0.06, ..late }), [GeneratorSaturated, Lateness]);
    }

    #[test]
    fn limits_come_from_a_file_with_defaults() {
        let limits: GeneratorLimits = serde_json::from_str(r#"{"cpu_percent_max": 80}"#).unwrap();
        assert_eq!((limits.cpu_percent_max, limits.lateness_p99_ms_max), (80.0, 10.0));
        assert!(serde_json::from_str::<GeneratorLimits>(r#"{"cpu": 80}"#).is_err());
    }
}
