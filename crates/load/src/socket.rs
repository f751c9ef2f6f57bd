//! Non-blocking sockets, with TLS or without.

use crate::receipts::Receipts;
use crate::tls::{Tls, TlsRead};
use mio::net::TcpStream;
use pushlab_workload::tally::TlsBytes;
use socket2::SockRef;
use std::io::{self, Write as _};
use std::time::Duration;

/// How long the kernel surely remembers to delay acknowledgements: half of the 40 ms after which it sends one.
const ACKS_DELAYED_NS: u64 = 20_000_000;

/// A socket whose bytes are read into somebody else's buffer.
///
/// Holds only what did not fit: input that ends inside of a frame, and output that the socket did not take.
/// Both are empty, and take no heap memory, on an idle connection without TLS.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    leftover: Vec<u8>,
    unwritten: Vec<u8>,
    tls: Option<Box<Tls>>,
    acks_delayed_until_ns: u64,
    receipts: Receipts,
}

/// Outcome of one [`Socket::read`].
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes lie at the front of the buffer, leftover included.
    Bytes {
        /// Bytes to decode.
        held: usize,
        /// Of those, how many are new.
        new: usize,
        /// Whether the socket had no more.
        is_drained: bool,
    },
    /// Nothing to read now.
    Blocked,
    /// The TLS handshake is over: what has waited for it can be sent, and there may be more to read.
    Established,
    /// The peer has ended the connection.
    Closed,
}

impl Socket {
    /// One that somebody else opened or accepted.
    pub fn from_stream(stream: TcpStream) -> Self {
        Self {
            stream,
            leftover: Vec::new(),
            unwritten: Vec::new(),
            tls: None,
            acks_delayed_until_ns: 0,
            receipts: Receipts::default(),
        }
    }

    /// The same with TLS, whose handshake has not begun.
    pub(crate) fn with_tls(stream: TcpStream, tls: Tls) -> Self {
        Self { tls: Some(Box::new(tls)), ..Self::from_stream(stream) }
    }

    /// The socket, to register it.
    pub fn stream_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Has it reset when it is closed, so that nothing of it stays (`SO_LINGER` of no time, socket(7)).
    pub fn reset_when_closed(&self) {
        // It cannot fail on a TCP socket.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }

    /// Has the kernel note when what is read from now on came to this host.
    pub fn note_receipts(&mut self) {
        self.receipts.note(&self.stream);
    }

    /// How long the last segment of what was read last had been there, ns, where the kernel was to note it: how much of
    /// a latency is the reader's own. Segments read with it had been there for longer.
    #[inline]
    pub fn waited_ns(&self) -> Option<u64> {
        self.receipts.waited_ns()
    }

    /// Lets the kernel delay the acknowledgement of what is read next, as on a connection on which both sides talk
    /// (`TCP_QUICKACK`, tcp(7)): it acknowledges every second segment at once, a single one after 40 ms, and then
    /// forgets. So it is told anew where the last time is long enough ago; a system call for every read would be a
    /// good part of the read. The first 16 segments of a connection are acknowledged at once all the same.
    pub fn delay_acks(&mut self, now_ns: u64) {
        if now_ns < self.acks_delayed_until_ns {
            return;
        }
        self.acks_delayed_until_ns = now_ns + ACKS_DELAYED_NS;
        // It cannot fail on a TCP socket.
        let _ = SockRef::from(&self.stream).set_tcp_quickack(false);
    }

    /// Reads once, behind what was left over, growing the buffer where a large frame is on its way.
    ///
    /// # Errors
    /// What the socket answers.
    #[inline]
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<Read> {
        let left = self.leftover.len();
        if left > 0 {
            if left * 2 > buffer.len() {
                buffer.resize(left * 4, 0);
            }
            buffer[..left].copy_from_slice(&self.leftover);
        }
        if let Some(tls) = &mut self.tls {
            return Ok(match tls.read(&mut self.stream, &mut self.receipts, &mut buffer[left..])? {
                TlsRead::Bytes { new, is_drained } => Read::Bytes { held: left + new, new, is_drained },
                TlsRead::Established => Read::Established,
                TlsRead::Blocked => Read::Blocked,
                TlsRead::Closed => Read::Closed,
            });
        }
        loop {
            match self.receipts.read(&mut self.stream, &mut buffer[left..]) {
                Ok(0) => return Ok(Read::Closed),
                Ok(new) => {
                    let held = left + new;
                    return Ok(Read::Bytes { held, new, is_drained: held < buffer.len() });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Read::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps what could not be decoded yet for the next read.
    #[inline]
    pub fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            if self.leftover.capacity() > 0 {
                self.leftover = Vec::new();
            }
        } else {
            self.leftover.clear();
            self.leftover.extend_from_slice(rest);
        }
    }

    /// Whether output waits for the socket, or for the TLS handshake.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        !self.unwritten.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.is_blocked())
    }

    /// Whether a TLS handshake is to be made first.
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// What TLS has added to the bytes read and written since this was last asked. Plaintext counts as written when
    /// it is handed over, so that [`Self::send`] and [`Self::offer`] say all of it at once.
    pub fn tls_bytes(&mut self) -> TlsBytes {
        self.tls.as_mut().map(|tls| tls.take_bytes()).unwrap_or_default()
    }

    /// Whether another request may be sent: nothing is half read or half sent, and the peer has not closed it.
    pub(crate) fn is_reusable(&mut self) -> bool {
        if !self.leftover.is_empty() || self.is_blocked() {
            return false;
        }
        match &mut self.tls {
            None => self.stream.peek(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock),
            // TLS has messages of its own, such as tickets: those are taken.
            Some(tls) => {
                tls.read(&mut self.stream, &mut self.receipts, &mut [0]).is_ok_and(|read| read == TlsRead::Blocked)
            }
        }
    }

    /// Sends bytes if the socket takes at least one of them now; the rest is queued. Returns how many it took:
    /// with 0 nothing was queued, and the caller tries again when the socket is writable.
    ///
    /// # Errors
    /// What the socket answers.
    pub fn offer(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_blocked() {
            return Ok(0);
        }
        if let Some(tls) = &mut self.tls {
            tls.write(&mut self.stream, bytes)?;
            return Ok(bytes.len());
        }
        let taken = write_some(&mut self.stream, bytes)?;
        if taken > 0 && taken < bytes.len() {
            self.unwritten.extend_from_slice(&bytes[taken..]);
        }
        Ok(taken)
    }

    /// Sends bytes, queueing what the socket does not take. Returns how many it took now.
    ///
    /// # Errors
    /// What the socket answers.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(tls) = &mut self.tls {
            tls.write(&mut self.stream, bytes)?;
            return Ok(bytes.len());
        }
        let taken = if self.is_blocked() { 0 } else { write_some(&mut self.stream, bytes)? };
        self.unwritten.extend_from_slice(&bytes[taken..]);
        Ok(taken)
    }

    /// Sends what is queued, as far as the socket takes it. Returns how many bytes it took.
    ///
    /// # Errors
    /// What the socket answers, a refused connection too.
    pub fn flush(&mut self) -> io::Result<usize> {
        if !self.is_blocked() {
            return Ok(0);
        }
        if let Some(tls) = &mut self.tls {
            tls.push(&mut self.stream)?;
            return Ok(0);
        }
        let taken = write_some(&mut self.stream, &self.unwritten)?;
        if taken == self.unwritten.len() {
            self.unwritten = Vec::new();
        } else {
            self.unwritten.drain(..taken);
        }
        Ok(taken)
    }
}

fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match stream.write(&bytes[taken..]) {
            Ok(0) => break,
            Ok(size) => taken += size,
            // A socket that still connects answers the latter.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::Dialler;
    use std::net::TcpListener;

    #[test]
    fn what_is_kept_comes_back_before_what_is_new() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = Dialler::new(listener.local_addr().unwrap()).dial(None).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 8];
        connection.keep(b"abcdefg");
        accepted.write_all(b"hi").unwrap();
        let read = loop {
            match connection.read(&mut buffer).unwrap() {
                Read::Blocked => std::thread::yield_now(),
                read => break read,
            }
        };
        assert_eq!(read, Read::Bytes { held: 9, new: 2, is_drained: true });
        assert_eq!(&buffer[..9], b"abcdefghi");
        connection.keep(b"");
        assert_eq!(connection.leftover.capacity(), 0);
        drop(accepted);
        while connection.read(&mut buffer).unwrap() == Read::Blocked {}
    }

    #[test]
    fn delayed_acknowledgements_are_half_as_many() {
        const SEGMENTS: u32 = 200;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut buffer = vec![0; 64];
        let mut acknowledged = |is_delayed: bool| {
            let mut connection = Dialler::new(listener.local_addr().unwrap()).dial(None).unwrap();
            let (mut accepted, _) = listener.accept().unwrap();
            accepted.set_nodelay(true).unwrap();
            let mut hear = |segments: u32| {
                for _ in 0..segments {
                    accepted.write_all(b"x").unwrap();
                    if is_delayed {
                        connection.delay_acks(pushlab_os::clock::monotonic_ns());
                    }
                    while connection.read(&mut buffer).unwrap() == Read::Blocked {
                        std::thread::yield_now();
                    }
                }
                pushlab_os::socket::segments_sent(&connection.stream).unwrap()
            };
            // The first are acknowledged at once in any case.
            let before = hear(32);
            hear(SEGMENTS) - before
        };
        // A pause of this machine adds some.
        let [at_once, delayed] = [false, true].map(&mut acknowledged);
        assert!(at_once > SEGMENTS * 9 / 10 && delayed < SEGMENTS * 7 / 10, "{at_once}, {delayed} of {SEGMENTS}");
    }
}
