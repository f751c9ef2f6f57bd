//! Clients that poll: each asks again as soon as it is answered.

use crate::connect;
use crate::frames::deliveries_in;
use anyhow::{Context as _, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

const END: &[u8] = b"\r\n\r\n";
const LENGTH: &[u8] = b"Content-Length: ";
const CURSOR: &[u8] = b"[\"cursor\",\"";

/// A number of polling clients on one event loop.
pub struct Pollers {
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    buffer: Vec<u8>,
    request: Vec<u8>,
    wait_s: u32,
    /// Each asks with the cursor of its last reply; otherwise all ask with this one for ever.
    fixed_cursor: Option<String>,
    /// Whether a reply is followed by a request.
    pub is_asking: bool,
    /// Replies that held a message.
    pub replies: u64,
    /// Messages in them.
    pub messages: u64,
}

struct Client {
    socket: TcpStream,
    carry: Vec<u8>,
}

/// A request for what came after a cursor.
pub fn encode_request(out: &mut Vec<u8>, cursor: &[u8], wait_s: u32) {
    out.extend_from_slice(b"GET /poll?channel=a&after=");
    out.extend_from_slice(cursor);
    out.extend_from_slice(format!("&wait={wait_s} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes());
}

/// The size of a reply and the place of its cursor, once it is all there.
pub fn parse_reply(bytes: &[u8]) -> anyhow::Result<Option<(usize, &[u8])>> {
    let Some(head_end) = memchr::memmem::find(bytes, END).map(|at| at + END.len()) else { return Ok(None) };
    let head = &bytes[..head_end];
    if !head.starts_with(b"HTTP/1.1 200 ") {
        bail!("a poll was answered {}", String::from_utf8_lossy(bytes));
    }
    let digits = memchr::memmem::find(head, LENGTH).map(|at| &head[at + LENGTH.len()..]);
    let digits = digits.context("a reply has no length")?;
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).fold(0, |n, b| n * 10 + usize::from(b - b'0'));
    let Some(body) = bytes.get(head_end..head_end + length) else { return Ok(None) };
    let at = memchr::memmem::rfind(body, CURSOR).context("a reply has no cursor")? + CURSOR.len();
    let cursor = body[at..].split(|&b| b == b'"').next().context("a cursor does not end")?;
    Ok(Some((head_end + length, cursor)))
}

impl Pollers {
    /// Connects them; nobody asks yet.
    pub fn connect(
        count: usize,
        address: SocketAddr,
        family: u8,
        wait_s: u32,
        fixed_cursor: Option<String>,
    ) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let mut clients = Vec::new();
        for index in 0..count {
            let mut socket = connect::open(address, family, index, b"")?;
            poll.registry().register(&mut socket, Token(index), Interest::READABLE)?;
            clients.push(Client { socket, carry: Vec::new() });
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(256),
            clients,
            buffer: vec![0; 64 * 1024],
            request: Vec::new(),
            wait_s,
            fixed_cursor,
            is_asking: true,
            replies: 0,
            messages: 0,
        })
    }

    /// Every client asks for what came after a cursor.
    pub fn ask(&mut self, cursor: &str) -> anyhow::Result<()> {
        self.request.clear();
        encode_request(&mut self.request, cursor.as_bytes(), self.wait_s);
        for client in &mut self.clients {
            client.socket.write_all(&self.request).context("cannot ask")?;
        }
        Ok(())
    }

    /// Reads what has come, or waits for it, and asks again.
    pub fn read(&mut self, timeout: Duration) -> anyhow::Result<()> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            let client = &mut self.clients[event.token().0];
            let n = match client.socket.read(&mut self.buffer) {
                Ok(0) => bail!("the subject closed the connection of a poller"),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
                Err(e) => return Err(e).context("a poller cannot read"),
            };
            let bytes = if client.carry.is_empty() {
                &self.buffer[..n]
            } else {
                client.carry.extend_from_slice(&self.buffer[..n]);
                &client.carry[..]
            };
            let Some((size, cursor)) = parse_reply(bytes)? else {
                if client.carry.is_empty() {
                    client.carry.extend_from_slice(&self.buffer[..n]);
                }
                continue;
            };
            if size != bytes.len() {
                bail!("a poller was answered twice");
            }
            let messages = deliveries_in(bytes);
            self.messages += messages;
            self.replies += u64::from(messages > 0);
            if self.is_asking {
                self.request.clear();
                let cursor = self.fixed_cursor.as_ref().map_or(cursor, String::as_bytes);
                encode_request(&mut self.request, cursor, self.wait_s);
                client.socket.write_all(&self.request).context("cannot ask again")?;
            }
            client.carry.clear();
        }
        Ok(())
    }

    /// Number of clients.
    pub fn len(&self) -> usize {
        self.clients.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_once_it_is_whole() {
        let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n[[\"cursor\",\"e.1234\"]]";
        let reply = &reply[..reply.len() - 1];
        for end in 0..reply.len() {
            assert!(parse_reply(&reply[..end]).unwrap().is_none());
        }
        assert_eq!(parse_reply(reply).unwrap(), Some((reply.len(), &b"e.1234"[..])));
        assert!(parse_reply(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").is_err());
    }
}
