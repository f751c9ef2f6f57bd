//! TLS on the port: what clients get through it, and what those get who break it.

use crate::harness::client::{Client, Frame, Kind, PUSHED, all_kinds};
use crate::harness::http::Http;
use crate::harness::http2::Http2;
use crate::harness::secure::{file, identity};
use crate::harness::{Dial, Subject, connect, until, until_idle};
use fastrand::Rng;
use pushlab_http2::frame::PREFACE;
use pushlab_server::{Config, Server, ServerError, TlsError, TlsFiles};
use rustls::{ClientConfig, ClientConnection, HandshakeKind};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(300);

fn start(cores: usize, change: impl FnOnce(&mut Config)) -> Subject {
    Subject::start_either(true, cores, change)
}

/// A connection that counts what is on its socket, and may send in pieces.
struct Raw {
    socket: TcpStream,
    sent: u64,
    received: u64,
    piece: usize,
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.socket.read(buffer)?;
        self.received += n as u64;
        Ok(n)
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.socket.write(&bytes[..bytes.len().min(self.piece)])?;
        self.sent += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn raw(server: &Subject, piece: usize) -> rustls::StreamOwned<ClientConnection, Raw> {
    let tls = ClientConnection::new(identity().client.clone(), "localhost".try_into().unwrap()).unwrap();
    rustls::StreamOwned::new(tls, Raw { socket: connect(server.address()), sent: 0, received: 0, piece })
}

fn with(server: &Subject, config: ClientConfig) -> Dial {
    Dial { tls: Some(Arc::new(config)), ..server.address().into() }
}

#[test]
fn every_transport_delivers_and_resumes() {
    let server = start(2, |_| {});
    let mut http = Http::connect(server.dial(true));
    // Within one record, over two, and over more than is sealed at once.
    let texts: Vec<String> = [1, 10_000, 40_000, 60_000].iter().map(|&n| format!("\"{}\"", "x".repeat(n))).collect();
    for kind in all_kinds() {
        let mut client = Client::open(server.dial(true), kind, "channel=a");
        for text in &texts {
            http.publish("a", text);
            assert_eq!(&client.message().2, text, "{kind:?}");
        }
        let cursor = client.cursor.clone();
        drop(client);
        for text in &texts {
            http.publish("a", text);
        }
        let mut again = Client::resume(server.dial(true), kind, "channel=a", &cursor);
        for text in &texts {
            assert_eq!(&again.message().2, text, "{kind:?}");
        }
    }
    drop(http);
    until_idle(&server);
    assert_eq!((server.stats().tls_failures, server.stats().gaps), (0, 0));
}

/// Sockets that block all the time cut ciphertext anywhere; nothing of it is lost or sent twice.
#[test]
fn what_a_narrow_socket_cuts_comes_whole() {
    for splits in [false, true] {
        let server = start(1, |c| {
            c.splits_events = splits;
            c.limits.max_send_buffer_bytes = Some(4096);
            c.limits.max_queue_bytes = 64 << 20;
        });
        let mut clients = PUSHED.map(|kind| Client::open(server.dial(true), kind, "channel=a"));
        let mut http = Http::connect(server.dial(true));
        let seed = 20_261_129;
        let mut rng = Rng::with_seed(seed);
        let texts: Vec<String> = (0..60).map(|_| format!("\"{}\"", "x".repeat(rng.usize(1..60_000)))).collect();
        for text in &texts {
            http.publish("a", text);
        }
        assert!(server.stats().slow_subscribers > 0, "seed {seed}");
        for client in &mut clients {
            for (n, text) in texts.iter().enumerate() {
                let (_, offset, data) = client.message();
                assert!(offset == n as u64 + 1 && data == *text, "message {n}, seed {seed}");
            }
        }
        until("nothing is queued", || server.stats().slow_subscribers == 0 && server.stats().queued_bytes == 0);
        assert_eq!(server.stats().closed_slow, 0);
    }
}

#[test]
fn requests_larger_than_a_record_come_whole() {
    let server = start(1, |_| {});
    let mut http = Http::connect(server.dial(true));
    let mut client = Client::open(server.dial(true), Kind::WebSocket, "channel=a");
    for size in [100, 16_384, 16_385, 60_000] {
        let text = format!("\"{}\"", "y".repeat(size));
        assert_eq!(http.post("/echo", &text).body, text);
        client.send(&format!("[\"echo\",{text}]"));
        assert_eq!(client.next(), Some(Frame::Echo(text)));
    }
}

#[test]
fn both_versions_are_spoken_and_http_is_agreed_on() {
    let server = start(1, |_| {});
    let speaking = |version, protocols: &[&str]| {
        let mut config = identity().client_of(&[version]);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        with(&server, config)
    };
    for &version in rustls::ALL_VERSIONS {
        for protocols in [&["h3", "http/1.1"][..], &[]] {
            let status = Http::connect(speaking(version, protocols)).get("/healthz").status;
            assert_eq!((status, server.stats().http2), (200, 0), "{version:?}");
        }
        let http2 = Http2::dial(speaking(version, &["http/1.1", "h2"]));
        assert_eq!((http2.get("/healthz").response().status, server.stats().http2), (200, 1), "{version:?}");
        drop(http2);
        until_idle(&server);
    }
    // What was agreed on is spoken.
    let mut other = Http::connect(speaking(&rustls::version::TLS13, &["h2"]));
    other.send("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    while other.fill() {}
    assert!(String::from_utf8_lossy(&other.buffer).ends_with("invalid connection preface"));
    let config = speaking(&rustls::version::TLS13, &["h3"]);
    let refused = Http::connect(config).try_send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
    until("it is counted", || server.stats().tls_failures == 1);
}

#[test]
fn where_http2_is_off_http1_is_what_there_is() {
    let secure = start(1, |config| config.speaks_http2 = false);
    let offering = |protocols: &[&str]| {
        let mut config = identity().client.as_ref().clone();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Http::connect(with(&secure, config))
    };
    // A certificate that is read again changes nothing about that.
    for _ in 0..2 {
        assert_eq!(offering(&["h2", "http/1.1"]).get("/healthz").status, 200);
        let refused = offering(&["h2"]).try_send(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n").unwrap_err();
        assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
        secure.reload_tls().unwrap();
    }
    let plain = Subject::start(1, |config| config.speaks_http2 = false);
    for server in [&secure, &plain] {
        let mut http = Http::connect(server.dial(server.address() == secure.address()));
        http.try_send(PREFACE).unwrap();
        let refused = http.response();
        assert_eq!(refused.status, 400, "{}", refused.body);
        http.expect_end();
        assert_eq!(server.stats().http2, 0);
    }
}

/// The counters tell what was on the socket, the handshake with it; bytes may come one at a time.
#[test]
fn bytes_are_counted_as_they_are_on_the_socket() {
    for piece in [usize::MAX, 100, 1] {
        let server = start(1, |_| {});
        let mut client = raw(&server, piece);
        let request = format!(
            "POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n{}",
            "z".repeat(5000)
        );
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&"z".repeat(5000)), "{answer}");
        client.conn.send_close_notify();
        client.flush().unwrap();
        let counts = (client.sock.sent, client.sock.received);
        drop(client);
        until_idle(&server);
        // They are written at the end of the turn in which the connection ends.
        until(&format!("the counters are {counts:?}, in pieces of {piece}"), || {
            let stats = server.stats();
            (stats.bytes_received, stats.bytes_sent) == counts
        });
    }
}

#[test]
fn an_end_right_behind_a_request_is_seen() {
    let server = start(1, |_| {});
    for _ in 0..20 {
        let mut client = raw(&server, usize::MAX);
        client.conn.complete_io(&mut client.sock).unwrap();
        client.conn.writer().write_all(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        client.conn.send_close_notify();
        client.conn.complete_io(&mut client.sock).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
    until_idle(&server);
    assert_eq!((server.stats().requests, server.stats().tls_failures), (20, 0));
}

/// What was asked for before the farewell is answered before ours, also where the socket does not take it at once.
#[test]
fn answers_come_before_the_farewell() {
    let server = start(1, |c| c.limits.max_send_buffer_bytes = Some(4096));
    let body = "z".repeat(60_000);
    let request = format!("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut client = raw(&server, usize::MAX);
    client.conn.complete_io(&mut client.sock).unwrap();
    // More than the client's kernel takes, less than the server queues.
    for _ in 0..10 {
        client.write_all(request.as_bytes()).unwrap();
    }
    client.conn.send_close_notify();
    client.flush().unwrap();
    until("answers wait", || server.stats().slow_subscribers == 1);
    let mut answers = String::new();
    client.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches(&body).count(), 10);
    until_idle(&server);
    assert_eq!(server.stats().tls_failures, 0);
}

/// A peer may ask for new keys whenever it likes; the answer goes before what is sealed next.
#[test]
fn keys_are_changed_on_the_way() {
    let server = start(1, |_| {});
    let mut client = raw(&server, usize::MAX);
    for n in 0..10 {
        let body = "k".repeat(1 + n * 7_000);
        if n > 0 {
            client.conn.refresh_traffic_keys().unwrap();
        }
        write!(client, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(body.as_bytes()) {
            let mut part = [0; 4096];
            let n = client.read(&mut part).unwrap();
            assert!(n > 0);
            answer.extend_from_slice(&part[..n]);
        }
    }
    assert_eq!(server.stats().tls_failures, 0);
}

/// A handshake's message in records of `size` bytes, where its own is of one.
fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
    let mut records = Vec::new();
    for part in hello[5..].chunks(size) {
        records.extend_from_slice(&hello[..3]);
        records.extend_from_slice(&u16::try_from(part.len()).unwrap().to_be_bytes());
        records.extend_from_slice(part);
    }
    records
}

/// RFC 8446, section 5.1: a message of the handshake may go over several records, and TCP cuts them anywhere.
#[test]
fn a_greeting_in_many_records_is_understood() {
    let server = start(1, |_| {});
    let seed = 20_261_129;
    let mut rng = Rng::with_seed(seed);
    for size in [1, 2, 3, 4, 5, 50, 100] {
        let mut client = raw(&server, usize::MAX);
        let mut hello = Vec::new();
        client.conn.write_tls(&mut hello).unwrap();
        let records = in_records(&hello, size);
        let mut at = 0;
        while at < records.len() {
            let n = rng.usize(1..=(records.len() - at).min(2 * size + 10));
            client.sock.socket.write_all(&records[at..at + n]).unwrap();
            at += n;
            std::thread::yield_now();
        }
        client.write_all(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap_or_else(|e| panic!("{e}, size {size}, seed {seed}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}, size {size}, seed {seed}");
    }
    assert_eq!(server.stats().tls_failures, 0);
}

/// What is kept of a message whose rest has not come has a limit, which no record can reach.
#[test]
fn a_greeting_without_end_is_refused() {
    let server = start(1, |_| {});
    let mut socket = connect(server.address());
    // A greeting (1) of 65,535 bytes, the most that rustls takes.
    let mut hello = vec![22, 3, 1, 0, 0, 1, 0, 255, 255];
    hello.resize(5 + 4 + 65_535, 0);
    let records = in_records(&hello, 1_000);
    socket.write_all(&records[..65_000]).unwrap();
    until("it was read", || server.stats().bytes_received == 65_000);
    assert_eq!((server.stats().tls_failures, server.stats().open), (0, 1));
    // It may have ended before all is sent.
    let _ = socket.write_all(&records[65_000..]);
    until("it is counted", || server.stats().tls_failures == 1);
    rest(&mut socket);
    drop(socket);
    until_idle(&server);
}

/// Reads to the end of a connection without TLS.
fn rest(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset ends it as well.
    let _ = socket.read_to_end(&mut bytes);
    bytes
}

#[test]
fn plain_http_gets_an_alert() {
    let server = start(1, |_| {});
    let mut socket = connect(server.address());
    socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let answer = rest(&mut socket);
    // A record of type alert (21), level fatal (2): RFC 8446, sections 5.1 and 6.
    assert_eq!((answer.len(), answer[0], answer[5]), (7, 21, 2), "{answer:?}");
    until_idle(&server);
    assert_eq!((server.stats().tls_failures, server.stats().requests), (1, 0));
}

#[test]
fn garbage_ends_its_connection_and_nothing_else() {
    let server = start(2, |c| c.limits.drain_timeout = SHORT);
    let mut witness = Client::open(server.dial(true), Kind::WebSocket, "channel=a");
    let seed = 20_261_129;
    let mut rng = Rng::with_seed(seed);
    for n in 0..200 {
        let mut bytes: Vec<u8> = (0..rng.usize(1..20_000)).map(|_| rng.u8(..)).collect();
        if n % 2 == 0 {
            // A head of a record that may be one, so that what follows is taken for a handshake.
            let size = rng.u16(1..16_384).to_be_bytes();
            bytes.splice(0..0, [rng.u8(20..24), 3, rng.u8(0..4), size[0], size[1], rng.u8(0..3), 0]);
        }
        let mut socket = connect(server.address());
        // It may have ended before all is sent.
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        rest(&mut socket);
    }
    // Behind a good handshake too.
    for _ in 0..20 {
        let before = server.stats().tls_failures;
        let mut client = raw(&server, usize::MAX);
        client.conn.complete_io(&mut client.sock).unwrap();
        let bytes: Vec<u8> = [23, 3, 3, 0, 200].into_iter().chain((0..200).map(|_| rng.u8(..))).collect();
        client.sock.socket.write_all(&bytes).unwrap();
        let told = client.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(told.to_string().contains("BadRecordMac"), "{told}, seed {seed}");
        until("it is counted", || server.stats().tls_failures == before + 1);
    }
    Http::connect(server.dial(true)).publish("a", "1");
    assert_eq!(witness.message().2, "1");
    until("only the witness is left", || server.stats().open == 1);
    assert!(server.stats().tls_failures >= 100, "{:?}, seed {seed}", server.stats());
}

/// The time for a handshake is the time for a request, however it trickles in.
#[test]
fn handshakes_that_stop_half_way_are_ended() {
    let server = start(1, |c| c.limits.head_timeout = Duration::from_secs(1));
    let mut hello = Vec::new();
    let mut tls = ClientConnection::new(identity().client.clone(), "localhost".try_into().unwrap()).unwrap();
    tls.write_tls(&mut hello).unwrap();
    let mut silent = connect(server.address());
    let mut half = connect(server.address());
    half.write_all(&hello[..hello.len() / 2]).unwrap();
    let mut unanswered = connect(server.address());
    unanswered.write_all(&hello).unwrap();
    let mut trickling = connect(server.address());
    let mut writer = trickling.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        for byte in hello {
            if writer.write_all(&[byte]).is_err() {
                return true;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        false
    });
    for socket in [&mut silent, &mut half, &mut unanswered, &mut trickling] {
        rest(socket);
    }
    assert!(thread.join().unwrap(), "it was ended before all had come");
    // So is a handshake that nothing follows.
    let mut idle = raw(&server, usize::MAX);
    idle.conn.complete_io(&mut idle.sock).unwrap();
    assert_eq!(idle.read_to_end(&mut Vec::new()).unwrap(), 0, "an orderly end");
    drop((silent, half, unanswered, trickling, idle));
    until_idle(&server);
    assert_eq!((server.stats().closed_timeout, server.stats().tls_failures), (5, 0));
}

#[test]
fn too_many_are_closed_unheard() {
    let server = start(1, |c| c.limits.max_connections = 1);
    let held = Client::open(server.dial(true), Kind::Sse, "channel=a");
    assert!(Http::connect(server.dial(true)).try_send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").is_err());
    until("it is counted", || server.stats().refused == 1);
    drop(held);
    until_idle(&server);
    assert_eq!(Http::connect(server.dial(true)).get("/healthz").status, 200);
}

#[test]
fn files_that_are_no_identity_are_named() {
    let ours = identity();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().signing_key.serialize_pem();
    let good = ours.files();
    let start = |certificate: &std::path::Path, key: &std::path::Path| {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        config.tls = Some(TlsFiles { certificate: certificate.to_owned(), key: key.to_owned() });
        match Server::start(config).err() {
            Some(ServerError::Tls(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let missing = good.key.with_file_name("nowhere.pem");
    assert!(matches!(start(&missing, &good.key), TlsError::Unreadable { path, .. } if path == missing));
    assert!(matches!(start(&good.certificate, &missing), TlsError::Unreadable { path, .. } if path == missing));
    assert!(matches!(start(&good.key, &good.key), TlsError::NoCertificate { path } if path == good.key));
    assert!(matches!(start(&good.certificate, &good.certificate), TlsError::NoKey { .. }));
    let torn = file("torn.pem", &ours.key[..ours.key.len() / 2]);
    assert!(matches!(start(&good.certificate, &torn), TlsError::BadPem { path, .. } if path == torn));
    for kind in ["ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY"] {
        let text = format!("-----BEGIN {kind}-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END {kind}-----\n");
        let text = start(&good.certificate, &file("encrypted.pem", &text)).to_string();
        assert!(text.contains("passphrase") && text.contains("openssl pkey -in"), "{text}");
    }
    let strange = file("strange.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert!(matches!(start(&strange, &good.key), TlsError::Unusable { .. }));
    let error = start(&good.certificate, &file("other.pem", &other));
    let text = error.to_string();
    assert!(matches!(error, TlsError::Unusable { .. }) && text.contains("certificate.pem"), "{text}");
}

/// One request over a new connection; gives how its handshake went, and the certificate that the server showed.
fn handshake(server: &Subject, config: &Arc<ClientConfig>) -> (HandshakeKind, Vec<u8>) {
    let tls = ClientConnection::new(config.clone(), "localhost".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, connect(server.address()));
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    // Tickets of TLS 1.3 come with the first answer.
    assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
    let certificate = stream.conn.peer_certificates().map(|chain| chain[0].to_vec()).unwrap_or_default();
    (stream.conn.handshake_kind().unwrap(), certificate)
}

/// Who comes again need not shake hands in full, however many come: the server remembers nobody, its tickets do.
#[test]
fn sessions_are_resumed_by_tickets() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let server = start(2, |_| {});
        let clients: Vec<_> = (0..400).map(|_| Arc::new(identity().client_of(&[version]))).collect();
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
            for client in &clients {
                assert_eq!(handshake(&server, client).0, expected, "{version:?}");
            }
        }
    }
}

/// A new certificate is for those who come from then on; who is connected stays, and a broken file changes nothing.
#[test]
fn the_certificate_is_read_again() {
    let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (first, second) = (made(), made());
    let write = |made: &rcgen::CertifiedKey<rcgen::KeyPair>| TlsFiles {
        certificate: file("again.pem", &made.cert.pem()),
        key: file("again-key.pem", &made.signing_key.serialize_pem()),
    };
    let server = Subject::start(1, |config| config.tls = Some(write(&first)));
    let mut roots = rustls::RootCertStore::empty();
    [&first, &second].iter().for_each(|made| roots.add(made.cert.der().clone()).unwrap());
    let config = || {
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_root_certificates(roots.clone()).with_no_client_auth())
    };
    let known = config();
    let mut open = Http::connect(Dial { tls: Some(config()), ..server.address().into() });
    assert_eq!(open.get("/healthz").status, 200);
    assert_eq!(handshake(&server, &known).1, first.cert.der().to_vec());
    write(&second);
    assert_eq!(handshake(&server, &config()).1, first.cert.der().to_vec(), "nobody has asked for it yet");
    server.reload_tls().unwrap();
    assert_eq!(handshake(&server, &config()).1, second.cert.der().to_vec());
    assert_eq!(open.get("/healthz").status, 200);
    assert_eq!(handshake(&server, &known).0, HandshakeKind::Resumed, "tickets outlive the certificate");
    file("again.pem", "no certificate");
    assert!(matches!(server.reload_tls(), Err(TlsError::NoCertificate { .. })));
    file("again.pem", &first.cert.pem());
    assert!(matches!(server.reload_tls(), Err(TlsError::Unusable { .. })), "the key is the second's");
    assert_eq!(handshake(&server, &config()).1, second.cert.der().to_vec());
}
