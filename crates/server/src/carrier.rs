//! Connections that are no socket of their own.

use std::io;
use std::net::SocketAddr;

/// The bytes of one connection, however they travel: one stream of many over a single socket, say. An event loop calls it,
/// which it must never block; what it cannot do now it says with [`io::ErrorKind::WouldBlock`], and tells when it can.
/// Dropping it ends it.
pub trait Carrier: Send {
    /// Whom to call, from any thread, when there is something to read or room to write. Called once, before all else.
    fn attach(&mut self, notify: Notify);

    /// Reads what has come. 0 is the end.
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

    /// Says that nothing more is written.
    ///
    /// # Errors
    /// If the peer is gone.
    fn shut_down(&mut self) -> io::Result<()>;

    /// Whether the peer neither sends nor reads any more.
    fn is_gone(&self) -> bool;

    /// Who is at the other end.
    ///
    /// # Errors
    /// If that is not known any more.
    fn peer_address(&self) -> io::Result<SocketAddr>;
}

/// Tells that a carrier can go on.
pub type Notify = Box<dyn Fn() + Send + Sync>;
