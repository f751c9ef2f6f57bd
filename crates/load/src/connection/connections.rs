//! The connections of one loop.

use super::{Outgoing, Owner, Protocol, Stream};
use crate::dial::Dialler;
use crate::socket::Socket;
use mio::{Interest, Registry, Token};
use std::io;
use std::net::Ipv4Addr;

/// A socket and what runs on it.
#[derive(Debug)]
pub struct Connection<P> {
    /// What carries the bytes.
    pub socket: Socket,
    /// What they mean.
    pub protocol: P,
    opened_for: u32,
    is_established: bool,
    /// Its host has another now, or may have.
    pub is_given_up: bool,
}

impl<P: Protocol> Connection<P> {
    /// One with a stream of its first owner's, and that stream's number.
    pub fn new(socket: Socket, owner: Owner) -> (Self, u32) {
        let mut protocol = P::default();
        let number = protocol.open(owner).expect("a new connection has room for a stream");
        (
            Self { socket, protocol, opened_for: owner.client() as u32, is_established: false, is_given_up: false },
            number,
        )
    }

    /// Whom it was opened for: a client of its host.
    pub fn opened_for(&self) -> usize {
        self.opened_for as usize
    }

    /// Whether it has been opened, as far as that is known.
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// Notes that its socket can be written.
    #[inline]
    pub fn note_writable(&mut self) {
        self.is_established |= !self.socket.is_handshaking();
    }

    /// Whether it is to be read. One that nobody uses is looked at when it is wanted again, if it is to be used by one
    /// after the other.
    #[inline]
    pub fn is_heard(&self) -> bool {
        P::IS_SHARED || !self.protocol.has_room()
    }

    /// Opens another stream; `None` if there is no room, or its peer has closed it.
    pub fn open(&mut self, owner: Owner) -> Option<u32> {
        if P::IS_SHARED || self.socket.is_reusable() { self.protocol.open(owner) } else { None }
    }

    /// Sends what was put together for a stream, queueing what the socket does not take. Returns how many bytes it took
    /// now; what all of them are for is then in `out`.
    ///
    /// # Errors
    /// What the socket answers.
    #[inline]
    pub fn send(&mut self, number: u32, out: &mut Outgoing) -> io::Result<usize> {
        self.protocol.has_sent(number, out);
        self.socket.send(out.bytes())
    }

    /// Sends what the connection itself has to tell the peer. Returns as [`Self::send`].
    ///
    /// # Errors
    /// What the socket answers.
    pub fn speak(&mut self, out: &mut Outgoing) -> io::Result<usize> {
        out.clear();
        self.protocol.speak(out);
        if out.is_empty() { Ok(0) } else { self.socket.send(out.bytes()) }
    }

    /// Whether a stream can take nothing more for now.
    #[inline]
    pub fn is_blocked(&self, number: u32) -> bool {
        self.socket.is_blocked() || self.protocol.is_blocked(number)
    }

    /// The same, unless that would have to wait: then nothing is sent and nothing noted.
    ///
    /// # Errors
    /// What the socket answers.
    #[inline]
    pub fn offer(&mut self, number: u32, out: &mut Outgoing) -> io::Result<Option<usize>> {
        if P::IS_SHARED {
            // What has been framed cannot be taken back.
            return if self.is_blocked(number) { Ok(None) } else { self.send(number, out).map(Some) };
        }
        let taken = self.socket.offer(out.bytes())?;
        if taken == 0 {
            return Ok(None);
        }
        self.protocol.has_sent(number, out);
        Ok(Some(taken))
    }
}

/// The connections of a loop, by numbers that its poll gives back as tokens.
///
/// The number of a connection that is gone is given to another in a later turn only, so that what the kernel still had
/// to say of it is nobody else's.
#[derive(Debug)]
pub struct Connections<P> {
    places: Vec<Option<Connection<P>>>,
    free: Vec<u32>,
    freed: Vec<u32>,
}

impl<P: Protocol> Connections<P> {
    /// Room for so many, which costs no memory yet.
    pub fn with_capacity(connections: usize) -> Self {
        Self { places: Vec::with_capacity(connections), free: Vec::new(), freed: Vec::new() }
    }

    /// Begins to open a connection, and a stream on it.
    ///
    /// # Errors
    /// As [`Dialler::dial`].
    pub fn open(
        &mut self,
        dialler: &Dialler,
        source: Option<Ipv4Addr>,
        registry: &Registry,
        owner: Owner,
    ) -> io::Result<Stream> {
        let mut socket = dialler.dial(source)?;
        let place = self.free.last().map_or(self.places.len(), |&place| place as usize);
        registry.register(socket.stream_mut(), Token(place), Interest::READABLE | Interest::WRITABLE)?;
        let (connection, number) = Connection::new(socket, owner);
        match self.free.pop() {
            Some(_) => self.places[place] = Some(connection),
            None => self.places.push(Some(connection)),
        }
        Ok(Stream { connection: place as u32, number })
    }

    /// A connection, unless it is gone.
    #[inline]
    pub fn at(&mut self, connection: u32) -> Option<&mut Connection<P>> {
        self.places.get_mut(connection as usize)?.as_mut()
    }

    /// Whether a stream can take nothing more for now, or is none.
    #[inline]
    pub fn is_blocked(&self, stream: Option<Stream>) -> bool {
        let Some(stream) = stream else { return true };
        let connection = self.places.get(stream.connection as usize).and_then(Option::as_ref);
        connection.is_none_or(|connection| connection.is_blocked(stream.number))
    }

    /// Closes a connection and forgets it.
    pub fn close(&mut self, connection: u32) {
        if self.places.get_mut(connection as usize).and_then(Option::take).is_some() {
            self.freed.push(connection);
        }
    }

    /// A turn of the loop is over: nothing that the kernel has said is unheard.
    #[inline]
    pub fn end_turn(&mut self) {
        if !self.freed.is_empty() {
            self.free.append(&mut self.freed);
        }
    }

    /// The numbers of all that there are.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<P> {
        0..self.places.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Http1, Side};
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_number_is_given_again_in_a_later_turn_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (dialler, poll) = (Dialler::new(listener.local_addr().unwrap()), mio::Poll::new().unwrap());
        let mut connections = Connections::with_capacity(1);
        let open = |connections: &mut Connections<Http1>, client| {
            let owner = Owner::new(client, Side::Down);
            connections.open(&dialler, None, poll.registry(), owner).unwrap().connection
        };
        assert_eq!([5, 6].map(|client| open(&mut connections, client)), [0, 1]);
        connections.close(0);
        connections.close(0);
        assert!(connections.at(0).is_none());
        assert_eq!(open(&mut connections, 7), 2);
        connections.end_turn();
        assert_eq!([8, 9].map(|client| open(&mut connections, client)), [0, 3]);
        assert_eq!(connections.at(0).unwrap().protocol.owners().map(Owner::client), Some(8));
    }
}
