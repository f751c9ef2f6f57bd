//! Stopping, timeouts, and that nothing is left when everybody has gone.

use crate::harness::client::{Client, Frame, Kind, STREAMED};
use crate::harness::http::Http;
use crate::harness::http2::{END_HEADERS, END_STREAM, Http2, Raw, Said, get, kind};
use crate::harness::{Subject, until, until_idle};
use fastrand::Rng;
use pushlab_http2::frame::{Code, MAX, PREFACE};
use pushlab_server::Policy;
use std::time::Duration;

/// For limits that others must keep, on a busy machine too.
const FAIR: Duration = Duration::from_secs(1);

fn stopping_ends_all_properly(cores: usize, is_secure: bool) {
    let server = Subject::start_either(is_secure, cores, |_| {});
    // Its place is then that of a stream, and before that of the stream's connection.
    let first = Http::connect(server.dial(is_secure));
    until("it is there", || server.stats().open == 1);
    let http2 = Http2::connect(&server, is_secure);
    drop(first);
    until("it has gone", || server.stats().open == 1);
    let clients = STREAMED.map(|kind| (kind, Client::open(http2.streams(), kind, "channel=a")));
    let mut polls: Vec<Http> = (0..5).map(|_| http2.get("/poll?channel=other&wait=60")).collect();
    let idle = Http2::connect(&server, is_secure);
    assert_eq!(idle.get("/healthz").response().status, 200);
    until("the polls are held", || server.stats().held_polls == 5);
    let last = Http::connect(server.dial(is_secure)).publish_times(20, "a", "1");
    server.stop();
    for (kind, mut client) in clients {
        for offset in 1..=last {
            assert_eq!(client.message().1, offset, "{kind:?}");
        }
        assert_eq!(client.next(), None, "{kind:?}");
        assert!(client.is_complete(), "{kind:?}");
        assert_eq!(client.close_code, (kind == Kind::WebSocket).then_some(1001));
    }
    for http in &mut polls {
        let response = http.response();
        assert!(response.body.starts_with("[[\"cursor\","), "{response:?}");
    }
    let last = polls.last_mut().unwrap().stream().number();
    http2.expect_end();
    idle.expect_end();
    let said = http2.said();
    assert_eq!(said.first(), Some(&Said::GoingAway(MAX, Code::NoError)), "{said:?}");
    assert_eq!(said.last(), Some(&Said::GoingAway(last, Code::NoError)), "{said:?}");
    let between = &said[1..said.len() - 1];
    assert_eq!(between.iter().filter(|said| matches!(said, Said::End(_))).count(), 9, "{said:?}");
    assert!(!between.iter().any(|said| matches!(said, Said::GoingAway(..))), "{said:?}");
    assert_eq!(idle.farewells(), [(MAX, Code::NoError), (1, Code::NoError)]);
    drop((http2, idle, polls));
    until("all loops have ended", || !server.is_running());
}

#[test]
fn stopping_ends_all_properly_on_one_core() {
    stopping_ends_all_properly(1, false);
}

#[test]
fn stopping_ends_all_properly_on_three_cores() {
    stopping_ends_all_properly(3, false);
}

#[test]
fn stopping_ends_all_properly_over_tls() {
    stopping_ends_all_properly(2, true);
}

/// A request on its way when the stop comes is answered that the server drains.
#[test]
fn a_request_during_the_stop_is_told() {
    let server = Subject::start(1, |_| {});
    let mut raw = Raw::connect(&server, &[]);
    let block = raw.block("POST", "/publish?channel=a", &[("content-length", "1")]);
    raw.frame(kind::HEADERS, END_HEADERS, 1, &block);
    until("both are there", || server.stats().open == 2);
    server.stop();
    let (_, _, _, farewell) = raw.next_of(kind::GOAWAY);
    assert_eq!(farewell[..4], MAX.to_be_bytes());
    let late = raw.get(3, "/healthz");
    raw.send(&late).unwrap();
    let told = |raw: &mut Raw, stream| {
        let (_, _, of, head) = raw.next_of(kind::HEADERS);
        assert_eq!((of, raw.decode(&head).get(":status")), (stream, Some(&b"503"[..])));
        assert!(String::from_utf8(raw.next_of(kind::DATA).3).unwrap().contains("\"draining\""));
    };
    told(&mut raw, 3);
    raw.frame(kind::DATA, END_STREAM, 1, b"1");
    told(&mut raw, 1);
    let (_, _, _, farewell) = raw.next_of(kind::GOAWAY);
    assert_eq!(farewell, [0, 0, 0, 3, 0, 0, 0, 0]);
    assert_eq!(raw.next(), None);
    drop(raw);
    until("it has ended", || !server.is_running());
}

#[test]
fn who_never_sends_settings_is_let_go() {
    let server = Subject::start(1, |c| c.limits.head_timeout = FAIR);
    let mut raw = Raw::silent(&server);
    raw.send(PREFACE).unwrap();
    let mut well = Client::open(Http2::connect(&server, false).streams(), Kind::Sse, "channel=a");
    assert_eq!(raw.farewell(), Some(Code::SettingsTimeout));
    assert_eq!(server.stats().closed_timeout, 1);
    // Not even the preface.
    let mut raw = Raw::silent(&server);
    raw.send(&PREFACE[..17]).unwrap();
    assert_eq!(raw.farewell(), Some(Code::SettingsTimeout));
    let next = Http::connect(server.address()).publish("a", "1");
    assert_eq!(well.message().1, next);
}

#[test]
fn who_is_idle_is_let_go_unless_a_stream_is_open() {
    for is_secure in [false, true] {
        let server = Subject::start_either(is_secure, 1, |c| c.limits.idle_timeout = FAIR);
        let busy = Http2::connect(&server, is_secure);
        let mut client = Client::open(busy.streams(), Kind::Lines, "channel=a");
        for asks in [true, false] {
            let idle = Http2::connect(&server, is_secure);
            if asks {
                assert_eq!(idle.get("/healthz").response().status, 200);
            }
            idle.expect_end();
            assert_eq!(idle.farewells(), [(u32::from(asks), Code::NoError)]);
        }
        assert_eq!(server.stats().closed_timeout, 2);
        let next = Http::connect(busy.streams()).publish("a", "1");
        assert_eq!(client.message().1, next);
        assert_eq!(busy.farewells(), []);
        client.stream().reset(Code::Cancel);
        busy.expect_end();
        drop((busy, client));
        until_idle(&server);
    }
}

#[test]
fn a_body_that_does_not_come_is_answered_and_the_connection_goes_on() {
    let server = Subject::start(1, |c| c.limits.head_timeout = FAIR);
    let http2 = Http2::connect(&server, false);
    let mut half = http2.ask("POST /publish?channel=a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n\"ha");
    assert_eq!(half.response().status, 408);
    assert_eq!(http2.get("/healthz").response().status, 200);
}

/// A client that opens no more streams keeps those that it has, at no cost.
#[test]
fn a_client_that_goes_away_keeps_its_streams() {
    let server = Subject::start(1, |_| {});
    let http2 = Http2::connect(&server, false);
    let mut client = Client::open(http2.streams(), Kind::Sse, "channel=a");
    http2.go_away();
    // What is read behind it makes no difference.
    (0..2).for_each(|_| http2.ping());
    let (turns, ticks) = server.turns_during_a_poll();
    assert!(turns <= 2 * ticks + 20, "{turns} turns in {ticks} ticks of the clock");
    let next = Http::connect(server.address()).publish("a", "1");
    assert_eq!(client.message().1, next);
    client.stream().reset(Code::Cancel);
    http2.expect_end();
    assert_eq!(http2.farewells(), [(1, Code::NoError)]);
}

/// What random clients of a server do on streams of one connection.
fn misbehave(server: &Subject, mut random: Rng) {
    let kinds: Vec<Kind> = super::streams::kinds().collect();
    let http2 = Http2::connect(server, false);
    let mut clients: Vec<Client> = Vec::new();
    let mut others: Vec<Http> = Vec::new();
    for _ in 0..random.usize(30..80) {
        let channel = *random.choice(&["a", "b", "c"]).unwrap();
        let target = format!("/publish?channel={channel}");
        let post = |length: usize| format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
        match random.u32(..12) {
            0..3 => {
                let kind = *random.choice(&kinds).unwrap();
                let start = ["".to_owned(), "zzzzz.3".to_owned(), server.stats().cursor][random.usize(..3)].clone();
                let query = *random.choice(&["channel=a", "channel=a&channel=b", "channel=quiet"]).unwrap();
                let mut client = Client::resume(http2.streams(), kind, query, &start);
                client.may_be_torn = true;
                if STREAMED.contains(&kind) || kind == Kind::WebSocketPolling {
                    if random.bool() {
                        client.stream().hold();
                    }
                    clients.push(client);
                }
            }
            3..6 => {
                let data = format!("\"{}\"", "x".repeat(random.usize(..60_000)));
                let _ = http2.ask(&(post(data.len()) + &data)).try_response();
            }
            6 => others.push(http2.ask(&(post(50) + "half"))),
            7 => others.push(http2.get("/poll?channel=quiet&wait=60")),
            8 if !clients.is_empty() => {
                clients.swap_remove(random.usize(..clients.len())).stream().reset(Code::Cancel);
            }
            9 if !others.is_empty() => {
                others.swap_remove(random.usize(..others.len())).stream().reset(Code::Cancel);
            }
            10 => drop(http2.ask(&get("/nothing").replace("GET", "HEAD"))),
            _ => {
                for client in &mut clients {
                    let verb = *random.choice(&["sub", "unsub", "what"]).unwrap();
                    if client.close_code.is_none() && client.is_websocket() {
                        let _ = client.try_send(&format!("[\"{verb}\",\"{channel}\"]"));
                    }
                }
            }
        }
    }
    match random.u32(..3) {
        0 => http2.go_away(),
        1 => drop(http2.socket().shutdown(std::net::Shutdown::Write)),
        _ => {}
    }
}

/// Whatever clients do, once all have left every gauge is zero and the server still serves.
fn nothing_is_left(policy: Policy, cores: usize) {
    let seed = 20_261_123;
    println!("seed {seed}, {policy:?}");
    let mut random = Rng::with_seed(seed);
    let server = Subject::start(cores, |c| {
        c.policy = policy;
        c.limits.max_send_buffer_bytes = Some(8 * 1024);
        c.limits.max_queue_bytes = 50_000;
        c.limits.max_history_messages = 50;
    });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let own = random.fork();
            let server = &server;
            scope.spawn(move || misbehave(server, own));
        }
    });
    until_idle(&server);
    let stats = server.stats();
    assert!(stats.closed_slow + stats.dropped > 0, "some were too slow: {stats:?}");
    let http2 = Http2::connect(&server, false);
    let mut client = Client::open(http2.streams(), Kind::WebSocket, "channel=a");
    let offset = Http::connect(http2.streams()).publish("a", "1");
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
