//! Subscribers on one event loop that read and count, and nothing else.

use crate::connect::{self, PATIENCE};
use crate::frames::{self, deliveries_in};
use anyhow::{Context as _, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use pushlab_os::clock::monotonic_ns;
use pushlab_os::socket::data_segments_received;
use pushlab_stats::Histogram;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Connections opened before their greetings are awaited: the server's backlog never fills.
const OPENED_AT_ONCE: usize = 200;

/// A number of subscribers.
pub struct Audience {
    poll: Poll,
    events: Events,
    sockets: Vec<TcpStream>,
    is_greeted: Vec<bool>,
    greeted: usize,
    buffer: Vec<u8>,
    /// Deliveries of all subscribers together.
    pub deliveries: u64,
    /// Bytes of all subscribers together.
    pub bytes: u64,
    /// Reads that found something: about the subject's writes, as long as the load keeps up.
    pub reads: u64,
    /// Latency of the deliveries, whose payloads then have the stamps of [`frames::stamped`].
    pub latency: Option<Histogram>,
}

impl Audience {
    /// Nobody yet.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(256),
            sockets: Vec::new(),
            is_greeted: Vec::new(),
            greeted: 0,
            buffer: vec![0; 64 * 1024],
            deliveries: 0,
            bytes: 0,
            reads: 0,
            latency: None,
        })
    }

    /// Adds subscribers, each with the request of its index, until there are `count`; when it returns, the subject has greeted each of them, or
    /// `is_admitted` says that it has taken in as many.
    pub fn grow<'r>(
        &mut self,
        count: usize,
        address: SocketAddr,
        family: u8,
        request: impl Fn(usize) -> &'r [u8],
        is_admitted: Option<&dyn Fn(usize) -> anyhow::Result<bool>>,
    ) -> anyhow::Result<()> {
        while self.sockets.len() < count {
            let up_to = count.min(self.sockets.len() + OPENED_AT_ONCE);
            while self.sockets.len() < up_to {
                let index = self.sockets.len();
                let mut socket = connect::open(address, family, index, request(index))?;
                self.poll.registry().register(&mut socket, Token(index), Interest::READABLE)?;
                self.sockets.push(socket);
                self.is_greeted.push(false);
            }
            let until = Instant::now() + PATIENCE;
            loop {
                let is_in = match is_admitted {
                    Some(is_admitted) => is_admitted(up_to)?,
                    None => self.greeted == up_to,
                };
                if is_in {
                    break;
                }
                self.read(Duration::from_millis(5))?;
                if Instant::now() > until {
                    bail!("only {} of {up_to} subscribers were greeted", self.greeted);
                }
            }
        }
        Ok(())
    }

    /// Reads what has come, or waits for it.
    pub fn read(&mut self, timeout: Duration) -> anyhow::Result<()> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            let index = event.token().0;
            loop {
                match self.sockets[index].read(&mut self.buffer) {
                    Ok(0) => bail!("the subject closed the connection of a subscriber"),
                    Ok(n) => {
                        self.bytes += n as u64;
                        self.reads += 1;
                        self.deliveries += deliveries_in(&self.buffer[..n]);
                        if let Some(latency) = &mut self.latency {
                            let now_ns = monotonic_ns();
                            for sent_ns in frames::stamps_in(&self.buffer[..n]) {
                                latency.record(now_ns.saturating_sub(sent_ns));
                            }
                        }
                        if !std::mem::replace(&mut self.is_greeted[index], true) {
                            self.greeted += 1;
                        }
                        if n < self.buffer.len() {
                            break;
                        }
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e).context("a subscriber cannot read"),
                }
            }
        }
        Ok(())
    }

    /// Segments with data that all subscribers together have received. Each write of a subject to an idle socket on
    /// loopback is one, because nothing merges or splits it there.
    pub fn segments(&self) -> anyhow::Result<u64> {
        let segments = |socket| data_segments_received(socket).map(u64::from);
        self.sockets.iter().map(segments).sum::<io::Result<u64>>().context("cannot count segments")
    }

    /// Number of subscribers.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }
}
