//! Everybody gets everything once and in order.

use crate::harness::client::{ASKING, Client, Frame, Kind, all_kinds};
use crate::harness::http::Http;
use crate::harness::{Subject, offset, until};
use std::collections::BTreeSet;
use std::thread;

/// Publishes from a WebSocket and by POST at the same time, `each` from both.
fn publish_both(server: &Subject, channels: &[&str], each: usize) {
    let address = server.address();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = Client::open(address, Kind::WebSocket, "channel=none");
            for n in 0..each {
                socket.send(&format!("[\"pub\",\"{}\",\"w{n}\"]", channels[n % channels.len()]));
            }
            socket.send("[\"ping\",1]");
            assert_eq!(socket.next(), Some(Frame::Pong(1)), "all were read without an error");
        });
        scope.spawn(|| {
            let mut http = Http::connect(address);
            for n in 0..each {
                http.publish(channels[n % channels.len()], &format!("\"p{n}\""));
            }
        });
    });
}

fn every_transport_receives_all(cores: usize, splits: bool) {
    let server = Subject::start(cores, |c| {
        c.splits_events = splits;
        c.nagle = splits;
    });
    // Enough of each for every event loop to have some.
    let clients: Vec<Client> =
        (0..3).flat_map(|_| all_kinds()).map(|kind| Client::open(server.address(), kind, "channel=a")).collect();
    let all: BTreeSet<Vec<String>> = thread::scope(|scope| {
        let readers: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || {
                    let messages: Vec<_> = (0..300).map(|_| client.message()).collect();
                    assert!(messages.iter().map(|m| m.1).eq(1..=300));
                    messages.into_iter().map(|m| m.2).collect()
                })
            })
            .collect();
        publish_both(&server, &["a"], 150);
        readers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    assert_eq!(all.len(), 1, "all saw the same");
    let messages = all.first().unwrap();
    for publisher in ["w", "p"] {
        let own: Vec<_> = messages.iter().filter(|m| m[1..].starts_with(publisher)).cloned().collect();
        assert_eq!(own, (0..150).map(|n| format!("\"{publisher}{n}\"")).collect::<Vec<_>>());
    }
    until("all are counted", || server.stats().sent == 300 * 30);
    assert_eq!(server.stats().received, 300);
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
fn every_transport_receives_all_in_two_writes_each() {
    every_transport_receives_all(2, true);
}

/// Whoever asks at any moment loses nothing and gets nothing twice, also when replies are cut.
#[test]
fn those_who_ask_at_random_lose_nothing() {
    let seed = 20_260_725;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let server = Subject::start(2, |c| c.limits.max_reply_bytes = 100);
    let mut clients = ASKING.map(|kind| Client::open(server.address(), kind, "channel=a&channel=b"));
    let mut http = Http::connect(server.address());
    let (mut published, mut expected) = (0, Vec::new());
    let mut received = [const { Vec::new() }; 3];
    while published < 400 {
        for _ in 0..random.usize(..6) {
            published = http.publish(random.choice(["a", "b", "c"]).unwrap(), "\"xxxxxxxxxxxxxxxx\"");
        }
        expected = server_offsets(&server, published);
        for (client, received) in clients.iter_mut().zip(&mut received) {
            // Only as many as there are: a long poll would wait for more.
            for _ in 0..random.usize(..=expected.len() - received.len()) {
                received.push(client.message().1);
            }
        }
    }
    for (client, received) in clients.iter_mut().zip(&mut received) {
        received.extend(client.offsets(expected.len() - received.len()));
        assert_eq!(*received, expected);
    }
}

/// What history holds for `a` and `b`, read in one go.
fn server_offsets(server: &Subject, head: u64) -> Vec<u64> {
    let mut http = Http::connect(server.address());
    let epoch = server.stats().cursor;
    let mut cursor = format!("{}.0", epoch.split('.').next().unwrap());
    let mut offsets = Vec::new();
    while offset(&cursor) < head {
        let response = http.get(&format!("/poll?channel=a&channel=b&after={cursor}"));
        pushlab_wire::native::parse_reply(&response.body, |frame| match frame.into() {
            Frame::Message(_, offset, _) => offsets.push(offset),
            Frame::Cursor(next) => cursor = next,
            other => panic!("{other:?}"),
        })
        .unwrap();
    }
    offsets
}

#[test]
fn several_channels_have_one_order() {
    let server = Subject::start(3, |_| {});
    let mut clients: Vec<Client> =
        all_kinds().map(|kind| Client::open(server.address(), kind, "channel=b&channel=a&channel=b")).collect();
    publish_both(&server, &["a", "b", "c"], 99);
    let all: Vec<Vec<(String, u64, String)>> =
        clients.iter_mut().map(|client| (0..132).map(|_| client.message()).collect()).collect();
    assert!(all[0].is_sorted_by(|a, b| a.1 < b.1));
    assert!(all[0].iter().all(|m| m.0 == "a" || m.0 == "b"));
    assert!(all.iter().all(|messages| *messages == all[0]));
}

/// What is subscribed all along comes whole while other channels come and go, and each cursor says the truth.
#[test]
fn channels_come_and_go_while_messages_come() {
    let server = Subject::start(2, |_| {});
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut witness = Client::open(server.address(), Kind::WebSocket, "channel=a");
    thread::scope(|scope| {
        scope.spawn(|| publish_both(&server, &["a", "b"], 400));
        let (mut seen, mut own, mut others) = (0, Vec::new(), 0);
        let mut changes = 0;
        while own.len() < 400 {
            if changes % 8 == 0 {
                client.send(if changes % 16 == 0 { "[\"sub\",\"b\"]" } else { "[\"unsub\",\"b\"]" });
            }
            changes += 1;
            match client.next().unwrap() {
                Frame::Message(channel, offset, _) => {
                    assert!(offset > seen, "{offset} after {seen}");
                    seen = offset;
                    if channel == "a" { own.push(offset) } else { others += 1 }
                }
                Frame::Cursor(cursor) => {
                    assert!(offset(&cursor) >= seen, "{cursor} after {seen}");
                    seen = offset(&cursor);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(own, witness.offsets(400));
        assert!(others <= 400);
    });
}

/// A position that was told covers what is queued, not what is still to come.
#[test]
fn subscribing_behind_a_queue_tells_a_position_before_it() {
    let server = Subject::start(1, |c| {
        c.limits.max_send_buffer_bytes = Some(4096);
        c.limits.max_queue_bytes = 8 << 20;
    });
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut http = Http::connect(server.address());
    let text = format!("\"{}\"", "x".repeat(50_000));
    while server.stats().queued_bytes < 1_000_000 {
        http.publish("a", &text);
    }
    client.send("[\"sub\",\"b\"]");
    let count = server.stats().received;
    let mut before = 0;
    let mut told = None;
    while before < count {
        match client.next().unwrap() {
            Frame::Message(_, offset, _) => {
                assert_eq!(offset, before + 1);
                before = offset;
                assert!(told.is_none_or(|at| at < offset), "{told:?} was told before {offset}");
            }
            Frame::Cursor(cursor) => told = Some(offset(&cursor)),
            other => panic!("{other:?}"),
        }
    }
    assert!(told.is_some());
}

/// A client that polls over a WebSocket and subscribes to more goes on where it was.
#[test]
fn subscribing_while_polling_goes_on_where_it_was() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    http.publish_times(5, "a", "1");
    let mut client = Client::open(server.address(), Kind::WebSocketPolling, "channel=a");
    http.publish("a", "2");
    client.send("[\"sub\",\"b\"]");
    // The answer is the position of the last poll.
    assert!(matches!(client.next(), Some(Frame::Cursor(c)) if offset(&c) == 5));
    http.publish("b", "3");
    assert_eq!(client.offsets(2), [6, 7]);
}
