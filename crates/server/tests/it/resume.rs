//! Whoever was away gets what it missed, or is told that it is gone.

use crate::harness::client::{Client, Frame, Kind, all_kinds};
use crate::harness::http::Http;
use crate::harness::{Subject, offset, until};

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
    assert_eq!(server.stats().gaps, 10);
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
