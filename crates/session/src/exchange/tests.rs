//! Exchanges over HTTP/2. The [`Server`] that they are with says nothing there in the form of HTTP/1.

use super::Exchange;
use crate::effect::{Context, Effect, Page, Question};
use crate::fixtures::{NOTHING_HEARD, Server, publications};
use crate::framing::Framing;
use pushlab_log::Replay;
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::deflate::Deflater;
use pushlab_wire::fields::FieldList;
use pushlab_wire::websocket::{Opcode, encode, encode_compressed};

type Fields<'a> = [(&'a str, &'a str)];

fn list(fields: &Fields<'_>) -> FieldList {
    let mut list = FieldList::default();
    fields.iter().for_each(|(name, value)| list.push(name.as_bytes(), value.as_bytes()));
    list
}

fn request(method: &str, path: &str, more: &Fields<'_>) -> FieldList {
    let pseudo = [(":method", method), (":scheme", "https"), (":authority", "a.example"), (":path", path)];
    list(&[&pseudo, more].concat())
}

fn connect(path: &str, protocol: &str) -> FieldList {
    request("CONNECT", path, &[(":protocol", protocol), ("sec-websocket-version", "13")])
}

fn replay(messages: u64) -> Replay {
    Replay { messages: publications(messages), up_to: 7, is_whole: true, ..Replay::default() }
}

fn cursor() -> Cursor {
    Cursor { epoch: Epoch::parse("new").unwrap(), offset: 7 }
}

impl Server {
    fn asked(fields: &FieldList, has_ended: bool) -> (Self, String, Effect) {
        let mut server = Self::new();
        let (said, effect) = server.receive_head(fields, has_ended);
        (server, said, effect)
    }

    fn replayed(&mut self, messages: u64) -> (String, Effect) {
        self.step(|exchange, cx| exchange.replayed(&mut replay(messages).into(), None, cx))
    }

    fn end_of_input(&mut self) -> (String, Effect) {
        self.step(Exchange::end_of_input)
    }

    /// What its head says, a line for each field; nothing if there is none.
    fn head(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        self.output.head.iter().map(|(name, value)| format!("{} {}\n", text(name), text(value))).collect()
    }

    /// The answer that was said last was taken, and that was all.
    fn ends(&mut self) -> bool {
        let (said, effect) = self.step(|exchange, cx| exchange.answered(true, cx));
        said.is_empty() && self.output.head.is_empty() && matches!(effect, Effect::End)
    }
}

const OF_JSON: &str = "content-type application/json\ncache-control no-store\nx-content-type-options nosniff\n\
                       cross-origin-resource-policy cross-origin\n";

#[test]
fn a_stream_of_each_framing_begins_with_its_head() {
    for (path, kind, framing, first) in [
        (
            "/sse?channel=a",
            "text/event-stream",
            Framing::Events { is_chunked: false, is_compressed: false },
            "id:new.7\n\n",
        ),
        (
            "/stream?channel=a",
            "application/x-ndjson",
            Framing::Lines { is_chunked: false, is_compressed: false },
            "[\"cursor\",\"new.7\"]\n",
        ),
        (
            "/stream?channel=a&format=script",
            "text/html; charset=utf-8",
            Framing::Script { is_chunked: false },
            "<script>parent.pushlab('[\"cursor\",\"new.7\"]')</script>\n",
        ),
    ] {
        let (mut server, said, effect) = Server::asked(&request("GET", path, &[]), true);
        assert!(matches!(effect, Effect::Read(_)), "{path}: {effect:?}");
        let rest = "cache-control no-store\nx-content-type-options nosniff\n\
                    cross-origin-resource-policy cross-origin\nx-accel-buffering no\n";
        assert_eq!(server.head(), format!(":status 200\ncontent-type {kind}\n{rest}"), "{path}");
        assert_eq!(said.is_empty(), !path.contains("script"), "{said}");
        let (said, effect) = server.replayed(0);
        assert!(matches!(effect, Effect::Receive), "{path}: {effect:?}");
        assert_eq!((&*said, server.head(), server.exchange.framing()), (first, String::new(), Some(framing)));
        // The peer's side has ended long ago.
        assert!(matches!(server.end_of_input().1, Effect::Nothing));
        assert_eq!(server.expire().0, first);
        for end in [Exchange::overrun, |exchange: &mut Exchange, cx: &mut Context<'_>| exchange.drain(false, cx)] {
            let (said, effect) = server.step(end);
            assert!(said.is_empty() && matches!(effect, Effect::End), "{path}: {said} {effect:?}");
        }
    }
}

#[test]
fn a_poll_is_answered_at_once_or_held() {
    let origin = [("origin", "http://b.example")];
    let (mut server, said, effect) = Server::asked(&request("GET", "/poll?channel=a&after=new.1", &origin), true);
    assert!(said.is_empty() && server.head().is_empty() && matches!(effect, Effect::Read(_)), "{said} {effect:?}");
    let (said, effect) = server.replayed(1);
    assert!(said.contains("\"msg\"") && matches!(effect, Effect::Answered), "{said} {effect:?}");
    let size = said.len();
    let open = "access-control-allow-origin *";
    assert_eq!(server.head(), format!(":status 200\n{OF_JSON}{open}\ncontent-length {size}\n"));
    assert!(server.ends());

    let held = || {
        let (mut server, _, _) = Server::asked(&request("GET", "/poll?channel=a&wait=1", &[]), true);
        let (said, effect) = server.replayed(0);
        assert!(said.is_empty() && server.head().is_empty() && matches!(effect, Effect::Receive), "{said} {effect:?}");
        assert!(matches!(server.end_of_input().1, Effect::Nothing));
        assert_eq!(server.exchange.framing(), Some(Framing::Reply));
        // A reply made for many is text of HTTP/1.1.
        assert!(!server.exchange.takes_common_reply());
        server
    };
    let mut drained = held();
    let mut expired = held();
    let answers = [drained.step(|exchange, cx| exchange.drain(false, cx)), expired.expire()];
    for (server, (said, effect)) in [drained, expired].iter_mut().zip(answers) {
        assert!(said == "[[\"cursor\",\"new.7\"]]" && matches!(effect, Effect::Answered), "{said} {effect:?}");
        assert_eq!(server.head(), format!(":status 200\n{OF_JSON}content-length 20\n"));
        assert!(server.ends());
    }
    let mut server = held();
    let (said, effect) = server.step(|exchange, cx| exchange.answer_poll(b"[1]", cx));
    assert!(said == "[1]" && matches!(effect, Effect::Answered), "{said} {effect:?}");
    assert!(server.head().starts_with(":status 200") && server.ends());
}

#[test]
fn a_publication_comes_in_parts_and_ends_with_the_stream() {
    let head = request("POST", "/publish?channel=a&after=new.1", &[("content-length", "7")]);
    let (mut server, said, effect) = Server::asked(&head, false);
    assert!(said.is_empty() && server.head().is_empty() && matches!(effect, Effect::Nothing), "{said} {effect:?}");
    assert_eq!(server.output.patience, Some(server.rules.head_timeout));
    for part in [&b"{\"a\""[..], b"", b":1}"] {
        assert!(matches!(server.receive(part).1, Effect::Nothing));
    }
    let (_, effect) = server.end_of_input();
    assert!(matches!(effect, Effect::Publish), "{effect:?}");
    assert_eq!(server.output.publication, ("a".to_owned(), "{\"a\":1}".to_owned()));
    // The log is slow; the end is not told twice.
    server.park();
    assert!(matches!(server.end_of_input().1, Effect::Nothing));
    let (_, effect) = server.step(|exchange, cx| exchange.published(Ok(cursor()), cx));
    assert!(matches!(effect, Effect::Read(_)), "{effect:?}");
    let (said, effect) = server.replayed(1);
    assert!(said.contains("\"msg\"") && matches!(effect, Effect::Answered), "{said} {effect:?}");
    assert!(server.ends());
    assert_eq!(server.output.counts.requests, 1);

    let (mut server, ..) =
        Server::asked(&request("POST", "/publish?channel=a", &[("content-type", "text/plain")]), true);
    assert_eq!(server.output.publication.1, "\"\"", "a body without a byte");
    server.park();
    let (said, effect) = server.expire();
    assert!(said.contains("\"outcome-unknown\"") && matches!(effect, Effect::Answered), "{said} {effect:?}");
    assert!(server.head().starts_with(":status 504\n"));
}

#[test]
fn small_answers_are_heads_and_bodies() {
    for (method, path, status, body) in [
        ("POST", "/echo", "200", "{}"),
        ("GET", "/healthz", "200", "ok\n"),
        ("HEAD", "/healthz", "200", ""),
        ("OPTIONS", "/publish", "204", ""),
    ] {
        let (mut server, mut said, mut effect) = Server::asked(&request(method, path, &[]), method != "POST");
        if method == "POST" {
            let _ = server.receive(body.as_bytes());
            (said, effect) = server.end_of_input();
        }
        assert!(said == body && matches!(effect, Effect::Answered), "{path}: {said} {effect:?}");
        let head = server.head();
        assert!(head.starts_with(&format!(":status {status}\n")) && !head.contains("connection"), "{head}");
        assert_eq!(head.contains("content-length 3"), path == "/healthz", "{head}");
        assert!(server.ends());
        // What still comes is not for it.
        let mut more = *b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        let (_, effect) = server.step(|exchange, cx| {
            let (used, effect) = exchange.receive(&mut more, cx);
            assert_eq!(used, more.len());
            effect
        });
        assert!(matches!(effect, Effect::Nothing));
        assert!(matches!(server.receive_head(&request("GET", "/healthz", &[]), true).1, Effect::Nothing));
        assert!(server.head().is_empty());
    }
    let (mut server, _, effect) = Server::asked(&request("HEAD", "/stats", &[]), true);
    assert!(matches!(effect, Effect::Page(Page::Stats)), "{effect:?}");
    let (said, _) = server.step(|exchange, cx| exchange.answer("application/json", b"{}", cx));
    assert_eq!((&*said, server.head()), ("", format!(":status 200\n{OF_JSON}content-length 2\n")));
}

#[test]
fn who_asks_is_told_in_which_version() {
    for target in ["/sse?v=2&channel=a", "/stream?v=2&channel=a", "/stream?v=2&channel=a&format=script"] {
        for version in ["1.0", "1.1", "2"] {
            let (said, _) = match version {
                "2" => Server::new().receive_head(&request("GET", target, &[]), true),
                _ => Server::new().receive(format!("GET {target} HTTP/{version}\r\nHost: h\r\n\r\n").as_bytes()),
            };
            assert!(said.contains(&format!(",\"http\":\"{version}\"}}]")), "{version} {said}");
        }
    }
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let (said, _) = Server::new().receive(format!("GET /ws?v=2 HTTP/1.1\r\nHost: h\r\n{upgrade}\r\n").as_bytes());
    assert!(said.contains("101 ") && said.contains(",\"http\":\"1.1\"}]"), "{said}");
}

#[test]
fn a_websocket_is_a_connect_and_ends_with_its_stream() {
    let fields = connect("/ws?channel=a&v=2", "websocket");
    let (mut server, said, effect) = Server::asked(&fields, false);
    let told = said.contains("[\"server\"") && said.contains(",\"http\":\"2\"}]");
    assert!(told && matches!(effect, Effect::Read(_)), "{said} {effect:?}");
    assert_eq!(server.head(), ":status 200\n");
    let _ = server.replayed(0);
    let mut frame = Vec::new();
    encode(&mut frame, Opcode::Text, b"[\"ping\",5]", Some([0; 4]));
    let (said, effect) = server.receive(&frame);
    assert!(said.contains("[\"pong\",5]") && matches!(effect, Effect::Nothing), "{said} {effect:?}");
    assert!(server.head().is_empty());
    let mut polite = Server::asked(&fields, false).0;
    let _ = polite.replayed(0);
    let (said, effect) = polite.step(|exchange, cx| exchange.drain(false, cx));
    assert!(said.contains("stopping") && matches!(effect, Effect::End), "{said} {effect:?}");
    let (said, effect) = server.end_of_input();
    assert!(said.is_empty() && matches!(effect, Effect::End), "{said} {effect:?}");
}

#[test]
fn messages_come_back_over_a_websocket_that_is_for_that() {
    let (server, _, _) = Server::asked(&connect("/echo", "websocket"), false);
    assert!(server.head().starts_with(":status 405\n") && server.head().contains("allow POST\n"), "{}", server.head());
    let mut server = Server::new();
    server.rules.echoes = true;
    server.rules.compression_from = Some(1);
    let deflate = ("sec-websocket-extensions", "permessage-deflate");
    let pseudo = [(":protocol", "websocket"), ("sec-websocket-version", "13"), deflate];
    let (said, effect) = server.receive_head(&request("CONNECT", "/echo", &pseudo), false);
    assert!(said.is_empty() && matches!(effect, Effect::Nothing), "{said} {effect:?}");
    assert!(server.head().starts_with(":status 200\n") && server.head().contains("permessage-deflate"));
    let mask = Some([1, 2, 3, 4]);
    for opcode in [Opcode::Text, Opcode::Binary] {
        let (mut frame, mut expected) = (Vec::new(), Vec::new());
        encode(&mut frame, opcode, b"[\"pub\",\"a\",1]", mask);
        encode(&mut expected, opcode, b"[\"pub\",\"a\",1]", None);
        let (_, effect) = server.receive(&frame);
        assert!(server.output.bytes == expected && matches!(effect, Effect::Nothing), "{effect:?}");
        // Compressed, it comes back compressed.
        let small = Deflater::default().deflate(&[b'a'; 200]).unwrap();
        frame.clear();
        encode_compressed(&mut frame, opcode, &small, mask);
        let _ = server.receive(&frame);
        let head = [0xc0 | opcode as u8, small.len() as u8];
        assert_eq!(server.output.bytes, [&head[..], &small].concat());
    }
    assert!(server.exchange.framing().is_none(), "it receives no publications");
    let (mut frame, mut fragment) = (Vec::new(), Vec::new());
    encode(&mut fragment, Opcode::Binary, b"", mask);
    fragment[0] &= 0x7f;
    let _ = server.receive(&fragment);
    fragment[0] &= 0xf0;
    for _ in 0..2000 {
        let (said, effect) = server.receive(&fragment);
        assert!(said.is_empty() && matches!(effect, Effect::Nothing), "{said:?} {effect:?}");
    }
    encode(&mut frame, Opcode::Continuation, b"end", mask);
    let _ = server.receive(&frame);
    assert_eq!(server.output.bytes, b"\x82\x03end");
}

#[test]
fn what_is_refused_is_told_in_fields() {
    let long = "x".repeat(1000);
    let many = vec![("a", "b"); 70];
    let no_host = list(&[(":method", "GET"), (":scheme", "https"), (":path", "/healthz")]);
    let old = request("CONNECT", "/ws", &[(":protocol", "websocket"), ("sec-websocket-version", "8")]);
    for (fields, has_ended, status, code) in [
        (request("GET", "/healthz", &[("x", &long)]), true, 431, "head-too-large"),
        (request("GET", "/healthz", &many[..30]), true, 431, "head-too-large"),
        (request("GET", "/nowhere", &[]), true, 404, "unknown-path"),
        (request("DELETE", "/publish?channel=a", &[]), true, 405, "method-not-allowed"),
        (request("HEAD", "/sse?channel=a", &[]), true, 405, "method-not-allowed"),
        (request("POST", "/ws?channel=a", &[]), true, 405, "method-not-allowed"),
        (request("POST", "/publish?channel=a", &[("content-length", "1001")]), false, 413, "body-too-large"),
        (request("GET", "/ws?channel=a", &[]), true, 426, "upgrade-required"),
        (connect("/ws?channel=a", "websocket"), true, 426, "upgrade-required"),
        (old, false, 426, "upgrade-required"),
        (connect("/ws?channel=a", "connect-udp"), false, 501, "unsupported"),
        (connect("/sse?channel=a", "websocket"), false, 405, "method-not-allowed"),
        (connect("/application", "websocket"), false, 404, "unknown-path"),
        (list(&[(":method", "CONNECT"), (":authority", "b.example:80")]), false, 501, "unsupported"),
        (list(&[(":method", "GET")]), true, 400, "bad-request"),
        (no_host, true, 400, "bad-request"),
        (request("GET", "/healthz", &[("host", "b.example")]), true, 400, "bad-request"),
        (request("GET", "/sse?channel=a&after=x", &[]), true, 400, "bad-cursor"),
    ] {
        let (mut server, said, effect) = Server::asked(&fields, has_ended);
        assert!(matches!(effect, Effect::Answered), "{fields:?}: {effect:?}");
        let head = server.head();
        assert!(head.starts_with(&format!(":status {status}\n")), "{fields:?}: {head}");
        assert!(!head.contains("upgrade") && head.contains("content-length "), "{head}");
        let is_bodiless = fields.get(":method") == Some(b"HEAD");
        assert!(is_bodiless == said.is_empty() && (is_bodiless || said.contains(code)), "{fields:?}: {said}");
        assert!(server.ends());
        assert_eq!(server.output.counts.errors, 1);
    }
    // As many fields as there may be are not too many bytes there.
    let mut server = Server::new();
    server.rules.max_head_bytes = 10_000;
    let (said, _) = server.receive_head(&request("GET", "/healthz", &many), true);
    assert!(said.contains("head-too-large") && server.head().starts_with(":status 431\n"), "{said}");
    let (_, said, _) = Server::asked(&request("GET", "/ws?channel=a", &[]), true);
    assert!(said.contains(":protocol websocket"), "{said}");
}

#[test]
fn a_body_that_grows_too_large_is_refused_when_it_does() {
    let (mut server, ..) = Server::asked(&request("POST", "/echo", &[]), false);
    assert!(matches!(server.receive(&[b'1'; 1000]).1, Effect::Nothing));
    let (said, effect) = server.receive(b"1");
    assert!(said.contains("body-too-large") && matches!(effect, Effect::Answered), "{said} {effect:?}");
    assert!(server.head().starts_with(":status 413\n") && server.ends());
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let (mut server, ..) = Server::asked(&request("POST", "/echo", &[]), false);
    let _ = server.receive(b"1");
    let (_, effect) = server.step(|exchange, cx| exchange.drain(false, cx));
    assert!(matches!(effect, Effect::Nothing), "it is given the time that it has: {effect:?}");
    let (said, effect) = server.expire();
    assert!(said.contains("request-timeout") && matches!(effect, Effect::Answered), "{said} {effect:?}");
    assert!(server.head().starts_with(":status 408\n") && server.ends());
    for has_partial in [false, true] {
        let mut server = Server::asked(&request("GET", "/healthz", &[]), true).0;
        assert!(server.ends());
        // Behind its answer, as the event loop would not ask.
        let silence = crate::exchange::Silence { has_partial, ..NOTHING_HEARD };
        let _ = server.step(|exchange, cx| exchange.expire(silence, cx));
        let _ = server.step(|exchange, cx| exchange.drain(has_partial, cx));
    }
}

#[test]
fn who_expects_100_continue_gets_a_head_of_its_own() {
    let (mut server, said, effect) = Server::asked(&request("POST", "/echo", &[("expect", "100-continue")]), false);
    assert!(said.is_empty() && matches!(effect, Effect::Nothing), "{said} {effect:?}");
    assert_eq!((&*server.head(), server.output.is_interim), (":status 100\n", true));
    let _ = server.receive(b"5");
    let (said, _) = server.end_of_input();
    assert_eq!((&*said, server.output.is_interim), ("5", false));
    assert!(server.head().starts_with(":status 200\n") && server.ends());
}

fn question(fields: &FieldList, has_ended: bool) -> (Server, Box<Question>) {
    let mut server = Server::new();
    server.rules.has_application = true;
    let effect = server.receive_head(fields, has_ended).1;
    let effect = if has_ended {
        effect
    } else {
        assert!(matches!(effect, Effect::Nothing), "{effect:?}");
        let _ = server.receive(b"bo");
        let _ = server.receive(b"dy");
        server.end_of_input().1
    };
    let Effect::Ask(question) = effect else { panic!("{effect:?}") };
    (server, question)
}

#[test]
fn an_application_is_asked_and_answers() {
    let own = [("cookie", "a=1"), ("origin", "https://a.example"), ("cookie", "b=2")];
    let (mut server, question) = question(&request("POST", "/bids/1?x=%20", &own), false);
    assert_eq!((&*question.method, &*question.path, &*question.body), ("POST", "/bids/1", &b"body"[..]));
    let fields: Vec<_> = question.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(fields, [("origin", "https://a.example"), ("host", "a.example"), ("cookie", "a=1; b=2")]);
    assert!(question.is_tls);
    let fields = [("Set-Cookie".into(), "c=3".into()), ("Connection".into(), "close".into())];
    let _ = server.step(|exchange, cx| {
        assert!(exchange.respond(201, "text/html", &fields, 2, cx));
        cx.output.bytes.extend_from_slice(b"<p");
        Effect::Answered
    });
    let usual = "x-content-type-options nosniff\ncache-control no-store\nreferrer-policy no-referrer\n\
                 cross-origin-opener-policy same-origin\ncross-origin-resource-policy same-origin\n";
    let expected = format!(":status 201\ncontent-type text/html\n{usual}set-cookie c=3\ncontent-length 2\n");
    assert_eq!(server.head(), expected);
    assert!(server.ends());
}

#[test]
fn an_application_that_does_not_answer_is_answered_for() {
    let (mut server, _) = question(&request("HEAD", "/page", &[]), true);
    assert!(matches!(server.expire().1, Effect::Cancel));
    let (said, effect) = server.step(|exchange, cx| exchange.not_responded(true, false, cx));
    assert!(said.is_empty() && matches!(effect, Effect::Answered), "{said} {effect:?}");
    assert!(server.head().starts_with(":status 503\n") && server.head().contains("retry-after 1\n"));
    // Another site's page may not change anything.
    let mut server = Server::new();
    server.rules.has_application = true;
    let (said, _) = server.receive_head(&request("POST", "/page", &[("origin", "https://b.example")]), true);
    assert!(said.contains("forbidden") && server.head().starts_with(":status 403\n"), "{said}");
    assert!(!server.head().contains("allow-origin"));
    let mut server = Server::new();
    (server.rules.has_application, server.is_draining) = (true, true);
    let (said, _) = server.receive_head(&request("GET", "/page", &[]), true);
    assert!(said.contains("draining") && server.head().starts_with(":status 503\n"), "{said}");
}

#[test]
fn over_http1_the_end_of_the_input_is_the_event_loops() {
    let mut server = Server::new();
    for part in [&b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"[..], b"12"] {
        assert!(matches!(server.receive(part).1, Effect::Nothing));
    }
    let (said, effect) = server.end_of_input();
    assert!(said.is_empty() && matches!(effect, Effect::Nothing), "{said} {effect:?}");
    assert!(server.receive(b"345").0.ends_with("\r\n\r\n12345"));
}
