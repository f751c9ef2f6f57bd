//! Requests and answers, one by one.

use crate::harness::client::{Client, Frame, Kind};
use crate::harness::http::Http;
use crate::harness::{Subject, until, until_idle};
use pushlab_os::clock::monotonic_ns;
use pushlab_server::Guests;
use pushlab_wire::receipt::Receipt;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

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
    http.send("POST /publish?channel=a HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain; x=y\r\nContent-Length: 4\r\n\r\n\"a\n<");
    assert_eq!(http.response().body, format!("[\"cursor\",\"{epoch}.3\"]"));
    assert!(http.get(&format!("/poll?channel=a&after={epoch}.2")).body.contains("\"\\\"a\\n<\""));
}

/// An echo as an event: it is the only one of its stream, on one line.
#[test]
fn an_echo_comes_back_as_an_event() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    http.send("GET /sse/echo?data=%7B%22a%22%3A%0A1%7D HTTP/1.1\r\nHost: h\r\n\r\n");
    let answer = http.response();
    assert_eq!((answer.status, answer.body.as_str()), (200, "data:{\"a\": 1}\n\n"), "{}", answer.head);
    assert!(answer.head.to_ascii_lowercase().contains("content-type: text/event-stream"), "{}", answer.head);
    for query in ["", "?data=", "?data=x", "?data=1%0A2"] {
        http.send(&format!("GET /sse/echo{query} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(http.response().status, 400, "{query}");
    }
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
    http.send("OPTIONS /publish HTTP/1.1\r\nHost: h\r\nOrigin: o\r\n\r\n");
    let preflight = http.response();
    assert_eq!(
        (preflight.status, preflight.head.contains("Allow-Headers: authorization, cache-control, ")),
        (204, true)
    );
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
    for length in ["", "Content-Length: 2\r\n"] {
        let mut http = Http::connect(server.address());
        http.send(&format!("POST /echo HTTP/1.0\r\n{length}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"));
        let refused = http.response();
        assert_eq!((refused.status, refused.body.contains("HTTP/1.0")), (400, true), "{}", refused.body);
        http.expect_end();
    }
}

#[test]
fn bodies_come_in_any_pieces() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    http.send("POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    http.expect_continue();
    http.send("a");
    http.send("bc");
    assert_eq!(http.response().body, "abc");
    let chunked = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: t\r\n\r\n";
    for byte in chunked.chars() {
        http.send(&byte.to_string());
    }
    assert_eq!(http.response().body, "abc");
    http.send(&format!("{chunked}{chunked}GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
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
        let poll = format!("GET /poll?channel=a&after={start}&wait=20 HTTP/1.1\r\nHost: h\r\n\r\n");
        let head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n";
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
    let poll = "GET /poll?channel=a&wait=0.2 HTTP/1.1\r\nHost: h\r\n\r\n";
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
            busy.send(&"GET /stats HTTP/1.1\r\nHost: h\r\n\r\n".repeat(100));
            let mut http = Http::connect(server.address());
            http.send(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
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

/// The same request means the same however its bytes are cut: its head counts, too, when its body comes later.
#[test]
fn a_body_that_comes_later_leaves_the_head_what_it_is() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let start = server.stats().cursor;
    http.publish("a", "1");
    for is_cut in [false, true] {
        let mut stream = Http::connect(server.address());
        let head =
            format!("GET /sse?channel=a HTTP/1.1\r\nHost: h\r\nLast-Event-ID: {start}\r\nContent-Length: 2\r\n\r\n");
        let requests = server.stats().requests;
        if is_cut {
            stream.send(&head);
            until("the head has been read", || server.stats().requests > requests);
            stream.send("xy");
        } else {
            stream.send(&(head + "xy"));
        }
        until("what was missed comes", || {
            assert!(stream.fill());
            String::from_utf8_lossy(&stream.buffer).contains("data:[\"msg\",\"a\",1]")
        });
    }
}

#[test]
fn a_request_names_its_host_once() {
    let server = Subject::start(1, |_| {});
    for (hosts, version, status) in [
        ("", "1.1", 400),
        ("Host: a\r\nHost: a\r\n", "1.1", 400),
        ("Host: a\r\nhost: b\r\n", "1.0", 400),
        ("Host: a\r\n", "1.1", 200),
        ("Host:\r\n", "1.1", 200),
        ("", "1.0", 200),
        ("Host: a b\r\n", "1.1", 400),
        ("Host: b@a\r\n", "1.0", 400),
    ] {
        let mut http = Http::connect(server.address());
        http.send(&format!("GET /healthz HTTP/{version}\r\n{hosts}\r\n"));
        assert_eq!(http.response().status, status, "{hosts:?} {version}");
    }
    for hosts in [&b"Host: \xff"[..], b"Host: a\r\nHost: \xff", b"Host: \xff\r\nHost: a"] {
        let mut http = Http::connect(server.address());
        http.try_send(&[b"GET /healthz HTTP/1.1\r\n", hosts, b"\r\n\r\n"].concat()).unwrap();
        assert_eq!(http.response().status, 400, "{}", hosts.escape_ascii());
    }
}

/// As to a proxy (RFC 9112, section 3.2.2): the host that counts is that of the target.
#[test]
fn a_target_may_be_a_whole_address() {
    let server = Subject::start(1, |config| {
        config.site.is_loopback_only = true;
        config.site.guests = Guests::default();
    });
    let mut http = Http::connect(server.address());
    for (target, host, status) in [
        ("http://127.0.0.1:8000/healthz", "127.0.0.1:8000", 200),
        ("HTTP://localhost/poll?channel=a", "localhost", 200),
        ("http://localhost/poll?channel=a", "evil.example", 200),
        ("http://evil.example/poll?channel=a", "localhost", 403),
        ("http://localhost?channel=a", "localhost", 404),
    ] {
        http.send(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(http.response().status, status, "{target}");
    }
}

/// Fields that the server goes by are not passed over where they are no text.
#[test]
fn fields_that_are_no_text_are_still_fields() {
    let server = Subject::start(1, |_| {});
    for (field, status) in [
        ("Content-Type: text/plain; charset=\u{ff}", 400),
        ("Connection: \u{ff}, close", 400),
        ("Accept-Encoding: gzip, \u{ff}", 400),
        ("User-Agent: \u{ff}", 200),
        ("Cookie: a=\u{ff}", 200),
        // Whoever sends it takes the server to undo it.
        ("Content-Encoding: br", 501),
        ("Content-Encoding: identity", 200),
    ] {
        let request = format!("POST /publish?channel=a HTTP/1.1\r\nHost: h\r\n{field}\r\nContent-Length: 1\r\n\r\n1");
        let latin_1: Vec<u8> = request.chars().map(|c| c as u8).collect();
        let mut http = Http::connect(server.address());
        http.try_send(&latin_1).unwrap();
        assert_eq!(http.response().status, status, "{field}");
    }
}

/// Whoever passes a request on may take such bytes for white space, or not.
#[test]
fn only_spaces_and_tabs_are_white_space() {
    let server = Subject::start(1, |_| {});
    for (field, status) in [
        ("Content-Length: \u{a0}5", 400),
        ("Content-Length: +5", 400),
        ("Transfer-Encoding: \u{a0}chunked", 501),
        ("Content-Length: \t5 ", 200),
    ] {
        let mut http = Http::connect(server.address());
        http.send(&format!("POST /echo HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\nabcde"));
        assert_eq!(http.response().status, status, "{field}");
    }
    let mut http = Http::connect(server.address());
    http.send("GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: \u{a0}close\r\n\r\n");
    assert_eq!(http.response().body, "ok\n");
    assert_eq!(http.get("/healthz").body, "ok\n", "it goes on");
}

/// What the request before was is no matter to the answer to one that is not understood.
#[test]
fn a_refusal_has_its_body_also_behind_a_head_request() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    assert_eq!(http.head("/healthz").status, 200);
    http.send("no request\r\n\r\n");
    let refused = http.response();
    assert_eq!((refused.status, refused.body.contains("\"bad-request\"")), (400, true), "{}", refused.body);
}

/// Connections that end in every way while others take their places leave nothing that keeps the event loop busy.
#[test]
fn connections_that_come_and_go_leave_a_quiet_loop() {
    let server = Subject::start(1, |_| {});
    for round in 0..20 {
        let mut peers: Vec<Http> = (0..30).map(|_| Http::connect(server.address())).collect();
        for (i, http) in peers.iter_mut().enumerate() {
            let request = [
                "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n",
                "GET /poll?channel=a&wait=60 HTTP/1.1\r\nHost: h\r\n\r\n",
                "GET /sse?channel=a HTTP/1.1\r\nHost: h\r\n\r\n",
                "half",
            ];
            http.send(request[(i + round) % 4]);
            if i % 3 > 0 {
                http.socket.shutdown(if i % 3 == 1 { Shutdown::Write } else { Shutdown::Both }).unwrap();
            }
        }
        if round % 2 == 0 {
            Http::connect(server.address()).publish("a", "1");
        }
    }
    // The last of them may still wait to be accepted.
    until("all have come", || server.stats().accepted == 20 * 30 + 10);
    until_idle(&server);
    // The clock turns ten times a second.
    let (turns, ticks) = server.turns_during_a_poll();
    assert!(turns <= 2 * ticks + 10, "{turns} turns in {ticks} ticks of the clock");
}

/// A server in somebody's process leaves the process's descriptors alone, unless it is told that it may have tables of
/// its own.
#[test]
fn event_loops_share_the_descriptors_of_their_process() {
    let (_reader, writer) = std::io::pipe().unwrap();
    let ours = format!("/fd/{}", writer.as_raw_fd());
    for has_own in [false, true] {
        let server = Subject::start(2, |c| c.has_own_descriptor_tables = has_own);
        let is_loop = |task: &Path| {
            let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
            name.starts_with("pushlab-loop")
        };
        // Servers of other tests have loops too, which come and go, and no tables of their own.
        let tasks = || std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let lacks_ours = |task: &PathBuf| !PathBuf::from(format!("{}{ours}", task.display())).exists();
        let lacking = || tasks().filter(|task| is_loop(task) && lacks_ours(task) && task.exists()).count();
        assert!(tasks().filter(|task| is_loop(task)).count() >= 2);
        if has_own {
            until("two event loops have tables of their own", || lacking() >= 2);
        } else {
            until("all event loops share the table", || lacking() == 0);
        }
        drop(server);
    }
}
