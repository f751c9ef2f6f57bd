//! Feeds through a server whose faults are known.

use crate::feed_server::{Fault, Faults, FeedServer};
use crate::plans::{plan, start_of, with_prober};
use pushlab_fleet::{RunError, Threads};
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::LoadError;
use pushlab_workload::plan::{Phase, Phases, Plan, ProberPath};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{FeedBy, Scenario};
use std::net::TcpListener;

const FEED: Scenario =
    Scenario::Feed { interval_us: 5_000, payload_bytes: 173, by: FeedBy::BackEnd, upstream_interval_ms: None };

/// Runs a feed of 5 ms for 300 ms to four clients, unless `change` makes it another.
pub fn run_feed(faults: Faults, change: impl FnOnce(Plan) -> Plan) -> (LoadResult, FeedServer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let back_end = listener.local_addr().unwrap();
    let server = FeedServer::start(back_end, faults);
    let base = plan(server.address, Transport::WebSocket, 4, FEED);
    let plan = change(Plan { backend_listen: Some(back_end), ..base });
    (Threads::run(&plan, Some(listener), &mut |_| ()).unwrap(), server)
}

#[test]
fn marked_receipts_split_the_latency_as_they_were_put_in() {
    const UP_NS: u64 = 3_000_000;
    let faults = Faults { delay_ns: 8_000_000, receipt_ns: Some(UP_NS), ..Faults::default() };
    let (result, _) = run_feed(faults, |plan| Plan { receipts: true, ..plan });
    assert_eq!((result.delivered, result.latency_up.count(), result.latency_down.count()), (240, 240, 240));
    // The lower and the upper end of a bucket that is a thousandth wide.
    let up = [result.latency_up.min(), result.latency_up.quantile(1.0)].map(Option::unwrap);
    assert!((UP_NS - 3_100..=UP_NS).contains(&up[0]) && (UP_NS..UP_NS + 3_100).contains(&up[1]), "{up:?}");
    assert!(result.latency_down.min().unwrap() >= 4_990_000, "the delay but for the way up");
    assert_eq!(result.deliveries.len(), 240);
    assert!(result.deliveries.is_sorted_by_key(|row| row.delivered_ns), "in the order of arrival");
    let mut seen = std::collections::HashSet::new();
    for row in &result.deliveries {
        assert_eq!((row.publisher, row.receipt_ns - row.intended_ns), (0, UP_NS));
        assert_eq!(row.intended_ns, u64::from(row.sequence) * 5_000_000, "every 5 ms from the load phase on");
        assert!(row.delivered_ns >= row.intended_ns + faults.delay_ns, "{row:?}");
        assert!(seen.insert((row.receiver, row.sequence)) && row.receiver < 4 && row.sequence < 60, "{row:?}");
    }
    assert_eq!(result.latency_own.count(), 0, "the back end receives nothing");
}

#[test]
fn the_table_of_deliveries_has_the_first_ten_thousand() {
    let faults = Faults { receipt_ns: Some(0), ..Faults::default() };
    let (result, _) = run_feed(faults, |plan| Plan {
        loops: 1,
        clients: 40,
        receipts: true,
        scenario: Scenario::Feed {
            interval_us: 1_000,
            payload_bytes: 53,
            by: FeedBy::BackEnd,
            upstream_interval_ms: None,
        },
        ..plan
    });
    assert_eq!((result.delivered, result.latency_up.count(), result.deliveries.len()), (12_000, 12_000, 10_000));
    assert!(result.deliveries.iter().all(|row| row.sequence < 290), "the last ones are left out");
}

#[test]
fn marks_that_cannot_be_true_are_said_to_be_and_not_counted() {
    // A second later than now.
    let faults = Faults { receipt_ns: Some(1_000_000_000), ..Faults::default() };
    let (result, _) = run_feed(faults, |plan| Plan { receipts: true, ..plan });
    assert_eq!((result.delivered, result.latency_up.count(), result.deliveries.len()), (240, 0, 0));
    assert_eq!(result.errors.len(), 1);
    assert!(result.errors[0].count == 240 && result.errors[0].error.contains("receipt mark"), "{:?}", result.errors);
}

#[test]
fn faults_are_counted_exactly() {
    let faults = Faults { lost: 10, doubled: 5, swapped: 10, ..Faults::default() };
    let (result, server) = run_feed(faults, |plan| Plan {
        clients: 20,
        scenario: Scenario::Feed {
            interval_us: 1_000,
            payload_bytes: 100,
            by: FeedBy::BackEnd,
            upstream_interval_ms: None,
        },
        // What is lost is waited for until nothing has come for a while.
        phases: Phases { load_ms: 1_000, drain_ms: 600_000, ..plan.phases.clone() },
        drain_stall_ms: Some(700),
        ..plan
    });
    let load = start_of(&result, Phase::Load)..start_of(&result, Phase::Drain);
    let [lost, doubled, swapped] =
        [Fault::Lost, Fault::Doubled, Fault::Swapped].map(|fault| server.count(fault, load.clone()));
    assert!(lost > 50 && doubled > 20 && swapped > 50, "{lost} {doubled} {swapped}");
    assert_eq!((result.scheduled, result.published, result.unsent), (1_000, 1_000, 0));
    assert_eq!(result.expected, 20_000);
    assert_eq!((result.lost, result.duplicated, result.reordered), (lost, doubled, swapped));
    assert_eq!(result.delivered, 20_000 - lost);
    assert_eq!((result.unknown, result.gaps, result.reconnects), (0, 0, 0));
    assert_eq!(result.latency_first.count(), 1_000);
    assert!(result.latency_last.count() < 1_000, "those that reached all");
}

#[test]
fn every_figure_of_a_clean_run_is_whole() {
    let (result, _) = run_feed(Faults::default(), |plan| {
        with_prober(Plan { phases: Phases { idle_ms: 205, ..plan.phases.clone() }, ..plan }, ProberPath::SameTransport)
    });
    assert_eq!((result.scheduled, result.expected, result.delivered, result.lost), (60, 240, 240, 0));
    assert_eq!((result.latency.count(), result.latency_last.count(), result.lateness.count()), (240, 60, 60));
    assert_eq!((result.connect.count(), result.unknown), (4, 0));
    // Of 205 and 300 ms at 10 ms on average, by the seed.
    assert_eq!((result.response_idle.count(), result.response_load.count()), (24, 32));
    // Warm-up is part of the series: 55 ms at 5 ms.
    assert_eq!(result.seconds.iter().map(|s| s.published).sum::<u64>(), 71);
    assert_eq!(result.seconds.iter().map(|s| s.delivered).sum::<u64>(), 71 * 4);
    assert!(result.cpu_load_ns > 0 && result.turn_duration.count() > 0 && result.bytes_received > 240 * 173);
    let marks: Vec<_> = result.phases.iter().map(|mark| mark.phase).collect();
    use Phase::{After, Connect, Drain, Idle, Load, WarmUp};
    assert_eq!(marks, [Connect, Idle, WarmUp, Load, Drain, After]);
    assert!(result.phases.is_sorted_by_key(|mark| mark.t_ns));
    assert!(result.errors.is_empty(), "{:?}", result.errors);
}

#[test]
fn an_injected_delay_shows_as_turn_duration() {
    let (result, _) = run_feed(Faults::default(), |plan| Plan { injected_delay_us: 2_000, ..plan });
    // The lower end of a bucket that is a thousandth wide.
    assert!(result.turn_duration.min().unwrap() >= 1_990_000);
    assert_eq!(result.lost, 0);
}

#[test]
fn a_feed_without_a_subject_says_where_it_waited() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let base = plan(address, Transport::WebSocket, 1, FEED);
    let plan = Plan { backend_listen: Some(address), phases: Phases { connect_ms: 30, ..base.phases.clone() }, ..base };
    let error = Threads::run(&plan, Some(listener), &mut |_| ()).unwrap_err();
    assert!(matches!(error, RunError::Load(LoadError::Worker { .. })), "{error}");
    assert!(error.to_string().contains(&address.to_string()));
}
