//! The publisher: one connection over which the same publications are sent again and again.

use crate::connect::{open_blocking, read_until};
use crate::frames::{CHANNEL, PAYLOAD};
use crate::limit::intake;
use anyhow::Context as _;
use pushlab_wire::websocket::{Opcode, encode, handshake};
use std::io::{Read, Write};
use std::net::SocketAddr;

/// Where publications enter.
pub struct Publisher {
    socket: Box<dyn Write>,
    /// Sent in turn.
    messages: Vec<Vec<u8>>,
    out: Vec<u8>,
    /// Publications so far.
    pub published: u64,
}

impl Publisher {
    /// To our server: a WebSocket that sends `["pub",…]`.
    pub fn to_server(address: SocketAddr) -> anyhow::Result<Self> {
        Self::of_payloads(open_blocking(address)?, &[PAYLOAD])
    }

    /// The same with these payloads, JSON, in turn, and over a connection that stands.
    pub fn of_payloads(mut socket: impl Read + Write + 'static, payloads: &[impl AsRef<str>]) -> anyhow::Result<Self> {
        let mut request = Vec::new();
        handshake::encode_request(&mut request, "bench", "/ws", *b"0123456789abcdef");
        socket.write_all(&request)?;
        read_until(&mut socket, |found| found.ends_with(b"\"]"))?;
        let message = |payload: &dyn AsRef<str>| {
            let mut message = Vec::new();
            let text = format!("[\"pub\",\"{CHANNEL}\",{}]", payload.as_ref());
            encode(&mut message, Opcode::Text, text.as_bytes(), Some([1, 2, 3, 4]));
            message
        };
        let messages = payloads.iter().map(|payload| message(payload)).collect();
        Ok(Self { socket: Box::new(socket), messages, out: Vec::new(), published: 0 })
    }

    /// To a limit: the bytes to deliver. Must be the first connection.
    pub fn to_limit(address: SocketAddr, delivery: &[u8]) -> anyhow::Result<Self> {
        let socket = open_blocking(address)?;
        let mut message = Vec::new();
        intake::encode(&mut message, delivery);
        Ok(Self { socket: Box::new(socket), messages: vec![message], out: Vec::new(), published: 0 })
    }

    /// Publishes, several with one write.
    pub fn publish(&mut self, count: u64) -> anyhow::Result<()> {
        self.out.clear();
        for n in self.published..self.published + count {
            self.out.extend_from_slice(&self.messages[n as usize % self.messages.len()]);
        }
        self.socket.write_all(&self.out).and_then(|()| self.socket.flush()).context("cannot publish")?;
        self.published += count;
        Ok(())
    }
}
