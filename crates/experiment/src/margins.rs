//! How far apart two figures may be and still be as good as each other.

use crate::metric::{Kind, Metric};
use std::collections::BTreeMap;

/// Largest margin, per cent: figures of which one is twice the other are not equivalent.
const MARGIN_MAX_PERCENT: f64 = 100.0;

/// The margin of a metric, as a share: its own, that of its kind, or the kind's default.
pub fn margin(margins: &BTreeMap<String, f64>, metric: &Metric) -> f64 {
    let kind = metric.kind();
    let own = margins.get(metric.name).or_else(|| margins.get(kind.name()));
    own.copied().unwrap_or_else(|| kind.margin_percent()) / 100.0
}

/// Refuses what is no metric's margin.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn check(margins: &BTreeMap<String, f64>) -> Result<(), String> {
    for (name, percent) in margins {
        let is_known = Kind::ALL.iter().any(|kind| kind.name() == name)
            || Metric::find(name).is_some_and(|metric| metric.name == name);
        if !is_known {
            let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            return Err(format!("margins.{name}: name a metric, or a kind of metrics: {}", kinds.join(", ")));
        }
        if !(*percent > 0.0 && *percent <= MARGIN_MAX_PERCENT) {
            return Err(format!("margins.{name} = {percent}: per cent, above 0 and at most {MARGIN_MAX_PERCENT}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn margins(entries: &[(&str, f64)]) -> BTreeMap<String, f64> {
        entries.iter().map(|(name, percent)| ((*name).to_owned(), *percent)).collect()
    }

    #[test]
    fn the_metrics_own_margin_goes_before_its_kinds() {
        let of = |given: &BTreeMap<String, f64>, name: &str| margin(given, Metric::find(name).unwrap());
        let given = margins(&[("latency", 30.0), ("latency_p99", 50.0)]);
        assert_eq!([of(&given, "latency_p99"), of(&given, "latency_median"), of(&given, "cpu")], [0.5, 0.3, 0.1]);
    }

    #[test]
    fn what_is_no_margin_is_refused() {
        assert!(check(&margins(&[("cpu", 5.0), ("bytes", 0.5), ("latency_p99", 100.0)])).is_ok());
        for (name, percent, said) in [
            ("speed", 5.0, "margins.speed: name a metric"),
            ("p99", 5.0, "margins.p99: name a metric"),
            ("cpu", 0.0, "margins.cpu = 0"),
            ("cpu", 101.0, "at most 100"),
            ("cpu", f64::NAN, "margins.cpu"),
        ] {
            let error = check(&margins(&[(name, percent)])).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
