//! Publications that the server brings in by itself: from a back end, or on a timer.

use super::Core;
use crate::config::{Feed, Tick};
use crate::connection::{Connection, FeedPhase, Kind};
use crate::distributor::PublishError;
use crate::stats::add;
use crate::stream::Stream;
use mio::net::TcpStream;
use pushlab_os::clock::monotonic_ns;
use pushlab_os::random;
use pushlab_wire::http::{Headers, parse_response};
use pushlab_wire::native::{is_json, json_string, single_line};
use pushlab_wire::stamp::Stamp;
use pushlab_wire::websocket::{self as ws, Decoded, Decoder, Event, Opcode, Role, handshake};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// First and longest pause before connecting again.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Shortest interval of the built-in publisher.
const TICK_MIN: Duration = Duration::from_micros(10);
/// How long a feed waits before it tries again to publish what an event loop that is behind did not take.
pub const FEED_PAUSE: Duration = Duration::from_millis(1);

/// A message from a back end, bytes.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;

pub struct FeedState {
    feed: Feed,
    config: ws::Config,
    is_connected: bool,
    /// A message that was not taken because an event loop is behind. Nothing is read until it is.
    stalled: Option<String>,
    retry_at: Instant,
    pause: Duration,
}

pub struct TickState {
    tick: Tick,
    next: Instant,
    next_ns: u64,
    count: u32,
}

impl FeedState {
    pub fn new(feed: Feed, now: Instant) -> Self {
        let config = ws::Config { max_message_bytes: MAX_MESSAGE_BYTES, ..ws::Config::new(Role::Client) };
        Self { feed, config, is_connected: false, stalled: None, retry_at: now, pause: RETRY_MIN }
    }

    /// The connection ended or could not be made; it is tried again after a pause that doubles.
    pub fn lost(&mut self, now: Instant) {
        self.is_connected = false;
        self.retry_at = now + self.pause;
        self.pause = (self.pause * 2).min(RETRY_MAX);
    }
}

impl TickState {
    pub fn new(mut tick: Tick) -> Self {
        // Without an interval a turn would never end.
        tick.interval = tick.interval.max(TICK_MIN);
        let next = Instant::now() + tick.interval;
        Self { next_ns: monotonic_ns() + tick.interval.as_nanos() as u64, tick, next, count: 0 }
    }

    pub fn due(&self) -> Instant {
        self.next
    }
}

impl Core {
    /// Publishes on the timer.
    pub(super) fn tick(&mut self) {
        let Some(tick) = &mut self.tick else { return };
        while tick.next <= self.now {
            let stamp = Stamp { source: 0, sequence: tick.count, instant_ns: tick.next_ns }.encode();
            let stamp = std::str::from_utf8(&stamp).expect("a stamp is ASCII");
            let data = format!("{{\"id\":{},\"msg\":\"{stamp}\"}}", tick.count);
            self.turn.received += 1;
            // A tick that meets a full inbox is counted as an error; the next one shows the hole in its number.
            if self.shared.distributor.publish(tick.tick.channel.as_str(), &data, self.now).is_err() {
                add(&self.counters.errors, 1);
            }
            tick.count += 1;
            tick.next += tick.tick.interval;
            tick.next_ns += tick.tick.interval.as_nanos() as u64;
        }
    }

    /// Connects to the back end if it is not connected.
    pub(super) fn keep_feed_connected(&mut self) {
        let Some(feed) = self.feed.as_ref().filter(|f| !f.is_connected && self.now >= f.retry_at) else { return };
        if feed.stalled.is_some() {
            self.publish_stalled();
        }
        let Some(feed) = self.feed.as_mut().filter(|f| f.stalled.is_none()) else { return };
        feed.is_connected = true;
        let now = self.wheel.now();
        match TcpStream::connect(feed.feed.address) {
            Ok(socket) => {
                // If it cannot be registered it is closed at once, which plans the next try.
                if let Some(id) =
                    self.adopt(Connection::new(Stream::Plain(socket), Kind::Feed(FeedPhase::Connecting), now))
                {
                    self.set_deadline(id, self.limits().head_timeout);
                }
            }
            Err(_) => feed.lost(self.now),
        }
    }

    pub(super) fn is_connecting(&self, id: usize) -> bool {
        matches!(self.connections[id].kind, Kind::Feed(FeedPhase::Connecting))
    }

    pub(super) fn feed_connected(&mut self, id: usize) {
        let Some(feed) = &self.feed else { return };
        let socket = self.connections[id].stream.socket();
        if socket.take_error().ok().flatten().is_some() || socket.peer_addr().is_err() {
            return self.close(id);
        }
        // A refused TCP_NODELAY only delays the one request of this connection.
        let _ = socket.set_nodelay(true);
        let Ok(key) = random::bytes() else { return self.close(id) };
        let mut request = Vec::new();
        handshake::encode_request(&mut request, &feed.feed.host, &feed.feed.target, key);
        self.connections[id].kind = Kind::Feed(FeedPhase::Handshake(key));
        self.send(id, &request);
    }

    pub(super) fn is_stalled(&self, id: usize) -> bool {
        matches!(self.connections.get(id), Some(c) if matches!(c.kind, Kind::Feed(_)))
            && self.feed.as_ref().is_some_and(|f| f.stalled.is_some())
    }

    /// Tries again to publish the message that was not taken.
    pub(super) fn publish_stalled(&mut self) {
        if let Some(data) = self.feed.as_mut().and_then(|f| f.stalled.take()) {
            self.publish_from_feed(data.into());
        }
    }

    fn publish_from_feed(&mut self, data: Cow<'_, str>) {
        let Some(feed) = &mut self.feed else { return };
        match self.shared.distributor.publish(feed.feed.channel.as_str(), &data, self.now) {
            Ok(_) => {
                self.turn.received += 1;
                add(&self.counters.feed_received, 1);
            }
            // Nothing more is read until the loops have caught up: the back end feels it through TCP.
            Err(PublishError::Overloaded) => feed.stalled = Some(data.into_owned()),
            Err(PublishError::BadChannel(_)) => unreachable!("the feed's channel was parsed"),
        }
    }

    /// Asks a back end whether it lives.
    pub(super) fn ping_feed(&mut self, id: usize) {
        let Ok(mask) = random::bytes() else { return self.close(id) };
        let mut ping = Vec::new();
        ws::encode(&mut ping, Opcode::Ping, b"", Some(mask));
        self.connections[id].is_pinged = true;
        self.send(id, &ping);
        self.set_deadline(id, self.limits().heartbeat);
    }

    /// Reads from the back end; says how many bytes were used.
    pub(super) fn on_feed(&mut self, id: usize, bytes: &mut [u8]) -> usize {
        let Kind::Feed(phase) = &self.connections[id].kind else { return 0 };
        match phase {
            FeedPhase::Connecting => 0,
            FeedPhase::Handshake(key) => {
                let key = *key;
                let mut headers = Headers::default();
                match parse_response(bytes, &mut headers) {
                    Ok(None) if bytes.len() < self.limits().max_head_bytes => 0,
                    Ok(Some((head, size))) if handshake::check_response(&head, key).is_ok() => {
                        self.connections[id].kind = Kind::Feed(FeedPhase::Open(Decoder::default()));
                        if let Some(feed) = &mut self.feed {
                            feed.pause = RETRY_MIN;
                        }
                        self.set_deadline(id, self.limits().heartbeat);
                        size
                    }
                    _ => {
                        self.close(id);
                        bytes.len()
                    }
                }
            }
            FeedPhase::Open(_) => self.on_feed_frame(id, bytes),
        }
    }

    fn on_feed_frame(&mut self, id: usize, bytes: &mut [u8]) -> usize {
        let (Kind::Feed(FeedPhase::Open(decoder)), Some(feed)) = (&mut self.connections[id].kind, &self.feed) else {
            return 0;
        };
        if feed.stalled.is_some() {
            return 0;
        }
        // The decoder leaves its connection for the time of one frame, so that publishing may use both.
        let mut taken = std::mem::take(decoder);
        let used = match taken.decode(bytes, &feed.config) {
            Ok(Decoded::Incomplete { .. }) => 0,
            Err(_) | Ok(Decoded::Frame { event: Some(Event::Close(_)), .. }) => {
                self.close(id);
                return bytes.len();
            }
            Ok(Decoded::Frame { consumed, event }) => {
                match event {
                    Some(Event::Text(text)) => {
                        self.publish_from_feed(if is_json(text) {
                            single_line(text)
                        } else {
                            json_string(text).into()
                        });
                    }
                    Some(Event::Ping(payload)) => {
                        let Ok(mask) = random::bytes() else {
                            self.close(id);
                            return bytes.len();
                        };
                        let mut pong = Vec::new();
                        ws::encode(&mut pong, Opcode::Pong, payload, Some(mask));
                        self.send(id, &pong);
                    }
                    _ => {}
                }
                consumed
            }
        };
        let connection = &mut self.connections[id];
        if !connection.is_gone() {
            connection.kind = Kind::Feed(FeedPhase::Open(taken));
        }
        used
    }
}
