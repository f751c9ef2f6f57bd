//! Subscribers on one event loop that read and count, and nothing else.

use crate::connect::{self, PATIENCE};
use crate::frames::deliveries_in;
use anyhow::{Context as _, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
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
        })
    }

    /// Adds subscribers until there are `count`; when it returns, the subject has greeted each of them, or
    /// `is_admitted` says that it has taken in as many.
    pub fn grow(
        &mut self,
        count: usize,
        address: SocketAddr,
        family: u8,
        request: &[u8],
        is_admitted: Option<&dyn Fn(usize) -> anyhow::Result<bool>>,
    ) -> anyhow::Result<()> {
        while self.sockets.len() < count {
            let up_to = count.min(self.sockets.len() + OPENED_AT_ONCE);
            while self.sockets.len() < up_to {
                let index = self.sockets.len();
                let mut socket = connect::open(address, family, index, request)?;
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

    /// Number of subscribers.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }
}
