//! Requests and answers of any size, on connections that go on whatever became of one.

use crate::application::start;
use crate::harness::client::{Client, Kind};
use crate::harness::http::Http;
use crate::harness::http2::{END_HEADERS, END_STREAM, Http2, INITIAL_WINDOW_SIZE, Raw, get, kind};
use crate::harness::{Subject, until, until_idle};
use pushlab_http2::frame::Code;
use pushlab_wire::fields::FieldList;
use std::time::Duration;

fn post(target: &str, length: usize, body: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[test]
fn a_publication_may_come_in_many_frames() {
    let server = Subject::start(1, |_| {});
    let http2 = Http2::connect(&server, false);
    let mut client = Client::open(http2.streams(), Kind::Sse, "channel=a");
    // A byte more than the window in which it begins.
    let data = format!("\"{}\"", "x".repeat(65_534));
    for size in [1000, 16_384, 65_536] {
        let mut http = http2.ask(&post("/publish?channel=a", data.len(), ""));
        for piece in data.as_bytes().chunks(size) {
            http.try_send(piece).unwrap();
        }
        assert_eq!(http.response().status, 200);
        assert!(client.message().2 == data);
    }
    // So do frames of a WebSocket, which have no end.
    let mut socket = Client::open(http2.streams(), Kind::WebSocket, "");
    for n in 0..300 {
        socket.send(&format!("[\"pub\",\"a\",\"{n:01000}\"]"));
    }
    assert!((0..300).all(|n| client.message().2 == format!("\"{n:01000}\"")));
    // One that does not say how long it is ends with its stream; empty frames change nothing.
    let mut raw = Raw::connect(&server, &[]);
    let block = raw.block("POST", "/publish?channel=a", &[]);
    raw.frame(kind::HEADERS, END_HEADERS, 1, &block);
    for piece in [&b"\"in "[..], b"", b"parts\"", b""] {
        raw.frame(kind::DATA, 0, 1, piece);
    }
    raw.frame(kind::DATA, END_STREAM, 1, b"");
    assert_eq!(client.message().2, "\"in parts\"");
    // So does one behind which fields stand.
    let block = raw.block("POST", "/publish?channel=a", &[]);
    raw.frame(kind::HEADERS, END_HEADERS, 3, &block);
    raw.frame(kind::DATA, 0, 3, b"2");
    let mut trailers = Vec::new();
    let mut fields = FieldList::default();
    fields.push(b"x-checksum", b"1");
    raw.encoder.encode(fields.iter(), &mut trailers);
    raw.frame(kind::HEADERS, END_HEADERS | END_STREAM, 3, &trailers);
    assert_eq!(client.message().2, "2");
}

#[test]
fn a_client_that_waits_for_100_continue_gets_it() {
    let server = Subject::start(1, |_| {});
    let http2 = Http2::connect(&server, false);
    let mut http = http2.ask("POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    assert_eq!(http.stream().head().map(|(status, _)| status), Some(100));
    http.send("x");
    let answer = http.response();
    assert_eq!((answer.status, &*answer.body), (200, "x"));
}

#[test]
fn a_body_beyond_the_limit_is_refused_and_the_connection_goes_on() {
    let server = Subject::start(1, |c| c.limits.max_body_bytes = 10);
    let http2 = Http2::connect(&server, false);
    let mut polls = http2.get("/poll?channel=a&wait=60");
    for _ in 0..3 {
        assert_eq!(http2.ask(&post("/echo", 10, "1234567890")).response().status, 200);
        let refused = http2.ask(&post("/echo", 11, "")).response();
        assert_eq!((refused.status, refused.body.contains("body-too-large")), (413, true));
    }
    // Where the length is not told, it is noticed later.
    let mut raw = Raw::connect(&server, &[]);
    let block = raw.block("POST", "/echo", &[]);
    raw.frame(kind::HEADERS, END_HEADERS, 1, &block);
    raw.frame(kind::DATA, 0, 1, b"1234567890");
    raw.frame(kind::DATA, 0, 1, b"1");
    let (_, _, _, head) = raw.next_of(kind::HEADERS);
    assert_eq!(raw.decode(&head).get(":status"), Some(&b"413"[..]));
    let (_, _, stream, code) = raw.next_of(kind::RST_STREAM);
    assert_eq!((stream, code), (1, Code::NoError.number().to_be_bytes().to_vec()), "it need not send the rest");
    let healthy = raw.get(3, "/healthz");
    raw.send(&healthy).unwrap();
    assert_eq!(raw.next_of(kind::HEADERS).2, 3);
    Http::connect(server.address()).publish("a", "1");
    assert_eq!(polls.response().status, 200);
}

/// What was on its way when its stream was refused is no offence, in frames of any size.
#[test]
fn what_comes_behind_a_refusal_is_passed_over() {
    let server = Subject::start(1, |c| c.limits.max_body_bytes = 10);
    let mut raw = Raw::connect(&server, &[]);
    for stream in (1..40).step_by(2) {
        let block = raw.block("POST", "/echo", &[("content-length", "64000")]);
        raw.frame(kind::HEADERS, END_HEADERS, stream, &block);
        for n in 0..64 {
            raw.frame(kind::DATA, u8::from(n == 63), stream, &[b'x'; 1000]);
        }
        let (_, _, answered, head) = raw.next_of(kind::HEADERS);
        assert_eq!((answered, raw.decode(&head).get(":status")), (stream, Some(&b"413"[..])));
    }
    let healthy = raw.get(41, "/healthz");
    raw.send(&healthy).unwrap();
    assert_eq!(raw.next_of(kind::HEADERS).2, 41);
}

#[test]
fn a_head_beyond_the_limit_is_refused_and_the_connection_goes_on() {
    let server = Subject::start(1, |c| c.limits.max_head_bytes = 500);
    let http2 = Http2::connect(&server, false);
    for round in 0..3 {
        for (size, status) in [(100, 200), (400, 431), (5_000, 431), (16_000, 431)] {
            let head = format!("GET /healthz HTTP/1.1\r\nHost: h\r\nX-{round}: {}\r\n\r\n", "y".repeat(size));
            assert_eq!(http2.ask(&head).response().status, status, "{size} bytes");
        }
    }
    assert_eq!(http2.farewells(), []);
    let mut raw = Raw::connect(&server, &[]);
    for (stream, count, status) in [(1, 3, "200"), (3, 64, "431")] {
        let block = raw.block("GET", "/healthz", &vec![("x", ""); count]);
        raw.frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, &block);
        let (_, _, _, head) = raw.next_of(kind::HEADERS);
        assert_eq!(raw.decode(&head).get(":status"), Some(status.as_bytes()), "{count} fields");
    }
}

#[test]
fn a_length_that_does_not_agree_resets_the_stream() {
    let server = Subject::start(1, |_| {});
    let mut raw = Raw::connect(&server, &[]);
    for (stream, body) in [(1, &b"12"[..]), (3, b"1234")] {
        let block = raw.block("POST", "/publish?channel=a", &[("content-length", "3")]);
        raw.frame(kind::HEADERS, END_HEADERS, stream, &block);
        raw.frame(kind::DATA, END_STREAM, stream, body);
        let (_, _, reset, code) = raw.next_of(kind::RST_STREAM);
        assert_eq!((reset, code), (stream, Code::Protocol.number().to_be_bytes().to_vec()));
    }
    // None where one is said.
    let block = raw.block("POST", "/publish?channel=a", &[("content-length", "3")]);
    raw.frame(kind::HEADERS, END_HEADERS | END_STREAM, 5, &block);
    assert_eq!(raw.next_of(kind::RST_STREAM).2, 5);
    let healthy = raw.get(7, "/healthz");
    raw.send(&healthy).unwrap();
    assert_eq!(raw.next_of(kind::HEADERS).2, 7);
    assert_eq!(server.stats().received, 0);
    until("nothing is left of them", || server.stats().open == 1);
}

#[test]
fn the_answer_to_head_has_no_body() {
    for is_secure in [false, true] {
        let (server, _) = start(1, is_secure, |_| {});
        let http2 = Http2::connect(&server, is_secure);
        for target in ["/", "/healthz", "/nothing", "/static"] {
            let page = http2.get(target).response();
            let head = http2.ask(&get(target).replace("GET", "HEAD")).response();
            assert_eq!((head.status, head.head), (page.status, page.head));
            assert_eq!((head.body.is_empty(), page.body.is_empty()), (true, false));
        }
        let empty = http2.get("/empty").response();
        assert_eq!((empty.status, empty.body.is_empty()), (204, true));
    }
}

/// Some in one write, some in more, some larger than all windows.
#[test]
fn large_answers_arrive_whole_side_by_side() {
    for is_secure in [false, true] {
        let (server, _) = start(2, is_secure, |c| c.limits.max_queue_bytes = 100_000);
        let http2 = Http2::connect(&server, is_secure);
        let sizes = [1_000_000, 3, 65_536, 65_537, 70_000, 300_000];
        let mut answers: Vec<_> =
            sizes.into_iter().map(|bytes| (bytes, http2.get(&format!("/large?bytes={bytes}")))).collect();
        let mut statics: Vec<Http> = (0..2).map(|_| http2.get("/static")).collect();
        for (size, http) in &mut answers {
            let answer = http.response();
            assert_eq!((answer.status, answer.body.len()), (200, *size));
            assert!(answer.head.contains(&format!("content-length: {size}\r\n")), "{}", answer.head);
            assert!(answer.body.bytes().all(|byte| byte == b'x'));
        }
        for http in &mut statics {
            let answer = http.response();
            assert!(answer.body.len() == 1 << 20 && answer.body.bytes().all(|byte| byte == b's'));
        }
        until("nothing is queued", || server.stats().queued_bytes == 0 && server.stats().open == 1);
        drop((answers, statics, http2));
        until_idle(&server);
    }
}

/// It may wait for the peer's window as long as any answer for its peer.
#[test]
fn an_answer_waits_for_its_window() {
    let (server, _) = start(1, false, |c| c.limits.take_timeout = Duration::from_secs(1));
    let mut raw = Raw::connect(&server, &[(INITIAL_WINDOW_SIZE, 0)]);
    let mut is_taken = |stream, window: u32| {
        let ask = raw.get(stream, "/large?bytes=70000");
        raw.send(&ask).unwrap();
        assert_eq!(raw.next_of(kind::HEADERS).2, stream);
        until("the answer is queued", || server.stats().queued_bytes == 70_000);
        raw.frame(kind::WINDOW_UPDATE, 0, 0, &window.to_be_bytes());
        raw.frame(kind::WINDOW_UPDATE, 0, stream, &window.to_be_bytes());
        let mut size = 0;
        loop {
            let (kind, flags, _, payload) = raw.next().unwrap();
            if kind == kind::RST_STREAM {
                assert_eq!(payload, Code::Cancel.number().to_be_bytes());
                return false;
            }
            size += if kind == kind::DATA { payload.len() } else { 0 };
            if flags & END_STREAM != 0 {
                assert_eq!(size, 70_000);
                return true;
            }
        }
    };
    assert!(is_taken(1, 70_000));
    assert!(!is_taken(3, 69_999));
    until("the other is counted", || server.stats().closed_timeout == 1 && server.stats().queued_bytes == 0);
    assert!(is_taken(5, 70_000));
}

#[test]
fn a_request_may_be_taken_back_while_the_application_works() {
    let (server, pages) = start(1, false, |_| {});
    let http2 = Http2::connect(&server, false);
    for round in 1..=3 {
        let mut slow = http2.get(&format!("/slow?is=a{round}"));
        until("it works", || pages.begun() == 2 * round - 1);
        slow.stream().reset(Code::Cancel);
        until("nobody waits", || server.stats().awaiting == 0 && server.stats().open == 1);
        pages.open(&format!("a{round}"));
        // The answer of the one does not become that of the next in its place.
        assert_eq!(http2.get("/name?is=b").response().body, "b");
    }
    drop(http2);
    until_idle(&server);
}
