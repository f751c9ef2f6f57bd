//! `Content-Encoding: gzip`: streams, polls, and who does not get it.

use super::{data, incompressible_halves, start, start_for_slow};
use crate::harness::http::Http;
use crate::harness::http2::Http2;
use crate::harness::{Dial, Subject, until, until_idle};
use flate2::write::GzDecoder;
use pushlab_wire::http::{BodyDecoder, BodyKind, Headers, parse_response};
use std::io::Write as _;

const ASKS: &str = "Accept-Encoding: br, gzip\r\n";

/// An answer that may be gzip, as it comes.
struct Answer {
    http: Http,
    head: String,
    body: BodyDecoder,
    decoder: Option<GzDecoder<Vec<u8>>>,
    text: Vec<u8>,
    /// Bytes of the body as they came.
    size: usize,
}

impl Answer {
    /// Asks, and reads the head.
    fn to(dial: impl Into<Dial>, target: &str, fields: &str) -> Self {
        let mut http = Http::connect(dial);
        http.send(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        Self::coming(http)
    }

    /// Reads the head of what was asked for.
    fn coming(mut http: Http) -> Self {
        let (head, kind) = if http.stream.is_some() {
            let (status, head) = http.stream().head().unwrap();
            assert_eq!(status, 200);
            (head, BodyKind::UntilClose)
        } else {
            loop {
                let mut headers = Headers::default();
                if let Some((head, size)) = parse_response(&http.buffer, &mut headers).unwrap() {
                    assert_eq!(head.status, 200);
                    let (kind, text) = (head.body, String::from_utf8(http.buffer[..size].to_vec()).unwrap());
                    http.buffer.drain(..size);
                    break (text, kind);
                }
                assert!(http.fill());
            }
        };
        let is_gzip = head.to_lowercase().contains("content-encoding: gzip\r\n");
        let decoder = is_gzip.then(|| GzDecoder::new(Vec::new()));
        Self { http, head, body: BodyDecoder::new(kind), decoder, text: Vec::new(), size: 0 }
    }

    fn is_gzip(&self) -> bool {
        self.decoder.is_some()
    }

    /// Takes in what has come; says whether the body goes on.
    fn take_in(&mut self) -> bool {
        while !self.http.buffer.is_empty() && !self.body.is_done() {
            let step = self.body.decode(&self.http.buffer).unwrap();
            self.size += step.data.len();
            match &mut self.decoder {
                None => self.text.extend_from_slice(step.data),
                Some(decoder) => {
                    decoder.write_all(step.data).unwrap();
                    decoder.flush().unwrap();
                    self.text.append(decoder.get_mut());
                }
            }
            let consumed = step.consumed;
            if consumed == 0 {
                break;
            }
            self.http.buffer.drain(..consumed);
        }
        !self.body.is_done()
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.text).unwrap()
    }

    /// Reads until this was said.
    fn until_said(&mut self, text: &str) -> &str {
        while !self.text().contains(text) {
            assert!(self.http.fill(), "it ended without {text}, after {}", self.text());
            assert!(self.take_in());
        }
        self.text()
    }

    /// Reads to the end of the body: the text, and whether the answer itself said that it ends there.
    fn whole(mut self) -> (String, bool) {
        let has_end = loop {
            if !self.take_in() {
                break true;
            }
            if !self.http.fill() {
                break false;
            }
        };
        self.take_in();
        (String::from_utf8(self.text).unwrap(), has_end)
    }
}

#[test]
fn a_stream_of_gzip_says_what_a_plain_one_does() {
    let server = start(2);
    let http2 = Http2::connect(&server, false);
    let published: Vec<String> = (0..30).map(|n| data(n, [10, 300, 5_000, 60_000][n % 4])).collect();
    for (n, target) in ["/sse?channel=a", "/stream?channel=b"].into_iter().enumerate() {
        let mut plain = Answer::to(server.address(), target, "");
        assert!(!plain.is_gzip());
        let dials = [Dial::from(server.address()), server.address().into(), http2.streams(), http2.streams()];
        let mut compressed = dials.map(|dial| Answer::to(dial, target, ASKS));
        assert!(compressed.iter().all(Answer::is_gzip));
        let mut http = Http::connect(server.address());
        for data in &published {
            http.publish(["a", "b"][n], data);
        }
        let expected = plain.until_said(published.last().unwrap()).to_owned();
        for answer in &mut compressed {
            answer.until_said(published.last().unwrap());
            assert!(answer.text() == expected, "over {}", answer.head);
            assert!(answer.size < plain.size / 3, "{} of {} bytes", answer.size, plain.size);
        }
        // What was published before is there for those who come later, compressed or not.
        let after = expected.split_once("id:").map(|(_, rest)| rest.split_once('\n').unwrap().0);
        if let Some(after) = after {
            let mut late = Answer::to(server.address(), &format!("/sse?channel=a&after={after}"), ASKS);
            let text = late.until_said(published.last().unwrap());
            assert!(published.iter().all(|data| text.contains(data.as_str())));
        }
    }
}

#[test]
fn replies_are_gzip_where_that_is_smaller() {
    let server = start(2);
    let http2 = Http2::connect(&server, false);
    let cursor = server.stats().cursor;
    let long = format!("/poll?channel=a&wait=60&after={cursor}");
    let before = server.stats().held_polls;
    let held: Vec<(Http, bool)> = (0..12)
        .map(|n| {
            let mut http = if n % 3 == 2 { Http::connect(http2.streams()) } else { Http::connect(server.address()) };
            let origin = if n % 4 == 3 { "Origin: http://other.example\r\n" } else { "" };
            let asks = if n % 2 == 0 { ASKS } else { "" };
            http.send(&format!("GET {long} HTTP/1.1\r\nHost: h\r\n{asks}{origin}\r\n"));
            (http, n % 2 == 0)
        })
        .collect();
    until("all are held", || server.stats().held_polls == before + 12);
    let mut http = Http::connect(server.address());
    http.publish("a", &data(1, 3_000));
    let mut texts = Vec::new();
    for (http, asks) in held {
        let answer = Answer::coming(http);
        assert_eq!(answer.is_gzip(), asks, "{}", answer.head);
        let is_http2 = answer.http.stream.is_some();
        let (text, has_end) = answer.whole();
        assert!(has_end || is_http2);
        texts.push(text);
    }
    texts.dedup();
    assert!(texts.len() == 1 && texts[0].contains(&data(1, 3_000)), "{texts:?}");
    // One that does not wait.
    let answer = Answer::to(server.address(), &format!("/poll?channel=a&after={cursor}"), ASKS);
    assert!(answer.is_gzip());
    assert_eq!(answer.whole(), (texts.remove(0), true));
    // What is small stays as it is.
    let answer = Answer::to(server.address(), "/poll?channel=a", ASKS);
    assert!(!answer.is_gzip());
    assert!(answer.whole().0.starts_with("[[\"cursor\""));
}

#[test]
fn who_does_not_ask_or_may_not_gets_plain_text() {
    let off = Subject::start(1, |_| {});
    let on = start(1);
    for (server, fields) in
        [(&off, ASKS), (&on, ""), (&on, "Accept-Encoding: br\r\n"), (&on, "Accept-Encoding: gzip;q=0\r\n")]
    {
        for target in ["/sse?channel=a", "/stream?channel=a", "/stats"] {
            assert!(!Answer::to(server.address(), target, fields).is_gzip(), "{target} {fields}");
        }
    }
    assert!(!Answer::to(on.address(), "/stream?format=script&channel=a", ASKS).is_gzip());
    let mut old = Http::connect(on.address());
    old.send(&format!("GET /sse?channel=a HTTP/1.0\r\n{ASKS}\r\n"));
    assert!(!Answer::coming(old).is_gzip());
}

/// Its checksum would need all that it has said, so the end of the connection is its end.
#[test]
fn a_stream_of_gzip_ends_with_its_connection() {
    let server = start(1);
    let mut answer = Answer::to(server.address(), "/sse?channel=a", ASKS);
    let mut plain = Answer::to(server.address(), "/sse?channel=a", "");
    Http::connect(server.address()).publish("a", &data(1, 500));
    answer.until_said(&data(1, 500));
    plain.until_said(&data(1, 500));
    server.stop();
    let ((text, has_end), (expected, is_whole)) = (answer.whole(), plain.whole());
    assert_eq!((text, has_end, is_whole), (expected, false, true));
}

/// What waits for one who reads late is what the others got.
#[test]
fn slow_subscribers_get_the_same() {
    let server = start_for_slow();
    let mut slow = Answer::to(server.address(), "/sse?channel=a", ASKS);
    let mut http = Http::connect(server.address());
    let published = incompressible_halves();
    for data in &published {
        http.publish("a", data);
    }
    until("something is queued", || server.stats().queued_bytes > 0);
    let text = slow.until_said(published.last().unwrap());
    let mut from = 0;
    for data in &published {
        from += text[from..].find(data.as_str()).expect("each comes, in order");
    }
    drop(slow);
    drop(http);
    until_idle(&server);
}

/// A small request may have a large reply compressed: two of them are a turn's work, then others have theirs.
#[test]
fn replies_that_are_compressed_take_many_turns() {
    let server = start(1);
    let cursor = server.stats().cursor;
    let large = format!("\"{}\"", "x".repeat(60_000));
    Http::connect(server.address()).publish("a", &large);
    let mut http = Http::connect(server.address());
    let before = server.stats().turns;
    http.send(&format!("GET /poll?channel=a&after={cursor} HTTP/1.1\r\nHost: h\r\n{ASKS}\r\n").repeat(100));
    for _ in 0..100 {
        let mut answer = Answer::coming(http);
        assert!(answer.is_gzip());
        while answer.take_in() {
            assert!(answer.http.fill());
        }
        assert!(answer.text().contains(&large));
        http = answer.http;
    }
    let turns = server.stats().turns - before;
    // Some turns read twice.
    assert!(turns >= 25, "{turns} turns");
}
