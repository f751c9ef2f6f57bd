//! How connections are set: TLS, where instruments come from, where the back end listens.

use crate::native_server::NativeServer;
use crate::plans::{plan, run, with_prober};
use crate::tls_front::TlsFront;
use pushlab_load::dial::Dialler;
use pushlab_load::fleet::{RunError, Threads};
use pushlab_load::socket::Read;
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::LoadError;
use pushlab_workload::plan::{Phases, Plan, ProberPath, Sockets};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{FeedBy, Scenario};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const CHAT: Scenario =
    Scenario::Chat { interval_ms: 100, payload_bytes: 871, payload_bytes_max: None, publishers: None };

fn over_tls(front: &TlsFront, transport: Transport, scenario: Scenario) -> Plan {
    let sockets = Sockets { tls: true, ..Sockets::default() };
    let certificate = Some(front.certificate.clone());
    Plan { sockets, certificate, ..plan(front.address, transport, 5, scenario) }
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
        assert_eq!(result.response_load.count(), 30, "{transport}");
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
            Read::Stands => stands += 1,
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
    let error = refused(&Plan { target: stranger.address, ..plan.clone() });
    assert!(error.contains("the subject's certificate is not the one that was made for it"), "{error}");
    let misnamed = TlsFront::start(server.address, "127.0.0.2");
    let error = refused(&over_tls(&misnamed, Transport::WebSocket, Scenario::Idle));
    assert!(error.contains("certificate is not the one"), "{error}");
    let error = refused(&Plan { certificate: None, ..plan.clone() });
    assert!(error.contains("name the PEM file"), "{error}");
    let error = refused(&Plan { certificate: Some(PathBuf::from("/no/such.pem")), ..plan });
    assert!(error.contains("/no/such.pem cannot be read"), "{error}");
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
    let target = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 1));
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
        free_port(),
        Transport::WebSocket,
        2,
        Scenario::Feed { interval_us: 5_000, payload_bytes: 50, by: FeedBy::BackEnd },
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

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
