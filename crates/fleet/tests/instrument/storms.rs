//! Clients that are cut off at once: what they missed, and what becomes of it.

use crate::native_server::{NativeServer, Spoil};
use crate::plans::{plan, run};
use pushlab_server::{Config, Server};
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{Phases, Plan};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;
use std::net::SocketAddr;

const CLIENTS: u32 = 10;
const MISSED: u32 = 30;
/// Those to which a server does something.
const SPOILED: u64 = 4;
const PUSHED: [Transport; 3] = [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming];

fn storm(address: SocketAddr, transport: Transport, return_over_ms: u64) -> Plan {
    let scenario = Scenario::Storm { missed: MISSED, payload_bytes: 100, return_over_ms };
    plan(address, transport, CLIENTS, scenario)
}

/// What was published, what came, and how many have caught up.
fn assert_counts(result: &LoadResult, lost: u64, caught_up: u64, what: impl std::fmt::Display) {
    let (missed, errors) = (u64::from(MISSED), &result.errors);
    assert_eq!((result.scheduled, result.published, result.unsent), (missed, missed, 0), "{what} {errors:?}");
    let expected = missed * u64::from(CLIENTS);
    let counts = (result.expected, result.lost, result.delivered);
    assert_eq!(counts, (expected, lost, expected - lost), "{what} {errors:?}");
    assert_eq!((result.caught_up.count(), result.unknown, result.reordered), (caught_up, 0, 0), "{what} {errors:?}");
    assert!(result.reconnects >= u64::from(CLIENTS), "{what}: {}", result.reconnects);
}

/// What clients know and do not know.
fn knowledge(result: &LoadResult) -> [u64; 4] {
    [result.duplicated, result.told_gap, result.lost_told, result.recovered_falsely]
}

#[test]
fn whoever_is_cut_off_gets_everything_from_our_server() {
    for transport in Transport::ALL {
        let server = Server::start(Config::new("127.0.0.1:0".parse().unwrap())).unwrap();
        let result = run(&storm(server.address(), transport, 0));
        assert_counts(&result, 0, u64::from(CLIENTS), transport);
        assert_eq!((knowledge(&result), result.gaps), ([0; 4], 0), "{transport}");
    }
}

#[test]
fn what_a_server_loses_without_a_word_is_a_false_recovery() {
    const EACH: usize = 3;
    for transport in PUSHED {
        let server = NativeServer::start(None);
        server.spoil(Spoil::Loses(EACH), SPOILED as usize);
        let plan = storm(server.address, transport, 0);
        let phases = Phases { drain_ms: 2_000, ..plan.phases.clone() };
        let result = run(&Plan { phases, ..plan });
        assert_counts(&result, SPOILED * EACH as u64, u64::from(CLIENTS) - SPOILED, transport);
        assert_eq!(knowledge(&result), [0, 0, 0, SPOILED], "{transport}");
    }
}

#[test]
fn what_was_there_before_the_cut_and_comes_again_is_doubled() {
    const EACH: usize = 2;
    for transport in PUSHED {
        let server = NativeServer::start(None);
        server.spoil(Spoil::Doubles(EACH), SPOILED as usize);
        let result = run(&storm(server.address, transport, 0));
        assert_counts(&result, 0, u64::from(CLIENTS), transport);
        assert_eq!(knowledge(&result), [SPOILED * EACH as u64, 0, 0, 0], "{transport}");
    }
}

#[test]
fn whoever_is_told_of_a_gap_knows() {
    for transport in PUSHED {
        let server = NativeServer::start(None);
        server.spoil(Spoil::TellsGap, SPOILED as usize);
        let plan = storm(server.address, transport, 0);
        let phases = Phases { drain_ms: 2_000, ..plan.phases.clone() };
        let result = run(&Plan { phases, ..plan });
        let gone = SPOILED * u64::from(MISSED);
        assert_counts(&result, gone, u64::from(CLIENTS) - SPOILED, transport);
        assert_eq!(knowledge(&result), [0, SPOILED, gone, 0], "{transport}");
    }
}

#[test]
fn clients_come_back_over_the_time_that_they_are_given() {
    const OVER_MS: u64 = 500;
    let server = NativeServer::start(None);
    let result = run(&Plan { loops: 3, ..storm(server.address, Transport::WebSocket, OVER_MS) });
    assert_counts(&result, 0, u64::from(CLIENTS), "spread");
    // Client i of ten may come at i tenths.
    let latest_ns = result.caught_up.max().unwrap();
    assert!(latest_ns >= OVER_MS * 900_000, "{latest_ns}");
}
