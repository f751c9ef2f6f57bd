//! The attacker that makes the server keep things: as many connections as fit, each holding as much as it may.
//!
//! Connections that the server closes are opened and filled again. A slow reader does not notice that it was closed,
//! because it does not read.

use super::plan::{Plan, Report, await_start};
use crate::connect::{self, PATIENCE, read_until};
use crate::frames::server_counter_over;
use crate::secure;
use anyhow::{Context as _, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use pushlab_attacks::hoard::{self, Hoard};
use pushlab_wire::websocket::{Opcode, encode, handshake};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Source addresses.
const FAMILY: u8 = 50;
/// Connections that are opened, or filled, at once.
const AT_ONCE: usize = 32;
/// Channels whose publications are on their way.
const ON_THEIR_WAY: usize = 8;
/// The receive buffer of slow readers: a server's part of a TLS handshake fits into it.
const SMALL_BUFFER_BYTES: usize = 4096;
/// Between two openings of the streams' windows.
const DRIBBLE: Duration = Duration::from_millis(200);

/// A connection to wait on.
trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

struct Hoarder<'a> {
    plan: &'a Plan,
    hoard: Hoard,
    /// Of each connection.
    streams: usize,
    client: Option<Arc<ClientConfig>>,
    poll: Poll,
    sockets: Vec<TcpStream>,
    /// Those that the server has ended.
    lost: VecDeque<usize>,
    is_lost: Vec<bool>,
    /// Those to fill.
    unfilled: VecDeque<usize>,
    /// What each has of that.
    filled: Vec<usize>,
    filling: Vec<u8>,
    publisher: Option<Box<dyn Duplex>>,
    report: Report,
}

/// Attacks for the time of the plan, and until each connection has been filled once. Prints a line when all are open,
/// starts at a line on standard input, prints its report, and keeps its connections until it is killed.
pub fn run(plan: &Plan, hoard: Hoard) -> anyhow::Result<()> {
    let mut hoarder = Hoarder::open(plan, hoard)?;
    await_start(plan)?;
    hoarder.attack(Duration::from_millis(plan.duration_ms))?;
    println!("{}", serde_json::to_string(&hoarder.report)?);
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}

impl<'a> Hoarder<'a> {
    fn open(plan: &'a Plan, hoard: Hoard) -> anyhow::Result<Self> {
        let client = plan.tls.as_deref().map(secure::http1_in).transpose()?;
        let streams = hoard.streams(plan.connections);
        let mut hoarder = Self {
            plan,
            hoard,
            streams,
            client,
            poll: Poll::new()?,
            sockets: Vec::new(),
            lost: VecDeque::new(),
            is_lost: Vec::new(),
            unfilled: VecDeque::new(),
            filled: Vec::new(),
            filling: hoard.filling(streams),
            publisher: None,
            report: Report { connections: 0, bytes: 0 },
        };
        let count = plan.connections.div_ceil(streams);
        for first in (0..count).step_by(AT_ONCE) {
            for (index, socket) in hoarder.connect(first..count.min(first + AT_ONCE))? {
                hoarder.sockets.push(socket.with_context(|| format!("connection {index} is not taken"))?);
                hoarder.is_lost.push(false);
                hoarder.filled.push(0);
            }
        }
        for index in 0..count {
            hoarder.watch(index)?;
        }
        hoarder.await_admission(if hoard.opens_streams() { count * streams } else { count } as u64)?;
        if hoard.is_published() {
            hoarder.publisher = Some(hoarder.open_publisher()?);
        }
        Ok(hoarder)
    }

    /// Opens connections; those that the server does not want are errors.
    fn connect(&mut self, indices: Range<usize>) -> anyhow::Result<Vec<(usize, io::Result<TcpStream>)>> {
        let buffer = self.hoard.has_small_buffers().then_some(SMALL_BUFFER_BYTES);
        let mut begun = Vec::new();
        for index in indices {
            let nth = self.report.connections as usize;
            self.report.connections += 1;
            let mut socket = connect::open_from(self.plan.address, FAMILY, nth, buffer)?;
            let client = self.client.as_ref().filter(|_| self.hoard.shakes_hands());
            let mut session = client.map(secure::session).transpose()?;
            // The server answers while the next ones begin.
            let hello = session.as_mut().map_or(Ok(0), |session| session.write_tls(&mut socket));
            begun.push((index, socket, session, hello));
        }
        let opened = begun.into_iter().map(|(index, socket, session, hello)| {
            let opening = self.hoard.opening(self.channels(index));
            (index, hello.and_then(|_| finish(socket, session, &opening)))
        });
        Ok(opened.collect())
    }

    fn channels(&self, index: usize) -> Range<usize> {
        index * self.streams..(index + 1) * self.streams
    }

    fn watch(&mut self, index: usize) -> io::Result<()> {
        (self.is_lost[index], self.filled[index]) = (false, 0);
        self.unfilled.push_back(index);
        self.poll.registry().register(&mut self.sockets[index], Token(index), Interest::READABLE)
    }

    /// A connection that waits for its answers, with TLS where the server has it.
    fn open_blocking(&self) -> anyhow::Result<Box<dyn Duplex>> {
        let socket = connect::open_blocking(self.plan.address)?;
        Ok(match &self.client {
            Some(client) => Box::new(StreamOwned::new(secure::session(client)?, socket)),
            None => Box::new(socket),
        })
    }

    fn await_admission(&self, expected: u64) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = server_counter_over(&mut self.open_blocking()?, self.hoard.counter())?;
            if found >= expected {
                return Ok(());
            }
            ensure!(Instant::now() < until, "the server has {found} of {expected} in {}", self.hoard.counter());
        }
    }

    fn open_publisher(&self) -> anyhow::Result<Box<dyn Duplex>> {
        let mut socket = self.open_blocking()?;
        let mut request = Vec::new();
        handshake::encode_request(&mut request, "bench", "/ws", *b"0123456789abcdef");
        socket.write_all(&request)?;
        read_until(&mut socket, |found| found.ends_with(b"\"]"))?;
        Ok(socket)
    }

    fn attack(&mut self, duration: Duration) -> anyhow::Result<()> {
        let begin = Instant::now();
        let mut dribbled = begin;
        let mut events = Events::with_capacity(1024);
        let whole = self.sockets.len() as u64 * self.whole_bytes();
        loop {
            let is_filled = self.unfilled.is_empty() || self.report.bytes >= whole;
            if begin.elapsed() >= if is_filled { duration } else { duration + PATIENCE } {
                return Ok(());
            }
            let has_moved = self.fill()?;
            if self.hoard.dribbles() && dribbled.elapsed() >= DRIBBLE {
                dribbled = Instant::now();
                self.dribble();
            }
            let pause = if has_moved || !self.lost.is_empty() { Duration::ZERO } else { Duration::from_millis(1) };
            self.poll.poll(&mut events, Some(pause))?;
            for event in &events {
                let Token(index) = event.token();
                let is_ended = event.is_read_closed() || event.is_write_closed() || event.is_error();
                if is_ended && !std::mem::replace(&mut self.is_lost[index], true) {
                    self.lost.push_back(index);
                }
            }
            self.reopen()?;
        }
    }

    /// What is to be kept on each connection.
    fn whole_bytes(&self) -> u64 {
        let mut published = Vec::new();
        hoard::publications(&mut published, 0);
        let published = published.len() * self.streams;
        if self.hoard.is_published() { published as u64 } else { self.filling.len() as u64 }
    }

    /// Fills some; says whether the server has taken anything.
    fn fill(&mut self) -> anyhow::Result<bool> {
        let before = self.report.bytes;
        if self.publisher.is_some() {
            self.publish()?;
            return Ok(self.report.bytes > before);
        }
        for _ in 0..AT_ONCE {
            let Some(index) = self.unfilled.pop_front() else { break };
            if self.is_lost[index] {
                continue;
            }
            let written = match self.sockets[index].write(&self.filling[self.filled[index]..]) {
                Ok(written) => written,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
                // It shows as an event too.
                Err(_) => continue,
            };
            self.filled[index] += written;
            self.report.bytes += written as u64;
            if self.filled[index] < self.filling.len() {
                self.unfilled.push_back(index);
            }
        }
        Ok(self.report.bytes > before)
    }

    /// Publishes to the channels of some connections, and waits until the server has taken that in.
    fn publish(&mut self) -> anyhow::Result<()> {
        let some = self.unfilled.len().min(AT_ONCE.div_ceil(self.streams));
        let indices: Vec<usize> = self.unfilled.drain(..some).collect();
        let channels: Vec<usize> = indices.iter().flat_map(|&index| self.channels(index)).collect();
        let publisher = self.publisher.as_mut().context("nobody publishes")?;
        for channels in channels.chunks(ON_THEIR_WAY) {
            let mut out = Vec::new();
            channels.iter().for_each(|&channel| hoard::publications(&mut out, channel));
            self.report.bytes += out.len() as u64;
            encode(&mut out, Opcode::Text, b"[\"ping\",1]", Some([0; 4]));
            let sent = publisher.write_all(&out).map_err(anyhow::Error::from);
            if sent.and_then(|()| read_until(publisher, |found| found.ends_with(b"[\"pong\",1]"))).is_err() {
                // With a part of a message it may be the one that holds the most.
                self.unfilled.extend(indices);
                self.publisher = Some(self.open_publisher().context("the publisher cannot come back")?);
                return Ok(());
            }
        }
        Ok(())
    }

    fn dribble(&mut self) {
        let bytes = hoard::dribble(self.streams);
        for socket in &mut self.sockets {
            // One that has ended shows as an event.
            let _ = socket.write(&bytes);
        }
    }

    fn reopen(&mut self) -> anyhow::Result<()> {
        for _ in 0..AT_ONCE.min(self.lost.len()) {
            let index = self.lost.pop_front().expect("they were counted");
            for (_, opened) in self.connect(index..index + 1)? {
                match opened {
                    Ok(socket) => {
                        self.sockets[index] = socket;
                        self.watch(index)?;
                    }
                    Err(_) => self.lost.push_back(index),
                }
            }
        }
        Ok(())
    }
}

/// Ends the handshake, if there is one, and says the first bytes.
fn finish(mut socket: net::TcpStream, session: Option<ClientConnection>, opening: &[u8]) -> io::Result<TcpStream> {
    match session {
        None => socket.write_all(opening)?,
        Some(mut session) => {
            while session.is_handshaking() {
                session.complete_io(&mut socket)?;
            }
            session.writer().write_all(opening)?;
            while session.wants_write() {
                session.write_tls(&mut socket)?;
            }
        }
    }
    socket.set_nonblocking(true)?;
    Ok(TcpStream::from_std(socket))
}
