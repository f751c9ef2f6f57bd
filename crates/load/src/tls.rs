//! TLS below a connection of the load.
//!
//! A client trusts exactly the certificate that was made for the run, or, of a subject that others run, the system's
//! authorities. Nothing is resumed: each connection makes a whole handshake, as one of a host that has not been there
//! before (RFC 8446, section 2.2). A connection with TLS costs about 10 KiB of heap memory.

use crate::receipts::Receipts;
use mio::net::TcpStream;
use pushlab_workload::plan::{Http, TlsTarget, Trust};
use pushlab_workload::tally::TlsBytes;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

/// A certificate that clients cannot trust.
#[derive(Debug, thiserror::Error)]
pub enum BadCertificate {
    /// Nothing that one can be for.
    #[error("no certificate can name {name:?}: tls.server_name must be a host's name or an IP address")]
    Name {
        /// `server_name`.
        name: String,
    },
    /// No system's authorities, or none that can be used.
    #[error(
        "this system has no trusted certificate authorities{why}: install the package ca-certificates, or name a PEM file in SSL_CERT_FILE"
    )]
    NoAuthorities {
        /// What went wrong, if anything, in brackets.
        why: String,
    },
    /// Not PEM.
    #[error("the certificate cannot be read: {0}")]
    Unreadable(#[from] pem::Error),
    /// The text holds no certificate.
    #[error("tls.trust.certificate is \"{0:.100}\": it must be the text of a certificate (PEM), not a file name")]
    Empty(String),
    /// Not what X.509 wants.
    #[error("the certificate cannot be used: {0}")]
    Useless(#[from] rustls::Error),
}

/// Why TLS cannot go on; the cause inside an [`io::Error`] of a connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Another certificate than the plan's.
    #[error(
        "TLS: the subject's certificate is not the one that was made for it ({0}): the plan's certificate must be the \
         subject's"
    )]
    Stranger(CertificateError),
    /// Nobody vouches for it whom the system trusts.
    #[error(
        "TLS: no authority that this system trusts has signed the subject's certificate ({0}): name the PEM file of \
         its authority in SSL_CERT_FILE"
    )]
    Unknown(CertificateError),
    /// One for others.
    #[error("TLS: the subject's certificate is for another name ({0}): use a name that the certificate covers")]
    Name(CertificateError),
    /// An authority's own, as a certificate that signs itself often is.
    #[error(
        "TLS: the subject presents the certificate of an authority itself ({0}): give it one that is not for an \
         authority (basicConstraints CA:FALSE)"
    )]
    Authority(CertificateError),
    /// One that is out of date, for instance.
    #[error("TLS: the subject's certificate cannot be trusted ({0}): give it another")]
    Certificate(CertificateError),
    /// Something else came in the handshake.
    #[error("TLS: the subject does not speak it ({0}): give it its certificate and key, or switch TLS off")]
    NotTls(rustls::Error),
    /// No HTTP/2 where that was asked for.
    #[error("TLS: the subject did not select h2 by ALPN: enable HTTP/2 on it, or set http_version = \"1.1\"")]
    NoHttp2,
    /// No HTTP/1.1 where nothing else was offered.
    #[error("TLS: the subject does not accept http/1.1 by ALPN: set http_version = \"2\"")]
    NoHttp1,
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

/// What all of a run's TLS connections have in common.
#[derive(Debug, Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    trusts_system: bool,
}

impl TlsClient {
    /// Clients of a subject, whose certificate must name it.
    ///
    /// # Errors
    /// See [`BadCertificate`].
    pub fn of(target: &TlsTarget, http: Http) -> Result<Self, BadCertificate> {
        let name = ServerName::try_from(target.server_name.clone());
        let name = name.map_err(|_| BadCertificate::Name { name: target.server_name.clone() })?;
        let roots = match &target.trust {
            Trust::Certificate(pem) => roots_of(pem)?,
            Trust::System => roots_of_system()?,
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("ring has what TLS 1.2 and 1.3 need");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![protocol_of(http).to_vec()];
        Ok(Self { config: Arc::new(config), name, trusts_system: target.trust == Trust::System })
    }

    /// The same for a version of HTTP.
    pub fn over(&self, http: Http) -> Self {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![protocol_of(http).to_vec()];
        Self { config: Arc::new(config), ..self.clone() }
    }

    /// A connection over HTTP/1.1 for a thread that waits.
    ///
    /// # Errors
    /// See [`TlsError`]; of the handshake, when something is first written or read.
    pub fn over_blocking(
        &self,
        stream: std::net::TcpStream,
    ) -> io::Result<StreamOwned<ClientConnection, std::net::TcpStream>> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone()).map_err(TlsError::Broken)?;
        Ok(StreamOwned::new(session, stream))
    }

    /// A client's end of a connection that stands or will.
    pub(crate) fn open(&self) -> io::Result<Tls> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut session = session.map_err(TlsError::Broken)?;
        // What waits is bounded by who sends: nothing more is offered to a connection that is blocked.
        session.set_buffer_limit(None);
        let (has_emptied_socket, bytes) = (false, TlsBytes::default());
        let wants_http2 = self.config.alpn_protocols == [HTTP2];
        Ok(Tls { session, has_emptied_socket, bytes, trusts_system: self.trusts_system, wants_http2 })
    }
}

/// What HTTP/2 is called in a handshake (RFC 9113, section 3.2).
const HTTP2: &[u8] = b"h2";

fn protocol_of(http: Http) -> &'static [u8] {
    match http {
        Http::Http11 => b"http/1.1",
        Http::Http2 { .. } => HTTP2,
    }
}

/// What a PEM text holds: a certificate that signed itself, or the authority that signed it.
fn roots_of(pem: &str) -> Result<RootCertStore, BadCertificate> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate?)?;
    }
    if roots.is_empty() { Err(BadCertificate::Empty(pem.to_owned())) } else { Ok(roots) }
}

/// The authorities of this system, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, as for OpenSSL. One that
/// cannot be read is left out, as others do it.
fn roots_of_system() -> Result<RootCertStore, BadCertificate> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(BadCertificate::NoAuthorities { why });
    }
    Ok(roots)
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
    Established,
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
    /// Who may vouch for the peer, for the error when nobody does.
    trusts_system: bool,
    /// Whether the peer must agree to HTTP/2: it may pass over what was offered.
    wants_http2: bool,
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
    pub fn read(&mut self, stream: &mut TcpStream, receipts: &mut Receipts, room: &mut [u8]) -> io::Result<TlsRead> {
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
            let mut tap = Tap { stream, receipts, has_emptied: &mut self.has_emptied_socket };
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
            processed.map_err(|error| explain(error, was_handshaking, self.trusts_system, self.wants_http2))?;
            pushed?;
            if was_handshaking && !self.session.is_handshaking() {
                if self.wants_http2 && self.session.alpn_protocol() != Some(HTTP2) {
                    return Err(TlsError::NoHttp2.into());
                }
                return Ok(TlsRead::Established);
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
    receipts: &'a mut Receipts,
    has_emptied: &'a mut bool,
}

impl io::Read for Tap<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let size = self.receipts.read(self.stream, room)?;
        *self.has_emptied = size < room.len();
        Ok(size)
    }
}

fn explain(error: rustls::Error, was_handshaking: bool, trusts_system: bool, wants_http2: bool) -> TlsError {
    use CertificateError::{BadSignature, NotValidForName, NotValidForNameContext, UnknownIssuer};
    match error {
        rustls::Error::InvalidCertificate(error) => match error {
            NotValidForName | NotValidForNameContext { .. } => TlsError::Name(error),
            // A bad signature is that of another authority of the same name.
            UnknownIssuer | BadSignature if trusts_system => TlsError::Unknown(error),
            UnknownIssuer | BadSignature => TlsError::Stranger(error),
            CertificateError::Other(ref other) if other.to_string().contains("CaUsedAsEndEntity") => {
                TlsError::Authority(error)
            }
            _ => TlsError::Certificate(error),
        },
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) if wants_http2 => TlsError::NoHttp2,
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => TlsError::NoHttp1,
        rustls::Error::InvalidMessage(_) if was_handshaking => TlsError::NotTls(error),
        error => TlsError::Broken(error),
    }
}
