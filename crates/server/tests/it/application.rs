//! What an application is asked and answers, and the channels that are its own.

use crate::harness::client::{Client, Frame, Kind, all_kinds};
use crate::harness::http::Http;
use crate::harness::{PATIENCE, Subject, until, until_idle};
use pushlab_application::{Application, Body, Publisher, Request, Response};
use pushlab_server::{Config, Stats, THREADS, Tick};
use pushlab_wire::channel::Channel;
use pushlab_wire::codes::ErrorCode;
use socket2::SockRef;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

static LARGE: [u8; 1 << 20] = [b's'; 1 << 20];

/// An application with a page for each thing that can happen.
#[derive(Default)]
pub struct Pages {
    publisher: OnceLock<Publisher>,
    /// Names that `/slow` waits for.
    opened: Mutex<BTreeSet<String>>,
    gate: Condvar,
    begun: AtomicUsize,
}

impl Pages {
    pub fn open(&self, name: &str) {
        self.opened.lock().unwrap().insert(name.to_owned());
        self.gate.notify_all();
    }

    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

impl Application for Pages {
    fn begin(&self, publisher: Publisher) {
        assert!(self.publisher.set(publisher).is_ok(), "it begins once");
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let text = |text: String| Some(Response::new(200, "text/plain", Body::Own(text.into_bytes())));
        let parameter = |name| request.parameter(name).unwrap_or("");
        match &*request.path {
            "/" => Some(Response::new(200, "text/html", Body::Static(b"<title>page</title>")).with("X-Own", "yes")),
            "/request" => text(format!("{request:?}")),
            "/name" => text(parameter("is").to_owned()),
            "/slow" | "/away" => {
                let opened = self.opened.lock().unwrap();
                // A test that fails before it opens the gate ends all the same.
                let is_shut = |opened: &mut BTreeSet<String>| !opened.contains(parameter("is"));
                drop(self.gate.wait_timeout_while(opened, 2 * PATIENCE, is_shut).unwrap());
                text(parameter("is").to_owned())
            }
            "/large" => text("x".repeat(parameter("bytes").parse().unwrap())),
            "/static" => Some(Response::new(200, "text/plain", Body::Static(&LARGE))),
            "/publish-in" => {
                let cursor = self.publisher.get().unwrap().publish(parameter("channel"), "\"from within\"");
                text(cursor.unwrap().to_string())
            }
            "/empty" => Some(Response::new(204, "", Body::Static(b"not sent"))),
            "/no-status" => Some(Response::new(99, "text/plain", Body::Static(b""))),
            "/refused" => Some(Response::error(ErrorCode::NameTaken, "somebody is called \"a\"")),
            "/panic" => panic!("on purpose"),
            _ => None,
        }
    }

    fn may_wait(&self, request: &Request) -> bool {
        request.path == "/away"
    }
}

pub fn start(cores: usize, is_secure: bool, change: impl FnOnce(&mut Config)) -> (Subject, Arc<Pages>) {
    let pages: Arc<Pages> = Arc::default();
    let server = Subject::start_either(is_secure, cores, |config| {
        config.application = Some(pages.clone());
        change(config);
    });
    (server, pages)
}

fn requests_are_answered(cores: usize, is_secure: bool) {
    let (server, _) = start(cores, is_secure, |_| {});
    // Several connections, so that each event loop has some.
    for _ in 0..4 * cores {
        let mut http = Http::connect(server.dial(is_secure));
        let page = http.get("/");
        assert_eq!((page.status, &*page.body), (200, "<title>page</title>"));
        for field in ["Content-Type: text/html", "X-Own: yes", "X-Content-Type-Options: nosniff", "Content-Length: 19"]
        {
            assert!(page.head.contains(&format!("{field}\r\n")), "{}", page.head);
        }
        for field in ["Cache-Control: no-store", "Referrer-Policy: no-referrer"] {
            assert!(page.head.contains(&format!("{field}\r\n")), "{}", page.head);
        }
        let head = http.head("/");
        assert_eq!((head.status, head.head), (200, page.head));
        let empty = http.get("/empty");
        assert_eq!((empty.status, empty.head.contains("Content-Length")), (204, false));
        let refused = http.get("/refused");
        let expected = "{\"error\":\"name-taken\",\"message\":\"somebody is called \\\"a\\\"\"}\n";
        assert_eq!((refused.status, &*refused.body), (409, expected));
        for (target, status, code) in [
            ("/nothing", 404, "unknown-path"),
            ("/%zz", 400, "bad-request"),
            ("/panic", 500, "internal-error"),
            ("/no-status", 500, "internal-error"),
        ] {
            let answer = http.get(target);
            assert_eq!(answer.status, status, "{target}");
            assert!(answer.body.contains(&format!("{{\"error\":\"{code}\"")), "{}", answer.body);
            assert!(answer.head.contains("X-Content-Type-Options: nosniff\r\n"), "{}", answer.head);
        }
        // What is the transports' stays theirs, and all of it was one connection.
        assert_eq!(http.get("/healthz").body, "ok\n");
    }
    until_idle(&server);
}

#[test]
fn requests_are_answered_on_one_core() {
    requests_are_answered(1, false);
}

#[test]
fn requests_are_answered_on_three_cores() {
    requests_are_answered(3, false);
}

#[test]
fn requests_are_answered_over_tls() {
    requests_are_answered(2, true);
}

#[test]
fn a_request_comes_whole_however_it_was_sent() {
    for is_secure in [false, true] {
        let (server, _) = start(1, is_secure, |_| {});
        let mut http = Http::connect(server.dial(is_secure));
        let head = "POST /%72equest?a=1&b=%20x+y&a HTTP/1.1\r\nHost: h\r\nX-Name:  a value \r\nx-name: other\r\n";
        let sized = format!("{head}Content-Length: 4\r\n\r\nbody");
        let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n");
        http.send(&sized);
        let whole = http.response().body;
        for part in [
            "method: \"POST\"",
            "path: \"/request\"",
            "query: [(\"a\", \"1\"), (\"b\", \" x y\"), (\"a\", \"\")]",
            "fields: [(\"host\", \"h\"), (\"x-name\", \"a value\"), (\"x-name\", \"other\"), (\"content-length\", \"4\")]",
            "body: [98, 111, 100, 121]",
            "peer: 127.0.0.1",
            &format!("is_tls: {is_secure}"),
        ] {
            assert!(whole.contains(part), "{part} is not in {whole}");
        }
        let length = ("\"content-length\", \"4\"", "\"transfer-encoding\", \"chunked\"");
        for (text, expected) in [(&sized, whole.clone()), (&chunked, whole.replace(length.0, length.1))] {
            for byte in text.chars() {
                http.send(&byte.to_string());
            }
            assert_eq!(http.response().body, expected);
        }
        http.send("POST /request HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
        http.expect_continue();
        http.send("x");
        assert!(http.response().body.contains("body: [120]"));
        let head = http.head("/request");
        assert_eq!(head.status, 200);
    }
}

#[test]
fn an_old_client_is_answered_and_closed() {
    let (server, _) = start(1, false, |_| {});
    let mut http = Http::connect(server.address());
    http.send("GET /name?is=old HTTP/1.0\r\n\r\n");
    let answer = http.response();
    assert_eq!((&*answer.body, answer.head.contains("Connection: close\r\n")), ("old", true));
    http.expect_end();
    until_idle(&server);
}

/// Answers leave in the order of the requests, whatever became of each.
#[test]
fn requests_behind_one_that_waits_are_answered_in_turn() {
    let (server, pages) = start(1, false, |_| {});
    let mut http = Http::connect(server.address());
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
    for round in 0..5 {
        let poll = get("/poll?channel=a&wait=0.1");
        let post = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n";
        let slow = format!("/slow?is={round}");
        http.send(
            &[&*get("/name?is=1"), &get(&slow), &get("/name?is=2"), &poll, &get("/nothing"), post, "ec"].concat(),
        );
        assert_eq!(http.response().body, "1");
        until("the second waits", || server.stats().awaiting == 1);
        http.send("ho");
        pages.open(&round.to_string());
        assert_eq!([http.response().body, http.response().body], [round.to_string(), "2".into()]);
        assert!(http.response().body.contains("\"cursor\""));
        assert_eq!([http.response().status, http.response().status], [404, 200]);
    }
    assert!(http.buffer.is_empty());
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let (server, pages) = start(1, false, |config| config.limits.max_body_bytes = 10);
    for head in ["Content-Length: 11\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nb\r\n"] {
        let mut http = Http::connect(server.address());
        http.send(&format!("POST /name?is=a HTTP/1.1\r\nHost: h\r\nOrigin: o\r\n{head}12345678901"));
        let answer = http.response();
        assert_eq!((answer.status, answer.head.contains("Access-Control")), (413, false), "{}", answer.head);
        http.expect_end();
    }
    assert_eq!(pages.begun(), 0);
    assert_eq!(Http::connect(server.address()).post("/name?is=a", "1234567890").status, 200);
}

/// Pages of other sites may use the transports, and read nothing of the application, not even that it failed.
#[test]
fn other_sites_are_let_to_the_transports_alone() {
    let (server, _) = start(1, false, |config| config.limits.max_waiting_requests = 4);
    let mut http = Http::connect(server.address());
    let mut ask = |method: &str, target: &str| {
        http.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: h\r\nOrigin: http://other\r\nContent-Length: 0\r\n\r\n"
        ));
        http.response()
    };
    for (method, target, status) in [
        ("GET", "/", 403),
        ("POST", "/name?is=a", 403),
        ("GET", "/nothing", 403),
        ("GET", "/%", 403),
        ("GET", "/panic", 403),
        ("OPTIONS", "/nothing", 403),
        ("OPTIONS", "/name", 403),
    ] {
        let answer = ask(method, target);
        assert_eq!((answer.status, answer.head.contains("Access-Control")), (status, false), "{method} {target}");
    }
    // What a page shows, loads or frames is not a link that somebody follows.
    let mut http = Http::connect(server.address());
    let mut fetch = |site: &str, mode: &str, dest: &str| {
        let fields = format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\nSec-Fetch-Dest: {dest}\r\n");
        http.send(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        http.response().status
    };
    for (site, mode, dest, status) in [
        ("cross-site", "navigate", "document", 200),
        ("none", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "no-cors", "script", 403),
        ("same-site", "no-cors", "empty", 403),
    ] {
        assert_eq!(fetch(site, mode, dest), status, "{site} {mode} {dest}");
    }
    assert!(ask("GET", "/healthz").head.contains("Access-Control-Allow-Origin: *\r\n"));
    let preflight = ask("OPTIONS", "/publish");
    assert_eq!((preflight.status, preflight.head.contains("Access-Control-Allow-Methods")), (204, true));
}

#[test]
fn transports_go_on_while_the_application_is_slow() {
    let (server, pages) = start(2, false, |_| {});
    let mut waiting: Vec<Http> = (0..2 * THREADS).map(|_| Http::connect(server.address())).collect();
    waiting.iter_mut().for_each(|http| http.send("GET /slow?is=a HTTP/1.1\r\nHost: h\r\n\r\n"));
    until("all threads are busy", || pages.begun() == THREADS && server.stats().awaiting == 2 * THREADS as i64);
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut http = Http::connect(server.address());
    for _ in 0..100 {
        let offset = http.publish("a", "1");
        assert_eq!(client.message().1, offset);
    }
    assert_eq!(server.stats().awaiting, 2 * THREADS as i64);
    pages.open("a");
    assert!(waiting.iter_mut().all(|http| http.response().body == "a"));
    drop((client, http, waiting));
    until_idle(&server);
}

/// Requests that may wait long have threads of their own: neither kind holds up the other.
#[test]
fn requests_that_may_wait_hold_up_no_others() {
    let (server, pages) = start(1, false, |_| {});
    for (round, slow, quick) in [(1, "/away?is=a", "/name?is=b"), (2, "/slow?is=c", "/away?is=a")] {
        let begun = pages.begun();
        let mut waiting: Vec<Http> = (0..2 * THREADS).map(|_| Http::connect(server.address())).collect();
        waiting.iter_mut().for_each(|http| http.send(&format!("GET {slow} HTTP/1.1\r\nHost: h\r\n\r\n")));
        until("all threads of a kind are busy", || {
            pages.begun() == begun + THREADS && server.stats().awaiting == 2 * THREADS as i64
        });
        let mut http = Http::connect(server.address());
        assert_eq!(http.get(quick).status, 200, "round {round}");
        assert_eq!(server.stats().awaiting, 2 * THREADS as i64, "they still wait");
        pages.open(&slow[slow.len() - 1..]);
        assert!(waiting.iter_mut().all(|http| http.response().status == 200));
        drop((http, waiting));
        until_idle(&server);
    }
}

/// The places of connections that have gone are given to others, who must not get the answers of those.
#[test]
fn who_leaves_before_the_answer_leaves_nothing_to_others() {
    let (server, pages) = start(1, false, |_| {});
    for round in 0..5 {
        let mut gone: Vec<Http> = (0..THREADS).map(|_| Http::connect(server.address())).collect();
        gone.iter_mut().for_each(|http| http.send(&format!("GET /slow?is=gone{round} HTTP/1.1\r\nHost: h\r\n\r\n")));
        until("all threads are busy", || pages.begun() == (round * 2 + 1) * THREADS);
        // Gone for both directions: who has only said all would still be answered.
        gone.iter().for_each(|http| SockRef::from(&http.socket).set_linger(Some(Duration::ZERO)).unwrap());
        drop(gone);
        until_idle(&server);
        let mut others: Vec<Http> = (0..THREADS).map(|_| Http::connect(server.address())).collect();
        for (n, http) in others.iter_mut().enumerate() {
            http.send(&format!("GET /name?is=other{n} HTTP/1.1\r\nHost: h\r\n\r\n"));
        }
        until("the others wait", || server.stats().awaiting == THREADS as i64);
        pages.open(&format!("gone{round}"));
        for (n, http) in others.iter_mut().enumerate() {
            assert_eq!(http.response().body, format!("other{n}"));
        }
        others.iter().for_each(|http| assert!(http.buffer.is_empty()));
        drop(others);
        until_idle(&server);
    }
}

#[test]
fn so_many_requests_wait_and_no_more() {
    let (server, pages) = start(1, false, |config| config.limits.max_waiting_requests = 2);
    let mut waiting = Vec::new();
    for count in 1..=THREADS + 2 {
        let mut http = Http::connect(server.address());
        http.send("GET /slow?is=a HTTP/1.1\r\nHost: h\r\n\r\n");
        let begun = count.min(THREADS);
        until("it waits", || pages.begun() == begun && server.stats().awaiting == count as i64);
        waiting.push(http);
    }
    let mut http = Http::connect(server.address());
    let refused = http.get("/name?is=b");
    assert_eq!((refused.status, refused.head.contains("Retry-After: 1\r\n")), (503, true));
    assert!(refused.body.contains("\"overloaded\""), "{}", refused.body);
    assert_eq!(http.get("/healthz").status, 200);
    pages.open("a");
    assert!(waiting.iter_mut().all(|http| http.response().body == "a"));
    assert_eq!(http.get("/name?is=b").body, "b");
}

#[test]
fn an_answer_that_is_late_is_dropped() {
    let (server, pages) = start(1, false, |config| config.limits.answer_timeout = Duration::from_secs(1));
    let mut waiting: Vec<Http> = (0..THREADS + 1).map(|_| Http::connect(server.address())).collect();
    waiting.iter_mut().for_each(|http| http.send("GET /slow?is=a HTTP/1.1\r\nHost: h\r\n\r\n"));
    for http in &mut waiting {
        let late = http.response();
        assert_eq!((late.status, late.head.contains("Retry-After: 1\r\n")), (503, true));
        assert!(late.body.contains(" 1s"), "{}", late.body);
    }
    assert!(waiting.iter().all(|http| http.buffer.is_empty()));
    // The last was not even begun, and its time is over.
    assert_eq!(pages.begun(), THREADS);
    pages.open("a");
    for (n, http) in waiting.iter_mut().enumerate() {
        assert_eq!(http.get(&format!("/name?is={n}")).body, n.to_string());
    }
    assert_eq!(pages.begun(), 2 * THREADS + 1);
}

/// What changes something and is late may be done: who asks again would have it done twice. What was not begun may be
/// asked for again.
#[test]
fn who_changes_something_is_told_whether_it_may_be_done() {
    let (server, pages) = start(1, false, |config| config.limits.answer_timeout = Duration::from_secs(1));
    let mut waiting: Vec<Http> = (0..THREADS).map(|_| Http::connect(server.address())).collect();
    waiting.iter_mut().for_each(|http| http.send("POST /slow?is=a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"));
    until("all threads are busy", || pages.begun() == THREADS);
    let mut http = Http::connect(server.address());
    let recalled = http.post("/name?is=b", "");
    assert_eq!((recalled.status, recalled.head.contains("Retry-After: 1\r\n")), (503, true));
    assert!(
        recalled.body.contains("\"overloaded\"") && recalled.body.contains("nothing was done"),
        "{}",
        recalled.body
    );
    for http in &mut waiting {
        let late = http.response();
        assert_eq!((late.status, late.head.contains("Retry-After")), (504, false));
        assert!(late.body.contains("\"outcome-unknown\"") && late.body.contains("may be done"), "{}", late.body);
    }
    pages.open("a");
    assert_eq!(http.get("/name?is=c").body, "c");
    assert_eq!(pages.begun(), THREADS + 1, "what was told to be undone is undone");
    let failed = http.post("/panic", "");
    assert_eq!((failed.status, failed.body.contains("may be done")), (500, true), "{}", failed.body);
}

/// What nobody waits for any more is not begun.
#[test]
fn what_those_asked_for_who_have_gone_is_not_begun() {
    let (server, pages) = start(1, false, |_| {});
    let mut busy: Vec<Http> = (0..THREADS).map(|_| Http::connect(server.address())).collect();
    busy.iter_mut().for_each(|http| http.send("GET /slow?is=a HTTP/1.1\r\nHost: h\r\n\r\n"));
    until("all threads are busy", || pages.begun() == THREADS);
    let mut gone = Http::connect(server.address());
    gone.send("GET /name?is=b HTTP/1.1\r\nHost: h\r\n\r\n");
    until("it waits", || server.stats().awaiting == THREADS as i64 + 1);
    SockRef::from(&gone.socket).set_linger(Some(Duration::ZERO)).unwrap();
    drop(gone);
    until("it has gone", || server.stats().awaiting == THREADS as i64);
    pages.open("a");
    assert!(busy.iter_mut().all(|http| http.response().body == "a"));
    assert_eq!(Http::connect(server.address()).get("/name?is=c").body, "c");
    assert_eq!(pages.begun(), THREADS + 1);
}

#[test]
fn large_answers_arrive_whole() {
    for is_secure in [false, true] {
        let (server, _) = start(2, is_secure, |config| {
            config.limits.max_send_buffer_bytes = Some(64 * 1024);
            config.limits.max_queue_bytes = 100_000;
        });
        let mut http = Http::connect(server.dial(is_secure));
        // Pipelined: the second begins when the first has left.
        http.send(&"GET /large?bytes=1000000 HTTP/1.1\r\nHost: h\r\n\r\n".repeat(2));
        http.send("GET /static HTTP/1.1\r\nHost: h\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
        for size in [1_000_000, 1_000_000] {
            let body = http.response().body;
            assert!(body.len() == size && body.bytes().all(|b| b == b'x'), "{} bytes", body.len());
        }
        assert!(http.response().body.as_bytes() == LARGE);
        assert_eq!(http.response().body, "ok\n");
        let head = http.head("/large?bytes=1000000");
        assert!(head.head.contains("Content-Length: 1000000\r\n"), "{}", head.head);
        http.send("GET /large?bytes=1000000 HTTP/1.0\r\n\r\n");
        assert_eq!(http.response().body.len(), 1_000_000);
        http.expect_end();
        until_idle(&server);
        assert_eq!(server.stats().closed_slow, 0);
    }
}

#[test]
fn who_does_not_read_an_answer_is_closed() {
    let (server, _) = start(1, false, |config| {
        config.limits.write_timeout = Duration::from_millis(300);
        config.limits.max_send_buffer_bytes = Some(4096);
    });
    let mut http = Http::connect(server.address());
    http.send("GET /large?bytes=20000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    until("it is closed", || server.stats().closed_timeout == 1);
    until_idle(&server);
    drop(http);
}

#[test]
fn large_answers_are_held_up_to_a_limit() {
    let (server, _) = start(1, false, |config| {
        config.limits.max_send_buffer_bytes = Some(4096);
        config.limits.max_answer_bytes = 2_200_000;
        config.limits.max_held_answers_bytes = 2_500_000;
    });
    let held: Vec<Http> = [2_000_000, 500_000]
        .map(|bytes| {
            let mut http = Http::connect(server.address());
            let before = server.stats().queued_bytes;
            http.send(&format!("GET /large?bytes={bytes} HTTP/1.1\r\nHost: h\r\n\r\n"));
            until("it is being sent", || server.stats().queued_bytes > before);
            http
        })
        .into();
    let mut http = Http::connect(server.address());
    let refused = http.get("/large?bytes=65537");
    assert_eq!((refused.status, refused.body.contains("\"overloaded\"")), (503, true), "{}", refused.body);
    // It was done: to be told to ask again would have it done twice.
    let unsaid = http.post("/large?bytes=65537", "");
    assert_eq!((unsaid.status, unsaid.body.contains("\"outcome-unknown\"")), (504, true), "{}", unsaid.body);
    assert!(!unsaid.head.contains("Retry-After"), "{}", unsaid.head);
    // What a connection may hold anyway is not concerned, nor what is part of the program.
    assert_eq!(http.get("/large?bytes=65536").body.len(), 65_536);
    assert_eq!(http.get("/static").body.len(), LARGE.len());
    drop(held);
    until("they have gone", || server.stats().open == 1);
    assert_eq!(http.get("/large?bytes=2200000").body.len(), 2_200_000);
    let refused = http.get("/large?bytes=2200001");
    assert_eq!((refused.status, refused.body.contains("2200000")), (500, true), "{}", refused.body);
}

/// Whatever is asked for, and however many ask without reading, no more than the limits is kept for them.
#[test]
fn those_who_do_not_read_hold_no_more_than_the_limits() {
    const HELD: i64 = 1_000_000;
    const SMALL: i64 = 64 * 1024;
    let (server, _) = start(2, false, |config| {
        config.limits.max_send_buffer_bytes = Some(4096);
        config.limits.max_held_answers_bytes = HELD as usize;
    });
    let mut waiting = Vec::new();
    for count in 1..=40_i64 {
        let mut http = Http::connect(server.address());
        SockRef::from(&http.socket).set_recv_buffer_size(2048).unwrap();
        // Pipelined: what is behind the first is not even read.
        http.send(
            &format!("GET /large?bytes={} HTTP/1.1\r\nHost: h\r\n\r\n", if count % 2 == 0 { SMALL } else { 300_000 })
                .repeat(50),
        );
        waiting.push(http);
        let queued = server.stats().queued_bytes;
        assert!(queued <= HELD + count * (SMALL + 1024), "{queued} bytes for {count}");
    }
    until("there is no more room", || server.stats().queued_bytes > HELD / 2 && server.stats().errors > 0);
    drop(waiting);
    until_idle(&server);
}

/// What is part of the program takes no memory, however many do not read it, and so it keeps nothing from others.
#[test]
fn pages_of_the_program_fill_no_queue() {
    const PEERS: usize = 20;
    let max = 2 << 20;
    let (server, _) = start(1, false, |config| {
        config.limits.max_send_buffer_bytes = Some(4096);
        config.limits.max_queued_total_bytes = max;
    });
    let ask = |target: &str| {
        let mut http = Http::connect(server.address());
        SockRef::from(&http.socket).set_recv_buffer_size(2048).unwrap();
        http.send(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        http
    };
    let mut waiting: Vec<Http> = (0..PEERS).map(|_| ask("/static")).collect();
    server.until("all wait", |stats| stats.slow_subscribers == PEERS as i64);
    let stats = server.stats();
    assert!(stats.queued_bytes > 4 * max as i64 && (stats.closed_slow, stats.errors) == (0, 0), "{stats:?}");
    // Answers that were made count as before: whoever holds one goes, or whoever asks for another is refused.
    let made: Vec<Http> = (0..PEERS).map(|_| ask("/large?bytes=1000000")).collect();
    let is_full = |stats: &Stats| stats.closed_slow > 0 || stats.errors > 0;
    server.until("there is no more room", |stats| is_full(stats) && stats.kept_bytes <= max);
    drop(made);
    // It goes on behind what the kernel held; to read all of it through such small buffers would take a minute.
    let mut some = [0; 100_000];
    waiting.pop().unwrap().socket.read_exact(&mut some).unwrap();
    assert!(some.ends_with(&LARGE[..50_000]));
}

/// Reading a byte now and then does not keep an answer for ever.
#[test]
fn an_answer_is_taken_within_its_time() {
    let (server, _) = start(1, false, |config| {
        config.limits.max_send_buffer_bytes = Some(4096);
        config.limits.take_timeout = Duration::from_secs(1);
    });
    // Who takes it in time has a connection that goes on: past the end of somebody whose time began later.
    let mut prompt = Http::connect(server.address());
    assert_eq!(prompt.get("/large?bytes=30000").body.len(), 30_000);
    let mut http = Http::connect(server.address());
    http.send("GET /large?bytes=20000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut some = [0; 1024];
    until("it is closed", || {
        let _ = http.socket.read(&mut some);
        server.stats().closed_timeout == 1
    });
    assert_eq!(prompt.get("/name?is=a").body, "a");
    drop(prompt);
    until_idle(&server);
}

/// A peer that has said all it will may close its side (netcat does) and still reads.
#[test]
fn who_has_asked_all_is_answered() {
    for is_secure in [false, true] {
        let (server, pages) = start(2, is_secure, |config| config.limits.max_send_buffer_bytes = Some(16 * 1024));
        let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut slow = Http::connect(server.dial(is_secure));
        slow.send(&[get("/slow?is=a"), get("/large?bytes=3000000"), get("/healthz"), "GET /half".to_owned()].concat());
        let mut large = Http::connect(server.dial(is_secure));
        large.send(&get("/large?bytes=3000000"));
        for http in [&slow, &large] {
            http.socket.shutdown(Shutdown::Write).unwrap();
        }
        until("it waits", || server.stats().awaiting >= 1 && pages.begun() >= 1);
        pages.open("a");
        assert_eq!(slow.response().body, "a");
        assert_eq!(slow.response().body.len(), 3_000_000);
        assert_eq!(slow.response().body, "ok\n");
        slow.may_be_cut = true;
        slow.expect_end();
        assert_eq!(large.response().body.len(), 3_000_000);
        large.may_be_cut = true;
        large.expect_end();
        until_idle(&server);
        assert_eq!(server.stats().closed_timeout, 0);
    }
}

/// The end of a connection is told once, and may come at any time: it is not forgotten until it can be heeded.
#[test]
fn who_has_ended_is_let_go_behind_the_last_answer() {
    for is_secure in [false, true] {
        let (server, pages) = start(1, is_secure, |_| {});
        let mut busy = Http::connect(server.dial(is_secure));
        for target in ["/name?is=a", "/healthz"] {
            for _ in 0..20 {
                let mut http = Http::connect(server.dial(is_secure));
                http.send(&format!("GET {target} HTTP/1.1\r\nHost:"));
                assert_eq!(busy.get("/healthz").status, 200);
                // The loop has something to do meanwhile, so that it finds the rest and the end together.
                busy.send(&"GET /stats HTTP/1.1\r\nHost: h\r\n\r\n".repeat(100));
                http.send(" h\r\n\r\n");
                http.socket.shutdown(Shutdown::Write).unwrap();
                (0..100).for_each(|_| assert_eq!(busy.response().status, 200));
                assert_eq!(http.response().status, 200);
                http.may_be_cut = true;
                http.expect_end();
            }
        }
        let mut http = Http::connect(server.dial(is_secure));
        http.send("GET /slow?is=a HTTP/1.1\r\nHost: h\r\n\r\n");
        until("the first waits", || server.stats().awaiting == 1);
        http.send("GET /name?is=b HTTP/1.1\r\nHost: h\r\n\r\n");
        http.socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(busy.get("/healthz").status, 200);
        pages.open("a");
        assert_eq!([http.response().body, http.response().body], ["a", "b"]);
        http.may_be_cut = true;
        http.expect_end();
        drop(busy);
        until_idle(&server);
        assert_eq!(server.stats().closed_timeout, 0);
    }
}

#[test]
fn a_request_that_waits_is_answered_before_the_end() {
    let (server, pages) = start(2, false, |config| config.limits.drain_timeout = PATIENCE);
    let mut waiting: Vec<Http> = (0..4).map(|_| Http::connect(server.address())).collect();
    waiting.iter_mut().for_each(|http| http.send("GET /slow?is=a HTTP/1.1\r\nHost: h\r\n\r\n"));
    let mut half = Http::connect(server.address());
    half.send("POST /name?is=b HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n");
    let mut large = Http::connect(server.address());
    large.send("GET /large?bytes=20000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    until("they wait", || server.stats().awaiting == 4 && server.stats().requests == 6);
    until("the large one is being sent", || server.stats().queued_bytes > 0);
    server.stop();
    until("nobody listens", || server.has_stopped_listening());
    half.send("1");
    let told = half.response();
    assert_eq!((told.status, told.body.contains("\"draining\"")), (503, true));
    half.expect_end();
    assert_eq!(large.response().body.len(), 20_000_000);
    large.expect_end();
    pages.open("a");
    for mut http in waiting {
        let answer = http.response();
        assert_eq!((&*answer.body, answer.head.contains("Connection: close\r\n")), ("a", true));
        http.expect_end();
    }
    server.end();
}

/// The end waits for what the application is busy with, not for what it has not begun; and then nothing holds it.
#[test]
fn what_waits_longer_than_the_end_is_let_go() {
    let (server, pages) = start(3, false, |config| config.limits.drain_timeout = Duration::from_millis(100));
    let mut waiting: Vec<Http> = (0..3 * THREADS).map(|_| Http::connect(server.address())).collect();
    waiting.iter_mut().for_each(|http| http.send("GET /slow?is=a HTTP/1.1\r\nHost: h\r\n\r\n"));
    until("all threads are busy", || pages.begun() == THREADS && server.stats().awaiting == 3 * THREADS as i64);
    server.stop();
    // Their connections end with the event loops.
    assert!(waiting.iter_mut().all(|http| http.try_response().is_none()));
    std::thread::scope(|scope| {
        let end = scope.spawn(|| server.end());
        assert!(!end.is_finished());
        pages.open("a");
        end.join().unwrap();
    });
    assert_eq!(pages.begun(), THREADS);
    assert_eq!(Arc::strong_count(&pages), 1);
}

#[test]
fn applications_are_asked_in_turn() {
    struct First;
    impl Application for First {
        fn answer(&self, request: &Request) -> Option<Response> {
            (request.path == "/").then(|| Response::json(b"[1]".to_vec()))
        }
    }
    let pages: Arc<Pages> = Arc::default();
    let both: Vec<Arc<dyn Application>> = vec![Arc::new(First), pages.clone()];
    let server = Subject::start(1, |config| config.application = Some(Arc::new(both)));
    let mut http = Http::connect(server.address());
    assert_eq!([http.get("/").body, http.get("/name?is=a").body], ["[1]", "a"]);
    assert_eq!(http.get("/nothing").status, 404);
    assert!(pages.publisher.get().is_some());
}

#[test]
fn without_an_application_nothing_is_there() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    for target in ["/", "/index.html", "/api/about"] {
        let answer = http.get(target);
        assert_eq!((answer.status, answer.body.contains("known paths: /ws /sse")), (404, true));
    }
}

#[test]
fn reserved_channels_are_for_the_application_to_publish_in() {
    let (server, _) = start(2, false, |config| {
        config.reserved_channels = vec!["app.".to_owned(), "x".to_owned()];
        config.tick = Some(Tick { interval: Duration::from_millis(5), channel: Channel::parse("app.tick").unwrap() });
    });
    let mut http = Http::connect(server.address());
    for channel in ["app.", "app.live", "x", "xyz"] {
        for target in [format!("/publish?channel={channel}"), format!("/publish?channel={channel}&after=&channel=b")] {
            let refused = http.post(&target, "1");
            assert_eq!((refused.status, refused.body.contains("\"forbidden\"")), (403, true), "{target}");
        }
        for kind in [Kind::WebSocket, Kind::WebSocketPolling] {
            let mut client = Client::resume(server.address(), kind, "", "");
            client.send(&format!("[\"pub\",\"{channel}\",1]"));
            let refused = std::iter::from_fn(|| client.next()).find(|frame| !matches!(frame, Frame::Cursor(_)));
            assert_eq!(refused, Some(Frame::Error("forbidden".into())), "{kind:?}");
        }
    }
    for open in ["app", "apple", "ax", "b.app.live"] {
        http.publish(open, "1");
    }
    // Everybody may listen, and the server itself publishes: for the application, on its timer.
    for kind in all_kinds() {
        let mut client = Client::resume(server.address(), kind, "channel=app.live", &server.stats().cursor);
        assert_eq!(http.get("/publish-in?channel=app.live").status, 200);
        assert_eq!(client.message().2, "\"from within\"", "{kind:?}");
    }
    let mut client = Client::open(server.address(), Kind::Sse, "channel=app.tick");
    assert_eq!(client.offsets(3).len(), 3);
    assert!(server.publisher().publish("app.live", "1").is_ok());
}

/// Whatever peers do while the application is slow or fails, nothing is left of them.
#[test]
fn nothing_is_left_of_those_who_asked() {
    let seed = 20_261_121;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (server, pages) = start(3, false, |config| {
        config.limits.max_waiting_requests = 20;
        config.limits.max_held_answers_bytes = 3_000_000;
        config.limits.answer_timeout = Duration::from_millis(50);
    });
    std::thread::scope(|scope| {
        for _ in 0..12 {
            let (mut random, server, pages) = (random.fork(), &server, &pages);
            scope.spawn(move || {
                for round in 0..30 {
                    let mut http = Http::connect(server.address());
                    for _ in 0..random.usize(1..5) {
                        let target = match random.u32(..6) {
                            0 => format!("/large?bytes={}", random.usize(..2_000_000)),
                            1 => format!("/slow?is={}", random.u32(..50)),
                            2 => "/panic".to_owned(),
                            3 => "/poll?channel=a&wait=0.01".to_owned(),
                            _ => "/name?is=a".to_owned(),
                        };
                        // A server that has closed already refuses it.
                        let _ = http.socket.write_all(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
                    }
                    pages.open(&(round + random.u32(..20)).to_string());
                    match random.u32(..4) {
                        0 => drop(http.try_response()),
                        1 => drop(http.socket.shutdown(Shutdown::Write)),
                        2 => drop(http.fill()),
                        _ => {}
                    }
                }
            });
        }
    });
    (0..100).for_each(|n| pages.open(&n.to_string()));
    until_idle(&server);
    until("a thread is free", || Http::connect(server.address()).get("/name?is=a").status == 200);
}
