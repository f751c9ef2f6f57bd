//! Clients that are cut off at once: what they missed, and what becomes of it.

use crate::native_server::{NativeServer, Spoil};
use crate::plans::{plan, run};
use pushlab_fleet::Threads;
use pushlab_server::{Config, Server};
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::RunEvent;
use pushlab_workload::plan::{Phase, Phases, Plan};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{Outage, Scenario};
use std::net::SocketAddr;

const CLIENTS: u32 = 10;
const MISSED: u32 = 30;
/// Those to which a server does something.
const SPOILED: u64 = 4;
const PUSHED: [Transport; 3] = [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming];

fn storm(address: SocketAddr, transport: Transport, return_over_ms: u64) -> Plan {
    let scenario = Scenario::Storm { missed: MISSED, payload_bytes: 100, return_over_ms, outage: Outage::Cut };
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
        // Who is cut off from a busy server may have less than two.
        let repeated = server.repeated();
        assert!((1..=SPOILED * EACH as u64).contains(&repeated), "{transport}: {repeated}");
        assert_eq!(knowledge(&result), [repeated, 0, 0, 0], "{transport}");
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
        // Who comes back to a busy server may be told before all of the load is published.
        // The load's are the last ones: when it was seen to begin, some of them may have been due.
        let published = server.published();
        let load = &published[published.len() - MISSED as usize..];
        let gone = server.withheld().iter().filter(|data| load.contains(data)).count() as u64;
        assert!((SPOILED..=SPOILED * u64::from(MISSED)).contains(&gone), "{transport}: {gone}");
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

/// Runs a storm in which our server is started again as the load phase begins.
fn restarted(transport: Transport) -> LoadResult {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut server = Some(Server::start(Config::new(any)).unwrap());
    let address = server.as_ref().unwrap().address();
    let scenario = Scenario::Storm { missed: MISSED, payload_bytes: 100, return_over_ms: 0, outage: Outage::Restart };
    let plan = plan(address, transport, CLIENTS, scenario);
    // A quarter of the load is for the server to end and to be there again; a fifth of the warm-up for the last message
    // in it to arrive.
    let plan = Plan { phases: Phases { warm_up_ms: 500, load_ms: 2_000, ..plan.phases.clone() }, ..plan };
    let result = Threads::run(&plan, None, &mut |event| {
        if matches!(event, RunEvent::Phase { phase: Phase::Load, .. }) {
            let ending = server.take().unwrap();
            ending.stop();
            ending.join().unwrap();
            server = Some(Server::start(Config::new(address)).unwrap());
        }
    });
    result.unwrap()
}

/// What was published came to the new process, which has never heard of the clients' cursors: it tells everybody of a gap,
/// and sends what it has.
#[test]
fn whoever_comes_back_to_a_server_without_its_history_is_told_and_comes_when_it_was_asked_to() {
    for transport in Transport::ALL {
        let result = restarted(transport);
        let (clients, missed) = (u64::from(CLIENTS), u64::from(MISSED));
        let errors = &result.errors;
        assert_eq!((result.published, result.unsent), (missed, 0), "{transport} {errors:?}");
        assert_eq!((result.delivered, result.lost), (missed * clients, 0), "{transport} {errors:?}");
        assert_eq!(knowledge(&result), [0, clients, 0, 0], "{transport} {errors:?}");
        assert_eq!((result.back.count(), result.caught_up.count()), (clients, clients), "{transport} {errors:?}");
        assert_eq!(result.connections_cut, 0, "{transport} {errors:?}");
        let told = match transport {
            // An idle connection is just closed: nobody has asked when to come back.
            Transport::Polling => 0..=0,
            // Whose poll is answered as the load begins lets go of the connection before the server can tell: on a busy
            // machine with the last message before it.
            Transport::WebSocketPolling => 0..=clients,
            Transport::LongPolling => 1..=clients,
            _ => clients..=clients,
        };
        assert!(told.contains(&result.told_when), "{transport}: {} {errors:?}", result.told_when);
    }
}
