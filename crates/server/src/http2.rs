//! HTTP/2 on a socket: what its streams share, and one of them.

use pushlab_http2::connection::{Connection, Role};
use pushlab_http2::frame::Code;
use pushlab_http2::limits::Limits;
use pushlab_session::wheel::Tick;
use pushlab_wire::fields::FieldList;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// Connections whose output has to be sent before the turn ends.
pub type Unsent = Rc<RefCell<Vec<usize>>>;

/// What the streams of one connection share. They write into its output; the event loop alone sends that.
pub struct Http2 {
    /// The protocol.
    pub protocol: Connection,
    /// Who is at the other end, where that is known.
    peer: Option<SocketAddr>,
    /// The connection's place.
    pub id: usize,
    unsent: Unsent,
    /// It stands in `unsent`.
    is_listed: bool,
    /// Bytes of the output that the socket did not take at the last write.
    pub queued: usize,
    /// When the unfinished frame or head began to arrive.
    pub partial_since: Option<Tick>,
}

/// One connection's, shared with its streams.
pub type Shared = Rc<RefCell<Http2>>;

impl Http2 {
    /// A connection on which nothing has come.
    pub fn new(limits: Limits, peer: Option<SocketAddr>, id: usize, unsent: Unsent) -> Shared {
        let protocol = Connection::new(Role::Server, limits);
        let http2 = Rc::new(RefCell::new(Self {
            protocol,
            peer,
            id,
            unsent,
            is_listed: false,
            queued: 0,
            partial_since: None,
        }));
        http2.borrow_mut().list();
        http2
    }

    /// Something is to be sent.
    #[inline]
    pub fn list(&mut self) {
        if !self.is_listed {
            self.is_listed = true;
            self.unsent.borrow_mut().push(self.id);
        }
    }

    /// What was to be sent is looked at now.
    pub fn unlist(&mut self) {
        self.is_listed = false;
    }
}

/// One stream: the bytes of a connection that has no socket of its own. Dropping it ends it.
pub struct Http2Stream {
    shared: Shared,
    number: u32,
    /// What has come and waits until it can be used.
    incoming: Vec<u8>,
    /// The peer sends nothing more.
    pub has_peer_ended: bool,
    /// We do not either.
    have_we_ended: bool,
    /// The peer has reset it.
    is_reset: bool,
}

impl Http2Stream {
    /// A stream that the peer has opened.
    pub fn new(shared: Shared, number: u32, has_peer_ended: bool) -> Self {
        Self { shared, number, incoming: Vec::new(), has_peer_ended, have_we_ended: false, is_reset: false }
    }

    /// Who is at the other end.
    pub fn peer_address(&self) -> io::Result<SocketAddr> {
        self.shared.borrow().peer.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Bytes of memory that the waiting input takes.
    pub fn kept_bytes(&self) -> usize {
        self.incoming.capacity()
    }

    /// Keeps what has come until it is read.
    pub fn keep(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
    }

    /// Bytes that came were used: the peer may send as many more.
    pub fn used(&self, size: usize) {
        if size > 0 {
            let mut shared = self.shared.borrow_mut();
            shared.protocol.used(self.number, size);
            shared.list();
        }
    }

    /// The peer has reset it, or broken the protocol on it: it is over.
    pub fn note_reset(&mut self) {
        self.is_reset = true;
    }

    /// Whether it is over.
    pub fn is_gone(&self) -> bool {
        self.is_reset
    }

    /// Reads what was kept.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.incoming.len().min(buffer.len());
        if size == 0 {
            return match (self.is_reset, self.has_peer_ended) {
                (true, _) => Err(io::ErrorKind::ConnectionReset.into()),
                (false, true) => Ok(0),
                (false, false) => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        buffer[..size].copy_from_slice(&self.incoming[..size]);
        self.incoming.drain(..size);
        if self.incoming.is_empty() {
            self.incoming = Vec::new();
        }
        self.used(size);
        Ok(size)
    }

    /// Whether there is more to read.
    pub fn has_more(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Sends the head of an answer.
    pub fn send_head(&mut self, head: &FieldList) {
        let mut shared = self.shared.borrow_mut();
        shared.protocol.head(self.number, head, false);
        shared.list();
    }

    /// Takes bytes as far as windows and room allow.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut shared = self.shared.borrow_mut();
        match shared.protocol.data(self.number, bytes) {
            None => Err(io::ErrorKind::BrokenPipe.into()),
            Some(0) if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            Some(size) => {
                shared.list();
                Ok(size)
            }
        }
    }

    /// Says that nothing more follows.
    pub fn shut_down(&mut self) {
        let mut shared = self.shared.borrow_mut();
        shared.protocol.end(self.number);
        shared.list();
        self.have_we_ended = true;
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        // A peer that has not said all need not: its answer is there (RFC 9113, section 8.1).
        let code = if self.have_we_ended { Code::NoError } else { Code::Cancel };
        let mut shared = self.shared.borrow_mut();
        shared.protocol.reset(self.number, code);
        shared.list();
    }
}
