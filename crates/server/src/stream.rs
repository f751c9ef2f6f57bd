//! The bytes of a connection: as they are on its socket, or through TLS.

use mio::net::TcpStream;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

/// Most bytes sealed before the socket has taken them: what a blocked connection with TLS holds beside its queue. It
/// is as much as one write has, so an event of any usual size leaves in one.
const MAX_SEALED_BYTES: usize = 64 * 1024;
/// Reads from a socket in one turn; each takes 4 KiB or more if they are there. A peer whose records hold nothing
/// would else keep the loop for itself.
const MAX_READS: usize = 32;

/// A connected socket.
pub enum Stream {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS; boxed, so that a connection without it does not pay for it.
    Secure(Box<Secure>),
}

/// The server's side of TLS on a socket.
pub struct Secure {
    socket: TcpStream,
    tls: ServerConnection,
    /// How reading ended, where bytes that came before had to be told first.
    end: Option<io::Result<usize>>,
    /// The peer broke TLS and was told so: what it still sends is nothing.
    has_failed: bool,
    /// There is more to read, and no event will tell.
    has_more: bool,
    /// The socket is to be shut when all is sent.
    is_ending: bool,
    /// Bytes on the socket that were not asked for yet.
    sent: u64,
    received: u64,
}

impl Stream {
    /// The server's side of a connection that was just accepted.
    pub fn accept(socket: TcpStream, tls: Option<Arc<ServerConfig>>) -> Result<Self, rustls::Error> {
        let Some(config) = tls else { return Ok(Self::Plain(socket)) };
        let mut tls = ServerConnection::new(config)?;
        tls.set_buffer_limit(Some(MAX_SEALED_BYTES));
        Ok(Self::Secure(Box::new(Secure {
            socket,
            tls,
            end: None,
            has_failed: false,
            has_more: false,
            is_ending: false,
            sent: 0,
            received: 0,
        })))
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(secure) => &secure.socket,
        }
    }

    /// The socket, to register it.
    pub fn socket_mut(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(secure) => &mut secure.socket,
        }
    }

    /// Reads what has come. Less than fits has emptied the socket, unless [`Self::has_more`]. 0 is the end. A peer that
    /// breaks TLS is told so and gives [`io::ErrorKind::InvalidData`], which no socket does; what it sends after that
    /// is read as it is.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            // epoll(7) allows to rely on it for streams.
            Self::Plain(socket) => socket.read(buffer),
            Self::Secure(secure) => secure.read(buffer),
        }
    }

    /// Whether a read that did not fill its buffer left something behind that no event will tell of.
    pub fn has_more(&self) -> bool {
        matches!(self, Self::Secure(secure) if secure.has_more)
    }

    /// Whether the socket has not taken all of what was written.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        matches!(self, Self::Secure(secure) if secure.tls.wants_write())
    }

    /// Gives the socket what it has not taken.
    pub fn push(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Secure(secure) => secure.push(),
        }
    }

    /// Says that nothing more follows.
    pub fn shut_down(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.shutdown(Shutdown::Write),
            Self::Secure(secure) => {
                secure.tls.send_close_notify();
                secure.is_ending = true;
                secure.push()
            }
        }
    }

    /// Bytes that the socket was given since the last call, of which `written` were somebody's.
    #[inline]
    pub fn sent(&mut self, written: usize) -> u64 {
        match self {
            Self::Plain(_) => written as u64,
            Self::Secure(secure) => std::mem::take(&mut secure.sent),
        }
    }

    /// Bytes that came on the socket since the last call, of which `read` were for somebody.
    #[inline]
    pub fn received(&mut self, read: usize) -> u64 {
        match self {
            Self::Plain(_) => read as u64,
            Self::Secure(secure) => std::mem::take(&mut secure.received),
        }
    }
}

/// Takes as much as can be sealed; what the socket does not take of that is kept, and the stream is blocked.
impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Secure(secure) => secure.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push()
    }
}

impl Secure {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.has_more = false;
        if let Some(end) = self.end.take() {
            return self.tell(end);
        }
        if self.has_failed {
            let n = self.socket.read(buffer)?;
            self.received += n as u64;
            return Ok(n);
        }
        let mut filled = 0;
        let end = self.fill(buffer, &mut filled);
        match &end {
            _ if filled == 0 => return self.tell(end),
            Ok(n) if *n > 0 => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            _ => {
                self.has_more = true;
                self.end = Some(end);
            }
        }
        Ok(filled)
    }

    /// Answers the peer's orderly end with ours. Only when it is told: before that, requests may be unanswered.
    fn tell(&mut self, end: io::Result<usize>) -> io::Result<usize> {
        if let Ok(0) = end {
            self.tls.send_close_notify();
            // Who has gone already does not hear it.
            let _ = self.push();
        }
        end
    }

    /// Opens what comes until the buffer is full, nothing more comes, or the end. A full buffer gives its size.
    fn fill(&mut self, buffer: &mut [u8], filled: &mut usize) -> io::Result<usize> {
        let mut is_drained = false;
        let mut reads = 0;
        loop {
            match self.tls.reader().read(&mut buffer[*filled..]) {
                Ok(0) => return Ok(0),
                Ok(n) => {
                    *filled += n;
                    if *filled == buffer.len() {
                        return Ok(*filled);
                    }
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
            if is_drained || reads == MAX_READS {
                self.has_more = !is_drained;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            reads += 1;
            let mut source = Source { socket: &mut self.socket, received: &mut self.received, is_drained: false };
            self.tls.read_tls(&mut source)?;
            is_drained = source.is_drained;
            let opened = self.tls.process_new_packets();
            // Answers of the handshake, or the alert that says what was wrong.
            let pushed = self.push();
            if let Err(error) = opened {
                self.has_failed = true;
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            pushed?;
        }
    }

    #[inline(never)]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            self.push()?;
            if taken == bytes.len() || self.tls.wants_write() {
                break;
            }
            match self.tls.writer().write(&bytes[taken..])? {
                // Before the end of the handshake there is room for so much and no more.
                0 => break,
                n => taken += n,
            }
        }
        if taken == 0 && !bytes.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn push(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.sent += n as u64,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        if std::mem::take(&mut self.is_ending) { self.socket.shutdown(Shutdown::Write) } else { Ok(()) }
    }
}

/// A socket as TLS reads it: notes when it is empty, which TLS does not tell.
struct Source<'a> {
    socket: &'a mut TcpStream,
    received: &'a mut u64,
    is_drained: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.socket.read(buffer) {
                Ok(n) => {
                    *self.received += n as u64;
                    self.is_drained = n < buffer.len();
                    return Ok(n);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}
