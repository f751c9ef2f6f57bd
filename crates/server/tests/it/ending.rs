//! Stopping, and that nothing is left when everybody has gone.

use crate::harness::client::{Client, Frame, Kind, PUSHED, all_kinds};
use crate::harness::http::Http;
use crate::harness::{PATIENCE, Subject, until, until_idle};
use fastrand::Rng;
use pushlab_server::Policy;
use std::net::Shutdown;
use std::time::Duration;

fn stopping_ends_all_properly(cores: usize, is_secure: bool) {
    let server = Subject::start_either(is_secure, cores, |c| c.limits.drain_timeout = PATIENCE);
    let dial = || server.dial(is_secure);
    let clients = PUSHED.map(|kind| (kind, Client::open(dial(), kind, "channel=a")));
    let mut polls: Vec<Http> = (0..5).map(|_| Http::connect(dial())).collect();
    let wait = |channel: &str| format!("GET /poll?channel={channel}&wait=60 HTTP/1.1\r\nHost: h\r\n\r\n");
    polls.iter_mut().for_each(|http| http.send(&wait("other")));
    let mut idle = Http::connect(dial());
    assert_eq!(idle.get("/healthz").status, 200);
    until("the polls are held", || server.stats().held_polls == 5);
    // What was published before the stop is delivered before the end.
    let mut http = Http::connect(dial());
    let last = http.publish_times(20, "a", "1");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (kind, mut client) in clients {
                for offset in 1..=last {
                    assert_eq!(client.message().1, offset, "{kind:?}");
                }
                assert_eq!(client.next(), None, "{kind:?}");
                match kind {
                    Kind::WebSocket => assert_eq!(client.close_code, Some(1001)),
                    Kind::Sse | Kind::Lines | Kind::Script => assert!(client.is_complete(), "{kind:?}"),
                    _ => {}
                }
            }
            for mut http in polls {
                let response = http.response();
                assert!(response.body.starts_with("[[\"cursor\","), "{response:?}");
                assert!(response.head.contains("Connection: close\r\n"));
                http.expect_end();
            }
            idle.expect_end();
            drop((http, idle));
        });
        server.stop();
        until("all loops have ended", || !server.is_running());
    });
    let address = server.listens_at();
    server.end();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn stopping_ends_all_properly_on_one_core() {
    stopping_ends_all_properly(1, false);
}

#[test]
fn stopping_ends_all_properly_over_tls() {
    stopping_ends_all_properly(2, true);
}

#[test]
fn stopping_ends_all_properly_on_three_cores() {
    stopping_ends_all_properly(3, false);
}

/// Every client that speaks version 2, and every event source, comes back at another instant of the window.
#[test]
fn clients_are_told_to_come_back_spread_over_a_window() {
    let window_ms = 4000;
    let server = Subject::start(2, |c| c.limits.drain_window = Some(Duration::from_millis(window_ms)));
    let open = |kind: Kind, query: &str| Client::open(server.address(), kind, query);
    let pushed = PUSHED.into_iter().chain([Kind::WebSocketPolling]);
    let mut clients: Vec<_> =
        pushed.flat_map(|kind| (0..8).map(move |_| (kind, open(kind, "channel=a&v=2")))).collect();
    let mut old = open(Kind::Lines, "channel=a");
    let mut polls: Vec<Http> = (0..8).map(|_| Http::connect(server.address())).collect();
    let wait = "GET /poll?channel=a&wait=60&v=2 HTTP/1.1\r\nHost: h\r\n\r\n";
    polls.iter_mut().for_each(|http| http.send(wait));
    until("the polls are held", || server.stats().held_polls == 8);
    server.stop();
    let mut told: Vec<u64> = Vec::new();
    for (kind, client) in &mut clients {
        while client.next().is_some() {}
        told.push(client.return_after_ms.unwrap_or_else(|| panic!("{kind:?} was told nothing")));
        assert!(!client.is_websocket() || client.close_code == Some(1001));
    }
    for http in &mut polls {
        let body = http.response().body;
        let after_ms = body.strip_prefix("[[\"reconnect\",").and_then(|rest| rest.split_once("],[\"cursor\",\""));
        told.push(after_ms.unwrap_or_else(|| panic!("{body}")).0.parse().unwrap());
    }
    assert_eq!((old.next(), old.is_complete()), (None, true), "a client of version 1 hears nothing new");
    for quarter in 0..4 {
        let part = window_ms / 4 * quarter..window_ms / 4 * (quarter + 1);
        let share = told.iter().filter(|after_ms| part.contains(after_ms)).count();
        assert!(share.abs_diff(told.len() / 4) <= 4, "{share} of {told:?} in {part:?}");
    }
    assert!(told.iter().all(|&after_ms| after_ms < window_ms), "{told:?}");
}

/// A request on its way when the stop comes is answered that the server drains.
#[test]
fn a_request_during_the_stop_is_told() {
    let server = Subject::start(1, |_| {});
    let mut half = Http::connect(server.address());
    let (request, part) =
        ("POST /publish?channel=a HTTP/1.1\r\nHost: h\r\nOrigin: http://o\r\nContent-Length: 1\r\n\r\n", "GET /heal");
    half.send(request);
    let mut health = Http::connect(server.address());
    health.send(part);
    until("both are there", || server.stats().bytes_received == (request.len() + part.len()) as u64);
    server.stop();
    until("idle ones have gone", || server.has_stopped_listening());
    half.send("1");
    health.send("thz HTTP/1.1\r\nHost: h\r\n\r\n");
    // Only the first comes from a page, of another site.
    for (mut http, is_shown) in [(half, true), (health, false)] {
        let response = http.response();
        assert_eq!((response.status, response.body.contains("\"draining\"")), (503, true));
        let exposed = response.head.contains("Access-Control-Expose-Headers: Retry-After\r\n");
        assert_eq!(exposed, is_shown, "{response:?}");
        assert!(
            response.head.contains("Retry-After: 1\r\n") && response.body.contains(",\"after_ms\":"),
            "{response:?}"
        );
        http.expect_end();
    }
}

/// What random clients of a server do, each in its own thread.
fn misbehave(server: &Subject, mut random: Rng) {
    let address = server.address();
    let kinds: Vec<Kind> = all_kinds().collect();
    for _ in 0..random.usize(5..12) {
        let query =
            *random.choice(&["channel=a", "channel=a&channel=b", "channel=c&channel=a", "channel=quiet"]).unwrap();
        let kind = *random.choice(&kinds).unwrap();
        let start = ["".to_owned(), "zzzzz.3".to_owned(), server.stats().cursor][random.usize(..3)].clone();
        let mut client = Client::resume(address, kind, query, &start);
        client.may_be_torn = true;
        let mut http = Http::connect(address);
        for _ in 0..random.usize(..20) {
            let channel = *random.choice(&["a", "b", "c"]).unwrap();
            match random.u32(..10) {
                0..5 => drop(http.post(
                    &format!("/publish?channel={channel}"),
                    &format!("\"{}\"", "x".repeat(random.usize(..60_000))),
                )),
                5 if matches!(kind, Kind::WebSocket | Kind::WebSocketPolling) => {
                    let verb = *random.choice(&["sub", "unsub", "what"]).unwrap();
                    let _ = client.try_send(&format!("[\"{verb}\",\"{channel}\"]"));
                }
                6 if kind == Kind::Polling => client.ask(),
                7 if client.cursor.is_empty() && PUSHED.contains(&kind) => drop(client.next()),
                8 => http.send("GET /poll?channel=quiet&wait=0.1 HTTP/1.1\r\nHost: h\r\n\r\n"),
                _ => {}
            }
            // Answers that were not read yet belong to polls; they do no harm to what follows on this connection.
            if random.u32(..20) == 0 {
                http = Http::connect(address);
            }
        }
        match random.u32(..4) {
            // A server that has closed already refuses these.
            0 => drop(client.socket().shutdown(Shutdown::Write)),
            1 => drop(client.socket().shutdown(Shutdown::Both)),
            2 => http.send("POST /publish?channel=a HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\nhalf"),
            _ => http.send("GET /poll?channel=quiet&wait=60 HTTP/1.1\r\nHost: h\r\n\r\n"),
        }
    }
}

/// Whatever clients do, once all have left every gauge is zero and the server still serves.
fn nothing_is_left(policy: Policy, cores: usize) {
    let seed = 20_260_725;
    println!("seed {seed}, {policy:?}");
    let mut random = Rng::with_seed(seed);
    let server = Subject::start(cores, |c| {
        c.policy = policy;
        c.limits.max_send_buffer_bytes = Some(8 * 1024);
        c.limits.max_queue_bytes = 50_000;
        c.limits.max_history_messages = 50;
    });
    std::thread::scope(|scope| {
        for _ in 0..12 {
            let own = random.fork();
            let server = &server;
            scope.spawn(move || misbehave(server, own));
        }
    });
    until_idle(&server);
    let stats = server.stats();
    assert!(stats.closed_slow + stats.dropped > 0, "some were too slow: {stats:?}");
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let offset = Http::connect(server.address()).publish("a", "1");
    assert!(matches!(client.next(), Some(Frame::Message(_, o, _)) if o == offset));
}

#[test]
fn nothing_is_left_of_those_who_were_closed() {
    nothing_is_left(Policy::Close, 1);
}

#[test]
fn nothing_is_left_of_those_whose_oldest_was_dropped() {
    nothing_is_left(Policy::DropOldest, 2);
}

#[test]
fn nothing_is_left_of_those_who_were_conflated() {
    nothing_is_left(Policy::Conflate, 3);
}
