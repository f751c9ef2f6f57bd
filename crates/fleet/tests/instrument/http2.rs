//! Clients over HTTP/2, through the real loop, against our own server.

use crate::plans::{plan, run, with_prober};
use pushlab_fleet::Threads;
use pushlab_server::{Config, Limits, Server, TlsFiles};
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::RunEvent;
use pushlab_workload::plan::{HttpVersion, Phase, Phases, Plan, ProberPath, Sockets, Target, TlsTarget, Trust};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{FeedBy, Scenario};
use rcgen::generate_simple_self_signed;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CHAT: Scenario = Scenario::Chat {
    interval_ms: 50,
    payload_bytes: 71,
    payload_bytes_max: None,
    publishers: Some(4),
    in_bursts: false,
};

/// Our server, with the certificate that its clients are to trust, if it speaks TLS.
struct Subject {
    server: Server,
    files: Option<TlsFiles>,
}

impl Subject {
    fn start(has_tls: bool, limits: Limits) -> Self {
        let files = has_tls.then(certificate);
        let address = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(Config { limits, tls: files.clone(), ..Config::new(address) }).unwrap();
        Self { server, files }
    }

    /// It, at an address that leads to it.
    fn target(&self, address: SocketAddr) -> Target {
        let tls = self.files.as_ref().map(|files| TlsTarget {
            server_name: "127.0.0.1".to_owned(),
            trust: Trust::Certificate(std::fs::read_to_string(&files.certificate).unwrap()),
        });
        Target { tls, ..Target::plain(address) }
    }
}

fn certificate() -> TlsFiles {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let made = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let name = |kind| -> PathBuf {
        let number = NUMBER.fetch_add(1, SeqCst);
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("http2-{}-{number}.{kind}", std::process::id()))
    };
    let (certificate, key) = (name("pem"), name("key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    TlsFiles { certificate, key }
}

/// Stands between the clients and a server, and counts what it carries.
struct Front {
    address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    /// From the clients, and to them.
    bytes: Arc<[AtomicU64; 2]>,
}

impl Front {
    fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = Self {
            address: listener.local_addr().unwrap(),
            server: Arc::new(Mutex::new(server)),
            connections: Arc::default(),
            bytes: Arc::default(),
        };
        let (server, connections, bytes) =
            (Arc::clone(&front.server), Arc::clone(&front.connections), Arc::clone(&front.bytes));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                connections.lock().unwrap().push(client.try_clone().unwrap());
                let Ok(back) = TcpStream::connect(*server.lock().unwrap()) else { continue };
                let ends = [(client.try_clone().unwrap(), back.try_clone().unwrap()), (back, client)];
                for (way, (from, to)) in ends.into_iter().enumerate() {
                    let bytes = Arc::clone(&bytes);
                    std::thread::spawn(move || carry(from, to, &bytes[way]));
                }
            }
        });
        front
    }

    fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    fn carried(&self) -> (u64, u64) {
        (self.bytes[0].load(SeqCst), self.bytes[1].load(SeqCst))
    }

    /// Cuts all connections that there are.
    fn cut(&self) {
        self.connections.lock().unwrap().iter().for_each(|client| drop(client.shutdown(Shutdown::Both)));
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, bytes: &AtomicU64) {
    to.set_nodelay(true).unwrap();
    let (mut rng, mut buffer) = (fastrand::Rng::new(), [0; 9000]);
    loop {
        // Frames come in pieces of any size.
        let most = rng.usize(1..=buffer.len());
        let size = from.read(&mut buffer[..most]).unwrap_or(0);
        bytes.fetch_add(size as u64, SeqCst);
        if size == 0 || to.write_all(&buffer[..size]).is_err() {
            // What comes the other way goes on.
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
    }
}

fn over_http2(plan: Plan, clients_per_host: u32) -> Plan {
    let phases = Phases { after_ms: 100, ..plan.phases.clone() };
    let sockets = Sockets { http_version: HttpVersion::Http2, clients_per_host, ..Sockets::default() };
    Plan { sockets, phases, ..plan }
}

/// Streams enough for a hundred clients that receive and post.
fn many_streams() -> Limits {
    Limits { max_streams_per_connection: 250, ..Limits::default() }
}

fn is_whole(transport: Transport, result: &LoadResult, clients: u32) {
    let wrong = result.duplicated + result.reordered + result.unknown + result.gaps;
    assert!(result.published > 0, "{transport} {:?}", result.errors);
    assert_eq!(
        (result.delivered, wrong),
        (result.published * u64::from(clients), 0),
        "{transport} {:?}",
        result.errors
    );
}

fn every_transport(has_tls: bool, shared_by: u32) {
    let clients = if shared_by < 100 { shared_by.max(3) * 2 } else { shared_by };
    for transport in Transport::ALL {
        let subject = Subject::start(has_tls, many_streams());
        let front = Front::start(subject.server.address());
        let plan = Plan {
            target: subject.target(front.address),
            ..over_http2(plan(front.address, transport, clients, CHAT), shared_by)
        };
        let result = run(&plan);
        assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
        is_whole(transport, &result, clients);
        assert_eq!((front.connections() as u32, result.reconnects), (clients.div_ceil(shared_by), 0), "{transport}");
        let whole = result.bytes_whole;
        let deadline = Instant::now() + Duration::from_secs(5);
        while front.carried() != (whole.up.total(), whole.down.total()) {
            let uses = (whole.up, whole.down);
            assert!(Instant::now() < deadline, "{transport} {:?} {uses:?}", front.carried());
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(whole.down.payload, whole.deliveries * 71, "{transport}");
        for way in [whole.up, whole.down] {
            assert!(way.http2_frames > 0 && way.heads > 0, "{transport} {way:?}");
            assert_eq!(way.tls > 0, has_tls, "{transport}");
        }
        // What is framed is what a WebSocket or a stream of events frames: no frame of HTTP/2 is among it.
        assert_eq!(whole.up.framing > 0, transport.is_bidirectional(), "{transport} {:?}", whole.up);
    }
}

#[test]
fn each_client_has_its_own_connection() {
    every_transport(false, 1);
    every_transport(true, 1);
}

#[test]
fn twelve_clients_share_a_connection() {
    every_transport(true, 12);
}

#[test]
fn a_hundred_clients_share_a_connection() {
    every_transport(false, 100);
}

#[test]
fn instruments_speak_it_too() {
    let feed =
        Scenario::Feed { interval_us: 20_000, payload_bytes: 100, by: FeedBy::Publisher, upstream_interval_ms: None };
    let fan_out = Scenario::FanOut { publishers: 3, payload_bytes: 100 };
    let upstream = Scenario::Upstream { interval_ms: 30, payload_bytes: 200 };
    let request = Scenario::Request { payload_bytes: 50 };
    for transport in [Transport::WebSocket, Transport::Sse, Transport::LongPolling] {
        let paths = [ProberPath::SameTransport, ProberPath::Http].into_iter().cycle();
        for (scenario, over) in [&feed, &fan_out, &upstream, &request].into_iter().zip(paths) {
            let subject = Subject::start(false, many_streams());
            let plan = over_http2(plan(subject.server.address(), transport, 6, scenario.clone()), 3);
            let phases = Phases { idle_ms: 60, ..plan.phases.clone() };
            let result = run(&with_prober(Plan { phases, ..plan }, over));
            assert!(result.errors.is_empty(), "{transport} {scenario:?} {:?}", result.errors);
            assert!(result.delivered > 0 && result.response_load.count() > 20, "{transport} {scenario:?}");
            assert!(result.response_idle.count() > 2, "{transport} {scenario:?}");
        }
    }
}

/// Runs a plan, and does something when the load begins.
fn run_and(plan: &Plan, mut act: impl FnMut()) -> LoadResult {
    let mut watch = |event: &RunEvent| {
        if matches!(event, RunEvent::Phase { phase: Phase::Load, .. }) {
            act();
        }
    };
    Threads::run(plan, None, &mut watch).unwrap()
}

#[test]
fn a_cut_is_one_for_all_clients_of_a_connection() {
    for transport in [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming] {
        let subject = Subject::start(false, many_streams());
        let front = Front::start(subject.server.address());
        let result = run_and(&over_http2(plan(front.address, transport, 24, CHAT), 12), || front.cut());
        // A POST that was cut may have been heard or not; nothing is published twice.
        let wrong = result.duplicated + result.reordered + result.unknown + result.gaps;
        assert_eq!(wrong, 0, "{transport} {:?}", result.errors);
        assert!(result.delivered >= 24 * (result.published - 4), "{transport} {:?}", result.errors);
        assert_eq!(front.connections(), 4, "{transport}");
        assert!(result.reconnects >= 24, "{transport} {}", result.reconnects);
    }
}

#[test]
fn a_server_that_stops_says_so_and_clients_go_to_the_next() {
    for transport in [Transport::WebSocket, Transport::Sse, Transport::LongPolling] {
        let [first, second] = [0, 1].map(|_| Subject::start(false, many_streams()));
        let front = Front::start(first.server.address());
        let result = run_and(&over_http2(plan(front.address, transport, 24, CHAT), 12), || {
            *front.server.lock().unwrap() = second.server.address();
            first.server.stop();
        });
        assert!(front.connections() >= 4, "{transport} {:?}", result.errors);
        // Who asks again and again has not lost a connection, but found another, unless what it asked crossed the news.
        let crossed = result.errors.iter().filter(|error| error.error.contains("without processing the request"));
        let crossed = crossed.map(|error| error.count).sum::<u64>();
        let is_asking = transport == Transport::LongPolling;
        let are_right = if is_asking { result.reconnects == crossed } else { result.reconnects >= 24 };
        assert!(result.delivered > 0 && are_right, "{transport} {} {:?}", result.reconnects, result.errors);
        let failed = result.errors.iter().find(|error| error.error.contains("connection failed"));
        assert!(failed.is_none(), "{transport} {:?}", result.errors);
    }
}

#[test]
fn streams_beyond_what_the_server_allows_wait_for_their_turn() {
    let few = || Limits { max_streams_per_connection: 3, ..Limits::default() };
    let subject = Subject::start(false, few());
    let front = Front::start(subject.server.address());
    let result = run(&over_http2(plan(front.address, Transport::Polling, 10, CHAT), 10));
    is_whole(Transport::Polling, &result, 10);
    assert_eq!(front.connections(), 1);
    // Streams without an end take all there are: the others never get one.
    for transport in [Transport::WebSocket, Transport::Sse] {
        let subject = Subject::start(false, few());
        let plan = over_http2(plan(subject.server.address(), transport, 10, Scenario::Idle), 10);
        let result = run(&plan);
        assert_eq!(result.connect.count(), 3, "{transport} {:?}", result.errors);
    }
}

#[test]
fn a_server_without_http2_is_told_apart() {
    let server = crate::native_server::NativeServer::start(None);
    let short = |plan: Plan| {
        let phases = Phases { connect_ms: 2_000, load_ms: 10, warm_up_ms: 0, ..plan.phases.clone() };
        Plan { phases, ..plan }
    };
    let idle = |address| short(over_http2(plan(address, Transport::Sse, 2, Scenario::Idle), 2));
    let front = crate::tls_front::TlsFront::start(server.address, "127.0.0.1");
    let result = Threads::run(&Plan { target: front.target(), ..idle(front.address) }, None, &mut |_| ());
    let text = format!("{result:?}");
    assert!(text.contains("did not select h2 by ALPN"), "{text}");
}
