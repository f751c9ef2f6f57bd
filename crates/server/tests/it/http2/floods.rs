//! Clients that ask for much and give little, and those that speak nonsense: none of them costs the others anything.

use crate::harness::client::{Client, Kind};
use crate::harness::http::Http;
use crate::harness::http2::{END_HEADERS, END_STREAM, Http2, Raw, WEBSOCKET, frame, kind};
use crate::harness::{Subject, until, until_idle};
use fastrand::Rng;
use pushlab_http2::frame::{Code, PREFACE};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Frames that are sent before somebody looks whether others are served.
const AT_ONCE: u32 = 200;

/// How long the server still reads from a client that it has told why it ends.
const LINGER: Duration = Duration::from_secs(2);

/// A server, and somebody who is to be served by it all along, by the same event loop as those who flood.
struct Bystander {
    server: Subject,
    http2: Http2,
    client: Client,
}

impl Bystander {
    fn new() -> Self {
        let server = Subject::start(1, |_| {});
        let http2 = Http2::connect(&server, false);
        let client = Client::open(http2.streams(), Kind::Sse, "channel=a");
        Self { server, http2, client }
    }

    fn is_served(&mut self) {
        let offset = Http::connect(self.http2.streams()).publish("a", "1");
        assert_eq!(self.client.message().1, offset);
        assert_eq!(self.http2.get("/healthz").response().body, "ok\n");
    }

    /// Nothing is left of anybody else.
    fn expect_alone(mut self) {
        until("the others have gone", || {
            let stats = self.server.stats();
            (stats.open, stats.http2, stats.queued_bytes, stats.held_polls, stats.awaiting) == (2, 1, 0, 0, 0)
        });
        self.is_served();
        drop((self.http2, self.client));
        until_idle(&self.server);
    }
}

/// A client with two streams that last says `count` times what `say` makes of a number, and meets `code`; `None` is to
/// be served.
fn flood(count: u32, code: Option<Code>, mut say: impl FnMut(&mut Raw, u32) -> Vec<u8>) {
    let mut bystander = Bystander::new();
    let mut raw = Raw::connect(&bystander.server, &[]);
    let stream = raw.get(1, "/stream?channel=quiet");
    let body = raw.block("POST", "/publish?channel=quiet", &[]);
    raw.send(&[stream, frame(kind::HEADERS, END_HEADERS, 3, &body)].concat()).unwrap();
    until("its streams are open", || bystander.server.stats().open == 5);
    let begun = Instant::now();
    for begin in (0..count).step_by(AT_ONCE as usize) {
        let bytes: Vec<u8> = (begin..begin + AT_ONCE).flat_map(|n| say(&mut raw, n)).collect();
        // The server may have closed.
        let is_open = raw.send(&bytes).is_ok();
        bystander.is_served();
        if !is_open {
            break;
        }
    }
    match code {
        Some(_) => {
            assert_eq!(raw.farewell(), code);
            bystander.is_served();
            let is_kept = bystander.server.stats().http2 == 2;
            assert!(is_kept || begun.elapsed() > LINGER, "what still comes must not cut off the farewell");
        }
        None => {
            let last = raw.get(1_000_001, "/healthz");
            raw.send(&last).unwrap();
            while raw.next_of(kind::HEADERS).2 != 1_000_001 {}
        }
    }
    drop(raw);
    bystander.expect_alone();
}

const CALM: Option<Code> = Some(Code::EnhanceYourCalm);

#[test]
fn streams_that_are_reset_as_soon_as_they_are_open() {
    flood(4_000, CALM, |raw, n| {
        let stream = 5 + 2 * n;
        [raw.get(stream, "/poll?channel=b&wait=60"), frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    });
}

/// The server resets them itself (CVE-2025-8671).
#[test]
fn streams_that_must_be_reset() {
    flood(4_000, CALM, |raw, n| {
        let stream = 5 + 2 * n;
        [raw.get(stream, "/poll?channel=b&wait=60"), frame(kind::WINDOW_UPDATE, 0, stream, &[0; 4])].concat()
    });
}

#[test]
fn settings() {
    flood(4_000, CALM, |_, n| frame(kind::SETTINGS, 0, 0, &[&[0, 4][..], &n.to_be_bytes()].concat()));
}

#[test]
fn pings() {
    flood(4_000, CALM, |_, n| frame(kind::PING, 0, 0, &u64::from(n).to_be_bytes()));
}

#[test]
fn priorities() {
    flood(4_000, CALM, |_, n| frame(kind::PRIORITY, 0, 1 + 2 * n, &[0, 0, 0, 0, 7]));
}

#[test]
fn frames_of_unknown_kinds() {
    flood(4_000, CALM, |_, n| frame(20 + (n % 200) as u8, 0, n % 5, b"what"));
}

#[test]
fn data_without_any() {
    flood(4_000, CALM, |_, _| frame(kind::DATA, 0, 3, b""));
}

#[test]
fn data_that_is_all_padding() {
    flood(4_000, CALM, |_, _| frame(kind::DATA, 8, 3, &[3, 0, 0, 0]));
}

#[test]
fn a_head_without_end() {
    flood(4_000, CALM, |raw, n| {
        let block = raw.block("GET", "/healthz", &[]);
        if n == 0 { frame(kind::HEADERS, END_STREAM, 5, &block) } else { frame(kind::CONTINUATION, 0, 5, b"") }
    });
}

#[test]
fn a_head_in_large_parts_without_end() {
    flood(400, CALM, |_, n| {
        let part = [0; 16_384];
        if n == 0 { frame(kind::HEADERS, END_STREAM, 5, &part) } else { frame(kind::CONTINUATION, 0, 5, &part) }
    });
}

#[test]
fn windows_opened_by_a_byte() {
    flood(20_000, None, |_, n| frame(kind::WINDOW_UPDATE, 0, n % 2, &1_u32.to_be_bytes()));
}

/// Each byte of a head names a field of four kilobytes.
#[test]
fn small_heads_that_are_large_when_they_are_read() {
    let large = "x".repeat(3_900);
    flood(600, None, |raw, n| {
        if n > 60 {
            return Vec::new();
        }
        let mut block = raw.block("GET", "/healthz", &[]);
        if n == 0 {
            // With incremental indexing: a name of one byte, a value of 3,900.
            block.extend([0x40, 1, b'x', 0x7f]);
            let mut rest = large.len() - 127;
            while rest >= 128 {
                block.push(0x80 | (rest % 128) as u8);
                rest /= 128;
            }
            block.push(rest as u8);
            block.extend(large.as_bytes());
        } else {
            block.extend([0x80 | 62; 12_000]);
        }
        frame(kind::HEADERS, END_HEADERS | END_STREAM, 5 + 2 * n, &block)
    });
}

#[test]
fn a_head_that_cannot_be_read() {
    flood(200, Some(Code::Compression), |_, n| {
        frame(kind::HEADERS, END_HEADERS | END_STREAM, 5 + 2 * n, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    });
}

/// Answers to HEAD have nothing for which a window would have to be open.
#[test]
fn answers_that_are_not_read() {
    let mut bystander = Bystander::new();
    let mut raw = Raw::connect(&bystander.server, &[]);
    raw.http.socket.set_nonblocking(true).unwrap();
    let mut said = Vec::new();
    for n in 0..60_000 {
        let block = raw.block("HEAD", "/healthz", &[]);
        said.extend(frame(kind::HEADERS, END_HEADERS | END_STREAM, 1 + 2 * n, &block));
    }
    let mut rest = &said[..];
    while bystander.server.stats().http2 == 2 && !rest.is_empty() {
        match std::io::Write::write(&mut raw.http.socket, rest) {
            Ok(n) => rest = &rest[n..],
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
        bystander.is_served();
        assert!(bystander.server.stats().queued_bytes < 1 << 20);
    }
    drop(raw);
    bystander.expect_alone();
}

/// Such a connection is ended between two of its requests, and nobody else's is.
#[test]
fn who_never_reads_answers_is_let_go_alone() {
    let server = Subject::start(1, |config| config.limits.max_send_buffer_bytes = Some(4_096));
    let mut first = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut raw = Raw::connect(&server, &[]);
    raw.http.socket.set_nonblocking(true).unwrap();
    let mut said = Vec::new();
    for n in 0..200_000 {
        let block = raw.block("HEAD", "/healthz", &[]);
        said.extend(frame(kind::HEADERS, END_HEADERS | END_STREAM, 1 + 2 * n, &block));
    }
    let mut rest = &said[..];
    until("the connection is ended", || {
        match std::io::Write::write(&mut raw.http.socket, rest) {
            Ok(n) => rest = &rest[n..],
            Err(e) => return e.kind() != std::io::ErrorKind::WouldBlock,
        }
        server.stats().errors == 1
    });
    let offset = Http::connect(server.address()).publish("a", "1");
    assert_eq!(first.message().1, offset);
    drop((first, raw));
    until_idle(&server);
}

#[test]
fn requests_a_thousand_at_a_time() {
    for path in ["/healthz", "/poll?channel=a", "/stats", "/nothing"] {
        let mut bystander = Bystander::new();
        let mut raw = Raw::connect(&bystander.server, &[]);
        let (mut answered, mut is_calm) = (0, false);
        'all: for round in 0..5 {
            let all: Vec<u8> = (0..1_000).flat_map(|n| raw.get(1 + 2 * (1_000 * round + n), path)).collect();
            if raw.send(&all).is_err() {
                break;
            }
            bystander.is_served();
            raw.frame(kind::WINDOW_UPDATE, 0, 0, &10_000_000_u32.to_be_bytes());
            let mut seen = 0;
            while seen < 1_000 {
                match raw.next() {
                    Some((kind::HEADERS, _, _, head)) => {
                        let head = raw.decode(&head);
                        assert_eq!(head.get(":status") == Some(b"200"), path != "/nothing");
                        (seen, answered) = (seen + 1, answered + 1);
                    }
                    Some((kind::RST_STREAM, _, _, code)) => {
                        assert_eq!(code, Code::RefusedStream.number().to_be_bytes());
                        seen += 1;
                    }
                    Some((kind::GOAWAY, _, _, payload)) => {
                        assert_eq!(payload[4..8], Code::EnhanceYourCalm.number().to_be_bytes());
                        is_calm = true;
                        break 'all;
                    }
                    Some(_) => {}
                    None => break 'all,
                }
            }
        }
        assert!(is_calm || answered >= 500, "{answered} of {path}");
        drop(raw);
        bystander.expect_alone();
    }
}

/// A frame that could be one of a client, or almost.
fn any_frame(raw: &mut Raw, random: &mut Rng) -> Vec<u8> {
    let streams = [0, 1, 3, 5, 7, 9, 2, 1_000_001];
    let stream = *random.choice(&streams).unwrap();
    let mut payload = match random.u32(..9) {
        0 => raw.block("GET", ["/sse?channel=a", "/poll?channel=b&wait=60", "/nothing"][random.usize(..3)], &[]),
        1 => raw.block("CONNECT", "/ws?channel=a", &WEBSOCKET),
        2 => raw.block("POST", "/publish?channel=quiet", &[("content-length", "4")]),
        3 => vec![0; 4],
        4 => [&[0, random.u8(..10)][..], &random.u32(..).to_be_bytes()].concat(),
        5 => random.u32(..).to_be_bytes().to_vec(),
        6 => b"\x81\x84\0\0\0\0[\"a]".to_vec(),
        7 => vec![random.u8(..); random.usize(..20_000)],
        _ => (0..random.usize(..40)).map(|_| random.u8(..)).collect(),
    };
    if random.u32(..10) == 0 && !payload.is_empty() {
        let at = random.usize(..payload.len());
        payload[at] = random.u8(..);
    }
    let kind = if payload.first() >= Some(&0x80) && random.bool() { kind::HEADERS } else { random.u8(..11) };
    let any = random.u8(..);
    let flags = *random.choice(&[0, END_STREAM, END_HEADERS, END_HEADERS | END_STREAM, 0xff, any]).unwrap();
    frame(kind, flags, stream, &payload)
}

#[test]
fn nonsense_ends_its_connection_and_leaves_nothing() {
    let first = 20_261_123;
    let mut bystander = Bystander::new();
    for seed in first..first + 400 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut raw = Raw::silent(&bystander.server);
        let mut bytes = PREFACE.to_vec();
        if random.u32(..4) == 0 {
            bytes.extend((0..random.usize(..2_000)).map(|_| random.u8(..)));
        } else {
            bytes.extend(frame(kind::SETTINGS, 0, 0, b""));
            for _ in 0..random.usize(..30) {
                bytes.extend(any_frame(&mut raw, &mut random));
            }
        }
        // In pieces, the last of which may be cut.
        bytes.truncate(bytes.len() - random.usize(..2) * random.usize(..bytes.len() / 2));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, next) = rest.split_at(random.usize(1..=rest.len()));
            if raw.send(piece).is_err() {
                break;
            }
            rest = next;
        }
        if random.bool() {
            let _ = raw.http.socket.shutdown(Shutdown::Write);
            while raw.next().is_some() {}
        }
        if seed % 20 == 0 {
            bystander.is_served();
        }
    }
    bystander.expect_alone();
}

/// Nobody is told a field that another connection's head has left.
#[test]
fn what_one_connection_has_said_is_nothing_to_another() {
    let server = Subject::start(1, |_| {});
    let mut first = Raw::connect(&server, &[]);
    let (indexed, refers) = ([0x40, 1, b'x', 1, b'y'], [0x80 | 62]);
    let mut block = first.block("GET", "/healthz", &[]);
    block.extend(indexed);
    first.frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block);
    assert_eq!(first.next_of(kind::HEADERS).2, 1);
    let mut second = Raw::connect(&server, &[]);
    second.frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &refers);
    assert_eq!(second.farewell(), Some(Code::Compression));
}
