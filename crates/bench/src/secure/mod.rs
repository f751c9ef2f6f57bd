//! TLS: the certificate of the server, and clients that trust it.

mod http2;
mod tls;

pub use http2::Http2;
pub use tls::Tls;

use crate::connect::open_blocking;
use anyhow::Context as _;
use pushlab_os::folder::TemporaryFolder;
use pushlab_server::TlsFiles;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs::File;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// The name in the certificate.
const NAME: &str = "localhost";
/// What protocols are called in a handshake.
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// A certificate made for one measurement, in a folder that nobody else may read; removed when dropped.
pub struct Certificate {
    folder: TemporaryFolder,
    roots: Arc<RootCertStore>,
}

/// The server's files in such a folder.
pub fn files_in(folder: &Path) -> TlsFiles {
    TlsFiles { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") }
}

impl Certificate {
    /// Makes one: ECDSA P-256, as most sites have it.
    pub fn make() -> anyhow::Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone())?;
        let certificate = Self { folder: TemporaryFolder::make("pushlab-bench")?, roots: Arc::new(roots) };
        let files = files_in(certificate.folder());
        for (path, text) in [(files.certificate, made.cert.pem()), (files.key, made.signing_key.serialize_pem())] {
            let mut file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            file.write_all(text.as_bytes())?;
        }
        Ok(certificate)
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Clients that speak HTTP/1.1.
    pub fn http1(&self) -> Arc<ClientConfig> {
        client(&self.roots, HTTP1)
    }

    /// Clients that speak HTTP/2.
    pub fn http2(&self) -> Arc<ClientConfig> {
        client(&self.roots, HTTP2)
    }

    /// A connection for HTTP/1.1 that waits for its answers.
    pub fn open_blocking(&self, address: SocketAddr) -> anyhow::Result<StreamOwned<ClientConnection, TcpStream>> {
        Ok(StreamOwned::new(session(&self.http1())?, open_blocking(address)?))
    }
}

/// Clients that speak HTTP/1.1 and trust the certificate in such a folder.
pub fn http1_in(folder: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let path = files_in(folder).certificate;
    let certificate =
        CertificateDer::from_pem_file(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    Ok(client(&Arc::new(roots), HTTP1))
}

fn client(roots: &Arc<RootCertStore>, protocol: &[u8]) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("ring has what TLS 1.2 and 1.3 need");
    let mut config = builder.with_root_certificates(Arc::clone(roots)).with_no_client_auth();
    // Each connection makes a whole handshake, as one of a client that has not been there before.
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![protocol.to_vec()];
    Arc::new(config)
}

/// A client's end of a connection that has not begun.
pub fn session(config: &Arc<ClientConfig>) -> anyhow::Result<ClientConnection> {
    let name = ServerName::try_from(NAME).expect("it is a name");
    ClientConnection::new(Arc::clone(config), name).context("cannot begin TLS")
}
