//! The bytes of a connection: as they are on its socket, through TLS, as one of the streams of HTTP/2, or as somebody
//! else carries them.

use crate::carrier::Carrier;
use crate::http2::Http2Stream;
use mio::net::TcpStream;
use pushlab_tls::secure::Secure;
use rustls::ServerConfig;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

/// A connected socket, or what stands for one.
pub enum Stream {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS; boxed, so that a connection without it does not pay for it.
    Secure(Box<Secure>),
    /// Somebody else's.
    Carried(Box<dyn Carrier>),
    /// A stream of HTTP/2.
    Http2(Box<Http2Stream>),
}

impl Stream {
    /// The server's side of a connection that was just accepted.
    pub fn accept(socket: TcpStream, tls: Option<Arc<ServerConfig>>) -> Result<Self, rustls::Error> {
        match tls {
            None => Ok(Self::Plain(socket)),
            Some(config) => Ok(Self::Secure(Box::new(Secure::accept(socket, config)?))),
        }
    }

    /// The socket, if it has one.
    pub fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(socket) => Some(socket),
            Self::Secure(secure) => Some(secure.socket()),
            Self::Carried(_) | Self::Http2(_) => None,
        }
    }

    /// The socket, to register it.
    pub fn socket_mut(&mut self) -> Option<&mut TcpStream> {
        match self {
            Self::Plain(socket) => Some(socket),
            Self::Secure(secure) => Some(secure.socket_mut()),
            Self::Carried(_) | Self::Http2(_) => None,
        }
    }

    /// Who is at the other end.
    pub fn peer_address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Plain(socket) => socket.peer_addr(),
            Self::Secure(secure) => secure.socket().peer_addr(),
            Self::Carried(carrier) => carrier.peer_address(),
            Self::Http2(stream) => stream.peer_address(),
        }
    }

    /// Whether the peer neither sends nor reads any more, where no event tells.
    pub fn is_gone(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Secure(_) => false,
            Self::Carried(carrier) => carrier.is_gone(),
            Self::Http2(stream) => stream.is_gone(),
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
            Self::Carried(carrier) => carrier.read(buffer),
            Self::Http2(stream) => stream.read(buffer),
        }
    }

    /// Whether a read that did not fill its buffer left something behind that no event will tell of.
    pub fn has_more(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Secure(secure) => secure.has_more(),
            Self::Carried(carrier) => carrier.has_more(),
            Self::Http2(stream) => stream.has_more(),
        }
    }

    /// Whether the socket has not taken all of what was written.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        matches!(self, Self::Secure(secure) if secure.is_blocked())
    }

    /// Gives the socket what it has not taken.
    pub fn push(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) | Self::Carried(_) | Self::Http2(_) => Ok(()),
            Self::Secure(secure) => secure.push(),
        }
    }

    /// Bytes of memory it takes for partly received input and partly sent output.
    pub fn kept_bytes(&self) -> usize {
        match self {
            Self::Plain(_) | Self::Carried(_) => 0,
            Self::Secure(secure) => secure.kept_bytes(),
            Self::Http2(stream) => stream.kept_bytes(),
        }
    }

    /// Says that nothing more follows.
    pub fn shut_down(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.shutdown(Shutdown::Write),
            Self::Secure(secure) => secure.shut_down(),
            Self::Carried(carrier) => carrier.shut_down(),
            Self::Http2(stream) => {
                stream.shut_down();
                Ok(())
            }
        }
    }

    /// Answers the farewell of a peer that has said one, if nothing is to follow. Who has gone already does not hear it.
    pub fn answer_farewell(&mut self) {
        if let Self::Secure(secure) = self {
            secure.answer_farewell();
        }
    }

    /// Bytes that the socket was given since the last call, of which `written` were somebody's.
    #[inline]
    pub fn sent(&mut self, written: usize) -> u64 {
        match self {
            Self::Plain(_) | Self::Carried(_) => written as u64,
            Self::Secure(secure) => secure.take_sent(),
            Self::Http2(_) => 0,
        }
    }

    /// Bytes that came on the socket since the last call, of which `read` were for somebody.
    #[inline]
    pub fn received(&mut self, read: usize) -> u64 {
        match self {
            Self::Plain(_) | Self::Carried(_) => read as u64,
            Self::Secure(secure) => secure.take_received(),
            Self::Http2(_) => 0,
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
            Self::Carried(carrier) => carrier.write(bytes),
            Self::Http2(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push()
    }
}
