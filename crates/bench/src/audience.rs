//! Subscribers on one event loop that read and count, and nothing else.

use crate::connect::PATIENCE;
use crate::frames::{self, deliveries_in};
use anyhow::{Context as _, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use pushlab_os::clock::monotonic_ns;
use pushlab_os::socket::data_segments_received;
use pushlab_stats::Histogram;
use std::io::{self, Read as _};
use std::time::{Duration, Instant};

/// Connections opened before their greetings are awaited: the server's backlog never fills.
const OPENED_AT_ONCE: usize = 200;

/// The subscribers' end of one connection.
pub trait Peer {
    /// Its socket.
    fn socket(&mut self) -> &mut TcpStream;

    /// Reads once and counts what came; `buffer` is working space.
    ///
    /// # Errors
    /// Where nothing is there, the peer has gone or says what it should not.
    fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> io::Result<Came>;
}

/// What one read came to.
pub struct Came {
    /// Bytes of the socket, 0 at its end.
    pub bytes: usize,
    /// The subject has greeted all subscribers of the connection.
    pub is_greeted: bool,
}

/// What all subscribers together have received.
#[derive(Debug, Default)]
pub struct Tally {
    /// Deliveries.
    pub deliveries: u64,
    /// Bytes of the sockets.
    pub bytes: u64,
    /// Reads that found something: about the subject's writes, as long as the load keeps up.
    pub reads: u64,
    /// Latency of the deliveries, whose payloads then have the stamps of [`frames::stamped`].
    pub latency: Option<Histogram>,
}

impl Tally {
    /// Counts the deliveries in some bytes, which are not compressed.
    pub fn take(&mut self, bytes: &[u8]) {
        self.deliveries += deliveries_in(bytes);
        if let Some(latency) = &mut self.latency {
            let now_ns = monotonic_ns();
            for sent_ns in frames::stamps_in(bytes) {
                latency.record(now_ns.saturating_sub(sent_ns));
            }
        }
    }
}

/// One subscriber without TLS.
impl Peer for TcpStream {
    fn socket(&mut self) -> &mut TcpStream {
        self
    }

    fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> io::Result<Came> {
        let bytes = self.read(buffer)?;
        tally.take(&buffer[..bytes]);
        Ok(Came { bytes, is_greeted: true })
    }
}

/// A number of connections with subscribers.
pub struct Audience<P: Peer = TcpStream> {
    poll: Poll,
    events: Events,
    peers: Vec<P>,
    is_greeted: Vec<bool>,
    greeted: usize,
    buffer: Vec<u8>,
    /// What they have received.
    pub tally: Tally,
}

impl<P: Peer> Audience<P> {
    /// Nobody yet.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(256),
            peers: Vec::new(),
            is_greeted: Vec::new(),
            greeted: 0,
            buffer: vec![0; 64 * 1024],
            tally: Tally::default(),
        })
    }

    /// Opens connections, each by its index, until there are `count`; when it returns, the subject has greeted their
    /// subscribers, or `is_admitted` says that it has taken in as many connections.
    pub fn grow(
        &mut self,
        count: usize,
        open: impl Fn(usize) -> anyhow::Result<P>,
        is_admitted: Option<&dyn Fn(usize) -> anyhow::Result<bool>>,
    ) -> anyhow::Result<()> {
        while self.peers.len() < count {
            let up_to = count.min(self.peers.len() + OPENED_AT_ONCE);
            while self.peers.len() < up_to {
                let index = self.peers.len();
                let mut peer = open(index)?;
                self.poll.registry().register(peer.socket(), Token(index), Interest::READABLE)?;
                self.peers.push(peer);
                self.is_greeted.push(false);
            }
            self.await_greetings(is_admitted)?;
        }
        Ok(())
    }

    /// Asks for more on every connection; when it returns, the subject has greeted all subscribers again.
    pub fn ask(&mut self, mut ask: impl FnMut(&mut P) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for first in (0..self.peers.len()).step_by(OPENED_AT_ONCE) {
            for index in first..self.peers.len().min(first + OPENED_AT_ONCE) {
                ask(&mut self.peers[index])?;
                self.is_greeted[index] = false;
                self.greeted -= 1;
            }
            self.await_greetings(None)?;
        }
        Ok(())
    }

    fn await_greetings(&mut self, is_admitted: Option<&dyn Fn(usize) -> anyhow::Result<bool>>) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let is_in = match is_admitted {
                Some(is_admitted) => is_admitted(self.peers.len())?,
                None => self.greeted == self.peers.len(),
            };
            if is_in {
                return Ok(());
            }
            self.read(Duration::from_millis(5))?;
            if Instant::now() > until {
                bail!("subscribers of only {} of {} connections were greeted", self.greeted, self.peers.len());
            }
        }
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
                match self.peers[index].receive(&mut self.buffer, &mut self.tally) {
                    Ok(Came { bytes: 0, .. }) => bail!("the subject closed the connection of a subscriber"),
                    Ok(Came { bytes, is_greeted }) => {
                        self.tally.bytes += bytes as u64;
                        self.tally.reads += 1;
                        if is_greeted && !std::mem::replace(&mut self.is_greeted[index], true) {
                            self.greeted += 1;
                        }
                        if bytes < self.buffer.len() {
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

    /// Segments with data that all connections together have received. Each write of a subject to an idle socket on
    /// loopback is one, because nothing merges or splits it there.
    pub fn segments(&mut self) -> anyhow::Result<u64> {
        let segments = |peer: &mut P| data_segments_received(&*peer.socket()).map(u64::from);
        self.peers.iter_mut().map(segments).sum::<io::Result<u64>>().context("cannot count segments")
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.peers.len()
    }
}
