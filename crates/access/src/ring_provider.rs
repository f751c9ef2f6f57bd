//! Signatures by ring, which TLS uses too: `jsonwebtoken` leaves the choice to its user.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: no_signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

/// Makes ring the one that checks. Done again it changes nothing.
pub(crate) fn install() {
    // An error says that one is installed already, which is this one.
    let _ = PROVIDER.install_default();
}

/// Tokens are checked here, never made.
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    match algorithm {
        Algorithm::HS256 | Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA => {
            Ok(Box::new(ByRing { algorithm: *algorithm, key: key.clone() }))
        }
        _ => Err(ErrorKind::UnsupportedAlgorithm.into()),
    }
}

struct ByRing {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::HS256, DecodingKeyKind::SecretOrDer(secret)) => {
                hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, secret), message, signature)
            }
            (Algorithm::RS256, DecodingKeyKind::SecretOrDer(der)) => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, der).verify(message, signature)
            }
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        checked.map_err(|_| Error::new())
    }
}
