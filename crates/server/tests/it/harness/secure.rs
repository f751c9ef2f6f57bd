//! A certificate for the tests, and a client's configuration that trusts it.

use pushlab_server::TlsFiles;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A certificate for `localhost`, made once for all tests of a process.
pub struct Identity {
    pub certificate: String,
    pub key: String,
    der: CertificateDer<'static>,
    pub client: Arc<ClientConfig>,
}

pub fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let der = made.cert.der().clone();
        let client = Arc::new(trusting(&der, rustls::ALL_VERSIONS));
        Identity { certificate: made.cert.pem(), key: made.signing_key.serialize_pem(), der, client }
    })
}

impl Identity {
    /// The files of the certificate and its key.
    pub fn files(&self) -> TlsFiles {
        TlsFiles { certificate: file("certificate.pem", &self.certificate), key: file("key.pem", &self.key) }
    }

    /// A client that speaks these versions only.
    pub fn client_of(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        trusting(&self.der, versions)
    }
}

/// A file with this text, of this process alone.
pub fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    // Tests that run beside each other write the same: whole or not at all.
    let part = path.with_extension(format!("{:?}", std::thread::current().id()));
    std::fs::write(&part, text).unwrap();
    std::fs::rename(&part, &path).unwrap();
    path
}

fn trusting(der: &CertificateDer<'static>, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(der.clone()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}
