//! The keys by which tokens are checked.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most keys of a key set.
const MAX_KEYS: usize = 100;
/// Shortest secret of HS256, bytes (RFC 7518, section 3.2).
const MIN_SECRET_BYTES: usize = 32;

/// How tokens are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Signing {
    /// HMAC with SHA-256: a secret that the signer and this server share.
    HS256,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    RS256,
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// Ed25519.
    EdDSA,
}

/// What is wrong with a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A secret that can be guessed.
    #[error("the secret has {0} bytes; HS256 needs at least {MIN_SECRET_BYTES} (make one with: openssl rand -hex 32)")]
    ShortSecret(usize),
    /// Not a public key of this kind.
    #[error("not the public key of {0:?} in PEM format (BEGIN PUBLIC KEY): {1}")]
    NotPem(Signing, jsonwebtoken::errors::Error),
    /// Not a key set.
    #[error("not a JSON Web Key Set ({{\"keys\":[…]}}): {0}")]
    NotKeySet(#[from] serde_json::Error),
    /// Too many keys.
    #[error("the key set has {0} keys; at most {MAX_KEYS} are allowed")]
    TooMany(usize),
}

/// One key, which checks signatures of one kind alone: a token cannot choose another for it.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its name in the heads of tokens, if it has one.
    pub id: Option<String>,
    pub signing: Signing,
    pub key: DecodingKey,
}

impl Signing {
    pub fn algorithm(self) -> Algorithm {
        match self {
            Self::HS256 => Algorithm::HS256,
            Self::RS256 => Algorithm::RS256,
            Self::ES256 => Algorithm::ES256,
            Self::EdDSA => Algorithm::EdDSA,
        }
    }
}

impl Key {
    /// Reads the contents of a file.
    pub fn read(id: Option<String>, signing: Signing, contents: &[u8]) -> Result<Self, KeyError> {
        let not_pem = |error| KeyError::NotPem(signing, error);
        let key = match signing {
            Signing::HS256 => {
                // An editor's line end is not part of the secret.
                let secret = contents.trim_ascii_end();
                if secret.len() < MIN_SECRET_BYTES {
                    return Err(KeyError::ShortSecret(secret.len()));
                }
                DecodingKey::from_secret(secret)
            }
            Signing::RS256 => DecodingKey::from_rsa_pem(contents).map_err(not_pem)?,
            Signing::ES256 => DecodingKey::from_ec_pem(contents).map_err(not_pem)?,
            Signing::EdDSA => DecodingKey::from_ed_pem(contents).map_err(not_pem)?,
        };
        Ok(Self { id, signing, key })
    }

    /// Whether it may have signed a token whose head says this.
    pub fn fits(&self, algorithm: Algorithm, id: Option<&str>) -> bool {
        self.signing.algorithm() == algorithm && self.id.as_deref().zip(id).is_none_or(|(own, other)| own == other)
    }
}

/// Reads a key set (RFC 7517): those of its keys that can check a token, possibly none. Secrets in it are ignored,
/// since it is published.
pub fn read_set(contents: &[u8]) -> Result<Vec<Key>, KeyError> {
    let set: JwkSet = serde_json::from_slice(contents)?;
    if set.keys.len() > MAX_KEYS {
        return Err(KeyError::TooMany(set.keys.len()));
    }
    let keys = set
        .keys
        .iter()
        .filter(|key| key.common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature))
        .filter_map(|key| {
            let (signing, named) = match &key.algorithm {
                AlgorithmParameters::RSA(_) => (Signing::RS256, KeyAlgorithm::RS256),
                AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => {
                    (Signing::ES256, KeyAlgorithm::ES256)
                }
                AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
                    (Signing::EdDSA, KeyAlgorithm::EdDSA)
                }
                _ => return None,
            };
            let is_other = key.common.key_algorithm.is_some_and(|other| other != named);
            let decoding = DecodingKey::from_jwk(key).ok().filter(|_| !is_other)?;
            Some(Key { id: key.common.key_id.clone(), signing, key: decoding })
        });
    Ok(keys.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_set_gives_the_keys_that_check_tokens() {
        // The points and moduli need only look like some here: what they check is tested with tokens.
        let set = r#"{"keys":[
            {"kty":"RSA","kid":"r","use":"sig","alg":"RS256","n":"AQAB","e":"AQAB"},
            {"kty":"RSA","kid":"ps","alg":"PS256","n":"AQAB","e":"AQAB"},
            {"kty":"RSA","kid":"enc","use":"enc","n":"AQAB","e":"AQAB"},
            {"kty":"EC","kid":"e","crv":"P-256","x":"AQAB","y":"AQAB"},
            {"kty":"EC","kid":"e3","crv":"P-384","x":"AQAB","y":"AQAB"},
            {"kty":"OKP","kid":"d","crv":"Ed25519","x":"AQAB"},
            {"kty":"oct","kid":"s","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"},
            {"kty":"new","kid":"n","of":"tomorrow"}]}"#;
        let keys = read_set(set.as_bytes()).unwrap();
        let ids: Vec<_> = keys.iter().map(|key| (key.id.as_deref().unwrap(), key.signing)).collect();
        assert_eq!(ids, [("r", Signing::RS256), ("e", Signing::ES256), ("d", Signing::EdDSA)]);
        assert!(keys[0].fits(Algorithm::RS256, Some("r")) && keys[0].fits(Algorithm::RS256, None));
        assert!(!keys[0].fits(Algorithm::RS256, Some("e")) && !keys[0].fits(Algorithm::HS256, Some("r")));
    }

    #[test]
    fn what_is_no_key_says_what_would_be() {
        for (signing, contents, why) in [
            (Signing::HS256, "too short\n", "9 bytes"),
            (Signing::RS256, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "RS256 in PEM"),
            (Signing::EdDSA, "", "BEGIN PUBLIC KEY"),
        ] {
            let error = Key::read(None, signing, contents.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        for set in ["[]", "", "{}"] {
            let error = read_set(set.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("Key Set"), "{error}");
        }
        assert!(read_set(b"{\"keys\":[]}").unwrap().is_empty());
        let many = format!("{{\"keys\":[{}]}}", vec![r#"{"kty":"oct","k":"AQAB"}"#; MAX_KEYS + 1].join(","));
        assert!(matches!(read_set(many.as_bytes()), Err(KeyError::TooMany(101))));
    }
}
