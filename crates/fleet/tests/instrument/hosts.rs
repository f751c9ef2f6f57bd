//! Clients that share the connections of their host.

use crate::feed_server::{connect, each_text};
use crate::native_server::NativeServer;
use crate::plans::{plan, run, with_prober};
use crate::tls_front::TlsFront;
use pushlab_fleet::Threads;
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::Role;
use pushlab_workload::plan::{HttpVersion, Phases, Plan, ProberPath, Sockets};
use pushlab_workload::scenario::{FeedBy, Scenario};
use std::net::{Ipv4Addr, TcpListener};

const CHAT: Scenario =
    Scenario::Chat { interval_ms: 100, payload_bytes: 71, payload_bytes_max: None, publishers: None, in_bursts: false };
const ONE_BROWSER: Sockets = Sockets {
    http_version: HttpVersion::Http11,
    delayed_acks: false,
    ack_delay_ms: None,
    nagle: false,
    writes_per_event: 1,
    tls: false,
    send_buffer_bytes: None,
    receive_buffer_bytes: None,
    keep_alive: true,
    connections_per_host_max: Some(6),
    clients_per_host: 10,
};

fn in_browsers(server: &NativeServer, transport: Transport, clients: u32, scenario: Scenario) -> Plan {
    Plan { sockets: ONE_BROWSER, ..plan(server.address, transport, clients, scenario) }
}

#[test]
fn the_seventh_stream_of_a_host_never_opens() {
    for transport in [Transport::Sse, Transport::HttpStreaming] {
        let server = NativeServer::start(None);
        let base = in_browsers(&server, transport, 20, Scenario::Idle);
        let phases = Phases { load_ms: 50, ..base.phases.clone() };
        let result = run(&Plan { phases, ..base });
        assert_eq!((result.unsubscribed, result.connect.count()), (8, 12), "{transport}: two hosts of ten");
        assert_eq!((server.peers().len(), result.reconnects), (12, 0), "{transport}");
        assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
    }
}

#[test]
fn posts_starve_behind_six_streams_and_not_behind_five() {
    for (clients, published) in [(6, 0), (5, 15)] {
        let server = NativeServer::start(None);
        let base = in_browsers(&server, Transport::Sse, clients, CHAT);
        let drain_ms = if published == 0 { 100 } else { base.phases.drain_ms };
        let phases = Phases { drain_ms, ..base.phases.clone() };
        let result = run(&Plan { phases, ..base });
        assert_eq!((result.unsubscribed, result.published, result.lost), (0, published, 0), "{:?}", result.errors);
        assert_eq!(result.unsent, if published == 0 { 18 } else { 0 });
        assert_eq!(result.delivered, published * 5);
        assert_eq!((server.peers().len(), result.reconnects), (6, 0), "one is left for all five to post on");
    }
}

#[test]
fn what_starves_beside_a_feed_is_told_and_the_feed_is_whole() {
    let scenario = Scenario::Feed {
        interval_us: 10_000,
        payload_bytes: 71,
        by: FeedBy::Publisher,
        upstream_interval_ms: Some(100),
    };
    for (clients, upstream, unsent) in [(6, 0, 18), (5, 15, 0)] {
        let server = NativeServer::start(None);
        let result = run(&in_browsers(&server, Transport::Sse, clients, scenario.clone()));
        assert_eq!((result.upstream, result.upstream_unsent), (upstream, unsent), "{:?}", result.errors);
        let counts = (result.published, result.unsent, result.delivered, result.lost);
        assert_eq!(counts, (30, 0, 30 * u64::from(clients), 0), "{:?}", result.errors);
    }
}

#[test]
fn what_the_missing_do_not_receive_is_lost() {
    let server = NativeServer::start(None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let back_end = listener.local_addr().unwrap();
    let subject = server.publisher();
    std::thread::spawn(move || {
        each_text(&mut connect(back_end), Role::Client, |text| {
            if !text.starts_with('[') {
                subject("a", text);
            }
            None
        });
    });
    let scenario =
        Scenario::Feed { interval_us: 20_000, payload_bytes: 71, by: FeedBy::BackEnd, upstream_interval_ms: None };
    let base = in_browsers(&server, Transport::Sse, 8, scenario);
    let phases = Phases { drain_ms: 1_000, ..base.phases.clone() };
    let plan = Plan { backend_listen: Some(back_end), phases, ..base };
    let result = Threads::run(&plan, Some(listener), &mut |_| ()).unwrap();
    let counts = (result.unsubscribed, result.published, result.expected, result.delivered, result.lost);
    assert_eq!(counts, (2, 15, 15 * 8, 15 * 6, 15 * 2), "{:?}", result.errors);
    assert_eq!(result.latency_last.count(), 0, "none has reached all");
}

#[test]
fn polls_and_posts_of_a_host_take_turns() {
    for (transport, poll_wait_s) in [(Transport::Polling, 5), (Transport::LongPolling, 1)] {
        for user_list in [false, true] {
            let server = NativeServer::start(None);
            let base = in_browsers(&server, transport, 10, CHAT);
            let result = run(&with_prober(Plan { poll_wait_s, user_list, loops: 3, ..base }, ProberPath::Http));
            let errors = &result.errors;
            assert_eq!((result.unsubscribed, result.connect.count()), (0, 10), "{transport} {errors:?}");
            let counts = (result.published, result.unsent, result.delivered, result.lost);
            assert_eq!(counts, (30, 0, 300, 0), "{transport} {errors:?}");
            assert_eq!((result.duplicated, result.unknown, result.reconnects), (0, 0, 0), "{transport} {errors:?}");
            assert!(errors.is_empty(), "{transport} {errors:?}");
            // The prober is no tab of that browser.
            assert!(server.peers().len() <= 7, "{transport}: {}", server.peers().len());
            assert_eq!(result.requests_publishers, result.requests, "{transport}");
        }
    }
}

#[test]
fn each_request_has_a_connection_of_its_own_where_none_is_kept_alive() {
    for transport in [Transport::Polling, Transport::LongPolling, Transport::Sse] {
        let server = NativeServer::start(None);
        let sockets = Sockets { keep_alive: false, ..Sockets::default() };
        let base = plan(server.address, transport, 10, CHAT);
        let result = run(&Plan { sockets, poll_interval_ms: 50, ..base });
        let counts = (result.unsubscribed, result.published, result.unsent, result.delivered, result.lost);
        assert_eq!(counts, (0, 30, 0, 300, 0), "{transport} {:?}", result.errors);
        assert_eq!((result.duplicated, result.reconnects), (0, 0), "{transport}");
        assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
        // Ten that subscribe and thirty that publish, and those that poll.
        let (opened, polled) = (server.peers().len(), transport != Transport::Sse);
        assert!(opened >= if polled { 60 } else { 40 }, "{transport}: {opened}");
    }
}

#[test]
fn connections_with_tls_are_shared_too() {
    let server = NativeServer::start(None);
    let front = TlsFront::start(server.address, "127.0.0.1");
    let base = in_browsers(&server, Transport::Polling, 10, CHAT);
    let result = run(&Plan { target: front.target(), ..base });
    assert_eq!((result.published, result.delivered, result.lost), (30, 300, 0), "{:?}", result.errors);
    assert!(server.peers().len() <= 6 && result.errors.is_empty(), "{} {:?}", server.peers().len(), result.errors);
}

#[test]
fn a_host_of_one_client_sends_on_the_connection_it_polls_with() {
    let server = NativeServer::start(None);
    let sockets = Sockets { connections_per_host_max: Some(1), clients_per_host: 1, ..ONE_BROWSER };
    let result = run(&Plan { sockets, ..plan(server.address, Transport::Polling, 4, CHAT) });
    assert_eq!((result.published, result.delivered, result.lost), (12, 48, 0), "{:?}", result.errors);
    assert_eq!(server.peers().len(), 4, "in two loops");
}

#[test]
fn a_closed_loop_shares_its_connections() {
    let server = NativeServer::start(None);
    let scenario = Scenario::Request { payload_bytes: 50 };
    let sockets = Sockets { connections_per_host_max: Some(3), ..ONE_BROWSER };
    let base = plan(server.address, Transport::Polling, 10, scenario);
    let result = run(&Plan { sockets, poll_interval_ms: 100, ..base });
    assert!(result.published >= 10 && result.delivered == result.published, "{:?}", result.errors);
    assert!(server.peers().len() <= 3 && result.errors.is_empty(), "{:?}", result.errors);
}

#[test]
fn a_stream_that_is_cut_frees_its_place_and_resumes_without_loss() {
    let server = NativeServer::start(Some(4));
    let sockets = Sockets { connections_per_host_max: Some(3), clients_per_host: 2, ..ONE_BROWSER };
    let scenario = Scenario::Chat {
        interval_ms: 20,
        payload_bytes: 71,
        payload_bytes_max: None,
        publishers: Some(1),
        in_bursts: false,
    };
    let result = run(&Plan { sockets, ..plan(server.address, Transport::Sse, 8, scenario) });
    assert_eq!((result.unsubscribed, result.published, result.lost), (0, 15, 0), "{:?}", result.errors);
    assert!(result.reconnects >= 8 && server.open_max() <= 4 * 3, "{} {}", result.reconnects, server.open_max());
}

#[test]
fn websockets_do_not_count() {
    let server = NativeServer::start(None);
    let result = run(&in_browsers(&server, Transport::WebSocket, 10, CHAT));
    assert_eq!((result.unsubscribed, result.delivered, result.lost), (0, 300, 0), "{:?}", result.errors);
    assert_eq!(server.peers().len(), 10);
}

#[test]
fn a_server_that_refuses_everybody_still_fails_the_run() {
    let base = plan((Ipv4Addr::LOCALHOST, 1).into(), Transport::Sse, 10, Scenario::Idle);
    let phases = Phases { connect_ms: 1_000, ..base.phases.clone() };
    let error = Threads::run(&Plan { sockets: ONE_BROWSER, phases, ..base }, None, &mut |_| ()).unwrap_err();
    assert!(error.to_string().ends_with("; 0 of 10 clients were subscribed after 1000 ms"), "{error}");
}
