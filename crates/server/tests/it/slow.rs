//! Subscribers that do not read.

use crate::harness::client::{Client, Frame, Kind, PUSHED};
use crate::harness::http::Http;
use crate::harness::{Subject, until, until_idle};
use pushlab_server::{Config, Policy};
use pushlab_wire::websocket::{Opcode, encode, handshake};
use socket2::SockRef;
use std::io::Write as _;
use std::time::Duration;

const TEXT_BYTES: usize = 50_000;
const COUNT: usize = 1000;
/// The limit, one message and a frame that was begun.
const MAX_QUEUED: i64 = 1_000_000 + 2 * TEXT_BYTES as i64;

fn start(policy: Policy, is_secure: bool) -> Subject {
    Subject::start_either(is_secure, 1, |c: &mut Config| {
        c.policy = policy;
        c.limits.max_queue_bytes = 1_000_000;
        c.limits.max_send_buffer_bytes = Some(64 * 1024);
        // A stalled one is not closed for that here, but ends with its test.
        c.limits.max_history_messages = 10;
        c.limits.drain_timeout = Duration::from_millis(200);
    })
}

/// Publishes 50 MB to two channels in turn, the last to each numbered as such, while a witness reads along.
fn flood(server: &Subject, is_secure: bool) {
    let mut http = Http::connect(server.dial(is_secure));
    let mut witness = Client::open(server.dial(is_secure), Kind::Sse, "channel=a&channel=b");
    let filler = "x".repeat(TEXT_BYTES);
    for n in 1..=COUNT {
        let offset = http.publish(["a", "b"][n % 2], &format!("\"{n} {filler}\""));
        assert_eq!(witness.message().1, offset, "others are not held up");
        let queued = server.stats().queued_bytes;
        assert!(queued <= 7 * MAX_QUEUED, "{queued} bytes are queued");
    }
}

#[test]
fn closing_ends_the_slow_and_nobody_else() {
    closing(false);
}

#[test]
fn closing_ends_the_slow_and_nobody_else_over_tls() {
    closing(true);
}

fn closing(is_secure: bool) {
    let server = start(Policy::Close, is_secure);
    let slow = PUSHED.map(|kind| (kind, Client::open(server.dial(is_secure), kind, "channel=a&channel=b")));
    flood(&server, is_secure);
    until("all the slow are closed", || {
        let stats = server.stats();
        stats.closed_slow == 7 && stats.queued_bytes == 0 && stats.slow_subscribers == 0
    });
    for (kind, mut client) in slow {
        let mut last = 0;
        while let Some(frame) = next_or_torn(&mut client) {
            let Frame::Message(_, offset, _) = frame else { panic!("{kind:?}: {frame:?}") };
            assert_eq!(offset, last + 1, "{kind:?}");
            last = offset;
        }
        assert!(last > 0 && last < COUNT as u64, "{kind:?}: {last}");
        let mut again = Client::resume(server.dial(is_secure), kind, "channel=a&channel=b", &client.cursor);
        assert!(matches!(again.next(), Some(Frame::Gap(from, _)) if from == client.cursor), "{kind:?}");
        assert_eq!(again.message().1, COUNT as u64 - 19);
    }
}

/// A stalled client may find its last frame torn.
fn next_or_torn(client: &mut Client) -> Option<Frame> {
    client.may_be_torn = true;
    client.next()
}

/// Whoever is slow but reads is told why it is closed.
#[test]
fn a_slow_websocket_hears_why_it_is_closed() {
    farewell(false);
}

#[test]
fn a_slow_websocket_hears_why_it_is_closed_over_tls() {
    farewell(true);
}

fn farewell(is_secure: bool) {
    let server = start(Policy::Close, is_secure);
    let mut slow = Client::open(server.dial(is_secure), Kind::WebSocket, "channel=a");
    let mut lines = Client::open(server.dial(is_secure), Kind::Lines, "channel=a");
    let mut http = Http::connect(server.dial(is_secure));
    let text = format!("\"{}\"", "x".repeat(TEXT_BYTES));
    while server.stats().closed_slow < 2 {
        http.publish("a", &text);
    }
    let mut count = 0;
    while let Some(frame) = slow.next() {
        assert!(matches!(frame, Frame::Message(..)), "{frame:?}");
        count += 1;
    }
    assert_eq!(slow.close_code, Some(4001));
    assert!(count > 0);
    while lines.next().is_some() {}
    assert!(lines.is_complete());
}

#[test]
fn dropping_the_oldest_keeps_the_newest_and_tells_the_gap() {
    dropping_the_oldest(false);
}

#[test]
fn dropping_the_oldest_keeps_the_newest_and_tells_the_gap_over_tls() {
    dropping_the_oldest(true);
}

fn dropping_the_oldest(is_secure: bool) {
    let server = start(Policy::DropOldest, is_secure);
    let slow = PUSHED.map(|kind| (kind, Client::open(server.dial(is_secure), kind, "channel=a&channel=b")));
    flood(&server, is_secure);
    assert_eq!(server.stats().closed_slow, 0);
    for (kind, mut client) in slow {
        let (mut last, mut gaps) = (0, 0);
        while last < COUNT as u64 {
            match client.next().unwrap() {
                Frame::Message(_, offset, _) => {
                    assert_eq!(offset, last + 1, "{kind:?}");
                    last = offset;
                }
                Frame::Gap(from, to) => {
                    assert_eq!(crate::harness::offset(&from), last, "{kind:?}");
                    last = crate::harness::offset(&to);
                    gaps += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(gaps > 0, "{kind:?}");
    }
    until("nothing is queued", || server.stats().queued_bytes == 0 && server.stats().slow_subscribers == 0);
}

#[test]
fn conflating_keeps_the_newest_of_each_channel() {
    conflating(false);
}

#[test]
fn conflating_keeps_the_newest_of_each_channel_over_tls() {
    conflating(true);
}

fn conflating(is_secure: bool) {
    let server = start(Policy::Conflate, is_secure);
    let slow = PUSHED.map(|kind| (kind, Client::open(server.dial(is_secure), kind, "channel=a&channel=b")));
    flood(&server, is_secure);
    for (kind, mut client) in slow {
        let mut messages = Vec::new();
        while messages.last().is_none_or(|(_, offset)| *offset < COUNT as u64) {
            let (channel, offset, _) = client.message();
            messages.push((channel, offset));
        }
        assert!(messages.is_sorted_by(|a, b| a.1 < b.1), "{kind:?}");
        assert!(messages.len() < COUNT / 2, "{kind:?}");
        let newest = [("b".to_owned(), COUNT as u64 - 1), ("a".to_owned(), COUNT as u64)];
        assert_eq!(messages[messages.len() - 2..], newest, "{kind:?}");
    }
    assert_eq!((server.stats().closed_slow, server.stats().gaps), (0, 0));
}

/// Replies that may wait for their peer, with one that was allowed when there was just room.
const MAX_REPLIES: i64 = 64 * 1024 + TEXT_BYTES as i64 + 100;

/// Messages that are answered by themselves, each told from the others.
fn echoes(count: usize, bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |n| {
        let mut frame = Vec::new();
        let text = format!("[\"echo\",\"{n} {}\"]", "x".repeat(bytes));
        encode(&mut frame, Opcode::Text, text.as_bytes(), Some([0; 4]));
        frame
    })
}

fn expect_echo(client: &mut Client, n: usize) {
    let frame = client.next();
    assert!(matches!(&frame, Some(Frame::Echo(data)) if data.starts_with(&format!("\"{n} "))), "{n}: {frame:?}");
}

/// It is asked for nothing more until it has taken its replies, and then all that it has said is read.
#[test]
fn one_who_only_asks_is_not_read_from() {
    const ECHOES: usize = 500;
    let server = start(Policy::Close, false);
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut writer = client.socket().try_clone().unwrap();
    let mut http = Http::connect(server.address());
    std::thread::scope(|scope| {
        scope.spawn(move || echoes(ECHOES, TEXT_BYTES).for_each(|frame| writer.write_all(&frame).unwrap()));
        until("replies wait", || server.stats().queued_bytes > 64 * 1024);
        let is_asked = http.publish("a", "1");
        let mut messages = Vec::new();
        let mut next = 0;
        while next < ECHOES {
            let queued = server.stats().queued_bytes;
            assert!(queued <= MAX_REPLIES, "{queued} bytes wait");
            match client.next() {
                Some(Frame::Message(_, offset, _)) => messages.push(offset),
                Some(Frame::Echo(data)) if data.starts_with(&format!("\"{next} ")) => next += 1,
                other => panic!("echo {next}: {other:?}"),
            }
        }
        if messages.is_empty() {
            messages.push(client.message().1);
        }
        assert_eq!(messages, [is_asked]);
    });
    client.send("[\"ping\",7]");
    assert_eq!(client.next(), Some(Frame::Pong(7)), "it goes on");
    let stats = server.stats();
    assert_eq!((stats.closed_slow, stats.closed_timeout, stats.queued_bytes, stats.slow_subscribers), (0, 0, 0, 0));
}

/// What stands sealed or in the working space of TLS is not forgotten.
#[test]
fn one_who_only_asks_is_not_read_from_over_tls() {
    const ECHOES: usize = 120;
    const BYTES: usize = 4000;
    let server = Subject::start_either(true, 1, |c| c.limits.max_send_buffer_bytes = Some(4096));
    let mut client = Client::open(server.dial(true), Kind::WebSocket, "channel=a");
    SockRef::from(client.socket()).set_recv_buffer_size(2048).unwrap();
    let texts = (0..ECHOES).map(|n| format!("[\"echo\",\"{n} {}\"]", "x".repeat(BYTES)));
    texts.for_each(|text| client.send(&text));
    until("replies wait", || server.stats().queued_bytes > 64 * 1024);
    for n in 0..ECHOES {
        let queued = server.stats().queued_bytes;
        assert!(queued <= 64 * 1024 + BYTES as i64 + 100, "{queued} bytes wait");
        expect_echo(&mut client, n);
    }
    assert_eq!((server.stats().closed_slow, server.stats().queued_bytes), (0, 0));
}

/// An endless stream of messages to `/echo` of which nothing comes back takes no more memory than other replies, and its
/// connection ends when it has taken nothing for too long.
#[test]
fn an_endless_echo_that_nobody_reads_ends() {
    let server = Subject::start(1, |c| {
        c.echoes = true;
        c.limits.max_send_buffer_bytes = Some(64 * 1024);
        c.limits.write_timeout = Duration::from_millis(300);
        // Neither by its silence nor by what is queued for it.
        c.limits.heartbeat = Duration::from_millis(100);
        c.limits.max_queue_bytes = 64 << 20;
    });
    let mut http = Http::connect(server.address());
    let mut request = Vec::new();
    handshake::encode_request(&mut request, "h", "/echo", [7; 16]);
    http.try_send(&request).unwrap();
    assert_eq!(http.head_of_response().status, 101);
    let mut writer = http.socket.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || echoes(usize::MAX, TEXT_BYTES).all(|frame| writer.write_all(&frame).is_ok()));
        until("it is closed", || {
            let stats = server.stats();
            assert!(stats.queued_bytes <= MAX_REPLIES, "{} bytes wait", stats.queued_bytes);
            stats.closed_timeout == 1
        });
    });
    assert_eq!(server.stats().closed_slow, 0);
    until_idle(&server);
}

/// Deliveries are not what it has asked for: who does not take them may publish and unsubscribe all the same.
#[test]
fn a_slow_subscriber_is_read_from() {
    const LARGE_BYTES: usize = 400_000;
    let server = Subject::start(1, |c| {
        c.limits.max_send_buffer_bytes = Some(64 * 1024);
        c.limits.max_queue_bytes = 64 << 20;
        c.limits.max_body_bytes = 1 << 20;
        c.limits.drain_timeout = Duration::from_millis(200);
    });
    let mut slow = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut witness = Client::open(server.address(), Kind::Sse, "channel=b");
    let mut http = Http::connect(server.address());
    let text = format!("\"{}\"", "x".repeat(LARGE_BYTES));
    while server.stats().queued_bytes < 4 * LARGE_BYTES as i64 {
        http.publish("a", &text);
    }
    let asked = ["[\"unsub\",\"a\"]", "[\"pub\",\"b\",1]", "[\"pub\",\"b\",2]"];
    asked.into_iter().for_each(|text| slow.send(text));
    assert_eq!([witness.message().2, witness.message().2], ["1", "2"]);
}
