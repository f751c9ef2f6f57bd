//! A back end to publish from: every text message on our WebSocket to it.

use super::source::{OVERLOAD_PAUSE, Source};
use crate::config::{Feed, Limits};
use crate::stats::add;
use pushlab_application::PublishError;
use pushlab_os::random;
use pushlab_wire::http::{Headers, parse_response};
use pushlab_wire::native::{is_json, json_string, single_line};
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode, handshake};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// First and longest pause before connecting again.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// A message from a back end, bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// A connection to the back end.
struct Connection<'s> {
    socket: TcpStream,
    source: &'s Source,
    /// What was read and not understood yet.
    buffer: Vec<u8>,
}

/// Publishes what the back end sends until the server stops. A connection that fails or ends is made again.
pub fn run(feed: &Feed, limits: &Limits, source: &Source) {
    let mut pause = RETRY_MIN;
    loop {
        if let Ok(mut connection) = Connection::open(feed, limits, source) {
            pause = RETRY_MIN;
            // However it ended, there is nobody to tell; the counters show that nothing comes.
            let _ = connection.publish_all(feed, limits);
        }
        source.stop.forget();
        if source.stop.wait(pause) {
            return;
        }
        pause = (pause * 2).min(RETRY_MAX);
    }
}

impl<'s> Connection<'s> {
    /// Connects and shakes hands, all within the time of a request.
    fn open(feed: &Feed, limits: &Limits, source: &'s Source) -> io::Result<Self> {
        let until = Instant::now() + limits.head_timeout;
        let mut tried = feed.addresses.iter().map(|address| TcpStream::connect_timeout(address, limits.head_timeout));
        let socket = tried.find_map(Result::ok).ok_or(ErrorKind::NotConnected)?;
        source.stop.watch(&socket)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(limits.write_timeout))?;
        let mut this = Self { socket, source, buffer: Vec::new() };
        let key = random::bytes()?;
        let mut request = Vec::new();
        handshake::encode_request(&mut request, &feed.host, &feed.target, key);
        this.write(&request)?;
        loop {
            let mut headers = Headers::default();
            match parse_response(&this.buffer, &mut headers) {
                Ok(None) if this.buffer.len() < limits.max_head_bytes => {}
                Ok(Some((head, size))) if handshake::check_response(&head, key).is_ok() => {
                    this.buffer.drain(..size);
                    return Ok(this);
                }
                _ => return Err(ErrorKind::InvalidData.into()),
            }
            this.read(until.saturating_duration_since(Instant::now()))?;
        }
    }

    /// Publishes until the connection ends. One on which nothing comes for a heartbeat is pinged; for two, it is dead.
    fn publish_all(&mut self, feed: &Feed, limits: &Limits) -> io::Result<()> {
        let config = Config { max_message_bytes: MAX_MESSAGE_BYTES, ..Config::new(Role::Client) };
        let mut decoder = Decoder::default();
        let mut is_pinged = false;
        loop {
            self.publish_buffered(feed, &config, &mut decoder)?;
            match self.read(limits.heartbeat) {
                Ok(()) => is_pinged = false,
                Err(error) if error.kind() == ErrorKind::WouldBlock && !is_pinged => {
                    is_pinged = true;
                    self.send(Opcode::Ping, b"")?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Publishes the whole messages that were read.
    fn publish_buffered(&mut self, feed: &Feed, config: &Config, decoder: &mut Decoder) -> io::Result<()> {
        // It leaves its place for the time in which frames borrow from it.
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut at = 0;
        loop {
            let (consumed, event) = match decoder.decode(&mut buffer[at..], config) {
                Ok(Decoded::Incomplete { .. }) => break,
                Ok(Decoded::Frame { consumed, event }) => (consumed, event),
                Err(_) => return Err(ErrorKind::InvalidData.into()),
            };
            at += consumed;
            match event {
                Some(Event::Text(text)) if is_json(text) => self.publish(feed, &single_line(text))?,
                Some(Event::Text(text)) => self.publish(feed, &json_string(text))?,
                Some(Event::Ping(payload)) => self.send(Opcode::Pong, payload)?,
                Some(Event::Close(_)) => return Err(ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
        }
        buffer.drain(..at);
        self.buffer = buffer;
        Ok(())
    }

    /// Publishes a message, however long that takes. Nothing is read meanwhile, which the back end notices through TCP.
    /// A message that is nested too deep is skipped and counted as an error.
    fn publish(&self, feed: &Feed, data: &str) -> io::Result<()> {
        let counters = &self.source.counters;
        let counter = loop {
            match self.source.publish(feed.channel.as_str(), data) {
                Err(PublishError::Overloaded) if self.source.stop.wait(OVERLOAD_PAUSE) => {
                    return Err(ErrorKind::Interrupted.into());
                }
                Err(PublishError::Overloaded) => {}
                Err(PublishError::TooDeep) => break &counters.errors,
                _ => break &counters.feed_received,
            }
        };
        add(counter, 1);
        Ok(())
    }

    fn send(&mut self, opcode: Opcode, payload: &[u8]) -> io::Result<()> {
        let mut frame = Vec::new();
        encode(&mut frame, opcode, payload, Some(random::bytes()?));
        self.write(&frame)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)?;
        add(&self.source.counters.bytes_sent, bytes.len() as u64);
        Ok(())
    }

    /// Reads what comes within a time; [`ErrorKind::WouldBlock`] if that is nothing.
    fn read(&mut self, timeout: Duration) -> io::Result<()> {
        // No time at all would mean for ever.
        self.socket.set_read_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        let before = self.buffer.len();
        self.buffer.resize(before + READ_BYTES, 0);
        let result = self.socket.read(&mut self.buffer[before..]);
        let read = *result.as_ref().unwrap_or(&0);
        self.buffer.truncate(before + read);
        add(&self.source.counters.bytes_received, read as u64);
        match result {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => self.read(timeout),
            Err(error) => Err(error),
        }
    }
}
