//! JSON Web Tokens (RFC 7519): who signed one, for whom, and for how long.

use crate::keys::Key;
use crate::ring_provider;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

/// Longest token, bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 4096;
/// Keys that are tried for one token: a check of a signature takes up to 100 µs, and whoever sends a wrong token makes the
/// server do all of them.
const MAX_TRIED_KEYS: usize = 8;

/// Why a token is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The server takes none.
    #[error("this server takes no tokens: its access file has no [token]")]
    NotTaken,
    /// Not three parts, or not the JSON that they should be.
    #[error("the token is not a JSON Web Token")]
    Malformed,
    /// Longer than any that is read.
    #[error("the token is longer than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    /// No key for it.
    #[error("the server has no key with the token's algorithm and key ID")]
    UnknownKey,
    /// More keys might have signed it than are tried.
    #[error("the token does not say which key signed it (kid): at most {MAX_TRIED_KEYS} are tried, and more would fit")]
    TooManyKeys,
    /// Not signed by one of the keys.
    #[error("the token's signature is wrong")]
    WrongSignature,
    /// Of somebody else.
    #[error("the token is from another issuer")]
    WrongIssuer,
    /// For somebody else.
    #[error("the token is meant for another audience")]
    WrongAudience,
    /// It does not say who it is.
    #[error("the token does not say whose it is, in the claim that the server reads for that")]
    NoIdentity,
    /// It would hold for ever.
    #[error("the token does not say when it expires (exp)")]
    NoExpiry,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// A ticket that was never given out, or was used, or is too old.
    #[error("the ticket is unknown, was used already, or is too old; get another one from POST /ticket")]
    BadTicket,
}

/// What is asked of tokens.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Who must have made them, if only one may.
    pub issuer: Option<String>,
    /// Whom they must be for, if they must be for somebody.
    pub audience: Option<String>,
    /// The claim that says whose they are.
    pub identity: String,
    /// How far the issuer's clock may be off, seconds.
    pub leeway_s: u64,
    /// Keys of the file itself.
    pub keys: Vec<Key>,
    /// Those of the key set, if there is one and it was read.
    pub set: Vec<Key>,
}

/// What a token says, checked.
#[derive(Debug)]
pub struct Said {
    pub identity: String,
    /// Seconds since 1970, by the server's clock: the leeway is in it.
    pub expires_at: u64,
    pub claims: Map<String, Value>,
}

impl Tokens {
    /// Checks a token. [`TokenError::UnknownKey`] says that a newer key set may have its key. Adds to `checks` how many
    /// signatures were checked, or one where it did not come to that.
    pub fn check(&self, token: &str, now_s: u64, checks: &mut usize) -> Result<Said, TokenError> {
        *checks += 1;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong);
        }
        ring_provider::install();
        let head = decode_header(token).map_err(|_| TokenError::Malformed)?;
        let fits = |key: &&Key| key.fits(head.alg, head.kid.as_deref());
        let keys: Vec<&Key> = self.keys.iter().chain(&self.set).filter(fits).collect();
        match keys.len() {
            0 => return Err(TokenError::UnknownKey),
            1..=MAX_TRIED_KEYS => {}
            _ => return Err(TokenError::TooManyKeys),
        }
        // Times, issuer and audience are checked below, by the clock that is given.
        let mut signature = Validation::new(head.alg);
        signature.required_spec_claims.clear();
        (signature.validate_exp, signature.validate_aud) = (false, false);
        let mut error = TokenError::WrongSignature;
        for (nth, key) in keys.into_iter().enumerate() {
            *checks += usize::from(nth > 0);
            match decode::<Map<String, Value>>(token, &key.key, &signature) {
                Ok(decoded) => return self.check_claims(decoded.claims, now_s),
                Err(other) if *other.kind() == ErrorKind::InvalidSignature => {}
                // Signed by this key, but what was signed is no set of claims.
                Err(_) => error = TokenError::Malformed,
            }
        }
        Err(error)
    }

    fn check_claims(&self, claims: Map<String, Value>, now_s: u64) -> Result<Said, TokenError> {
        let is = |name: &str, expected: &Option<String>| {
            expected.as_ref().is_none_or(|expected| match claims.get(name) {
                Some(Value::String(one)) => one == expected,
                Some(Value::Array(several)) => several.iter().any(|one| one == expected.as_str()),
                _ => false,
            })
        };
        if !is("iss", &self.issuer) {
            return Err(TokenError::WrongIssuer);
        }
        if !is("aud", &self.audience) {
            return Err(TokenError::WrongAudience);
        }
        let expires_at = time(claims.get("exp"), TokenError::NoExpiry)?.saturating_add(self.leeway_s);
        if expires_at <= now_s {
            return Err(TokenError::Expired);
        }
        if claims.contains_key("nbf") && time(claims.get("nbf"), TokenError::Malformed)? > now_s + self.leeway_s {
            return Err(TokenError::NotYetValid);
        }
        let identity = match claims.get(&self.identity) {
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(TokenError::NoIdentity),
        };
        Ok(Said { identity, expires_at, claims })
    }
}

/// A claim that is a time, in whole seconds since 1970 (RFC 7519 allows fractions).
fn time(claim: Option<&Value>, otherwise: TokenError) -> Result<u64, TokenError> {
    let Some(Value::Number(number)) = claim else { return Err(otherwise) };
    let seconds = number.as_u64().or_else(|| number.as_f64().map(|seconds| seconds as u64));
    seconds.ok_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Signer;
    use crate::keys::{Signing, read_set};
    use serde_json::json;

    const NOW: u64 = 1_800_000_000;
    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn tokens(keys: Vec<Key>) -> Tokens {
        let (issuer, audience) = (Some("https://id.example".to_owned()), Some("push".to_owned()));
        Tokens { issuer, audience, identity: "sub".to_owned(), leeway_s: 5, keys, set: Vec::new() }
    }

    fn by_secret() -> Tokens {
        tokens(vec![Key::read(None, Signing::HS256, SECRET.as_bytes()).unwrap()])
    }

    fn claims() -> Value {
        json!({ "iss": "https://id.example", "aud": ["other", "push"], "sub": "ada", "exp": NOW + 60 })
    }

    #[test]
    fn each_kind_of_signature_is_checked() {
        let rsa_pem = include_bytes!("../testdata/rsa.pem");
        for (signer, signing) in
            [(Signer::rsa(), Signing::RS256), (Signer::ecdsa(), Signing::ES256), (Signer::ed25519(), Signing::EdDSA)]
        {
            let set = json!({ "keys": [signer.entry("k1")] }).to_string();
            let mut by_set = tokens(Vec::new());
            by_set.set = read_set(set.as_bytes()).unwrap();
            assert_eq!(by_set.set[0].signing, signing);
            let token = signer.token_with(json!({ "kid": "k1" }), &claims());
            let said = by_set.check(&token, NOW, &mut 0).unwrap();
            assert_eq!((&*said.identity, said.expires_at), ("ada", NOW + 65), "{signing:?}");
            let other = signer.token_with(json!({ "kid": "k2" }), &claims());
            assert_eq!(by_set.check(&other, NOW, &mut 0).unwrap_err(), TokenError::UnknownKey);
            // Another key of the same kind, and a token that was altered.
            let stranger = match signing {
                Signing::ES256 => Signer::ecdsa().token_with(json!({ "kid": "k1" }), &claims()),
                _ => {
                    let (start, signature) = token.rsplit_once('.').unwrap();
                    let other = if signature.starts_with('A') { "B" } else { "A" };
                    format!("{start}.{other}{}", &signature[1..])
                }
            };
            assert_eq!(by_set.check(&stranger, NOW, &mut 0).unwrap_err(), TokenError::WrongSignature, "{signing:?}");
        }
        let by_pem = tokens(vec![Key::read(None, Signing::RS256, rsa_pem).unwrap()]);
        assert!(by_pem.check(&Signer::rsa().token(&claims()), NOW, &mut 0).is_ok());
    }

    /// The public key of RSA is no secret: a token that is signed with it as if it were one must not pass.
    #[test]
    fn a_token_cannot_choose_how_a_key_is_used() {
        let pem = include_str!("../testdata/rsa.pem");
        let by_rsa = tokens(vec![Key::read(None, Signing::RS256, pem.as_bytes()).unwrap()]);
        assert_eq!(
            by_rsa.check(&Signer::secret(pem).token(&claims()), NOW, &mut 0).unwrap_err(),
            TokenError::UnknownKey
        );
        for head in [json!({ "alg": "none" }), json!({ "alg": "HS384" }), json!({ "alg": "hs256" })] {
            let token = Signer::secret(SECRET).token_with(head.clone(), &claims());
            let error = by_secret().check(&token, NOW, &mut 0).unwrap_err();
            assert!(matches!(error, TokenError::UnknownKey | TokenError::Malformed), "{head} {error:?}");
        }
        let unsigned = format!("{}.", by_parts(&json!({ "alg": "HS256" }), &claims()));
        assert_eq!(by_secret().check(&unsigned, NOW, &mut 0).unwrap_err(), TokenError::WrongSignature);
    }

    /// Whoever sends wrong tokens is to pay for each check, and no token costs many.
    #[test]
    fn signatures_are_counted_and_keys_that_are_tried_bounded() {
        let secret = |n: usize| format!("{n:032}");
        let key = |n: usize, id: Option<String>| Key::read(id, Signing::HS256, secret(n).as_bytes()).unwrap();
        let of_many = |count: usize| tokens((0..count).map(|n| key(n, None)).collect());
        let by = |n: usize| Signer::secret(&secret(n)).token(&claims());
        for (token, error, expected) in [
            (by(0), None, 1),
            (by(7), None, 8),
            (by(8), Some(TokenError::WrongSignature), 8),
            ("no.token".to_owned(), Some(TokenError::Malformed), 1),
        ] {
            let mut checks = 0;
            assert_eq!(of_many(MAX_TRIED_KEYS).check(&token, NOW, &mut checks).err(), error);
            assert_eq!(checks, expected, "{token}");
        }
        let mut checks = 0;
        assert_eq!(of_many(MAX_TRIED_KEYS + 1).check(&by(0), NOW, &mut checks).unwrap_err(), TokenError::TooManyKeys);
        assert_eq!(checks, 1);
        let named = tokens((0..100).map(|n| key(n, Some(n.to_string()))).collect());
        let token = Signer::secret(&secret(70)).token_with(json!({ "kid": "70" }), &claims());
        assert!(named.check(&token, NOW, &mut 0).is_ok(), "it says which one");
    }

    fn by_parts(head: &Value, claims: &Value) -> String {
        [head, claims].map(|part| crate::fixtures::base64url(part.to_string().as_bytes())).join(".")
    }

    #[test]
    fn each_claim_is_checked() {
        let signer = Signer::secret(SECRET);
        let check = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            by_secret().check(&signer.token(&claims), NOW, &mut 0).map(|said| said.identity)
        };
        assert_eq!(check("extra", json!({ "a": [1] })), Ok("ada".to_owned()));
        assert_eq!(check("aud", json!("push")), Ok("ada".to_owned()));
        assert_eq!(check("sub", json!(7)), Ok("7".to_owned()));
        assert_eq!(check("nbf", json!(NOW + 5)), Ok("ada".to_owned()));
        assert_eq!(check("exp", json!(NOW - 4)), Ok("ada".to_owned()), "within the leeway");
        assert_eq!(check("exp", json!(NOW as f64 + 0.5)), Ok("ada".to_owned()));
        for (name, value, error) in [
            ("iss", json!("https://evil.example"), TokenError::WrongIssuer),
            ("iss", Value::Null, TokenError::WrongIssuer),
            ("aud", json!("pushy"), TokenError::WrongAudience),
            ("aud", json!(["a", "b"]), TokenError::WrongAudience),
            ("aud", json!({ "push": "push" }), TokenError::WrongAudience),
            ("exp", json!(NOW - 5), TokenError::Expired),
            ("exp", json!(-1), TokenError::Expired),
            ("exp", json!("2099"), TokenError::NoExpiry),
            ("exp", Value::Null, TokenError::NoExpiry),
            ("nbf", json!(NOW + 6), TokenError::NotYetValid),
            ("nbf", json!("now"), TokenError::Malformed),
            ("sub", json!(""), TokenError::NoIdentity),
            ("sub", json!(["ada"]), TokenError::Malformed),
        ] {
            assert_eq!(check(name, value.clone()), Err(error), "{name} {value}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let tokens = by_secret();
        for text in ["", ".", "..", "...", "a.b.c", "ey.ey.ey", "é.é.é", &by_parts(&json!({}), &json!({}))] {
            let error = tokens.check(text, NOW, &mut 0).unwrap_err();
            assert!(matches!(error, TokenError::Malformed | TokenError::WrongSignature), "{text} {error:?}");
        }
        let not_an_object = Signer::secret(SECRET).token(&json!(["ada"]));
        assert_eq!(tokens.check(&not_an_object, NOW, &mut 0).unwrap_err(), TokenError::Malformed);
        assert_eq!(tokens.check(&"a".repeat(MAX_TOKEN_BYTES + 1), NOW, &mut 0).unwrap_err(), TokenError::TooLong);
    }
}
