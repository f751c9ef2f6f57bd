//! Each named limit, at its border.

use crate::harness::client::{Client, Frame, Kind};
use crate::harness::http::Http;
use crate::harness::{Seam, Subject, seam, until, until_idle};
use pushlab_server::{Limits, Policy};
use socket2::SockRef;
use std::io::Write;
use std::time::{Duration, Instant};

fn start(change: impl FnOnce(&mut Limits)) -> Subject {
    Subject::start(1, |c| change(&mut c.limits))
}

const SHORT: Duration = Duration::from_millis(300);
/// Within this somebody who is to be heard says something on a busy machine, too.
const FAIR: Duration = Duration::from_secs(1);

#[test]
fn connections() {
    let server = Subject::start(2, |c| c.limits.max_connections = 3);
    let mut held: Vec<Client> = (0..3).map(|_| Client::open(server.address(), Kind::Sse, "channel=a")).collect();
    // It is answered before it asks.
    let mut refused = Http::connect(server.address());
    assert_eq!(refused.response().status, 503);
    refused.expect_end();
    assert_eq!(server.stats().refused, 1);
    held.pop();
    until("one has left", || server.stats().open == 2);
    Client::open(server.address(), Kind::WebSocket, "channel=a");
    drop(held);
    until_idle(&server);
}

#[test]
fn a_head() {
    let server = start(|l| l.max_head_bytes = 500);
    for (size, status) in [(500, 200), (501, 431), (5000, 431)] {
        for is_split in [false, true] {
            let start = "GET /healthz HTTP/1.1\r\nHost: h\r\nX: ";
            let head = format!("{start}{}\r\n\r\n", "y".repeat(size - start.len() - 4));
            assert_eq!(head.len(), size);
            let mut http = Http::connect(server.address());
            let at = if is_split { 300 } else { size };
            http.send(&head[..at]);
            // It may be refused before all is sent.
            let _ = http.socket.write_all(&head.as_bytes()[at..]);
            assert_eq!(http.response().status, status, "{size} bytes");
        }
    }
}

#[test]
fn fields_of_a_head() {
    let server = start(|_| {});
    for (count, status) in [(64, 200), (65, 431)] {
        let mut http = Http::connect(server.address());
        http.send(&format!("GET /healthz HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: y\r\n".repeat(count - 1)));
        assert_eq!(http.response().status, status);
    }
}

#[test]
fn a_body() {
    let server = start(|l| l.max_body_bytes = 10);
    for (body, status) in [("1234567890", 200), ("12345678901", 413)] {
        let mut http = Http::connect(server.address());
        assert_eq!(http.post("/publish?channel=a", body).status, status);
        let mut http = Http::connect(server.address());
        let (head, size) = ("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", body.len() - 5);
        http.send(&format!("{head}5\r\n12345\r\n{size:x}\r\n{}\r\n0\r\n\r\n", &body[5..]));
        assert_eq!(http.response().status, status);
    }
}

#[test]
fn a_message() {
    let server = start(|l| l.max_message_bytes = 100);
    let mut client = Client::open(server.address(), Kind::WebSocket, "");
    client.send(&format!("[\"echo\",\"{}\"]", "x".repeat(89)));
    assert!(matches!(client.next(), Some(Frame::Echo(_))));
    client.send(&format!("[\"echo\",\"{}\"]", "x".repeat(90)));
    assert_eq!((client.next(), client.close_code), (None, Some(1009)));
}

#[test]
fn channels_of_a_connection() {
    let server = start(|l| l.max_channels_per_connection = 2);
    let mut http = Http::connect(server.address());
    assert_eq!(http.get("/poll?channel=a&channel=b").status, 200);
    assert_eq!(http.get("/poll?channel=a&channel=b&channel=c").status, 400);
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    client.send("[\"sub\",\"b\"]");
    client.send("[\"sub\",\"c\"]");
    client.send("[\"unsub\",\"a\"]");
    client.send("[\"sub\",\"c\"]");
    assert!(matches!(client.next(), Some(Frame::Cursor(_))));
    assert_eq!(client.next(), Some(Frame::Error("too-many-channels".into())));
    assert!(matches!(client.next(), Some(Frame::Cursor(_))));
    assert!(matches!(client.next(), Some(Frame::Cursor(_))));
}

#[test]
fn history() {
    let server = start(|l| {
        l.max_channels = 2;
        l.max_history_messages = 2;
    });
    let mut http = Http::connect(server.address());
    for channel in ["a", "a", "a", "b", "c"] {
        http.publish(channel, "1");
    }
    // `c` is delivered, but there is no room for its history, and that of the others stays.
    let stats = server.stats();
    assert_eq!(stats.history_channels, 2);
    let epoch = stats.cursor.split('.').next().unwrap().to_owned();
    let mut poll = |channel: &str, after: u64| {
        http.get(&format!("/poll?channel={channel}&after={epoch}.{after}")).body.contains("\"gap\"")
    };
    assert_eq!([poll("a", 0), poll("a", 1), poll("b", 3)], [true, false, false]);
    assert_eq!([poll("c", 4), poll("c", 5)], [true, false]);
}

#[test]
fn a_reply() {
    let server = start(|l| l.max_reply_bytes = 100);
    let mut http = Http::connect(server.address());
    let start = server.stats().cursor;
    http.publish_times(5, "a", "\"12345678901234567890\"");
    http.publish("a", &format!("\"{}\"", "x".repeat(200)));
    let mut client = Client::resume(server.address(), Kind::LongPolling, "channel=a", &start);
    let mut sizes = Vec::new();
    while client.cursor != server.stats().cursor {
        client.ask();
        let mut size = 0;
        loop {
            match client.next() {
                Some(Frame::Message(..)) => size += 1,
                Some(Frame::Cursor(_)) => break,
                other => panic!("{other:?}"),
            }
        }
        sizes.push(size);
    }
    // Two fit; one that is larger than a reply comes alone.
    assert_eq!(sizes, [2, 2, 1, 1]);
}

#[test]
fn publications_on_their_way() {
    let server = start(|l| l.max_inbox_messages = 1);
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    // All three are read in one turn, in which one fits. With a log that answers later, each has a turn of its own.
    let is_one_turn = seam() != Seam::LateLog;
    let mut bytes = Vec::new();
    for n in 0..3 {
        let text = format!("[\"pub\",\"a\",{n}]");
        pushlab_wire::websocket::encode(
            &mut bytes,
            pushlab_wire::websocket::Opcode::Text,
            text.as_bytes(),
            Some([0; 4]),
        );
    }
    client.socket().write_all(&bytes).unwrap();
    if is_one_turn {
        let overloaded = Frame::Error("overloaded".into());
        assert_eq!([client.next(), client.next()], [Some(overloaded.clone()), Some(overloaded)]);
    }
    let taken: Vec<String> = (0..if is_one_turn { 1 } else { 3 }).map(|_| client.message().2).collect();
    assert_eq!(taken, ["0", "1", "2"][..taken.len()]);
    let mut http = Http::connect(server.address());
    http.publish("a", "3");
    assert_eq!(client.message().2, "3");
}

#[test]
fn a_full_inbox_is_said_over_http() {
    let server = start(|l| l.max_inbox_messages = 0);
    let response = Http::connect(server.address()).post("/publish?channel=a", "1");
    assert_eq!((response.status, response.head.contains("Retry-After: 1\r\n")), (503, true));
}

#[test]
fn the_wait_of_a_poll() {
    let server = start(|l| l.max_poll_wait = SHORT);
    let mut http = Http::connect(server.address());
    for wait in ["1e9", "0.1", "1e-300"] {
        assert_eq!(http.get(&format!("/poll?channel=a&wait={wait}")).status, 200);
    }
    for wait in ["-1", "inf", "nan", "x", ""] {
        assert_eq!(http.get(&format!("/poll?channel=a&wait={wait}")).status, 400, "{wait}");
    }
}

/// The time for a request runs from its first byte, however it trickles in.
#[test]
fn the_time_of_a_request() {
    let server = start(|l| l.head_timeout = FAIR);
    let address = server.address();
    let mut silent = Http::connect(address);
    let trickle = |first: &str, piece: &'static str| {
        let mut http = Http::connect(address);
        http.send(first);
        let mut writer = http.socket.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            while writer.write_all(piece.as_bytes()).is_ok() {
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        (http, thread)
    };
    let head = "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n";
    let trickling = [
        trickle("GET /healthz HTTP/1.1\r\nHost: h\r\nX: ", "y"),
        trickle("\r\n", "\r\n"),
        trickle("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n", "y"),
        trickle("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;", "y"),
        trickle(&format!("{head}GET "), "y"),
    ];
    for (n, (mut http, thread)) in trickling.into_iter().enumerate() {
        if n == 4 {
            assert_eq!(http.response().status, 200);
        }
        assert_eq!(http.response().status, 408, "{n}");
        http.expect_end();
        thread.join().unwrap();
    }
    silent.expect_end();
    assert_eq!(server.stats().closed_timeout, 6);
    until_idle(&server);
}

#[test]
fn the_time_between_requests() {
    let server = start(|l| l.idle_timeout = FAIR);
    let mut http = Http::connect(server.address());
    for _ in 0..3 {
        assert_eq!(http.get("/healthz").status, 200);
    }
    http.expect_end();
    until_idle(&server);
}

#[test]
fn the_time_between_heartbeats() {
    let server = start(|l| l.heartbeat = SHORT);
    let mut deaf = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut stream = Http::connect(server.address());
    stream.send("GET /stream?channel=a HTTP/1.0\r\n\r\n");
    // Nobody answers the ping.
    assert_eq!((deaf.next(), deaf.close_code), (None, Some(4002)));
    until("two heartbeats came", || {
        stream.fill();
        // The first position is the stream's beginning.
        String::from_utf8_lossy(&stream.buffer).matches("[\"cursor\"").count() >= 3
    });
}

/// Long before the second, once, and for those alone who ask for it.
#[test]
fn the_time_until_the_first_heartbeat_of_a_stream() {
    let server = start(|l| l.first_heartbeat = SHORT);
    let mut socket = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut stream = Client::open(server.address(), Kind::Lines, "channel=a");
    for (target, position) in [("/sse", "id:"), ("/stream", "[\"cursor\""), ("/stream?format=script", "[\"cursor\"")] {
        let separator = if target.contains('?') { "&" } else { "?" };
        let mut stream = Http::connect(server.address());
        stream.send(&format!("GET {target}{separator}channel=a&early=1 HTTP/1.0\r\n\r\n"));
        let mut positions = || {
            assert!(stream.fill(), "{target} ended");
            String::from_utf8_lossy(&stream.buffer).matches(position).count()
        };
        while positions() < 2 {}
    }
    let offset = Http::connect(server.address()).publish("a", "1");
    assert!(matches!(stream.next(), Some(Frame::Message(_, o, _)) if o == offset));
    assert!(matches!(socket.next(), Some(Frame::Message(_, o, _)) if o == offset));
}

/// One that is always behind, but reads, lives without a ping.
#[test]
fn a_slow_reader_is_not_taken_for_dead() {
    let server = Subject::start(1, |c| {
        c.limits.heartbeat = Duration::from_millis(200);
        c.limits.max_send_buffer_bytes = Some(4096);
        c.limits.max_queue_bytes = 64 << 20;
        c.policy = Policy::DropOldest;
    });
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    SockRef::from(client.socket()).set_recv_buffer_size(64 * 1024).unwrap();
    let mut http = Http::connect(server.address());
    let text = format!("\"{}\"", "x".repeat(60_000));
    let mut read = 0;
    let mut read_one = || {
        while server.stats().queued_bytes < 4 << 20 {
            http.publish("a", &text);
        }
        read += 1;
        assert_eq!(client.message().1, read);
    };
    read_one();
    // This one is not behind, and says nothing: the other's time would be over before.
    let mut dead = Client::open(server.address(), Kind::WebSocket, "channel=b");
    until("one that does not answer a ping is closed", || {
        read_one();
        server.stats().closed_timeout > 0
    });
    assert_eq!((dead.next(), dead.close_code), (None, Some(4002)));
    (0..20).for_each(|_| read_one());
    assert_eq!(server.stats().closed_timeout, 1);
}

#[test]
fn the_time_without_progress() {
    let server = start(|l| {
        l.write_timeout = SHORT;
        l.max_send_buffer_bytes = Some(4096);
        l.max_queue_bytes = 64 << 20;
    });
    let stalled = [Kind::WebSocket, Kind::Sse].map(|kind| Client::open(server.address(), kind, "channel=a"));
    let mut http = Http::connect(server.address());
    let text = format!("\"{}\"", "x".repeat(60_000));
    // An answer that nobody reads stalls too.
    let start = server.stats().cursor;
    http.publish_times(100, "a", &text);
    let mut poller = Http::connect(server.address());
    poller.send(&format!("GET /poll?channel=a&after={start} HTTP/1.1\r\nHost: h\r\n\r\n").repeat(40));
    until("all three are closed", || server.stats().open == 1);
    assert_eq!(server.stats().queued_bytes, 0);
    drop(stalled);
}

#[test]
fn the_time_to_stop() {
    let server = Subject::start(2, |c| {
        c.limits.drain_timeout = SHORT;
        c.limits.max_send_buffer_bytes = Some(4096);
        c.limits.max_queue_bytes = 64 << 20;
    });
    let stalled = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut half = Http::connect(server.address());
    half.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12");
    let mut http = Http::connect(server.address());
    http.publish_times(100, "a", &format!("\"{}\"", "x".repeat(60_000)));
    server.end();
    drop(stalled);
}

/// Peers that ask and do not read make the server hold no more than it may, for all of them together, and of each no
/// more than one answer.
#[test]
fn answers_that_nobody_reads() {
    let max = 1 << 20;
    let server = start(|l| {
        l.max_queued_total_bytes = max;
        l.max_send_buffer_bytes = Some(4096);
    });
    let start = server.stats().cursor;
    let mut http = Http::connect(server.address());
    http.publish_times(4, "a", &format!("\"{}\"", "x".repeat(60_000)));
    let request = format!("GET /poll?channel=a&after={start} HTTP/1.1\r\nHost: h\r\n\r\n");
    let ask = |times| {
        let mut http = Http::connect(server.address());
        http.send(&request.repeat(times));
        http
    };
    let asked = server.stats().requests;
    let one = ask(50);
    until("one answer waits", || server.stats().queued_bytes > 0);
    assert_eq!(http.get("/healthz").status, 200);
    assert!(server.stats().requests - asked < 50, "one who does not read is not answered further");
    let peers: Vec<Http> = (0..60).map(|_| ask(1)).collect();
    until("somebody is closed", || server.stats().closed_slow > 0);
    until("all have been answered", || {
        let queued = server.stats().queued_bytes;
        assert!(queued <= max as i64, "{queued} bytes are queued");
        server.stats().requests - asked > 60
    });
    drop((one, peers));
    until("nothing is queued", || server.stats().queued_bytes == 0);
    assert_eq!(http.get("/healthz").status, 200);
}

/// Nor do subscribers who stop in the middle of a large message.
#[test]
fn messages_that_nobody_reads_to_their_end() {
    let max = 4 << 20;
    let server = start(|l| {
        l.max_queued_total_bytes = max;
        l.max_send_buffer_bytes = Some(4096);
        l.max_message_bytes = 1 << 20;
        l.max_body_bytes = 1 << 20;
        l.max_queue_bytes = 1 << 20;
    });
    let mut http = Http::connect(server.address());
    let stalled: Vec<Client> =
        (0..60).map(|i| Client::open(server.address(), [Kind::WebSocket, Kind::Sse][i % 2], "channel=a")).collect();
    http.publish("a", &format!("\"{}\"", "x".repeat(400_000)));
    until("it has gone to all, and to too many", || {
        let stats = server.stats();
        assert!(stats.queued_bytes <= max as i64, "{} bytes are queued", stats.queued_bytes);
        stats.closed_slow > 0 && stats.open + stats.closed_slow as i64 == 61
    });
    let kept = server.stats();
    assert!(kept.slow_subscribers as usize > max / 400_000 / 2, "{kept:?}");
    drop(stalled);
    until("nothing is queued", || server.stats().queued_bytes == 0 && server.stats().slow_subscribers == 0);
    assert_eq!(http.get("/healthz").status, 200);
}

/// Somebody who has sent thousands of requests at once does not keep the event loop from others.
#[test]
fn work_for_one_connection_in_one_turn() {
    // The answers to all that is asked for here fit the queue of a peer that reads none.
    let server = start(|l| l.max_queue_bytes = 64 << 20);
    let mut quick = Http::connect(server.address());
    assert_eq!(quick.get("/healthz").status, 200);
    let request = "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n";
    let pages = (60 << 10) / request.len();
    let burst = request.repeat(pages);
    // The machine may halt this thread between the two requests, but not each time.
    let is_fair = (0..10).any(|_| {
        let before = server.stats().requests;
        let mut busy: Vec<Http> = (0..4).map(|_| Http::connect(server.address())).collect();
        busy.iter_mut().for_each(|http| http.send(&burst));
        // The second one is answered in a later turn: what the first was answered in has been counted by then.
        (0..2).for_each(|_| assert_eq!(quick.post("/echo", "x").body, "x"));
        let done = server.stats().requests - before;
        for http in &mut busy {
            (0..pages).for_each(|_| assert_eq!(http.response().status, 200));
        }
        done < pages as u64 / 2
    });
    assert!(is_fair, "an echo waited each time until one peer had all its {pages} pages");
}

/// A set of channels costs what its channels cost, however many sets there are: thousands of polls that each name 63
/// channels that all have and one of their own.
#[test]
fn sets_of_channels_that_share_most() {
    let shared: String = (0..63).map(|i| format!("channel=shared{i}&")).collect();
    let time = |count: usize| {
        let server = start(|_| {});
        let mut http = Http::connect(server.address());
        let begun = Instant::now();
        for at in (0..count).step_by(50) {
            let polls = (at..at + 50).map(|i| format!("GET /poll?{shared}channel=own{i} HTTP/1.1\r\nHost: h\r\n\r\n"));
            http.send(&polls.collect::<String>());
            (0..50).for_each(|_| assert_eq!(http.response().status, 200));
        }
        begun.elapsed()
    };
    // Four times as many take four times as long, if not less; they would take sixteen times if each looked at all.
    let ratio = (0..3).map(|_| time(8000).as_secs_f64() / time(2000).as_secs_f64()).fold(f64::INFINITY, f64::min);
    assert!(ratio < 8.0, "four times as many sets take {ratio:.1} times as long");
}
