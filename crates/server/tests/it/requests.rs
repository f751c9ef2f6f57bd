//! Requests and answers, one by one.

use crate::harness::client::{Client, Frame, Kind};
use crate::harness::http::Http;
use crate::harness::{Subject, until, until_idle};
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::receipt::Receipt;
use std::net::Shutdown;

#[test]
fn publishing_may_bring_what_is_pending() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let start = server.stats().cursor;
    http.publish("b", "1");
    let reply = http.post(&format!("/publish?channel=a&channel=b&after={start}"), "{ \"x\":\n2 }").body;
    let epoch = start.split('.').next().unwrap();
    let expected = format!(
        "[[\"msg\",\"b\",\"{epoch}.1\",1],[\"msg\",\"a\",\"{epoch}.2\",{{ \"x\": 2 }}],[\"cursor\",\"{epoch}.2\"]]"
    );
    assert_eq!(reply, expected);
    assert_eq!(http.post("/publish?channel=a", "{").status, 400);
    http.send("POST /publish?channel=a HTTP/1.1\r\nContent-Type: text/plain; x=y\r\nContent-Length: 4\r\n\r\n\"a\n<");
    assert_eq!(http.response().body, format!("[\"cursor\",\"{epoch}.3\"]"));
    assert!(http.get(&format!("/poll?channel=a&after={epoch}.2")).body.contains("\"\\\"a\\n<\""));
}

#[test]
fn echo_and_ping_are_answered() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    assert_eq!(http.post("/echo", "as it\ncame").body, "as it\ncame");
    let mut client = Client::open(server.address(), Kind::WebSocket, "");
    client.send("[\"echo\",{\"x\": [1]}]");
    client.send("[\"ping\",18446744073709551615]");
    client.send("[\"poll\",\"\"]");
    client.send("[\"sub\",\"no channel\"]");
    client.send("no frame");
    assert_eq!(client.next(), Some(Frame::Echo("{\"x\": [1]}".into())));
    assert_eq!(client.next(), Some(Frame::Pong(u64::MAX)));
    for code in ["bad-frame", "bad-channel", "bad-frame"] {
        assert_eq!(client.next(), Some(Frame::Error(code.into())));
    }
    client.send("[\"ping\",2]");
    assert_eq!(client.next(), Some(Frame::Pong(2)), "it goes on after errors");
}

#[test]
fn methods_are_told_apart() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let health = http.head("/healthz");
    assert_eq!((health.status, health.head.contains("Content-Length: 3\r\n")), (200, true));
    let refused = http.head("/poll?channel=a");
    assert_eq!((refused.status, refused.head.contains("Allow: GET\r\n")), (405, true));
    let refused = http.get("/publish?channel=a");
    assert_eq!((refused.status, refused.head.contains("Allow: POST\r\n")), (405, true));
    http.send("OPTIONS /publish HTTP/1.1\r\nOrigin: o\r\n\r\n");
    assert_eq!(http.response().status, 204);
    // The connection is still in step.
    assert_eq!(http.get("/healthz").body, "ok\n");
    assert_eq!(http.get("/what").status, 404);
}

#[test]
fn an_old_client_is_answered_and_closed() {
    let server = Subject::start(1, |_| {});
    for fields in ["", "Connection: keep-alive\r\n", "Expect: 100-continue\r\n"] {
        let mut http = Http::connect(server.address());
        http.send(&format!("POST /echo HTTP/1.0\r\n{fields}Content-Length: 2\r\n\r\n"));
        http.send("ab");
        let answer = http.response();
        assert_eq!((answer.status, &*answer.body, answer.head.contains("Connection: close\r\n")), (200, "ab", true));
        http.expect_end();
    }
}

#[test]
fn bodies_come_in_any_pieces() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    http.send("POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(http.response().status, 100);
    http.send("a");
    http.send("bc");
    assert_eq!(http.response().body, "abc");
    let chunked = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: t\r\n\r\n";
    for byte in chunked.chars() {
        http.send(&byte.to_string());
    }
    assert_eq!(http.response().body, "abc");
    http.send(&format!("{chunked}{chunked}GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"));
    assert_eq!([http.response().body, http.response().body, http.response().body], ["abc", "abc", "ok\n"]);
    http.expect_end();
}

/// Requests behind a held poll wait, also when it is answered by a publication that is in the same bytes elsewhere.
#[test]
fn requests_behind_a_held_poll_wait_for_it() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let mut publisher = Http::connect(server.address());
    for round in 1..=20 {
        let start = server.stats().cursor;
        let poll = format!("GET /poll?channel=a&after={start}&wait=20 HTTP/1.1\r\n\r\n");
        let head = "POST /echo HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
        http.send(&format!("{poll}{head}ec"));
        until("the poll is held", || server.stats().held_polls == 1);
        http.send("ho");
        publisher.publish("a", "1");
        assert!(http.response().body.contains("\"msg\""), "round {round}");
        assert_eq!(http.response().body, "echo");
    }
    assert_eq!(server.stats().held_polls, 0);
}

/// A poll that was held too long is answered from where it stood, and two polls in one write are both held.
#[test]
fn polls_in_one_write_are_held_one_after_the_other() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let poll = "GET /poll?channel=a&wait=0.2 HTTP/1.1\r\n\r\n";
    http.send(&poll.repeat(3));
    for _ in 0..3 {
        assert_eq!(http.response().body, format!("[[\"cursor\",\"{}\"]]", server.stats().cursor));
    }
}

/// The end of a connection may come together with its last bytes; nothing else says so again.
#[test]
fn an_end_right_behind_a_request_is_seen() {
    let server = Subject::start(1, |_| {});
    let mut busy = Http::connect(server.address());
    for target in ["/sse?channel=a", "/stream?channel=a", "/poll?channel=a&wait=60"] {
        for _ in 0..20 {
            // The loop has something to do meanwhile, so that it finds bytes and end together.
            busy.send(&"GET /stats HTTP/1.1\r\n\r\n".repeat(100));
            let mut http = Http::connect(server.address());
            http.send(&format!("GET {target} HTTP/1.1\r\n\r\n"));
            http.socket.shutdown(Shutdown::Write).unwrap();
            (0..100).for_each(|_| assert_eq!(busy.response().status, 200));
        }
    }
    drop(busy);
    until_idle(&server);
    assert_eq!(server.stats().accepted, 61);
    assert_eq!(server.stats().closed_timeout, 0);
}

/// Who listens where somebody listens already would take half of the other's connections.
#[test]
fn a_port_has_one_server() {
    let server = Subject::start(2, |_| {});
    let config = pushlab_server::Config::new(server.address());
    assert!(matches!(pushlab_server::Server::start(config), Err(pushlab_server::ServerError::Listen { .. })));
}

/// A server with descriptor tables of its own keeps nobody else's sockets open.
#[test]
fn a_server_holds_no_foreign_sockets() {
    let one = Subject::start(1, |_| {});
    let client = Client::open(one.address(), Kind::Sse, "channel=a");
    let _other = Subject::start(3, |_| {});
    drop(client);
    until_idle(&one);
}

#[test]
fn receipts_are_marked_wherever_publications_and_echoes_come_in() {
    const DATA: &str = r#"{"stamp":"~AAAAAAAAAAAAAAAAAA~!.........!","text":"!.........!"}"#;
    let before = monotonic_ns();
    let server = Subject::start(1, |config| config.mark_receipts = true);
    let mut http = Http::connect(server.address());
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut pushed = Client::open(server.address(), Kind::Sse, "channel=a");
    http.publish("a", DATA);
    let by_post = client.message().2;
    client.send(&format!("[\"pub\",\"a\",{DATA}]"));
    let by_frame = client.message().2;
    client.send(&format!("[\"echo\",{DATA}]"));
    let Some(Frame::Echo(echo)) = client.next() else { panic!("no echo") };
    let posted = http.post("/echo", DATA).body;
    let mut last = before;
    for text in [&by_post, &by_frame, &echo, &posted] {
        let receipt = Receipt::find(text.as_bytes()).unwrap();
        assert!((last / 100 * 100..=monotonic_ns()).contains(&receipt.instant_ns), "{text}");
        last = receipt.instant_ns;
        let mark = String::from_utf8(receipt.encode().to_vec()).unwrap();
        assert_eq!(text.replacen(&mark, "!.........!", 1), DATA, "only the first place is filled");
    }
    assert_eq!((pushed.message().2, pushed.message().2), (by_post, by_frame), "one mark for everybody");
    http.publish("a", "{\"no\":\"place!\"}");
    assert_eq!(client.message().2, "{\"no\":\"place!\"}");
}

#[test]
fn places_for_receipts_are_passed_on_untouched_unless_they_are_wanted() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    http.publish("a", "\"!.........!\"");
    assert_eq!(client.message().2, "\"!.........!\"");
    assert_eq!(http.post("/echo", "\"!.........!\"").body, "\"!.........!\"");
}
