//! Whoever was away gets what it missed, or is told that it is gone.

use crate::harness::client::{Client, Frame, Kind, PUSHED, all_kinds, version_of};
use crate::harness::http::Http;
use crate::harness::http2::Http2;
use crate::harness::{Subject, offset, until};
use pushlab_wire::http::Version;
use pushlab_wire::native::Announcement;
use std::time::Duration;

fn epoch(cursor: &str) -> &str {
    cursor.split('.').next().unwrap()
}

#[test]
fn a_cut_in_the_middle_loses_nothing() {
    let server = Subject::start(2, |_| {});
    let mut http = Http::connect(server.address());
    for kind in all_kinds() {
        let mut client = Client::open(server.address(), kind, "channel=a&channel=b");
        let start = offset(&client.cursor);
        for n in 0..10 {
            http.publish(["a", "b", "c"][n % 3], "1");
        }
        let expected: Vec<u64> = (0..20).filter(|n| n % 3 != 2 || *n >= 10).map(|n| start + n + 1).collect();
        assert_eq!(client.offsets(4), expected[..4], "{kind:?}");
        let cursor = client.cursor.clone();
        drop(client);
        http.publish_times(10, "b", "2");
        let mut client = Client::resume(server.address(), kind, "channel=a&channel=b", &cursor);
        assert_eq!(client.offsets(expected.len() - 4), expected[4..], "{kind:?}");
        // And it goes on.
        let next = http.publish("a", "3");
        assert_eq!(client.message().1, next, "{kind:?}");
    }
}

/// What was missed may be larger than any queue: it comes in parts while more is published.
#[test]
fn a_long_absence_is_made_up_for() {
    let server = Subject::start(2, |c| {
        c.limits.max_queue_bytes = 100_000;
        c.limits.max_send_buffer_bytes = Some(16 * 1024);
    });
    let mut http = Http::connect(server.address());
    let text = format!("\"{}<>\"", "x".repeat(20_000));
    http.publish_times(150, "a", &text);
    let start = format!("{}.0", epoch(&server.stats().cursor));
    for kind in all_kinds() {
        let mut client = Client::resume(server.address(), kind, "channel=a", &start);
        let count = server.stats().received;
        let expected: Vec<u64> = (1..=count).collect();
        assert_eq!(client.offsets(100), expected[..100], "{kind:?}");
        http.publish("a", "1");
        assert_eq!(client.offsets(count as usize - 100), expected[100..], "{kind:?}");
        assert_eq!(client.message().1, count + 1, "{kind:?}");
        assert!(server.stats().queued_bytes < 1_000_000);
    }
    assert_eq!((server.stats().gaps, server.stats().closed_slow), (0, 0));
}

#[test]
fn history_that_is_gone_is_a_gap() {
    let server = Subject::start(1, |c| c.limits.max_history_messages = 3);
    let mut http = Http::connect(server.address());
    for kind in all_kinds() {
        let client = Client::open(server.address(), kind, "channel=a");
        let cursor = client.cursor.clone();
        drop(client);
        let last = http.publish_times(10, "a", "1");
        let mut client = Client::resume(server.address(), kind, "channel=a", &cursor);
        let to = format!("{}.{}", epoch(&cursor), last - 3);
        assert_eq!(client.next(), Some(Frame::Gap(cursor, to)), "{kind:?}");
        assert_eq!(client.offsets(3), [last - 2, last - 1, last], "{kind:?}");
    }
    // The last is counted at the end of the turn, when the client has it already.
    until("all gaps are counted", || server.stats().gaps == 10);
}

#[test]
fn another_life_of_the_server_is_a_gap() {
    let first = Subject::start(2, |_| {});
    let address = first.address();
    let cursors: Vec<(Kind, String)> =
        all_kinds().map(|kind| (kind, Client::open(address, kind, "channel=a").cursor)).collect();
    first.end();
    let second = Subject::start_at(address, 2, |_| {});
    let mut http = Http::connect(address);
    http.publish("a", "1");
    for (kind, cursor) in cursors {
        let now = epoch(&second.stats().cursor).to_owned();
        assert_ne!(epoch(&cursor), now);
        let mut client = Client::resume(address, kind, "channel=a", &cursor);
        assert_eq!(client.next(), Some(Frame::Gap(cursor, format!("{now}.0"))), "{kind:?}");
        let last = offset(&second.stats().cursor);
        assert_eq!(client.offsets(last as usize), (1..=last).collect::<Vec<_>>());
        let next = http.publish("a", "2");
        assert_eq!(client.message().1, next, "{kind:?}");
    }
}

/// `Last-Event-ID` wins over `after`, as a browser sends both.
#[test]
fn an_event_source_resumes_by_its_header() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    http.publish_times(3, "a", "1");
    let now = epoch(&server.stats().cursor).to_owned();
    http.send(&format!("GET /sse?channel=a&after={now}.0 HTTP/1.0\r\nHost: h\r\nLast-Event-ID: {now}.2\r\n\r\n"));
    until("the message is here", || {
        http.fill();
        String::from_utf8_lossy(&http.buffer).ends_with("[\"msg\",\"a\",1]\n\n")
    });
    let text = String::from_utf8_lossy(&http.buffer).into_owned();
    assert_eq!(text.matches("data:").count(), 1, "{text}");
    assert!(text.contains(&format!("id:{now}.3\n")), "{text}");
}

/// A poll that waited in vain goes on from the present, so that what other channels forget is no gap to it.
#[test]
fn a_quiet_poll_moves_on() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let mut poller = Http::connect(server.address());
    let start = server.stats().cursor;
    poller.send(&format!("GET /poll?channel=quiet&after={start}&wait=0.3 HTTP/1.1\r\nHost: h\r\n\r\n"));
    until("the poll is held", || server.stats().held_polls == 1);
    let last = http.publish("other", "1");
    assert_eq!(poller.response().body, format!("[[\"cursor\",\"{}.{last}\"]]", epoch(&start)));
}

/// Who does not say where it is gets the newest messages with every poll, those of its own channel, as many as it wants.
#[test]
fn a_poll_for_the_newest_messages_gets_them_again_and_again() {
    let server = Subject::start(1, |_| {});
    let mut http = Http::connect(server.address());
    let poll = |http: &mut Http, count: u32| {
        http.send(&format!("GET /poll?channel=a&newest={count} HTTP/1.1\r\nHost: h\r\n\r\n"));
        http.response().body
    };
    let now = epoch(&server.stats().cursor).to_owned();
    assert_eq!(poll(&mut http, 1), format!("[[\"cursor\",\"{now}.0\"]]"), "there is none yet");
    http.publish_times(2, "a", "1");
    http.publish("b", "2");
    for _ in 0..2 {
        let newest = format!("[[\"msg\",\"a\",\"{now}.2\",1],[\"cursor\",\"{now}.3\"]]");
        assert_eq!(poll(&mut http, 1), newest);
    }
    let all = format!("[[\"msg\",\"a\",\"{now}.1\",1],[\"msg\",\"a\",\"{now}.2\",1],[\"cursor\",\"{now}.3\"]]");
    assert_eq!([poll(&mut http, 2), poll(&mut http, 10)], [all.clone(), all]);
}

/// Who asks is told before all else; where a gap comes before the position, that is behind it too.
#[test]
fn a_client_that_asks_is_told_heartbeat_and_limits_first() {
    let server = Subject::start(1, |config| {
        config.limits.heartbeat = Duration::from_micros(60_000_500);
        config.limits.max_message_bytes = 5000;
        config.limits.max_channels_per_connection = 7;
    });
    let told = |kind| {
        let http = Some(version_of(kind));
        Some(Frame::Server(Announcement { heartbeat_ms: 60_001, max_message_bytes: 5000, max_channels: 7, http }))
    };
    let mut http = Http::connect(server.address());
    for kind in PUSHED {
        let mut client = Client::resume(server.address(), kind, "v=2&channel=a", "");
        assert_eq!(client.next(), told(kind), "{kind:?}");
        assert_eq!(client.next(), Some(Frame::Cursor(server.stats().cursor)), "{kind:?}");
        let next = http.publish("a", "1");
        assert_eq!(client.message().1, next, "{kind:?}");
        let mut client = Client::resume(server.address(), kind, "v=2&channel=a", "elsewhere.1");
        assert_eq!(client.next(), told(kind), "{kind:?}");
        assert!(matches!(client.next(), Some(Frame::Gap(..))), "{kind:?}");
    }
    let mut client = Client::resume(server.address(), Kind::WebSocketPolling, "v=2&channel=a", "");
    let start = server.stats().cursor;
    assert_eq!(client.next(), told(Kind::WebSocketPolling), "before a poll is answered");
    assert_eq!(client.next(), Some(Frame::Cursor(start)));
    let next = http.publish("a", "2");
    assert_eq!(client.message().1, next, "in replies it never is");
}

#[test]
fn a_client_that_asks_is_told_the_version_of_http() {
    let server = Subject::start(1, |_| {});
    let http2 = Http2::connect(&server, false);
    for kind in PUSHED.into_iter().chain([Kind::WebSocketPolling]) {
        for (dial, version) in [(server.address().into(), version_of(kind)), (http2.streams(), Version::Http2)] {
            let mut client = Client::resume(dial, kind, "v=2&channel=a", "");
            let Some(Frame::Server(announcement)) = client.next() else { panic!("{kind:?} {version:?}") };
            assert_eq!(announcement.http, Some(version), "{kind:?}");
        }
    }
}

/// The body of a stream, to its first position.
fn beginning(server: &Subject, target: &str) -> String {
    let mut http = Http::connect(server.address());
    http.send(&format!("GET {target} HTTP/1.0\r\n\r\n"));
    let cursor = server.stats().cursor;
    while !String::from_utf8_lossy(&http.buffer).contains(&cursor) {
        assert!(http.fill());
    }
    let all = String::from_utf8_lossy(&http.buffer).into_owned();
    all.split_once("\r\n\r\n").unwrap().1.replace(&cursor, "CURSOR")
}

#[test]
fn nothing_is_said_to_a_client_that_does_not_ask() {
    const TOLD: &str =
        r#"["server",{"heartbeat_ms":3600000,"max_message_bytes":65536,"max_channels":64,"http":"1.0"}]"#;
    let server = Subject::start(1, |_| {});
    for (target, told, position) in [
        ("/sse?channel=a", format!("data:{TOLD}\n\n"), "id:CURSOR\n\n"),
        ("/stream?channel=a", format!("{TOLD}\n"), "[\"cursor\",\"CURSOR\"]\n"),
    ] {
        for old in ["", "&v=1", "&v=2&v=1"] {
            assert_eq!(beginning(&server, &format!("{target}{old}")), position, "{old}");
        }
        assert_eq!(beginning(&server, &format!("{target}&v=2")), told + position);
    }
    let mut http = Http::connect(server.address());
    let reply = http.get("/poll?channel=a").body;
    assert_eq!(http.get("/poll?channel=a&v=2").body, reply, "never in replies to polls");
    assert_eq!(http.get("/poll?channel=a&v=x").body, reply, "it is no parameter there");
    for path in ["/ws", "/sse", "/stream"] {
        for version in ["", "0", "3", "02", "2.0", "x"] {
            let refused = http.get(&format!("{path}?channel=a&v={version}"));
            assert_eq!((refused.status, refused.body.contains("v is 1 or 2")), (400, true), "{path} {version}");
        }
    }
}
