//! Load that changes, from the plan to the deliveries.

use crate::feed_server::{Faults, FeedServer};
use crate::native_server::NativeServer;
use crate::plans::{plan, run, start_of};
use pushlab_fleet::{RunError, Threads};
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{Phase, Phases, Plan};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{FeedBy, Scenario, Shape};
use std::net::TcpListener;

fn assert_whole(result: &LoadResult, scheduled: u64, receivers: u64) {
    assert_eq!((result.scheduled, result.published, result.unsent), (scheduled, scheduled, 0), "{:?}", result.errors);
    let counts = (result.expected, result.delivered, result.lost);
    assert_eq!(counts, (scheduled * receivers, scheduled * receivers, 0), "{:?}", result.errors);
    assert_eq!((result.duplicated, result.reordered, result.unknown), (0, 0, 0), "{:?}", result.errors);
}

fn run_feed(shape: Shape) -> LoadResult {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let back_end = listener.local_addr().unwrap();
    let server = FeedServer::start(back_end, Faults::default());
    let feed =
        Scenario::Feed { interval_us: 5_000, payload_bytes: 100, by: FeedBy::BackEnd, upstream_interval_ms: None };
    let base = plan(server.address, Transport::WebSocket, 3, feed);
    let phases = Phases { warm_up_ms: 50, ..base.phases.clone() };
    let plan = Plan { backend_listen: Some(back_end), shape, phases, ..base };
    Threads::run(&plan, Some(listener), &mut |_| ()).unwrap()
}

#[test]
fn a_feed_follows_its_shape() {
    // 300 ms of load at 5 ms: 60 at the factor 1.
    let ramp = run_feed(Shape::Ramp { from: 2.0, to: 0.0 });
    assert_whole(&ramp, 60, 3);
    assert_eq!(ramp.seconds.iter().map(|s| s.published).sum::<u64>(), 80, "20 in the warm-up");
    let step = run_feed(Shape::Step { factors: vec![0.0, 3.0, 1.0] });
    assert_whole(&step, 80, 3);
    assert_eq!(step.seconds.iter().map(|s| s.published).sum::<u64>(), 80, "a silent warm-up");
    assert_whole(&run_feed(Shape::Spike { factor: 11.0, at_ms: 100, length_ms: 50 }), 160, 3);
    let random = run_feed(Shape::Poisson);
    assert!((20..=100).contains(&random.scheduled) && random.scheduled != 60, "{}", random.scheduled);
    assert_whole(&random, random.scheduled, 3);
}

#[test]
fn clients_and_rooms_follow_it_too() {
    let shape = Shape::Step { factors: vec![1.0, 4.0, 0.0] };
    for (scenario, scheduled) in [
        (Scenario::Echo { interval_ms: 20, payload_bytes: 71, streamed: false }, 125),
        (Scenario::Rooms { rooms: 3, rooms_per_client: 3, interval_us: 4_000, payload_bytes: 71 }, 125),
    ] {
        let server = NativeServer::start(None);
        let receivers = if matches!(scenario, Scenario::Echo { .. }) { 1 } else { 5 };
        let base = plan(server.address, Transport::WebSocket, 5, scenario);
        let phases = Phases { warm_up_ms: 40, ..base.phases.clone() };
        assert_whole(&run(&Plan { shape: shape.clone(), phases, ..base }), scheduled, receivers);
    }
}

/// Publications in the seconds that lie wholly in a part of the load phase, its ends in s after the beginning.
fn published_within(result: &LoadResult, from_s: u64, to_s: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let load = start_of(result, Phase::Load) - start_of(result, Phase::Connect);
    let (from, to) = ((load + from_s * SECOND).div_ceil(SECOND), (load + to_s * SECOND) / SECOND);
    assert!(from < to, "no whole second");
    result.seconds[from as usize..to as usize].iter().map(|second| second.published).sum()
}

#[test]
fn in_a_closed_loop_it_says_how_many_ask() {
    for transport in [Transport::WebSocket, Transport::LongPolling] {
        let server = NativeServer::start(None);
        let base = plan(server.address, transport, 8, Scenario::Request { payload_bytes: 50 });
        let result = run(&Plan {
            shape: Shape::Step { factors: vec![0.0, 0.0, 0.25, 1.0, 0.0, 0.0] },
            phases: Phases { load_ms: 6_000, ..base.phases.clone() },
            ..base
        });
        assert_whole(&result, result.published, 1);
        assert!(result.published >= 8);
        assert_eq!(published_within(&result, 0, 2), 0, "{transport}: nobody is to ask yet");
        assert_eq!(published_within(&result, 4, 6), 0, "{transport}: nobody is to ask any more");
        assert!(published_within(&result, 2, 4) > 0, "{transport}");
    }
}

#[test]
fn more_than_all_cannot_ask() {
    let server = NativeServer::start(None);
    let base = plan(server.address, Transport::WebSocket, 8, Scenario::Request { payload_bytes: 50 });
    let refused = Plan { shape: Shape::Ramp { from: 0.5, to: 1.5 }, ..base };
    let refused = Threads::run(&refused, None, &mut |_| ()).unwrap_err();
    assert!(matches!(refused, RunError::Plan(_)) && refused.to_string().contains("1.5"), "{refused}");
}

#[test]
fn an_idle_run_has_no_shape() {
    let server = NativeServer::start(None);
    let base = plan(server.address, Transport::WebSocket, 1, Scenario::Idle);
    let refused = Plan { shape: Shape::Ramp { from: 0.0, to: 1.0 }, ..base };
    let refused = Threads::run(&refused, None, &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("idle"), "{refused}");
}
