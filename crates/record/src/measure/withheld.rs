//! Which figures of a run its warnings take away.

use pushlab_stats::{Figures, Warning};

/// Figures of response times that were measured before the load, and stand whatever happened in it.
const BEFORE_THE_LOAD: [&str; 2] = ["response_idle_median", "response_idle_mean"];

/// Whether warnings about a run take this figure away though the run counts.
pub fn is_withheld(metric: &str, warnings: &[Warning]) -> bool {
    let is_taken = |figures: &Figures| warnings.iter().any(|warning| warning.code.withholds(*figures));
    figures_of(metric).iter().any(is_taken)
}

/// The figures among which a metric is, where a warning can take them away by themselves.
fn figures_of(metric: &str) -> &'static [Figures] {
    if metric.starts_with("latency_own_") || metric == "jitter" {
        return &[Figures::Latency];
    }
    if metric.starts_with("latency_") {
        return &[Figures::Latency, Figures::OneWay];
    }
    if metric.starts_with("response_") && !BEFORE_THE_LOAD.contains(&metric) { &[Figures::Response] } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_experiment::metric::{METRICS, Metric};
    use pushlab_stats::WarningCode;

    #[test]
    fn a_full_generator_takes_times_under_load_away_and_nothing_else() {
        let withheld_by = |code| {
            let warnings = [Warning::new(WarningCode::Loss, ""), Warning::new(code, "")];
            METRICS.iter().map(|metric| metric.name).filter(|name| is_withheld(name, &warnings)).collect::<Vec<_>>()
        };
        let by_full = withheld_by(WarningCode::GeneratorSaturated);
        assert!(by_full.contains(&"latency_p99") && by_full.contains(&"response_median"), "{by_full:?}");
        for stays in ["cpu", "cpu_per_delivery", "delivered", "bytes_sum", "memory", "connect", "response_idle_mean"] {
            assert!(Metric::find(stays).is_some() && !by_full.contains(&stays), "{stays}");
        }
        assert!(withheld_by(WarningCode::GeneratorBound).is_empty(), "a lower bound is marked, not left out");
    }

    #[test]
    fn either_share_takes_its_own_times_alone() {
        let of = |code, name| is_withheld(name, &[Warning::new(code, "")]);
        assert!(
            of(WarningCode::GeneratorShare, "latency_median") && !of(WarningCode::GeneratorShare, "response_median")
        );
        assert!(of(WarningCode::ProberShare, "response_p99") && !of(WarningCode::ProberShare, "latency_p99"));
    }

    #[test]
    fn clocks_that_are_not_known_leave_round_trips() {
        let warnings = [Warning::new(WarningCode::OneWayUnsure, "")];
        for taken in ["latency_median", "latency_p99", "latency_mean", "latency_first", "latency_up_mean"] {
            assert!(Metric::find(taken).is_some() && is_withheld(taken, &warnings), "{taken}");
        }
        for stays in ["latency_own_median", "latency_own_sd", "response_p99", "caught_up_p99", "lateness"] {
            assert!(Metric::find(stays).is_some() && !is_withheld(stays, &warnings), "{stays}");
        }
    }

    #[test]
    fn all_that_a_generator_times_under_load_is_known() {
        let timed = METRICS.iter().filter(|metric| metric.unit == "ms" && figures_of(metric.name).is_empty());
        let rest: Vec<&str> = timed.map(|metric| metric.name).collect();
        let of_server = ["collector_pause_max", "event_loop_lag_p99", "event_loop_lag_max"];
        let of_instruments = ["link_lateness", "link_wait", "lateness", "clock_error"];
        let before = ["response_idle_median", "response_idle_mean"];
        // A storm fills the generator by design, after the load phase that its warnings are about.
        let after = ["back_median", "back_p99", "caught_up_median", "caught_up_p99", "caught_up_p999", "connect"];
        assert_eq!(rest, [&before[..], &after, &of_server, &of_instruments].concat());
    }
}
