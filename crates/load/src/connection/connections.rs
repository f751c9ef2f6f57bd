//! The connections of one loop.

use super::{Http1, Incoming, Outgoing, Owner, Stream};
use crate::cut::Cut;
use crate::dial::Dialler;
use crate::socket::Socket;
use mio::{Interest, Registry, Token};
use std::io;
use std::net::Ipv4Addr;

/// A socket and the stream on it.
#[derive(Debug)]
pub struct Connection {
    /// What carries the bytes.
    pub socket: Socket,
    http1: Http1,
    owner: Option<Owner>,
    stands: bool,
}

impl Connection {
    /// One whose only stream is its owner's.
    pub fn new(socket: Socket, owner: Owner) -> Self {
        Self { socket, http1: Http1::default(), owner: Some(owner), stands: false }
    }

    /// Whose the stream on it is; nobody's while a host keeps it for the next request.
    #[inline]
    pub fn owner(&self) -> Option<Owner> {
        self.owner
    }

    /// Whether it has been opened, as far as that is known.
    pub fn stands(&self) -> bool {
        self.stands
    }

    /// Notes that its socket can be written.
    #[inline]
    pub fn is_writable(&mut self) {
        self.stands |= !self.socket.is_handshaking();
    }

    /// Says what `input` means, from its front on; returns how many bytes are done with.
    ///
    /// # Errors
    /// When the connection cannot go on.
    #[inline]
    pub fn receive(&mut self, input: &mut [u8], incoming: &mut impl Incoming) -> Result<usize, Cut> {
        self.http1.receive(input, incoming)
    }

    /// Sends what was put together, queueing what the socket does not take. Returns how many bytes it took now.
    ///
    /// # Errors
    /// What the socket answers.
    pub fn send(&mut self, out: &Outgoing) -> io::Result<usize> {
        self.http1.has_sent(out);
        self.socket.send(out.bytes())
    }

    /// The same if the socket takes at least one byte now; otherwise it returns 0 and queues nothing.
    ///
    /// # Errors
    /// What the socket answers.
    pub fn offer(&mut self, out: &Outgoing) -> io::Result<usize> {
        let taken = self.socket.offer(out.bytes())?;
        if taken > 0 {
            self.http1.has_sent(out);
        }
        Ok(taken)
    }

    /// Takes its stream from whoever had it.
    pub fn close_stream(&mut self) {
        self.owner = None;
    }
}

/// The connections of a loop, by numbers that its poll gives back as tokens.
///
/// The number of a connection that is gone is given to another in a later turn only, so that what the kernel still had
/// to say of it is nobody else's.
#[derive(Debug, Default)]
pub struct Connections {
    places: Vec<Option<Connection>>,
    free: Vec<u32>,
    freed: Vec<u32>,
}

impl Connections {
    /// Room for so many, which costs no memory yet.
    pub fn with_capacity(connections: usize) -> Self {
        Self { places: Vec::with_capacity(connections), ..Self::default() }
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
        let connection = Some(Connection::new(socket, owner));
        match self.free.pop() {
            Some(_) => self.places[place] = connection,
            None => self.places.push(connection),
        }
        Ok(Stream { connection: place as u32 })
    }

    /// Opens a stream on a connection that has none, if its peer has not closed it.
    pub fn reopen(&mut self, connection: u32, owner: Owner) -> Option<Stream> {
        let kept = self.at(connection)?;
        if !kept.socket.is_reusable() {
            return None;
        }
        kept.owner = Some(owner);
        Some(Stream { connection })
    }

    /// A connection, unless it is gone.
    #[inline]
    pub fn at(&mut self, connection: u32) -> Option<&mut Connection> {
        self.places.get_mut(connection as usize)?.as_mut()
    }

    /// The connection that carries a stream, if there is such a stream.
    #[inline]
    pub fn of(&mut self, stream: Option<Stream>) -> Option<&mut Connection> {
        self.at(stream?.connection)
    }

    /// Whether a stream can take nothing more for now, or is none.
    #[inline]
    pub fn is_blocked(&self, stream: Option<Stream>) -> bool {
        let connection = stream.and_then(|stream| self.places.get(stream.connection as usize)?.as_ref());
        connection.is_none_or(|connection| connection.socket.is_blocked())
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
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.places.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::Side;
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_number_is_given_again_in_a_later_turn_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (dialler, poll) = (Dialler::new(listener.local_addr().unwrap()), mio::Poll::new().unwrap());
        let mut connections = Connections::default();
        let open = |connections: &mut Connections, client| {
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
        assert_eq!(connections.at(0).unwrap().owner().map(Owner::client), Some(8));
    }
}
