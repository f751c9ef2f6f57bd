//! What peers make the server keep, all together, and who goes when it is too much.

use crate::harness::client::{Client, Frame, Kind, PUSHED, STREAMED};
use crate::harness::http::Http;
use crate::harness::http2::{Http2, INITIAL_WINDOW_SIZE, Raw, frame, kind};
use crate::harness::{Dial, Seam, Subject, seam, until, until_idle};
use pushlab_server::{Config, Limits, Policy};
use pushlab_wire::websocket::{Opcode, encode};
use socket2::SockRef;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const MIB: usize = 1 << 20;
/// What may be kept beside history, and history too.
const MAX: usize = MIB;
/// What an event loop keeps of what was missed, and what one connection may add before it is looked at.
const BEYOND: usize = 2 * MIB + MIB / 4;

fn limits(limits: &mut Limits) {
    limits.max_queued_total_bytes = MAX;
    limits.max_history_total_bytes = MAX;
    limits.max_send_buffer_bytes = Some(4096);
    limits.drain_timeout = Duration::from_millis(200);
}

fn start(cores: usize, change: impl FnOnce(&mut Config)) -> Subject {
    Subject::start(cores, |config| {
        limits(&mut config.limits);
        change(config);
    })
}

/// Publishes so many bytes to a channel in parts of 50,000.
fn publish(http: &mut Http, channel: &str, bytes: usize) {
    let text = format!("\"{}\"", "x".repeat(50_000));
    for _ in 0..bytes / 50_000 {
        http.publish(channel, &text);
    }
}

#[track_caller]
fn assert_fits(server: &Subject) {
    let stats = server.stats();
    assert!(stats.kept_bytes <= MAX + BEYOND && stats.history_bytes <= MAX, "{stats:?}");
}

/// Slow subscribers each hold on to other publications than everybody else, which history has let go of.
fn slow_on_channels_of_their_own(server: &Subject, mut open: impl FnMut(usize, &str) -> Client) {
    const SLOW: usize = 40;
    let mut http = Http::connect(server.address());
    let slow: Vec<Client> = (0..SLOW).map(|i| open(i, &format!("channel=own{i}"))).collect();
    let mut light = open(0, "channel=light");
    for i in 0..SLOW {
        publish(&mut http, &format!("own{i}"), 400_000);
        if i == 0 {
            // Little waits for it, so it stays.
            publish(&mut http, "light", 50_000);
        }
        assert_fits(server);
    }
    until("most of them are closed", || server.stats().closed_slow as usize > SLOW / 2);
    let last = http.publish("light", "\"last\"");
    let is_last = |frame: Frame| matches!(frame, Frame::Message(_, offset, _) if offset == last);
    while !is_last(light.next().expect("who holds least stays")) {}
    drop((slow, light, http));
    until_idle(server);
}

#[test]
fn slow_subscribers_hold_no_more_than_they_may_all_together() {
    let server = start(2, |_| {});
    slow_on_channels_of_their_own(&server, |i, query| slow(server.address(), PUSHED[i % PUSHED.len()], query));
}

/// A subscriber with a small window that does not read until it is asked to.
fn slow(to: impl Into<Dial>, kind: Kind, query: &str) -> Client {
    let client = Client::open(to, kind, query);
    SockRef::from(client.socket()).set_recv_buffer_size(2048).unwrap();
    client
}

#[test]
fn slow_streams_of_one_socket_hold_no_more_than_they_may_all_together() {
    for is_secure in [false, true] {
        let server = Subject::start_either(is_secure, 1, |config| limits(&mut config.limits));
        let http2 = Http2::connect(&server, is_secure);
        let mut http = Http::connect(http2.streams());
        let mut slow: Vec<Client> = (0..40)
            .map(|i| Client::open(http2.streams(), STREAMED[i % STREAMED.len()], &format!("channel=own{i}")))
            .collect();
        slow.iter_mut().for_each(|client| client.stream().hold());
        for i in 0..slow.len() {
            publish(&mut http, &format!("own{i}"), 400_000);
            assert_fits(&server);
        }
        until("most of them are closed", || server.stats().closed_slow > 20);
        assert_eq!(http2.farewells(), [], "their socket stays");
        drop((slow, http, http2));
        until_idle(&server);
    }
}

/// Nobody goes for whom less is kept than for others.
#[test]
fn the_heaviest_go_first() {
    let server = start(1, |config| config.limits.max_queued_total_bytes = 4 * MIB);
    let mut http = Http::connect(server.address());
    let light: Vec<Client> =
        (0..4).map(|i| slow(server.address(), Kind::WebSocket, &format!("channel=light{i}"))).collect();
    for i in 0..light.len() {
        publish(&mut http, &format!("light{i}"), 50_000);
    }
    let heavy: Vec<Client> =
        (0..12).map(|i| slow(server.address(), Kind::WebSocket, &format!("channel=heavy{i}"))).collect();
    for i in 0..heavy.len() {
        publish(&mut http, &format!("heavy{i}"), 900_000);
    }
    until("some are closed", || server.stats().closed_slow > 0);
    let (mut light, last) = (light, "\"last\"");
    for (i, client) in light.iter_mut().enumerate() {
        let offset = http.publish(&format!("light{i}"), last);
        let is_last = |frame: Frame| matches!(frame, Frame::Message(_, at, _) if at == offset);
        while !is_last(client.next().expect("none of them goes")) {}
    }
}

/// Whatever a peer begins and does not end is kept, and counts.
#[test]
fn what_has_come_in_part_counts() {
    const PEERS: usize = 60;
    let head = |http: &mut TcpStream| http.write_all(format!("GET /{}", "x".repeat(16_000)).as_bytes());
    let body = |http: &mut TcpStream| {
        let head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 60001\r\n\r\n";
        http.write_all([head, &"x".repeat(60_000)].concat().as_bytes())
    };
    let websocket = |http: &mut TcpStream, frames: &[u8]| {
        http.write_all(
            b"GET /ws?channel=a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )?;
        let mut answer = [0; 1024];
        while http.read(&mut answer)? == answer.len() {}
        http.write_all(frames)
    };
    let fragments = |http: &mut TcpStream| {
        let mut frames = Vec::new();
        encode(&mut frames, Opcode::Text, "x".repeat(60_000).as_bytes(), Some([0; 4]));
        // Its first frame, and not its last.
        frames[0] &= 0x7f;
        websocket(http, &frames)
    };
    let part_of_a_frame = |http: &mut TcpStream| {
        let mut frame = Vec::new();
        encode(&mut frame, Opcode::Text, "x".repeat(60_000).as_bytes(), Some([0; 4]));
        websocket(http, &frame[..frame.len() - 1])
    };
    let hello = |http: &mut TcpStream| {
        // Records of a handshake whose first message is longer than they are.
        let mut hello = vec![1, 0, 0xff, 0xff];
        hello.resize(58_000, 0);
        let records = hello.chunks(16_000).map(|part| {
            let length = (part.len() as u16).to_be_bytes();
            [&[22, 3, 1, length[0], length[1]], part].concat()
        });
        http.write_all(&records.collect::<Vec<_>>().concat())
    };
    type Begin<'a> = &'a dyn Fn(&mut TcpStream) -> std::io::Result<()>;
    let ways: [(&str, bool, Begin<'_>); 5] = [
        ("heads", false, &head),
        ("bodies", false, &body),
        ("fragmented messages", false, &fragments),
        ("parts of a frame", false, &part_of_a_frame),
        ("hellos of TLS", true, &hello),
    ];
    for (name, is_secure, begin) in ways {
        let server = Subject::start_either(is_secure, 1, |config| {
            limits(&mut config.limits);
            config.limits.max_queued_total_bytes = MAX / 2;
            config.echoes = true;
        });
        let mut peers = Vec::new();
        for _ in 0..PEERS {
            let mut socket = TcpStream::connect(server.address()).unwrap();
            // One that is closed may be so before it has said all.
            let _ = begin(&mut socket);
            peers.push(socket);
            assert!(server.stats().kept_bytes <= MAX / 2 + 200_000, "{name}: {:?}", server.stats());
        }
        until(&format!("some {name} are closed"), || server.stats().closed_slow > 0);
        assert!(server.stats().kept_bytes > 0, "{name}");
        drop(peers);
        until_idle(&server);
    }
}

/// So does what it is subscribed to.
#[test]
fn names_of_channels_count() {
    let server = start(1, |_| {});
    let name = "x".repeat(120);
    // Also where two share a set.
    let peers: Vec<Http> = (0..120)
        .map(|i| {
            let mut peer = Http::connect(server.address());
            let channels: String = (0..64).map(|n| format!("channel={name}{:02}-{n:02}&", i / 2)).collect();
            peer.send(&format!("GET /sse?{channels} HTTP/1.1\r\nHost: h\r\n\r\n"));
            assert!(server.stats().kept_bytes <= MAX + 200_000, "{:?}", server.stats());
            peer
        })
        .collect();
    until("some are closed", || server.stats().closed_slow > 0);
    drop(peers);
    until_idle(&server);
}

#[test]
fn what_has_come_in_part_on_streams_counts() {
    let server = start(1, |config| config.echoes = true);
    let http2 = Http2::connect(&server, false);
    let peers: Vec<Http> = (0..60)
        .map(|_| {
            let mut peer = http2.ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 60001\r\n\r\n");
            // One that is reset may be so before it has said all.
            let _ = peer.try_send(&[b'x'; 60_000]);
            assert!(server.stats().kept_bytes <= MAX + 200_000, "{:?}", server.stats());
            peer
        })
        .collect();
    until("some are reset", || server.stats().closed_slow > 0);
    assert!(server.stats().kept_bytes > 0);
    assert_eq!(http2.farewells(), [], "their socket stays");
    drop((peers, http2));
    until_idle(&server);
}

/// Streams whose windows open read what they missed at the end of a turn, when everything else is done.
#[test]
fn streams_that_catch_up_hold_no_more_than_they_may() {
    const STREAMS: usize = 40;
    if seam() == Seam::Lanes {
        // A lane has room of its own, so it is not known what is left of a part.
        return;
    }
    let server = start(1, |config| {
        config.limits.max_queued_total_bytes = MAX / 2;
        config.limits.max_history_total_bytes = 4 * MIB;
        config.limits.max_send_buffer_bytes = None;
    });
    let mut http = Http::connect(server.address());
    let before = server.stats().cursor;
    publish(&mut http, "a", 3_000_000);
    for _ in 0..3 {
        let mut raw = Raw::connect(&server, &[(INITIAL_WINDOW_SIZE, 45_000)]);
        let mut reader = raw.http.socket.try_clone().unwrap();
        let reading = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        let window = |stream, size: u32| frame(kind::WINDOW_UPDATE, 0, stream, &size.to_be_bytes());
        let streams = (1..).step_by(2).take(STREAMS);
        let target = format!("/sse?channel=a&after={before}");
        raw.send(&window(0, 1_000_000_000)).unwrap();
        for (slow, stream) in (1..).zip(streams.clone()) {
            let ask = raw.get(stream, &target);
            raw.send(&ask).unwrap();
            // What its window does not allow of a part; the others have no more either.
            until("a part is left", || {
                let stats = server.stats();
                stats.slow_subscribers == slow && stats.queued_bytes <= slow * 8_000
            });
        }
        let closed = server.stats().closed_slow;
        // One that is closed may be so before it has said all.
        let _ = raw.send(&streams.map(|stream| window(stream, 10_000)).collect::<Vec<_>>().concat());
        until("some are closed", || server.stats().closed_slow > closed);
        assert_eq!(http.get("/healthz").status, 200);
        assert!(server.stats().kept_bytes <= MAX + BEYOND, "{:?}", server.stats());
        assert!(server.is_running());
        let _ = raw.http.socket.shutdown(std::net::Shutdown::Both);
        let _ = reading.join();
    }
    drop(http);
    until_idle(&server);
}

/// Pongs do not keep a message alive that does not come to its end.
#[test]
fn a_message_arrives_whole_in_time() {
    let encoded = |opcode, payload: &[u8]| {
        let mut frame = Vec::new();
        encode(&mut frame, opcode, payload, Some([0; 4]));
        frame
    };
    let mut fragment = encoded(Opcode::Text, b"[\"echo\",1");
    fragment[0] &= 0x7f;
    let frame = encoded(Opcode::Text, &[b'x'; 60_000]);
    let pong = encoded(Opcode::Pong, b"");
    // Pongs between two parts of a message, and the next byte of a frame: none of them is silent.
    for (begun, between) in [(&fragment[..], &pong[..]), (&frame[..20], &frame[20..21])] {
        let server = start(1, |config| {
            config.limits.head_timeout = Duration::from_secs(1);
            config.limits.heartbeat = Duration::from_millis(400);
        });
        let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
        let mut writer = client.socket().try_clone().unwrap();
        writer.write_all(begun).unwrap();
        until("it is closed", || {
            let _ = writer.write_all(between);
            server.stats().closed_timeout > 0
        });
        while client.next().is_some() {}
        assert_eq!(client.close_code, Some(4002));
        drop((client, writer));
        until_idle(&server);
    }
}

/// Nor does a socket of HTTP/2 stay that never ends what it began.
#[test]
fn a_head_of_a_stream_arrives_whole_in_time() {
    let server = start(1, |config| config.limits.head_timeout = Duration::from_secs(1));
    let mut raw = Raw::connect(&server, &[]);
    let block = raw.block("GET", "/healthz", &[]);
    // Without END_HEADERS.
    let _ = raw.send(&frame(kind::HEADERS, 0, 1, &block));
    until("it is closed", || server.stats().closed_timeout == 1);
    drop(raw);
    until_idle(&server);
}

/// Whatever the policy, queues together have one limit.
#[test]
fn no_policy_keeps_more() {
    for policy in [Policy::DropOldest, Policy::Conflate] {
        let server = start(1, |config| config.policy = policy);
        let mut http = Http::connect(server.address());
        let slow: Vec<Client> =
            (0..20).map(|i| slow(server.address(), Kind::Sse, &format!("channel=own{i}"))).collect();
        for i in 0..slow.len() {
            publish(&mut http, &format!("own{i}"), 400_000);
            assert_fits(&server);
        }
        drop((slow, http));
        until_idle(&server);
    }
}
