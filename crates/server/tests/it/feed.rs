//! Publications that come from a back end or a timer.

use crate::access::{KEY, access};
use crate::harness::client::{Client, Frame, Kind};
use crate::harness::http::Http;
use crate::harness::http2::Http2;
use crate::harness::{PATIENCE, Subject, until};
use pushlab_server::access::LiveAccess;
use pushlab_server::{Feed, Tick};
use pushlab_wire::channel::Channel;
use pushlab_wire::http::{Headers, parse_request};
use pushlab_wire::websocket::{Opcode, encode, handshake};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

fn channel() -> Channel {
    Channel::parse("a").unwrap()
}

fn feed(address: SocketAddr) -> Option<Feed> {
    // Nobody listens at the first.
    let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 1)), address];
    Some(Feed { addresses, host: "backend".to_owned(), target: "/feed?x=1".to_owned(), channel: channel() })
}

/// Accepts the server's connection as a back end does.
fn accept(listener: &TcpListener) -> TcpStream {
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = Vec::new();
    let mut answer = Vec::new();
    while answer.is_empty() {
        let mut bytes = [0; 1024];
        let n = socket.read(&mut bytes).unwrap();
        assert!(n > 0, "the server closed before it asked");
        request.extend_from_slice(&bytes[..n]);
        let mut headers = Headers::default();
        if let Some((head, _)) = parse_request(&request, &mut headers).unwrap() {
            assert_eq!((head.target, head.header("host")), ("/feed?x=1", Some("backend")));
            handshake::encode_response(&mut answer, &handshake::accept(&head).unwrap());
        }
    }
    socket.write_all(&answer).unwrap();
    socket
}

fn texts(messages: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut out = Vec::new();
    messages.into_iter().for_each(|text| encode(&mut out, Opcode::Text, text.as_bytes(), None));
    out
}

#[test]
fn what_a_back_end_sends_is_published_also_after_its_restart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Subject::start(2, |c| c.feed = feed(listener.local_addr().unwrap()));
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut received = 0;
    for life in 0..3 {
        let mut backend = accept(&listener);
        let large = format!("\"{}\"", "y".repeat(900_000));
        let sent = ["{\"x\": 1}".to_owned(), "no \"JSON\"".to_owned(), format!("{life}"), large];
        backend.write_all(&texts(sent.clone())).unwrap();
        // A message in pieces, with a ping between them.
        backend.write_all(&[0x01, 1, b'"', 0x00, 1, b'z', 0x89, 2, b'h', b'i', 0x80, 1, b'"']).unwrap();
        let expected = [&*sent[0], "\"no \\\"JSON\\\"\"", &*sent[2], &*sent[3], "\"z\""];
        assert!(expected.iter().all(|text| client.message().2 == *text));
        let mut pong = [0; 8];
        backend.read_exact(&mut pong).unwrap();
        assert_eq!(pong[..2], [0x8a, 0x82]);
        received += 5;
        until("all are counted", || server.stats().feed_received == received);
    }
}

/// A back end that closes properly, one that never answers and one that breaks the protocol are left and tried again.
#[test]
fn a_back_end_that_fails_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Subject::start(1, |c| {
        c.feed = feed(listener.local_addr().unwrap());
        c.limits.head_timeout = Duration::from_secs(1);
        c.limits.heartbeat = Duration::from_secs(1);
    });
    let mut client = Client::open(server.address(), Kind::Sse, "channel=a");
    let silent = listener.accept().unwrap();
    let mut refusing = listener.accept().unwrap().0;
    refusing.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    accept(&listener).write_all(&[0x88, 0]).unwrap();
    accept(&listener).write_all(&[0xff, 0]).unwrap();
    // This one says nothing, not even to pings.
    let dead = accept(&listener);
    let mut good = accept(&listener);
    good.write_all(&texts(["1".to_owned()])).unwrap();
    assert_eq!(client.message().2, "1");
    drop((silent, refusing, dead));
}

/// The back end is held back through TCP; nothing is lost, and its connection stays.
#[test]
fn a_feed_that_is_too_fast_waits() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Subject::start(3, |c| {
        c.feed = feed(listener.local_addr().unwrap());
        c.limits.max_inbox_messages = 4;
        c.limits.max_queue_messages = 100_000;
        c.limits.max_queue_bytes = 64 << 20;
    });
    let count = 5000;
    let mut clients: Vec<Client> = (0..4).map(|_| Client::open(server.address(), Kind::Lines, "channel=a")).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut backend = accept(&listener);
            // Every third comes in two pieces.
            let mut bytes = texts((0..count / 2).map(|n| format!("{n}")));
            for n in count / 2..count {
                if n % 3 == 0 {
                    let digits = n.to_string();
                    bytes.extend_from_slice(&[0x01, 1, digits.as_bytes()[0], 0x80, digits.len() as u8 - 1]);
                    bytes.extend_from_slice(&digits.as_bytes()[1..]);
                } else {
                    encode(&mut bytes, Opcode::Text, n.to_string().as_bytes(), None);
                }
            }
            backend.write_all(&bytes).unwrap();
            // Held open until all have read.
            let _ = backend.read(&mut [0]);
        });
        for client in &mut clients {
            assert!((0..count).all(|n| client.message().2 == n.to_string()));
        }
        assert_eq!(server.stats().feed_received, count);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "there was one connection");
        server.stop();
    });
}

#[test]
fn the_timer_publishes_numbered_stamps() {
    let tick = Tick { interval: Duration::from_millis(2), channel: channel() };
    let server = Subject::start(2, |c| c.tick = Some(tick));
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let number = |data: &str| -> u64 {
        let text = data.strip_prefix("{\"id\":").and_then(|rest| rest.split(',').next()).unwrap();
        text.parse().unwrap()
    };
    let first = number(&client.message().2);
    for n in 1..50 {
        let data = client.message().2;
        assert_eq!(number(&data), first + n);
        assert!(data.contains("\"msg\":\"~"), "{data}");
    }
    assert!(!matches!(client.next(), Some(Frame::Gap(..))));
}

/// What the server itself publishes cannot be forged: not by a page of whatever site, not by a program, over no transport.
#[test]
fn nobody_else_publishes_to_the_channels_of_feed_and_tick() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Subject::start(1, |config| {
        config.feed = feed(listener.local_addr().unwrap());
        config.tick = Some(Tick { interval: Duration::from_secs(3600), channel: Channel::parse("tick").unwrap() });
    });
    let mut backend = accept(&listener);
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a&channel=tick&channel=free");
    let mut http = Http::connect(server.address());
    for channel in ["a", "tick"] {
        for fields in ["", "Origin: https://evil.example\r\n", &format!("Origin: http://{}\r\n", server.address())] {
            http.send(&format!(
                "POST /publish?channel={channel} HTTP/1.1\r\nHost: {}\r\n{fields}Content-Length: 1\r\n\r\n1",
                server.address()
            ));
            let refused = http.response();
            assert_eq!((refused.status, refused.body.contains("\"forbidden\"")), (403, true), "{}", refused.body);
        }
        client.send(&format!("[\"pub\",\"{channel}\",1]"));
        assert_eq!(client.next(), Some(Frame::Error("forbidden".into())), "{channel}");
    }
    http.publish("free", "1");
    backend.write_all(&texts(["2".to_owned()])).unwrap();
    let received: Vec<_> = (0..2).map(|_| client.message()).map(|(channel, _, data)| (channel, data)).collect();
    assert_eq!(received, [("free".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())]);
}

/// Clients whose parsers take less than the server's are sent nothing that they cannot read, whoever published it.
#[test]
fn what_is_nested_too_deeply_reaches_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Subject::start(2, |config| {
        config.feed = feed(listener.local_addr().unwrap());
        let rule = "[[rule]]\nwho = \"everybody\"\nchannels = [\"*\"]\nmay = [\"subscribe\", \"publish\"]\n";
        config.access = Some(Arc::new(LiveAccess::new(access(rule))));
    });
    let mut backend = accept(&listener);
    let mut receiver = Client::open(server.address(), Kind::WebSocket, "channel=a&channel=b");
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for (depth, is_taken) in [(30_000, false), (61, false), (60, true)] {
        let data = nested(depth);
        let code = (!is_taken).then_some("json-too-deep");
        let told = |answer: &str| code.is_none_or(|code| answer.contains(&format!("\"error\":\"{code}\"")));
        backend.write_all(&texts([data.clone()])).unwrap();
        assert_eq!(server.publisher().publish("b", &data).is_ok(), is_taken);
        let http2 = Http2::connect(&server, false);
        for to in [server.address().into(), http2.streams()] {
            let answer = Http::connect(to.clone()).post("/publish?channel=b", &data);
            assert_eq!((answer.status == 200, told(&answer.body)), (is_taken, true), "{}", answer.body);
            let mut http = Http::connect(to.clone());
            let body = format!("{{\"channel\":\"b\",\"data\":{data}}}");
            let fields = format!("Host: h\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n");
            http.send(&format!("POST /api/publish HTTP/1.1\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()));
            let answer = http.response();
            assert_eq!((answer.status == 200, told(&answer.body)), (is_taken, true), "{}", answer.body);
            let mut socket = Client::open(to, Kind::WebSocket, "");
            socket.send(&format!("[\"pub\",\"b\",{data}]"));
            socket.send("[\"ping\",1]");
            let error = code.map(|code| Frame::Error(code.into()));
            let frames: Vec<_> =
                std::iter::from_fn(|| socket.next()).take_while(|frame| *frame != Frame::Pong(1)).collect();
            assert_eq!(frames, Vec::from_iter(error));
        }
    }
    let came: Vec<String> = (0..8).map(|_| receiver.message().2).collect();
    assert_eq!(came, vec![nested(60); 8]);
    until("the feed's are counted", || server.stats().feed_received == 1);
}
