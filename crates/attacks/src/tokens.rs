//! The access file of a server under attack, and tokens for it.

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64URL;
use pushlab_access::Access;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use ring::hmac;
use serde_json::json;

/// What signs the tokens that are right.
const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// 2100: no token expires while it is measured.
const EXPIRES_AT: u64 = 4_102_444_800;
const RULES: &str = r#"
    presence = ["room:*"]
    [token]
    key_set = "set"
    [[token.key]]
    algorithm = "HS256"
    file = "secret"
    [[token.key]]
    algorithm = "ES256"
    file = "es256"
    [[token.key]]
    algorithm = "EdDSA"
    file = "eddsa"
    [[rule]]
    who = "everybody"
    channels = ["*"]
    may = ["subscribe", "publish", "presence"]
"#;

/// Signatures that cost much to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signing {
    /// RSA of 2,048 bits.
    Rs256,
    /// ECDSA on P-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

/// An access file by which everybody may do everything, with a key of each kind.
pub fn rules() -> anyhow::Result<Access> {
    let key = |of| anyhow::Ok(KeyPair::generate_for(of)?.public_key_pem());
    let (es256, eddsa) = (key(&PKCS_ECDSA_P256_SHA256)?, key(&PKCS_ED25519)?);
    // Any odd number will do: a wrong signature costs as much whatever its factors are.
    let mut modulus = random::<256>();
    (modulus[0], modulus[255]) = (modulus[0] | 0x80, modulus[255] | 1);
    let set = json!({ "keys": [{ "kty": "RSA", "n": BASE64URL.encode(modulus), "e": "AQAB" }] }).to_string();
    let mut contents = |file: &str| match file {
        "set" => Ok(set.clone().into()),
        "secret" => Ok(SECRET.into()),
        "es256" => Ok(es256.clone().into()),
        "eddsa" => Ok(eddsa.clone().into()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    Access::read(RULES, "the access file", &mut contents).context("the access file is wrong")
}

/// A token that nobody has signed, each time another one. How wrong it is shows only when its signature is checked.
pub fn wrong(signing: Signing) -> String {
    let (algorithm, signature) = match signing {
        // Less than any modulus.
        Signing::Rs256 => ("RS256", [&[0][..], &random::<255>()].concat()),
        Signing::Es256 => ("ES256", random::<64>().into()),
        // Its second half is a number below 2^252 (RFC 8032, section 5.1.7).
        Signing::EdDsa => ("EdDSA", [&random::<63>()[..], &[0]].concat()),
    };
    format!("{}.{}", message(algorithm, "ada"), BASE64URL.encode(signature))
}

/// A token of somebody.
pub fn of(identity: &str) -> String {
    let message = message("HS256", identity);
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), message.as_bytes());
    format!("{message}.{}", BASE64URL.encode(signature))
}

/// What is signed.
fn message(algorithm: &str, identity: &str) -> String {
    let parts = [json!({ "alg": algorithm }), json!({ "sub": identity, "exp": EXPIRES_AT })];
    parts.map(|part| BASE64URL.encode(part.to_string())).join(".")
}

fn random<const N: usize>() -> [u8; N] {
    std::array::from_fn(|_| fastrand::u8(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_access::{LiveAccess, TokenError};

    const NOW_S: u64 = EXPIRES_AT - 1;

    #[test]
    fn a_wrong_token_gets_as_far_as_its_signature() {
        let access = LiveAccess::new(rules().unwrap());
        let mut checks = 0;
        for signing in [Signing::Rs256, Signing::Es256, Signing::EdDsa] {
            let token = wrong(signing);
            assert_eq!(access.check(&token, NOW_S, &mut checks).unwrap_err(), TokenError::WrongSignature, "{token}");
            assert_ne!(token, wrong(signing));
        }
        assert_eq!(checks, 3);
        assert_eq!(access.person(&of("bob"), NOW_S).unwrap().identity(), Some("bob"));
        assert!(access.rules().tells_presence("room:1"));
    }
}
