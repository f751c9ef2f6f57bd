//! Scenarios in which clients send, over every transport.

use crate::native_server::NativeServer;
use crate::plans::{NO_TIME, plan, run, with_prober};
use pushlab_load::plan::{Phases, Plan, ProberPath, Scenario, WorkerEvent, WorkerResult};
use pushlab_load::worker::{WorkerError, serve};
use pushlab_wire::transport::Transport;
use std::net::TcpListener;

const CHAT: Scenario =
    Scenario::Chat { interval_ms: 100, payload_bytes: 71, payload_bytes_max: None, publishers: None };

fn assert_whole(result: &WorkerResult, scheduled: u64, receivers: u64, what: impl std::fmt::Display) {
    let errors = &result.errors;
    assert_eq!((result.scheduled, result.published, result.unsent), (scheduled, scheduled, 0), "{what} {errors:?}");
    let counts = (result.expected, result.delivered, result.lost);
    assert_eq!(counts, (scheduled * receivers, scheduled * receivers, 0), "{what} {errors:?}");
    assert_eq!((result.duplicated, result.reordered, result.unknown), (0, 0, 0), "{what} {errors:?}");
    assert_eq!(result.latency.count(), result.delivered, "{what}");
    assert_eq!(result.lateness.count(), scheduled, "{what}");
}

#[test]
fn a_chat_is_whole_over_every_transport() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let result = run(&with_prober(plan(server.address, transport, 5, CHAT), ProberPath::SameTransport));
        assert_whole(&result, 15, 5, transport);
        assert_eq!(result.latency_last.count(), 15, "{transport}");
        assert_eq!(result.response_load.count(), 30, "{transport}");
        assert_eq!((result.reconnects, result.connect.count()), (0, 5), "{transport}");
        assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
        assert_eq!(result.requests > 0, !transport.is_bidirectional(), "{transport}");
    }
}

#[test]
fn a_cut_connection_resumes_without_loss() {
    for transport in [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming] {
        let server = NativeServer::start(Some(7));
        let result = run(&plan(server.address, transport, 5, CHAT));
        assert_whole(&result, 15, 5, transport);
        assert!(result.reconnects >= 5, "{transport} {}", result.reconnects);
        assert!(result.errors.iter().map(|error| error.count).sum::<u64>() >= 5, "{transport} {:?}", result.errors);
    }
}

#[test]
fn an_echo_comes_back_to_its_sender() {
    for transport in [Transport::WebSocket, Transport::Sse] {
        let server = NativeServer::start(None);
        let scenario = Scenario::Echo { interval_ms: 30, payload_bytes: 22 };
        let result = run(&with_prober(plan(server.address, transport, 5, scenario), ProberPath::Http));
        assert_whole(&result, 50, 1, transport);
        assert_eq!(result.latency_first.count(), 0);
    }
}

#[test]
fn a_closed_loop_answers_each_request_once() {
    for transport in [Transport::WebSocket, Transport::LongPolling] {
        let server = NativeServer::start(None);
        let result = run(&plan(server.address, transport, 3, Scenario::Request { payload_bytes: 50 }));
        assert!(result.published >= 3, "{transport}");
        assert_whole(&result, result.published, 1, transport);
    }
}

#[test]
fn the_collector_gets_what_goes_up() {
    for transport in [Transport::WebSocketPolling, Transport::HttpStreaming] {
        let server = NativeServer::start(None);
        let scenario = Scenario::Upstream { interval_ms: 30, payload_bytes: 100 };
        let result = run(&plan(server.address, transport, 5, scenario));
        assert_whole(&result, 50, 1, transport);
        assert_eq!(result.connect.count(), 5, "the collector is no client");
    }
}

#[test]
fn the_worker_speaks_lines_of_json() {
    let server = NativeServer::start(None);
    let base = plan(server.address, Transport::WebSocket, 2, Scenario::Idle);
    let plan = Plan { phases: Phases { idle_ms: 1_050, ..NO_TIME }, ..base };
    let mut output = Vec::new();
    let input = serde_json::to_string(&plan).unwrap() + "\nwhatever follows";
    assert!(serve(input.as_bytes(), &mut output).unwrap());
    let lines = String::from_utf8(output).unwrap();
    let events: Vec<WorkerEvent> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let phases = events.iter().filter(|event| matches!(event, WorkerEvent::Phase { .. })).count();
    assert_eq!(phases, 6);
    assert!(events.iter().any(|event| matches!(event, WorkerEvent::Progress(progress) if progress.connected == 2)));
    assert!(matches!(events.last(), Some(WorkerEvent::Done { .. })));

    let mut output = Vec::new();
    assert!(!serve("{}".as_bytes(), &mut output).unwrap());
    assert!(String::from_utf8(output).unwrap().contains("\"event\":\"failed\""));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let base = plan(gone, Transport::Sse, 3, Scenario::Idle);
    let plan = Plan { phases: Phases { connect_ms: 100, ..NO_TIME }, ..base };
    let error = pushlab_load::worker::run(&plan, &mut |_| ()).unwrap_err();
    assert!(matches!(error, WorkerError::NotConnected { connected: 0, clients: 3, .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}
