//! When what is read from a socket had come to this host, where the kernel is to note it.

use mio::net::TcpStream;
use pushlab_os::socket::{read_stamped, stamp_receipts};
use std::io::{self, Read as _};

/// Reads from one socket, and what the kernel noted of the last: nothing and no memory where it is not to.
#[derive(Debug, Default)]
pub(crate) struct Receipts(Option<Box<Option<u64>>>);

impl Receipts {
    /// Has the kernel note what comes from now on. One that cannot has no figures of it.
    pub fn note(&mut self, stream: &TcpStream) {
        self.0 = stamp_receipts(stream).is_ok().then(Box::default);
    }

    /// How long the last segment of the last read had been there, ns.
    #[inline]
    pub fn waited_ns(&self) -> Option<u64> {
        *self.0.as_deref()?
    }

    /// Reads once.
    #[inline]
    pub fn read(&mut self, stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
        let Some(noted) = &mut self.0 else { return stream.read(room) };
        let (size, waited_ns) = read_stamped(stream, room)?;
        **noted = waited_ns;
        Ok(size)
    }
}
