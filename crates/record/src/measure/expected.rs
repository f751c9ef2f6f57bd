//! Quantiles of one run over what was expected of it: which figures are quantiles, of which times, and what of these
//! never came.

use super::clients::clients_of_storm;
use super::withheld::is_withheld;
use crate::RunRecord;
use pushlab_stats::{Arrivals, Histogram, Quantile};
use pushlab_workload::ranks::MAX_RANKED;
use std::collections::BTreeMap;

/// Times of which quantiles are figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Times {
    /// Of every delivery.
    Deliveries,
    /// Of each publication's first delivery.
    First,
    /// Of each publication's last delivery.
    Last,
    /// Of each publication back to its publisher.
    Own,
    /// Of deliveries within one server of a cluster.
    SameNode,
    /// Of deliveries from one server of a cluster to another.
    CrossNode,
    /// Of pings while the load runs.
    Response,
    /// Of pings before the load.
    ResponseIdle,
    /// Of clients of a storm until each was subscribed again.
    Back,
    /// The same until each had what it missed.
    CaughtUp,
}

/// Every figure that is a quantile.
pub const QUANTILES: [(&str, Times, Quantile); 17] = [
    ("latency_median", Times::Deliveries, Quantile::MEDIAN),
    ("latency_p99", Times::Deliveries, Quantile::P99),
    ("latency_first", Times::First, Quantile::MEDIAN),
    ("latency_last", Times::Last, Quantile::MEDIAN),
    ("latency_own_median", Times::Own, Quantile::MEDIAN),
    ("latency_same_node_median", Times::SameNode, Quantile::MEDIAN),
    ("latency_same_node_p99", Times::SameNode, Quantile::P99),
    ("latency_cross_node_median", Times::CrossNode, Quantile::MEDIAN),
    ("latency_cross_node_p99", Times::CrossNode, Quantile::P99),
    ("response_median", Times::Response, Quantile::MEDIAN),
    ("response_p99", Times::Response, Quantile::P99),
    ("response_idle_median", Times::ResponseIdle, Quantile::MEDIAN),
    ("back_median", Times::Back, Quantile::MEDIAN),
    ("back_p99", Times::Back, Quantile::P99),
    ("caught_up_median", Times::CaughtUp, Quantile::MEDIAN),
    ("caught_up_p99", Times::CaughtUp, Quantile::P99),
    ("caught_up_p999", Times::CaughtUp, Quantile::P999),
];

/// What a figure is a quantile of, if it is one.
pub fn quantile_of(metric: &str) -> Option<(Times, Quantile)> {
    QUANTILES.iter().find(|(name, ..)| *name == metric).map(|(_, times, quantile)| (*times, *quantile))
}

/// All times of a run of which its warnings leave a figure.
pub fn times_of(run: &RunRecord) -> BTreeMap<Times, Arrivals> {
    let stands = QUANTILES.iter().filter(|(metric, ..)| !is_withheld(metric, &run.warnings));
    let mut all = BTreeMap::new();
    for (_, times, _) in stands {
        if !all.contains_key(times) {
            all.extend(arrivals(run, *times).map(|arrivals| (*times, arrivals)));
        }
    }
    all
}

/// A run's own value of a quantile, ms: what an interval is made of. `None` where it was not reached, or too little was
/// measured even for that.
pub fn own_quantile_ms(run: &RunRecord, times: Times, quantile: Quantile) -> Option<f64> {
    let arrivals = arrivals(run, times)?;
    let lack = arrivals.lack(quantile, quantile.independent_min_of_block());
    arrivals.quantile_ms(quantile).filter(|_| lack.is_none())
}

/// What of these times was measured in a run, out of what was expected; `None` where nothing was.
fn arrivals(run: &RunRecord, times: Times) -> Option<Arrivals> {
    let result = run.result.as_ref()?;
    let publications = result.scheduled.max(result.published);
    // Of a scenario that has no such times nothing was expected either.
    let of_publications = |came: &Histogram, has_any: bool| {
        has_any.then(|| Arrivals::new(came, publications.min(MAX_RANKED).max(came.count()), publications))
    };
    match times {
        Times::Deliveries => {
            let expected = result.owed();
            (expected > 0 || !result.latency.is_empty()).then(|| Arrivals::new(&result.latency, expected, publications))
        }
        Times::First => of_publications(&result.latency_first, !result.latency_first.is_empty()),
        // None may have reached all.
        Times::Last => of_publications(&result.latency_last, !result.latency_first.is_empty()),
        Times::Own => {
            (!result.latency_own.is_empty()).then(|| Arrivals::new(&result.latency_own, publications, publications))
        }
        // What never came would have gone either way: both count what came.
        Times::CrossNode => {
            let crossing = &result.latency_cross_node;
            (!crossing.is_empty()).then(|| Arrivals::new(crossing, crossing.count(), publications))
        }
        Times::SameNode if result.latency_cross_node.is_empty() => None,
        Times::SameNode => {
            let within = result.latency.without(&result.latency_cross_node)?;
            (!within.is_empty()).then(|| Arrivals::new(&within, within.count(), publications))
        }
        Times::Response => pings(&result.response_load, result.response_unanswered.count()),
        Times::ResponseIdle => pings(&result.response_idle, 0),
        // Each client is a measurement of its own, whether it got there or not.
        Times::Back => clients_of_storm(run).map(|all| Arrivals::new(&result.back, all, all)),
        Times::CaughtUp => clients_of_storm(run).map(|all| Arrivals::new(&result.caught_up, all, all)),
    }
}

/// Pings leave at random instants, one by one: each is a measurement of its own.
fn pings(answered: &Histogram, unanswered: u64) -> Option<Arrivals> {
    let sent = answered.count() + unanswered;
    (sent > 0).then(|| Arrivals::new(answered, sent, sent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_experiment::metric::{METRICS, Metric};
    use pushlab_stats::{Lack, Warning, WarningCode};
    use pushlab_workload::result::LoadResult;

    fn run(change: impl FnOnce(&mut LoadResult)) -> RunRecord {
        let mut record = RunRecord::blank(presets::load("tangen-chat").cells().remove(0));
        let mut result = LoadResult::default();
        change(&mut result);
        record.result = Some(result);
        record
    }

    /// A thousand publications to ten subscribers, of whose deliveries those of the first `came` milliseconds came.
    fn feed(came: u64) -> RunRecord {
        run(|result| {
            (result.scheduled, result.published, result.expected) = (1_000, 1_000, 10_000);
            (1..=came).for_each(|ms| result.latency.record_n(ms * 1_000_000, 10));
            result.delivered = result.latency.count();
            result.lost = result.expected - result.delivered;
        })
    }

    fn figure(record: &RunRecord, metric: &str) -> Option<f64> {
        let (times, quantile) = quantile_of(metric).unwrap();
        own_quantile_ms(record, times, quantile)
    }

    fn lack(record: &RunRecord, metric: &str) -> Option<Lack> {
        let (times, quantile) = quantile_of(metric).unwrap();
        times_of(record)[&times].lack(quantile, quantile.independent_min())
    }

    #[test]
    fn who_loses_the_slowest_is_no_faster_for_it() {
        let median = |came| figure(&feed(came), "latency_median").unwrap();
        assert_eq!(median(980), median(1_000));
        assert!(figure(&feed(1_000), "latency_p99").is_some_and(|ms| (988.0..992.0).contains(&ms)));
        assert_eq!(figure(&feed(980), "latency_p99"), None);
        assert!(matches!(
            lack(&feed(980), "latency_p99"),
            Some(Lack::NotReached { missing: 200, expected: 10_000, .. })
        ));
    }

    #[test]
    fn what_could_not_be_sent_was_expected() {
        let mut record = feed(1_000);
        let result = record.result.as_mut().unwrap();
        (result.scheduled, result.unsent) = (1_050, 50);
        assert!(matches!(lack(&record, "latency_p99"), Some(Lack::NotReached { missing: 500, expected: 10_500, .. })));
        assert_eq!(lack(&record, "latency_median"), None);
        let silent = run(|result| (result.scheduled, result.unsent) = (50, 50));
        assert!(matches!(lack(&silent, "latency_median"), Some(Lack::NotReached { missing: 50, expected: 50, .. })));
    }

    #[test]
    fn a_fan_out_to_many_is_still_few_publications() {
        let few = run(|result| {
            (result.scheduled, result.published, result.expected) = (99, 99, 99_000);
            result.latency.record_n(1_000_000, 99_000);
        });
        assert!(matches!(lack(&few, "latency_p99"), Some(Lack::TooFew { independent: 99, needed: 1_000, .. })));
        assert_eq!(figure(&few, "latency_p99"), None, "nor is it one value of several");
        assert_eq!(lack(&few, "latency_median"), None);
    }

    #[test]
    fn what_crossed_from_node_to_node_is_told_apart() {
        let cluster = |crossing| {
            run(|result| {
                (result.scheduled, result.published, result.expected) = (2_000, 2_000, 4_000);
                result.latency.record_n(1_000_000, 2_000);
                result.latency.record_n(5_000_000, crossing);
                result.latency_cross_node.record_n(5_000_000, crossing);
            })
        };
        let near = |figure: Option<f64>, ms: f64| figure.is_some_and(|own| (own / ms - 1.0).abs() < 0.01);
        for quantile in ["median", "p99"] {
            let of = |which: &str, crossing| figure(&cluster(crossing), &format!("latency_{which}_node_{quantile}"));
            assert!(near(of("same", 1_500), 1.0) && near(of("cross", 1_500), 5.0), "{quantile}");
            assert_eq!((of("same", 0), of("cross", 0)), (None, None), "nobody said that it is one");
        }
        let all_cross = run(|result| {
            (result.scheduled, result.published) = (2_000, 2_000);
            result.latency.record_n(5_000_000, 2_000);
            result.latency_cross_node = result.latency.clone();
        });
        assert_eq!(figure(&all_cross, "latency_same_node_median"), None);
    }

    #[test]
    fn a_ping_without_an_answer_took_longer_than_any() {
        let pings = |answered, unanswered| {
            run(|result| {
                result.response_load.record_n(1_000_000, answered);
                // Waited for as long as the run lasted, which tells how long that was, and nothing of the subject.
                result.response_unanswered.record_n(2_000_000, unanswered);
            })
        };
        assert!(figure(&pings(1_000, 9), "response_p99").is_some());
        assert!(matches!(lack(&pings(980, 20), "response_p99"), Some(Lack::NotReached { missing: 20, .. })));
        assert!(matches!(lack(&pings(19, 0), "response_median"), Some(Lack::TooFew { independent: 19, .. })));
        assert!(matches!(lack(&pings(5, 6), "response_median"), Some(Lack::NotReached { .. })));
    }

    #[test]
    fn publications_that_miss_one_subscriber_have_no_last() {
        let record = run(|result| {
            (result.scheduled, result.published) = (100, 100);
            result.latency_first.record_n(1_000_000, 100);
            result.latency_last.record_n(2_000_000, 49);
        });
        assert!(figure(&record, "latency_first").is_some() && figure(&record, "latency_last").is_none());
        assert!(times_of(&run(|result| result.scheduled = 100)).is_empty(), "nothing was expected of anybody");
    }

    #[test]
    fn what_warnings_take_away_is_no_quantile_either() {
        let mut record = feed(1_000);
        record.result.as_mut().unwrap().response_load.record_n(1_000_000, 100);
        record.warnings = vec![Warning::new(WarningCode::GeneratorShare, "")];
        assert_eq!(times_of(&record).into_keys().collect::<Vec<_>>(), [Times::Response]);
    }

    #[test]
    fn every_figure_of_a_subject_that_is_a_quantile_is_known() {
        // How long the instrument and the server itself took, and how soon clients were there, which is no message.
        let others = ["cpu_median", "connect", "event_loop_lag_p99", "link_lateness", "lateness"];
        let is_quantile = |metric: &&Metric| {
            let text = format!("{} {}", metric.title, metric.description);
            text.contains("median") || text.contains("p99")
        };
        let named: Vec<&str> = METRICS.iter().filter(is_quantile).map(|metric| metric.name).collect();
        let known = named.iter().filter(|name| quantile_of(name).is_some()).count();
        assert_eq!((known, named.len()), (QUANTILES.len(), QUANTILES.len() + others.len()), "{named:?}");
    }
}
