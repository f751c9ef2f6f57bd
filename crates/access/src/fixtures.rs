//! Tokens for tests: made by ring, as `jsonwebtoken` only checks them here.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::Value;

/// What signs.
pub enum Signer {
    Secret(Vec<u8>),
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Bytes as tokens write them (RFC 7515, section 2).
pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    pub fn secret(secret: &str) -> Self {
        Self::Secret(secret.as_bytes().to_vec())
    }

    pub fn ecdsa() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self::Ecdsa(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap())
    }

    pub fn ed25519() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    /// ring makes none; this one was made for these tests alone.
    pub fn rsa() -> Self {
        Self::Rsa(Box::new(RsaKeyPair::from_pkcs8(include_bytes!("../testdata/rsa.der")).unwrap()))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Secret(_) => "HS256",
            Self::Rsa(_) => "RS256",
            Self::Ecdsa(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Secret(secret) => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ecdsa(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    /// The public key as an entry of a key set.
    pub fn entry(&self, id: &str) -> Value {
        match self {
            Self::Secret(secret) => serde_json::json!({ "kty": "oct", "kid": id, "k": base64url(secret) }),
            Self::Rsa(key) => {
                let parts = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                let [n, e] = [parts.n, parts.e].map(|number| base64url(&number));
                serde_json::json!({ "kty": "RSA", "kid": id, "n": n, "e": e })
            }
            Self::Ecdsa(key) => {
                let [x, y] = [1..33, 33..65].map(|part| base64url(&key.public_key().as_ref()[part]));
                serde_json::json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": x, "y": y })
            }
            Self::Ed25519(key) => {
                let x = base64url(key.public_key().as_ref());
                serde_json::json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x })
            }
        }
    }

    /// A token whose head has these fields beside the algorithm.
    pub fn token_with(&self, head: Value, claims: &Value) -> String {
        let mut fields = head;
        if fields.get("alg").is_none() {
            fields["alg"] = self.algorithm().into();
        }
        self.signed(&fields.to_string(), &claims.to_string())
    }

    /// A token of this head and these claims, whatever they are.
    pub fn signed(&self, head: &str, claims: &str) -> String {
        let message = format!("{}.{}", base64url(head), base64url(claims));
        format!("{message}.{}", base64url(self.sign(message.as_bytes())))
    }

    pub fn token(&self, claims: &Value) -> String {
        self.token_with(serde_json::json!({ "typ": "JWT" }), claims)
    }
}
