//! Clients that ask for compression, through the real loop.

use crate::bytes;
use crate::native_server::NativeServer;
use crate::plans::{plan, run};
use pushlab_server::{Config, Server};
use pushlab_wire::transport::Transport;
use pushlab_workload::payload::Content;
use pushlab_workload::plan::{HttpVersion, Phases, Plan, Sockets};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;
use std::net::SocketAddr;

const DATA: u64 = 600;
const CLIENTS: u32 = 3;
const CHAT: Scenario = Scenario::Chat {
    interval_ms: 100,
    payload_bytes: DATA as u32,
    payload_bytes_max: None,
    publishers: None,
    in_bursts: false,
};
const AGREEMENTS: [&str; 2] = [
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    "permessage-deflate; client_max_window_bits=12",
];

fn compressed(address: SocketAddr, transport: Transport) -> Plan {
    Plan { compression_from: Some(100), content: Content::Json, ..plan(address, transport, CLIENTS, CHAT) }
}

fn is_whole(result: &LoadResult, of: &str) {
    let wrong = result.duplicated + result.reordered + result.unknown + result.gaps + result.lost;
    assert!(result.errors.is_empty() && result.published > 0, "{of}: {:?}", result.errors);
    assert_eq!((result.delivered, wrong), (result.published * u64::from(CLIENTS), 0), "{of}");
}

#[test]
fn what_a_server_compresses_is_delivered_and_every_byte_accounted_for() {
    for (transport, agreement) in Transport::ALL.into_iter().flat_map(|one| AGREEMENTS.map(|other| (one, other))) {
        let server = NativeServer::compressing(agreement);
        // Where it fits what was counted with what the server carried.
        let result = bytes::run(&server, &compressed(server.address, transport));
        let of = format!("{transport} {agreement}");
        is_whole(&result, &of);
        assert_eq!(result.delivered_compressed, result.delivered, "{of}");
        let (whole, published) = (result.bytes_whole, server.published().len() as u64);
        // Of a delivery, what was sent of its data.
        assert!(whole.down.payload > 0 && whole.down.payload < whole.deliveries * DATA * 9 / 10, "{of}: {whole:?}");
        if transport.is_bidirectional() {
            assert_eq!(server.compressed() as u64, published, "{of}");
            assert!(whole.up.payload < published * DATA * 9 / 10, "{of}: {whole:?}");
        } else {
            assert_eq!(whole.up.payload, published * DATA, "{of}: POSTs are as they are");
        }
    }
}

#[test]
fn a_server_that_does_not_compress_is_measured_as_it_is() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let result = bytes::run(&server, &compressed(server.address, transport));
        is_whole(&result, transport.name());
        assert_eq!((result.delivered_compressed, server.compressed()), (0, 0), "{transport}");
        assert_eq!(result.bytes_whole.down.payload, result.bytes_whole.deliveries * DATA, "{transport}");
    }
}

#[test]
fn who_asks_for_nothing_is_answered_as_ever() {
    for transport in Transport::ALL {
        let server = NativeServer::compressing(AGREEMENTS[0]);
        let plan = Plan { compression_from: None, ..compressed(server.address, transport) };
        let result = bytes::run(&server, &plan);
        is_whole(&result, transport.name());
        assert_eq!((result.delivered_compressed, server.compressed()), (0, 0), "{transport}");
        let asked = server.asked();
        let offers = asked.iter().filter(|asked| asked.head.contains("Extensions") || asked.head.contains("gzip"));
        assert_eq!(offers.count(), 0, "{transport}");
    }
}

#[test]
fn messages_below_the_minimum_are_left_as_they_are() {
    let server = NativeServer::compressing(AGREEMENTS[0]);
    let plan = Plan { compression_from: Some(2_000), ..compressed(server.address, Transport::WebSocket) };
    let result = bytes::run(&server, &plan);
    is_whole(&result, "websocket");
    assert_eq!((result.delivered_compressed, server.compressed()), (result.delivered, 0), "the server has its own");
}

#[test]
fn an_agreement_that_may_not_be_ends_the_connection() {
    let server = NativeServer::compressing("permessage-deflate; server_no_context_takeover; window=huge");
    let phases = Phases { connect_ms: 2_000, warm_up_ms: 0, idle_ms: 0, load_ms: 10, drain_ms: 10, after_ms: 0 };
    let plan = Plan { phases, ..compressed(server.address, Transport::WebSocket) };
    let outcome = pushlab_fleet::Threads::run(&plan, None, &mut |_| ());
    let said = outcome.map_or_else(|error| error.to_string(), |result| format!("{:?}", result.errors));
    assert!(said.contains("window=huge") && said.contains("unknown parameter"), "{said}");
}

/// Our own server compresses each message once for everybody.
#[test]
fn our_server_and_its_clients_compress_over_both_versions_of_http() {
    let versions = [HttpVersion::Http11, HttpVersion::Http2];
    for (transport, http_version) in Transport::ALL.into_iter().flat_map(|one| versions.map(|version| (one, version))) {
        let address = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(Config { compression_from: Some(100), ..Config::new(address) }).unwrap();
        let shared_by = if http_version == HttpVersion::Http2 { CLIENTS } else { 1 };
        let sockets = Sockets { http_version, clients_per_host: shared_by, ..Sockets::default() };
        let plan = Plan { sockets, ..compressed(server.address(), transport) };
        let result = run(&plan);
        let of = format!("{transport} {http_version:?}");
        is_whole(&result, &of);
        assert_eq!(result.delivered_compressed, result.delivered, "{of}");
        let (whole, is_small) = (result.bytes_whole, |payload, messages| payload < messages * DATA * 9 / 10);
        let published = whole.deliveries / u64::from(CLIENTS);
        assert!(whole.down.payload > 0 && is_small(whole.down.payload, whole.deliveries), "{of}: {whole:?}");
        assert_eq!(is_small(whole.up.payload, published), transport.is_bidirectional(), "{of}: {whole:?}");
    }
}

#[test]
fn what_only_the_collector_receives_comes_compressed_too() {
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(Config { compression_from: Some(100), ..Config::new(address) }).unwrap();
    for transport in [Transport::WebSocket, Transport::LongPolling] {
        let scenario = Scenario::Upstream { interval_ms: 50, payload_bytes: DATA as u32 };
        let result = run(&Plan { scenario, ..compressed(server.address(), transport) });
        assert!(result.errors.is_empty() && result.published > 0, "{:?}", result.errors);
        assert_eq!((result.delivered, result.delivered_compressed), (result.published, result.published));
    }
}
