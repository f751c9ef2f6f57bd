//! Every transport on streams of one connection.

use crate::harness::client::{ASKING, Client, Frame, Kind, STREAMED};
use crate::harness::http::Http;
use crate::harness::http2::{END_HEADERS, END_STREAM, Http2, Raw, WEBSOCKET, frame, kind};
use crate::harness::{Subject, until, until_idle};
use pushlab_http2::frame::{Code, PREFACE};
use pushlab_wire::websocket::{Opcode, encode};

pub fn kinds() -> impl Iterator<Item = Kind> {
    STREAMED.into_iter().chain(ASKING)
}

fn every_transport_receives_all(cores: usize, is_secure: bool) {
    let server = Subject::start_either(is_secure, cores, |_| {});
    let http2 = Http2::connect(&server, is_secure);
    let mut clients: Vec<Client> =
        (0..2).flat_map(|_| kinds()).map(|kind| Client::open(http2.streams(), kind, "channel=a")).collect();
    assert_eq!(server.stats().http2, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One publishes on a connection of HTTP/2 of its own, the other does not.
            let (mut own, mut other) = (
                Client::open(Http2::connect(&server, is_secure).streams(), Kind::WebSocket, ""),
                Http::connect(server.dial(is_secure)),
            );
            for n in 0..100 {
                for m in 0..9 {
                    own.send(&format!("[\"pub\",\"a\",\"w{n}.{m}\"]"));
                }
                other.publish("a", &format!("\"p{n}\""));
            }
            own.send("[\"ping\",1]");
            assert_eq!(own.next(), Some(Frame::Pong(1)), "all were read without an error");
        });
        let mut all: Vec<Vec<String>> = Vec::new();
        for client in &mut clients {
            let messages: Vec<_> = (0..1000).map(|_| client.message()).collect();
            assert!(messages.iter().map(|m| m.1).eq(1..=1000));
            all.push(messages.into_iter().map(|m| m.2).collect());
        }
        assert!(all.iter().all(|messages| *messages == all[0]), "all saw the same");
        let of = |publisher| all[0].iter().filter(move |m| m[1..].starts_with(publisher)).cloned();
        assert!(of("p").eq((0..100).map(|n| format!("\"p{n}\""))));
        assert!(of("w").eq((0..100).flat_map(|n| (0..9).map(move |m| format!("\"w{n}.{m}\"")))));
    });
    until("all are counted", || server.stats().sent == 14 * 1000);
    drop((http2, clients));
    until_idle(&server);
}

#[test]
fn every_transport_receives_all_on_one_core() {
    every_transport_receives_all(1, false);
}

#[test]
fn every_transport_receives_all_on_three_cores() {
    every_transport_receives_all(3, false);
}

#[test]
fn every_transport_receives_all_over_tls() {
    every_transport_receives_all(2, true);
}

#[test]
fn a_cut_in_the_middle_loses_nothing() {
    for is_secure in [false, true] {
        let server = Subject::start_either(is_secure, 2, |_| {});
        let mut http = Http::connect(server.dial(is_secure));
        for kind in kinds() {
            let start = http.publish("a", "0");
            let http2 = Http2::connect(&server, is_secure);
            let mut client = Client::open(http2.streams(), kind, "channel=a&channel=b");
            for n in 0..10 {
                http.publish(["a", "b", "c"][n % 3], "1");
            }
            let expected: Vec<u64> = (0..20).filter(|n| n % 3 != 2 || *n >= 10).map(|n| start + n + 1).collect();
            assert_eq!(client.offsets(4), expected[..4], "{kind:?}");
            let cursor = client.cursor.clone();
            drop((client, http2));
            http.publish_times(10, "b", "2");
            let http2 = Http2::connect(&server, is_secure);
            let mut client = Client::resume(http2.streams(), kind, "channel=a&channel=b", &cursor);
            assert_eq!(client.offsets(expected.len() - 4), expected[4..], "{kind:?}");
            // And it goes on.
            let next = http.publish("a", "3");
            assert_eq!(client.message().1, next, "{kind:?}");
        }
    }
}

/// What was missed comes in parts, larger than any window, while more is published.
#[test]
fn a_long_absence_is_made_up_for() {
    let server = Subject::start(1, |c| c.limits.max_queue_bytes = 200_000);
    let mut http = Http::connect(server.address());
    http.publish_times(150, "a", &format!("\"{}<>\"", "x".repeat(5_000)));
    let start = format!("{}.0", server.stats().cursor.split('.').next().unwrap());
    let http2 = Http2::connect(&server, false);
    let mut clients: Vec<_> = kinds().map(|kind| Client::resume(http2.streams(), kind, "channel=a", &start)).collect();
    http.publish("a", "1");
    for client in &mut clients {
        assert!(client.offsets(151).into_iter().eq(1..=151));
    }
    assert_eq!((server.stats().gaps, server.stats().closed_slow), (0, 0));
}

#[test]
fn each_of_a_hundred_streams_gets_its_own() {
    let server = Subject::start(2, |_| {});
    let http2 = Http2::connect(&server, false);
    let mut clients: Vec<Client> = (0..100)
        .map(|n| Client::open(http2.streams(), STREAMED[n % 4], &format!("channel=c{n}&channel=all")))
        .collect();
    assert_eq!((server.stats().open, server.stats().http2), (101, 1));
    let mut http = Http::connect(server.address());
    for n in 0..100 {
        http.publish(&format!("c{n}"), &format!("{n}"));
    }
    let last = http.publish("all", "\"all\"");
    for (n, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.message(), (format!("c{n}"), n as u64 + 1, n.to_string()));
        assert_eq!(client.message(), ("all".to_owned(), last, "\"all\"".to_owned()));
    }
    // Those who leave make room.
    for client in &mut clients[..50] {
        client.stream().reset(Code::Cancel);
    }
    drop(http);
    until("they have gone", || server.stats().open == 51);
    let mut more: Vec<Client> = (0..50).map(|_| Client::open(http2.streams(), Kind::Sse, "channel=all")).collect();
    let next = Http::connect(server.address()).publish("all", "2");
    assert!(clients[50..].iter_mut().chain(&mut more).all(|client| client.message().1 == next));
    drop((clients, more, http2));
    until_idle(&server);
}

#[test]
fn a_stream_beyond_the_limit_is_refused_and_works_later() {
    let server = Subject::start(1, |c| c.limits.max_streams_per_connection = 3);
    let mut raw = Raw::connect(&server, &[]);
    for stream in [1, 3, 5, 7] {
        let get = raw.get(stream, "/sse?channel=a");
        raw.send(&get).unwrap();
    }
    let (_, _, stream, code) = raw.next_of(kind::RST_STREAM);
    assert_eq!((stream, code), (7, Code::RefusedStream.number().to_be_bytes().to_vec()));
    raw.frame(kind::RST_STREAM, 0, 3, &[0; 4]);
    let get = raw.get(9, "/healthz");
    raw.send(&get).unwrap();
    while raw.next_of(kind::HEADERS).2 != 9 {}
    // The others go on.
    Http::connect(server.address()).publish("a", "1");
    let mut told: Vec<u32> = Vec::new();
    while told.len() < 2 {
        let (_, _, stream, payload) = raw.next_of(kind::DATA);
        if String::from_utf8(payload).unwrap().contains("[\"msg\"") {
            told.push(stream);
        }
    }
    told.sort_unstable();
    assert_eq!(told, [1, 5]);
}

/// Streams count as connections do; one that finds no room was not looked at.
#[test]
fn streams_are_refused_where_the_server_is_full() {
    let server = Subject::start(1, |c| c.limits.max_connections = 3);
    let http2 = Http2::connect(&server, false);
    let mut held: Vec<Client> = (0..2).map(|_| Client::open(http2.streams(), Kind::Lines, "channel=a")).collect();
    let mut refused = http2.get("/healthz");
    assert_eq!(refused.stream().expect_reset(), Code::RefusedStream);
    assert_eq!(server.stats().refused, 1);
    held[0].stream().reset(Code::Cancel);
    until("one has left", || server.stats().open == 2);
    assert_eq!(http2.get("/healthz").response().status, 200);
    drop((held, refused, http2));
    until_idle(&server);
}

/// However the bytes of a client are cut, what they say is the same.
#[test]
fn frames_may_come_byte_by_byte() {
    let server = Subject::start(1, |_| {});
    let mut raw = Raw::silent(&server);
    let mut all = PREFACE.to_vec();
    all.extend(frame(kind::SETTINGS, 0, 0, &[]));
    let block = raw.block("CONNECT", "/ws?channel=a", &WEBSOCKET);
    all.extend(frame(kind::HEADERS, END_HEADERS, 1, &block));
    let mut said = Vec::new();
    encode(&mut said, Opcode::Text, b"[\"echo\",1]", Some([1, 2, 3, 4]));
    for byte in &said {
        all.extend(frame(kind::DATA, 0, 1, &[*byte]));
    }
    all.extend(frame(kind::DATA, END_STREAM, 1, &[]));
    for byte in all {
        raw.send(&[byte]).unwrap();
    }
    let mut told = Vec::new();
    loop {
        let (_, flags, _, payload) = raw.next_of(kind::DATA);
        told.extend(payload);
        if flags & END_STREAM != 0 {
            break;
        }
    }
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("[\"cursor\",") && told.ends_with("[\"echo\",1]"), "{told}");
}
