//! permessage-deflate: what is compressed for whom, and clients that would rather break it.

use super::{data, incompressible_halves, start, start_for_slow};
use crate::harness::http::Http;
use crate::harness::{Subject, until, until_idle};
use pushlab_wire::deflate::{Deflater, InflateDecoder};
use pushlab_wire::http::{Headers, parse_response};
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode, encode_compressed, handshake};

const OFFER: &str = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);

/// What came: a text, and whether it was compressed.
type Said = (String, bool);

struct WebSocket {
    http: Http,
    decoder: Decoder,
    agreed: Option<String>,
}

impl WebSocket {
    fn open(server: &Subject, offer: &str) -> Self {
        let mut http = Http::connect(server.address());
        let mut request = Vec::new();
        handshake::encode_request_with(&mut request, "h", "/ws?channel=a", [7; 16], offer);
        http.send(&String::from_utf8(request).unwrap());
        let (size, agreed) = loop {
            let mut headers = Headers::default();
            if let Some((head, size)) = parse_response(&http.buffer, &mut headers).unwrap() {
                assert_eq!(head.status, 101);
                break (size, head.header("sec-websocket-extensions").map(str::to_owned));
            }
            assert!(http.fill());
        };
        http.buffer.drain(..size);
        let mut socket = Self { http, decoder: Decoder::default(), agreed };
        assert!(socket.next().unwrap().0.starts_with("[\"cursor\""));
        socket
    }

    /// The next message, or the code of the close.
    fn next(&mut self) -> Result<Said, u16> {
        let config = Config { max_message_bytes: 1 << 22, takes_compressed: true, ..Config::new(Role::Client) };
        loop {
            let buffer = &mut self.http.buffer;
            let (consumed, said) = match self.decoder.decode(buffer, &config).unwrap() {
                Decoded::Incomplete { .. } => {
                    assert!(self.http.fill(), "the connection ended");
                    continue;
                }
                Decoded::Frame { consumed, event } => match event {
                    Some(Event::Text(text)) => (consumed, Some(Ok((text.to_owned(), false)))),
                    Some(Event::Compressed { is_text, payload }) => {
                        assert!(is_text && self.agreed.is_some());
                        let text = InflateDecoder::default().inflate(payload, 1 << 22).unwrap().to_vec();
                        assert!(payload.len() < text.len());
                        (consumed, Some(Ok((String::from_utf8(text).unwrap(), true))))
                    }
                    Some(Event::Close(close)) => (consumed, Some(Err(close.unwrap().0))),
                    _ => (consumed, None),
                },
            };
            buffer.drain(..consumed);
            if let Some(said) = said {
                return said;
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut frame = Vec::new();
        encode_compressed(&mut frame, Opcode::Text, bytes, MASK);
        self.http.try_send(&frame).unwrap();
    }
}

#[test]
fn large_messages_are_compressed_for_those_who_ask() {
    let server = start(2);
    let mut plain = WebSocket::open(&server, "");
    let mut sockets: Vec<_> = (0..20).map(|_| WebSocket::open(&server, OFFER)).collect();
    assert_eq!(plain.agreed, None);
    let agreed = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    assert!(sockets.iter().all(|socket| socket.agreed.as_deref() == Some(agreed)));
    let mut http = Http::connect(server.address());
    let published: Vec<String> = (0..30).map(|n| data(n, [10, 300, 5_000][n % 3])).collect();
    for data in &published {
        assert_eq!(http.post("/publish?channel=a", data).status, 200);
    }
    for (n, data) in published.iter().enumerate() {
        let (expected, was_compressed) = plain.next().unwrap();
        assert!(!was_compressed && expected.contains(data), "{expected}");
        for socket in &mut sockets {
            assert_eq!(socket.next().unwrap(), (expected.clone(), n % 3 > 0), "{n}");
        }
    }
}

#[test]
fn nobody_gets_what_is_not_offered_or_not_agreed() {
    let off = Subject::start(1, |_| {});
    assert_eq!(WebSocket::open(&off, OFFER).agreed, None);
    let server = start(1);
    let unknown = "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=16\r\n";
    let mut without = WebSocket::open(&server, unknown);
    assert_eq!(without.agreed, None);
    // A compressed frame is then a reserved bit.
    without.send(b"x");
    assert_eq!(without.next(), Err(1002));
}

/// Such a client may compress what it sends; nothing is compressed for it.
#[test]
fn who_has_a_small_window_gets_messages_uncompressed() {
    let server = start(1);
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n";
    let mut socket = WebSocket::open(&server, offer);
    assert!(socket.agreed.as_ref().is_some_and(|agreed| agreed.ends_with("server_max_window_bits=10")));
    let frame = format!("[\"pub\",\"a\",{}]", data(1, 2_000));
    socket.send(&Deflater::default().deflate(frame.as_bytes()).unwrap());
    let (said, was_compressed) = socket.next().unwrap();
    assert!(!was_compressed && said.contains(&data(1, 2_000)), "{said}");
}

#[test]
fn what_clients_send_may_be_compressed() {
    let server = start(1);
    let mut socket = WebSocket::open(&server, OFFER);
    let frame = format!("[\"pub\",\"a\",{}]", data(1, 2_000));
    socket.send(&Deflater::default().deflate(frame.as_bytes()).unwrap());
    let (said, was_compressed) = socket.next().unwrap();
    assert!(was_compressed && said.contains(&data(1, 2_000)), "{said}");
    // One at a time may be plain.
    let mut plain = Vec::new();
    encode(&mut plain, Opcode::Text, b"[\"ping\",7]", MASK);
    socket.http.try_send(&plain).unwrap();
    assert_eq!(socket.next().unwrap(), ("[\"pong\",7]".to_owned(), false));
}

#[test]
fn what_cannot_be_inflated_ends_the_connection_with_its_code() {
    let server = start(1);
    let bomb = Deflater::default().deflate(&vec![b' '; 10 << 20]).unwrap();
    assert!(bomb.len() < 60_000, "{} bytes", bomb.len());
    let not_utf8 = Deflater::default().deflate(&[0xff; 500]).unwrap();
    for (payload, code) in [(&*bomb, 1009), (&[0xff, 0xff, 0xff], 1007), (&*not_utf8, 1007)] {
        let mut socket = WebSocket::open(&server, OFFER);
        socket.send(payload);
        assert_eq!(socket.next(), Err(code));
    }
    until_idle(&server);
}

/// A few bytes may become many: two such messages of one client are a turn's work, then others have theirs.
#[test]
fn small_messages_that_become_large_take_many_turns() {
    let server = start(1);
    let mut socket = WebSocket::open(&server, OFFER);
    let mut frames = Vec::new();
    for n in 0..100 {
        let ping = format!("[\"ping\",{n}]");
        let text = format!("{ping}{}", " ".repeat(64 * 1024 - ping.len()));
        encode_compressed(&mut frames, Opcode::Text, &Deflater::default().deflate(text.as_bytes()).unwrap(), MASK);
    }
    assert!(frames.len() < 64 * 1024, "{} bytes, which one turn reads", frames.len());
    let before = server.stats().turns;
    socket.http.try_send(&frames).unwrap();
    for n in 0..100 {
        assert_eq!(socket.next().unwrap(), (format!("[\"pong\",{n}]"), false));
    }
    let turns = server.stats().turns - before;
    // Some turns read twice.
    assert!(turns >= 25, "{turns} turns");
}

/// What waits for one who reads late is what the others got.
#[test]
fn slow_subscribers_get_the_same() {
    let server = start_for_slow();
    let mut slow = WebSocket::open(&server, OFFER);
    let mut http = Http::connect(server.address());
    let published = incompressible_halves();
    for data in &published {
        assert_eq!(http.post("/publish?channel=a", data).status, 200);
    }
    until("something is queued", || server.stats().queued_bytes > 0);
    for data in &published {
        let (said, was_compressed) = slow.next().unwrap();
        assert!(was_compressed && said.contains(data.as_str()));
    }
}
