//! Windows that are shut or open by a byte, and peers that do not read.

use crate::harness::client::{Client, Frame, Kind, STREAMED};
use crate::harness::http::Http;
use crate::harness::http2::{END_HEADERS, END_STREAM, Http2, INITIAL_WINDOW_SIZE, Raw, WEBSOCKET, frame, kind};
use crate::harness::{PATIENCE, Subject, offset, until, until_idle};
use pushlab_http2::frame::Code;
use pushlab_server::{Config, Policy};
use std::time::{Duration, Instant};

const COUNT: u64 = 200;
/// Within this a peer that reads takes something on a busy machine, too.
const FAIR: Duration = Duration::from_secs(1);

fn start(policy: Policy, is_secure: bool, change: impl FnOnce(&mut Config)) -> Subject {
    Subject::start_either(is_secure, 1, |c| {
        c.policy = policy;
        c.limits.max_queue_bytes = 200_000;
        c.limits.max_history_messages = 10;
        c.limits.drain_timeout = Duration::from_millis(200);
        change(c);
    })
}

/// Publishes far more than windows and queues hold to two channels in turn, while a stream of the same connection reads
/// along.
fn flood(http2: &Http2, witness: &mut Client) {
    let mut http = Http::connect(http2.streams());
    let filler = "x".repeat(10_000);
    for n in 1..=COUNT {
        let offset = http.publish(["a", "b"][n as usize % 2], &format!("\"{n} {filler}\""));
        assert_eq!(witness.message().1, offset, "others are not held up");
    }
}

/// One connection on which one stream of each kind does not read, and one does.
fn held(server: &Subject, is_secure: bool) -> (Http2, Vec<Client>, Client) {
    let http2 = Http2::connect(server, is_secure);
    let mut slow: Vec<Client> =
        STREAMED.iter().map(|&kind| Client::open(http2.streams(), kind, "channel=a&channel=b")).collect();
    slow.iter_mut().for_each(|client| client.stream().hold());
    let mut witness = Client::open(http2.streams(), Kind::Sse, "channel=a&channel=b");
    flood(&http2, &mut witness);
    (http2, slow, witness)
}

#[test]
fn closing_ends_the_slow_streams_and_no_other() {
    for is_secure in [false, true] {
        let server = start(Policy::Close, is_secure, |_| {});
        let (http2, slow, mut witness) = held(&server, is_secure);
        until("all the slow are closed", || server.stats().closed_slow == 4);
        for mut client in slow {
            // Who reads again is told why it was closed.
            client.stream().release();
            let mut last = 0;
            while let Some(frame) = client.next() {
                let Frame::Message(_, offset, _) = frame else { panic!("{frame:?}") };
                assert_eq!(offset, last + 1);
                last = offset;
            }
            assert!(last > 0 && last < COUNT && client.is_complete(), "{last}");
            assert!(client.close_code.is_none_or(|code| code == 4001));
            let mut again = Client::resume(http2.streams(), Kind::Lines, "channel=a&channel=b", &client.cursor);
            assert!(matches!(again.next(), Some(Frame::Gap(from, _)) if from == client.cursor));
            assert_eq!(again.message().1, COUNT - 19);
            again.stream().reset(Code::Cancel);
        }
        let next = Http::connect(http2.streams()).publish("a", "1");
        assert_eq!(witness.message().1, next);
        assert_eq!((http2.farewells(), server.stats().closed_slow), (vec![], 4));
        until("nothing is queued", || server.stats().queued_bytes == 0 && server.stats().slow_subscribers == 0);
        drop((http2, witness));
        until_idle(&server);
    }
}

#[test]
fn dropping_the_oldest_tells_the_slow_streams_their_gaps() {
    let server = start(Policy::DropOldest, false, |_| {});
    let (http2, slow, _witness) = held(&server, false);
    for mut client in slow {
        client.stream().release();
        let (mut last, mut gaps) = (0, 0);
        while last < COUNT {
            match client.next().unwrap() {
                Frame::Message(_, offset, _) => {
                    assert_eq!(offset, last + 1);
                    last = offset;
                }
                Frame::Gap(from, to) => {
                    assert_eq!(offset(&from), last);
                    last = offset(&to);
                    gaps += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(gaps > 0);
    }
    assert_eq!((server.stats().closed_slow, http2.farewells()), (0, vec![]));
    until("nothing is queued", || server.stats().queued_bytes == 0 && server.stats().slow_subscribers == 0);
}

#[test]
fn conflating_keeps_the_newest_for_the_slow_streams() {
    let server = start(Policy::Conflate, false, |_| {});
    let (_http2, slow, _witness) = held(&server, false);
    for mut client in slow {
        client.stream().release();
        let mut messages = Vec::new();
        while messages.last().is_none_or(|(_, offset)| *offset < COUNT) {
            let (channel, offset, _) = client.message();
            messages.push((channel, offset));
        }
        assert!(messages.is_sorted_by(|a, b| a.1 < b.1) && messages.len() < COUNT as usize / 2);
        assert_eq!(messages[messages.len() - 2..], [("b".to_owned(), COUNT - 1), ("a".to_owned(), COUNT)]);
    }
    assert_eq!((server.stats().closed_slow, server.stats().gaps), (0, 0));
}

#[test]
fn a_stream_that_takes_nothing_for_long_is_reset_alone() {
    let server = start(Policy::DropOldest, false, |c| c.limits.write_timeout = FAIR);
    let (http2, mut slow, mut witness) = held(&server, false);
    for client in &mut slow {
        assert_eq!(client.stream().expect_reset(), Code::Cancel);
    }
    until("they have gone", || server.stats().open == 2 && server.stats().queued_bytes == 0);
    assert_eq!(server.stats().closed_timeout, 4);
    flood(&http2, &mut witness);
}

/// Nor is a stream read from whose replies are not: its window stays shut, and that of its connection open.
#[test]
fn a_stream_whose_echoes_are_not_read_is_not_read_from() {
    // More than the client's window and what may wait, and less than that and the server's window, of which up to a half
    // is given back later than it is used.
    const ECHOES: usize = 40;
    const BYTES: usize = 4000;
    for is_secure in [false, true] {
        let server = Subject::start_either(is_secure, 1, |_| {});
        let http2 = Http2::connect(&server, is_secure);
        let mut client = Client::open(http2.streams(), Kind::WebSocket, "channel=a");
        client.stream().hold();
        for n in 0..ECHOES {
            client.send(&format!("[\"echo\",\"{n} {}\"]", "x".repeat(BYTES)));
        }
        let mut witness = Client::open(http2.streams(), Kind::WebSocket, "channel=a");
        until("replies wait", || server.stats().queued_bytes > 64 * 1024);
        // What it said last has come by then, since it is of the same connection.
        witness.send("[\"ping\",1]");
        assert_eq!(witness.next(), Some(Frame::Pong(1)));
        let queued = server.stats().queued_bytes;
        assert!(queued <= 64 * 1024 + BYTES as i64 + 100, "{queued} bytes wait");
        client.stream().release();
        for n in 0..ECHOES {
            let frame = client.next();
            assert!(
                matches!(&frame, Some(Frame::Echo(data)) if data.starts_with(&format!("\"{n} "))),
                "{n}: {frame:?}"
            );
        }
        client.send("[\"ping\",2]");
        assert_eq!(client.next(), Some(Frame::Pong(2)));
        assert_eq!((server.stats().closed_slow, server.stats().queued_bytes), (0, 0));
    }
}

/// A peer that reads nothing at all is let go as a whole.
fn one_who_does_not_read(policy: Policy, change: impl FnOnce(&mut Config)) {
    let server = start(policy, false, |c| {
        c.limits.max_send_buffer_bytes = Some(16 * 1024);
        c.limits.write_timeout = FAIR;
        change(c);
    });
    let http2 = Http2::connect(&server, false);
    let mut witness = Client::open(http2.streams(), Kind::Sse, "channel=a&channel=b");
    let mut raw = Raw::connect(&server, &[(INITIAL_WINDOW_SIZE, 1 << 30)]);
    raw.frame(kind::WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
    for stream in [1, 3, 5] {
        let get = raw.get(stream, "/stream?channel=a&channel=b");
        raw.send(&get).unwrap();
    }
    until("it subscribes", || server.stats().connections["http-streaming"] == 3);
    let end = Instant::now() + PATIENCE;
    while server.stats().http2 == 2 {
        assert!(Instant::now() < end, "it is not let go: {:?}", server.stats());
        flood(&http2, &mut witness);
    }
    until("it is let go", || {
        let stats = server.stats();
        assert!(stats.queued_bytes <= 3 * 300_000, "{stats:?}");
        (stats.open, stats.queued_bytes, stats.slow_subscribers) == (2, 0, 0)
    });
    let next = Http::connect(http2.streams()).publish("a", "1");
    assert_eq!(witness.message().1, next);
    drop((http2, witness));
    until_idle(&server);
}

#[test]
fn one_who_does_not_read_is_closed_where_the_slow_are() {
    one_who_does_not_read(Policy::Close, |_| {});
}

#[test]
fn one_who_does_not_read_is_closed_where_the_oldest_is_dropped() {
    one_who_does_not_read(Policy::DropOldest, |_| {});
}

#[test]
fn one_who_does_not_read_is_closed_where_all_queues_are_full() {
    one_who_does_not_read(Policy::DropOldest, |c| c.limits.max_queued_total_bytes = 60_000);
}

/// The bytes of the body of a stream up to an end, permitted one at a time.
fn byte_by_byte(raw: &mut Raw, stream: u32, end: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while !body.ends_with(end) {
        raw.frame(kind::WINDOW_UPDATE, 0, stream, &1_u32.to_be_bytes());
        let (_, _, of, payload) = raw.next_of(kind::DATA);
        assert_eq!((of, payload.len()), (stream, 1), "no more than the window allows");
        body.extend(payload);
    }
    body
}

#[test]
fn windows_of_a_byte_deliver_everything_in_order() {
    let server = Subject::start(1, |_| {});
    let mut raw = Raw::connect(&server, &[(INITIAL_WINDOW_SIZE, 0)]);
    let paths = ["/ws?channel=a", "/sse?channel=a", "/stream?channel=a", "/stream?channel=a&format=script"];
    for (stream, path) in (1..).step_by(2).zip(paths) {
        let head = if stream == 1 {
            let block = raw.block("CONNECT", path, &WEBSOCKET);
            frame(kind::HEADERS, END_HEADERS, stream, &block)
        } else {
            raw.get(stream, path)
        };
        raw.send(&head).unwrap();
        assert_eq!(raw.next_of(kind::HEADERS).2, stream);
    }
    let mut http = Http::connect(server.address());
    for n in 0..12 {
        http.publish("a", &format!("\"message {n} of twelve\""));
    }
    for (stream, end) in [(3, &b"\n"[..]), (1, b"]"), (7, b"\n"), (5, b"\n")] {
        let mut told = Vec::new();
        while !String::from_utf8_lossy(&told).contains("message 11 of twelve\"") {
            told.extend(byte_by_byte(&mut raw, stream, end));
        }
        let told = String::from_utf8_lossy(&told).into_owned();
        let places: Vec<_> = (0..12)
            .map(|n| told.match_indices(&format!("\"message {n} of")).map(|m| m.0).collect())
            .collect::<Vec<Vec<_>>>();
        assert!(places.iter().all(|places| places.len() == 1) && places.is_sorted(), "{told}");
    }
    // A poll's answer too, which ends; and settings open windows that were shut.
    let poll = raw.get(9, "/poll?channel=a");
    raw.send(&poll).unwrap();
    assert!(byte_by_byte(&mut raw, 9, b"\"]]").starts_with(b"[[\"cursor\""));
    let poll = raw.get(11, "/poll?channel=a");
    raw.send(&poll).unwrap();
    assert_eq!(raw.next_of(kind::HEADERS).2, 11);
    raw.frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 1, 0]);
    // The streams before it get what they had left.
    let (_, flags, _, payload) = std::iter::repeat_with(|| raw.next_of(kind::DATA)).find(|data| data.2 == 11).unwrap();
    assert!(payload.starts_with(b"[[\"cursor\"") && flags & END_STREAM != 0, "{flags}");
}
