//! Clients in rooms, over every transport.

use crate::native_server::NativeServer;
use crate::plans::{plan, run};
use pushlab_fleet::{RunError, Threads};
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{Phases, Plan};
use pushlab_workload::result::LoadResult;
use pushlab_workload::roles::Roles;
use pushlab_workload::scenario::Scenario;

const ROOMS: Scenario = Scenario::Rooms { rooms: 4, rooms_per_client: 2, interval_us: 10_000, payload_bytes: 71 };

/// 8 clients in 2 of 4 rooms each: 30 publications, that is 7 rounds and 2 more.
fn rooms_plan(server: &NativeServer, transport: Transport) -> Plan {
    let base = plan(server.address, transport, 8, ROOMS);
    Plan { phases: Phases { warm_up_ms: 50, ..base.phases.clone() }, ..base }
}

/// Deliveries of the publications from `from` to `to`.
fn deliveries(plan: &Plan, from: u64, to: u64) -> u64 {
    let roles = Roles::of(plan, 1000).unwrap();
    let (rooms, pacing) = (roles.rooms().unwrap(), roles.pacing(plan, 0).unwrap());
    (from..to).map(|k| rooms.members(pacing.publisher_of(k).0).len() as u64).sum()
}

fn assert_whole(result: &LoadResult, expected: u64, what: impl std::fmt::Display) {
    let errors = &result.errors;
    assert_eq!((result.scheduled, result.published, result.unsent), (30, 30, 0), "{what} {errors:?}");
    let counts = (result.expected, result.delivered, result.lost);
    assert_eq!(counts, (expected, expected, 0), "{what} {errors:?}");
    assert_eq!((result.duplicated, result.reordered, result.unknown), (0, 0, 0), "{what} {errors:?}");
    assert_eq!(result.latency.count(), expected, "{what}");
    let ranked = [&result.latency_first, &result.latency_last].map(|latency| latency.count());
    assert_eq!(ranked, [30; 2], "{what}");
}

#[test]
fn rooms_are_whole_over_every_transport() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let plan = Plan { loops: 3, ..rooms_plan(&server, transport) };
        let expected = deliveries(&plan, 5, 35);
        // Each of the rooms has 4 members on average.
        assert!((90..150).contains(&expected), "{expected}");
        let result = run(&plan);
        assert_whole(&result, expected, transport);
        assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
        assert_eq!(result.latency_own.count(), 30, "each comes back to its publisher over {transport}");
        assert_eq!(result.requests > 0, !transport.is_bidirectional(), "{transport}");
        assert_eq!(result.requests_publishers, result.requests, "everybody has a turn over {transport}");
        // Warm-up is part of the series.
        assert_eq!(result.seconds.iter().map(|s| s.published).sum::<u64>(), 35, "{transport}");
        assert_eq!(result.seconds.iter().map(|s| s.delivered).sum::<u64>(), deliveries(&plan, 0, 35), "{transport}");
        // The drain has 20 s, and ends when everything is there.
        assert!(result.end_ns - result.phases[0].t_ns < 15_000_000_000, "{transport}");
    }
}

#[test]
fn in_rooms_the_list_of_users_is_one_for_all() {
    let server = NativeServer::start(None);
    let plan = Plan { user_list: true, ..rooms_plan(&server, Transport::Polling) };
    let result = run(&plan);
    assert_whole(&result, deliveries(&plan, 5, 35), "with the list of users");
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    let asked = server.asked();
    let polls = asked.iter().filter(|asked| asked.what == "GET /poll");
    let (lists, messages): (Vec<_>, Vec<_>) = polls.partition(|asked| asked.channel == "a.users");
    // A client may end the run between the two.
    assert!((messages.len() - 8..=messages.len()).contains(&lists.len()), "{} {}", lists.len(), messages.len());
}

#[test]
fn a_cut_connection_comes_back_to_its_rooms() {
    for transport in [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming] {
        let server = NativeServer::start(Some(5));
        let plan = rooms_plan(&server, transport);
        let result = run(&plan);
        assert_whole(&result, deliveries(&plan, 5, 35), transport);
        assert!(result.reconnects >= 8, "{transport} {}", result.reconnects);
    }
}

#[test]
fn the_seed_says_who_is_where() {
    let server = NativeServer::start(None);
    let base = plan(server.address, Transport::WebSocket, 100, ROOMS);
    let rooms = |seed| Roles::of(&Plan { seed, ..base.clone() }, 1000).unwrap().rooms().cloned().unwrap();
    assert_eq!(rooms(1), rooms(1));
    assert_ne!(rooms(1), rooms(2));
}

#[test]
fn more_rooms_than_there_are_is_refused() {
    let server = NativeServer::start(None);
    for (rooms, rooms_per_client, name) in [(0, 1, "rooms"), (3, 4, "rooms_per_client"), (3, 0, "rooms_per_client")] {
        let scenario = Scenario::Rooms { rooms, rooms_per_client, interval_us: 1_000, payload_bytes: 71 };
        let plan = plan(server.address, Transport::Sse, 5, scenario);
        let refused = Threads::run(&plan, None, &mut |_| ()).unwrap_err();
        assert!(matches!(refused, RunError::Plan(_)));
        assert!(refused.to_string().contains(&format!("{name} is ")), "{refused}");
    }
}
