//! The certificate of a subject over TLS, as browsers can be told to take it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pushlab_load::tls::BadCertificate;
use pushlab_workload::plan::{Target, Trust};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::server::ParsedCertificate;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// A certificate that a browser takes though nobody whom it trusts has signed it, at one place.
#[derive(Debug, PartialEq, Eq)]
pub struct Trusted {
    authority: String,
    certificate_sha256: [u8; 32],
    /// Of its public key (RFC 5280, section 4.1.2.7).
    key_sha256: [u8; 32],
}

impl Trusted {
    /// That of a target; `None` of one without TLS, or whose certificate the browser has to judge by itself.
    ///
    /// # Errors
    /// See [`BadCertificate`].
    pub fn of(target: &Target) -> Result<Option<Self>, BadCertificate> {
        let Some(Trust::Certificate(text)) = target.tls.as_ref().map(|tls| &tls.trust) else { return Ok(None) };
        let certificate = CertificateDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
            pem::Error::NoItemsFound => BadCertificate::Empty(text.clone()),
            error => error.into(),
        })?;
        let parsed = ParsedCertificate::try_from(&certificate)?;
        Ok(Some(Self {
            authority: target.authority.clone(),
            certificate_sha256: Sha256::digest(&certificate).into(),
            key_sha256: Sha256::digest(parsed.subject_public_key_info()).into(),
        }))
    }

    /// Chromium's argument: errors of certificates with this key are ignored. It counts only where a folder of the
    /// user's data is named, too.
    pub fn chromium_argument(&self) -> String {
        format!("--ignore-certificate-errors-spki-list={}", STANDARD.encode(self.key_sha256))
    }

    /// The file `cert_override.txt` of Firefox's profile, with the exception that a user makes who accepts the risk:
    /// place, algorithm (SHA-256) and fingerprint.
    pub fn firefox_overrides(&self) -> String {
        let mut fingerprint = String::new();
        for byte in self.certificate_sha256 {
            let colon = if fingerprint.is_empty() { "" } else { ":" };
            write!(fingerprint, "{colon}{byte:02X}").expect("a string takes everything");
        }
        format!("{}:\tOID.2.16.840.1.101.3.4.2.1\t{fingerprint}\t\n", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::plan::TlsTarget;

    /// Made once by OpenSSL 3.0, which gave the hashes, too.
    const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUVvH0v2JI8Vp4VYnncW3MEuawDggwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBdDAgFw0yNjExMjMxNTAzNDZaGA8yMTI2MTAzMDE1MDM0Nlow
DDEKMAgGA1UEAwwBdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOUTbut6Tj5V
CstK7H0xJJ86J9pskBMb9opcAlP76S8hC/ko4kVxA8aWN0GkkGd/yPpbNgOQnelu
wRoS0IurjEajUzBRMB0GA1UdDgQWBBS6cPWk202LNe14TeE78NoXta79CTAfBgNV
HSMEGDAWgBS6cPWk202LNe14TeE78NoXta79CTAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCIDizdsso+pMlCS4d493YEcKEsgZFaQxR8d/qBzKRyyVU
AiEAikXOTWw5wsIdbHS/Nt7yKIBbUZDvP0z2WeY05xEhMB0=
-----END CERTIFICATE-----
";

    fn target(trust: Trust) -> Target {
        let tls = Some(TlsTarget { server_name: "127.0.0.1".to_owned(), trust });
        Target { tls, ..Target::plain("127.0.0.1:8443".parse().unwrap()) }
    }

    #[test]
    fn browsers_are_told_of_one_certificate() {
        let trusted = Trusted::of(&target(Trust::Certificate(CERTIFICATE.to_owned()))).unwrap().unwrap();
        assert_eq!(
            trusted.chromium_argument(),
            "--ignore-certificate-errors-spki-list=8GZZwIIl+sJaNK7npjYdiGZV3l4FoQ6psqhyFlJZBUE="
        );
        assert_eq!(
            trusted.firefox_overrides(),
            "127.0.0.1:8443:\tOID.2.16.840.1.101.3.4.2.1\tCF:2E:69:E6:DC:DF:06:8A:FB:63:C2:6B:4A:82:A0:AC:BC:27:25:C7:33:B3:83:9C:B3:76:0D:76:BF:B0:00:C7\t\n"
        );
        let empty = Trusted::of(&target(Trust::Certificate("own.pem".to_owned()))).unwrap_err();
        assert!(matches!(empty, BadCertificate::Empty(ref text) if text == "own.pem"), "{empty}");
        assert_eq!(Trusted::of(&target(Trust::System)).unwrap(), None);
        assert_eq!(Trusted::of(&Target { tls: None, ..target(Trust::System) }).unwrap(), None);
    }
}
