//! How connections are set: TLS, where instruments come from, where the back end listens.

use crate::native_server::NativeServer;
use crate::plans::{PINGS, plan, run, with_prober};
use crate::tls_front::TlsFront;
use pushlab_fleet::{RunError, Threads};
use pushlab_load::dial::Dialler;
use pushlab_load::socket::Read;
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::LoadError;
use pushlab_workload::plan::{Phases, Plan, ProberPath, Sockets, Sources, Target, TlsTarget, Trust};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{FeedBy, Scenario};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const CHAT: Scenario = Scenario::Chat {
    interval_ms: 100,
    payload_bytes: 871,
    payload_bytes_max: None,
    publishers: None,
    in_bursts: false,
};

fn over_tls(front: &TlsFront, transport: Transport, scenario: Scenario) -> Plan {
    Plan { target: front.target(), ..plan(front.address, transport, 5, scenario) }
}

fn assert_whole(result: &LoadResult, transport: Transport) {
    let errors = &result.errors;
    assert_eq!(
        (result.published, result.unsent, result.delivered, result.lost),
        (15, 0, 75, 0),
        "{transport} {errors:?}"
    );
    assert_eq!((result.duplicated, result.reordered, result.unknown), (0, 0, 0), "{transport}");
    assert!(errors.is_empty() && result.reconnects == 0, "{transport} {errors:?}");
}

#[test]
fn a_chat_is_whole_over_tls_however_its_records_are_cut() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let front = TlsFront::start(server.address, "127.0.0.1");
        let result = run(&with_prober(over_tls(&front, transport, CHAT), ProberPath::SameTransport));
        assert_whole(&result, transport);
        assert_eq!(result.response_load.count(), PINGS, "{transport}");
    }
}

#[test]
fn browsers_come_from_an_origin_with_tls() {
    let server = NativeServer::start(None);
    let front = TlsFront::start(server.address, "127.0.0.1");
    let headers = pushlab_workload::plan::RequestHeaders::Browser;
    let result = run(&Plan { headers, ..over_tls(&front, Transport::LongPolling, CHAT) });
    assert_whole(&result, Transport::LongPolling);
    let origin = format!("Referer: https://{}/\r\n", front.address);
    assert!(server.asked().iter().all(|asked| asked.head.contains(&origin)), "{origin}");
}

/// The bytes that TLS adds, on both sides of one connection.
#[test]
fn what_tls_adds_is_counted() {
    let server = NativeServer::start(None);
    let front = TlsFront::start(server.address, "127.0.0.1");
    let mut connection = Dialler::of(&over_tls(&front, Transport::Sse, CHAT)).unwrap().dial(None).unwrap();
    let body = "x".repeat(70_000);
    let request = format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    assert_eq!(connection.offer(request.as_bytes()).unwrap(), 0, "not before the handshake");
    assert_eq!(connection.send(request.as_bytes()).unwrap(), request.len());
    let (mut added, mut buffer, mut heard) = ([0; 2], vec![0; 3_000], Vec::new());
    let mut stands = 0;
    let deadline = Instant::now() + Duration::from_secs(20);
    while heard.len() < body.len() {
        assert!(Instant::now() < deadline, "{} bytes", heard.len());
        connection.flush().unwrap();
        match connection.read(&mut buffer).unwrap() {
            Read::Bytes { held, .. } => heard.extend_from_slice(&buffer[..held]),
            Read::Established => stands += 1,
            Read::Blocked => std::thread::yield_now(),
            Read::Closed => panic!("closed after {} bytes", heard.len()),
        }
        let bytes = connection.tls_bytes();
        added = [added[0] + bytes.read, added[1] + bytes.written];
    }
    while heard.len() < body.len() + "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n".len() {
        if let Read::Bytes { held, .. } = connection.read(&mut buffer).unwrap() {
            heard.extend_from_slice(&buffer[..held]);
        }
    }
    let bytes = connection.tls_bytes();
    added = [added[0] + bytes.read, added[1] + bytes.written];
    assert!(heard.ends_with(body.as_bytes()) && stands == 1 && !connection.is_handshaking());
    while front.overhead().map(|bytes| bytes as i64) != added {
        assert!(Instant::now() < deadline, "{:?} and {added:?}", front.overhead());
        std::thread::yield_now();
    }
    assert!(added[0] > 350 * 22 && added[1] > 5 * 22, "a record adds at least 22 bytes: {added:?}");
}

#[test]
fn the_bytes_of_tls_are_among_the_clients() {
    for transport in [Transport::WebSocket, Transport::Sse] {
        let server = NativeServer::start(None);
        let front = TlsFront::start(server.address, "127.0.0.1");
        let base = over_tls(&front, transport, CHAT);
        let phases = Phases { after_ms: 150, ..base.phases.clone() };
        let result = run(&Plan { phases, ..base });
        assert_whole(&result, transport);
        let (whole, load) = (result.bytes_whole, result.bytes_load);
        let carried = || [0, 1].map(|way| front.bytes[way][0].load(std::sync::atomic::Ordering::Relaxed));
        let deadline = Instant::now() + Duration::from_secs(20);
        while carried() != [whole.down.total(), whole.up.total()] {
            assert!(Instant::now() < deadline, "{transport}: {:?} and {whole:?}", carried());
            std::thread::yield_now();
        }
        assert_eq!(front.overhead(), [whole.down.tls, whole.up.tls], "{transport}");
        assert!(0 < load.down.tls && load.down.tls < whole.down.tls, "{transport}: {load:?}");
        assert!(0 < load.up.tls && load.up.tls < whole.up.tls, "{transport}: {load:?}");
    }
}

fn refused(plan: &Plan) -> String {
    let phases = Phases { connect_ms: 1_000, ..plan.phases.clone() };
    Threads::run(&Plan { phases, ..plan.clone() }, None, &mut |_| ()).unwrap_err().to_string()
}

#[test]
fn a_certificate_that_is_not_the_runs_is_refused() {
    let server = NativeServer::start(None);
    let [front, stranger] = ["127.0.0.1", "127.0.0.1"].map(|name| TlsFront::start(server.address, name));
    let plan = over_tls(&front, Transport::Sse, Scenario::Idle);
    let error = refused(&Plan { target: Target { address: stranger.address, ..front.target() }, ..plan.clone() });
    assert!(error.contains("the subject's certificate is not the one that was made for it"), "{error}");
    let misnamed = TlsFront::start(server.address, "127.0.0.2");
    let error = refused(&over_tls(&misnamed, Transport::WebSocket, Scenario::Idle));
    assert!(error.contains("certificate is for another name") && error.contains("127.0.0.1"), "{error}");
    let as_known = |server_name: &str, trust| {
        let tls = Some(TlsTarget { server_name: server_name.to_owned(), trust });
        refused(&Plan { target: Target { tls, ..front.target() }, ..plan.clone() })
    };
    let error = as_known("127.0.0.1", Trust::Certificate("/no/such.pem".to_owned()));
    assert!(error.contains("is \"/no/such.pem\": it must be the text of a certificate"), "{error}");
    let error = as_known("no name", Trust::System);
    assert!(error.contains("no certificate can name \"no name\""), "{error}");
    // Of a system without any authority too.
    let error = as_known("127.0.0.1", Trust::System);
    assert!(error.contains("name the PEM file of its authority in SSL_CERT_FILE"), "{error}");
}

/// Set for the same test in a process of its own, whose authorities the environment names: where it goes.
const FRONT: &str = "PUSHLAB_TEST_FRONT";

#[test]
fn a_subject_that_others_run_is_known_by_the_systems_authorities() {
    if let Ok(front) = std::env::var(FRONT) {
        return reach_as_others_do(front.parse().unwrap());
    }
    let server = NativeServer::start(None);
    let front = TlsFront::start(server.address, "localhost");
    let test = "sockets::a_subject_that_others_run_is_known_by_the_systems_authorities";
    for authorities in [front.certificate.as_path(), Path::new("/no/such.pem")] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", test]).env(FRONT, front.address.to_string()).env("SSL_CERT_FILE", authorities);
        let output = child.env_remove("SSL_CERT_DIR").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let published = server.published().len();
    assert!((15..25).contains(&published), "{published}: one run alone, warm-up included");
}

fn reach_as_others_do(address: SocketAddr) {
    let named = |server_name: &str| {
        let tls = Some(TlsTarget { server_name: server_name.to_owned(), trust: Trust::System });
        let target = Target { tls, authority: "localhost:8443".to_owned(), ..Target::plain(address) };
        Plan { target, ..plan(address, Transport::WebSocket, 5, CHAT) }
    };
    if std::env::var("SSL_CERT_FILE").unwrap() == "/no/such.pem" {
        let error = refused(&named("localhost"));
        assert!(error.contains("has no trusted certificate authorities") && error.contains("/no/such.pem"), "{error}");
        return;
    }
    assert_whole(&run(&named("localhost")), Transport::WebSocket);
    let error = refused(&named("example.org"));
    assert!(error.contains("certificate is for another name") && error.contains("example.org"), "{error}");
}

#[test]
fn the_handshake_asks_for_a_host_and_not_for_an_address() {
    for (name, asked_for) in [("localhost", Some("localhost")), ("127.0.0.1", None)] {
        let server = NativeServer::start(None);
        let front = TlsFront::start(server.address, name);
        let tls = front.target().tls.map(|tls| TlsTarget { server_name: name.to_owned(), ..tls });
        let target = Target { tls, ..front.target() };
        assert_whole(&run(&Plan { target, ..plan(front.address, Transport::Sse, 5, CHAT) }), Transport::Sse);
        let deadline = Instant::now() + Duration::from_secs(20);
        while front.asked_for.lock().unwrap().len() < 5 {
            assert!(Instant::now() < deadline, "{:?}", front.asked_for);
            std::thread::yield_now();
        }
        assert!(front.asked_for.lock().unwrap().iter().all(|host| host.as_deref() == asked_for), "{asked_for:?}");
    }
}

#[test]
fn requests_call_the_subject_by_its_name_and_stay_below_its_path() {
    let upstream = Scenario::Upstream { interval_ms: 30, payload_bytes: 100 };
    let feed =
        Scenario::Feed { interval_us: 20_000, payload_bytes: 100, by: FeedBy::Publisher, upstream_interval_ms: None };
    for transport in Transport::ALL {
        for scenario in [CHAT, upstream.clone(), feed.clone()] {
            let server = NativeServer::below("/push");
            let base = with_prober(plan(server.address, transport, 5, scenario.clone()), ProberPath::SameTransport);
            let (authority, path) = ("example.org:8443".to_owned(), "/push".to_owned());
            let target = Target { authority, path, ..base.target.clone() };
            let result = run(&Plan { target, user_list: transport == Transport::Polling, ..base });
            assert!(result.delivered > 0 && result.lost == 0, "{transport} {scenario:?} {:?}", result.errors);
            assert!(result.errors.is_empty(), "{transport} {scenario:?} {:?}", result.errors);
            let asked = server.asked();
            let is_ours = |head: &str| head.contains(" /push/") && head.contains("Host: example.org:8443\r\n");
            assert!(asked.iter().all(|asked| is_ours(&asked.head)), "{transport} {scenario:?}: {asked:?}");
        }
    }
}

#[test]
fn clients_come_from_the_addresses_of_the_plan() {
    let server = NativeServer::start(None);
    let base = with_prober(plan(server.address, Transport::Sse, 5, CHAT), ProberPath::Http);
    let sources = Sources::From { first: Ipv4Addr::new(127, 4, 5, 255), clients_each: 2 };
    let instruments_from = Some(Ipv4Addr::new(127, 4, 5, 6));
    assert_whole(&run(&Plan { sources, instruments_from, ..base }), Transport::Sse);
    let mut peers = BTreeMap::new();
    server.peers().iter().for_each(|peer| *peers.entry(peer.ip().to_string()).or_insert(0) += 1);
    let expected = [("127.4.5.255", 4), ("127.4.5.6", 1), ("127.4.6.0", 4), ("127.4.6.1", 2)];
    assert_eq!(peers, expected.map(|(ip, count)| (ip.to_owned(), count)).into());
}

#[test]
fn a_subject_without_tls_is_said_to_have_none() {
    for answer in [&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], b""] {
        let server = NativeServer::start(None);
        let front = TlsFront::start(server.address, "127.0.0.1");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                use std::io::{Read as _, Write as _};
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 2048]);
                let _ = stream.write_all(answer);
            }
        });
        let target = Target { address: target, ..front.target() };
        let error = refused(&Plan { target, ..over_tls(&front, Transport::LongPolling, Scenario::Idle) });
        let expected = if answer.is_empty() { "does it speak TLS?" } else { "does not speak it" };
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn instruments_come_from_their_own_address() {
    let server = NativeServer::start(None);
    let scenario = Scenario::Upstream { interval_ms: 30, payload_bytes: 100 };
    let base = with_prober(plan(server.address, Transport::Sse, 3, scenario), ProberPath::Http);
    let from = Ipv4Addr::new(127, 4, 5, 6);
    run(&Plan { instruments_from: Some(from), ..base.clone() });
    let instruments = server.peers().iter().filter(|peer| peer.ip() == IpAddr::V4(from)).count();
    assert_eq!((instruments, server.peers().len()), (2, 2 + 3 + 3), "the prober and the collector alone");
    let target = Target::plain((std::net::Ipv6Addr::LOCALHOST, 1).into());
    let error = refused(&Plan { target, instruments_from: Some(from), ..base });
    assert!(error.contains("127.4.5.6 cannot reach [::1]:1"), "{error}");
}

#[test]
fn a_send_buffer_of_nothing_is_refused() {
    let base = plan(SocketAddr::from(([127, 0, 0, 1], 1)), Transport::Sse, 3, Scenario::Idle);
    let sockets = Sockets { send_buffer_bytes: Some(0), ..Sockets::default() };
    let error = refused(&Plan { sockets, ..base });
    assert!(error.contains("sockets.send_buffer_bytes is 0"), "{error}");
}

#[test]
fn the_back_end_listens_where_it_is_told_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let base = plan(
        SocketAddr::from(([127, 0, 0, 1], 1)),
        Transport::WebSocket,
        2,
        Scenario::Feed { interval_us: 5_000, payload_bytes: 50, by: FeedBy::BackEnd, upstream_interval_ms: None },
    );
    let phases = Phases { connect_ms: 200, ..base.phases.clone() };
    let base = Plan { backend_listen: Some(address), phases, ..base };
    let with = |descriptor| Plan { backend_descriptor: Some(descriptor), ..base.clone() };
    // Bound, not open, and of something else.
    for wrong in [-1, 1_000_000, TcpListener::bind("127.0.0.1:0").unwrap().as_raw_fd()] {
        let error = Threads::run(&with(wrong), None, &mut |_| ()).unwrap_err();
        assert!(
            matches!(error, RunError::Load(LoadError::Worker { .. })) && error.to_string().contains("not given"),
            "{error}"
        );
    }
    let subject = TcpStream::connect(address).unwrap();
    let error = Threads::run(&with(listener.as_raw_fd()), None, &mut |_| ()).unwrap_err();
    assert!(
        matches!(error, RunError::Load(LoadError::Worker { .. })),
        "it waits there for somebody who says more: {error}"
    );
    drop(subject);
}
