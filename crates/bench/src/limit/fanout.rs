//! The limit of fan-out: what arrived in one turn, concatenated, in one write for each subscriber, or in one send of many
//! through io_uring. The ring and its table of files are our server's, which are as thin as they can be.

use super::intake::Intake;
use anyhow::{Context as _, bail};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use pushlab_engine::{Engine, MAX_SENDS, Outcome, Send};
use pushlab_server::Io;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Room in the ring's table of files.
const MAX_SUBSCRIBERS: usize = 10_000;
const LISTENER: Token = Token(usize::MAX - 1);
const FEEDER: Token = Token(usize::MAX - 2);

/// Runs until the feeder leaves. The first connection is the feeder, every other one a subscriber, whose request is
/// read and greeted with one byte, so that the kernel sees the same conversation as with a server. From then on
/// subscribers are only written to: this is the limit.
pub fn run(io: Io) -> anyhow::Result<()> {
    let mut engine = if io == Io::Uring { Some(Engine::open(MAX_SUBSCRIBERS)?) } else { None };
    let mut sends = Vec::with_capacity(MAX_SENDS);
    let mut listener = super::listen()?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(64);
    let mut feeder: Option<TcpStream> = None;
    let mut subscribers: Vec<TcpStream> = Vec::new();
    let mut intake = Intake::new();
    let mut out = Vec::with_capacity(64 * 1024);
    let mut has_more = false;
    loop {
        poll.poll(&mut events, has_more.then_some(Duration::ZERO))?;
        let mut is_fed = has_more;
        for event in &events {
            match event.token() {
                LISTENER => accept(&listener, &poll, &mut feeder, &mut subscribers)?,
                FEEDER => is_fed = true,
                Token(index) => greet(&poll, &mut subscribers[index])?,
            }
        }
        let Some(feeder) = feeder.as_mut().filter(|_| is_fed) else { continue };
        out.clear();
        has_more = match intake.read(feeder, |message| out.extend_from_slice(message)) {
            Ok(has_more) => has_more,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(e).context("cannot read the feeder"),
        };
        if out.is_empty() {
            continue;
        }
        if let Some(engine) = &mut engine {
            send(engine, &out, &subscribers, &mut sends)?;
            continue;
        }
        for subscriber in &mut subscribers {
            if subscriber.write(&out).context("cannot write to a subscriber")? < out.len() {
                bail!("a subscriber did not take everything: the limit has no queues");
            }
        }
    }
}

fn send(engine: &mut Engine, bytes: &[u8], subscribers: &[TcpStream], sends: &mut Vec<Send>) -> anyhow::Result<()> {
    for first in (0..subscribers.len()).step_by(MAX_SENDS) {
        let ids = first..subscribers.len().min(first + MAX_SENDS);
        sends.clear();
        sends.extend(ids.map(|id| Send::new(id as u32, 1, 0, 0)));
        if !engine.send(bytes, sends, |send| subscribers[send.id as usize].as_fd()) {
            bail!("the ring broke");
        }
        if sends.iter().any(|send| !matches!(send.outcome, Outcome::Taken(n) if n == bytes.len())) {
            bail!("a subscriber did not take everything: the limit has no queues");
        }
    }
    Ok(())
}

fn accept(
    listener: &TcpListener,
    poll: &Poll,
    feeder: &mut Option<TcpStream>,
    subscribers: &mut Vec<TcpStream>,
) -> anyhow::Result<()> {
    loop {
        match listener.accept() {
            Ok((mut socket, _)) if feeder.is_none() => {
                poll.registry().register(&mut socket, FEEDER, Interest::READABLE)?;
                *feeder = Some(socket);
            }
            Ok((mut socket, _)) => {
                poll.registry().register(&mut socket, Token(subscribers.len()), Interest::READABLE)?;
                subscribers.push(socket);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e).context("cannot accept"),
        }
    }
}

fn greet(poll: &Poll, subscriber: &mut TcpStream) -> anyhow::Result<()> {
    let mut request = [0; 1024];
    match subscriber.read(&mut request) {
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
        Err(e) => return Err(e).context("cannot read a subscriber"),
    }
    poll.registry().deregister(subscriber)?;
    subscriber.write_all(b"+").context("cannot greet a subscriber")
}
