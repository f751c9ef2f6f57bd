//! Connections without a socket of their own.

use std::io;
use std::net::SocketAddr;

/// Carries the bytes of one connection, however they travel: as one of many streams over a single socket, say. It is
/// called by an event loop and must never block it. What it cannot do yet fails with [`io::ErrorKind::WouldBlock`], and
/// it notifies when it can. Dropping it ends the connection.
pub trait Carrier: Send {
    /// Gives it what to call, from any thread, when there is something to read or room to write. This comes once,
    /// before any other call but that for the address.
    fn attach(&mut self, notify: Notify);

    /// Reads what has come. 0 means the end.
    ///
    /// # Errors
    /// If nothing has come, or the peer is gone.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Whether there is more to read: bytes, the end, or an error.
    fn has_more(&self) -> bool;

    /// Takes bytes, as many as there is room for.
    ///
    /// # Errors
    /// If there is no room, or the peer is gone.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Tells the peer that nothing more will be written.
    ///
    /// # Errors
    /// If the peer is gone.
    fn shut_down(&mut self) -> io::Result<()>;

    /// Whether the peer neither sends nor reads any more.
    fn is_gone(&self) -> bool;

    /// Who is at the other end.
    ///
    /// # Errors
    /// If that is no longer known.
    fn peer_address(&self) -> io::Result<SocketAddr>;
}

/// Signals that a carrier can go on.
pub type Notify = Box<dyn Fn() + Send + Sync>;
