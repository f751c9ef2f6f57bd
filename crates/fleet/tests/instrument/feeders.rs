//! One client publishes to all others: on a schedule, or as fast as they receive.

use crate::native_server::NativeServer;
use crate::plans::{plan, run, with_prober};
use pushlab_fleet::{RunError, Threads};
use pushlab_wire::stamp::Stamp;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{Phases, Plan, ProberPath};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{FeedBy, Scenario, Shape};

const FEED: Scenario =
    Scenario::Feed { interval_us: 10_000, payload_bytes: 100, by: FeedBy::Publisher, upstream_interval_ms: None };

fn fan_out(publishers: u32) -> Scenario {
    Scenario::FanOut { publishers, payload_bytes: 100 }
}

fn assert_whole(result: &LoadResult, published: u64, receivers: u64, what: impl std::fmt::Display) {
    let errors = &result.errors;
    assert_eq!((result.scheduled, result.published, result.unsent), (published, published, 0), "{what} {errors:?}");
    let counts = (result.expected, result.delivered, result.lost);
    assert_eq!(counts, (published * receivers, published * receivers, 0), "{what} {errors:?}");
    assert_eq!((result.duplicated, result.reordered, result.unknown), (0, 0, 0), "{what} {errors:?}");
    assert_eq!((result.latency.count(), result.lateness.count()), (published * receivers, published), "{what}");
    let ranked = [&result.latency_first, &result.latency_last].map(|latency| latency.count());
    assert_eq!(ranked, [published; 2], "{what}");
    assert_eq!(result.latency_own.count(), 0, "the feeder receives nothing over {what}");
}

/// That all subscribe, and others publish, each its own in order.
fn assert_feeder(server: &NativeServer, result: &LoadResult, clients: usize, what: impl std::fmt::Display) {
    let asked = server.asked();
    let subscribers = asked.iter().filter(|asked| asked.what.starts_with("GET") && asked.channel == "a");
    let subscribers = subscribers.filter(|asked| !asked.head.contains("after=")).count();
    assert_eq!((subscribers, result.connect.count()), (clients, clients as u64), "{what}");
    assert!(asked.iter().any(|asked| asked.channel == "a.feeder"), "{what}");
    assert!(server.published_to().iter().all(|channel| channel == "a"), "{what}");
    let stamps: Vec<Stamp> = server.published().iter().map(|data| Stamp::find(data.as_bytes()).unwrap()).collect();
    let mut next = [0; 16];
    for stamp in stamps {
        assert_eq!(stamp.sequence, next[stamp.source as usize], "{what}: publisher {}", stamp.source);
        next[stamp.source as usize] += 1;
    }
}

#[test]
fn a_publishers_feed_is_whole_over_every_transport() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let base = plan(server.address, transport, 5, FEED);
        let phases = Phases { warm_up_ms: 50, ..base.phases.clone() };
        let result = run(&with_prober(Plan { phases, loops: 3, ..base }, ProberPath::SameTransport));
        assert_whole(&result, 30, 5, transport);
        assert_feeder(&server, &result, 5, transport);
        assert!(result.errors.is_empty() && result.reconnects == 0, "{transport} {:?}", result.errors);
        // Warm-up is part of the series.
        assert_eq!(result.seconds.iter().map(|s| s.published).sum::<u64>(), 35, "{transport}");
        assert_eq!(result.seconds.iter().map(|s| s.delivered).sum::<u64>(), 35 * 5, "{transport}");
    }
}

#[test]
fn clients_that_publish_beside_a_feed_change_nothing_of_it() {
    let scenario = Scenario::Feed {
        interval_us: 10_000,
        payload_bytes: 100,
        by: FeedBy::Publisher,
        upstream_interval_ms: Some(50),
    };
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let base = plan(server.address, transport, 5, scenario.clone());
        let phases = Phases { warm_up_ms: 50, ..base.phases.clone() };
        let result = run(&Plan { phases, loops: 3, ..base });
        let errors = &result.errors;
        assert_eq!((result.scheduled, result.published, result.unsent), (30, 30, 0), "{transport} {errors:?}");
        assert_eq!((result.expected, result.delivered, result.lost), (150, 150, 0), "{transport} {errors:?}");
        assert_eq!((result.latency.count(), result.latency_own.count(), result.unknown), (150, 0, 0), "{transport}");
        // A run ends with its feed: on a busy machine, what the clients should have sent last is not sent.
        let unsent = result.upstream_unsent;
        assert_eq!((result.upstream + unsent, unsent < 30), (30, true), "{transport} {errors:?}");
        assert_eq!(result.lateness.count(), 60 - unsent, "{transport}: of the feed and of the clients");
        assert_eq!(result.seconds.iter().map(|second| second.published).sum::<u64>(), 35, "{transport}");
        let (upstream, feed): (Vec<String>, Vec<String>) =
            server.published_to().into_iter().partition(|channel| channel == "a.up");
        assert_eq!((upstream.len() as u64 + unsent, feed.len()), (35, 35), "{transport}: warm-up and load");
        let subscribed = server.asked().iter().any(|asked| asked.what.starts_with("GET") && asked.channel == "a.up");
        assert!(!subscribed && feed.iter().all(|channel| channel == "a"), "{transport}");
        assert!(errors.is_empty() && result.reconnects == 0, "{transport} {errors:?}");
    }
}

#[test]
fn a_publishers_feed_follows_its_shape() {
    let server = NativeServer::start(None);
    let base = plan(server.address, Transport::WebSocket, 3, FEED);
    let result = run(&Plan { shape: Shape::Step { factors: vec![0.0, 3.0, 1.0] }, ..base });
    assert_whole(&result, 40, 3, "30 at the factor 3 and 10 at 1");
}

#[test]
fn a_closed_loop_of_broadcasts_is_whole_over_every_transport() {
    for transport in Transport::ALL {
        for (publishers, loops) in [(1, 1), (4, 3)] {
            let server = NativeServer::start(None);
            let base = plan(server.address, transport, 5, fan_out(publishers));
            // Long enough for a machine that does other things, too.
            let phases = Phases { load_ms: 700, ..base.phases.clone() };
            let result = run(&Plan { loops, phases, ..base });
            let what = format!("{transport} {publishers}");
            assert_whole(&result, result.published, 5, &what);
            assert_feeder(&server, &result, 5, &what);
            assert!(result.errors.is_empty() && result.reconnects == 0, "{what} {:?}", result.errors);
            let published = server.published().len() as u64;
            assert!(published > u64::from(publishers), "{what}: it goes on, {published}");
            assert!(result.arrived > 0 && result.arrived <= published * 5, "{what}");
        }
    }
}

#[test]
fn no_more_than_one_of_each_publisher_is_ever_under_way() {
    for transport in Transport::ALL {
        for publishers in [1, 3, 16] {
            let server = NativeServer::start(None);
            let result = run(&Plan { loops: 2, ..plan(server.address, transport, 4, fan_out(publishers)) });
            assert_whole(&result, result.published, 4, transport);
            let most = server.under_way_max(4);
            assert!(most <= f64::from(publishers), "{transport}: {most} of {publishers}");
            // How many of the POSTs meet at the server is a matter of the machine.
            assert!(most > f64::from(publishers.min(2) - 1), "{transport}: {most} of {publishers}");
        }
    }
}

#[test]
fn subscribers_that_are_cut_come_back_and_it_goes_on() {
    for transport in [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming] {
        let server = NativeServer::start(Some(7));
        let base = plan(server.address, transport, 3, fan_out(2));
        let phases = Phases { load_ms: 1_000, ..base.phases.clone() };
        let result = run(&Plan { phases, ..base });
        assert_whole(&result, result.published, 3, transport);
        assert!(server.published().len() > 7 && result.reconnects >= 3, "{transport} {}", result.reconnects);
    }
}

#[test]
fn what_is_lost_is_given_up_and_it_goes_on() {
    for transport in [Transport::WebSocket, Transport::Sse, Transport::LongPolling] {
        let server = NativeServer::start(None);
        server.lose(3);
        let base = plan(server.address, transport, 3, fan_out(1));
        let phases = Phases { warm_up_ms: 0, load_ms: 2_000, drain_ms: 1_000, ..base.phases.clone() };
        let result = run(&Plan { phases, ..base });
        assert!(result.published > 1, "{transport}: {}", result.published);
        assert_eq!((result.expected, result.lost), (result.published * 3, 3), "{transport} {:?}", result.errors);
        let given_up: Vec<u64> = result.errors.iter().map(|error| error.count).collect();
        assert_eq!(given_up, [1], "{transport} {:?}", result.errors);
        assert_eq!(result.latency_last.count(), result.published - 1, "{transport}");
    }
}

#[test]
fn what_follows_its_deliveries_has_no_shape_and_some_publishers() {
    let server = NativeServer::start(None);
    let refused = |change: fn(Plan) -> Plan| {
        let plan = change(plan(server.address, Transport::WebSocket, 3, fan_out(8)));
        let refused = Threads::run(&plan, None, &mut |_| ()).unwrap_err();
        assert!(matches!(refused, RunError::Plan(_)), "{refused}");
        refused.to_string()
    };
    let shaped = refused(|plan| Plan { shape: Shape::Ramp { from: 0.5, to: 1.0 }, ..plan });
    assert!(shaped.contains("fan-out") && shaped.contains("steady"), "{shaped}");
    for (publishers, change) in [
        (0, (|plan| Plan { scenario: fan_out(0), ..plan }) as fn(Plan) -> Plan),
        (1_025, |plan| Plan { scenario: fan_out(1_025), ..plan }),
    ] {
        assert!(refused(change).contains(&format!("publishers is {publishers}: it must be 1 to 1024")));
    }
}
