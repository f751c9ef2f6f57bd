//! Subscribers on streams of one HTTP/2 connection.

use super::Tls;
use crate::audience::{Came, Peer, Tally};
use crate::frames::CHANNEL;
use anyhow::{Context as _, bail};
use mio::net::TcpStream;
use pushlab_http2::connection::{Connection, Role};
use pushlab_http2::event::Event;
use pushlab_http2::limits::{Limits, Rate};
use pushlab_wire::fields::FieldList;
use pushlab_wire::transport::Transport;
use rustls::ClientConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Windows of a stream and of the connection, bytes: a browser's (Chromium's).
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;
/// Nothing that a server does is too much.
const ANY: Rate = Rate { burst: u32::MAX, per_second: 0 };

/// Some subscribers over HTTP/2 and TLS.
pub struct Http2 {
    tls: Tls,
    protocol: Connection,
    transport: Transport,
    /// What of a frame has come.
    carry: Vec<u8>,
    /// For each stream whether something of its body has come.
    greeted: Vec<bool>,
    head: FieldList,
}

impl Http2 {
    /// Connects and subscribes on so many streams.
    pub fn open(
        address: SocketAddr,
        family: u8,
        index: usize,
        config: &Arc<ClientConfig>,
        transport: Transport,
        streams: usize,
    ) -> anyhow::Result<Self> {
        let limits = Limits {
            resets: ANY,
            idle_frames: ANY,
            stream_window: STREAM_WINDOW,
            connection_window: CONNECTION_WINDOW,
            ..Limits::default()
        };
        let mut http2 = Self {
            tls: Tls::open(address, family, index, config, b"")?,
            protocol: Connection::new(Role::Client, limits),
            transport,
            carry: Vec::new(),
            greeted: Vec::new(),
            head: FieldList::default(),
        };
        for _ in 0..streams {
            http2.subscribe()?;
        }
        Ok(http2)
    }

    /// Opens one more stream.
    pub fn subscribe(&mut self) -> anyhow::Result<()> {
        let (fields, is_end) = request(self.transport)?;
        let owner = self.greeted.len() as u32;
        self.protocol.open(owner, &fields, is_end).context("cannot open a stream")?;
        self.greeted.push(false);
        Ok(self.send()?)
    }

    fn send(&mut self) -> io::Result<()> {
        let output = self.protocol.output();
        if output.is_empty() {
            return Ok(());
        }
        let size = output.len();
        self.tls.write(output)?;
        self.protocol.sent(size);
        Ok(())
    }

    fn process(&mut self, tally: &mut Tally) -> io::Result<()> {
        let mut at = 0;
        loop {
            let received = self.protocol.receive(&mut self.carry[at..], Duration::ZERO, &mut self.head);
            let (used, event) = received.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            match event {
                Event::Data { owner, bytes, is_end: false } => {
                    self.greeted[owner as usize] |= !bytes.is_empty();
                    tally.take(bytes);
                    let size = bytes.len();
                    // Streams are opened by nobody else, so the owners' order is that of the numbers.
                    self.protocol.used(2 * owner + 1, size);
                }
                Event::Response { head, is_end: false, .. } if head.get(":status") == Some(b"200") => {}
                Event::Nothing => {}
                other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("the subject says {other:?}"))),
            }
            at += used;
            if used == 0 {
                break;
            }
        }
        self.carry.drain(..at);
        self.send()
    }
}

impl Peer for Http2 {
    fn socket(&mut self) -> &mut TcpStream {
        self.tls.socket()
    }

    fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> io::Result<Came> {
        let bytes = self.tls.read(buffer, |text| self.carry.extend_from_slice(text))?;
        self.process(tally)?;
        Ok(Came { bytes, is_greeted: self.greeted.iter().all(|&is_greeted| is_greeted) })
    }
}

/// The request of a subscription, and whether the client sends nothing behind it.
fn request(transport: Transport) -> anyhow::Result<(FieldList, bool)> {
    let (fields, path): (&[(&str, &str)], _) = match transport {
        Transport::WebSocket => (&[(":method", "CONNECT"), (":protocol", "websocket")], "ws"),
        Transport::Sse => (&[(":method", "GET")], "sse"),
        other => bail!("nobody measures {} over HTTP/2", other.name()),
    };
    let is_websocket = transport == Transport::WebSocket;
    let path = format!("/{path}?channel={CHANNEL}");
    let common = [(":scheme", "https"), (":authority", "localhost"), (":path", path.as_str())];
    let version = is_websocket.then_some(("sec-websocket-version", "13"));
    let mut list = FieldList::default();
    for (name, value) in fields.iter().copied().chain(common).chain(version) {
        list.push(name.as_bytes(), value.as_bytes());
    }
    Ok((list, !is_websocket))
}
