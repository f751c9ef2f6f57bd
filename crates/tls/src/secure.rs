//! The server's side of TLS on a socket, by rustls' interface without buffers: a connection on which nothing is under
//! way holds keys and state, and no bytes.

use mio::net::TcpStream;
use rustls::server::{ServerConfig, ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic};
use std::cell::RefCell;
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

/// Most bytes sealed before the socket has taken them: what a blocked connection with TLS holds beside its queue. It
/// is as much as one write has, so an event of any usual size leaves in one.
const MAX_SEALED_BYTES: usize = 64 * 1024;
/// Bytes opened at once, and the most of them that a connection keeps because the rest has not come: of a record less
/// than 17 KiB (RFC 5246, section 6.2.3; RFC 8446, section 5.2), of a message of the handshake that goes over several
/// records all that is allowed here. No client that means it sends a tenth of that.
const MAX_OPENED_BYTES: usize = 64 * 1024;
/// What sealing adds to [`MAX_SEALED_BYTES`]; where that is more, the space grows.
const SEALING_BYTES: usize = 1024;

thread_local! {
    /// Working space of an event loop: sealed bytes that came just now, or are written at once.
    static SPACE: RefCell<Vec<u8>> = RefCell::new(vec![0; MAX_SEALED_BYTES + SEALING_BYTES]);
}

/// The server's side of TLS on a socket.
pub struct Secure {
    socket: TcpStream,
    tls: UnbufferedServerConnection,
    /// What has come of a record or a message of the handshake, as long as the rest has not.
    partial: Vec<u8>,
    /// Sealed bytes that the socket has not taken.
    unsent: Vec<u8>,
    /// How reading failed, where bytes that came before had to be told first.
    error: Option<io::Error>,
    /// The peer has said farewell; what it may have sent behind that is nothing.
    has_ended: bool,
    /// An alert was the last word: our farewell, or what the peer did wrong. Behind it nothing may follow, and what the
    /// peer still sends is nothing.
    is_over: bool,
    /// There is more to read, and no event will tell.
    has_more: bool,
    /// The socket is to be shut when all is sent.
    is_ending: bool,
    /// Bytes on the socket that were not asked for yet.
    sent: u64,
    received: u64,
}

impl Secure {
    /// A connection that was just accepted.
    pub fn accept(socket: TcpStream, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self {
            socket,
            tls: UnbufferedServerConnection::new(config)?,
            partial: Vec::new(),
            unsent: Vec::new(),
            error: None,
            has_ended: false,
            is_over: false,
            has_more: false,
            is_ending: false,
            sent: 0,
            received: 0,
        })
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The socket, to register it.
    pub fn socket_mut(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Whether the client wants HTTP/2, and was told that it gets it.
    pub fn has_agreed_on_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(b"h2")
    }

    /// Bytes of memory it takes for partly received input and partly sent output.
    pub fn kept_bytes(&self) -> usize {
        self.partial.capacity() + self.unsent.capacity()
    }

    /// Whether the last read left something behind that no event will tell of.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Whether the socket has not taken all that was sealed.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Bytes that the socket took since the last call.
    #[inline]
    pub fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.sent)
    }

    /// Bytes that came on the socket since the last call.
    #[inline]
    pub fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    /// Reads once from the socket, as [`crate::stream::Stream::read`] says.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.has_more = false;
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.has_ended {
            return Ok(0);
        }
        if self.is_over {
            let n = self.socket.read(buffer)?;
            self.received += n as u64;
            return Ok(n);
        }
        let mut filled = 0;
        let result = SPACE.with_borrow_mut(|space| self.fill(buffer, &mut filled, space));
        match result {
            Err(error) if filled == 0 => Err(error),
            Ok(()) if filled == 0 && !self.has_ended => Err(io::ErrorKind::WouldBlock.into()),
            result => {
                self.error = result.err();
                self.has_more |= self.has_ended || self.error.is_some();
                Ok(filled)
            }
        }
    }

    fn fill(&mut self, buffer: &mut [u8], filled: &mut usize, space: &mut [u8]) -> io::Result<()> {
        // What is opened is shorter than it was sealed, so it fits.
        let space = &mut space[..MAX_OPENED_BYTES.min(buffer.len())];
        let kept = self.partial.len();
        let came = self.socket.read(&mut space[kept..])?;
        if came == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.received += came as u64;
        let size = kept + came;
        let is_full = size == space.len();
        self.has_more = is_full;
        space[..kept].copy_from_slice(&self.partial);
        let result = match self.open(&mut space[..size], buffer, filled) {
            Ok(0) if is_full => Err(self.fail("a message of the handshake is too large")),
            Ok(used) => {
                self.partial = if self.has_ended { Vec::new() } else { space[used..size].to_vec() };
                Ok(())
            }
            Err(error) => Err(self.fail(error)),
        };
        // Answers of the handshake, or the alert that says what was wrong.
        let pushed = self.push();
        result.and(pushed)
    }

    /// Opens what has come whole; gives how many bytes that was.
    fn open(&mut self, sealed: &mut [u8], opened: &mut [u8], filled: &mut usize) -> Result<usize, rustls::Error> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { mut discard, state } = self.tls.process_tls_records(&mut sealed[used..]);
            let needs_more = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        opened[*filled..][..record.payload.len()].copy_from_slice(record.payload);
                        *filled += record.payload.len();
                        discard += record.discard;
                    }
                    false
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode(data, &mut self.unsent);
                    false
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    false
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.has_ended = true;
                    false
                }
                // Early data, which has a state of its own, is not offered.
                Ok(_) => true,
                Err(error) => return Err(error),
            };
            used += discard;
            if needs_more {
                return Ok(used);
            }
        }
    }

    /// The peer broke TLS. An alert that tells it so is all that is asked of rustls from now on.
    fn fail(&mut self, error: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
        self.is_over = true;
        self.partial = Vec::new();
        while self.tls.wants_write()
            && let Ok(ConnectionState::EncodeTlsData(data)) = self.tls.process_tls_records(&mut []).state
        {
            encode(data, &mut self.unsent);
        }
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    /// Seals as much as the socket takes, and at most [`MAX_SEALED_BYTES`] more.
    #[inline(never)]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(bytes.len());
        }
        self.push()?;
        let mut taken = 0;
        SPACE.with_borrow_mut(|space| {
            while taken < bytes.len() && !self.is_blocked() {
                let part = &bytes[taken..][..MAX_SEALED_BYTES.min(bytes.len() - taken)];
                if !self.seal(space, |traffic, space| traffic.encrypt(part, space))? {
                    break;
                }
                taken += part.len();
            }
            Ok::<_, io::Error>(())
        })?;
        if taken == 0 && !bytes.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Seals something and gives it to the socket, unless the handshake has not come to its end.
    fn seal(
        &mut self,
        space: &mut Vec<u8>,
        seal: impl Fn(&mut WriteTraffic<'_, ServerConnectionData>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> io::Result<bool> {
        loop {
            // What is kept has been looked at and is not whole. It is shown again because it may be part of a message of
            // which rustls remembers where it is.
            match self.tls.process_tls_records(&mut self.partial).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => match seal(&mut traffic, space) {
                    Ok(size) => return self.send(&space[..size]).map(|()| true),
                    Err(EncryptError::InsufficientSize(error)) => space.resize(error.required_size, 0),
                    Err(error) => return Err(io::Error::other(error)),
                },
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut self.unsent),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(_) => return Ok(false),
                Err(error) => return Err(self.fail(error)),
            }
        }
    }

    /// Gives sealed bytes to the socket and keeps what that does not take.
    fn send(&mut self, sealed: &[u8]) -> io::Result<()> {
        self.push()?;
        let taken = if self.is_blocked() { 0 } else { self.offer(sealed)? };
        self.unsent.extend_from_slice(&sealed[taken..]);
        Ok(())
    }

    /// Gives the socket what it has not taken.
    pub fn push(&mut self) -> io::Result<()> {
        if self.is_blocked() {
            let unsent = std::mem::take(&mut self.unsent);
            let taken = self.offer(&unsent)?;
            self.unsent = unsent;
            self.unsent.drain(..taken);
            if self.is_blocked() {
                return Ok(());
            }
            self.unsent = Vec::new();
        }
        if std::mem::take(&mut self.is_ending) { self.socket.shutdown(Shutdown::Write) } else { Ok(()) }
    }

    /// Writes until the socket takes no more; gives how much it took.
    fn offer(&mut self, sealed: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < sealed.len() {
            match self.socket.write(&sealed[taken..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    taken += n;
                    self.sent += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(taken)
    }

    /// Says farewell, and shuts the socket behind it. In a handshake there is none: the end of the socket says it.
    pub fn shut_down(&mut self) -> io::Result<()> {
        self.say_farewell()?;
        self.is_ending = true;
        self.push()
    }

    /// Says farewell to a peer that did so.
    pub fn answer_farewell(&mut self) {
        if self.has_ended {
            // Who has gone already does not hear it.
            let _ = self.say_farewell();
        }
    }

    fn say_farewell(&mut self) -> io::Result<()> {
        if !self.is_over {
            SPACE.with_borrow_mut(|space| self.seal(space, |traffic, space| traffic.queue_close_notify(space)))?;
            self.is_over = true;
            self.partial = Vec::new();
        }
        Ok(())
    }
}

/// Adds a message of the handshake, or an alert, to what is to be sent.
fn encode(mut data: EncodeTlsData<'_, ServerConnectionData>, unsent: &mut Vec<u8>) {
    let begin = unsent.len();
    // The first call says how much room is needed.
    while let Err(EncodeError::InsufficientSize(error)) = data.encode(&mut unsent[begin..]) {
        unsent.resize(begin + error.required_size, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
    use std::net::{Ipv4Addr, TcpListener};

    /// Both sides of a connection, in one thread.
    struct Pair {
        server: Secure,
        client: ClientConnection,
        socket: std::net::TcpStream,
    }

    impl Pair {
        fn new() -> Self {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            let mut roots = RootCertStore::empty();
            roots.add(made.cert.der().clone()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = ClientConfig::builder_with_provider(provider.clone());
            let trusting = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
            let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
            let key = made.signing_key.serialize_der().try_into().unwrap();
            let config = builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let accepted = listener.accept().unwrap().0;
            accepted.set_nonblocking(true).unwrap();
            let server = Secure::accept(TcpStream::from_std(accepted), Arc::new(config)).unwrap();
            let trusting = Arc::new(trusting.with_no_client_auth());
            let client = ClientConnection::new(trusting, "localhost".try_into().unwrap()).unwrap();
            let mut pair = Self { server, client, socket };
            while pair.client.is_handshaking() {
                pair.push();
                pair.read();
                if pair.client.wants_read() && !pair.client.wants_write() {
                    pair.client.read_tls(&mut pair.socket).unwrap();
                    pair.client.process_new_packets().unwrap();
                }
            }
            pair.push();
            assert_eq!(pair.read(), b"");
            pair
        }

        /// What the client has to send.
        fn sealed(&mut self) -> Vec<u8> {
            let mut sealed = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut sealed).unwrap();
            }
            sealed
        }

        fn push(&mut self) {
            let sealed = self.sealed();
            self.socket.write_all(&sealed).unwrap();
        }

        fn read(&mut self) -> Vec<u8> {
            let mut buffer = vec![0; 64 * 1024];
            match self.server.read(&mut buffer) {
                Ok(n) => buffer[..n].to_vec(),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Vec::new(),
                Err(e) => panic!("{e}"),
            }
        }

        fn kept(&self) -> (usize, usize) {
            (self.server.partial.capacity(), self.server.unsent.capacity())
        }
    }

    #[test]
    fn who_is_idle_keeps_no_bytes() {
        let mut pair = Pair::new();
        let text = b"request".repeat(1_000);
        pair.client.writer().write_all(&text).unwrap();
        let sealed = pair.sealed();
        let (begin, end) = sealed.split_at(sealed.len() - 1);
        pair.socket.write_all(begin).unwrap();
        assert_eq!(pair.read(), b"");
        assert_eq!(pair.kept(), (begin.len(), 0));
        // It may answer meanwhile.
        assert_eq!(pair.server.write(&text).unwrap(), text.len());
        pair.socket.write_all(end).unwrap();
        assert_eq!(pair.read(), text);
        assert_eq!(pair.kept(), (0, 0));
        // The socket takes what it can, and all that was sealed beyond it waits.
        while !pair.server.is_blocked() {
            pair.server.write(&vec![0; 1 << 20]).unwrap();
        }
        let unsent = pair.server.unsent.len();
        assert!(unsent <= MAX_SEALED_BYTES + SEALING_BYTES, "{unsent}");
        assert_eq!(pair.server.write(b"more").unwrap_err().kind(), io::ErrorKind::WouldBlock);
        pair.socket.set_nonblocking(true).unwrap();
        while pair.server.is_blocked() {
            let _ = pair.socket.read(&mut [0; 4096]);
            pair.server.push().unwrap();
        }
        assert_eq!(pair.kept(), (0, 0));
    }

    /// rustls takes it for a fault of ours to tell a peer twice that it is over.
    #[test]
    fn what_comes_behind_our_farewell_is_nothing() {
        let mut pair = Pair::new();
        pair.server.shut_down().unwrap();
        let broken = [23, 3, 3, 0, 4, 1, 2, 3, 4];
        pair.socket.write_all(&broken).unwrap();
        assert_eq!(pair.read(), broken);
        assert_eq!(pair.server.write(b"more").unwrap(), 4);
        let mut told = Vec::new();
        pair.socket.read_to_end(&mut told).unwrap();
        pair.client.read_tls(&mut &*told).unwrap();
        assert!(pair.client.process_new_packets().unwrap().peer_has_closed());
    }
}
