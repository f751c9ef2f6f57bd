//! What the clients say of their bytes, against what the server wrote and read.

use crate::native_server::{Asked, NativeServer};
use crate::plans::{plan, with_prober};
use pushlab_fleet::Threads;
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::RunEvent;
use pushlab_workload::plan::{Phase, Phases, Plan, ProberPath};
use pushlab_workload::result::{ByteUses, LoadResult};
use pushlab_workload::scenario::{FeedBy, Scenario};
use std::time::{Duration, Instant};

const DATA: u64 = 71;
const CHAT: Scenario = Scenario::Chat {
    interval_ms: 100,
    payload_bytes: DATA as u32,
    payload_bytes_max: None,
    publishers: None,
    in_bursts: false,
};

/// Whether a request is neither the prober's nor the collector's nor the feeder's.
fn is_clients(asked: &Asked, plan: &Plan) -> bool {
    match asked.what.as_str() {
        _ if asked.channel == "a.feeder" => false,
        "POST /publish" => !plan.scenario.has_feeder(),
        "GET /ws" => asked.channel == "a",
        "POST /echo" => plan.prober.is_none(),
        _ => true,
    }
}

/// Runs a plan to an end at which nothing is under way: polls are no longer answered after the drain.
pub fn run(server: &NativeServer, plan: &Plan) -> LoadResult {
    let phases = Phases { after_ms: 150, ..plan.phases.clone() };
    let plan = Plan { phases, poll_wait_s: 25, ..plan.clone() };
    let mut silence = |event: &RunEvent| {
        if matches!(event, RunEvent::Phase { phase: Phase::After, .. }) {
            server.fall_silent();
        }
    };
    let result = Threads::run(&plan, None, &mut silence).unwrap();
    let is_clients = |asked: &Asked| is_clients(asked, &plan);
    let carried = (result.bytes_whole.up.total(), result.bytes_whole.down.total());
    // The server may not have read the last bytes yet.
    let deadline = Instant::now() + Duration::from_secs(5);
    while server.carried(is_clients) != carried && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(carried, server.carried(is_clients), "up and down over {} {:?}", plan.transport, result.errors);
    let heads: Vec<usize> =
        server.asked().iter().filter(|asked| is_clients(asked)).map(|asked| asked.head.len()).collect();
    let whole = result.bytes_whole;
    assert_eq!((whole.requests, whole.up.heads), (heads.len() as u64, heads.iter().sum::<usize>() as u64));
    let counted = if plan.counts_drain() { result.bytes_received } else { result.bytes_received_in_load };
    assert_eq!(result.bytes_load.down.total(), counted, "{}", plan.transport);
    assert!(result.bytes_load.requests >= result.requests && result.bytes_received >= result.bytes_received_in_load);
    assert!(whole.deliveries >= result.bytes_load.deliveries);
    for (load, whole) in [(result.bytes_load.down, whole.down), (result.bytes_load.up, whole.up)] {
        assert!(load.heads <= whole.heads && load.payload <= whole.payload && load.dialect <= whole.dialect);
    }
    result
}

#[test]
fn every_byte_of_a_chat_is_accounted_for_over_every_transport() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let result = run(&server, &with_prober(plan(server.address, transport, 5, CHAT), ProberPath::SameTransport));
        let (whole, published) = (result.bytes_whole, server.published().len() as u64);
        assert!(published > result.published, "the warm-up counts too");
        assert_eq!(whole.deliveries, published * 5, "{transport}");
        // On a busy machine, what the warm-up published may all come in the load phase.
        let least = if transport.is_interval_driven() { result.arrived } else { result.delivered };
        assert!((least..=whole.deliveries).contains(&result.bytes_load.deliveries), "{transport}");
        assert_eq!((whole.up.payload, whole.down.payload), (published * DATA, published * 5 * DATA), "{transport}");
        assert!(whole.down.dialect > 0 && whole.down.heads > 0, "{transport}");
        assert_eq!(whole.up.framing > 0, transport.is_bidirectional(), "{transport}");
        if transport == Transport::WebSocket {
            // `["pub","a",` and `]`; frames of less than 126 bytes.
            let up =
                ByteUses { payload: published * DATA, dialect: published * 12, framing: published * 6, ..whole.up };
            assert_eq!(whole.up, up);
            assert_eq!(whole.down.framing, 2 * (published * 5 + 5), "a cursor for each client first");
        }
    }
}

#[test]
fn so_are_echoes_questions_and_what_the_collector_sees() {
    let echo = Scenario::Echo { interval_ms: 30, payload_bytes: 22, streamed: false };
    let request = Scenario::Request { payload_bytes: 50 };
    let upstream = Scenario::Upstream { interval_ms: 30, payload_bytes: 200 };
    for transport in [Transport::WebSocket, Transport::LongPolling, Transport::WebSocketPolling] {
        for (scenario, size) in [(echo.clone(), 22), (request.clone(), 50), (upstream.clone(), 200)] {
            let server = NativeServer::start(None);
            let is_upstream = matches!(scenario, Scenario::Upstream { .. });
            let result = run(&server, &plan(server.address, transport, 3, scenario));
            let (up, down) = (result.bytes_whole.up.payload, result.bytes_whole.down.payload);
            assert!(up > 0 && up % size == 0, "{transport} {up}");
            assert_eq!(down, if is_upstream { 0 } else { up }, "{transport}");
        }
    }
}

#[test]
fn what_a_feeder_sends_is_no_clients() {
    let feed =
        Scenario::Feed { interval_us: 20_000, payload_bytes: 100, by: FeedBy::Publisher, upstream_interval_ms: None };
    for transport in Transport::ALL {
        for scenario in [feed.clone(), Scenario::FanOut { publishers: 2, payload_bytes: 100 }] {
            let server = NativeServer::start(None);
            let result = run(&server, &plan(server.address, transport, 3, scenario));
            let (up, down) = (result.bytes_whole.up.payload, result.bytes_whole.down.payload);
            assert_eq!((up, down), (0, server.published().len() as u64 * 3 * 100), "{transport}");
            assert_eq!(result.requests_publishers, 0, "{transport}");
        }
    }
}

#[test]
fn lists_of_users_are_dialect_and_cut_streams_add_up() {
    let server = NativeServer::start(None);
    let result = run(&server, &Plan { user_list: true, ..plan(server.address, Transport::Polling, 3, CHAT) });
    let lists = server.asked().iter().filter(|asked| asked.channel == "a.users").count() as u64;
    assert!(lists > 10);
    assert_eq!(result.bytes_whole.down.payload, result.bytes_whole.deliveries * DATA);
    for transport in [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming] {
        let server = NativeServer::start(Some(7));
        let result = run(&server, &plan(server.address, transport, 5, CHAT));
        assert!(result.reconnects > 0, "{transport}");
    }
}
