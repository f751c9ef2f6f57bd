//! TLS below a connection of the load.
//!
//! A client trusts exactly the certificate that was made for the run. Nothing is resumed: each connection makes a
//! whole handshake, as one of a host that has not been there before (RFC 8446, section 2.2). A connection with TLS
//! costs about 10 KiB of heap memory.

use mio::net::TcpStream;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A certificate that clients cannot trust.
#[derive(Debug, thiserror::Error)]
pub enum BadCertificate {
    /// None was named.
    #[error("sockets.tls without a certificate: name the PEM file of the one that the subject shows")]
    Missing,
    /// No file, or no PEM.
    #[error("the certificate {} cannot be read: {source}", path.display())]
    Unreadable {
        /// `certificate`.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// PEM, but nothing to trust.
    #[error("{} holds no certificate", path.display())]
    Empty {
        /// `certificate`.
        path: PathBuf,
    },
    /// Not what X.509 wants.
    #[error("the certificate {} cannot be used: {source}", path.display())]
    Useless {
        /// `certificate`.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// Why TLS cannot go on; the cause inside an [`io::Error`] of a connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Another certificate, or one for another address.
    #[error(
        "TLS: the subject's certificate is not the one that was made for it ({0}): the plan's certificate must be the \
         subject's, and name its address"
    )]
    Certificate(rustls::Error),
    /// Something else came in the handshake.
    #[error("TLS: the subject does not speak it ({0}): give it its certificate and key, or switch TLS off")]
    NotTls(rustls::Error),
    /// The peer has gone.
    #[error("TLS: the subject closed the connection in the handshake: does it speak TLS?")]
    Ended,
    /// Anything else.
    #[error("TLS: {0}")]
    Broken(rustls::Error),
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// What TLS adds to the bytes of a connection: ciphertext less plaintext.
///
/// A difference of two counts can be negative for a while: plaintext that waits for the handshake is counted when it
/// is handed over, and a record that came in two reads with the second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TlsBytes {
    /// On the way in.
    pub read: i64,
    /// On the way out.
    pub written: i64,
}

/// What all of a run's TLS connections have in common.
#[derive(Debug, Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsClient {
    /// Clients of a subject at an address, which the certificate must name. Trusts what a PEM file holds and nothing
    /// else: a certificate that signed itself, or the authority that signed it.
    ///
    /// # Errors
    /// See [`BadCertificate`].
    pub fn trusting(path: &Path, subject: IpAddr) -> Result<Self, BadCertificate> {
        let unreadable = |source| BadCertificate::Unreadable { path: path.into(), source };
        let useless = |source| BadCertificate::Useless { path: path.into(), source };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            roots.add(certificate.map_err(unreadable)?).map_err(useless)?;
        }
        if roots.is_empty() {
            return Err(BadCertificate::Empty { path: path.into() });
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(useless)?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), name: ServerName::IpAddress(subject.into()) })
    }

    /// A client's end of a connection that stands or will.
    pub(crate) fn open(&self) -> io::Result<Tls> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut session = session.map_err(TlsError::Broken)?;
        // What waits is bounded by who sends: nothing more is offered to a connection that is blocked.
        session.set_buffer_limit(None);
        Ok(Tls { session, has_emptied_socket: false, bytes: TlsBytes::default() })
    }
}

/// Outcome of one [`Tls::read`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TlsRead {
    /// Plaintext.
    Bytes {
        /// How many.
        new: usize,
        /// Whether neither the socket nor what it brought holds more.
        is_drained: bool,
    },
    /// The handshake is over.
    Stands,
    /// Nothing to read now.
    Blocked,
    /// The peer has ended the connection.
    Closed,
}

/// A client's end of TLS, without its socket.
#[derive(Debug)]
pub(crate) struct Tls {
    session: ClientConnection,
    /// Whether the last read of ciphertext took all there was.
    has_emptied_socket: bool,
    bytes: TlsBytes,
}

impl Tls {
    /// Whether plaintext would have to wait now.
    pub fn is_blocked(&self) -> bool {
        self.session.is_handshaking() || self.session.wants_write()
    }

    /// Whether the handshake is still under way.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// See [`TlsBytes`]: since it was last asked for.
    pub fn take_bytes(&mut self) -> TlsBytes {
        std::mem::take(&mut self.bytes)
    }

    /// Reads plaintext into `room`, which is not empty, and ciphertext before it as far as that takes.
    pub fn read(&mut self, stream: &mut TcpStream, room: &mut [u8]) -> io::Result<TlsRead> {
        loop {
            match self.session.reader().read(room) {
                Ok(0) => return Ok(TlsRead::Closed),
                Ok(new) => {
                    self.bytes.read -= new as i64;
                    let is_drained = new < room.len() && self.has_emptied_socket;
                    return Ok(TlsRead::Bytes { new, is_drained });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Without a goodbye, as many servers close.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(TlsRead::Closed),
                Err(error) => return Err(error),
            }
            let was_handshaking = self.session.is_handshaking();
            let mut tap = Tap { stream, has_emptied: &mut self.has_emptied_socket };
            match self.session.read_tls(&mut tap) {
                Ok(0) if was_handshaking => return Err(TlsError::Ended.into()),
                Ok(size) => self.bytes.read += size as i64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(TlsRead::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let processed = self.session.process_new_packets();
            let pushed = self.push(stream);
            // The alert that says why has been tried by now.
            processed.map_err(|error| explain(error, was_handshaking))?;
            pushed?;
            if was_handshaking && !self.session.is_handshaking() {
                return Ok(TlsRead::Stands);
            }
        }
    }

    /// Takes plaintext, all of it, and sends what the socket takes of the ciphertext.
    pub fn write(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        self.session.writer().write_all(bytes)?;
        self.bytes.written -= bytes.len() as i64;
        self.push(stream)
    }

    /// Sends ciphertext that waits, as far as the socket takes it.
    pub fn push(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(stream) {
                Ok(0) => break,
                Ok(size) => self.bytes.written += size as i64,
                // A socket that still connects answers the latter.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Notes whether a read took all there was.
struct Tap<'a> {
    stream: &'a mut TcpStream,
    has_emptied: &'a mut bool,
}

impl io::Read for Tap<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let size = self.stream.read(room)?;
        *self.has_emptied = size < room.len();
        Ok(size)
    }
}

fn explain(error: rustls::Error, was_handshaking: bool) -> TlsError {
    match error {
        rustls::Error::InvalidCertificate(_) => TlsError::Certificate(error),
        rustls::Error::InvalidMessage(_) if was_handshaking => TlsError::NotTls(error),
        error => TlsError::Broken(error),
    }
}
