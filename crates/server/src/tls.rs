//! The certificate and the key with which a server speaks TLS.

use crate::config::TlsFiles;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Reads both files: TLS 1.2 and 1.3, no certificates of clients.
pub fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
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
    config.alpn_protocols = vec![b"http/1.1".to_vec(), b"http/1.0".to_vec()];
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
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|source| match source {
        pem::Error::NoItemsFound => TlsError::NoKey { path: path.to_owned() },
        source => TlsError::BadPem { path: path.to_owned(), source },
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}
