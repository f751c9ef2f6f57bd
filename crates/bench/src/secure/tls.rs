//! A client's end of TLS on a socket that does not block, and a subscriber of HTTP/1.1 behind it.

use crate::audience::{Came, Peer, Tally};
use crate::connect;
use mio::net::TcpStream;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

/// One subscriber over HTTP/1.1 and TLS.
pub struct Tls {
    socket: TcpStream,
    session: ClientConnection,
    /// Plaintext has come.
    is_greeted: bool,
}

impl Tls {
    /// Connects, and sends a request as soon as the handshake is over.
    pub fn open(
        address: SocketAddr,
        family: u8,
        index: usize,
        config: &Arc<ClientConfig>,
        request: &[u8],
    ) -> anyhow::Result<Self> {
        let socket = connect::open(address, family, index, b"")?;
        let mut tls = Self { socket, session: super::session(config)?, is_greeted: false };
        tls.write(request)?;
        Ok(tls)
    }

    /// Its socket.
    pub fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Sends plaintext. The socket takes all of it: what subscribers send is little.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.session.writer().write_all(bytes)?;
        self.push()
    }

    fn push(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Reads until the socket is empty and gives the plaintext to `sink`; says how many bytes of the socket that took, 0
    /// at its end.
    pub fn read(&mut self, buffer: &mut [u8], mut sink: impl FnMut(&[u8])) -> io::Result<usize> {
        let mut came = 0;
        loop {
            match self.session.read_tls(&mut self.socket) {
                Ok(0) => return Ok(came),
                Ok(n) => came += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && came > 0 => break,
                Err(e) => return Err(e),
            }
            self.session.process_new_packets().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            loop {
                match self.session.reader().read(buffer) {
                    Ok(0) => break,
                    Ok(n) => sink(&buffer[..n]),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e),
                }
            }
        }
        self.push()?;
        Ok(came)
    }
}

impl Peer for Tls {
    fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> io::Result<Came> {
        let mut is_greeted = self.is_greeted;
        let bytes = self.read(buffer, |text| {
            is_greeted = true;
            tally.take(text);
        })?;
        self.is_greeted = is_greeted;
        Ok(Came { bytes, is_greeted })
    }
}
