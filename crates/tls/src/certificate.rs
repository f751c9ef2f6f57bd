//! The certificate and the key with which a server speaks TLS.

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ProducesTickets, ServerConfig};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Longest file that is read: 16 MiB, which it takes of memory.
const PEM_BYTES_MAX: u64 = 16 << 20;

/// The files with which a server speaks TLS, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, then those of its issuers.
    pub certificate: PathBuf,
    /// The certificate's private key, without a passphrase.
    pub key: PathBuf,
}

/// What keeps a server from speaking TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or may not be read.
    #[error("cannot read {}: {source}; --tls-certificate and --tls-key name files in PEM format", path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is damaged.
    #[error("{} is no file in PEM format: {source}; make a new one", path.display())]
    BadPem {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// A key that needs a passphrase.
    #[error("{} is protected by a passphrase, which cannot be entered here; `openssl pkey -in {} -out FILE` writes it \
             without one", path.display(), path.display())]
    Encrypted {
        /// Which one.
        path: PathBuf,
    },
    /// A file without a certificate.
    #[error("{} has no section CERTIFICATE; give --tls-certificate the server's certificate, and behind it those of \
             its issuers, in PEM format", path.display())]
    NoCertificate {
        /// Which one.
        path: PathBuf,
    },
    /// A file without a key.
    #[error("{} has no section PRIVATE KEY; give --tls-key the certificate's private key in PEM format, without a \
             passphrase", path.display())]
    NoKey {
        /// Which one.
        path: PathBuf,
    },
    /// The system gives no randomness for the keys of session tickets.
    #[error("cannot make keys for TLS session tickets: {source}; the system must give random bytes (getrandom)")]
    NoTickets {
        /// What is wrong.
        source: rustls::Error,
    },
    /// The two do not go together, or are of a kind that is not understood.
    #[error("cannot use the certificate {} with the key {}: {source}; --tls-key is the key that the certificate was \
             made with: RSA, ECDSA (P-256, P-384) or Ed25519", certificate.display(), key.display())]
    Unusable {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
}

/// The server's side of TLS, which may be given another certificate while it runs.
pub struct Tls {
    files: TlsFiles,
    offers_http2: bool,
    /// Outlives a certificate, so that sessions do.
    ticketer: Arc<dyn ProducesTickets>,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads both files. By ALPN it agrees on HTTP/1, and on HTTP/2 if that is offered.
    pub fn load(files: &TlsFiles, offers_http2: bool) -> Result<Self, TlsError> {
        let ticketer = ring::Ticketer::new().map_err(|source| TlsError::NoTickets { source })?;
        let config = RwLock::new(read_config(files, offers_http2, ticketer.clone())?);
        Ok(Self { files: files.clone(), offers_http2, ticketer, config })
    }

    /// Reads the files again, for connections that come from now on. If they cannot be used, all stays as it is.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = read_config(&self.files, self.offers_http2, self.ticketer.clone())?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// What a new connection starts with.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// TLS 1.2 and 1.3, no certificates of clients; sessions are resumed by tickets, so that they cost the server nothing.
fn read_config(
    files: &TlsFiles,
    offers_http2: bool,
    ticketer: Arc<dyn ProducesTickets>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let certificates = certificates(&files.certificate)?;
    let key = key(&files.key)?;
    let unusable =
        |source| TlsError::Unusable { certificate: files.certificate.clone(), key: files.key.clone(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(unusable)?;
    config.ticketer = ticketer;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    let protocols: &[&str] = if offers_http2 { &["h2", "http/1.1", "http/1.0"] } else { &["http/1.1", "http/1.0"] };
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path)?;
    let certificates = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| TlsError::BadPem { path: path.to_owned(), source })?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(certificates)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|source| match source {
        // Of PKCS #8, and of the older form.
        _ if bytes.windows(9).any(|bytes| bytes == b"ENCRYPTED") => TlsError::Encrypted { path: path.to_owned() },
        pem::Error::NoItemsFound => TlsError::NoKey { path: path.to_owned() },
        source => TlsError::BadPem { path: path.to_owned(), source },
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut pem = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PEM_BYTES_MAX + 1).read_to_end(&mut pem));
    let whole = read.and_then(|length| match length as u64 > PEM_BYTES_MAX {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than the limit of 16 MiB")),
        false => Ok(pem),
    });
    whole.map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}
