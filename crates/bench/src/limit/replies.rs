//! The limit of replies: a raw request and reply loop that knows of HTTP only how a head ends.

use super::intake::Intake;
use anyhow::{Context as _, bail};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

const LISTENER: Token = Token(usize::MAX - 1);
const FEEDER: Token = Token(usize::MAX - 2);
const END: &[u8] = b"\r\n\r\n";

/// A connection that asks.
struct Client {
    socket: TcpStream,
    /// Bytes of a request that is not all there.
    carry: Vec<u8>,
    /// Publications that it has been told of.
    told: u64,
}

struct Replies {
    is_immediate: bool,
    clients: Vec<Client>,
    held: Vec<usize>,
    /// The latest publication: a whole reply.
    reply: Vec<u8>,
    published: u64,
    buffer: Vec<u8>,
}

/// Runs until the feeder leaves. The first connection is the feeder, each of whose messages is the next reply.
///
/// A request is held until the publication after the last one that its connection was told of; with `is_immediate`
/// it is answered at once.
pub fn run(is_immediate: bool) -> anyhow::Result<()> {
    let mut listener = super::listen()?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut feeder: Option<TcpStream> = None;
    let mut intake = Intake::new();
    let mut replies = Replies {
        is_immediate,
        clients: Vec::new(),
        held: Vec::new(),
        reply: Vec::new(),
        published: 0,
        buffer: vec![0; 64 * 1024],
    };
    let mut has_more = false;
    loop {
        poll.poll(&mut events, has_more.then_some(Duration::ZERO))?;
        let mut is_fed = has_more;
        for event in &events {
            match event.token() {
                LISTENER => accept(&listener, &poll, &mut feeder, &mut replies.clients)?,
                FEEDER => is_fed = true,
                Token(index) => replies.read(index)?,
            }
        }
        let Some(feeder) = feeder.as_mut().filter(|_| is_fed) else { continue };
        let before = replies.published;
        let result = intake.read(feeder, |message| {
            replies.published += 1;
            replies.reply.clear();
            replies.reply.extend_from_slice(message);
        });
        has_more = match result {
            Ok(has_more) => has_more,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(e).context("cannot read the feeder"),
        };
        if replies.published > before {
            while let Some(index) = replies.held.pop() {
                replies.answer(index)?;
            }
        }
    }
}

impl Replies {
    fn read(&mut self, index: usize) -> anyhow::Result<()> {
        let client = &mut self.clients[index];
        let n = match client.socket.read(&mut self.buffer) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e).context("cannot read a request"),
        };
        let is_whole = if client.carry.is_empty() && self.buffer[..n].ends_with(END) {
            true
        } else {
            client.carry.extend_from_slice(&self.buffer[..n]);
            let is_whole = client.carry.ends_with(END);
            if is_whole {
                client.carry.clear();
            }
            is_whole
        };
        if !is_whole {
            return Ok(());
        }
        if client.told < self.published || self.is_immediate && self.published > 0 {
            self.answer(index)
        } else {
            self.held.push(index);
            Ok(())
        }
    }

    fn answer(&mut self, index: usize) -> anyhow::Result<()> {
        let client = &mut self.clients[index];
        client.told = self.published;
        if client.socket.write(&self.reply).context("cannot reply")? < self.reply.len() {
            bail!("a reply was not taken whole: the limit has no queues");
        }
        Ok(())
    }
}

fn accept(
    listener: &TcpListener,
    poll: &Poll,
    feeder: &mut Option<TcpStream>,
    clients: &mut Vec<Client>,
) -> anyhow::Result<()> {
    loop {
        match listener.accept() {
            Ok((mut socket, _)) if feeder.is_none() => {
                poll.registry().register(&mut socket, FEEDER, Interest::READABLE)?;
                *feeder = Some(socket);
            }
            Ok((mut socket, _)) => {
                poll.registry().register(&mut socket, Token(clients.len()), Interest::READABLE)?;
                clients.push(Client { socket, carry: Vec::new(), told: 0 });
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e).context("cannot accept"),
        }
    }
}
