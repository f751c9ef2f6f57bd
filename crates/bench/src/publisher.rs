//! The publisher: one connection over which the same publication is sent again and again.

use crate::connect::{open_blocking, read_until};
use crate::frames::{CHANNEL, PAYLOAD};
use crate::limit::intake;
use anyhow::Context as _;
use pushlab_wire::websocket::{Opcode, encode, handshake};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

/// Where publications enter.
pub struct Publisher {
    socket: TcpStream,
    message: Vec<u8>,
    out: Vec<u8>,
    /// Publications so far.
    pub published: u64,
}

impl Publisher {
    /// To our server: a WebSocket that sends `["pub",…]`.
    pub fn to_server(address: SocketAddr) -> anyhow::Result<Self> {
        let mut socket = open_blocking(address)?;
        let mut request = Vec::new();
        handshake::encode_request(&mut request, "bench", "/ws", *b"0123456789abcdef");
        socket.write_all(&request)?;
        read_until(&mut socket, |found| found.ends_with(b"\"]"))?;
        let mut message = Vec::new();
        let text = format!("[\"pub\",\"{CHANNEL}\",{PAYLOAD}]");
        encode(&mut message, Opcode::Text, text.as_bytes(), Some([1, 2, 3, 4]));
        Ok(Self { socket, message, out: Vec::new(), published: 0 })
    }

    /// To a limit: the bytes to deliver. Must be the first connection.
    pub fn to_limit(address: SocketAddr, delivery: &[u8]) -> anyhow::Result<Self> {
        let socket = open_blocking(address)?;
        let mut message = Vec::new();
        intake::encode(&mut message, delivery);
        Ok(Self { socket, message, out: Vec::new(), published: 0 })
    }

    /// Publishes, several with one write.
    pub fn publish(&mut self, count: u64) -> anyhow::Result<()> {
        self.out.clear();
        for _ in 0..count {
            self.out.extend_from_slice(&self.message);
        }
        self.socket.write_all(&self.out).context("cannot publish")?;
        self.published += count;
        Ok(())
    }
}
