//! Subscribers that do not read.

use crate::harness::client::{Client, Frame, Kind, PUSHED};
use crate::harness::http::Http;
use crate::harness::{Subject, until};
use pushlab_server::{Config, Policy};

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
        c.limits.drain_timeout = std::time::Duration::from_millis(200);
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

/// Answers that nobody reads are bounded too.
#[test]
fn one_who_only_asks_is_closed() {
    let server = start(Policy::DropOldest, false);
    let client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut http = Http::connect(server.address());
    let echo = format!("[\"echo\",\"{}\"]", "x".repeat(TEXT_BYTES));
    std::thread::scope(|scope| {
        // It writes until the server closes.
        scope.spawn(|| {
            let mut bytes = Vec::new();
            pushlab_wire::websocket::encode(
                &mut bytes,
                pushlab_wire::websocket::Opcode::Text,
                echo.as_bytes(),
                Some([0; 4]),
            );
            while std::io::Write::write_all(&mut client.socket(), &bytes).is_ok() {}
        });
        until("it is closed", || server.stats().closed_slow == 1);
    });
    assert_eq!(http.get("/healthz").status, 200);
    until("nothing is queued", || server.stats().queued_bytes == 0);
}
