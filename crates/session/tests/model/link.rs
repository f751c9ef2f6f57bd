//! A TCP connection that takes a few bytes and then blocks, or a stream of HTTP/2 over one.

use pushlab_wire::fields::FieldList;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;

/// Both directions of one connection.
#[derive(Debug)]
pub struct Link {
    /// The head of a request over HTTP/2, and whether the client's side ended with it.
    pub head_to_server: Option<(FieldList, bool)>,
    /// Heads of answers over HTTP/2, and whether each is an interim one.
    pub heads_to_client: VecDeque<(FieldList, bool)>,
    /// What the client sent, as far as it has arrived.
    pub to_server: Vec<u8>,
    /// Behind that comes the client's end.
    pub has_ended: bool,
    /// The client has gone in both directions.
    pub is_reset: bool,
    /// What the server wrote and the client has not read.
    pub to_client: Vec<u8>,
    /// Bytes that may stand there.
    pub capacity: usize,
    /// Behind that comes the server's end.
    pub is_shut: bool,
    /// The server has said all it wanted to.
    pub is_whole: bool,
    /// What *from now on* was for each that asked so, in the order of their answers.
    pub nows: VecDeque<u64>,
}

/// The server's end of it, or the client's.
#[derive(Debug, Clone)]
pub struct Socket(pub Rc<RefCell<Link>>);

impl Socket {
    /// A connection in which so many bytes may stand on their way to the client.
    pub fn new(capacity: usize) -> Self {
        Self(Rc::new(RefCell::new(Link {
            head_to_server: None,
            heads_to_client: VecDeque::new(),
            to_server: Vec::new(),
            has_ended: false,
            is_reset: false,
            to_client: Vec::new(),
            capacity,
            is_shut: false,
            is_whole: false,
            nows: VecDeque::new(),
        })))
    }

    /// What the server reads: at most so many bytes, none at the client's end.
    pub fn read(&self, max: usize) -> io::Result<Vec<u8>> {
        let mut link = self.0.borrow_mut();
        if link.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if link.to_server.is_empty() && !link.has_ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = max.min(link.to_server.len());
        Ok(link.to_server.drain(..n).collect())
    }

    /// The server writes nothing more; `is_whole` if it has written all it wanted to.
    pub fn shut(&self, is_whole: bool) {
        let mut link = self.0.borrow_mut();
        link.is_whole |= is_whole && !link.is_shut;
        link.is_shut = true;
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut link = self.0.borrow_mut();
        if link.is_reset {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let n = bytes.len().min(link.capacity.saturating_sub(link.to_client.len()));
        if n == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        link.to_client.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
